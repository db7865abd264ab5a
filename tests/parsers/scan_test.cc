// Inputs to events: the same whatever the blocks, the threads and the way the bytes arrive.
#include "parsers/scan.h"

#include <sys/stat.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <thread>

#include "tests/catch.h"
#include "tests/support/collect.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace scan_test {

const std::string kTelling = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";
const std::string kCallTail =
    " sendbuff 0x7f1c40000000 recvbuff 0x7f1c42000000 count 8 datatype 7 op 0 root 0 comm 0x55d0c2a41e70 [nranks=16] "
    "stream 0x55d0bf3312a0";

/// Writes down all that it is told, one line each.
class Protocol final : public EventSink {
 public:
  void Add(Event event) override {
    const auto* message = std::get_if<LogMessage>(&event.what);
    if (const auto* via = std::get_if<ChannelsVia>(&event.what)) {
      vias[via->via] += via->count;
      return;
    }
    std::string line =
        fmt::format("{}:{}+{} {} rank {} pid {} {} {}", event.where.input, event.where.line, event.where.offset,
                    KindOf(event.what), event.origin.rank ? event.origin.rank->value.value : -1,
                    event.origin.pid.value_or(-1), event.at ? FormatTime(*event.at) : "-", event.text);
    if (message != nullptr)
      for (const std::uint32_t hit : message->hits) line += fmt::format(" {}", hit);
    (message != nullptr && message->hits.empty() ? context : telling).push_back(std::move(line));
  }
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) override {
    for (std::size_t i = begin; i < end; ++i) {
      const CallBatch::Call& call = batch.calls[i];
      const CallBatch::Comm& comm = batch.comms[call.comm];
      const CallDescriptor& what = batch.descriptors[call.descriptor];
      calls.push_back(fmt::format("{}:{} {}:{} {:x}/{} #{:x} {} {} {} {} {}", base.input, base.line + call.line,
                                  batch.processes[comm.process].host, batch.processes[comm.process].pid, comm.pointer,
                                  comm.nranks, call.op_count, what.op, what.count, what.datatype, what.redop,
                                  what.root));
    }
  }
  std::vector<std::string> telling, context, calls;
  std::map<std::string, std::uint64_t> vias;
};

std::string ShowTally(const Tally& t) {
  return fmt::format("{} bytes {} lines {} claimed {} plain {} damaged", t.bytes, t.lines, t.claimed, t.plain,
                     t.damaged);
}

struct Scan {
  Protocol protocol;
  InputRead read;
};

Scan ScanWith(const std::string& text, std::size_t block_bytes, unsigned threads) {
  Scan scan;
  scan.read = ScanText(text, BuiltInSieve(), {.threads = threads, .block_bytes = block_bytes}, scan.protocol);
  return scan;
}

/// A job of several blocks that has something of everything.
std::string LongJob() {
  SynthJob job({.ranks = 8, .hosts = 2});
  const auto all = job.NewComm(job.AllRanks()), pair = job.NewComm({2, 5});
  job.Init(all);
  for (const int rank : job.AllRanks()) job.Connect(all, rank, "P2P/IPC", 4);
  job.Init(pair);
  for (int step = 0; step < 320; ++step) {
    for (const int rank : job.AllRanks()) {
      job.Call(all, rank,
               {.count = 1000u + static_cast<unsigned>(step % 5), .op_count = static_cast<std::uint64_t>(step)});
      job.Chatter(rank, 3);
    }
    job.CallAll(pair, {.op = "Broadcast", .count = 64});
    if (step % 50 == 20)
      job.Warn(step % 8, "misc/socket.cc:484", "socketProgress: Connection closed by remote peer alder05<52388>");
    if (step % 60 == 30) job.PrintNccl(step % 8, "P2P Chunksize set to 524288");
    if (step % 70 == 40) job.Print(step % 8, std::string("torn") + '\0' + "line");
  }
  job.Raise(3, "RuntimeError", "shapes do not fit");
  for (const int rank : {0, 1, 2, 4, 5, 6, 7}) {
    job.TimeOut(rank, {});
    job.Status(rank, {});
  }
  job.ElasticReport({{3, 1}, {2, -6}});
  return job.Interleaved();
}

std::vector<std::string> Listed(const std::vector<std::string>& paths) {
  const auto inputs = ListInputs(paths);
  REQUIRE(inputs);
  std::vector<std::string> names;
  for (const Input& input : *inputs) names.push_back(input.path.substr(input.path.rfind("inquest-test-") + 20));
  return names;
}

