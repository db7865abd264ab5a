// Starts of a job within what was given.
#include "timeline/attempts.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "core/ascii.h"
#include "core/pattern.h"
#include "timeline/builder.h"
#include "timeline/chatter.h"
#include "timeline/collectives.h"
#include "timeline/edited.h"
#include "timeline/generations.h"
#include "timeline/identity.h"
#include "timeline/shape.h"

namespace inquest {
namespace {

constexpr std::size_t kMostAttempts = 4096;
constexpr std::uint64_t kFirstLines = 8;  ///< of an input, by which its program is known
constexpr std::uint64_t kShortEnd = 12;   ///< lines behind the last run in which a script sums up
constexpr std::size_t kOfAStart = 4;     ///< of an input's first lines, that show a start of which nothing else is seen
constexpr std::uint64_t kEpilog = 16;    ///< lines of a scheduler's report on the job that has ended
constexpr std::uint64_t kShortRun = 64;  ///< lines within which no program ends and is started again

SourcePos Begin(std::uint32_t input) { return {.input = input}; }
SourcePos End(std::uint32_t input) { return {.input = input, .line = std::numeric_limits<std::uint64_t>::max()}; }

/// PyTorch's watchdog throws where nobody catches it, which ends its process; one rank's, behind which others print on
/// for long.
bool EndsByItsWatchdog(const Event& event) {
  return std::holds_alternative<WorkTimedOut>(event.what) &&
         event.text.find("thread terminated with exception") != std::string::npos;
}

/// A process that nobody else started ended here, as far as its own line tells.
bool EndsAProcess(const Event& event) {
  const auto* raised = std::get_if<ExceptionRaised>(&event.what);
  return (raised != nullptr && !raised->ignored && !raised->chained_first && !EndsAThread(*raised) &&
          !EndsAChild(*raised)) ||
         std::holds_alternative<JobStopped>(event.what) || (IsBadExit(event.what) && !EndsATask(event.what));
}

bool IsGoodExit(const What& what) {
  const auto* exit = std::get_if<ProcessExit>(&what);
  return exit != nullptr && !IsBadExit(what);
}

/// multiprocessing numbers the children of a program from 1: a name that dies twice is a child of two programs, and the
/// death of the first was that program's end.
std::set<std::string> ChildrenOfSeveral(const Timeline& timeline, std::uint32_t input) {
  std::map<std::string, int> deaths;
  for (const Event& event : timeline.events)
    if (const auto* raised = std::get_if<ExceptionRaised>(&event.what);
        raised != nullptr && event.where.input == input && !raised->process.empty() && !raised->chained_first)
      ++deaths[raised->process];
  std::set<std::string> out;
  for (const auto& [name, times] : deaths)
    if (times > 1) out.insert(name);
  return out;
}

bool IsOfJob(const Event& event) { return !IsOfHost(event.what) && !IsOfKernel(event.what); }

/// A frame of a traceback, plain or in a box, which each rank that dies prints; a bar that others still draw; or what
/// Weights & Biases prints as each of them leaves.
bool IsOfAnyRank(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  constexpr std::string_view kBox = "\xe2\x94", kCorner = "\xe2\x95";  // U+2500 to U+257F
  return text.starts_with(kBox) || text.starts_with(kCorner) || text.starts_with("File \"") ||
         text.starts_with("wandb:") || text.find("%|") != std::string_view::npos;
}

/// By input, the lines of tracebacks, which each rank that dies prints alike: of a report of several, behind the first.
class Tracebacks {
 public:
  explicit Tracebacks(const Timeline& timeline) {
    for (const Event& event : timeline.events)
      if (const auto* raised = std::get_if<ExceptionRaised>(&event.what);
          raised != nullptr && raised->begin.input == event.where.input && raised->begin.line < event.where.line)
        ends_[raised->begin] = std::max(ends_[raised->begin], event.where.line);
  }
  bool Hold(const SourcePos& where) const {
    auto behind = ends_.upper_bound(where);
    return behind != ends_.begin() && (--behind)->first.input == where.input && where.line <= behind->second;
  }

