// The verdict's picture, and every call that the inputs tell of, as a trace for ui.perfetto.dev: hosts are processes,
// ranks are threads, what a rank was at is a slice, what befell it an instant, and flows join one collective over its
// ranks.
//
// Calls are as many as the inputs have, and the timeline forgets each once all members have made it. They could be
// taken from the ledgers while the inputs are read: but then nobody knows yet which process is which rank, what clock
// the others have, or which calls a second rank will make too; they would wait in memory or in a file of their own, for
// every run, asked for or not. So the inputs are read a second time, as the page reads the lines that it cites: by then
// all of that is known, each call is written as it comes, and memory follows ranks and communicators (and the largest
// dump), not calls. It costs one more scan where a trace is asked for, and standard input has no second time: the trace
// says so.
#include "report/perfetto/perfetto.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "report/perfetto/flows.h"
#include "report/perfetto/nccl_calls.h"
#include "report/perfetto/recorded_calls.h"
#include "report/perfetto/tracks.h"
#include "report/terminal.h"
#include "report/words.h"

namespace inquest {
namespace {

/// Where times do not count from 1970, so much lies before the first that is known: what recorders kept, or what stands
/// ahead of all lines with a time.
constexpr std::int64_t kAhead = std::int64_t{30} * 24 * 3600 * 1'000'000'000;
constexpr std::int64_t kEver = std::numeric_limits<std::int64_t>::max();

/// Hands what is read again to who draws it.
class Reader final : public EventSink {
 public:
  Reader(NcclCalls& nccl, RecordedCalls& recorded) : nccl_(nccl), recorded_(recorded) {}
  void Add(Event event) override { nccl_.Add(std::move(event)); }
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) override {
    nccl_.AddCalls(batch, begin, end, base);
  }
  void AddTrace(const CallTrace& trace, const Origin& origin, const SourcePos& where) override {
    recorded_.Add(trace, origin, where);
  }

 private:
  NcclCalls& nccl_;
  RecordedCalls& recorded_;
};

/// What stands for time, and what is not known of it.
std::string ClockInWords(const Timeline& timeline, const Picture& picture) {
  if (!picture.clock)
    return "order stands for time: no two lines print times that order them, and every file is spread over the whole "
           "width";
  std::string note = picture.zone_known ? "UTC" : "times as the lines print them, which name no zone";
  if (picture.date != Timestamp::Date::kFull) note += ", nor a whole date";
  if (const std::string files = WithoutClockInWords(timeline, picture); !files.empty())
    note += "; order stands for time in " + files;
  return note;
}

class Drawing {
 public:
  Drawing(const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink)
      : timeline_(timeline),
        verdict_(verdict),
        context_(context),
        picture_(DrawPicture(timeline, verdict)),
        axis_(timeline),
        begin_(picture_.moments.empty() ? 0 : Bounded(picture_.moments.front().ns)),
        end_(picture_.moments.empty() ? 1 : std::max(Bounded(picture_.moments.back().ns), begin_ + 1)),
        writer_(sink, CountsFrom1970() ? 0 : std::min<std::int64_t>(begin_, 0) - kAhead) {}

  void Draw(const ReadAgain& again) {
    if (CountsFrom1970()) writer_.SetRealTime(begin_);
    const TraceTrack about = writer_.NewProcess(
        fmt::format("inquest {}{}", context_.tool_version, picture_.clock ? "" : ": order stands for time"),
        "What inquest found, and what stands for time.");
    DrawVerdict(about);
    TraceTracks tracks(timeline_, picture_, writer_);
    for (std::size_t i = 0; i < picture_.lanes.size(); ++i) DrawLane(picture_.lanes[i], tracks.OfLane(i));
    DrawCalls(again, tracks, about);
    writer_.Flush();
  }

 private:
  bool CountsFrom1970() const { return picture_.clock && picture_.date == Timestamp::Date::kFull; }
  std::int64_t Ns(std::uint32_t moment) const { return Bounded(picture_.moments[moment].ns); }

  /// The whole width, with a name.
  void Across(TraceTrack parent, std::string_view track, std::string_view name, std::span<const TraceNote> notes) {
    const TraceTrack to = writer_.NewTrack(parent, track);
    writer_.Begin(to, begin_, {.name = name, .category = "verdict", .notes = notes});
    writer_.End(to, end_);
  }