TEST_CASE("scan: any number of threads gives the same", "[scan]") {
  const std::string text = LongJob();
  REQUIRE(text.size() > 3 * kLineCap);
  const Scan one = ScanWith(text, kLineCap, 1);
  REQUIRE(one.protocol.calls.size() == 320 * 10);
  for (unsigned threads = 2; threads <= 8; ++threads) {
    CAPTURE(threads);
    const Scan many = ScanWith(text, kLineCap, threads);
    CHECK(many.protocol.telling == one.protocol.telling);
    CHECK(many.protocol.context == one.protocol.context);
    CHECK(many.protocol.calls == one.protocol.calls);
    CHECK(many.protocol.vias == one.protocol.vias);
    CHECK(ShowTally(many.read.tally) == ShowTally(one.read.tally));
    CHECK(many.read.kinds == one.read.kinds);
  }
}

TEST_CASE("scan: a flood that one thread finds and another takes keeps its order", "[scan]") {
  std::string text;
  for (int line = 0; text.size() < 5 * kLineCap; ++line)
    text += fmt::format("[rank{}]: RuntimeError: CUDA out of memory. Tried to allocate {} MiB.\n", line % 8, line);
  const Scan one = ScanWith(text, kLineCap, 1);
  REQUIRE(one.protocol.telling.size() > 10'000);
  for (const unsigned threads : {2u, 3u, 16u}) {
    CAPTURE(threads);
    CHECK(ScanWith(text, kLineCap, threads).protocol.telling == one.protocol.telling);
  }
}

TEST_CASE("scan: any size of blocks gives the same events, calls and tallies", "[scan]") {
  const std::string text = LongJob();
  const Scan whole = ScanWith(text, text.size() + 1, 1);
  REQUIRE(whole.read.tally.damaged > 0);
  REQUIRE(whole.protocol.vias.at("P2P/IPC") == 32);
  for (const std::size_t block :
       {std::size_t{1}, kLineCap, kLineCap + 1, kLineCap + 4099, text.size() / 2, text.size() - 1, text.size()}) {
    CAPTURE(block);
    const Scan cut = ScanWith(text, block, 3);
    CHECK(cut.protocol.telling == whole.protocol.telling);
    CHECK(cut.protocol.calls == whole.protocol.calls);
    CHECK(cut.protocol.vias == whole.protocol.vias);
    CHECK(ShowTally(cut.read.tally) == ShowTally(whole.read.tally));
    CHECK(cut.read.kinds == whole.read.kinds);
  }
  CHECK(whole.read.tally.claimed + whole.read.tally.plain + whole.read.tally.damaged == text.size());
}

TEST_CASE("scan: a line on the edge of two blocks is read whole", "[scan]") {
  const std::string filler = std::string(99, 'x') + "\n";
  std::string base;
  while (base.size() + filler.size() < kLineCap - 400) base += filler;
  const std::string edge =
      kTelling + "\r\nalder04:41234:41777 [3] NCCL INFO AllReduce: opCount 2a" + kCallTail + "\r\n" + kTelling;
  for (std::size_t shift = 0; shift < edge.size() + 20; shift += 5) {
    const std::string text = base + std::string(kLineCap - base.size() - shift - 1, '.') + "\n" + edge;
    CAPTURE(shift);
    const Scan cut = ScanWith(text, kLineCap, 1), whole = ScanWith(text, text.size() + 1, 1);
    CHECK(cut.protocol.telling == whole.protocol.telling);
    CHECK(cut.protocol.calls == whole.protocol.calls);
    CHECK(cut.protocol.calls.size() == 1);
    CHECK(ShowTally(cut.read.tally) == ShowTally(whole.read.tally));
  }
}

TEST_CASE("scan: a gigantic line over several blocks is damaged, and the lines after it are where they are", "[scan]") {
  for (const std::size_t size : {kLineCap + 1, 2 * kLineCap - 1, 5 * kLineCap + 17}) {
    const std::string text = kTelling + "\n" + std::string(size, 'x') + "\n" + kTelling + "\n";
    std::string first;
    for (const std::size_t block : {kLineCap, kLineCap + 1, 3 * kLineCap, 20 * kLineCap}) {
      CAPTURE(size, block);
      const Scan scan = ScanWith(text, block, 2);
      CHECK(scan.read.tally.damaged == size + 1);
      CHECK(scan.read.tally.lines == 3);
      CHECK(scan.read.tally.claimed + scan.read.tally.plain + scan.read.tally.damaged == text.size());
      const std::string told = fmt::format("{}", fmt::join(scan.protocol.telling, "\n"));
      CHECK(told.find(fmt::format("0:3+{} ", kTelling.size() + size + 2)) != std::string::npos);
      if (first.empty()) first = told;
      CHECK(told == first);
    }
  }
}

TEST_CASE("scan: a progress bar longer than a block", "[scan]") {
  for (const std::size_t extra : {0U, 1U, 6U, 11U}) {  // of the bar's twelve bytes
    std::string text = kTelling + "\n" + std::string(extra, '.');
    while (text.size() < 2 * kLineCap + 5000) text += " 10%|#    |\r";
    text += "\n" + kTelling + "\r\n";
    CAPTURE(extra);
    const Scan whole = ScanWith(text, text.size() + 1, 1), cut = ScanWith(text, kLineCap, 1);
    CHECK(cut.protocol.telling == whole.protocol.telling);
    CHECK(ShowTally(cut.read.tally) == ShowTally(whole.read.tally));
    CHECK(whole.read.tally.lines == 3);
  }
}

TEST_CASE("scan: CRLF on the edge of two blocks ends one line", "[scan]") {
  // No '\n' in the first block: it is cut at a '\r', which may be half of a line's end.
  for (const std::size_t before : {kLineCap - 1, kLineCap, kLineCap + 1}) {
    const std::string text =
        std::string(100, 'a') + "\r\x01" + std::string(before - 103, 'b') + "\r\n" + kTelling + "\n";
    CAPTURE(before);
    const Scan whole = ScanWith(text, 2 * kLineCap, 1), cut = ScanWith(text, kLineCap, 1);
    CHECK(cut.protocol.telling == whole.protocol.telling);
    CHECK(cut.read.tally.lines == 2);
    CHECK(ShowTally(cut.read.tally) == ShowTally(whole.read.tally));
  }
}

TEST_CASE("scan: what an earlier block left in memory is not read", "[scan]") {
  // The last line lacks its end; behind it in the buffer stand the bytes of the block before.
  const std::string call = "alder04:41234:41777 [3] NCCL INFO AllReduce: opCount 2a" + kCallTail;
  std::string full;
  while (full.size() < kLineCap) full += call + "\n";
  full += std::string(kLineCap - full.size() % kLineCap - 1, '.') + "\n";
  for (std::size_t cut = 40; cut < call.size(); cut += 5) {
    CAPTURE(cut);
    const std::string text = full + "\n" + call.substr(0, cut);
    const Scan one = ScanWith(text, kLineCap, 1), four = ScanWith(text, kLineCap, 4),
               whole = ScanWith(text, text.size() + 1, 1);
    CHECK(one.protocol.calls == whole.protocol.calls);
    CHECK(four.protocol.calls == whole.protocol.calls);
    CHECK(ShowTally(one.read.tally) == ShowTally(whole.read.tally));
  }
}

TEST_CASE("scan: nothing, and nearly nothing", "[scan]") {
  const struct {
    std::string text;
    std::uint64_t lines, telling;
  } rows[] = {{"", 0, 0},
              {"\n", 1, 0},
              {"\n\n", 2, 0},
              {"x", 0, 0},
              {kTelling, 0, 1},
              {kTelling + "\n", 1, 1},
              {kTelling + "\r", 0, 1}};
  const std::size_t told_by_one = ScanWith(kTelling, kLineCap, 1).protocol.telling.size();
  REQUIRE(told_by_one > 0);
  for (const auto& row : rows)
    for (const unsigned threads : {1u, 4u}) {
      CAPTURE(row.text, threads);
      const Scan scan = ScanWith(row.text, kLineCap, threads);
      CHECK(scan.read.tally.bytes == row.text.size());
      CHECK(scan.read.tally.lines == row.lines);
      CHECK(scan.protocol.telling.size() == row.telling * told_by_one);
      CHECK(scan.read.tally.claimed + scan.read.tally.plain + scan.read.tally.damaged == row.text.size());
    }
}

TEST_CASE("scan: what nobody printed tells nothing, and all of it is accounted for", "[scan]") {
  std::string source =
      "import torch\n\ndef check(free, needed):\n    if free < needed:\n        # \\x1b[31m is red, \\x1b[0m is not, "
      "\\x1b[1m is bold, \\x1b[4m a line\n";
  source += "        raise RuntimeError(\"" + kTelling +
            "\")\n    return free\n\nfor rank in ranks:\n    check(rank.free, 2)\n    rank.done = True\n";
  const std::string numbered = [&] {
    std::string out;
    std::size_t number = 0;
    for (std::size_t at = 0; at < source.size(); at = source.find('\n', at) + 1)
      out += fmt::format("{}:", ++number) + source.substr(at, source.find('\n', at) + 1 - at);
    return out;
  }();
  for (const std::string& text : {source, numbered, source + std::string(kLineCap, '\n')})
    for (const unsigned threads : {1u, 4u}) {
      CAPTURE(text.substr(0, 100), threads);
      const Scan scan = ScanWith(text, kLineCap, threads);
      const bool looked_at = text.size() <= kLineCap;
      CHECK((scan.read.form != nullptr && scan.read.form->name == "source-code") == looked_at);
      CHECK(scan.protocol.telling.empty() == looked_at);
      CHECK(scan.read.tally.bytes == text.size());
      CHECK(scan.read.tally.lines == static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')));
      CHECK(scan.read.tally.claimed + scan.read.tally.plain + scan.read.tally.damaged == text.size());
    }
}

TEST_CASE("scan: files in path order, folders with all below them, each file once", "[scan]") {
  const JobFolder folder({{"b.log", "b\n"},
                          {"a/2.log", "2\n"},
                          {"a/10.log", "10\n"},
                          {"a/deep/er/x", "x\n"},
                          {".hidden", "h\n"},
                          {"a/.git/config", "g\n"},
                          {"c.log", ""},
                          {"b.log.d/z", "z\n"}});
  const std::vector<std::string> all = {"a/10.log", "a/2.log", "a/deep/er/x", "b.log", "b.log.d/z", "c.log"};
  CHECK(Listed({folder.path()}) == all);
  CHECK(Listed({folder.path(), folder.path() + "/a"}).size() == all.size());
  CHECK(Listed({folder.path() + "/b.log", folder.path() + "/a"}) ==
        std::vector<std::string>{"a/10.log", "a/2.log", "a/deep/er/x", "b.log"});
  CHECK(Listed({folder.path() + "/.hidden"}) == std::vector<std::string>{".hidden"});  // whoever names it means it
  CHECK(Listed({folder.path() + "/b.log", folder.path() + "/b.log"}).size() == 1);
}

TEST_CASE("scan: inputs are handed on in order, each with its own lines", "[scan]") {
  std::vector<SynthFile> files;
  for (int i = 0; i < 12; ++i)
    files.push_back(
        {fmt::format("out.{:02}.log", i), std::string(static_cast<std::size_t>(i), '\n') + kTelling + "\n"});
  files.push_back({"out.05b.log", LongJob()});
  const JobFolder folder(files);
  const auto inputs = ListInputs({folder.path()});
  REQUIRE(inputs);
  std::vector<std::string> first;
  for (const unsigned threads : {1u, 3u, 8u}) {
    Protocol protocol;
    std::atomic<std::uint64_t> progress = 0;
    const auto reads = ScanInputs(*inputs, BuiltInSieve(),
                                  {.threads = threads, .block_bytes = kLineCap, .progress_bytes = &progress}, protocol);
    REQUIRE(reads);
    REQUIRE(reads->size() == files.size());
    std::uint64_t bytes = 0;
    for (std::size_t i = 0; i < reads->size(); ++i) {
      CHECK((*reads)[i].path == (*inputs)[i].path);
      CHECK((*reads)[i].tally.bytes == (*inputs)[i].size_bytes);
      bytes += (*inputs)[i].size_bytes;
    }
    CHECK(progress == bytes);
    CHECK(protocol.telling.front().starts_with("0:1+0 "));
    CHECK(protocol.telling.back().starts_with("12:12+11 "));
    if (first.empty()) first = protocol.telling;
    CHECK(protocol.telling == first);
  }
}

TEST_CASE("scan: what cannot be read is an error that names it", "[scan]") {
  const JobFolder folder({{"a.log", "a\n"}, {"b/c.log", "c\n"}});
  const auto missing = ListInputs({folder.path() + "/a.log", folder.path() + "/none.log"});
  REQUIRE_FALSE(missing);
  CHECK(missing.error().where == folder.path() + "/none.log");
  CHECK_FALSE(missing.error().message.empty());
  for (const std::string& path : {folder.path() + "/gone.log", folder.path() + "/b"})
    for (const unsigned threads : {1u, 4u}) {
      Protocol protocol;
      const auto reads = ScanInputs({{folder.path() + "/a.log", 2}, {path, 1 << 30}, {folder.path() + "/b/c.log", 2}},
                                    BuiltInSieve(), {.threads = threads}, protocol);
      REQUIRE_FALSE(reads);
      CHECK(reads.error().where == path);
    }
}

TEST_CASE("scan: a pipe that gives its bytes in pieces", "[scan]") {
  const std::string text = LongJob();
  const Scan whole = ScanWith(text, kLineCap, 1);
  const JobFolder folder(std::vector<SynthFile>{});
  const std::string pipe = folder.path() + "/pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::thread writer([&] {
    std::ofstream out(pipe, std::ios::binary);
    for (std::size_t at = 0; at < text.size(); at += 7001) {
      out << text.substr(at, 7001);
      out.flush();
    }
  });
  Protocol protocol;
  const auto reads = ScanInputs({{pipe, 0}}, BuiltInSieve(), {.threads = 4, .block_bytes = kLineCap}, protocol);
  writer.join();
  REQUIRE(reads);
  CHECK(protocol.telling == whole.protocol.telling);
  CHECK(protocol.context == whole.protocol.context);
  CHECK(protocol.calls == whole.protocol.calls);
  CHECK(ShowTally(reads->at(0).tally) == ShowTally(whole.read.tally));
}

