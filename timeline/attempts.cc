// Starts of a job within what was given.
#include "timeline/attempts.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "timeline/builder.h"
#include "timeline/collectives.h"
#include "timeline/identity.h"

namespace inquest {
namespace {

constexpr std::size_t kMostAttempts = 4096;
constexpr std::uint64_t kHeadLines = 8;  ///< of an input, by which its program is known

SourcePos Begin(std::uint32_t input) { return {.input = input}; }
SourcePos End(std::uint32_t input) { return {.input = input, .line = std::numeric_limits<std::uint64_t>::max()}; }

/// The scheduler's word on the whole job.
bool EndsTheJob(const Event& event) {
  const auto* stopped = std::get_if<JobStopped>(&event.what);
  return stopped != nullptr && stopped->by == "slurm";
}

/// A process that nobody else started ended here, as far as its own line tells.
bool EndsAProcess(const Event& event) {
  return std::holds_alternative<ExceptionRaised>(event.what) || std::holds_alternative<JobStopped>(event.what) || IsBadExit(event.what);
}

bool IsOfJob(const Event& event) { return !IsOfHost(event.what) && !IsOfKernel(event.what); }

/// A line without its numbers; empty: too little to know it by.
std::string ShapeOf(const Event& event) {
  constexpr std::size_t kLongest = 120, kLeastLetters = 8;
  std::string out;
  std::size_t letters = 0;
  for (const char c : std::string_view(event.text).substr(0, kLongest)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit || out.empty() || out.back() != '0') out += digit ? '0' : c;
    letters += (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ? 1 : 0;
  }
  return letters < kLeastLetters ? std::string() : out;
}

/// Where the next attempt of an input begins, and by which line.
struct Boundary {
  SourcePos at;
  EventIndex event = 0;
};

/// Reads one input's events in order.
class Reader {
 public:
  explicit Reader(const Timeline& timeline) : timeline_(timeline) {}

  void Restarted(EventIndex event) {
    // Agents say it in several lines; what follows the last of them is new.
    SourcePos next = timeline_.events[event].where;
    ++next.line;
    next.offset = 0;
    if (!restarts_) lived_ = lived_since_boundary_;
    restarts_ = {next, event};
    lived_since_boundary_ = false;
  }

  void Started(EventIndex event, std::string_view key) {
    Settle(event);
    const bool again = seen_.contains(key);
    if (over_ == Over::kJob || (over_ == Over::kProcess && again)) Open({timeline_.events[event].where, event});
    seen_.insert(key);
  }

  /// A line that may be one of the input's first, again.
  void Read(EventIndex event) {
    const Event& read = timeline_.events[event];
    if (!std::holds_alternative<LogMessage>(read.what)) return;
    if (read.where.line <= kHeadLines) {
      if (over_ != Over::kNo) no_start_ = true;
      if (std::string shape = ShapeOf(read); !shape.empty()) {
        if (!shapes_.insert(shape).second) Forget(shape);  // several writers print it, or one again and again
        else head_.push_back({std::move(shape), read.where.line});
      }
      return;
    }
    if (no_start_) return;
    const std::string shape = ShapeOf(read);
    const auto known = std::ranges::find(head_, shape, &Head::shape);
    if (known == head_.end()) return;
    if (over_ == Over::kNo) {
      // Nothing that only a start prints. In attempts behind the first its own start is read here.
      if (read.where.line > opened_at_ + kHeadLines) Forget(shape);
      first_again_.reset();
      return;
    }
    if (!first_again_ || read.where.line - first_again_->at.line != known->line - first_line_) {
      first_again_ = Boundary{read.where, event};
      first_line_ = known->line;
      return;
    }
    Settle(event);
    Open(*std::exchange(first_again_, std::nullopt));
  }

  void Ended(EventIndex event, bool job) {
    Settle(event);
    over_ = job ? Over::kJob : std::max(over_, Over::kProcess);
  }

  void Lived(EventIndex event) {
    Settle(event);
    lived_since_boundary_ = true;
  }

  std::vector<Boundary> Take() { return std::move(boundaries_); }

 private:
  enum class Over { kNo, kProcess, kJob };

  /// A restart counts once something follows it.
  void Settle(EventIndex event) {
    if (!restarts_ || timeline_.events[event].where < restarts_->at) return;
    const Boundary boundary = *restarts_;
    restarts_.reset();
    if (lived_) Open(boundary);
  }
  void Open(Boundary boundary) {
    boundaries_.push_back(boundary);
    opened_at_ = boundary.at.line;
    over_ = Over::kNo;
    seen_.clear();
    lived_since_boundary_ = false;
  }

