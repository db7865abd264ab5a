// Confirms what the sieve let through, and turns confirmed lines into findings.
#include <fmt/format.h>

#include <algorithm>
#include <bitset>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "core/ascii.h"
#include "core/host_name.h"
#include "rules/evidence.h"
#include "rules/farewell.h"
#include "rules/raised.h"
#include "rules/thresholds.h"

namespace inquest {
namespace {

constexpr std::size_t kCitedPerRule = 6;
constexpr std::size_t kCulpritsPerRule = 4096;
constexpr std::size_t kLowered = 4096;    ///< longer lines are searched without
constexpr std::uint64_t kLastWords = 24;  ///< lines at the end of an input

std::vector<std::pair<std::string, std::string>> NamedGroups(const Pattern& pattern, const Pattern::Match& match) {
  std::vector<std::pair<std::string, std::string>> out;
  const auto& names = pattern.group_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!names[i].empty() && match.has(i)) out.emplace_back(names[i], std::string(match.text(i)));
  return out;
}

bool ComponentFits(Component wanted, Component is) { return wanted == Component::kAny || wanted == is; }

/// Who the job is, and what its hosts, ports and files are called.
/// It says that something went wrong, and not what.
bool IsOfTrouble(Rule::Says says) { return says == Rule::Says::kGrumble || says == Rule::Says::kGaveUp; }
bool IsOfNames(Rule::Says says) { return says == Rule::Says::kIdentity || says == Rule::Says::kNames; }

std::string Lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return out;
}

/// A line in small letters, and which pairs of bytes stand in it: most words are not there, and that is seen at once.
class Lowered {
 public:
  explicit Lowered(std::string_view text) : text_(Lower(text)) {
    for (std::size_t i = 1; i < text_.size(); ++i) pairs_.set(PairAt(text_, i - 1));
  }
  /// Whether the line may fit the rule, before an expression is compiled for it.
  bool HasWordOf(const Rule& rule) const {
    return rule.words.empty() || std::ranges::any_of(rule.words, [&](const std::string& word) {
             return (word.size() < 2 || pairs_.test(PairAt(word, 0))) && text_.find(word) != std::string::npos;
           });
  }

 private:
  static constexpr std::size_t kPairs = 4096;
  static std::size_t PairAt(std::string_view text, std::size_t i) {
    return (static_cast<unsigned char>(text[i]) * 67U + static_cast<unsigned char>(text[i + 1])) % kPairs;
  }
  std::string text_;
  std::bitset<kPairs> pairs_;
};

/// Every number in `1, 5` or `[1, 5]`.
std::vector<int> Numbers(std::string_view text) {
  std::vector<int> out;
  const char* p = text.data();
  const char* end = p + text.size();
  while (p < end) {
    int value = 0;
    const auto [next, error] = std::from_chars(p, end, value);
    if (error == std::errc() && value >= 0) out.push_back(value);
    p = error == std::errc() ? next : p + 1;
  }
  return out;
}

/// Some ranks of a finding, by rank, and hosts that no rank stands for.
struct Blame {
  std::set<int> ranks;
  std::map<std::string, std::set<std::string>> hosts;  ///< with the PCI addresses of their devices
  std::map<std::string, std::set<int>> printers;       ///< by host: ranks whose lines blame it
  std::set<std::int64_t> pids;
};

/// A device that a line names is blamed on its host, or alone where no host is known.
void AddHost(const Timeline& timeline, const LineMatch& match, Blame& blame) {
  const auto host = timeline.HostOf(timeline.events[match.event]);
  if (host) blame.hosts[*host];
  if (const auto rank = timeline.RankOf(timeline.events[match.event]); rank && host)
    blame.printers[*host].insert(rank->value.value);
  for (const auto& [name, value] : match.groups)
    if (name == "bus_id" && blame.hosts[host.value_or("")].size() < kCulpritsPerRule)
      blame.hosts[host.value_or("")].insert(value);
}