 private:
  std::map<SourcePos, std::uint64_t> ends_;  ///< by begin
};

/// Letters of UTF-8 text: one of an alphabet counts one, one of a script of words or syllables (CJK, Hangul) two; bars,
/// arrows and emoji are none.
std::size_t CountLetters(std::string_view text) {
  std::size_t count = 0;
  for (const char c : text) {
    const auto lead = static_cast<unsigned char>(c);
    if (IsLetter(c) || (lead >= 0xC3 && lead <= 0xDF)) ++count;
    if (lead >= 0xE3 && lead <= 0xED) count += 2;
  }
  return count;
}

/// A line without its numbers; empty: too little to know it by.
std::string KnownBy(const Event& event) {
  constexpr std::size_t kLongest = 120;
  constexpr std::size_t kLeastLetters = 8;
  if (IsOfAnyRank(MessageOf(event))) return {};
  std::string shape = ShapeOf(std::string_view(event.text).substr(0, kLongest));
  return CountLetters(shape) < kLeastLetters ? std::string() : shape;
}

/// Where the next attempt of an input begins, and by which line.
struct Boundary {
  SourcePos at;
  EventIndex event = 0;
  bool told = false;      ///< a launcher says that it restarts, or a scheduler ended what was before
  bool by_shape = false;  ///< known only by lines like those of another start
};

struct Opening {
  Boundary at;
  std::vector<std::pair<std::string, std::uint64_t>> lines;  ///< shape and line
  bool worked = false;
};

/// What follows a death, where it follows several: each time the program was started again, and it came to its work.
/// What follows the first exception of a chain, too, is of its message.
class Openings {
 public:
  void Raised(bool chained_first) { message_lines_ = chained_first ? kLines + kShift : 0; }
  void Died() {
    Close();
    open_.emplace();
  }
  void Read(const Event& event, EventIndex index, std::uint64_t line) {
    const auto* message = std::get_if<LogMessage>(&event.what);
    if ((!open_ && message_lines_ == 0) || message == nullptr || !message->hits.empty()) return;
    std::string shape = KnownBy(event);
    if (shape.empty()) return;
    if (message_lines_ > 0) {
      --message_lines_;
      of_messages_.insert(std::move(shape));
      return;
    }
    if (open_->lines.size() == kLines + kShift) return;
    if (open_->lines.empty()) open_->at = {.at = event.where, .event = index, .by_shape = true};
    open_->lines.push_back({std::move(shape), line});
  }
  /// What followed the death was still of that run: a report of its scheduler.
  void Over() { open_.reset(); }
  /// Behind its first lines: a wrapped message holds numbers, too.
  void Worked(std::uint64_t line) {
    if (open_ && open_->lines.size() >= kLines && open_->lines.back().second < line) open_->worked = true;
  }
  /// In order.
  std::vector<Boundary> Take() {
    Close();
    std::vector<Boundary> out;
    for (const Opening& opening : openings_) {
      const auto same = [&](const Opening& other) {
        return &other != &opening && (other.worked || opening.worked) && AreAlike(other, opening);
      };
      const auto of_message = [&](const auto& line) { return of_messages_.contains(line.first); };
      if (std::ranges::none_of(opening.lines, of_message) && std::ranges::any_of(openings_, same))
        out.push_back(opening.at);
    }
    return out;
  }

 private:
  static constexpr std::size_t kLines = 3, kShift = 2, kMostOpenings = 256;
  /// Lines of one shape, as far apart; one or two may stand in front of them in one and not in the other.
  static bool AreAlike(const Opening& a, const Opening& b) {
    const auto run = [&](std::size_t i, std::size_t j) {
      if (i + kLines > a.lines.size() || j + kLines > b.lines.size()) return false;
      for (std::size_t k = 0; k < kLines; ++k)
        if (a.lines[i + k].first != b.lines[j + k].first ||
            a.lines[i + k].second - a.lines[i].second != b.lines[j + k].second - b.lines[j].second)
          return false;
      return true;
    };
    for (std::size_t shift = 0; shift <= kShift; ++shift)
      if (run(shift, 0) || run(0, shift)) return true;
    return false;
  }
  void Close() {
    if (open_ && open_->lines.size() >= kLines && openings_.size() < kMostOpenings)
      openings_.push_back(*std::move(open_));
    open_.reset();
  }
  std::optional<Opening> open_;
  std::vector<Opening> openings_;
  std::size_t message_lines_ = 0;      ///< that may follow
  std::set<std::string> of_messages_;  ///< shapes
};

/// Reads one input's events in order.
class Reader {
 public:
  Reader(const Timeline& timeline, const Tracebacks& tracebacks, const Chatter& chatter)
      : timeline_(timeline), tracebacks_(tracebacks), chatter_(chatter) {}

