// Blocks, as every launcher counts ranks.
#include "replay/layout.h"

#include <fmt/format.h>

namespace inquest {

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