void AddPrinter(const Timeline& timeline, const LineMatch& match, Blame& blame) {
  const auto raised = RaisedAt(timeline, match.event);
  const Event& event = timeline.events[raised.value_or(match.event)];
  const auto rank = raised ? RankOfRaised(timeline, *raised) : timeline.RankOf(event);
  if (rank && blame.ranks.size() < kCulpritsPerRule) blame.ranks.insert(rank->value.value);
  if (rank) return;
  // No prefix says whose line it is; the sentence itself may.
  for (const auto& [name, value] : match.groups)
    if (name.starts_with("rank") && !Numbers(value).empty()) {
      if (blame.ranks.size() < kCulpritsPerRule) blame.ranks.insert(Numbers(value).front());
      return;
    }
  AddHost(timeline, match, blame);
  if (event.origin.pid && blame.pids.size() < kCulpritsPerRule) blame.pids.insert(*event.origin.pid);
}

void AddCaptured(const LineMatch& match, Blame& blame) {
  for (const auto& [name, value] : match.groups) {
    if (name.rfind("rank", 0) == 0)
      for (const int rank : Numbers(value)) blame.ranks.insert(rank);
    if (name == "host") blame.hosts.try_emplace(HostName(value).Short());
  }
}

std::vector<Culprit> CulpritsOf(const Timeline& timeline, const Blame& blame, const std::string& why) {
  std::vector<Culprit> out;
  for (const int rank : blame.ranks) out.push_back(BlameRank(timeline, GlobalRank{rank}, why));
  for (const auto& [host, devices] : blame.hosts) {
    if (host.empty()) {
      for (const std::string& device : devices) {
        Culprit& culprit = out.emplace_back();
        culprit.bus_id = device;
        culprit.why = why;
      }
      continue;
    }
    // The only rank there that met it is the one to look at.
    if (const auto met = blame.printers.find(host); met != blame.printers.end() && met->second.size() == 1) {
      Culprit culprit = BlameRank(timeline, GlobalRank{*met->second.begin()}, why);
      culprit.host = host;
      if (devices.size() == 1) culprit.bus_id = *devices.begin();
      out.push_back(std::move(culprit));
      continue;
    }
    if (std::any_of(out.begin(), out.end(),
                    [&name = host](const Culprit& culprit) { return culprit.rank && culprit.host == name; }))
      continue;
    Culprit culprit;
    culprit.host = host;
    if (devices.size() == 1) culprit.bus_id = *devices.begin();
    culprit.why = why;
    if (blame.hosts.size() == 1 && blame.pids.size() == 1) culprit.pid = *blame.pids.begin();
    out.push_back(std::move(culprit));
  }
  return out;
}

/// Python's own warning: `train.py:84: UserWarning: ...`. The message goes on below where it begins there or is to be
/// explained, `Failed to read commit hash:`, up to the source line, which is indented.
bool StandsInPythonWarning(const Timeline& timeline, EventIndex index) {
  constexpr std::uint64_t kMessageLines = 3;
  static const Pattern kHead(R"(\.py:\d+: (?:[A-Z]\w*)?Warning:(.*?)(?: \[repeated \d+x across cluster\].*)?$)");
  const Event& event = timeline.events[index];
  std::uint64_t line = event.where.line;
  for (EventIndex i = index + 1; i-- > 0;) {
    const Event& before = timeline.events[i];
    if (before.where.input != event.where.input || before.where.line + 1 < line ||
        before.where.line + kMessageLines < event.where.line)
      return false;
    line = before.where.line;
    const std::string_view text = MessageOf(before);
    if (const auto head = kHead.Search(text)) {
      const std::string_view message = head->text(1);
      const std::size_t last = message.find_last_not_of(' ');
      return line == event.where.line || last == std::string_view::npos || message[last] == ':' || message[last] == ',';
    }
    if (text.starts_with("  ")) return false;
  }
  return false;
}