  void DrawVerdict(TraceTrack about) {
    std::vector<TraceNote> notes = {{"outcome", Name(verdict_.outcome)},
                                    {"cause", std::string_view(verdict_.cause)},
                                    {"summary", std::string_view(verdict_.summary)}};
    if (verdict_.outcome != Outcome::kUndecided) notes.push_back({"confidence", verdict_.confidence});
    if (!verdict_.rule.empty()) notes.push_back({"signature", std::string_view(verdict_.rule)});
    std::vector<std::pair<std::string, std::string>> more;  // a viewer shows one note of a name
    for (const std::string& culprit : CulpritsInWords(verdict_))
      more.emplace_back(fmt::format("culprit {}", more.size() + 1), culprit);
    for (std::size_t i = 0; i < verdict_.evidence.size(); ++i)
      more.emplace_back(fmt::format("evidence {}", i + 1), PlaceOf(timeline_, verdict_.evidence[i].where) + " " +
                                                               Shortened(verdict_.evidence[i].text, kShortened));
    for (const auto& [name, text] : more) notes.push_back({name, std::string_view(text)});
    Across(about, "verdict",
           verdict_.outcome == Outcome::kUndecided ? verdict_.title : verdict_.cause + ": " + verdict_.title, notes);
    Across(about, "time", ClockInWords(timeline_, picture_), {});
  }

  /// The line that tells of a moment.
  void Tell(std::uint32_t moment, std::vector<TraceNote>& notes) {
    const Event& event = timeline_.events[picture_.moments[moment].event];
    text_ = Shortened(event.text, kShortened);
    notes.push_back({"placed", Name(picture_.moments[moment].how)});
    if (event.where.input < timeline_.inputs.size())
      notes.push_back({"source", std::string_view(timeline_.inputs[event.where.input].path)});
    notes.push_back({"line", event.where.InputLine()});
    notes.push_back({"text", std::string_view(text_)});
  }

  /// How many ranks are drawn as waiting in a collective.
  std::vector<std::uint32_t> Waiters() const {
    std::vector<std::uint32_t> out(timeline_.collectives.size());
    for (const Lane& lane : picture_.lanes)
      for (const Stretch& stretch : lane.stretches)
        if (stretch.collective) ++out[*stretch.collective];
    return out;
  }

  /// Nothing ended it: also a wait that no time-out tells of, but a recorder alone.
  bool IsOpenOperation(const Stretch& stretch) const {
    const Event& told = timeline_.events[picture_.moments[stretch.end].event];
    const bool is_recorded = std::holds_alternative<CallRecorded>(told.what);
    return (stretch.stage == Stage::kInCollective && stretch.open) || (stretch.stage == Stage::kWaiting && is_recorded);
  }

  /// A slice lies within the one below it, or beside it on a track of its own: slices of a track nest. Of work, the end
  /// is the last that is known of it; an operation that nothing ended stays open.
  void DrawStretches(const Lane& lane, TraceTrack track) {
    struct Row {
      const Stretch* stretch = nullptr;
      std::int64_t begin = 0, end = 0;
    };
    std::vector<Row> rows;
    for (const Stretch& stretch : lane.stretches)
      rows.push_back({&stretch, Ns(stretch.begin),
                      IsOpenOperation(stretch) ? kEver : std::max(Ns(stretch.begin), Ns(stretch.end))});
    std::ranges::stable_sort(
        rows, [](const Row& a, const Row& b) { return a.begin != b.begin ? a.begin < b.begin : a.end > b.end; });
    struct Layer {
      TraceTrack track;
      std::vector<std::int64_t> open;  ///< when what is open ends, outermost first
    };
    std::vector<Layer> layers = {{track, {}}};
    const auto end_before = [this](Layer& layer, std::int64_t ns) {
      for (; !layer.open.empty() && layer.open.back() <= ns; layer.open.pop_back())
        writer_.End(layer.track, layer.open.back());
    };
    for (const Row& row : rows) {
      std::size_t at = 0;
      for (; at < layers.size(); ++at) {
        end_before(layers[at], row.begin);
        if (layers[at].open.empty() || layers[at].open.back() >= row.end) break;
      }
      if (at == layers.size())
        layers.push_back({writer_.NewTrack(track, fmt::format("{}: at the same time", NameOf(lane))), {}});
      const Stretch& stretch = *row.stretch;
      std::vector<TraceNote> notes = {{"state", Name(stretch.stage)}, {"times", stretch.times}};
      if (stretch.open || row.end == kEver) notes.push_back({"open", true});
      Tell(stretch.begin, notes);
      const std::string name = fmt::format("{}: {}", Name(stretch.stage), stretch.what);
      TraceEvent event{.name = name, .category = "state", .notes = notes};
      if (stretch.collective && waiters_[*stretch.collective] > 1)
        event.flow = FlowNumber(FlowOf::kWait, 0, *stretch.collective);
      writer_.Begin(layers[at].track, row.begin, event);
      layers[at].open.push_back(row.end);
    }
    for (Layer& layer : layers) end_before(layer, kEver - 1);
  }

