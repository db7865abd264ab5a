// Which lines of a host's kernel log belong to the job's failure.
#include "rules/kernel_scope.h"

#include <algorithm>
#include <set>

#include "core/host_name.h"
#include "rules/host_states.h"

namespace inquest {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::nanoseconds;
using std::chrono::seconds;

/// A rank can be dead for so long before the others miss it.
constexpr nanoseconds kMostBefore = minutes(30);
/// The driver notices a lost GPU late, and clocks of two hosts differ.
constexpr nanoseconds kLateNotice = seconds(30);
/// What a process does to itself is logged at once.
constexpr nanoseconds kAtOnce = seconds(2);

/// `b` minus `a`, as far as it is certain. Clocks of which only one prints a zone may be a day apart; those that print
/// none are taken for the same zone, unless they differ by whole half hours, as container and host often do.
std::optional<nanoseconds> Between(const Timestamp& a, const Timestamp& b) {
  if (a.date != b.date || a.date == Timestamp::Date::kNone) return std::nullopt;
  const nanoseconds gap = b.at - a.at, size = std::chrono::abs(gap);
  if (a.zone_known && b.zone_known) return gap;
  if (a.zone_known != b.zone_known) {
    if (size <= hours(15)) return std::nullopt;
    return gap > nanoseconds(0) ? gap - hours(15) : gap + hours(15);
  }
  const nanoseconds beyond = size % minutes(30);
  const bool zone_like = size > minutes(28) && size < hours(15) && (beyond < minutes(2) || beyond > minutes(28));
  return zone_like ? std::nullopt : std::optional(gap);
}

void Earlier(std::optional<Timestamp>& first, Timestamp time) {
  if (!first || (first->date == time.date && time.at < first->at) || (first->date != Timestamp::Date::kFull && time.date == Timestamp::Date::kFull)) first = time;
}

bool IsStop(const ExceptionRaised& raised) {
  return raised.type == "KeyboardInterrupt" || raised.type == "SystemExit" || raised.type.find("SignalException") != std::string::npos;
}

const std::string* BusOf(const What& what) {
  if (const auto* xid = std::get_if<XidReported>(&what)) return &xid->bus_id;
  if (const auto* fault = std::get_if<DriverFault>(&what)) return &fault->bus_id;
  return nullptr;
}

/// Whether every rank of the job has what `has` asks of its process.
template <class Has>
bool AllPlaced(const Timeline& timeline, Has has) {
  std::set<int> ranks;
  for (const ProcessRow& row : timeline.processes)
    if (row.rank && has(row)) ranks.insert(row.rank->value.value);
  return timeline.world_size && !ranks.empty() && static_cast<int>(ranks.size()) >= timeline.world_size->value;
}

bool IsOtherHost(const Timeline& timeline, const Event& event) {
  if (!event.origin.host || event.origin.host->basis == Basis::kAssumed) return false;
  const std::string& host = event.origin.host->value;
  bool same_kind = false;
  for (const ProcessRow& row : timeline.processes) {
    if (row.host == host) return false;
    same_kind = same_kind || (row.host && HostName(*row.host).Kind() == HostName(host).Kind());
  }
  return same_kind && AllPlaced(timeline, [](const ProcessRow& row) { return row.host.has_value(); });
}

bool IsOtherDevice(const Timeline& timeline, const Event& event) {
  const std::string* bus = BusOf(event.what);
  if (bus == nullptr || bus->empty() || timeline.ProcessOf(event)) return false;
  const auto* xid = std::get_if<XidReported>(&event.what);
  const auto same = [&](const ProcessRow& row) { return row.bus_id && SameDevice(*bus, *row.bus_id); };
  // On a host that no rank's lines name, an address that some rank has may be that rank's.
  const bool known_host = event.origin.host && std::any_of(timeline.processes.begin(), timeline.processes.end(), [&](const ProcessRow& row) { return row.host == event.origin.host->value; });
  for (const ProcessRow& row : timeline.processes) {
    if (xid != nullptr && xid->pid && row.pid == xid->pid) return false;
    if (same(row) && (!known_host || row.host == event.origin.host->value)) return false;  // one of several ranks on it, too
  }
  return AllPlaced(timeline, [](const ProcessRow& row) { return row.bus_id.has_value(); });
}

nanoseconds LatestAfter(const RuleBook& book, const Event& event) {
  if (std::holds_alternative<KernelFault>(event.what)) return kAtOnce;
  const auto* xid = std::get_if<XidReported>(&event.what);
  const ErrorCode* code = xid != nullptr ? book.FindXid(xid->caused_by.value_or(xid->xid)) : nullptr;
  return code != nullptr && (code->origin == ErrorCode::Class::kApplication || code->role == ErrorCode::Role::kFollows) ? kAtOnce : kLateNotice;
}

}  // namespace

