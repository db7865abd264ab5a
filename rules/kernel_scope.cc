// Which lines of a host's kernel log belong to the job's failure.
#include "rules/kernel_scope.h"

#include <algorithm>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "core/host_name.h"
#include "rules/host_states.h"
#include "rules/thresholds.h"

namespace inquest {
namespace {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::nanoseconds;

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

const std::string* BusOf(const What& what) {
  if (const auto* xid = std::get_if<XidReported>(&what)) return &xid->bus_id;
  if (const auto* fault = std::get_if<DriverFault>(&what)) return &fault->bus_id;
  return nullptr;
}

/// Where the job's processes are, asked by every line of a kernel log.
class Places {
 public:
  explicit Places(const Timeline& timeline) : timeline_(timeline) {
    std::set<int> on_host, on_device;
    for (const ProcessRow& row : timeline.processes) {
      if (row.host && hosts_.insert(*row.host).second) kinds_.insert(HostName(*row.host).Kind());
      if (row.pid) pids_.insert(*row.pid);
      if (row.bus_id && !row.bus_id->empty())
        by_device_[WithoutFunction(*row.bus_id)].insert(row.host.value_or(std::string()));
      if (row.rank && row.host) on_host.insert(row.rank->value.value);
      if (row.rank && row.bus_id) on_device.insert(row.rank->value.value);
    }
    const auto all = [&](const std::set<int>& ranks) {
      return timeline.world_size && !ranks.empty() && static_cast<int>(ranks.size()) >= timeline.world_size->value;
    };
    all_hosts_known_ = all(on_host);
    all_devices_known_ = all(on_device);
  }

  bool IsOtherHost(const Event& event) const {
    if (!all_hosts_known_ || !event.origin.host || event.origin.host->basis == Basis::kAssumed) return false;
    const std::string& host = event.origin.host->value;
    return !hosts_.contains(host) && kinds_.contains(HostName(host).Kind());
  }

  bool IsOtherDevice(const Event& event) const {
    if (!all_devices_known_) return false;
    const std::string* bus = BusOf(event.what);
    if (bus == nullptr || bus->empty() || timeline_.ProcessOf(event)) return false;
    if (const auto* xid = std::get_if<XidReported>(&event.what);
        xid != nullptr && xid->pid && pids_.contains(*xid->pid))
      return false;
    const auto device = by_device_.find(WithoutFunction(*bus));
    if (device == by_device_.end()) return true;
    // On a host that no rank's lines name, an address that some rank has may be that rank's; one of several ranks on
    // it, too.
    return event.origin.host && hosts_.contains(event.origin.host->value) &&
           !device->second.contains(event.origin.host->value);
  }

 private:
  const Timeline& timeline_;
  std::unordered_set<std::string> hosts_, kinds_;
  std::unordered_set<std::int64_t> pids_;
  std::unordered_map<std::string, std::set<std::string>>
      by_device_;  ///< hosts of the processes on it, by its address; empty: not known
  bool all_hosts_known_ = false, all_devices_known_ = false;  ///< of every rank of the job
};

nanoseconds LatestAfter(const RuleBook& book, const Event& event) {
  if (std::holds_alternative<KernelFault>(event.what)) return thresholds::kLoggedAtOnce;
  const auto* xid = std::get_if<XidReported>(&event.what);
  const ErrorCode* code = xid != nullptr ? book.FindXid(xid->caused_by.value_or(xid->xid)) : nullptr;
  return code != nullptr && (code->origin == ErrorCode::Class::kApplication || code->role == ErrorCode::Role::kFollows)
             ? thresholds::kLoggedAtOnce
             : thresholds::kNoticedLate;
}

}  // namespace

KernelScope::Outside KernelScope::Judge(const RuleBook& book, const Event& event) const {
  if (!event.at) return Outside::kNo;
  if (onset_)
    if (const auto gap = Between(*event.at, *onset_); gap && *gap > thresholds::kDeadBeforeMissed)
      return Outside::kLongBefore;
  if (end_)
    if (const auto gap = Between(*end_, *event.at); gap && *gap > LatestAfter(book, event)) return Outside::kAfterwards;
  return Outside::kNo;
}

KernelScope::KernelScope(const Timeline& timeline, const RuleBook& book, const Course& course)
    : onset_(course.onset()), end_(course.given_up()) {
  std::optional<Places> places;
  for (const Event& event : timeline.events) {
    if (!IsOfKernel(event.what)) continue;
    if (!places) places.emplace(timeline);
    const Outside outside = places->IsOtherHost(event)     ? Outside::kOtherHost
                            : places->IsOtherDevice(event) ? Outside::kOtherDevice
                                                           : Judge(book, event);
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
