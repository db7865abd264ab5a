// Who takes part, by options and by the variables of each launcher.
#include "cli/launch.h"

#include <fmt/format.h>

#include <map>

#include "replay/layout.h"
#include "tests/catch.h"

using namespace inquest;

namespace launch_test {

using Variables = std::map<std::string, std::string>;

Lookup EnvironmentOf(const Variables& variables) {
  return [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
  };
}

/// `1/4 at host:port local 1`, or what is wrong.
std::string Shown(const Result<Launch>& launch) {
  if (!launch) return launch.error().message;
  std::string text = fmt::format("{}/{}", launch->index, launch->count);
  if (launch->count > 1) text += fmt::format(" at {}:{}", launch->master, launch->port);
  if (launch->local_rank) text += fmt::format(" local {}", *launch->local_rank);
  return text;
}

TEST_CASE("a launch is found in the variables of its launcher", "[unit][replay]") {
  const Variables torchrun = {
      {"RANK", "5"},       {"WORLD_SIZE", "16"},      {"LOCAL_RANK", "1"},     {"LOCAL_WORLD_SIZE", "4"},
      {"GROUP_RANK", "1"}, {"MASTER_ADDR", "node07"}, {"MASTER_PORT", "29500"}};
  const Variables slurm = {{"SLURM_PROCID", "3"},  {"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "4"},
                           {"SLURM_LOCALID", "1"}, {"SLURM_NODEID", "1"}, {"SLURM_STEP_NODELIST", "gpu[08-09]"}};
  const auto with = [](Variables variables, const Variables& more) {
    for (const auto& [name, value] : more) variables[name] = value;
    return variables;
  };
  struct Row {
    Variables variables;
    LaunchFlags flags;
    const char* shown;
    const char* rule;
  };
  const Row rows[] = {
      {{}, {}, "0/1", "this host alone"},
      {torchrun, {}, "5/16 at node07:29500 local 1", "RANK 5 of WORLD_SIZE 16 in the environment of torchrun"},
      {with(torchrun, {{"TORCHELASTIC_USE_AGENT_STORE", "True"}}), {}, "5/16 at node07:29501 local 1", "torchrun"},
      {with(torchrun, {{"LOCAL_WORLD_SIZE", "1"}, {"LOCAL_RANK", "0"}}), {}, "5/16 at node07:29500", "torchrun"},
      {with(torchrun, {{"MASTER_PORT", ""}}), {}, "5/16 at node07:29571 local 1", "torchrun"},
      {with(torchrun, {{"MASTER_ADDR", ""}}),
       {},
       "RANK 5 of WORLD_SIZE 16 in the environment of torchrun, but nothing says where the first of them is",
       ""},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "pod-0"}}, {}, "0/1", "RANK 0 of WORLD_SIZE 1"},
      {{{"RANK", "3"}, {"MASTER_ADDR", "pod-0"}}, {}, "0/1", "this host alone"},
      {{{"WORLD_SIZE", "8"}}, {}, "0/1", "this host alone"},
      {with(torchrun, {{"RANK", "16"}}), {}, "RANK 16 is none of WORLD_SIZE 16", ""},
      {with(torchrun, {{"RANK", "one"}}), {}, "RANK is 'one'", ""},
      {with(torchrun, {{"WORLD_SIZE", "-2"}}), {}, "WORLD_SIZE is '-2'", ""},
      {{{"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"}},
       {},
       "1/2 at 127.0.0.1:29571 local 1",
       "Open MPI"},
      {{{"OMPI_COMM_WORLD_RANK", "1"},
        {"OMPI_COMM_WORLD_SIZE", "2"},
        {"OMPI_COMM_WORLD_LOCAL_RANK", "0"},
        {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}},
       {.nodes = {}, .node = {}, .master = ParseHostAndPort("a:7")},
       "1/2 at a:7",
       "Open MPI"},
      {{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}},
       {},
       "OMPI_COMM_WORLD_RANK 1 of OMPI_COMM_WORLD_SIZE 2 in the environment of Open MPI, but nothing says where the "
       "first of them is",
       ""},
      {{{"PMI_RANK", "1"}, {"PMI_SIZE", "4"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "4"}},
       {},
       "1/4 at 127.0.0.1:29571 local 1",
       "PMI"},
      {slurm, {}, "3/4 at gpu08:29571 local 1", "SLURM_PROCID 3 of SLURM_STEP_NUM_TASKS 4 in the environment of srun"},
      {with(slurm, {{"SLURM_STEP_NODELIST", "gpu[08-11]"}}), {}, "3/4 at gpu08:29571", "srun"},
      {with(slurm, {{"PMI_RANK", "3"}, {"PMI_SIZE", "4"}}), {}, "3/4 at gpu08:29571 local 1", "srun"},
      {with(slurm, {{"MASTER_ADDR", "10.0.0.1"}, {"MASTER_PORT", "30000"}}),
       {},
       "3/4 at 10.0.0.1:30000 local 1",
       "srun"},
      {with(slurm, {{"SLURM_STEP_NUM_TASKS", "1"}, {"SLURM_PROCID", "0"}}), {}, "0/1", "srun"},
      {with(slurm, {{"SLURM_STEP_NODELIST", ""}}), {}, "0/1", "this host alone"},
      {with(slurm, {{"SLURM_STEP_NODELIST", "gpu[08-"}}), {}, "SLURM_STEP_NODELIST is 'gpu[08-'", ""},
      {with(torchrun, slurm), {}, "5/16 at node07:29500 local 1", "torchrun"},
      {torchrun, {.nodes = 1, .node = {}, .master = {}}, "0/1", "--nnodes"},
      {torchrun, {.nodes = 2, .node = 1, .master = ParseHostAndPort("a")}, "1/2 at a:29571", "--nnodes"},
      {torchrun,
       {.nodes = {}, .node = {}, .master = ParseHostAndPort("[fe80::1]:5")},
       "5/16 at fe80::1:5 local 1",
       "torchrun"},
      {{}, {.nodes = 2, .node = 1, .master = {}}, "there are 2 nodes, but nothing says where the first of them is", ""},
      {{}, {.nodes = 2, .node = {}, .master = ParseHostAndPort("a")}, "--nnodes needs --node-rank", ""},
      {{}, {.nodes = 2, .node = 2, .master = ParseHostAndPort("a")}, "--node-rank 2 is none of 2 nodes", ""},
      {{}, {.nodes = {}, .node = 1, .master = ParseHostAndPort("a")}, "--node-rank needs --nnodes", ""},
      {{}, {.nodes = 0, .node = {}, .master = {}}, "--nnodes must be 1 or more", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.shown, row.variables.size());
    const auto launch = FindLaunch(row.flags, EnvironmentOf(row.variables));
    CHECK(Shown(launch) == row.shown);
    if (launch) CHECK(launch->rule.find(row.rule) != std::string::npos);
  }
  const Variables batch = {{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}, {"SLURM_JOB_NODELIST", "gpu[08-09]"}};
  CHECK(FindLaunch({}, EnvironmentOf(batch))->note.find("srun") != std::string::npos);
}

