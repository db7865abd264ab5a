// The trace for Perfetto, read again packet by packet: tracks, slices, instants, flows.
#include "report/perfetto/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <protozero/pbf_reader.hpp>

#include "report/perfetto/flows.h"
#include "report/perfetto/trace_writer.h"
#include "tests/catch.h"
#include "tests/support/call_traces.h"
#include "tests/support/run_job.h"
#include "tests/support/sample_verdict.h"

namespace inquest {
namespace perfetto_test {

using protozero::pbf_reader;

struct Slice {
  std::string track, name, category;
  std::uint64_t begin = 0;
  std::optional<std::uint64_t> end;
  std::size_t depth = 0;
  std::map<std::string, std::string> notes;
  std::vector<std::uint64_t> flows;
};

std::string Utf8(const protozero::data_view& view) {
  const std::string text(view.data(), view.size());
  INFO(text);
  CHECK(text.find_first_of(std::string("\0\x1b\a\xff", 4)) == std::string::npos);
  for (const char* const turned : {"\xe2\x80\xae", "\xc2\x9b"}) CHECK(text.find(turned) == std::string::npos);
  return text;
}

/// What a viewer makes of a trace.
class Shown {
 public:
  explicit Shown(const std::string& trace) {
    for (pbf_reader packets(trace); packets.next();) Packet(packets.get_message());
    for (auto& [track, open] : open_)
      for (const std::size_t one : open) unfinished.insert(one);
  }
  std::vector<Slice> slices, instants;
  std::vector<std::string> tracks;  ///< `process: node07`, `thread of node07: rank 28`
  std::set<std::size_t> unfinished;

  std::vector<const Slice*> Of(const std::string& category) const {
    std::vector<const Slice*> out;
    for (const Slice& slice : slices)
      if (slice.category == category) out.push_back(&slice);
    return out;
  }
  bool Has(const std::string& track) const { return std::ranges::find(tracks, track) != tracks.end(); }

