// What a rank was at: its stack, or the last phase that its lines tell.
#include "rules/phases.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace inquest {
namespace {

bool IsOver(const std::string& kind) { return kind == "training" || kind == "serving" || kind == "done"; }

/// A logger that puts its rank into some lines only: those without it go on where it stopped.
bool GoesOn(const Timeline& timeline, const PhaseSeen& last, const PhaseSeen& phase) {
  const Event &before = timeline.events[last.event], &event = timeline.events[phase.event];
  const auto of = timeline.RankOf(before);
  return IsOver(phase.kind) && of && of->rule == kBracketRule && before.where.input == event.where.input;
}

/// The last time that somebody looked.
std::optional<Doing> StackOf(const Timeline& timeline, int rank) {
  std::optional<Doing> last;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* stack = std::get_if<StackSeen>(&timeline.events[i].what);
    if (stack == nullptr || stack->at.empty()) continue;
    const auto of = timeline.RankOf(timeline.events[i]);
    if (of && of->value.value == rank) last = Doing{stack->at, i, std::nullopt, "its stack: " + stack->frame};
  }
  return last;
}

}  // namespace

bool IsDelay(const Doing& doing) {
  static constexpr std::array<std::string_view, 5> kDelays = {"data-preparation", "checkpoint", "compile", "evaluation", "loading"};
  return std::find(kDelays.begin(), kDelays.end(), doing.kind) != kDelays.end() && doing.percent.value_or(0) < 100;
}

std::optional<Doing> LastDoing(const Evidence& evidence, std::optional<int> rank) {
  const Timeline& timeline = evidence.timeline;
  if (rank)
    if (auto stack = StackOf(timeline, *rank)) return stack;
  const PhaseSeen* last = nullptr;
  for (const PhaseSeen& phase : evidence.phases) {
    const auto of = timeline.RankOf(timeline.events[phase.event]);
    const bool ours = rank ? (of ? of->value.value == *rank : last != nullptr && GoesOn(timeline, *last, phase)) : !of;
    if (!ours) continue;
    // A bar and what stands behind it on one line: the bar was before.
    if (last != nullptr && last->event == phase.event && !IsOver(last->kind) && phase.kind == "training") continue;
    last = &phase;
  }
  if (last == nullptr) return std::nullopt;
  return Doing{last->kind, last->event, last->percent, "its last line: " + evidence.book.rules[last->rule].summary};
}

AtWork WorkOf(const Evidence& evidence, const std::set<int>& ranks) {
  AtWork out;
  for (const int rank : ranks) {
    const auto own = LastDoing(evidence, rank);
    if (!own || !IsDelay(*own)) continue;
    if (!out.doing) out.doing = own;
    out.ranks.push_back(rank);
    out.named = true;
  }
  if (out.doing) return out;
  const auto somebody = LastDoing(evidence, std::nullopt);
  if (somebody && IsDelay(*somebody)) out.doing = somebody;
  return out;
}

std::string_view CauseOf(const Doing& doing) { return doing.kind == "compile" ? "jit-build-stall" : "slow-rank"; }

std::string InWords(const Doing& doing) { return doing.kind + (doing.percent ? fmt::format(", {} %", *doing.percent) : std::string()); }

}  // namespace inquest
