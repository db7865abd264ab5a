// Variables that must be alike on all ranks differ, and the job failed in the way that this makes it fail.
//
// What holds: two processes or hosts of the job print different values of one variable that decides how ranks meet
// (MASTER_ADDR, WORLD_SIZE), over what they talk (NCCL_IB_DISABLE, NCCL_NET) or how they cut a message (NCCL_ALGO,
// NCCL_PROTO, NCCL_BUFFSIZE), and set-up failed or an operation of all ranks did not end. Why that implies the cause:
// NCCL does not compare them; each rank believes that the others do as it does. What looks like it: settings that may
// differ, as interface names do from host to host, and jobs that failed of something else: there it is a hint at most.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "core/host_name.h"
#include "rules/detectors.h"
#include "rules/host_states.h"

namespace inquest {
namespace environment {

constexpr FindingRow kFindings[] = {
    {"environment-differs", "failed-so stalled seen-only", "name value first other-value other",
     "meeting transport cutting"},
};
using Found = FoundIn<kFindings>;

/// What must be alike, and what it is where it is not.
struct Row {
  std::string_view kind;
  std::initializer_list<std::string_view> names;
  std::initializer_list<std::string_view> failures;  ///< causes whose lines this makes
};

const Row kRows[] = {
    {"meeting", {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE"}, {"rendezvous", "peer-unreachable"}},
    {"transport",
     {"NCCL_IB_DISABLE", "NCCL_NET", "NCCL_SOCKET_FAMILY"},
     {"interface-selection", "peer-unreachable", "ib-fault", "plugin-fault", "nccl-internal"}},
    {"cutting",
     {"NCCL_ALGO", "NCCL_PROTO", "NCCL_BUFFSIZE", "NCCL_NTHREADS", "NCCL_MIN_NCHANNELS", "NCCL_MAX_NCHANNELS",
      "NCCL_MIN_CTAS", "NCCL_MAX_CTAS", "NCCL_LL_THRESHOLD", "NCCL_P2P_NET_CHUNKSIZE", "NCCL_COLLNET_ENABLE",
      "NCCL_NVLS_ENABLE"},
     {"collective-mismatch", "nccl-internal", "ib-fault"}},
};

/// One host may be called by a name here and by an address there; the master itself may call it localhost.
bool Differ(std::string_view name, const std::string& a, const std::string& b) {
  if (a == b) return false;
  if (name != "MASTER_ADDR") return true;
  const auto is_local = [](const std::string& value) {
    return value == "localhost" || value == "127.0.0.1" || value == "0.0.0.0" || value == "::1";
  };
  const HostName first(a), second(b);
  return !is_local(a) && !is_local(b) && first.is_address() == second.is_address() && first.Short() != second.Short();
}

/// The latest value that each host or process printed: what a shell sets and sets again is not a difference. WORLD_SIZE
/// counts pods for a launcher and ranks for those that it starts: a host that shows both says neither.
std::map<std::string, EventIndex> Latest(const Timeline& timeline, const std::set<std::string>& hosts,
                                         std::string_view name) {
  std::map<std::string, EventIndex> latest;
  std::set<std::string> several;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    const auto* variable = std::get_if<EnvironmentSet>(&event.what);
    if (variable == nullptr || variable->name != name) continue;
    const auto host = JobHostOf(timeline, hosts, event);
    const bool named = host && !host->empty();
    if (!named && !event.origin.rank) continue;  // of nobody that is known
    const std::string who = named ? *host : fmt::format("rank {}", event.origin.rank->value.value);
    const auto [known, is_new] = latest.emplace(who, i);
    if (!is_new && std::get<EnvironmentSet>(timeline.events[known->second].what).value != variable->value)
      several.insert(who);
    known->second = i;
  }
  if (name == "WORLD_SIZE") std::erase_if(latest, [&](const auto& entry) { return several.contains(entry.first); });
  return latest;
}

bool EverybodyWaits(const Timeline& timeline) {
  return !timeline.collectives.empty() && timeline.world_size &&
         static_cast<int>(timeline.collectives.front().waiters.size()) >= timeline.world_size->value;
}

std::optional<Found> JudgeRow(const Evidence& evidence, const std::set<std::string>& hosts, const Row& row,
                              std::string_view name) {
  const Timeline& timeline = evidence.timeline;
  const auto latest = Latest(timeline, hosts, name);
  const auto value = [&](EventIndex event) -> const std::string& {
    return std::get<EnvironmentSet>(timeline.events[event].what).value;
  };
  if (latest.size() < 2) return std::nullopt;
  const auto& [first, first_event] = *latest.begin();
  const auto other = std::find_if(latest.begin(), latest.end(), [&, mine = first_event](const auto& entry) {
    return Differ(name, value(mine), value(entry.second));
  });
  if (other == latest.end()) return std::nullopt;
  const auto failure = FirstLineFor(evidence, row.failures);
  const bool stall = row.kind != "meeting" && EverybodyWaits(timeline);
  Found found({"environment-differs", "seen-only"});
  if (failure)
    found.Grade({"environment-differs", "failed-so"});
  else if (stall)
    found.Grade({"environment-differs", "stalled"});
  found.kind = row.kind;
  found.Say("name", std::string(name));
  found.Say("value", value(first_event).substr(0, 64));
  found.Say("first", first);
  found.Say("other-value", value(other->second).substr(0, 64));
  found.Say("other", other->first);
  if (failure)
    found.citations.push_back(Cite(timeline, *failure, LineRole::kCause));
  else if (stall)
    found.citations.push_back(Cite(timeline, timeline.collectives.front().waiters.front().event, LineRole::kCause));
  found.citations.push_back(Cite(timeline, first_event, LineRole::kCause));
  found.citations.push_back(Cite(timeline, other->second, LineRole::kCause));
  return found;
}

std::vector<Relation> Run(const Evidence& evidence) {
  if (!SawFailure(evidence)) return {};
  const std::set<std::string>& hosts = evidence.timeline.JobHosts();
  std::vector<Relation> out;
  for (const Row& row : kRows)
    for (const std::string_view name : row.names)
      if (auto found = JudgeRow(evidence, hosts, row, name)) {
        out.push_back(std::move(*found));
        break;  // one that differs is enough for its cause
      }
  return out;
}

}  // namespace environment

const Detector kEnvironmentDetector{"environment", "Variables that must be alike on all ranks differ.",
                                    environment::kFindings, &environment::Run};

}  // namespace inquest
