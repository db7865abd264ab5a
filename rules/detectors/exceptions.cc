// A rank died of an exception that no signature names.
//
// What holds: a traceback ended in an exception, and neither a symptom nor a signature speaks of that line. Why that
// implies the cause: Python prints a traceback and leaves; a rank that leaves makes the others wait. What looks like
// it: the launcher's own traceback, which only repeats that a child failed; survivors' errors after an abort, which
// symptoms name; an exception that the program caught and logged, which a good ending afterwards tells.
#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/raised.h"
#include "rules/thresholds.h"
#include "timeline/shape.h"

namespace inquest {
namespace exceptions {

constexpr FindingRow kFindings[] = {
    {"uncaught-exception", "uncaught doubtful told-elsewhere", "who type where"},
};
using Found = FoundIn<kFindings>;

constexpr std::uint64_t kMessageLines = 8;  ///< lines of a message below its exception that still belong to it

std::string_view LastName(std::string_view type) {
  const std::size_t dot = type.rfind('.');
  return dot == std::string_view::npos ? type : type.substr(dot + 1);
}

/// Ray names what its task raised: `RayTaskError(ValueError)`.
std::string_view Quoted(std::string_view name) {
  static constexpr std::string_view kHead = "RayTaskError(";
  return name.starts_with(kHead) && name.ends_with(')') ? name.substr(kHead.size(), name.size() - kHead.size() - 1)
                                                        : name;
}

bool QuotesATask(const ExceptionRaised& raised) { return LastName(raised.type).starts_with("RayTaskError"); }

/// Exceptions that tell of another process' end, or of a signal.
bool TellsOfAnother(const ExceptionRaised& raised) {
  static constexpr std::array<std::string_view, 22> kNames = {"ChildFailedError",
                                                              "CalledProcessError",
                                                              "SignalException",
                                                              "KeyboardInterrupt",
                                                              "ProcessRaisedException",
                                                              "ProcessExitedException",
                                                              "SystemExit",
                                                              "DistBackendError",
                                                              "DistNetworkError",
                                                              "DistStoreError",
                                                              "BrokenPipeError",
                                                              "ConnectionResetError",
                                                              "RayActorError",
                                                              "ActorDiedError",
                                                              "WorkerCrashedError",
                                                              "ActorUnavailableError",
                                                              "NodeDiedError",
                                                              "BrokenProcessPool",
                                                              "TerminatedWorkerError",
                                                              "WorkerLostError",
                                                              "CommClosedError",
                                                              "StreamClosedError"};
  const std::string_view name = Quoted(LastName(raised.type));
  if (std::find(kNames.begin(), kNames.end(), name) != kNames.end()) return true;
  const auto last_in = [&](std::string_view file) {
    return !raised.stack.empty() && raised.stack.back().find(file) != std::string::npos;
  };
  // Until 1.7 mp.spawn raised a bare Exception, whose message quotes the child's; a pipe ends with its other side, and
  // vLLM's engine waits for an answer of a worker in its queue, whose end is the queue's.
  return (name == "Exception" && last_in("multiprocessing/spawn.py")) || last_in("/shm_broadcast.py:") ||
         (name == "EOFError" && last_in("multiprocessing/connection.py"));
}

bool SameWriter(const Event& a, const Event& b) {
  return a.where.input == b.where.input && a.origin.pid == b.origin.pid && a.origin.writer == b.origin.writer &&
         (a.origin.rank ? b.origin.rank && a.origin.rank->value == b.origin.rank->value : !b.origin.rank);
}

// The message of an exception goes on below its line ("Last error:" and what NCCL said), until the next one begins.
bool MessageIs(const std::vector<bool>& flags, const Timeline& timeline, EventIndex index) {
  const Event& event = timeline.events[index];
  for (EventIndex i = index; i-- > 0 && timeline.events[i].where == event.where;)
    if (flags[i]) return true;
  for (EventIndex i = index; i < timeline.events.size() && timeline.events[i].where.input == event.where.input &&
                             timeline.events[i].where.line <= event.where.line + kMessageLines;
       ++i) {
    const bool next = i != index && timeline.events[i].where != event.where &&
                      std::holds_alternative<ExceptionRaised>(timeline.events[i].what);
    if (next && SameWriter(timeline.events[i], event)) return false;
    if (flags[i] && SameWriter(timeline.events[i], event)) return true;
  }
  return false;
}

/// The last exception of the chain that this one began, or the interrupt that ended it; itself where it stands alone.
EventIndex EndOfChain(const Timeline& timeline, EventIndex index) {
  if (!std::get<ExceptionRaised>(timeline.events[index].what).chained_first) return index;
  for (EventIndex i = index + 1; i < timeline.events.size(); ++i) {
    const What& what = timeline.events[i].what;
    const auto* next = std::get_if<ExceptionRaised>(&what);
    const bool ends = (next != nullptr && !next->chained_first) || IsStopByHand(what);
    if (ends && SameWriter(timeline.events[i], timeline.events[index])) return i;
  }
  return index;
}

/// Raised to tell whoever handles it that there is no more of something, or within Python's own library: what is wrong
/// was found by the handler.
bool OnlyTellsItsHandler(const ExceptionRaised& raised) {
  static constexpr std::array<std::string_view, 4> kNames = {"StopIteration", "StopAsyncIteration", "GeneratorExit",
                                                             "Empty"};
  const auto is_pythons = [](const std::string& frame) {
    return frame.find("/lib/python") != std::string::npos && frame.find("-packages/") == std::string::npos;
  };
  return std::find(kNames.begin(), kNames.end(), LastName(raised.type)) != kNames.end() ||
         (!raised.stack.empty() && std::ranges::all_of(raised.stack, is_pythons));
}

/// Raised in the launcher itself, which only reports or suffers what happened to its children; unless it had none yet.
bool InLauncher(const ExceptionRaised& raised) {
  const auto reads_its_options = [](const std::string& frame) {
    return frame.ends_with(" in config_from_args") || frame.ends_with(" in _validate_launch_command");
  };
  if (std::ranges::any_of(raised.stack, reads_its_options)) return false;
  const auto launcher = [](const std::string& frame) {
    // @record wraps the user's own main as well as the launcher's.
    if (frame.find("elastic/multiprocessing/errors/") != std::string::npos) return false;
    return frame.find("torch/distributed/elastic/") != std::string::npos ||
           frame.find("torch/distributed/launch") != std::string::npos ||
           frame.find("torch/distributed/run.py") != std::string::npos ||
           frame.find("bin/torchrun") != std::string::npos || frame.find("bin/accelerate") != std::string::npos ||
           frame.find("deepspeed/launcher/") != std::string::npos;
  };
  return std::any_of(raised.stack.begin(), raised.stack.end(), launcher) || launcher(raised.frame);
}

/// One process says so again and again, or much of the kind out of one file: it died of none but perhaps the last.
class Repeated {
 public:
  explicit Repeated(const Timeline& timeline) {
    for (const Event& event : timeline.events)
      if (const auto* raised = RaisedBy(event)) {
        ++times_[KeyOf(event, raised->type, raised->frame)];
        if (!raised->chained_first) ++times_[KeyOf(event, {}, FileOf(raised->frame))];
      }
  }
  bool Is(const Event& event) const {
    constexpr int kOften = 3, kOftenOfFile = 8;
    const auto* raised = RaisedBy(event);
    return raised != nullptr && (Times(KeyOf(event, raised->type, raised->frame)) >= kOften ||
                                 Times(KeyOf(event, {}, FileOf(raised->frame))) >= kOftenOfFile);
  }