TEST_CASE("host lists of Slurm are expanded", "[unit][replay]") {
  using Hosts = std::vector<std::string>;
  const std::pair<const char*, std::optional<Hosts>> rows[] = {
      {"node1", Hosts{"node1"}},
      {"a,b", Hosts{"a", "b"}},
      {"node[1-3]", Hosts{"node1", "node2", "node3"}},
      {"node[08-10,7],gpu1", Hosts{"node08", "node09", "node10", "node7", "gpu1"}},
      {"node[1-2]-ib", Hosts{"node1-ib", "node2-ib"}},
      {"r[1-2]n[1-2]", Hosts{"r1n1", "r1n2", "r2n1", "r2n2"}},
      {"", std::nullopt},
      {"node[", std::nullopt},
      {"node]", std::nullopt},
      {"node[1-2", std::nullopt},
      {"node[]", std::nullopt},
      {"node[2-1]", std::nullopt},
      {"node[a-b]", std::nullopt},
      {"node[1-4000000000]", std::nullopt},
      {"n[0-65535]m[0-65535]", std::nullopt},
      {"node[[1-2]]", std::nullopt},
      {"node[99999999999]", std::nullopt},
      {"a,,b", std::nullopt},
  };
  for (const auto& [list, hosts] : rows) {
    CAPTURE(list);
    CHECK(ExpandHostList(list) == hosts);
  }
}

