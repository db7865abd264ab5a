// The environment is NCCL's only door to these settings, and is read once a process.
#include "replay/recipes.h"

#include <fmt/format.h>

#include <csignal>
#include <string_view>
#include <utility>

#include "replay/ras.h"

namespace inquest {
namespace {

RankPlace& PlaceOf(Plan& plan, int rank) {
  plan.places.resize(static_cast<std::size_t>(plan.ranks.value));
  return plan.places[static_cast<std::size_t>(rank)];
}

constexpr const char* kDumpSignal = "NCCL_PROXY_DUMP_SIGNAL";

}  // namespace

std::string SettingOf(const Plan& plan, const Environment& inherited, const std::string& name) {
  for (const Environment* one : {&plan.env, &inherited})
    if (const auto found = one->find(name); found != one->end()) return found->second;
  return "";
}

Plan LoggedTo(Plan plan, const std::string& folder) {
  plan.env["NCCL_DEBUG"] = std::string("INFO");
  plan.env["NCCL_DEBUG_SUBSYS"] = std::string("INIT,BOOTSTRAP,ENV,NET,COLL,TUNING,GRAPH,P2P,SHM");
  for (int rank = 0; rank < plan.ranks.value; ++rank)
    PlaceOf(plan, rank).env[std::string(kLogFileVariable)] = fmt::format("{}/nccl.{}.log", folder, rank);
  return plan;
}

Plan Witnessed(Plan plan, const Environment& inherited) {
  const std::string address = SettingOf(plan, inherited, "NCCL_RAS_ADDR");
  if (SettingOf(plan, inherited, "NCCL_RAS_ENABLE") == "0") {
    plan.env.erase("NCCL_RAS_ADDR");
  } else if (!address.empty()) {
    plan.env["NCCL_RAS_ADDR"] = address;
  } else {
    const std::vector<int> ports = FreePorts(static_cast<std::size_t>(plan.ranks.value));
    for (std::size_t rank = 0; rank < ports.size(); ++rank)
      PlaceOf(plan, static_cast<int>(rank)).env["NCCL_RAS_ADDR"] = fmt::format("127.0.0.1:{}", ports[rank]);
  }
  std::string signal = SettingOf(plan, inherited, kDumpSignal);
  if (signal.empty()) signal = fmt::format("{}", SIGUSR1);
  plan.env[kDumpSignal] = signal;
  // Any other would end a worker whose NCCL has not asked for it yet.
  for (const int number : {SIGUSR1, SIGUSR2})
    if (signal == fmt::format("{}", number)) plan.dump_signal = number;
  return plan;
}

bool IsWitnessed(const Environment& of_rank) { return of_rank.contains(kDumpSignal); }

Plan SharingGpu(Plan plan, const std::string& tag, const Environment& inherited) {
  for (int rank = 0; rank < plan.ranks.value; ++rank) {
    PlaceOf(plan, rank).options["device"] = std::string("0");
    PlaceOf(plan, rank).options["shared"] = fmt::format("{}", rank);
  }
  plan.env["NCCL_NVLS_ENABLE"] = std::string("0");
  plan.env["NCCL_MAX_CTAS"] = std::string("4");
  if (SettingOf(plan, inherited, "NCCL_MULTI_RANK_GPU_ENABLE") == "1") {
    plan.notes.push_back(
        fmt::format("{} ranks share one GPU, as NCCL 2.30 has it: this tests NCCL and the arguments, not NVLink, not "
                    "RDMA, not the network",
                    plan.ranks.value));
    return plan;
  }
  // NCCL refuses two ranks with one GPU and one host hash; NCCL_HOSTID replaces the hash (2.5 to 2.30). Ranks of
  // different hosts have no P2P and no shared memory; the two DISABLE are a second lock.
  static constexpr std::pair<std::string_view, std::string_view> kCommon[] = {
      {"NCCL_NET", "Socket"},    {"NCCL_IB_DISABLE", "1"},   {"NCCL_SOCKET_IFNAME", "lo"},    {"NCCL_P2P_DISABLE", "1"},
      {"NCCL_SHM_DISABLE", "1"}, {"NCCL_MNNVL_ENABLE", "0"}, {"NCCL_CONF_FILE", "/dev/null"},
  };
  for (const auto& [name, value] : kCommon) plan.env.insert_or_assign(std::string(name), std::string(value));
  if (SettingOf(plan, inherited, "NCCL_HOSTID").empty())
    for (int rank = 0; rank < plan.ranks.value; ++rank)
      PlaceOf(plan, rank).env["NCCL_HOSTID"] = fmt::format("inquest-{}-{}", tag, rank);
  plan.notes.push_back(
      fmt::format("{} ranks share one GPU, and NCCL goes over sockets on lo: this tests NCCL and the arguments, not "
                  "NVLink, not RDMA, not the network",
                  plan.ranks.value));
  return plan;
}

}  // namespace inquest
