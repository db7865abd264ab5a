// Calls as NCCL prints them, as slices.
#include "report/perfetto/nccl_calls.h"

#include <fmt/format.h>

#include <algorithm>

#include "timeline/ledger.h"

namespace inquest {
namespace {

/// Communicators on processes that have tracks: a log that names new ones in every line must not cost memory for each.
constexpr std::size_t kMostMembers = 1 << 17;

/// So many first calls of a communicator are made by two members or more.
std::uint64_t SharedCalls(const CommunicatorRow& row) {
  std::uint64_t most = 0, second = 0;
  for (const CommunicatorRow::Member& member : row.members) {
    second = std::max(second, std::min(most, member.calls));
    most = std::max(most, member.calls);
  }
  return row.whole_history ? second : 0;
}

std::string NameOf(const CommunicatorRow* row, std::uint64_t number, int nranks) {
  const std::string name = row != nullptr && row->comm_id ? fmt::format("comm {:#x}", row->comm_id->value)
                                                          : fmt::format("communicator {}", number);
  return nranks > 0 ? fmt::format("{} ({} ranks)", name, nranks) : name;
}

}  // namespace

NcclCalls::NcclCalls(const Timeline& timeline, const Picture& picture, const LinePlaces& places, TraceTracks& tracks,
                     TraceWriter& writer)
    : timeline_(timeline), places_(places), tracks_(tracks), writer_(writer) {
  for (const CommunicatorRow& row : timeline.communicators) rows_.emplace(row.number, &row);
  for (const Lane& lane : picture.lanes)
    if (lane.rank && lane.how == LifeEnd::How::kWell && lane.ended)
      well_ends_.emplace(*lane.rank, Bounded(picture.moments[*lane.ended].ns));
}

void NcclCalls::Add(Event event) {
  const auto* end = std::get_if<CommEnd>(&event.what);
  if (end != nullptr && end->complete && event.origin.pid) {
    const std::string host = event.origin.host ? event.origin.host->value : std::string();
    if (const auto number = callers_.CommunicatorOf(host, *event.origin.pid, end->comm)) {
      const auto member = members_.find({*number, host, *event.origin.pid, end->comm});
      if (member != members_.end()) Close(member->second, places_.At(event.where, event.at));
    }
  }
  callers_.Add(event);
}

/// Where the calls of a block stand. Those that print the same moment share what it may be off by.
void NcclCalls::Place(const CallBatch& batch, const SourcePos& base) {
  ns_.clear();
  for (std::size_t begin = 0, end = 0; begin < batch.calls.size(); begin = end) {
    const auto at = [&](std::size_t call) { return call < batch.times.size() ? batch.times[call] : std::nullopt; };
    const auto first = at(begin);
    const auto is_same = [&](std::size_t call) {
      const auto other = at(call);
      return places_.IsPrinted(first) && other && other->at == first->at && other->date == first->date;
    };
    for (end = begin + 1; end < batch.calls.size() && is_same(end);) ++end;
    SourcePos where = base;
    where.line = base.line + batch.calls[begin].line;
    const std::int64_t from = places_.At(where, first);
    std::int64_t room = end > begin + 1 ? first->resolution.count() : 0;
    if (end < batch.calls.size() && places_.IsPrinted(at(end)))
      room = std::clamp<std::int64_t>(at(end)->at.time_since_epoch().count() - from, 0, room);
    for (std::size_t call = begin; call < end; ++call)
      ns_.push_back(from + static_cast<std::int64_t>(static_cast<double>(room) * static_cast<double>(call - begin) /
                                                     static_cast<double>(end - begin)));
  }
}

/// nullptr: there are too many.
NcclCalls::Member* NcclCalls::MemberOf(const CallBatch& batch, std::uint32_t comm, std::uint64_t communicator) {
  const CallBatch::Comm& named = batch.comms[comm];
  const CallBatch::Process& process = batch.processes[named.process];
  Key key{communicator, process.host, process.pid, named.pointer};
  if (const auto known = members_.find(key); known != members_.end()) return &known->second;
  if (members_.size() >= kMostMembers) return nullptr;
  const auto row = rows_.find(communicator);
  const CommunicatorRow* const of = row == rows_.end() ? nullptr : row->second;
  const auto pid = timeline_.process_by_pid->find(std::pair<std::string_view, std::int64_t>(process.host, process.pid));
  std::optional<GlobalRank> rank;
  if (pid != timeline_.process_by_pid->end() && timeline_.processes[pid->second].rank)
    rank = timeline_.processes[pid->second].rank->value;
  Member member;
  member.name = NameOf(of, communicator, named.nranks > 0 ? named.nranks : of != nullptr ? of->nranks : 0);
  member.shared = of == nullptr ? 0 : SharedCalls(*of);
  member.track = writer_.NewTrack(tracks_.OfCaller(process.host, process.pid, rank),
                                  fmt::format("{}: {}", TraceTracks::NameOf(process.pid, rank), member.name));
  if (const auto ended = rank ? well_ends_.find(*rank) : well_ends_.end(); ended != well_ends_.end())
    member.well_end = ended->second;
  return &members_.emplace(std::move(key), std::move(member)).first->second;
}

void NcclCalls::Close(Member& member, std::int64_t ns) {
  if (!member.open) return;
  writer_.End(member.track, std::max(ns, *member.last));
  member.open = false;
}

void NcclCalls::AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) {
  if (begin == 0) Place(batch, base);
  of_batch_.assign(batch.comms.size(), {0, nullptr});
  callers_.AddCalls(batch, begin, end, base, [&](const CallLedger::Numbered& numbered) {
    const CallBatch::Call& call = batch.calls[numbered.call];
    SourcePos where = base;
    where.line = base.line + call.line;
    if (where.input >= timeline_.inputs.size() || !timeline_.Holds(where)) {
      ++drawn_.other_attempts;
      return;
    }
    auto& [communicator, member] = of_batch_[call.comm];
    if (member == nullptr || communicator != numbered.communicator) {
      communicator = numbered.communicator;
      member = MemberOf(batch, call.comm, communicator);
    }
    if (member == nullptr) {
      ++drawn_.left_out;
      return;
    }
    // A clock may run back, and many lines have one time: what was called later is later.
    const std::int64_t ns = member->last ? std::max(ns_[numbered.call], *member->last + 1) : ns_[numbered.call];
    Close(*member, ns);
    const CallDescriptor& what = batch.descriptors[call.descriptor];
    notes_.clear();
    if (numbered.number) notes_.push_back({"call", *numbered.number});
    notes_.push_back({"op_count", std::uint64_t{call.op_count}});
    notes_.push_back({"count", what.count});
    if (const auto type = DatatypeName(what.datatype))
      notes_.push_back({"dtype", *type});
    else
      notes_.push_back({"dtype", std::int64_t{what.datatype}});
    notes_.push_back({"redop", std::int64_t{what.redop}});
    notes_.push_back({"root", std::int64_t{what.root}});
    notes_.push_back({"communicator", std::string_view(member->name)});
    notes_.push_back({"state", std::string_view("enqueued")});
    notes_.push_back({"source", std::string_view(timeline_.inputs[where.input].path)});
    notes_.push_back({"line", where.InputLine()});
    TraceEvent event{.name = what.op, .category = numbered.number ? "collective" : "send-recv", .notes = notes_};
    if (numbered.number && *numbered.number < member->shared)
      event.flow = FlowNumber(FlowOf::kNccl, communicator, *numbered.number);
    writer_.Begin(member->track, ns, event);
    member->last = ns;
    member->open = true;
    ++drawn_.slices;
  });
}

void NcclCalls::Finish() {
  for (auto& [key, member] : members_)
    if (member.well_end) Close(member, *member.well_end);
}

}  // namespace inquest
