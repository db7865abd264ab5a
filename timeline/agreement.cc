// Whether logs and dumps that speak of the same operation of a rank say the same of it.
#include "timeline/agreement.h"

#include <algorithm>
#include <chrono>
#include <optional>

namespace inquest {
namespace {

/// What a line of the log says of a rank's work that did not end.
struct Said {
  GlobalRank rank;
  std::int64_t seq = 0;
  std::string group;  ///< empty: the line names none
};

std::optional<Said> SaidBy(const Timeline& timeline, const Event& event) {
  const auto rank = timeline.RankOf(event);
  if (!rank) return std::nullopt;
  if (const auto* status = std::get_if<GroupStatus>(&event.what)) {
    if (!status->failed_work || *status->failed_work < 0) return std::nullopt;
    return Said{rank->value, *status->failed_work, status->pg_guid.empty() ? status->pg_id : status->pg_guid};
  }
  const auto* work = std::get_if<WorkTimedOut>(&event.what);
  if (work == nullptr || !work->work.seq) return std::nullopt;
  const std::string& op = work->work.op;
  if (op == "SEND" || op == "RECV" || op == "COALESCED") return std::nullopt;  // numbered otherwise
  return Said{rank->value, work->work.seq->value, {}};
}

bool FarApart(const Event& event, const RecordedRank& rank) {
  constexpr std::chrono::hours kWhateverZone{48};
  if (!event.at || event.at->date != Timestamp::Date::kFull || rank.latest_ns == 0) return false;
  const auto apart = event.at->at.time_since_epoch() - std::chrono::nanoseconds(rank.latest_ns);
  return apart > kWhateverZone || apart < -kWhateverZone;
}

}  // namespace

Agreement HoldTogether(const Timeline& timeline) {
  Agreement out;
  const Recorded& recorded = *timeline.recorded;
  if (recorded.empty()) return out;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto said = SaidBy(timeline, timeline.events[i]);
    const RecordedRank* rank = said ? recorded.Find(said->rank) : nullptr;
    if (rank == nullptr) continue;
    const RecordedMember* nearest = nullptr;
    const RecordedGroup* of = nullptr;
    bool fits = false, unknown = false;
    for (const RecordedGroup& group : recorded.groups) {
      if (group.source != RecordedGroup::Source::kRecorders) continue;
      if (!said->group.empty() && group.name != said->group) continue;
      const RecordedMember* member = group.Find(said->rank);
      if (member == nullptr || !member->calls) continue;
      unknown = unknown || group.mixed || said->seq < member->first;
      fits = fits || (said->seq >= member->first && said->seq <= member->last &&
                      member->last_completed.value_or(said->seq - 1) < said->seq);
      if (nearest != nullptr && nearest->last >= member->last) continue;
      nearest = member;
      of = &group;
    }
    if (nearest == nullptr || unknown) continue;
    Contradiction against{Contradiction::How::kEndsBefore, said->rank, i, said->seq, nearest->last, of->name};
    if (FarApart(timeline.events[i], *rank))
      against.how = Contradiction::How::kOtherTime;
    else if (fits)
      ++out.agreeing;
    else if (nearest->last >= said->seq)
      against.how = Contradiction::How::kHadEnded;
    if (against.how == Contradiction::How::kOtherTime || !fits) out.contradictions.push_back(std::move(against));
  }
  return out;
}

}  // namespace inquest