/// A line of a library that moves data between processes.
bool IsOfTransport(std::string_view text) {
  static const Pattern kSpeaker(
      R"(\bUCX\s+(?:FATAL|ERROR|WARN|DIAG)\b|\[\S+:\d+:\d+:\d+\]\s+\w+\.c:\d+\s|\blibfabric:|\bNET/(?:IB|OFI|Socket|Plugin)\b|\b(?:ibv|rdma|fi)_\w+\b|\b(?:pml|btl|mtl|osc|coll)_\w+\.c:\d+|\bmlx\d_?\w*:)");
  return kSpeaker.Matches(text);
}

/// Its program says that it goes on without it.
bool IsIgnored(const Event& event) {
  constexpr std::size_t kHead = 160;
  static const Pattern kIgnored(R"(\b[Ii]gnor(?:e|ed|ing)\b.{0,40}(?:error|exception|failure)|\b[Ff]alling back\b)");
  return kIgnored.Matches(std::string_view(event.text).substr(0, kHead));
}

/// Whatever it says, its process goes on.
bool IsSurvived(const Timeline& timeline, EventIndex index) {
  return IsIgnored(timeline.events[index]) || StandsInPythonWarning(timeline, index);
}

/// A line that its own logger calls a warning. NCCL's WARN is its word for an error.
bool IsWarning(const Timeline& timeline, EventIndex index) {
  const Event& event = timeline.events[index];
  const auto* message = std::get_if<LogMessage>(&event.what);
  if (message == nullptr || message->component != Component::kAny) return false;
  constexpr std::size_t kHead = 160;
  const std::string_view head = std::string_view(event.text).substr(0, kHead);
  return head.find("[WARNING]") != std::string_view::npos || head.find(" WARNING ") != std::string_view::npos ||
         head.find("Warning: ") != std::string_view::npos || IsSurvived(timeline, index);
}

Finding FindingOf(const Rule& rule) {
  Finding finding;
  finding.rule = rule.id;
  finding.cause = rule.cause;
  finding.strength = rule.strength;
  finding.confidence = rule.confidence;
  finding.claim = rule.summary;
  finding.explains = rule.explains;
  finding.remedies = rule.remedies;
  finding.collect = rule.collect;
  finding.retry = rule.retry;
  finding.times = 0;
  return finding;
}
std::string_view GroupOf(const std::vector<std::pair<std::string, std::string>>& groups, std::string_view name) {
  for (const auto& [own, value] : groups)
    if (own == name) return value;
  return {};
}

/// Every counter that a line gives by groups `at` and `of`, and `at2` and `of2`, stands at its end; nullopt: it gives
/// none.
std::optional<bool> AllAtEnd(const std::vector<std::pair<std::string, std::string>>& groups) {
  std::optional<bool> out;
  for (const auto& [at, of] : {std::pair("at", "of"), std::pair("at2", "of2")}) {
    const std::vector<int> here = Numbers(GroupOf(groups, at)), end = Numbers(GroupOf(groups, of));
    if (!here.empty() && !end.empty()) out = out.value_or(true) && here.front() == end.front() && end.front() > 0;
  }
  return out;
}

/// What a rule that held on an event tells of the event's process.
Told ToldBy(const Rule& rule, EventIndex event) {
  if (rule.kind == Rule::Kind::kPhase) {
    switch (rule.says) {
      case Rule::Says::kStart:
        return {.event = event, .what = Told::What::kStart, .rule = rule.id};
      case Rule::Says::kGrumble:
      case Rule::Says::kGaveUp:
        return {.event = event, .what = Told::What::kGrumble};
      case Rule::Says::kBegins:
        return {.event = event, .what = Told::What::kBegins};
      case Rule::Says::kOver:
        return {.event = event, .what = Told::What::kOver};
      case Rule::Says::kEpilog:
        return {.event = event, .what = Told::What::kEpilog};
      case Rule::Says::kRestart:
        return {.event = event, .what = Told::What::kRestart};
      default:
        return {.event = event, .what = Told::What::kWork, .at = rule.at};
    }
  }
  if (rule.kind == Rule::Kind::kEnding) return {.event = event, .what = Told::What::kEnding, .ending = rule.ending};
  return {.event = event,
          .what = Told::What::kComplaint,
          .heavy = rule.kind == Rule::Kind::kSignature && rule.strength != Strength::kHint,
          .decisive = rule.kind == Rule::Kind::kSignature && rule.strength == Strength::kDecisive};
}