  void Restarted(EventIndex event) {
    // Agents say it in several lines; what follows the last of them is new.
    SourcePos next = timeline_.events[event].where;
    ++next.line;
    next.offset = 0;
    if (!restarts_) lived_ = lived_since_boundary_;
    restarts_ = {next, event, true};
    openings_.Over();
    lived_since_boundary_ = false;
  }

  void Started(EventIndex event, std::string_view key, bool by_launcher = false) {
    Settle(event);
    const bool again = seen_.contains(key);
    const bool was_over = over_ == Over::kProcess || (by_launcher && (rank_ended_ || ended_well_));
    if (over_ == Over::kJob || (was_over && again)) Open({timeline_.events[event].where, event, over_ == Over::kJob});
    seen_.insert(key);
  }

  /// A line that may be one of the input's first, again.
  void Read(EventIndex event) {
    const Event& read = timeline_.events[event];
    if (tracebacks_.Hold(read.where) || read.where.line < epilog_end_ || chatter_.Holds(read.where)) return;
    const std::uint64_t line = LineOf(read.where);
    openings_.Read(read, event, line);
    if (!std::holds_alternative<LogMessage>(read.what)) return;
    if (line <= kFirstLines) {
      if (over_ != Over::kNo) no_start_ = true;
      if (std::string shape = KnownBy(read); !shape.empty()) {
        if (!shapes_.insert(shape).second)
          Forget(shape);  // several writers print it, or one again and again
        else
          head_.push_back({std::move(shape), line});
      }
      return;
    }
    if (no_start_) return;
    if (over_ != Over::kNo) ForgetAgain();
    const std::string shape = KnownBy(read);
    const auto known = std::ranges::find(head_, shape, &Head::shape);
    if (known == head_.end()) return;
    if (over_ == Over::kNo && by_first_lines_ && IsOne(known->line) && line <= opened_at_ + kShortRun) {
      // A start prints its first lines once: what followed the death only looked like them.
      const auto lines = *std::exchange(by_first_lines_, std::nullopt);
      std::erase_if(head_, [&](const Head& head) { return head.line == lines.first || head.line == lines.second; });
      boundaries_.pop_back();
      opened_at_ = boundaries_.empty() ? 0 : LineOf(boundaries_.back().at);
      over_ = Over::kProcess;
      return;
    }
    if (over_ == Over::kNo) {
      // Nothing that only a start prints, unless several come again as they stood: whoever was killed left no word. In
      // attempts behind the first its own start is read here.
      first_again_.reset();
      if (line <= opened_at_ + kFirstLines) return;
      if (line <= opened_at_ + kShortRun) return Forget(shape);
      const std::uint64_t head_line = known->line;
      const bool together = again_ && line - again_->line == head_line - again_->head_line;
      if (!together) ForgetAgain();
      again_ = Again{.shape = shape, .line = line, .head_line = head_line, .together = together};
      return;
    }
    if (!first_again_ || line - LineOf(first_again_->at) != known->line - first_line_) {
      first_again_ = Boundary{.at = read.where, .event = event, .by_shape = true};
      first_line_ = known->line;
      return;
    }
    Settle(event);
    const auto lines = std::pair(first_line_, known->line);
    Open(*std::exchange(first_again_, std::nullopt));
    by_first_lines_ = lines;
  }

  void Ended(EventIndex event, bool job) {
    Settle(event);
    openings_.Died();
    deaths_.push_back(timeline_.events[event].where);
    over_ = job ? Over::kJob : std::max(over_, Over::kProcess);
  }

  /// What it says of the job stood in the report in front of it, too.
  void Epilog(EventIndex event) {
    epilog_end_ = timeline_.events[event].where.line + kEpilog;
    openings_.Over();
  }

  void Raised(const ExceptionRaised& raised) { openings_.Raised(raised.chained_first); }

  void RankEnded() { rank_ended_ = true; }

  void EndedWell() { ended_well_ = true; }

  void Lived(EventIndex event) {
    Settle(event);
    lived_since_boundary_ = true;
  }

  void Worked(EventIndex event) { openings_.Worked(LineOf(timeline_.events[event].where)); }

  /// What wrote before the start and behind it was not started there.
  void Wrote(EventIndex event) {
    const auto& pid = timeline_.events[event].origin.pid;
    if (!pid || !TellsApart(*pid)) return;
    const SourcePos where = timeline_.events[event].where;
    const auto known = lives_.try_emplace(*pid, where, where).first;
    known->second.second = where;
  }

