// Turns the operation that a log names into arguments of `inquest replay`.
#include "report/replay_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

namespace inquest {
namespace {

struct Operation {
  std::string_view printed;  ///< upper case, without '_' and a "BASE" at its end
  std::string_view name;     ///< as `inquest replay` calls it
};
constexpr Operation kOperations[] = {{"BROADCAST", "broadcast"},
                                     {"ALLREDUCE", "all-reduce"},
                                     {"ALLGATHER", "all-gather"},
                                     {"REDUCE", "reduce"},
                                     {"REDUCESCATTER", "reduce-scatter"},
                                     {"ALLTOALL", "all-to-all"},
                                     {"GATHER", "gather"},
                                     {"SCATTER", "scatter"},
                                     {"BARRIER", "all-reduce"}};
constexpr std::string_view kDtypes[] = {"float32", "float16", "bfloat16", "float64", "int8",
                                        "uint8",   "int32",   "uint32",   "int64",   "uint64"};

std::optional<std::string_view> OperationOf(std::string_view printed) {
  std::string key;
  for (const char c : printed) {
    if (c != '_') key.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
  }
  if (key.ends_with("BASE")) key.resize(key.size() - 4);
  for (const Operation& operation : kOperations) {
    if (operation.printed == key) return operation.name;
  }
  return std::nullopt;
}

/// Elements in NCCL's meaning: what each rank contributes, or for a reduce-scatter what each rank gets.
std::optional<std::int64_t> CountOf(const CollectiveRef& collective, std::string_view operation) {
  std::optional<std::int64_t> count = collective.count;
  if (!count) count = operation == "reduce-scatter" ? collective.numel_out : collective.numel_in;
  if (count && *count <= 0) count.reset();  // an empty tensor, or "not recorded"
  return count;
}

std::size_t RanksOf(const Timeline& timeline, const CollectiveRef& collective) {
  std::set<int> ranks(collective.ranks_waiting.begin(), collective.ranks_waiting.end());
  ranks.insert(collective.ranks_absent.begin(), collective.ranks_absent.end());
  const std::string group = collective.process_group.value_or("");
  const bool whole_job = group.empty() || group == "0" || group == "default_pg";
  if (whole_job && timeline.world_size && timeline.world_size->value > 0) {
    return std::max(ranks.size(), static_cast<std::size_t>(timeline.world_size->value));
  }
  return ranks.size();
}

}  // namespace

std::optional<std::string> ReplayCommand(const Timeline& timeline, const CollectiveRef& collective) {
  const auto operation = OperationOf(collective.op);
  if (!operation) return std::nullopt;
  const auto count = CountOf(collective, *operation);
  const std::size_t ranks = RanksOf(timeline, collective);
  if (!count || ranks < 2) return std::nullopt;
  std::string command = fmt::format("inquest replay --op {} --count {} --ranks {}", *operation, *count, ranks);
  const std::string dtype = collective.dtype.value_or("");
  if (std::ranges::find(kDtypes, dtype) != std::end(kDtypes)) command += " --dtype " + dtype;
  if (collective.root && *collective.root > 0) command += fmt::format(" --root {}", *collective.root);
  return command;
}

}  // namespace inquest