 private:
  using Key = std::tuple<std::uint32_t, std::int64_t, std::string_view, std::string_view>;
  static const ExceptionRaised* RaisedBy(const Event& event) {
    return event.origin.pid && TellsApart(*event.origin.pid) ? std::get_if<ExceptionRaised>(&event.what) : nullptr;
  }
  static Key KeyOf(const Event& event, std::string_view type, std::string_view place) {
    return {event.where.input, *event.origin.pid, type, place};
  }
  /// Of `/srv/train.py:61 in main`.
  static std::string_view FileOf(std::string_view frame) { return frame.substr(0, frame.find(':')); }
  int Times(const Key& key) const {
    const auto known = times_.find(key);
    return known == times_.end() ? 0 : known->second;
  }
  std::map<Key, int> times_;
};

/// The same writer went on working, or the job did, for long if anything in it failed: somebody caught it and logged
/// it.
bool Caught(const Evidence& evidence, EventIndex index) {
  const Timeline& timeline = evidence.timeline;
  if (evidence.course.failed() ? evidence.course.LongOutlived(index) : evidence.course.WentOn(index)) return true;
  int later = 0;
  for (const PhaseSeen& phase : evidence.phases)
    later += phase.event > index && SameWriter(timeline.events[phase.event], timeline.events[index]) &&
                     (phase.at == Activity::kTraining || phase.at == Activity::kEvaluation)
                 ? 1
                 : 0;
  if (later >= 2) return true;
  static const Pattern kWentOn(
      R"((?i)\bretry(?:ing)?\b|\battempt \d+ (?:of \d+ )?succeeded|\bsucceeded\b|\brecovered\b|\b(?:skipping|ignoring) (?:it|this|the|sample|batch|file))");
  const Event& event = timeline.events[index];
  for (EventIndex i = index; i < timeline.events.size() && timeline.events[i].where.input == event.where.input &&
                             timeline.events[i].where.line <= event.where.line + 3;
       ++i)
    if (timeline.events[i].where.line > event.where.line && kWentOn.Matches(timeline.events[i].text)) return true;
  return false;
}

/// Lines below an exception that a parent process wrote: they report the death, they are not its message.
bool ParentReports(const Rule& rule) {
  return rule.of_parent || rule.cause == "interrupted" || rule.cause == "host-oom";
}

/// By event: its line is a symptom, of whatever kind.
std::vector<bool> Lines(const Evidence& evidence) {
  std::vector<bool> out(evidence.timeline.events.size());
  for (const LineMatch& match : evidence.matches)
    if (evidence.book.rules[match.rule].kind == Rule::Kind::kSymptom) out[match.event] = true;
  return out;
}

bool SameLine(const std::vector<bool>& flags, const Timeline& timeline, EventIndex index) {
  const SourcePos where = timeline.events[index].where;
  for (EventIndex i = index; i < timeline.events.size() && timeline.events[i].where == where; ++i)
    if (flags[i]) return true;
  for (EventIndex i = index; i-- > 0 && timeline.events[i].where == where;)
    if (flags[i]) return true;
  return false;
}

/// By event: its line holds a message of this kind of rule.
std::vector<bool> Messages(const Evidence& evidence, Rule::Kind kind, Strength least = Strength::kHint) {
  std::vector<bool> out(evidence.timeline.events.size());
  for (const LineMatch& match : evidence.matches) {
    const Rule& rule = evidence.book.rules[match.rule];
    const bool strong = kind != Rule::Kind::kSignature || rule.strength >= least;
    if (rule.kind == kind && strong && !ParentReports(rule)) out[match.event] = true;
  }
  return out;
}

/// The finding of what was raised alike: of one type, at one place or in the same words. What a compiler writes has a
/// place of its own in each process.
class Seen {
 public:
  std::optional<std::size_t> Find(const ExceptionRaised& raised) const {
    for (const std::string& key : KeysOf(raised))
      if (const auto known = findings_.find(key); known != findings_.end()) return known->second;
    return std::nullopt;
  }
  void Add(const ExceptionRaised& raised, std::size_t finding) {
    for (std::string& key : KeysOf(raised)) findings_.emplace(std::move(key), finding);
  }

