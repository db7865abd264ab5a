// Who calls what: processes as they are met, and the ledger of their calls.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/call_batch.h"
#include "core/event.h"
#include "timeline/identity.h"
#include "timeline/ledger.h"

namespace inquest {

/// Takes events and calls in input order. Bounded: of communicators and processes that are too many, those that say
/// least are forgotten.
class Callers {
 public:
  /// Meets the event's writer, and takes a communicator's birth or end; ranks that no job has are dropped from it.
  void Add(Event& event);
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base);
  /// The same, and hands each call to `each` in the order of lines.
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base,
                const std::function<void(const CallLedger::Numbered&)>& each);
  /// The communicator that a process knows by a pointer now.
  std::optional<std::uint64_t> CommunicatorOf(const std::string& host, std::int64_t pid, std::uint64_t pointer) const;

  CallLedger& ledger() { return ledger_; }
  Processes& processes() { return processes_; }
  std::uint64_t processes_left_out() const { return processes_left_out_; }

 private:
  void Thin();
  static constexpr std::size_t kLedgerBytes = 64 << 20;
  static constexpr std::size_t kMostProcesses = 5 << 15;
  CallLedger ledger_;
  Processes processes_;
  std::vector<std::uint32_t> of_batch_;  ///< numbers of the batch's processes
  std::uint64_t processes_left_out_ = 0;
  std::size_t thin_at_ = kMostProcesses, thin_ledger_at_ = kLedgerBytes;
};

}  // namespace inquest
