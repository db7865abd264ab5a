// Blocks, as every launcher counts ranks, where no log says which rank was where: a fault of one GPU or one link comes
// back on that one alone.
#include "replay/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>

#include "core/host_name.h"
#include "timeline/timeline.h"

namespace inquest {
namespace {

bool IsHost(const std::string& name, const std::string& other) {
  return HostName(name).Short() == HostName(other).Short();
}

/// Ranks by the host that each was on, hosts by their first rank. Empty: of some rank that is not known.
std::vector<std::pair<std::string, std::vector<std::size_t>>> ByHost(const Plan& plan) {
  std::vector<std::pair<std::string, std::vector<std::size_t>>> hosts;
  for (std::size_t rank = 0; rank < plan.places.size(); ++rank) {
    const std::string& host = plan.places[rank].was.host;
    if (host.empty()) return {};
    const auto found = std::ranges::find(hosts, host, &decltype(hosts)::value_type::first);
    if (found == hosts.end())
      hosts.push_back({host, {rank}});
    else
      found->second.push_back(rank);
  }
  return hosts;
}

std::string Names(const std::vector<std::pair<std::string, std::vector<std::size_t>>>& hosts) {
  constexpr std::size_t kShown = 4;
  std::string names;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (i == kShown) return names + fmt::format(" and {} more", hosts.size() - kShown);
    names += fmt::format("{}{}", i == 0 ? "" : i + 1 == hosts.size() ? " and " : ", ", hosts[i].first);
  }
  return names;
}

/// Each on the GPU that it had: all of them, or none, since one left over could be given another's. `same_host`: its
/// address names the same one.
void GiveGpus(Plan& plan, const std::vector<std::size_t>& ranks, bool same_host) {
  std::set<std::pair<std::string, int>> taken;
  for (const std::size_t rank : ranks) {
    const JobPlace& was = plan.places[rank].was;
    if (!was.device && !(same_host && !was.bus_id.empty())) return;
    // Processes that see one GPU each call all of them 0.
    if (!taken.insert({same_host ? was.bus_id : "", was.bus_id.empty() || !same_host ? *was.device : 0}).second) return;
  }
  for (const std::size_t rank : ranks) {
    RankPlace& place = plan.places[rank];
    if (place.was.device) place.options["device"] = fmt::format("{}", *place.was.device);
    if (same_host && !place.was.bus_id.empty()) place.options["bus-id"] = place.was.bus_id;
  }
}

/// Which of the members runs each rank; empty: not all of those hosts are here.
std::vector<int> NodesOf(const Plan& plan, const std::vector<CrewMember>& members,
                         const std::vector<std::pair<std::string, std::vector<std::size_t>>>& hosts) {
  std::vector<int> nodes(plan.places.size());
  for (const auto& [host, ranks] : hosts) {
    std::vector<std::pair<int, int>> here;  // local rank and index
    for (std::size_t i = 0; i < members.size(); ++i)
      if (IsHost(members[i].host, host)) here.push_back({members[i].local_rank.value_or(0), static_cast<int>(i)});
    if (here.empty()) return {};
    std::ranges::sort(here);
    std::vector<std::size_t> by_device = ranks;
    std::ranges::stable_sort(by_device, {}, [&](std::size_t rank) { return plan.places[rank].was.device.value_or(0); });
    for (std::size_t k = 0; k < by_device.size(); ++k) {
      const std::size_t which = here.size() >= by_device.size() ? k : k * here.size() / by_device.size();
      nodes[by_device[k]] = here[which].second;
    }
  }
  return nodes;
}

std::vector<int> NodesOf(const std::vector<NodeShare>& shares) {
  std::vector<int> nodes;
  for (const NodeShare& share : shares) nodes.insert(nodes.end(), static_cast<std::size_t>(share.ranks), share.node);
  return nodes;
}

}  // namespace

Result<std::vector<NodeShare>> InBlocks(int ranks, int nodes, bool several_on_host) {
  if (several_on_host && ranks > nodes)
    return Error{fmt::format("{} processes were started, several on a host, for {} ranks", nodes, ranks),
                 fmt::format("start one a node, or {}, or say --ranks {}", ranks, nodes), ""};
  std::vector<NodeShare> shares;
  for (int node = 0; node < nodes; ++node) {
    const int share = ranks / nodes + (node < ranks % nodes ? 1 : 0);
    if (share > 0) shares.push_back({node, share});
  }
  return shares;
}

std::string LayoutText(const std::vector<NodeShare>& shares) {
  constexpr std::size_t kShown = 200;
  std::string text;
  int first = 0;
  for (const NodeShare& share : shares) {
    if (text.size() > kShown) return text + ", ...";
    const std::string ranks =
        share.ranks == 1 ? fmt::format("{}", first) : fmt::format("{}-{}", first, first + share.ranks - 1);
    text += fmt::format("{}{} on node {}", text.empty() ? "" : ", ", ranks, share.node);
    first += share.ranks;
  }
  return text;
}

