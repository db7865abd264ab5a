// Who calls what: processes as they are met, and the ledger of their calls.
#include "timeline/callers.h"

#include <algorithm>

namespace inquest {
namespace {

/// Numbers that no job has are no ranks.
template <class Rank>
void DropImpossible(std::optional<Rank>& rank) {
  if (rank && !IsRank(rank->value)) rank.reset();
}
template <class Rank>
void DropImpossible(std::optional<Known<Rank>>& rank) {
  if (rank && !IsRank(rank->value.value)) rank.reset();
}
void DropImpossibleRanks(Event& event) {
  DropImpossible(event.origin.rank);
  DropImpossible(event.origin.local_rank);
  if (auto* exit = std::get_if<ProcessExit>(&event.what)) {
    DropImpossible(exit->rank);
    DropImpossible(exit->local_rank);
    if (exit->task && !IsRank(*exit->task)) exit->task.reset();
  } else if (auto* device = std::get_if<DeviceReported>(&event.what)) {
    DropImpossible(device->rank);
  }
}

}  // namespace

/// Whole communicators go first, then processes; the members of those that stay, stay. Never between the calls of one
/// block and its end: processes that spoke last are kept, and a block does not hold so many.
void Callers::Thin() {
  if (processes_.rows.size() < thin_at_ && ledger_.bytes() < thin_ledger_at_) return;
  if (ledger_.bytes() > kLedgerBytes / 2) ledger_.Thin(kLedgerBytes / 2);
  const std::size_t before = processes_.rows.size();
  const std::vector<std::uint32_t> numbers = processes_.Thin(kMostProcesses / 2, ledger_.InUse(before));
  processes_left_out_ += before - processes_.rows.size();
  ledger_.Renumber(numbers);
  for (std::uint32_t& process : of_batch_) process = numbers[process];
  thin_at_ = std::max(kMostProcesses, processes_.rows.size() / 4 * 5);
  thin_ledger_at_ = std::max(kLedgerBytes, ledger_.bytes() / 4 * 5);
}

void Callers::Add(Event& event) {
  Thin();
  DropImpossibleRanks(event);
  const std::uint32_t process = processes_.Meet(event);
  if (process == Processes::kNone) return;
  if (const auto* init = std::get_if<CommInit>(&event.what)) ledger_.Init(process, *init, event.where);
  if (const auto* end = std::get_if<CommEnd>(&event.what)) ledger_.End(process, *end);
}

void Callers::AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) {
  if (begin == 0) {
    of_batch_.clear();
    Thin();
    for (const CallBatch::Process& process : batch.processes) of_batch_.push_back(processes_.Meet(process));
  }
  ledger_.AddCalls(batch, begin, end, base, of_batch_);
}

void Callers::AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base,
                       const std::function<void(const CallLedger::Numbered&)>& each) {
  AddCalls(batch, begin, end, base);
  ledger_.EachOf(batch, begin, end, each);
}

std::optional<std::uint64_t> Callers::CommunicatorOf(const std::string& host, std::int64_t pid,
                                                     std::uint64_t pointer) const {
  const auto process = processes_.Find(host, pid);
  return process ? ledger_.CommunicatorAt(*process, pointer) : std::nullopt;
}

}  // namespace inquest
