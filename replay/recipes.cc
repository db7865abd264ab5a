// The environment is NCCL's only door to these settings, and is read once a process.
#include "replay/recipes.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace inquest {
namespace {

RankPlace& PlaceOf(Plan& plan, int rank) {
  plan.places.resize(static_cast<std::size_t>(plan.ranks.value));
  return plan.places[static_cast<std::size_t>(rank)];
}

}  // namespace

Plan LoggedTo(Plan plan, const std::string& folder) {
  plan.env["NCCL_DEBUG"] = std::string("INFO");
  plan.env["NCCL_DEBUG_SUBSYS"] = std::string("INIT,BOOTSTRAP,ENV,NET,COLL,TUNING,GRAPH,P2P,SHM");
  for (int rank = 0; rank < plan.ranks.value; ++rank) PlaceOf(plan, rank).env["NCCL_DEBUG_FILE"] = fmt::format("{}/nccl.{}.log", folder, rank);
  return plan;
}

Plan SharingGpu(Plan plan, const std::string& tag, int first_port) {
  // NCCL refuses two ranks with one GPU and one host hash; NCCL_HOSTID replaces the hash (2.5 to 2.30). Ranks of different
  // hosts have no P2P and no shared memory; the two DISABLE are a second lock.
  static constexpr std::pair<std::string_view, std::string_view> kCommon[] = {
      {"NCCL_NET", "Socket"},     {"NCCL_IB_DISABLE", "1"},  {"NCCL_SOCKET_IFNAME", "lo"}, {"NCCL_P2P_DISABLE", "1"},       {"NCCL_SHM_DISABLE", "1"},
      {"NCCL_MNNVL_ENABLE", "0"}, {"NCCL_NVLS_ENABLE", "0"}, {"NCCL_MAX_CTAS", "4"},       {"NCCL_CONF_FILE", "/dev/null"},
  };
  for (const auto& [name, value] : kCommon) plan.env.insert_or_assign(std::string(name), std::string(value));
  for (int rank = 0; rank < plan.ranks.value; ++rank) {
    RankPlace& place = PlaceOf(plan, rank);
    place.env["NCCL_HOSTID"] = fmt::format("inquest-{}-{}", tag, rank);
    place.env["NCCL_RAS_ADDR"] = fmt::format("localhost:{}", first_port + rank);
    place.options["device"] = std::string("0");
  }
  plan.notes.push_back(fmt::format("{} ranks share one GPU, and NCCL goes over sockets on lo: this tests NCCL and the arguments, not NVLink, not RDMA, not the network", plan.ranks.value));
  return plan;
}

}  // namespace inquest