  std::vector<Boundary> Take() {
    // What is known by its opening counts where no other boundary stands between it and the death in front of it, or
    // soon behind it.
    for (const Boundary& opening : openings_.Take()) {
      const auto death = std::ranges::lower_bound(deaths_, opening.at);
      const SourcePos before = death == deaths_.begin() ? Begin(opening.at.input) : *std::prev(death),
                      behind = death == deaths_.end() ? End(opening.at.input) : *death;
      const auto known = [&](const Boundary& boundary) { return before < boundary.at && boundary.at < behind; };
      if (std::ranges::none_of(boundaries_, known)) boundaries_.push_back(opening);
    }
    std::ranges::sort(boundaries_, {}, &Boundary::at);
    // How many lived on over each boundary: one more behind a first line, one fewer behind a last.
    std::vector<std::ptrdiff_t> living(boundaries_.size() + 1);
    for (const auto& [pid, life] : lives_) {
      const auto begin = std::ranges::upper_bound(boundaries_, life.first, {}, &Boundary::at),
                 end = std::ranges::lower_bound(boundaries_, life.second, {}, &Boundary::at);
      if (end <= begin) continue;
      ++living[static_cast<std::size_t>(begin - boundaries_.begin())];
      --living[static_cast<std::size_t>(end - boundaries_.begin())];
    }
    std::vector<Boundary> out;
    std::ptrdiff_t now = 0;
    for (std::size_t i = 0; i < boundaries_.size(); ++i) {
      now += living[i];
      if (now == 0 || boundaries_[i].told) out.push_back(boundaries_[i]);
    }
    return out;
  }

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
    opened_at_ = LineOf(boundary.at);
    over_ = Over::kNo;
    rank_ended_ = ended_well_ = false;
    by_first_lines_.reset();
    seen_.clear();
    lived_since_boundary_ = false;
  }

  /// Its number without chatter.
  std::uint64_t LineOf(const SourcePos& where) const { return chatter_.Apart(where.input, 0, where.line); }