Plan WhereTheyWere(Plan plan, const std::vector<CrewMember>& members, bool may_move) {
  const auto hosts = ByHost(plan);
  if (hosts.empty() || plan.places.size() != static_cast<std::size_t>(plan.ranks.value)) return plan;
  std::vector<int> nodes = NodesOf(plan.shares);
  if (members.size() == 1) {
    nodes.assign(plan.places.size(), 0);
    if (hosts.size() > 1)
      plan.cannot.push_back(
          fmt::format("the ranks were on {}, and here all of them are on one host: what is between the hosts is not "
                      "tested",
                      Names(hosts)));
    else if (!IsHost(hosts[0].first, members[0].host))
      plan.notes.push_back(fmt::format("the ranks were on {}, and this is {}: a pass acquits these machines, not those",
                                       hosts[0].first, members[0].host));
  } else if (const std::vector<int> as_before = NodesOf(plan, members, hosts); as_before.empty()) {
    plan.notes.push_back(
        fmt::format("the ranks were on {}, and not all of those are here: a pass acquits these machines, "
                    "not those",
                    Names(hosts)));
  } else if (as_before != nodes && !may_move) {
    plan.notes.push_back(fmt::format("the ranks were on {}, and --hosts puts them elsewhere", Names(hosts)));
  } else {
    nodes = as_before;
    plan.shares.clear();
    for (const int node : nodes) {
      if (plan.shares.empty() || plan.shares.back().node != node) plan.shares.push_back({node, 0});
      ++plan.shares.back().ranks;
    }
    plan.nodes.value = static_cast<int>(std::set<int>(nodes.begin(), nodes.end()).size());
    plan.nodes.rule = fmt::format("ranks where they were, {}", LayoutText(plan.shares));
  }
  std::map<int, std::vector<std::size_t>> on_node;
  for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
    plan.places[rank].node = nodes[rank];
    on_node[nodes[rank]].push_back(rank);
  }
  for (const auto& [node, ranks] : on_node) {
    const std::string& host = members[static_cast<std::size_t>(node)].host;
    GiveGpus(plan, ranks, std::ranges::all_of(ranks, [&plan, &host](std::size_t rank) {
               return IsHost(plan.places[rank].was.host, host);
             }));
  }
  return plan;
}

Result<Plan> OnGpusThatAreHere(Plan plan, const std::vector<std::optional<int>>& gpus,
                               const std::vector<CrewMember>& members) {
  std::vector<int> nodes = NodesOf(plan.shares);
  nodes.resize(static_cast<std::size_t>(plan.ranks.value), 0);
  std::map<int, std::vector<int>> on_node;
  for (int rank = 0; rank < plan.ranks.value; ++rank) on_node[nodes[static_cast<std::size_t>(rank)]].push_back(rank);
  const auto option = [&plan](int rank, const char* name) -> std::optional<std::string> {
    if (static_cast<std::size_t>(rank) >= plan.places.size()) return std::nullopt;
    const auto& options = plan.places[static_cast<std::size_t>(rank)].options;
    const auto found = options.find(name);
    return found == options.end() ? std::nullopt : std::optional(found->second);
  };
  for (auto& [node, ranks] : on_node) {
    const auto number = static_cast<std::size_t>(node);
    const std::optional<int> here = number < gpus.size() ? gpus[number] : std::nullopt;
    // A launcher has chosen; ranks share a GPU; the job's own GPU is known by its address.
    if (!here || (number < members.size() && members[number].local_rank) ||
        std::ranges::any_of(ranks, [&](int rank) { return option(rank, "shared") || option(rank, "bus-id"); }))
      continue;
    const std::string host =
        number < members.size() && !members[number].host.empty() ? members[number].host : "this host";
    if (static_cast<int>(ranks.size()) > *here)
      return Error{fmt::format("{} ranks are to run on {}, which has {} GPU{}: NCCL takes one rank on each",
                               ranks.size(), host, *here, *here == 1 ? "" : "s"),
                   fmt::format("add hosts, or give --ranks {}; --share-gpu runs all on one GPU, and tests NCCL and the "
                               "arguments alone",
                               *here),
                   ""};
    const auto device = [&](int rank) {
      const auto set = option(rank, "device");
      return set ? std::atoi(set->c_str()) : -1;
    };
    if (std::ranges::none_of(ranks, [&](int rank) { return device(rank) >= *here; })) continue;
    std::vector<int> were;
    for (const int rank : ranks) were.push_back(device(rank));
    std::vector<int> by_device = ranks;
    std::ranges::stable_sort(by_device, {}, device);
    std::ranges::sort(were);
    for (std::size_t i = 0; i < by_device.size(); ++i)
      plan.places[static_cast<std::size_t>(by_device[i])].options["device"] = fmt::format("{}", i);
    plan.notes.push_back(fmt::format(
        "rank{} {} {} on GPU{} {} in the job, and {} has {}: {} here, so that a pass acquits {} and not those of the "
        "job",
        ranks.size() == 1 ? "" : "s", FoldRanks(ranks), ranks.size() == 1 ? "was" : "were",
        ranks.size() == 1 ? "" : "s", FoldRanks(were), host, *here,
        ranks.size() == 1 ? "GPU 0 is taken" : fmt::format("GPUs 0-{} are taken in that order", ranks.size() - 1),
        ranks.size() == 1 ? "that one" : "these"));
  }
  return plan;
}

Plan Placed(Plan plan, const std::vector<CrewMember>& members) {
  plan.places.resize(static_cast<std::size_t>(plan.ranks.value));
  std::size_t rank = 0;
  for (const NodeShare& share : plan.shares) {
    const CrewMember& member = members[static_cast<std::size_t>(share.node)];
    for (int local = 0; local < share.ranks && rank < plan.places.size(); ++local, ++rank) {
      RankPlace& place = plan.places[rank];
      place.node = share.node;
      place.options["address"] = member.address;
      place.options.try_emplace("device", fmt::format("{}", member.local_rank.value_or(local)));
      // A launcher may have given each of its processes one GPU to see.
      if (member.local_rank) place.options["device-or-only"] = "yes";
    }
  }
  return plan;
}

}  // namespace inquest
