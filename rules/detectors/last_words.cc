// A program said that it failed, and then nothing.
//
// What holds: the last words of an input, but for what launchers and shells add, say that their program failed; nothing
// in all that was given names another cause, and no work follows. Why that implies the cause: whoever prints an error
// and leaves has ended of it; languages without tracebacks show it in no other way. What looks like it: an error that
// the program got over, whose log was cut there; hence a hint, and only where nothing else speaks.
#include <algorithm>
#include <set>

#include "rules/detectors.h"
#include "rules/thresholds.h"
#include "timeline/ends.h"

namespace inquest {
namespace last_words {

constexpr FindingRow kFindings[] = {
    {"ended-on-own-error", "and-left last", "who what"},
};
using Found = FoundIn<kFindings>;

constexpr std::size_t kWordsBehind = 4;  ///< lines that a program adds to its error
constexpr std::size_t kQuoted = 80;      ///< bytes of it in a sentence

/// Something else says why the job ended, or that it did not end there.
bool AnotherCause(const Evidence& evidence) {
  if (evidence.course.ended_well()) return true;
  const auto speaks = [](const Event& event) {
    const auto* exit = std::get_if<ProcessExit>(&event.what);
    const auto* raised = std::get_if<ExceptionRaised>(&event.what);
    return (exit != nullptr && exit->signal) || (raised != nullptr && !raised->ignored) ||
           std::holds_alternative<WorkTimedOut>(event.what) || std::holds_alternative<HeartbeatLost>(event.what) ||
           std::holds_alternative<JobStopped>(event.what);
  };
  if (std::ranges::any_of(evidence.timeline.events, speaks)) return true;
  const std::vector<std::string>& explained = GradeOf(evidence.book, kFindings[0].id, "last").explains;
  return std::ranges::any_of(evidence.matches, [&](const LineMatch& match) {
    const Rule& rule = evidence.book.rules[match.rule];
    const bool cause = rule.kind == Rule::Kind::kSignature && rule.confidence >= thresholds::kLeastConfidence;
    // What is a consequence of something else has that for its cause.
    const bool consequence =
        rule.kind == Rule::Kind::kSymptom && std::ranges::find(explained, rule.id) == explained.end();
    return (cause || consequence) && !evidence.course.WentOn(match.event);
  });
}

/// The first of the last words of the input that say so; nullopt: others follow, or none do.
std::optional<EventIndex> LastErrorOf(const Evidence& evidence, std::uint32_t input) {
  std::set<EventIndex> gave_up, told, begins;
  for (const LineMatch& match : evidence.matches) {
    const Rule& rule = evidence.book.rules[match.rule];
    if (rule.says == Rule::Says::kGaveUp)
      gave_up.insert(match.event);
    else if (rule.says == Rule::Says::kBegins)
      begins.insert(match.event);
    else if (rule.kind == Rule::Kind::kSymptom)
      told.insert(match.event);
  }
  const Timeline& timeline = evidence.timeline;
  std::optional<EventIndex> out;
  std::set<std::uint64_t> behind;
  for (auto i = static_cast<EventIndex>(timeline.events.size()); i-- > 0 && behind.size() <= kWordsBehind;) {
    const Event& event = timeline.events[i];
    if (event.where.input != input || !std::holds_alternative<LogMessage>(event.what) || told.contains(i)) continue;
    if (gave_up.contains(i)) {
      out = i;
      behind.clear();
      continue;
    }
    if (!out && begins.contains(i)) return std::nullopt;  // it tries again
    if (out) break;                                       // the first of several in a row
    if (event.text.find_first_not_of(" \t-=*#~+_|") != std::string::npos) behind.insert(event.where.line);
  }
  return out && !evidence.course.CountedOn(*out) && !evidence.course.LoopRanBehind(*out) ? out : std::nullopt;
}

std::string Quoted(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t*#-="), text.size()));
  return text.size() <= kQuoted ? std::string(text) : std::string(text.substr(0, kQuoted)) + "...";
}

std::vector<Relation> Run(const Evidence& evidence) {
  if (AnotherCause(evidence)) return {};
  const Timeline& timeline = evidence.timeline;
  const bool left = std::ranges::any_of(timeline.events, [](const Event& event) { return IsBadExit(event.what); });
  std::vector<Relation> out;
  for (std::uint32_t input = 0; input < timeline.inputs.size(); ++input) {
    const auto error = LastErrorOf(evidence, input);
    if (!error) continue;
    const Event& event = timeline.events[*error];
    const auto rank = timeline.RankOf(event);
    Found found({"ended-on-own-error", "last"});
    if (left) found.Grade({"ended-on-own-error", "and-left"});
    found.Say("who", rank ? "Rank " + std::to_string(rank->value.value) + "'s" : "A program's");
    found.Say("what", Quoted(MessageOf(event)));
    if (rank) found.culprits.push_back(BlameRank(timeline, rank->value, "said that it failed"));
    found.citations.push_back(Cite(timeline, *error, LineRole::kCause));
    out.push_back(std::move(found));
  }
  return out;
}

}  // namespace last_words

extern const Detector kLastWordsDetector{"last-words", "A program said that it failed, and then nothing.",
                                         last_words::kFindings, &last_words::Run};

}  // namespace inquest