 private:
  static std::vector<std::string> KeysOf(const ExceptionRaised& raised) {
    constexpr std::size_t kTelling = 24, kLongest = 120;  // bytes
    std::vector<std::string> keys = {fmt::format("{}|at {}", raised.type, raised.frame)};
    const std::string words = ShapeOf(std::string_view(raised.message).substr(0, kLongest));
    if (words.size() >= kTelling) keys.push_back(fmt::format("{}|says {}", raised.type, words));
    return keys;
  }
  std::map<std::string, std::size_t> findings_;
};

/// Behind its word that a child of its is gone a parent raises because of that. What a task raised Ray quotes, and such
/// a word may stand in there.
class DeathsTold {
 public:
  explicit DeathsTold(const Evidence& evidence) : timeline_(evidence.timeline) {
    for (const LineMatch& match : evidence.matches)
      if (evidence.book.rules[match.rule].tells_death && told_.size() < kMost) told_.push_back(match.event);
  }
  bool Explain(EventIndex index) const {
    const Event& event = timeline_.events[index];
    const bool quotes = QuotesATask(std::get<ExceptionRaised>(event.what));
    return std::ranges::any_of(told_, [&](EventIndex told) {
      const SourcePos where = timeline_.events[told].where;
      const bool holds = quotes ? event.where < where && where.line <= event.where.line + kQuoted : where < event.where;
      return holds && SameWriter(timeline_.events[told], event);
    });
  }

