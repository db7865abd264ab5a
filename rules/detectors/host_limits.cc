// A limit of the host that fits what failed: locked memory, open files, processes, /dev/shm.
//
// What holds: a line says that memory could not be registered, a file not opened, a process not made, a segment not
// written, and a tool shows the very limit low on a host of the job. Why that implies the cause: either alone has other
// explanations (a full card, a leak, a full disk), both together have one. What looks like it: the same low limit in a
// job that failed of something else, or that uses sockets and locks no memory: then nothing is said.
#include <algorithm>
#include <array>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/host_states.h"
#include "rules/thresholds.h"

namespace inquest {
namespace host_limits {

constexpr FindingRow kFindings[] = {
    {"memlock-too-low", "ran-into", "on-host value"},
    {"open-files-too-low", "ran-into", "on-host value"},
    {"processes-too-low", "ran-into", "on-host value"},
    {"shm-too-small", "ran-out seen-only", "size"},
};
using Found = FoundIn<kFindings>;

using Of = HostLimit::Of;

constexpr std::int64_t kMiB = 1 << 20, kGiB = 1 << 30;

std::string InBytes(std::int64_t bytes) {
  if (bytes >= kGiB) return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(kGiB));
  return bytes >= kMiB ? fmt::format("{} MiB", bytes / kMiB) : fmt::format("{} KiB", bytes / 1024);
}

/// A failure, the limit that makes it, and from where on the limit is too low for it.
struct Row {
  Of of;
  std::int64_t below;
  Found::Held held;
  std::vector<std::string_view> failures;  ///< rules
};

const std::vector<Row>& Rows() {
  static const std::vector<Row> kRows = {
      {Of::kLockedMemory,
       256 * kMiB,
       {"memlock-too-low", "ran-into"},
       {"memlock", "ib-verbs-setup-failed", "memlock-warning"}},
      {Of::kOpenFiles, 65536, {"open-files-too-low", "ran-into"}, {"too-many-open-files"}},
      {Of::kProcesses, 65536, {"processes-too-low", "ran-into"}, {"fork-refused"}},
  };
  return kRows;
}

std::optional<EventIndex> FailureOf(const Evidence& evidence, const std::vector<std::string_view>& rules) {
  for (const LineMatch& match : evidence.matches) {
    const Rule& rule = evidence.book.rules[match.rule];
    if (std::find(rules.begin(), rules.end(), rule.id) == rules.end()) continue;
    // A warning alone is printed by healthy jobs; a card that cannot make a queue says why, or runs into this limit.
    if (rule.id == "memlock-warning") continue;
    const std::string& text = evidence.timeline.events[match.event].text;
    if (rule.id == "ib-verbs-setup-failed" &&
        (text.find("ibv_create_") == std::string::npos || text.find(" with error") != std::string::npos))
      continue;
    return match.event;
  }
  return std::nullopt;
}

/// The lowest limit of a kind on the hosts of the job, on the host of the failing line before others.
std::optional<EventIndex> LowLimit(const Timeline& timeline, const Row& row, const std::optional<std::string>& host) {
  const std::set<std::string>& hosts = timeline.JobHosts();
  std::optional<EventIndex> low;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* limit = std::get_if<HostLimit>(&timeline.events[i].what);
    if (limit == nullptr || limit->of != row.of) continue;
    const auto where = JobHostOf(timeline, hosts, timeline.events[i]);
    if (!where || (host && *where != *host)) continue;
    if (limit->unlimited || limit->value >= row.below)
      return std::nullopt;  // shown twice and not alike: whose it was is not known
    if (!low || limit->value < std::get<HostLimit>(timeline.events[*low].what).value) low = i;
  }
  return low;
}

std::optional<Found> JudgeLimit(const Evidence& evidence, const Row& row) {
  const Timeline& timeline = evidence.timeline;
  const auto failure = FailureOf(evidence, row.failures);
  if (!failure) return std::nullopt;
  const auto host = JobHostOf(timeline, timeline.JobHosts(), timeline.events[*failure]);
  const auto shown = LowLimit(timeline, row, host);
  if (!shown) return std::nullopt;
  const HostLimit& limit = std::get<HostLimit>(timeline.events[*shown].what);
  Found found(row.held);
  found.Say("on-host", OnHost(host.value_or("")));
  found.Say("value", row.of == Of::kLockedMemory ? InBytes(limit.value) : std::to_string(limit.value));
  found.culprits = BlameHost(host.value_or(""), "");
  found.citations = {Cite(timeline, *failure, LineRole::kCause), Cite(timeline, *shown, LineRole::kCause)};
  return found;
}

// ---- /dev/shm --------------------------------------------------------------------------------------------------

/// What a line asked of /dev/shm: `(size 9637888)`, `to 33030532 bytes`.
std::int64_t AskedBytes(const std::string& text) {
  for (const std::string_view before : {"(size ", " to "}) {
    std::size_t at = text.find(before);
    if (at == std::string::npos) continue;
    at += before.size();
    std::int64_t value = 0;
    for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && value < (std::int64_t{1} << 50); ++at)
      value = value * 10 + (text[at] - '0');
    if (value > 0) return value;
  }
  return 0;
}

bool TooSmall(const ShmSize& shm, std::int64_t asked) {
  if (shm.free_bytes && asked > 0 && *shm.free_bytes < asked) return true;
  return shm.total_bytes < thresholds::kLeastShmBytes ||
         (shm.free_bytes && *shm.free_bytes < thresholds::kLeastFreeShmBytes);
}

std::optional<Found> JudgeShm(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  const std::set<std::string>& hosts = timeline.JobHosts();
  const auto failure =
      FirstLineOf(evidence, {"nccl-segment", "no-space-in-shm", "loader-bus-error", "killed-by-sigbus"});
  const bool failed = failure || SawFailure(evidence);
  for (EventIndex i = 0; i < timeline.events.size() && failed; ++i) {
    const auto* shm = std::get_if<ShmSize>(&timeline.events[i].what);
    const auto host = shm != nullptr ? JobHostOf(timeline, hosts, timeline.events[i]) : std::nullopt;
    if (!host) continue;
    if (failure)
      if (const auto where = JobHostOf(timeline, hosts, timeline.events[*failure]); where && *where != *host) continue;
    if (!TooSmall(*shm, failure ? AskedBytes(timeline.events[*failure].text) : 0)) continue;
    Found found(failure ? Found::Held{"shm-too-small", "ran-out"} : Found::Held{"shm-too-small", "seen-only"});
    found.Say("size",
              fmt::format("/dev/shm{} holds {}{}", OnHost(*host), InBytes(shm->total_bytes),
                          shm->free_bytes ? fmt::format(", {} of it free", InBytes(*shm->free_bytes)) : std::string()));
    if (!failure) {
      found.citations = {Cite(timeline, i, LineRole::kContext)};
      return found;
    }
    found.culprits = BlameHost(*host, "");
    found.citations = {Cite(timeline, *failure, LineRole::kCause), Cite(timeline, i, LineRole::kCause)};
    return found;
  }
  return std::nullopt;
}

std::vector<Relation> Run(const Evidence& evidence) {
  std::vector<Relation> out;
  for (const Row& row : Rows())
    if (auto found = JudgeLimit(evidence, row)) out.push_back(std::move(*found));
  if (auto found = JudgeShm(evidence)) out.push_back(std::move(*found));
  return out;
}

}  // namespace host_limits

const Detector kHostLimitsDetector{
    "host-limits", "A limit of the host fits what failed: locked memory, open files, processes, /dev/shm.",
    host_limits::kFindings, &host_limits::Run};

}  // namespace inquest
