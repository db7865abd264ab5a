// Ranks made different collective calls at the same place of one communicator, or one stopped calling.
//
// What holds: the k-th call lines of a communicator's ranks differ, or one rank made fewer calls than the others when
// they timed out. Why that implies the cause: NCCL matches calls by their order on the communicator and by nothing else.
// What looks like it: a log that begins in the middle, which is why only whole histories are compared; a log cut while
// the job ran, which is why fewer calls count only where something says that the others waited.
#include <algorithm>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "timeline/ledger.h"

namespace inquest {
namespace {

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
  const auto behind = std::upper_bound(timeline.events.begin(), timeline.events.end(), SourcePos{where.input, where.line, ~std::uint64_t{0}}, later);
  return behind == timeline.events.begin() ? 0 : static_cast<EventIndex>(behind - timeline.events.begin() - 1);
}

Citation CiteCall(const Timeline& timeline, const CommunicatorRow& row, int rank, const SourcePos& where, const std::string& text) {
  Citation out{EventAt(timeline, where), "cause", where, std::nullopt, std::nullopt, text};
  for (const auto& member : row.members)
    if (member.rank.value == rank)
      if (const auto& global = timeline.processes[member.process].rank) out.rank = global->value;
  return out;
}

std::optional<GlobalRank> GlobalOf(const Timeline& timeline, const CommunicatorRow::Member& member) {
  const auto& rank = timeline.processes[member.process].rank;
  if (rank) return rank->value;
  return std::nullopt;
}

Finding FromDivergence(const Timeline& timeline, const CommunicatorRow& row) {
  const auto& sides = row.divergence->sides;
  Finding finding;
  finding.rule = "call-divergence";
  finding.cause = "collective-mismatch";
  finding.strength = Strength::kDecisive;
  finding.confidence = 0.9;
  finding.claim = fmt::format("Call {} on communicator {} was {} of {} elements on ranks {} and {} of {} elements on ranks {}.", row.divergence->number + 1,
                              row.comm_id ? fmt::format("0x{:x}", row.comm_id->value) : "without id", sides[0].call.op, sides[0].call.count,
                              FoldRanks(sides[0].ranks), sides[1].call.op, sides[1].call.count, FoldRanks(sides[1].ranks));
  finding.collective = RefOfCall(row, sides[0].call);
  for (std::size_t i = sides.size(); i-- > 0;) finding.citations.push_back(CiteCall(timeline, row, sides[i].ranks.empty() ? -1 : sides[i].ranks.front(), sides[i].where, sides[i].text));
  if (sides[0].ranks.size() > sides[1].ranks.size())
    for (const auto& member : row.members) {
      const bool majority = std::find(sides[0].ranks.begin(), sides[0].ranks.end(), member.rank.value) != sides[0].ranks.end();
      const bool took_part = member.calls > row.divergence->number;
      const auto global = GlobalOf(timeline, member);
      if (!majority && took_part && global) finding.culprits.push_back(BlameRank(timeline, *global, "made another call than the majority"));
    }
  return finding;
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
    if (std::holds_alternative<HeartbeatLost>(event.what) || (end != nullptr && end->how != CommEnd::How::kDestroy)) return true;
  }
  return false;
}

std::optional<Finding> FromCounts(const Evidence& evidence, const CommunicatorRow& row) {
  const Timeline& timeline = evidence.timeline;
  if (!row.whole_history || row.members.size() < 2 || static_cast<int>(row.members.size()) < row.nranks) return std::nullopt;
  const bool all_ended = std::all_of(row.members.begin(), row.members.end(), [](const auto& member) { return member.ended && !member.aborted; });
  std::uint64_t ahead = 0;
  const auto behind = Behind(row, ahead);
  // The end of a file that was cut inside a line is not where its rank stopped.
  const auto cut = [&](const auto* member) { return timeline.inputs[member->last_call_at.input].damaged > 0; };
  if (std::any_of(behind.begin(), behind.end(), cut)) return std::nullopt;
  if (all_ended || behind.empty() || behind.size() * 2 >= row.members.size() + 1) return std::nullopt;
  const bool waited = SomethingWaited(evidence);
  std::vector<int> ranks;
  Finding finding;
  for (const auto* member : behind) {
    const auto global = GlobalOf(timeline, *member);
    ranks.push_back(global ? global->value : member->rank.value);
    if (global) finding.culprits.push_back(BlameRank(timeline, *global, fmt::format("made {} calls where the others made {}", member->calls, ahead)));
  }
  finding.rule = "calls-behind";
  finding.cause = "rank-absent";
  finding.strength = waited ? Strength::kSupporting : Strength::kHint;
  finding.confidence = waited ? 0.75 : 0.45;
  finding.claim = fmt::format("Rank{} {} made {} calls on the communicator and the others {}: {} never entered the last one.", ranks.size() > 1 ? "s" : "", FoldRanks(ranks),
                              behind.front()->calls, ahead, ranks.size() > 1 ? "they" : "it");
  for (const auto* member : behind)
    if (finding.citations.size() < 3 && member->last_op_count) finding.citations.push_back(CiteCall(timeline, row, member->rank.value, member->last_call_at, member->last_call_text));
  for (const auto& member : row.members)
    if (member.calls == ahead && member.last_op_count) {
      finding.collective = RefOfCall(row, member.last_call);
      finding.collective->op_count = static_cast<std::int64_t>(*member.last_op_count);
      finding.citations.push_back(CiteCall(timeline, row, member.rank.value, member.last_call_at, member.last_call_text));
      finding.citations.back().role = "symptom";
      break;
    }
  if (finding.collective) {
    finding.collective->ranks_absent = ranks;
    for (const auto& member : row.members) {
      const auto global = GlobalOf(timeline, member);
      if (global && member.calls >= ahead) finding.collective->ranks_waiting.push_back(global->value);
    }
  }
  finding.collect = {"py-spy dump --pid <pid of that rank> while it hangs", "the kernel log of its host", "its own standard error, whole"};
  return finding;
}

std::vector<Finding> Run(const Evidence& evidence) {
  std::vector<Finding> out;
  for (const CommunicatorRow& row : evidence.timeline.communicators) {
    if (row.divergence && row.whole_history && row.divergence->sides.size() > 1)
      out.push_back(FromDivergence(evidence.timeline, row));
    else if (auto finding = FromCounts(evidence, row))
      out.push_back(std::move(*finding));
  }
  return out;
}

constexpr std::string_view kFindings[] = {"call-divergence", "calls-behind"};

}  // namespace

const Detector kCallDivergence{"call-divergence", "Ranks made different calls at one place of a communicator, or one stopped calling.", kFindings, &Run};

}  // namespace inquest
