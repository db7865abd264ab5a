// Ranks made different collective calls at the same place of one communicator, or one stopped calling.
//
// What holds: the k-th call lines of a communicator's ranks differ, or one rank made fewer calls than the others when
// they timed out. Why that implies the cause: NCCL matches calls by their order on the communicator and by nothing
// else. What looks like it: a log that begins in the middle, which is why only whole histories are compared, and those
// that opCount shows to begin with the same call; a log cut while the job ran, which is why fewer calls count only
// where something says that the others waited.
#include <algorithm>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/thresholds.h"
#include "timeline/ledger.h"

namespace inquest {
namespace call_divergence {

constexpr FindingRow kFindings[] = {
    {"call-divergence", "whole-history by-op-count",
     "number communicator first-call first-ranks other-call other-ranks"},
    {"calls-behind", "others-waited counted-only", "ranks calls ahead they"},
};
using Found = FoundIn<kFindings>;

CollectiveRef RefOfCall(const CommunicatorRow& row, const CallDescriptor& call) {
  CollectiveRef ref;
  ref.op = call.op;
  ref.count = static_cast<std::int64_t>(call.count);
  ref.root = call.root;
  if (const auto name = DatatypeName(call.datatype)) ref.dtype = std::string(*name);
  if (row.comm_id) ref.communicator = fmt::format("0x{:x}", row.comm_id->value);
  return ref;
}

/// Calls are no events; for the order of things a call counts as the last event that is not behind it.
EventIndex EventAt(const Timeline& timeline, const SourcePos& where) {
  const auto later = [](const SourcePos& a, const Event& event) { return a < event.where; };
  const auto behind = std::upper_bound(timeline.events.begin(), timeline.events.end(),
                                       SourcePos{where.input, where.line, ~std::uint64_t{0}}, later);
  return behind == timeline.events.begin() ? 0 : static_cast<EventIndex>(behind - timeline.events.begin() - 1);
}

Citation CiteCall(const Timeline& timeline, const CommunicatorRow& row, std::optional<GroupRank> rank,
                  const SourcePos& where, const std::string& text) {
  Citation out{EventAt(timeline, where), LineRole::kCause, where, std::nullopt, std::nullopt, text};
  for (const auto& member : row.members)
    if (rank && member.rank == rank)
      if (const auto& global = timeline.processes[member.process].rank) out.rank = global->value;
  return out;
}

std::optional<GlobalRank> GlobalOf(const Timeline& timeline, const CommunicatorRow::Member& member) {
  const auto& rank = timeline.processes[member.process].rank;
  if (rank) return rank->value;
  return std::nullopt;
}

Found FromDivergence(const Timeline& timeline, const CommunicatorRow& row) {
  const auto& sides = row.divergence->sides;
  Found found({"call-divergence", "by-op-count"});
  if (row.whole_history) found.Grade({"call-divergence", "whole-history"});
  const auto in_words = [](const CallDescriptor& call) {
    return fmt::format("{} of {} elements", call.op, call.count);
  };
  found.Say("number", row.seen_from ? fmt::format("of opCount {:x}", *row.seen_from + row.divergence->number)
                                    : std::to_string(row.divergence->number + 1));
  found.Say("communicator", row.comm_id ? fmt::format("0x{:x}", row.comm_id->value) : "without id");
  found.Say("first-call", in_words(sides[0].call));
  found.Say("first-ranks", FoldRanks(sides[0].ranks));
  found.Say("other-call", in_words(sides[1].call));
  found.Say("other-ranks", FoldRanks(sides[1].ranks));
  found.collective = RefOfCall(row, sides[0].call);
  if (row.seen_from) found.collective->op_count = static_cast<std::int64_t>(*row.seen_from + row.divergence->number);
  for (std::size_t i = sides.size(); i-- > 0;)
    found.citations.push_back(CiteCall(
        timeline, row, sides[i].ranks.empty() ? std::nullopt : std::optional(GroupRank{sides[i].ranks.front()}),
        sides[i].where, sides[i].text));
  if (sides[0].ranks.size() > sides[1].ranks.size())
    for (const auto& member : row.members) {
      const bool majority = member.rank && std::find(sides[0].ranks.begin(), sides[0].ranks.end(),
                                                     member.rank->value) != sides[0].ranks.end();
      const bool took_part = member.calls > row.divergence->number;
      const auto global = GlobalOf(timeline, member);
      if (!majority && took_part && global)
        found.culprits.push_back(BlameRank(timeline, *global, "made another call than the majority"));
    }
  return found;
}

/// Members whose count of calls is below that of the majority.
std::vector<const CommunicatorRow::Member*> Behind(const CommunicatorRow& row, std::uint64_t& ahead) {
  std::vector<std::uint64_t> counts;
  for (const auto& member : row.members) counts.push_back(member.calls);
  std::sort(counts.begin(), counts.end());
  ahead = counts[counts.size() / 2];
  std::vector<const CommunicatorRow::Member*> out;
  for (const auto& member : row.members)
    if (member.calls < ahead) out.push_back(&member);
  return out;
}

bool SomethingWaited(const Evidence& evidence) {
  if (!evidence.timeline.collectives.empty()) return true;
  for (const Event& event : evidence.timeline.events) {
    const auto* end = std::get_if<CommEnd>(&event.what);
    if (std::holds_alternative<HeartbeatLost>(event.what) || (end != nullptr && end->how != CommEnd::How::kDestroy))
      return true;
  }
  return false;
}

std::optional<Found> FromCounts(const Evidence& evidence, const CommunicatorRow& row) {
  const Timeline& timeline = evidence.timeline;
  if (!row.compares() || row.members.size() < 2 || static_cast<int>(row.members.size()) < row.nranks)
    return std::nullopt;
  const bool all_ended = std::all_of(row.members.begin(), row.members.end(),
                                     [](const auto& member) { return member.ended && !member.aborted; });
  std::uint64_t ahead = 0;
  const auto behind = Behind(row, ahead);
  // The end of a file that was cut inside a line is not where its rank stopped.
  const auto cut = [&](const auto* member) { return timeline.inputs[member->last_call_at.input].damaged > 0; };
  if (std::any_of(behind.begin(), behind.end(), cut)) return std::nullopt;
  if (all_ended || behind.empty() || behind.size() * 2 >= row.members.size() + 1) return std::nullopt;
  std::vector<int> ranks;
  Found found({"calls-behind", "counted-only"});
  if (SomethingWaited(evidence)) found.Grade({"calls-behind", "others-waited"});
  for (const auto* member : behind) {
    const auto global = GlobalOf(timeline, *member);
    if (global || member->rank) ranks.push_back(global ? global->value : member->rank->value);
    if (global)
      found.culprits.push_back(
          BlameRank(timeline, *global, fmt::format("made {} calls where the others made {}", member->calls, ahead)));
  }
  found.Say("ranks", RanksInWords(ranks));
  found.Say("calls", std::to_string(behind.front()->calls));
  found.Say("ahead", std::to_string(ahead));
  found.Say("they", ranks.size() > 1 ? "they" : "it");
  for (const auto* member : behind)
    if (found.citations.size() < 3 && member->last_op_count)
      found.citations.push_back(CiteCall(timeline, row, member->rank, member->last_call_at, member->last_call_text));
  for (const auto& member : row.members)
    if (member.calls == ahead && member.last_op_count) {
      found.collective = RefOfCall(row, member.last_call);
      found.collective->op_count = static_cast<std::int64_t>(*member.last_op_count);
      found.citations.push_back(CiteCall(timeline, row, member.rank, member.last_call_at, member.last_call_text));
      found.citations.back().role = LineRole::kSymptom;
      break;
    }
  if (found.collective) {
    found.collective->ranks_absent = RankSet::Of(ranks);
    for (const auto& member : row.members) {
      const auto global = GlobalOf(timeline, member);
      if (global && member.calls >= ahead) found.collective->ranks_waiting.Add(global->value);
    }
  }
  return found;
}

/// Calls that differ hang, or corrupt what follows at once. Where all went on for long and left in order, some line of
/// a call was lost, and the numbers are off by it; where their births were not seen and all went on for long, they are
/// of several communicators, as those of a pipeline's stages.
bool WentOn(const CommunicatorRow& row) {
  return std::all_of(row.members.begin(), row.members.end(), [&](const auto& member) {
    return (row.seen_from || (member.ended && !member.aborted)) &&
           member.calls > row.divergence->number + thresholds::kCallsAfterADifference;
  });
}

std::vector<Relation> Run(const Evidence& evidence) {
  std::vector<Relation> out;
  for (const CommunicatorRow& row : evidence.timeline.communicators) {
    if (row.divergence && row.divergence->sides.size() > 1 && !WentOn(row))
      out.push_back(FromDivergence(evidence.timeline, row));
    else if (auto found = row.divergence ? std::nullopt : FromCounts(evidence, row))
      out.push_back(std::move(*found));
  }
  return out;
}

}  // namespace call_divergence

const Detector kCallDivergence{"call-divergence",
                               "Ranks made different calls at one place of a communicator, or one stopped calling.",
                               call_divergence::kFindings, &call_divergence::Run};

}  // namespace inquest