void KernelScope::FindEnd(const Timeline& timeline) {
  using std::chrono::milliseconds;
  std::optional<Timestamp> raised_at;
  for (const Event& event : timeline.events) {
    if (!event.at || event.at->date == Timestamp::Date::kNone || IsOfKernel(event.what)) continue;
    const auto began = [&](nanoseconds before) {
      Timestamp time = *event.at;
      time.at -= before;
      Earlier(onset_, time);
    };
    if (const auto* work = std::get_if<WorkTimedOut>(&event.what)) {
      began(milliseconds(std::max(work->ran_ms.value_or(0), work->work.timeout_ms.value_or(0))));
      Earlier(end_, *event.at);
    } else if (const auto* lost = std::get_if<HeartbeatLost>(&event.what)) {
      began(seconds(lost->seconds.value_or(600)));
      Earlier(end_, *event.at);
    } else if (const auto* exit = std::get_if<ProcessExit>(&event.what)) {
      const bool told_to = exit->signal && (*exit->signal == 15 || *exit->signal == 2 || *exit->signal == 1);
      if (!exit->signal && exit->exit_code.value_or(0) == 0) continue;
      if (!told_to) began(nanoseconds(0));
      Earlier(end_, *event.at);
    } else if (std::holds_alternative<JobStopped>(event.what)) {
      Earlier(end_, *event.at);
    } else if (const auto* raised = std::get_if<ExceptionRaised>(&event.what); raised != nullptr && !IsStop(*raised)) {
      began(nanoseconds(0));
      raised_at = *event.at;  // the last one: those before it may have been caught
    }
  }
  if (!end_) end_ = raised_at;
}

KernelScope::Outside KernelScope::Judge(const Timeline& timeline, const RuleBook& book, const Event& event) const {
  if (IsOtherHost(timeline, event)) return Outside::kOtherHost;
  if (IsOtherDevice(timeline, event)) return Outside::kOtherDevice;
  if (!event.at) return Outside::kNo;
  if (onset_)
    if (const auto gap = Between(*event.at, *onset_); gap && *gap > kMostBefore) return Outside::kLongBefore;
  if (end_)
    if (const auto gap = Between(*end_, *event.at); gap && *gap > LatestAfter(book, event)) return Outside::kAfterwards;
  return Outside::kNo;
}

KernelScope::KernelScope(const Timeline& timeline, const RuleBook& book) {
  FindEnd(timeline);
  for (const Event& event : timeline.events) {
    if (!IsOfKernel(event.what)) continue;
    const Outside outside = Judge(timeline, book, event);
    if (outside == Outside::kNo && std::holds_alternative<LogMessage>(event.what)) continue;
    Outside& line = outside_[event.where];
    line = std::max(line, outside);
  }
}

bool KernelScope::OrderUnknown(const Event& event) const {
  if (!failed()) return false;
  if (!event.at) return true;
  const auto before = onset_ ? Between(*event.at, *onset_) : std::nullopt;
  if (onset_ && (!before || *before >= nanoseconds(0))) return !before;
  return end_ && !Between(*event.at, *end_);
}

KernelScope::Outside KernelScope::Of(const Event& event) const {
  const auto line = outside_.find(event.where);
  return line == outside_.end() ? Outside::kNo : line->second;
}

}  // namespace inquest