/// The scheduler's word that stands shortly in front of such a line is of what follows it.
void PutInFront(const Timeline& timeline, EventIndex heading, std::vector<Told>& told) {
  constexpr std::uint64_t kReportLines = 32;
  const SourcePos where = timeline.events[heading].where;
  for (auto line = told.rbegin(); line != told.rend(); ++line) {
    const SourcePos there = timeline.events[line->event].where;
    if (there.input != where.input || there.line + kReportLines < where.line) return;
    if (line->what != Told::What::kEnding || line->ending != EndingKind::kScheduler) continue;
    line->ending = EndingKind::kInFront;
    return;
  }
}

/// The number at which the program is to end, or to begin, by the groups that the line gives.
std::optional<Told> GoalOf(const LineMatch& line) {
  static constexpr std::pair<std::string_view, Goal> kGoals[] = {
      {"epochs", Goal::kEpochs}, {"steps", Goal::kSteps}, {"from", Goal::kFrom}};
  for (const auto& [name, value] : line.groups)
    for (const auto& [word, goal] : kGoals)
      if (name.starts_with(word) && !Numbers(value).empty())
        return Told{.event = line.event,
                    .what = Told::What::kGoal,
                    .goal = goal,
                    .number = static_cast<std::uint64_t>(Numbers(value).front())};
  return std::nullopt;
}

/// Work that a rank can be late at; that some counter moved says only that the job lived.
bool IsWork(const Told& told) {
  return told.what == Told::What::kWork && told.at != Activity::kProgress && told.at != Activity::kBar &&
         told.at != Activity::kRows && told.at != Activity::kRecovered;
}

/// Plain lines of one writer that differ in their numbers only: something is counted or measured, whatever it is
/// called.
class Rows {
 public:
  static constexpr std::size_t kColumns = 3;  ///< of a table of numbers alone
  /// Whether this is such a line, behind at least two more.
  bool Take(const Event& event) {
    const auto& rank = event.origin.rank;
    std::string shape = fmt::format("{}|{}|", event.where.input, rank ? std::to_string(rank->value.value) : "");
    bool number = false, letter = false, apart = true;
    std::size_t columns = 0;
    for (const char c : std::string_view(event.text).substr(0, kCitedBytes)) {
      const bool digit = IsDigit(c);
      number = number || digit;
      letter = letter || IsLetter(c);
      columns += digit && apart ? 1 : 0;
      apart = c == ' ' || c == '\t';
      if (!digit && c != '.' && c != ' ')
        shape += c;
      else if (digit && shape.back() != '0')
        shape += '0';
    }
    Seen& seen = seen_[shape];
    if (!number || (!letter && shape.size() < 8 && columns < kColumns) || seen.text == event.text) return false;
    seen.text = event.text;
    // A list of settings: `gradient_clipping ............ 1.0`.
    if (event.text.find(" .....") != std::string::npos) return false;
    return ++seen.times > 2;
  }

 private:
  struct Seen {
    std::string text;
    int times = 0;
  };
  std::map<std::string, Seen> seen_;
};

/// What any program may print, in the middle too.
bool IsWeakEnding(const Told& told) {
  static constexpr EndingKind kWeak[] = {EndingKind::kFigures, EndingKind::kSavedOnce, EndingKind::kScores,
                                         EndingKind::kShell};
  return told.what == Told::What::kEnding && std::ranges::find(kWeak, told.ending) != std::end(kWeak);
}