TEST_CASE("scan: a document of many blocks is offered whole, a log that begins like one is not held", "[scan]") {
  const std::string head = R"({"message": {"message": "RuntimeError: out of paper", "extraInfo": {"py_callstack": ")",
                    tail = R"(", "timestamp": "1900000000"}}})";
  std::string frames;
  while (frames.size() < 5 * kLineCap) frames += R"(File 'train.py', line 7, in step\n)";
  const std::string document = head + frames + tail + "\n";
  for (const unsigned threads : {1u, 3u}) {
    const Scan taken = ScanWith(document, kLineCap, threads);
    CHECK(taken.read.kinds == std::vector<std::string>{"torchelastic-error-file"});
    CHECK(taken.read.tally.claimed == document.size());
    // Not one document after all: line by line, and nothing is lost.
    const std::string cut = "{\n" + document.substr(1, document.size() - 60) + "\n";
    const Scan lines = ScanWith(cut, kLineCap, threads);
    CHECK(lines.read.tally.claimed + lines.read.tally.plain + lines.read.tally.damaged == cut.size());
    CHECK(lines.read.tally.lines == 2);
  }
}

TEST_CASE("scan: a document is offered whole; what no format takes is read line by line", "[scan]") {
  const std::string document =
      R"({"message": {"message": "RuntimeError: shapes do not fit", "extraInfo": {"py_callstack": "Traceback (most recent call last):\n  File \"train.py\", line 3, in <module>\nRuntimeError: shapes do not fit\n", "timestamp": "1932904028"}}})";
  const Scan taken = ScanWith("\n " + document + "\n", kLineCap, 2);
  CHECK(taken.read.kinds == std::vector<std::string>{"torchelastic-error-file"});
  CHECK(taken.read.tally.claimed == document.size() + 3);
  CHECK(taken.read.tally.lines == 2);
  REQUIRE(taken.protocol.telling.size() == 1);
  CHECK(taken.protocol.telling[0].find("exception") != std::string::npos);

  const Scan other = ScanWith("{\"step\": 3}\n" + kTelling + "\n", kLineCap, 2);
  CHECK(other.read.tally.lines == 2);
  CHECK_FALSE(other.protocol.telling.empty());
  const Scan cut = ScanWith(document.substr(0, document.size() - 2), kLineCap, 2);
  CHECK(cut.read.tally.claimed + cut.read.tally.plain + cut.read.tally.damaged == document.size() - 2);
}