 private:
  void Packet(pbf_reader packet) {
    std::uint64_t at = 0;
    std::optional<pbf_reader> event, track, interned;
    while (packet.next()) {
      switch (packet.tag()) {
        case 8:
          at = packet.get_uint64();
          break;
        case 11:
          event = packet.get_message();
          break;
        case 12:
          interned = packet.get_message();
          break;
        case 60:
          track = packet.get_message();
          break;
        default:
          packet.skip();
      }
    }
    if (interned) Intern(*interned);
    if (track) Track(*track);
    if (event) Event(*event, at);
  }
  void Intern(pbf_reader interned) {
    while (interned.next()) {
      const std::uint32_t table = interned.tag();
      pbf_reader entry = interned.get_message();
      std::uint64_t number = 0;
      while (entry.next())
        if (entry.tag() == 1)
          number = entry.get_uint64();
        else
          texts_[{table, number}] = Utf8(entry.get_view());
    }
  }
  void Track(pbf_reader track) {
    std::uint64_t uuid = 0;
    std::string name, kind = "track";
    std::uint32_t process = 0;
    while (track.next()) {
      if (track.tag() == 1) {
        uuid = track.get_uint64();
      } else if (track.tag() == 2) {
        name = Utf8(track.get_view());
      } else if (track.tag() == 3 || track.tag() == 4) {
        kind = track.tag() == 3 ? "process" : "thread";
        pbf_reader who = track.get_message();
        while (who.next()) {
          if (who.tag() == 1)
            process = who.get_uint32();
          else if (who.tag() == (kind == "process" ? 6u : 5u))
            name = Utf8(who.get_view());
          else
            who.skip();
        }
      } else {
        track.skip();
      }
    }
    if (kind == "process") processes_[process] = name;
    if (kind == "thread") kind += " of " + processes_.at(process);
    names_[uuid] = name;
    if (uuid != 0) tracks.push_back(kind + ": " + name);
  }
  void Event(pbf_reader event, std::uint64_t at) {
    Slice out;
    std::uint64_t track = 0;
    std::int32_t type = 0;
    while (event.next()) {
      switch (event.tag()) {
        case 3:
          out.category = texts_.at({1, event.get_uint64()});
          break;
        case 4:
          Note(event.get_message(), out);
          break;
        case 9:
          type = event.get_enum();
          break;
        case 10:
          out.name = texts_.at({2, event.get_uint64()});
          break;
        case 11:
          track = event.get_uint64();
          break;
        case 23:
          out.name = Utf8(event.get_view());
          break;
        case 47:
          out.flows.push_back(event.get_fixed64());
          break;
        default:
          event.skip();
      }
    }
    REQUIRE(names_.contains(track));
    out.track = names_.at(track);
    out.begin = at;
    if (type == 3) return instants.push_back(std::move(out));
    CHECK(at >= last_[track]);
    last_[track] = at;
    auto& open = open_[track];
    if (type == 1) {
      out.depth = open.size();
      open.push_back(slices.size());
      slices.push_back(std::move(out));
    } else {
      REQUIRE(type == 2);
      REQUIRE_FALSE(open.empty());
      slices[open.back()].end = at;
      open.pop_back();
    }
  }
  void Note(pbf_reader note, Slice& out) {
    std::string name, value;
    while (note.next()) {
      switch (note.tag()) {
        case 1:
          name = texts_.at({3, note.get_uint64()});
          break;
        case 2:
          value = note.get_bool() ? "true" : "false";
          break;
        case 3:
          value = std::to_string(note.get_uint64());
          break;
        case 4:
          value = std::to_string(note.get_int64());
          break;
        case 5:
          value = fmt::format("{}", note.get_double());
          break;
        case 17:
          value = texts_.at({29, note.get_uint64()});
          break;
        case 6:
          value = Utf8(note.get_view());
          break;
        default:
          name = Utf8(note.get_view());
      }
    }
    CHECK(out.notes.emplace(name, value).second);
  }

  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> texts_;
  std::map<std::uint32_t, std::string> processes_;
  std::map<std::uint64_t, std::string> names_;
  std::map<std::uint64_t, std::uint64_t> last_;
  std::map<std::uint64_t, std::vector<std::size_t>> open_;
};

Shown Draw(const Timeline& timeline, const Verdict& verdict, const ReadAgain& again = {}) {
  std::string trace;
  RenderPerfetto(timeline, verdict, {.text = {}, .tool_version = "1.2.3"}, again,
                 [&](std::string_view piece) { trace += piece; });
  return Shown(trace);
}

Shown DrawText(const std::string& log) {
  const ScanOptions options{.threads = 1, .call_times = CallTimes::kRead};
  const Judged judged = JudgeText(log, options);
  return Draw(judged.timeline, judged.verdict, [&](EventSink& sink) {
    ScanText(log, BuiltInSieve(), options, sink);
    return std::string();
  });
}

TEST_CASE("perfetto: hosts are processes, ranks are threads, what befell them is drawn", "[unit][report]") {
  SynthJob job({.ranks = 4, .hosts = 2, .launcher = Launcher::kRankTag});
  job.Init(job.NewComm(job.AllRanks()));
  job.Wait(std::chrono::minutes(12));
  for (const int rank : {0, 1, 2}) job.TimeOut(rank, {});
  job.Raise(3, "torch.OutOfMemoryError", "CUDA out of memory");
  const Shown shown = DrawText(job.Interleaved());
  CHECK(shown.Has("process: inquest 1.2.3: order stands for time"));
  for (int rank = 0; rank < 4; ++rank) {
    const std::string host = job.Host(rank), name = fmt::format("rank {}", rank);
    CAPTURE(host, name);
    CHECK(std::ranges::any_of(
        shown.tracks, [&](const std::string& track) { return track.starts_with("thread of " + host + ": " + name); }));
  }
  std::map<std::string, std::size_t> ends;  // waits by their only flow
  for (const Slice* slice : shown.Of("state"))
    if (slice->notes.at("state") == "waiting") {
      CHECK(slice->name == "waiting: ALLREDUCE #100");
      REQUIRE(slice->flows.size() == 1);
      ++ends[std::to_string(slice->flows[0])];
    }
  CHECK((ends.size() == 1 && ends.begin()->second == 3));
  const auto raised = std::ranges::find(shown.instants, "torch.OutOfMemoryError", &Slice::name);
  REQUIRE(raised != shown.instants.end());
  CHECK(raised->track.starts_with("rank 3"));
  CHECK(raised->notes.at("kind") == "memory");
  const auto verdict = shown.Of("verdict");
  REQUIRE(verdict.size() >= 2);
  CHECK(verdict[0]->notes.at("outcome") == "failed");
}

TEST_CASE("perfetto: calls of NCCL's lines have their numbers, and a flow where another rank makes them too",
          "[unit][report]") {
  SynthJob job({.ranks = 3, .hosts = 1});
  const SynthJob::Comm comm = job.NewComm(job.AllRanks());
  job.Init(comm);
  for (std::uint64_t i = 0; i < 5; ++i) {
    for (const int rank : {0, 1, 2})
      if (rank < 2 || i < 3) job.Call(comm, rank, {.count = 10 + i, .op_count = 100 + i});
    job.Call(comm, 0, {.op = "Send", .count = 7});
  }
  job.Call(comm, 0, {.count = 99});  // of rank 0 alone
  job.Destroy(comm, 1);
  const Shown shown = DrawText(job.Interleaved());
  std::map<std::string, std::string> by_rank;
  std::map<std::uint64_t, std::size_t> flows;
  std::size_t unfinished = 0;
  for (std::size_t i = 0; i < shown.slices.size(); ++i) {
    const Slice& slice = shown.slices[i];
    if (slice.category != "collective" && slice.category != "send-recv") continue;
    const bool numbered = slice.notes.contains("call");
    CHECK(slice.depth == 0);
    by_rank[slice.track.substr(0, 6)] += numbered ? slice.notes.at("call") + ":" + slice.notes.at("count") + " " : "s ";
    CHECK(slice.notes.at("state") == "enqueued");
    for (const std::uint64_t flow : slice.flows) ++flows[flow];
    unfinished += shown.unfinished.count(i);
  }
  CHECK(by_rank["rank 0"] == "0:10 s 1:11 s 2:12 s 3:13 s 4:14 s 5:99 ");
  CHECK(by_rank["rank 1"] == "0:10 1:11 2:12 3:13 4:14 ");
  CHECK(by_rank["rank 2"] == "0:10 1:11 2:12 ");
  CHECK(flows.size() == 5);
  CHECK(std::ranges::count(flows, 3u, [](const auto& flow) { return flow.second; }) == 3);
  CHECK(std::ranges::count(flows, 2u, [](const auto& flow) { return flow.second; }) == 2);
  CHECK(unfinished == 2);  // rank 1 destroyed its communicator
}

TEST_CASE("perfetto: recorded calls last from creation to end, beside one another where they overlap",
          "[unit][report]") {
  const std::vector<TracedGroup> groups = {{"0", {0, 1}}};
  const std::map<int, std::string> calls = {
      {0, "0#1 all_reduce:4 + | 0#2 all_reduce:8 + | 0#3 all_reduce:8 ~ | 0#4 broadcast:2 -"},
      {1, "0#1 all_reduce:4 + | 0#2 all_reduce:8 -"}};
  Timeline timeline;
  timeline.inputs.resize(2);
  timeline.recorded = std::make_shared<const Recorded>(RecordedOf(groups, calls));
  constexpr std::int64_t kNow = 1'933'040'000'000'000'000, kSecond = 1'000'000'000;
  const Shown shown = Draw(timeline, {}, [&](EventSink& sink) {
    for (const auto& [rank, text] : calls) {
      CallTrace trace = TraceOf(groups, rank, text);
      for (std::size_t i = 0; i < trace.calls.size(); ++i) {
        CallTrace::Call& call = trace.calls[i];
        call.created_ns = kNow + static_cast<std::int64_t>(i) * kSecond;
        if (call.state == CallTrace::State::kCompleted) call.ended_ns = call.created_ns + 3 * kSecond / 2;
        call.place = static_cast<std::uint32_t>(i + 1);
      }
      Origin origin;
      origin.rank = Known<GlobalRank>{GlobalRank{rank}, Basis::kFileName, {}};
      sink.AddTrace(trace, origin, {static_cast<std::uint32_t>(rank), 1, 0});
      sink.AddTrace(trace, origin, {static_cast<std::uint32_t>(rank), 1, 0});  // a second dump of it says no more
    }
    return std::string("one was gone");
  });
  std::string told;
  std::map<std::uint64_t, std::size_t> flows;
  for (const Slice* slice : shown.Of("collective")) {
    CHECK(slice->depth == 0);
    told += fmt::format("{} {}#{} {}{}; ", slice->track, slice->name, slice->notes.at("seq"), slice->notes.at("state"),
                        slice->end ? fmt::format(" {} ms", (*slice->end - slice->begin) / 1'000'000) : "");
    for (const std::uint64_t flow : slice->flows) ++flows[flow];
  }
  CHECK(told ==
        "rank 0: 0 all_reduce#1 completed 1500 ms; rank 0: 0 all_reduce#2 completed 1500 ms; "
        "rank 0: 0 all_reduce#3 started; rank 0: 0 broadcast#4 scheduled; "
        "rank 1: 0 all_reduce#1 completed 1500 ms; rank 1: 0 all_reduce#2 scheduled; ");
  // The second overlaps the first, the third the second, the fourth the third alone.
  CHECK(std::ranges::count(shown.tracks, "track: rank 0: 0") == 2);
  CHECK(flows.size() == 2);
  CHECK(std::ranges::all_of(flows, [](const auto& flow) { return flow.second == 2; }));
  CHECK(std::ranges::any_of(shown.slices, [](const Slice& slice) { return slice.name == "calls: one was gone"; }));
}

TEST_CASE("perfetto: nothing that a log says is more than text", "[unit][report]") {
  const Sample sample = MakeHostileSample();
  const Shown shown = Draw(sample.timeline, sample.verdict);
  CHECK_FALSE(shown.slices.empty());
  std::string trace;
  const Sink sink = [&](std::string_view piece) { trace += piece; };
  TraceWriter writer(sink, 0);
  const std::string evil = HostileText();
  const TraceTrack thread = writer.NewThread(writer.NewProcess(evil), 1'000'001, evil);
  const TraceNote note{"text", std::string_view(evil)};
  writer.Begin(writer.NewTrack(thread, evil), -5, {.name = evil, .category = evil, .notes = {&note, 1}});
  writer.Instant(thread, 7, {.name = std::string(70'000, '\xff'), .category = "x"});
  writer.Flush();
  CHECK(Shown(trace).slices.at(0).begin == 0);
}

TEST_CASE("perfetto: the writer hands on what it wrote, and remembers texts up to a bound", "[unit][report]") {
  std::size_t written = 0, largest = 0;
  const Sink sink = [&](std::string_view piece) {
    written += piece.size();
    largest = std::max(largest, piece.size());
  };
  TraceWriter writer(sink, 0);
  const TraceTrack thread = writer.NewThread(writer.NewProcess("host"), 1'000'000, "rank 0");
  for (int i = 0; i < 50'000; ++i) {
    const std::string name = fmt::format("op {}", i);
    writer.Begin(thread, i, {.name = name, .category = "collective"});
    writer.End(thread, i + 1);
  }
  writer.Flush();
  CHECK(written > 2'000'000);
  CHECK(largest < 128 * 1024);
}

TEST_CASE("perfetto: which numbers two members have", "[unit][report]") {
  const auto shown = [](const std::vector<std::pair<std::int64_t, std::int64_t>>& members) {
    const SharedNumbers shared(members);
    std::string out;
    for (std::int64_t i = 0; i < 10; ++i) out += shared.Holds(i) ? '+' : '.';
    return out;
  };
  CHECK(shown({}) == "..........");
  CHECK(shown({{0, 9}}) == "..........");
  CHECK(shown({{0, 5}, {3, 9}}) == "...+++....");
  CHECK(shown({{0, 2}, {3, 9}}) == "..........");
  CHECK(shown({{0, 9}, {1, 2}, {3, 4}, {7, 7}}) == ".++++..+..");
  CHECK(FlowNumber(FlowOf::kNccl, 1, 2) != FlowNumber(FlowOf::kRecorder, 1, 2));
}

}  // namespace perfetto_test
}  // namespace inquest