/// How the job went by what is told. Where nobody tells how it ended, the last lines of its logs are weighed, and none
/// of them may look cut off; and what looks like that had no end of which words alone tell that anybody may print.
Course CourseOf(const Timeline& timeline, const RuleBook& book, std::vector<Told>& told) {
  constexpr std::size_t kMostInputs = 16;  ///< a larger job has somebody who tells
  Course course(timeline, told);
  if (course.failed() || timeline.inputs.size() > kMostInputs) return course;
  if (!course.endings().empty() && std::ranges::none_of(told, IsWeakEnding)) return course;  // who knows has told
  course.LookForChatter(told);
  std::vector<Told> farewells;
  const auto ended = [&](std::uint32_t input) {
    return course.endings().empty() || std::ranges::any_of(course.endings(), [&](EventIndex ending) {
             return timeline.events[ending].where.input == input;
           });
  };
  bool cut_off = false;
  for (std::uint32_t input = 0; input < timeline.inputs.size(); ++input) {
    const std::optional<Farewell> end = FarewellOf(timeline, book, course, input);
    cut_off = cut_off || (end && end->well < thresholds::kCutOffByItsEnd && ended(input));
    if (end && end->well >= thresholds::kWellByItsEnd)
      farewells.push_back({.event = end->last, .what = Told::What::kEnding, .ending = EndingKind::kFarewell});
  }
  std::vector<EventIndex> ends(course.endings().begin(), course.endings().end());
  if (ends.empty())
    for (const Told& end : farewells) ends.push_back(end.event);
  // A launcher whose last words are of trouble speaks of those whose own last words look well.
  const auto ends_in_trouble = [&](const Told& line) {
    const SourcePos& where = timeline.events[line.event].where;
    return line.what == Told::What::kGrumble &&
           where.line + where.parts + kLastWords > timeline.inputs[where.input].lines &&
           std::ranges::all_of(ends, [&](EventIndex end) {
             return timeline.events[end].where.input != where.input &&
                    timeline.Order(line.event, end) == std::partial_ordering::greater;
           });
  };
  cut_off = cut_off || (!ends.empty() && std::ranges::any_of(told, ends_in_trouble));
  if (cut_off) {
    if (course.endings().empty()) return course;
    std::erase_if(told, IsWeakEnding);
  } else {
    if (!course.endings().empty() || farewells.empty()) return course;
    told.insert(told.end(), farewells.begin(), farewells.end());
    std::ranges::stable_sort(told, {}, &Told::event);
  }
  return Course(timeline, told);
}

}  // namespace

