// What a rank was at: its stack, or the last phase that its lines tell.
#include "rules/phases.h"
#include "rules/thresholds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

namespace inquest {
namespace {

bool IsOver(Activity at) { return at == Activity::kTraining || at == Activity::kServing || at == Activity::kDone; }

/// A logger that puts its rank into some lines only: those without it go on where it stopped.
bool GoesOn(const Timeline& timeline, const PhaseSeen& last, const PhaseSeen& phase) {
  const Event &before = timeline.events[last.event], &event = timeline.events[phase.event];
  const auto of = timeline.RankOf(before);
  return IsOver(phase.at) && of && of->rule == kBracketRule && before.where.input == event.where.input;
}

/// The time that a bar says it took so far: `[29:58<12:05, `, `[1:02:03<`.
std::optional<std::int64_t> ElapsedIn(const std::string& text) {
  static const Pattern kElapsed(R"(\[(?:(?:(\d+) days?, )?(\d+):)?(\d+):(\d\d)<)");
  std::optional<std::int64_t> out;
  std::string_view rest = text;
  // Of several bars on one line the last is meant.
  for (auto match = kElapsed.Search(rest); match; match = kElapsed.Search(rest)) {
    out =
        ((match->number(1).value_or(0) * 24 + match->number(2).value_or(0)) * 60 + match->number(3).value_or(0)) * 60 +
        match->number(4).value_or(0);
    const std::size_t end = static_cast<std::size_t>(match->text(4).data() - rest.data()) + match->text(4).size();
    rest.remove_prefix(end);
  }
  return out;
}

}  // namespace

bool Spans(const Doing& doing, std::optional<std::int64_t> wait_ms) {
  return doing.elapsed_s && wait_ms &&
         static_cast<double>(*doing.elapsed_s) * 1000 >= thresholds::kOfTheWait * static_cast<double>(*wait_ms);
}

bool IsDelay(const Doing& doing) {
  static constexpr Activity kDelays[] = {Activity::kDataPreparation, Activity::kCheckpoint, Activity::kCompile,
                                         Activity::kEvaluation, Activity::kLoading};
  return std::ranges::find(kDelays, doing.at) != std::end(kDelays) && doing.percent.value_or(0) < 100;
}

bool IsWait(const Doing& doing) {
  return doing.at == Activity::kCollective || doing.at == Activity::kJoining || doing.at == Activity::kTurn ||
         doing.at == Activity::kDeviceWait;
}

/// Looks and phases of every rank, in order. Asked of many ranks, and each has few.
struct Doings::ByRank {
  std::map<std::optional<int>, std::vector<const PhaseSeen*>> phases;
  std::map<int, Doing> stacks;  ///< the last time that somebody looked
};

Doings::Doings(const Evidence& evidence) : evidence_(evidence) {
  ByRank out;
  const Timeline& timeline = evidence.timeline;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* stack = std::get_if<StackSeen>(&timeline.events[i].what);
    if (stack == nullptr || stack->at == Activity::kNone) continue;
    if (const auto of = timeline.RankOf(timeline.events[i]))
      out.stacks[of->value.value] = Doing{stack->at, i, std::nullopt, std::nullopt, "its stack: " + stack->frame};
  }
  for (const PhaseSeen& phase : evidence.phases) {
    const auto of = timeline.RankOf(timeline.events[phase.event]);
    out.phases[of ? std::optional(of->value.value) : std::nullopt].push_back(&phase);
  }
  by_rank_ = std::make_unique<const ByRank>(std::move(out));
}

Doings::~Doings() = default;

std::optional<Doing> Doings::Last(std::optional<int> rank) const {
  if (rank)
    if (const auto stack = by_rank_->stacks.find(*rank); stack != by_rank_->stacks.end()) return stack->second;
  const auto own = by_rank_->phases.find(rank);
  if (own == by_rank_->phases.end()) return std::nullopt;
  const PhaseSeen* last = nullptr;
  const auto take = [&](const PhaseSeen& phase) {
    // A bar and what stands behind it on one line: the bar was before.
    if (last != nullptr && last->event == phase.event && !IsOver(last->at) && phase.at == Activity::kTraining) return;
    last = &phase;
  };
  const auto nobodys = by_rank_->phases.find(std::nullopt);
  auto other = rank && nobodys != by_rank_->phases.end() ? nobodys->second.begin() : own->second.end();
  const auto others_end = rank && nobodys != by_rank_->phases.end() ? nobodys->second.end() : own->second.end();
  const auto take_others = [&](const PhaseSeen* before) {
    for (; other != others_end && (before == nullptr || *other < before); ++other)
      if (last != nullptr && GoesOn(evidence_.timeline, *last, **other)) take(**other);
  };
  for (const PhaseSeen* phase : own->second) {
    take_others(phase);
    take(*phase);
  }
  take_others(nullptr);
  const bool over = !IsOver(last->at) && evidence_.course.CountedOn(last->event);
  if (over) return Doing{Activity::kTraining, last->event, std::nullopt, std::nullopt, "it had counted steps since"};
  return Doing{last->at, last->event, last->percent, ElapsedIn(evidence_.timeline.events[last->event].text),
               "its last line: " + evidence_.book.rules[last->rule].summary};
}

AtWork Doings::Of(const RankSet& ranks) const {
  AtWork out;
  RankSet told;  // far fewer than the ranks may be
  for (const auto& [rank, stack] : by_rank_->stacks)
    if (ranks.contains(rank)) told.Add(rank);
  for (const auto& [rank, phases] : by_rank_->phases)
    if (rank && ranks.contains(*rank)) told.Add(*rank);
  for (const int rank : told) {
    const auto own = Last(rank);
    if (!own || !IsDelay(*own)) continue;
    if (!out.doing) out.doing = own;
    out.ranks.push_back(rank);
    out.named = true;
  }
  if (out.doing) return out;
  const auto somebody = Last(std::nullopt);
  if (somebody && IsDelay(*somebody)) out.doing = somebody;
  return out;
}

std::string InWords(const Doing& doing) {
  return std::string(Name(doing.at)) + (doing.percent ? fmt::format(", {} %", *doing.percent) : std::string());
}

}  // namespace inquest