TEST_CASE("hosts and times as options give them", "[unit][replay]") {
  for (const char* text : {"a:99999", "a:", "", "[fe80::1]x", "[fe80::1]:", ":5"}) {
    CAPTURE(text);
    CHECK_FALSE(ParseHostAndPort(text));
  }
  CHECK(DurationOf("2.5s") == std::chrono::milliseconds(2500));
  CHECK(DurationOf("500ms") == std::chrono::milliseconds(500));
  for (const char* text : {"", "0", "-1", "soon", "1h", "1e9"}) CHECK_FALSE(DurationOf(text));
}

TEST_CASE("--hosts and places of ranks", "[unit][replay]") {
  const auto shares = ParseHostShares("user@a:4,b-1.example:2");
  REQUIRE(shares);
  CHECK(shares->size() == 2);
  CHECK(shares->at(0).host == "user@a");
  CHECK(shares->at(1).ranks == 2);
  for (const char* bad : {"", "a:4,b", "a:0", "a:x", "-oProxyCommand=x", "a;b", "a b", "a,", "$(x)"}) {
    CAPTURE(bad);
    CHECK_FALSE(ParseHostShares(bad));
  }
  const auto text = [](int ranks, int nodes, bool several = false) {
    const auto blocks = InBlocks(ranks, nodes, several);
    return blocks ? LayoutText(*blocks) : blocks.error().message;
  };
  CHECK(text(8, 2) == "0-3 on node 0, 4-7 on node 1");
  CHECK(text(3, 2) == "0-1 on node 0, 2 on node 1");
  CHECK(text(2, 2, true) == "0 on node 0, 1 on node 1");
  CHECK(text(2, 3) == "0 on node 0, 1 on node 1");
  CHECK(text(4, 2, true) == "2 processes were started, several on a host, for 4 ranks");
}

TEST_CASE("ranks are put on the GPUs that a node has", "[unit][replay]") {
  const std::vector<CrewMember> two = {{.host = "oak01"}, {.host = "oak02"}};
  Plan plan;
  plan.ranks.value = 8;
  plan.shares = {{0, 4}, {1, 4}};
  plan.places.resize(8);
  for (std::size_t rank = 0; rank < 8; ++rank)
    plan.places[rank].options["device"] = std::to_string(rank < 4 ? 7 - rank : rank - 4);
  const auto devices = [](const Plan& placed) {
    std::string all;
    for (const RankPlace& place : placed.places) all += place.options.at("device");
    return all;
  };
  const auto same = OnGpusThatAreHere(plan, {8, 4}, two);
  REQUIRE(same);
  CHECK(devices(*same) == "76540123");
  CHECK(same->notes.empty());
  const auto other = OnGpusThatAreHere(plan, {4, 4}, two);
  REQUIRE(other);
  CHECK(devices(*other) == "32100123");  // in the order that they had
  REQUIRE(other->notes.size() == 1);
  CHECK(other->notes[0] ==
        "ranks 0-3 were on GPUs 4-7 in the job, and oak01 has 4: GPUs 0-3 are taken in that order here, so that a pass "
        "acquits these and not those of the job");
  const auto fewer = OnGpusThatAreHere(plan, {8, 3}, two);
  REQUIRE_FALSE(fewer);
  CHECK(fewer.error().message == "4 ranks are to run on oak02, which has 3 GPUs: NCCL takes one rank on each");
  CHECK(fewer.error().hint.find("--ranks 3") != std::string::npos);
  // Of no matter where the engine uses none, a launcher has chosen, ranks share one, or the address says which.
  CHECK(devices(*OnGpusThatAreHere(plan, {std::nullopt, std::nullopt}, two)) == "76540123");
  CHECK(devices(*OnGpusThatAreHere(plan, {1, 8}, {{.host = "oak01", .local_rank = 0}, {.host = "oak02"}})) ==
        "76540123");
  plan.places[0].options["bus-id"] = "0000:4e:00.0";
  CHECK(devices(*OnGpusThatAreHere(plan, {4, 4}, two)) == "76540123");
}

}  // namespace launch_test
