// Which rank runs on which node.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "replay/crew.h"
#include "replay/plan.h"

namespace inquest {

/// One each where there are as many nodes as ranks; one on each of the first where there are fewer ranks; else in
/// blocks. `several_on_host`: a launcher started a process for each rank, so that none may get two.
Result<std::vector<NodeShare>> InBlocks(int ranks, int nodes, bool several_on_host);

/// `0-3 on node 0, 4-7 on node 1`.
std::string LayoutText(const std::vector<NodeShare>& shares);

/// Every rank on the host and the GPU that it had in the job, where these are those hosts; what is not as it was, the
/// plan says. `may_move`: nobody said which ranks go to which node.
Plan WhereTheyWere(Plan plan, const std::vector<CrewMember>& members, bool may_move);

/// Every rank on a GPU that there is, by how many each node has (nullopt: its engine uses none): where those of the job
/// have numbers that are not here, on others, which the plan says. Fails where a node has fewer than ranks. The plan is
/// WhereTheyWere.
Result<Plan> OnGpusThatAreHere(Plan plan, const std::vector<std::optional<int>>& gpus,
                               const std::vector<CrewMember>& members);

/// Every rank in its place by Plan::shares: its node, the address by which the others reach it, its GPU.
Plan Placed(Plan plan, const std::vector<CrewMember>& members);

}  // namespace inquest