  static std::string NameOf(const Lane& lane) { return lane.rank ? TraceTracks::NameOf(0, lane.rank) : lane.name; }

  void DrawLane(const Lane& lane, TraceTrack track) {
    DrawStretches(lane, track);
    for (const PictureMark& mark : lane.marks) {
      std::vector<TraceNote> notes = {{"kind", Name(mark.kind)}};
      if (mark.cause) notes.push_back({"cause", true});
      Tell(mark.moment, notes);
      writer_.Instant(track, Ns(mark.moment),
                      {.name = mark.what, .category = mark.cause ? "cause" : "mark", .notes = notes});
    }
    if (lane.ended) {
      const std::string name = fmt::format("end: {}", Name(lane.how));
      std::vector<TraceNote> notes;
      if (!lane.said_by.empty()) notes.push_back({"said_by", std::string_view(lane.said_by)});
      Tell(*lane.ended, notes);
      writer_.Instant(track, Ns(*lane.ended), {.name = name, .category = "end", .notes = notes});
    }
    if (lane.left_out > 0) {
      const TraceNote note{"times", lane.left_out};
      writer_.Instant(track, end_, {.name = "left out", .category = "left-out", .notes = {&note, 1}});
    }
    if (!lane.stretches.empty() || !lane.marks.empty() || lane.ended) return;
    // A rank of which nothing is told is seen all the same.
    if (!lane.first || !lane.last)
      return writer_.Instant(track, begin_, {.name = "no line of it was given", .category = "left-out"});
    std::vector<TraceNote> notes;
    Tell(*lane.first, notes);
    writer_.Begin(track, Ns(*lane.first), {.name = "heard of", .category = "state", .notes = notes});
    writer_.End(track, std::max(Ns(*lane.first), Ns(*lane.last)));
  }

  void DrawCalls(const ReadAgain& again, TraceTracks& tracks, TraceTrack about) {
    const LinePlaces places(timeline_, axis_);
    NcclCalls nccl(timeline_, picture_, places, tracks, writer_);
    RecordedCalls recorded(timeline_, picture_, begin_, end_, tracks, writer_);
    Reader reader(nccl, recorded);
    const std::string problem = again ? again(reader) : std::string();
    nccl.Finish();
    std::vector<TraceNote> notes;
    const auto count = [&notes](std::string_view name, std::uint64_t number) {
      if (number > 0) notes.push_back({name, number});
    };
    count("of_lines", nccl.drawn().slices);
    count("of_recorders", recorded.drawn().slices);
    count("of_other_attempts", nccl.drawn().other_attempts + recorded.drawn().other_attempts);
    count("left_out", nccl.drawn().left_out + recorded.drawn().left_out);
    if (recorded.drawn().slices > 0 && recorded.is_shifted())
      notes.push_back({"recorders", std::string_view("their times do not compare with the lines': the newest stands at "
                                                     "the end")});
    if (!problem.empty()) notes.push_back({"problem", std::string_view(problem)});
    if (!notes.empty()) Across(about, "calls", problem.empty() ? "calls" : "calls: " + problem, notes);
  }

  const Timeline& timeline_;
  const Verdict& verdict_;
  const ReportContext& context_;
  Picture picture_;
  Axis axis_;
  std::int64_t begin_, end_;
  TraceWriter writer_;
  std::vector<std::uint32_t> waiters_ = Waiters();
  std::string text_;
};

}  // namespace

void RenderPerfetto(const Timeline& timeline, const Verdict& verdict, const ReportContext& context,
                    const ReadAgain& again, const Sink& sink) {
  Drawing(timeline, verdict, context, sink).Draw(again);
}

}  // namespace inquest