  const Timeline& timeline_;
  std::vector<Boundary> boundaries_;
  std::set<std::string_view> seen_;
  Over over_ = Over::kNo;
  struct Head {
    std::string shape;
    std::uint64_t line = 0;
  };
  void Forget(const std::string& shape) {
    std::erase_if(head_, [&](const Head& head) { return head.shape == shape; });
  }
  std::vector<Head> head_;  ///< its first lines
  std::set<std::string> shapes_;   ///< the same, with those that came twice
  bool no_start_ = false;          ///< what was given begins with the end of a run
  std::optional<Boundary> first_again_;
  std::uint64_t first_line_ = 0, opened_at_ = 0;
  std::optional<Boundary> restarts_;
  bool lived_ = false, lived_since_boundary_ = false;
};

}  // namespace

std::vector<Attempt> FindAttempts(const Timeline& timeline, std::span<const Told> told) {
  const std::size_t inputs = timeline.inputs.size();
  std::vector<std::vector<Boundary>> by_input(inputs);
  auto next = told.begin();
  for (EventIndex begin = 0; begin < timeline.events.size();) {
    const std::uint32_t input = timeline.events[begin].where.input;
    Reader reader(timeline);
    bool snapshot_open = false;
    EventIndex i = begin;
    for (; i < timeline.events.size() && timeline.events[i].where.input == input; ++i) {
      const Event& event = timeline.events[i];
      reader.Read(i);
      if (std::holds_alternative<NcclVersion>(event.what)) reader.Started(i, "nccl-version");
      // The rows of one table are one look.
      const bool snapshot = std::holds_alternative<GpuSnapshot>(event.what) || std::holds_alternative<GpuProcess>(event.what);
      if (snapshot && !snapshot_open) reader.Started(i, "nvidia-smi");
      snapshot_open = snapshot || (snapshot_open && !IsOfJob(event));
      for (; next != told.end() && next->event == i; ++next) {
        if (next->what == Told::What::kStart) reader.Started(i, next->kind);
        if (next->what == Told::What::kRestart) reader.Restarted(i);
        if (next->what == Told::What::kEnding && next->kind == "scheduler") reader.Ended(i, true);
        if (next->what == Told::What::kWork || next->what == Told::What::kComplaint) reader.Lived(i);
      }
      if (EndsAProcess(event)) reader.Ended(i, EndsTheJob(event));
      if (IsOfJob(event) && !std::holds_alternative<LogMessage>(event.what)) reader.Lived(i);
    }
    by_input[input] = reader.Take();
    begin = i;
  }
  // What opens an attempt and is followed by nothing of the job is a look at the machine afterwards.
  std::size_t attempts = 1;
  for (std::size_t input = 0; input < inputs; ++input) {
    std::vector<Boundary>& boundaries = by_input[input];
    const auto lives = [&](const Boundary& boundary) {
      return std::any_of(timeline.events.begin() + boundary.event, timeline.events.end(), [&](const Event& event) {
        return event.where.input == input && event.where >= boundary.at && IsOfJob(event) && (event.where.line > boundary.at.line || !std::holds_alternative<LogMessage>(event.what));
      });
    };
    while (!boundaries.empty() && !lives(boundaries.back())) boundaries.pop_back();
    if (boundaries.size() > kMostAttempts) boundaries.erase(boundaries.begin(), boundaries.end() - kMostAttempts);
    attempts = std::max(attempts, boundaries.size() + 1);
  }
  std::vector<Attempt> out(attempts);
  for (std::size_t number = 0; number < attempts; ++number) {
    Attempt& attempt = out[number];
    for (std::uint32_t input = 0; input < inputs; ++input) {
      const std::vector<Boundary>& boundaries = by_input[input];
      // Counted from the end: the first of an input's own is the job's number `skipped`.
      const std::size_t skipped = attempts - 1 - boundaries.size();
      const bool before = number < skipped;
      const std::size_t own = before ? 0 : number - skipped;
      attempt.from.push_back(before ? End(input) : own == 0 ? Begin(input) : boundaries[own - 1].at);
      attempt.to.push_back(before || own == boundaries.size() ? End(input) : boundaries[own].at);
      if (!before && own > 0 && attempt.opened_by.empty()) attempt.opened_by = timeline.events[boundaries[own - 1].event].text;
    }
    bool any = false;
    for (EventIndex i = 0; i < timeline.events.size(); ++i) {
      if (!attempt.Holds(timeline.events[i].where)) continue;
      if (!any) attempt.first = i;
      attempt.last = i;
      any = true;
    }
  }
  return out;
}

Timeline Only(const Timeline& timeline, const Attempt& attempt) {
  Timeline out = timeline;
  out.events.clear();
  for (const Event& event : timeline.events)
    if (attempt.Holds(event.where)) out.events.push_back(event);
  std::erase_if(out.communicators, [&](const CommunicatorRow& row) {
    return std::none_of(row.members.begin(), row.members.end(), [&](const CommunicatorRow::Member& member) {
      return (member.init_at && attempt.Holds(*member.init_at)) || (member.last_op_count && attempt.Holds(member.last_call_at));
    });
  });
  PlaceBirths(out);
  out.groups.clear();
  out.collectives.clear();
  out.ranks.clear();
  MatchWork(out);
  DescribeRanks(out);
  return out;
}

}  // namespace inquest