Evidence Gather(const Timeline& timeline, const RuleBook& book) {
  std::vector<LineMatch> matches;
  std::vector<PhaseSeen> phases;
  std::vector<Told> told;
  Rows rows;
  std::vector<std::uint32_t> asked;
  std::vector<std::uint32_t> last_lines, last_words_of_all;
  std::vector<std::string_view> errno_causes;
  for (const Cause& cause : book.causes)
    if (cause.Is("by-errno")) errno_causes.push_back(cause.code);
  for (std::uint32_t i = 0; i < book.rules.size(); ++i)
    if (const Rule& rule = book.rules[i]; !rule.scope.empty() || rule.at == Activity::kTraining) {
      last_lines.push_back(i);
      if (rule.kind == Rule::Kind::kEnding || IsOfTrouble(rule.says)) last_words_of_all.push_back(i);
    }
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* message = std::get_if<LogMessage>(&timeline.events[i].what);
    if (message == nullptr) continue;
    // What is said of a goal, or of who the job is, says nothing of how it went.
    bool plain = std::ranges::all_of(message->hits, [&](std::uint32_t hit) {
      const Rule::Says says = book.rules[hit].says;
      return says == Rule::Says::kGoal || IsOfNames(says);
    });
    // What is asked for everywhere is seen by the sieve; at the end of an input its end is asked of all.
    const SourcePos& where = timeline.events[i].where;
    const bool last_words = where.input >= timeline.inputs.size() ||
                            where.line + where.parts + kLastWords > timeline.inputs[where.input].lines;
    asked = message->hits;
    const std::vector<std::uint32_t>& more = plain ? last_lines : last_words_of_all;
    if (plain || last_words) asked.insert(asked.end(), more.begin(), more.end());
    const std::string_view text = MessageOf(timeline.events[i]);
    std::optional<Lowered> lower;
    if (asked.size() > message->hits.size() && text.size() <= kLowered) lower.emplace(text);
    for (std::size_t number = 0; number < asked.size(); ++number) {
      const std::uint32_t rule = asked[number];
      if (number >= message->hits.size() && lower && !lower->HasWordOf(book.rules[rule])) continue;
      if (!ComponentFits(book.rules[rule].component, message->component)) continue;
      const Pattern& pattern = book.rules[rule].Expression();
      const auto match = pattern.Search(text);
      if (!match) continue;
      LineMatch line{rule, i, NamedGroups(pattern, *match)};
      const Rule& held = book.rules[rule];
      if (std::ranges::find(errno_causes, held.cause) != errno_causes.end() && IsOfTransport(text)) continue;
      const std::optional<bool> at_end = AllAtEnd(line.groups);
      if (at_end == false && held.kind == Rule::Kind::kEnding) continue;
      if (held.says == Rule::Says::kGoal) {
        if (const auto goal = GoalOf(line)) told.push_back(*goal);
        matches.push_back(std::move(line));
        continue;
      }
      if (!GroupOf(line.groups, "none").empty()) continue;
      if (IsOfNames(held.says)) {
        matches.push_back(std::move(line));
        continue;
      }
      if (held.says == Rule::Says::kHeading) PutInFront(timeline, i, told);
      plain = false;
      if (held.kind == Rule::Kind::kPhase && held.says != Rule::Says::kHeading) {
        PhaseSeen phase{rule, held.at, i, std::nullopt};
        for (const std::string_view group : {"percent", "percent2"})
          if (const std::vector<int> percent = Numbers(GroupOf(line.groups, group)); !percent.empty())
            phase.percent = percent.front();
        if (at_end == true) phase.percent = 100;
        Told line_told = ToldBy(held, i);
        line_told.percent = phase.percent;
        if (IsWork(line_told)) phases.push_back(phase);
        told.push_back(line_told);
      } else if (held.kind != Rule::Kind::kPhase) {
        Told line_told = ToldBy(held, i);
        line_told.heavy = line_told.heavy && (line_told.decisive || !IsSurvived(timeline, i));
        told.push_back(line_told);
      }
      matches.push_back(std::move(line));
    }
    if (plain && rows.Take(timeline.events[i]))
      told.push_back({.event = i, .what = Told::What::kWork, .at = Activity::kRows});
  }
  Course course = CourseOf(timeline, book, told);
  // Which lines of a kernel log count is known once it is known when the job had its trouble.
  KernelScope scope(timeline, book, course);
  const auto is_outside = [&](const auto& line) {
    return scope.Of(timeline.events[line.event]) != KernelScope::Outside::kNo;
  };
  std::erase_if(matches, is_outside);
  std::erase_if(phases, is_outside);
  // Rows whose numbers go up and down are of several runs, or of none: nobody was at that when last heard of.
  std::erase_if(phases, [&](const PhaseSeen& phase) {
    return phase.at == Activity::kTraining && course.worked() && !course.CountsSteps(phase.event);
  });
  std::erase_if(told, is_outside);
  return {timeline, book, std::move(matches), std::move(phases), std::move(scope), std::move(told), std::move(course)};
}