  const Timeline& timeline_;
  const Tracebacks& tracebacks_;
  const Chatter& chatter_;
  std::vector<Boundary> boundaries_;
  Openings openings_;
  std::vector<SourcePos> deaths_;
  std::map<std::int64_t, std::pair<SourcePos, SourcePos>> lives_;  ///< by pid: its first line and its last
  std::set<std::string_view> seen_;
  Over over_ = Over::kNo;
  bool rank_ended_ = false;  ///< by its watchdog
  bool ended_well_ = false;  ///< in its own words
  struct Head {
    std::string shape;
    std::uint64_t line = 0;
  };
  /// Of the two lines of the head that showed that the last boundary is one.
  bool IsOne(std::uint64_t line) const { return line == by_first_lines_->first || line == by_first_lines_->second; }
  void Forget(const std::string& shape) {
    std::erase_if(head_, [&](const Head& head) { return head.shape == shape; });
  }
  /// A line of the head that came again while nobody had died.
  struct Again {
    std::string shape;
    std::uint64_t line = 0, head_line = 0;
    bool together = false;  ///< behind another one, as far away as there
  };
  void ForgetAgain() {
    if (again_ && !again_->together) Forget(again_->shape);
    again_.reset();
  }
  std::optional<Again> again_;
  std::vector<Head> head_;        ///< its first lines
  std::set<std::string> shapes_;  ///< the same, with those that came twice
  bool no_start_ = false;         ///< what was given begins with the end of a run
  std::optional<Boundary> first_again_;
  std::optional<std::pair<std::uint64_t, std::uint64_t>> by_first_lines_;  ///< two lines of the head
  std::uint64_t first_line_ = 0, opened_at_ = 0, epilog_end_ = 0;
  std::optional<Boundary> restarts_;
  bool lived_ = false, lived_since_boundary_ = false;
};

/// What all attempts share. Whole, the timeline of a job that was started a thousand times is too much for a copy of
/// each.
Timeline WithoutEvents(const Timeline& timeline) {
  return {.inputs = timeline.inputs,
          .logs = timeline.logs,
          .events = {},
          .hosts = timeline.hosts,
          .job_hosts = timeline.job_hosts,
          .processes = timeline.processes,
          .ranks = {},
          .communicators = {},
          .groups = {},
          .collectives = {},
          .recorded = NoRecords(),
          .recorded_fits = true,
          .world_size = timeline.world_size,
          .left_out = timeline.left_out,
          .waits_left_out = timeline.waits_left_out,
          .versions = timeline.versions,
          .process_hosts = timeline.process_hosts,
          .job_host_names = timeline.job_host_names,
          .process_by_pid = timeline.process_by_pid,
          .process_by_kernel_line = timeline.process_by_kernel_line,
          .by_local_rank = timeline.by_local_rank};
}

/// The agent's own account of a restart: its log, and the sizes and addresses that it lists; LSF's postscript.
bool IsOfRestart(const Event& event) {
  static const Pattern kListed(R"(^\s+\w+=|^PS:\s*$|^Read file <)");
  return std::holds_alternative<WorldSize>(event.what) ||
         (std::holds_alternative<LogMessage>(event.what) &&
          (event.text.find("torch.distributed.elastic.agent") != std::string::npos || kListed.Matches(event.text)));
}

/// What opens an attempt and is followed by nothing of the job is a look at the machine afterwards, or a restart of
/// which no more is seen than that it was begun; and how something ended, with nothing that began, belongs to what was
/// before.
void DropLifeless(const Timeline& timeline, std::span<const Told> told, std::vector<std::vector<Boundary>>& by_input) {
  std::set<EventIndex> endings, telling;
  for (const Told& line : told)
    if (line.what == Told::What::kEnding)
      endings.insert(line.event);
    else if (line.what != Told::What::kGrumble && (line.what != Told::What::kComplaint || line.heavy))
      telling.insert(line.event);
  for (std::size_t input = 0; input < by_input.size(); ++input) {
    std::vector<Boundary>& boundaries = by_input[input];
    std::vector<std::string> head;
    const auto [first, end] = timeline.EventsOf(static_cast<std::uint32_t>(input));
    for (EventIndex i = first; i < end && !boundaries.empty() && timeline.events[i].where.line <= kFirstLines; ++i)
      if (std::string shape = KnownBy(timeline.events[i]); !shape.empty()) head.push_back(std::move(shape));
    const auto lives = [&](const Boundary& boundary) {
      std::set<std::string> of_head;  // as many of its first lines as no sum holds
      // A script counts its starts in front of each, and sums up behind the last: what few lines show is no start yet.
      const bool brief = boundary.by_shape && timeline.inputs[input].lines < boundary.at.line + kShortEnd;
      const bool by_first = !head.empty() && KnownBy(timeline.events[boundary.event]) == head.front();
      for (EventIndex i = boundary.event; i < timeline.events.size(); ++i) {
        const Event& event = timeline.events[i];
        if (event.where.input != input || event.where < boundary.at || !IsOfJob(event) || endings.contains(i) ||
            std::holds_alternative<CommEnd>(event.what) || IsGoodExit(event.what) ||
            (boundary.told && IsOfRestart(event)))
          continue;
        const bool plain = std::holds_alternative<LogMessage>(event.what);
        if (std::string shape = plain && brief && by_first ? KnownBy(event) : std::string();
            std::ranges::find(head, shape) != head.end())
          of_head.insert(std::move(shape));
        if (of_head.size() >= kOfAStart) return true;
        if (plain && brief && !telling.contains(i)) continue;
        if (event.where.line > boundary.at.line || !plain) return true;
      }
      return false;
    };
    while (!boundaries.empty() && !lives(boundaries.back())) boundaries.pop_back();
  }
}

/// Python's word for a command that a program ran, and that failed.
bool TellsOfACommand(const Event& event) {
  const auto* raised = std::get_if<ExceptionRaised>(&event.what);
  return raised != nullptr && raised->type.ends_with("CalledProcessError");
}

/// A program refused its command line, and nobody reports that it left: what is printed behind it is of another run.
/// Where another failed in front of it, and nothing shows a start between the two, a script goes on whatever fails.
/// `begin`, `end`: of the input's events, from the last start on; `left`: the last such line.
std::optional<Boundary> BehindTheLastThatLeft(const Timeline& timeline, EventIndex begin,
                                              std::optional<EventIndex> left, EventIndex end) {
  constexpr std::size_t kFewest = 4;  ///< lines; a script says less about what it gave up
  if (!left) return std::nullopt;
  for (EventIndex i = begin; i < *left; ++i)
    if (EndsAProcess(timeline.events[i])) return std::nullopt;
  std::optional<EventIndex> first;
  std::size_t lines = 0;
  bool broke = false;
  for (EventIndex i = *left + 1; i < end; ++i) {
    const Event& event = timeline.events[i];
    if (event.where.line == timeline.events[*left].where.line) continue;
    const bool by_hand = IsStopByHand(event.what);
    if ((IsDeath(event.what) && !by_hand) || !IsOfJob(event) || TellsOfACommand(event)) return std::nullopt;
    if (!first) first = i;
    lines += SaysAnything(event.text) ? 1 : 0;
    broke = broke || by_hand || std::holds_alternative<ExceptionRaised>(event.what);
  }
  if (!first || (lines < kFewest && !broke)) return std::nullopt;
  return Boundary{.at = timeline.events[*first].where, .event = *first, .told = true};
}

/// What is printed behind the last end in front of an exception, or its own first line.
Boundary BehindTheLastEnd(const Timeline& timeline, EventIndex before, EventIndex raised) {
  const SourcePos begin = std::get<ExceptionRaised>(timeline.events[raised].what).begin;
  EventIndex end = before, next = before;
  for (EventIndex i = before; i < raised && timeline.events[i].where < begin; ++i)
    if (EndsAProcess(timeline.events[i]) || IsDeath(timeline.events[i].what)) end = i;
  while (next < raised && timeline.events[next].where.line <= timeline.events[end].where.line) ++next;
  return {.at = std::min(timeline.events[next].where, begin), .event = next};
}

/// Adds where a program was started anew since somebody had edited it, where nothing else shows it.
void AddEdits(const Timeline& timeline, EventIndex begin, EventIndex end, std::vector<Boundary>& boundaries) {
  for (const auto& [before, raised] : EditsBetween(timeline, begin, end)) {
    const SourcePos from = timeline.events[before].where, to = timeline.events[raised].where;
    const auto known = [&](const Boundary& boundary) { return from < boundary.at && boundary.at <= to; };
    if (std::ranges::none_of(boundaries, known)) boundaries.push_back(BehindTheLastEnd(timeline, before, raised));
  }
  std::ranges::sort(boundaries, {}, &Boundary::at);
}

/// Where the first lines of an input come again as they stood: [begin, end) are its events.
std::vector<Boundary> WhereItsHeadComesAgain(const Timeline& timeline, EventIndex begin, EventIndex end) {
  constexpr std::size_t kFewest = 3, kMost = 6;  ///< lines of the head
  struct Line {
    std::string shape;
    std::uint64_t behind = 0;  ///< the first of them
  };
  std::vector<Line> head;
  std::uint64_t first = 0;
  const auto shape_of = [&](EventIndex i) {
    const Event& event = timeline.events[i];
    return std::holds_alternative<LogMessage>(event.what) ? KnownBy(event) : std::string();
  };
  EventIndex i = begin;
  for (; i < end && timeline.events[i].where.line <= kFirstLines && head.size() < kMost; ++i) {
    std::string shape = shape_of(i);
    if (shape.empty()) continue;
    if (head.empty()) first = timeline.events[i].where.line;
    head.push_back({std::move(shape), timeline.events[i].where.line - first});
  }
  std::vector<Boundary> out;
  if (head.size() < kFewest) return out;
  for (; i < end; ++i) {
    const SourcePos at = timeline.events[i].where;
    if (shape_of(i) != head.front().shape) continue;
    EventIndex next = i;
    const bool again = std::ranges::all_of(head, [&](const Line& line) {
      while (next < end && timeline.events[next].where.line < at.line + line.behind) ++next;
      return next < end && timeline.events[next].where.line == at.line + line.behind && shape_of(next) == line.shape;
    });
    if (again) out.push_back({.at = at, .event = i, .told = true});
  }
  return out;
}

/// A batch system appends what a job prints to its file of output, and its own report with it, and the errors to
/// another that nobody reports in: where the head of one comes again as often as the other is said to have ended, these
/// are the same starts.
void FitToReports(const Timeline& timeline, const std::vector<std::optional<std::size_t>>& after,
                  std::vector<std::vector<Boundary>>& by_input) {
  std::size_t most = 0;
  for (const std::vector<Boundary>& boundaries : by_input)
    if (std::ranges::all_of(boundaries, &Boundary::told)) most = std::max(most, boundaries.size());
  if (most < 2 || by_input.size() < 2) return;
  for (EventIndex begin = 0, end = 0; begin < timeline.events.size(); begin = end) {
    const std::uint32_t input = timeline.events[begin].where.input;
    while (end < timeline.events.size() && timeline.events[end].where.input == input) ++end;
    if (by_input[input].size() >= most || after[input].value_or(0) > 0) continue;
    std::vector<Boundary> heads = WhereItsHeadComesAgain(timeline, begin, end);
    if (heads.size() == most) by_input[input] = std::move(heads);
  }
}

/// By input: how many of the starts that another input tells began, by the clock, when all that this one holds of the
/// job was written. Asked of inputs that tell of no start themselves.
std::vector<std::size_t> StartsBehindByClock(const Timeline& timeline,
                                             const std::vector<std::vector<Boundary>>& by_input) {
  std::vector<std::size_t> out(by_input.size());
  const auto most = std::ranges::max_element(by_input, {}, &std::vector<Boundary>::size);
  if (by_input.size() < 2 || most->empty()) return out;
  const auto teller = static_cast<std::uint32_t>(most - by_input.begin());
  std::vector<std::optional<Timestamp>> begins(most->size()), last(by_input.size());  // by boundary, by input
  for (const Event& event : timeline.events) {
    if (!event.at || event.at->date != Timestamp::Date::kFull || !IsOfJob(event)) continue;
    const std::uint32_t input = event.where.input;
    if (!last[input] || last[input]->at < event.at->at) last[input] = event.at;
    if (input != teller) continue;
    const auto behind = std::ranges::upper_bound(*most, event.where, {}, &Boundary::at);
    if (behind == most->begin()) continue;
    std::optional<Timestamp>& begin = begins[static_cast<std::size_t>(behind - most->begin()) - 1];
    if (!begin || event.at->at < begin->at) begin = event.at;
  }
  for (std::uint32_t input = 0; input < by_input.size(); ++input) {
    if (input == teller || !by_input[input].empty() || !last[input]) continue;
    const auto is_behind = [&](const std::optional<Timestamp>& begin) {
      return begin && begin->zone_known == last[input]->zone_known && last[input]->at < begin->at;
    };
    out[input] =
        static_cast<std::size_t>(std::find_if_not(begins.rbegin(), begins.rend(), is_behind) - begins.rbegin());
  }
  return out;
}

}  // namespace