 private:
  static constexpr std::size_t kMost = 64;
  static constexpr std::uint64_t kQuoted = 40;  ///< lines
  const Timeline& timeline_;
  std::vector<EventIndex> told_;
};

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  const DeathsTold deaths(evidence);
  const std::vector<bool> on_line = Lines(evidence), symptoms = Messages(evidence, Rule::Kind::kSymptom),
                          signatures = Messages(evidence, Rule::Kind::kSignature);
  const std::vector<bool> strong = Messages(evidence, Rule::Kind::kSignature, Strength::kSupporting);
  const Repeated repeated(timeline);
  std::vector<Relation> out;
  Seen seen;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* raised = std::get_if<ExceptionRaised>(&timeline.events[i].what);
    if (raised == nullptr || raised->ignored || (EndsAThread(*raised) && evidence.course.WentOn(i)) ||
        TellsOfAnother(*raised) || SameLine(on_line, timeline, i) || MessageIs(symptoms, timeline, i) ||
        (OnlyTellsItsHandler(*raised) && EndOfChain(timeline, i) != i))
      continue;
    const auto rank = RankOfRaised(timeline, i);
    if (const auto same = seen.Find(*raised)) {
      Relation& found = out[*same];
      ++found.times;
      const bool known = std::any_of(found.culprits.begin(), found.culprits.end(),
                                     [&](const Culprit& c) { return rank && c.rank == rank->value; });
      if (rank && !known) found.culprits.push_back(BlameRank(timeline, rank->value, "raised " + raised->type));
      continue;
    }
    const EventIndex end = EndOfChain(timeline, i);
    const auto tells = [&](const std::vector<bool>& rules) {
      return MessageIs(rules, timeline, i) || (end != i && MessageIs(rules, timeline, end));
    };
    const bool named = tells(strong) || (end != i && MessageIs(symptoms, timeline, end)) || InLauncher(*raised) ||
                       repeated.Is(timeline.events[i]) || Caught(evidence, i) || deaths.Explain(i);
    // A signature says it better, but for a hint; a thread's end is not its process'; one line without its stack may
    // have been caught; Ray's quotes another.
    const bool doubtful = tells(signatures) || raised->stack.empty() || EndsAThread(*raised) || QuotesATask(*raised);
    Found found({"uncaught-exception", "uncaught"});
    if (named)
      found.Grade({"uncaught-exception", "told-elsewhere"});
    else if (doubtful)
      found.Grade({"uncaught-exception", "doubtful"});
    found.Say("who", rank ? fmt::format("Rank {} died of", rank->value.value) : std::string("A process died of"));
    found.Say("type", std::string(LastName(raised->type)));
    found.Say("where", raised->frame.empty() ? "" : " raised at " + raised->frame);
    if (rank) found.culprits.push_back(BlameRank(timeline, rank->value, "raised " + raised->type));
    found.citations.push_back(Cite(timeline, i, LineRole::kCause));
    seen.Add(*raised, out.size());
    out.push_back(std::move(found));
  }
  return out;
}

}  // namespace exceptions

const Detector kExceptions{"uncaught-exception", "A rank died of an exception that no signature names.",
                           exceptions::kFindings, &exceptions::Run};

}  // namespace inquest