std::vector<Finding> MatchSignatures(const Evidence& evidence) {
  struct Held {
    Finding finding;
    bool warned = true;
    Blame blame;
    std::set<std::pair<std::uint32_t, std::optional<GlobalRank>>> cited;
  };
  std::map<std::uint32_t, Held> held;
  for (const LineMatch& match : evidence.matches) {
    const Rule& rule = evidence.book.rules[match.rule];
    if (rule.kind == Rule::Kind::kPhase || rule.kind == Rule::Kind::kEnding) continue;
    const auto [it, is_new] = held.try_emplace(match.rule);
    Held& h = it->second;
    if (is_new) h.finding = FindingOf(rule);
    ++h.finding.times;
    h.warned = h.warned && IsWarning(evidence.timeline, match.event);
    // A kernel's line on a device or process of a rank blames the rank, not only its host.
    const bool joined = evidence.timeline.process_by_kernel_line.contains(evidence.timeline.events[match.event].where);
    if (rule.blames == Rule::Blames::kPrinter || (rule.blames == Rule::Blames::kHost && joined))
      AddPrinter(evidence.timeline, match, h.blame);
    if (rule.blames == Rule::Blames::kCaptured) AddCaptured(match, h.blame);
    if (rule.blames == Rule::Blames::kHost && !joined) AddHost(evidence.timeline, match, h.blame);
    const auto rank = evidence.timeline.RankOf(evidence.timeline.events[match.event]);
    const bool another_writer = h.cited
                                    .insert({evidence.timeline.events[match.event].where.input,
                                             rank ? std::optional(rank->value) : std::nullopt})
                                    .second;
    if ((another_writer || h.finding.citations.size() < 2) && h.finding.citations.size() < kCitedPerRule)
      h.finding.citations.push_back(Cite(evidence.timeline, match.event,
                                         rule.kind == Rule::Kind::kSymptom ? LineRole::kSymptom : LineRole::kCause));
  }
  std::vector<Finding> findings;
  for (auto& [rule, h] : held) {
    // What a program logs as a warning, it survives.
    if (h.warned && h.finding.strength == Strength::kSupporting) {
      h.finding.strength = Strength::kHint;
      h.finding.confidence = std::min(h.finding.confidence, thresholds::kOfAWarning);
    }
    h.finding.culprits = CulpritsOf(evidence.timeline, h.blame, h.finding.claim);
    findings.push_back(std::move(h.finding));
  }
  return findings;
}

Citation Cite(const Timeline& timeline, EventIndex index, LineRole role) {
  const Event& event = timeline.events[index];
  Citation out{index, role, event.where, event.at, std::nullopt, event.text};
  if (const auto rank = timeline.RankOf(event)) out.rank = rank->value;
  return out;
}

Culprit BlameRank(const Timeline& timeline, GlobalRank rank, std::string why) {
  Culprit culprit;
  culprit.rank = rank;
  culprit.why = std::move(why);
  if (timeline.hosts.size() == 1 && timeline.logs == 1) culprit.host = timeline.hosts.front();
  const RankRow* row = timeline.FindRank(rank);
  if (row != nullptr && row->host) culprit.host = row->host;
  if (row == nullptr || !row->process) return culprit;
  const ProcessRow& process = timeline.processes[*row->process];
  if (process.host) culprit.host = process.host;
  culprit.pid = process.pid;
  culprit.gpu_index = process.nvml_dev ? process.nvml_dev : process.cuda_dev;
  culprit.bus_id = process.bus_id;
  return culprit;
}

CollectiveRef RefOf(const Timeline& timeline, const CollectiveRow& row) {
  CollectiveRef ref;
  ref.op = row.work.op;
  if (row.work.seq) ref.seq = row.work.seq->value;
  ref.numel_in = row.work.numel_in;
  ref.numel_out = row.work.numel_out;
  ref.timeout_ms = row.work.timeout_ms;
  const GroupRow& group = timeline.groups[row.group];
  if (!group.desc.empty() || !group.name.empty()) ref.process_group = group.desc.empty() ? group.name : group.desc;
  for (const auto& waiter : row.waiters) {
    ref.ranks_waiting.Add(waiter.rank.value);
    if (waiter.enqueued_at && (!ref.waiting_since || waiter.enqueued_at->at < ref.waiting_since->at))
      ref.waiting_since = waiter.enqueued_at;
  }
  return ref;
}

}  // namespace inquest