std::vector<Attempt> FindAttempts(const Timeline& timeline, std::span<const Told> told) {
  const std::size_t inputs = timeline.inputs.size();
  std::vector<std::vector<Boundary>> by_input(inputs);
  const Tracebacks tracebacks(timeline);
  const Chatter chatter(timeline, told);
  auto next = told.begin();
  for (EventIndex begin = 0; begin < timeline.events.size();) {
    const std::uint32_t input = timeline.events[begin].where.input;
    Reader reader(timeline, tracebacks, chatter);
    const std::set<std::string> of_several = ChildrenOfSeveral(timeline, input);
    const auto ends_program = [&](const Event& event) {
      const auto* raised = std::get_if<ExceptionRaised>(&event.what);
      return EndsAProcess(event) || (raised != nullptr && !raised->ignored && of_several.contains(raised->process));
    };
    bool snapshot_open = false;
    std::optional<EventIndex> left;
    EventIndex i = begin;
    for (; i < timeline.events.size() && timeline.events[i].where.input == input; ++i) {
      const Event& event = timeline.events[i];
      for (auto line = next; line != told.end() && line->event == i; ++line)
        if (line->what == Told::What::kEpilog) reader.Epilog(i);
      reader.Read(i);
      reader.Wrote(i);
      if (std::holds_alternative<NcclVersion>(event.what)) reader.Started(i, "nccl-version");
      // The rows of one table are one look, whatever rules are drawn between them.
      const bool snapshot =
          std::holds_alternative<GpuSnapshot>(event.what) || std::holds_alternative<GpuProcess>(event.what);
      if (snapshot && !snapshot_open) reader.Started(i, "nvidia-smi");
      snapshot_open = snapshot || (snapshot_open && (!IsOfJob(event) || !SaysAnything(event.text)));
      for (; next != told.end() && next->event == i; ++next) {
        if (next->what == Told::What::kStart) reader.Started(i, next->rule, true);
        if (next->what == Told::What::kRestart) reader.Restarted(i);
        if (next->what == Told::What::kOver) left = i;
        const bool ends = next->what == Told::What::kEnding;
        if (ends && next->ending == EndingKind::kScheduler) reader.Ended(i, true);
        if (ends && (IsPrograms(next->ending) || next->ending == EndingKind::kLauncher)) reader.EndedWell();
        if (next->what == Told::What::kWork && !tracebacks.Hold(event.where) && !IsOfAnyRank(MessageOf(event)))
          reader.Worked(i);
        if (next->what == Told::What::kWork || next->what == Told::What::kComplaint) reader.Lived(i);
        if (next->what == Told::What::kComplaint && next->decisive && IsOfJob(event)) reader.Ended(i, false);
      }
      if (const auto* raised = std::get_if<ExceptionRaised>(&event.what)) reader.Raised(*raised);
      if (EndsByItsWatchdog(event)) reader.RankEnded();
      if (ends_program(event)) reader.Ended(i, IsSchedulersStop(event.what));
      if (IsOfJob(event) && !std::holds_alternative<LogMessage>(event.what)) reader.Lived(i);
    }
    by_input[input] = reader.Take();
    AddEdits(timeline, begin, i, by_input[input]);
    const EventIndex last_start = by_input[input].empty() ? begin : std::max(begin, by_input[input].back().event);
    if (const auto next_run = BehindTheLastThatLeft(timeline, last_start, left, i);
        next_run &&
        std::ranges::none_of(by_input[input], [&](const Boundary& known) { return known.at > next_run->at; }))
      by_input[input].push_back(*next_run);
    begin = i;
  }
  DropLifeless(timeline, told, by_input);
  for (std::vector<Boundary>& boundaries : by_input)
    if (boundaries.size() > kMostAttempts) boundaries.erase(boundaries.begin(), boundaries.end() - kMostAttempts);
  // Starts in files of their own hold those within each of their files.
  const std::vector<std::optional<std::size_t>> after = StartsAfter(timeline, told);
  FitToReports(timeline, after, by_input);
  std::map<std::size_t, std::size_t> attempts_in;  // by how many starts came after
  for (std::size_t input = 0; input < inputs; ++input)
    if (after[input]) attempts_in[*after[input]] = std::max(attempts_in[*after[input]], by_input[input].size() + 1);
  std::size_t attempts = 0;
  std::map<std::size_t, std::size_t> behind;  // attempts in later files
  for (const auto& [start, own] : attempts_in) {
    behind[start] = attempts;
    attempts += own;
  }
  attempts = std::max<std::size_t>(attempts, 1);
  for (std::size_t input = 0; input < inputs; ++input)
    if (!after[input]) attempts = std::max(attempts, by_input[input].size() + 1);
  const std::vector<std::size_t> by_clock = StartsBehindByClock(timeline, by_input);
  std::vector<Attempt> out(attempts);
  for (std::size_t number = 0; number < attempts; ++number) {
    Attempt& attempt = out[number];
    const std::size_t left = attempts - 1 - number;  // counted from the end, as inputs of one job are
    for (std::uint32_t input = 0; input < inputs; ++input) {
      const std::vector<Boundary>& boundaries = by_input[input];
      const std::size_t later = (after[input] ? behind[*after[input]] : 0) + by_clock[input];
      const bool holds = left >= later && left - later <= boundaries.size();
      const std::size_t own = holds ? boundaries.size() - (left - later) : 0;
      attempt.from.push_back(!holds ? End(input) : own == 0 ? Begin(input) : boundaries[own - 1].at);
      attempt.to.push_back(!holds || own == boundaries.size() ? End(input) : boundaries[own].at);
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
  Timeline out = WithoutEvents(timeline);
  const auto is_its = [&](const Event& event) { return attempt.Holds(event.where); };
  const std::size_t behind = std::min<std::size_t>(attempt.last + 1, timeline.events.size());  // of no events, 0
  const auto within = std::span(timeline.events).first(behind).subspan(attempt.first);
  out.events.reserve(static_cast<std::size_t>(std::ranges::count_if(within, is_its)));
  std::ranges::copy_if(within, std::back_inserter(out.events), is_its);
  std::copy_if(timeline.communicators.begin(), timeline.communicators.end(), std::back_inserter(out.communicators),
               [&](const CommunicatorRow& row) {
                 return std::any_of(row.members.begin(), row.members.end(), [&](const CommunicatorRow::Member& member) {
                   return (member.init_at && attempt.Holds(*member.init_at)) ||
                          (member.last_op_count && attempt.Holds(member.last_call_at));
                 });
               });
  for (std::size_t input = 0; input < attempt.from.size(); ++input)
    out.held.emplace_back(attempt.from[input], attempt.to[input]);
  const std::vector<RecordedRank>& recorded = timeline.recorded->ranks;
  if (std::ranges::any_of(recorded, [&](const RecordedRank& row) { return attempt.Holds({row.input, 1}); }))
    out.recorded = timeline.recorded;
  PlaceBirths(out);
  MatchWork(out);
  DescribeRanks(out);
  return out;
}

}  // namespace inquest