TEST_CASE("scan: what cannot be read in a folder is named, and the rest is read", "[scan]") {
  const JobFolder folder(
      std::vector<SynthFile>{{"a.log", kTelling + "\n"}, {"b.log", "gone\n"}, {"c.log", kTelling + "\n"}});
  auto inputs = ListInputs({folder.path()});
  REQUIRE(inputs);
  std::remove((folder.path() + "/b.log").c_str());
  inputs->push_back({folder.path(), 0, true});  // a folder, which opens and does not read
  CollectingSink sink;
  const auto reads = ScanInputs(*inputs, BuiltInSieve(), {.threads = 2}, sink);
  REQUIRE(reads);
  REQUIRE(reads->size() == 4);
  CHECK((*reads)[0].problem.empty());
  CHECK((*reads)[1].problem.starts_with("not read: "));
  CHECK((*reads)[1].tally.bytes == 0);
  CHECK((*reads)[2].problem.empty());
  CHECK((*reads)[3].problem.starts_with("the rest was not read: "));
  CHECK(sink.events.back().where.input == 2);
  inputs->at(1).found = false;
  CHECK_FALSE(ScanInputs(*inputs, BuiltInSieve(), {.threads = 2}, sink));
}

TEST_CASE("scan: the rank that a file's name gives", "[scan]") {
  const struct {
    const char* name;
    int rank;
  } rows[] = {{"rank3.log", 3},        {"job_rank-03.err", 3}, {"stderr.rank7", 7},   {"rank_12.txt", 12},
              {"a/rank3/out.log", -1}, {"rank.log", -1},       {"rank3x.log", -1},    {"rank3_of_rank8.log", -1},
              {"local_rank3.log", -1}, {"crank3.log", -1},     {"out.log", -1},       {"rsl.error.0020", 20},
              {"rsl.out.0020", 20},    {"workerlog.3", 3},     {"rsl.error.txt", -1}, {"workerlog.3x", -1},
              {"1/rank.3/stderr", 3}};
  for (const auto& row : rows) {
    CAPTURE(row.name);
    const JobFolder folder(std::vector<SynthFile>{
        {row.name, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"}});
    const auto inputs = ListInputs({folder.path()});
    REQUIRE(inputs);
    CollectingSink sink;
    REQUIRE(ScanInputs(*inputs, BuiltInSieve(), {.threads = 1}, sink));
    REQUIRE_FALSE(sink.events.empty());
    const auto& rank = sink.events[0].origin.rank;
    CHECK((rank ? rank->value.value : -1) == row.rank);
    if (rank) CHECK(rank->basis == Basis::kFileName);
  }
}

TEST_CASE("scan: the local rank that a folder of torchelastic's gives", "[scan]") {
  const struct {
    const char* name;
    int local_rank;
  } rows[] = {{"none_x1y2/attempt_0/3/stderr.log", 3}, {"none_x1y2/attempt_1/12/stdout.log", 12},
              {"none_x1y2/3/stderr.log", -1},          {"attempt_0/x3/stderr.log", -1},
              {"attempt_0/3/other.log", -1},           {"attempt_0/99999999999/stderr.log", -1}};
  for (const auto& row : rows) {
    CAPTURE(row.name);
    const JobFolder folder(std::vector<SynthFile>{
        {row.name, "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n"}});
    const auto inputs = ListInputs({folder.path()});
    REQUIRE(inputs);
    CollectingSink sink;
    REQUIRE(ScanInputs(*inputs, BuiltInSieve(), {.threads = 1}, sink));
    REQUIRE_FALSE(sink.events.empty());
    const auto& rank = sink.events[0].origin.local_rank;
    CHECK((rank ? rank->value : -1) == row.local_rank);
  }
}

TEST_CASE("scan: launchers' prefixes in front of call lines say who calls", "[scan]") {
  const struct {
    const char* prefix;
    int rank, local_rank;
  } rows[] = {{"", -1, -1},          {"[rank11]:", 11, -1},           {"[default3]:", -1, 3},
              {"alder04: ", -1, -1}, {"alder04: [default3]:", -1, 3}, {"2031-04-05T06:07:08.5Z ", -1, -1}};
  for (const auto& row : rows) {
    CAPTURE(row.prefix);
    CollectingSink sink;
    const std::string line = "alder04:41234:41777 [3] NCCL INFO AllReduce: opCount 2a" + kCallTail;
    ScanText(row.prefix + line + "\n", BuiltInSieve(), {.threads = 1}, sink);
    REQUIRE(sink.slices.size() == 1);
    const CallBatch::Process& process = sink.slices[0].batch.processes.at(0);
    CHECK((process.rank ? process.rank->value.value : -1) == row.rank);
    CHECK((process.local_rank ? process.local_rank->value : -1) == row.local_rank);
    CHECK(process.last_at.has_value() == (row.prefix[0] == '2'));
    CHECK(process.last_text == line);
  }
}

}  // namespace scan_test
}  // namespace inquest
