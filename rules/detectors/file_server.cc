// A file server stopped answering a host of the job.
//
// What holds: the kernel's NFS or Lustre client said that its server does not answer, and has not said that it answers
// again, or only after a minute and more. Why that implies the cause: whoever touches the mount stands still until
// then. What looks like it: the short outages that a busy server gives every day, each of which ends with an OK.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/thresholds.h"

namespace inquest {
namespace file_server {

constexpr FindingRow kFindings[] = {
    {"file-server-silent", "still over moment", "servers hosts"},
};
using Found = FoundIn<kFindings>;

using std::chrono::seconds;

/// One server as one host saw it: from its first silence to the last answer.
struct Outage {
  std::string server, host;
  EventIndex began = 0;
  std::optional<EventIndex> ended;
  std::size_t times = 0;
};

std::optional<std::chrono::nanoseconds> Between(const Event& a, const Event& b) {
  const auto up = UptimeOf(a.what), down = UptimeOf(b.what);
  if (up && down) return *down - *up;
  if (a.at && b.at && a.at->date == b.at->date) return b.at->at - a.at->at;
  return std::nullopt;
}

std::vector<Outage> OutagesOf(const Evidence& evidence) {
  std::vector<Outage> out;
  std::map<std::string, std::size_t> open;
  for (EventIndex i = 0; i < evidence.timeline.events.size(); ++i) {
    const Event& event = evidence.timeline.events[i];
    const auto* notice = std::get_if<KernelNotice>(&event.what);
    if (notice == nullptr || (notice->subsystem != KernelPart::kNfs && notice->subsystem != KernelPart::kLustre))
      continue;
    const std::string key = fmt::format("{}|{}|{}", event.where.input, Name(notice->subsystem), notice->device);
    const auto before = open.find(key);
    if (notice->what == KernelNews::kRecovered) {
      if (before != open.end()) out[before->second].ended = i;
      open.erase(key);
    } else if (before != open.end()) {
      ++out[before->second].times;
    } else if (evidence.scope.Of(event) == KernelScope::Outside::kNo) {
      open[key] = out.size();
      out.push_back({notice->device, evidence.timeline.HostOf(event).value_or(""), i, std::nullopt, 1});
    }
  }
  return out;
}

bool IsHarmless(const Evidence& evidence, const Outage& outage) {
  if (!outage.ended) return false;
  const auto size = Between(evidence.timeline.events[outage.began], evidence.timeline.events[*outage.ended]);
  return !size || *size < thresholds::kServerMaySilent;
}

std::vector<Relation> Run(const Evidence& evidence) {
  std::vector<Outage> outages = OutagesOf(evidence);
  if (outages.empty()) return {};
  const bool harmless =
      std::all_of(outages.begin(), outages.end(), [&](const Outage& outage) { return IsHarmless(evidence, outage); });
  if (!harmless) std::erase_if(outages, [&](const Outage& outage) { return IsHarmless(evidence, outage); });
  const bool over =
      std::all_of(outages.begin(), outages.end(), [](const Outage& outage) { return outage.ended.has_value(); });
  Found found({"file-server-silent", "still"});
  if (harmless)
    found.Grade({"file-server-silent", "moment"});
  else if (over)
    found.Grade({"file-server-silent", "over"});
  found.times = 0;
  std::set<std::string> hosts, servers;
  for (const Outage& outage : outages) {
    found.times += outage.times;
    if (!outage.server.empty()) servers.insert(outage.server);
    if (found.citations.size() < 4) found.citations.push_back(Cite(evidence.timeline, outage.began, LineRole::kCause));
    if (outage.host.empty() || !hosts.insert(outage.host).second) continue;
    Culprit culprit;
    culprit.host = outage.host;
    culprit.why =
        fmt::format("{} did not answer it", outage.server.empty() ? "a file server" : "file server " + outage.server);
    found.culprits.push_back(std::move(culprit));
  }
  found.Say("servers", servers.size() == 1 ? "File server " + *servers.begin() : "File servers");
  found.Say("hosts", hosts.empty() ? "" : fmt::format(" {}", fmt::join(hosts, ", ")));
  return {std::move(found)};
}

}  // namespace file_server

const Detector kFileServer{"file-server", "A file server stopped answering a host of the job.", file_server::kFindings,
                           &file_server::Run};

}  // namespace inquest
