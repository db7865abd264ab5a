// `inquest replay`: names the nccl-tests command that runs the same collective. This version has no engine of its own.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/commands.h"

namespace inquest {
namespace {

struct Benchmark {
  std::string_view operation, binary;
  bool rooted = false;
};
constexpr std::array kBenchmarks = {
    Benchmark{"broadcast", "broadcast_perf", true},        Benchmark{"all-reduce", "all_reduce_perf"},
    Benchmark{"all-gather", "all_gather_perf"},            Benchmark{"reduce", "reduce_perf", true},
    Benchmark{"reduce-scatter", "reduce_scatter_perf"},    Benchmark{"all-to-all", "alltoall_perf"},
    Benchmark{"gather", "gather_perf", true},              Benchmark{"scatter", "scatter_perf", true},
};

struct Datatype {
  std::string_view name, argument;
  int bytes;
};
constexpr std::array kDatatypes = {
    Datatype{"float32", "float", 4},  Datatype{"float16", "half", 2},   Datatype{"bfloat16", "bfloat16", 2}, Datatype{"float64", "double", 8},
    Datatype{"int8", "int8", 1},      Datatype{"uint8", "uint8", 1},    Datatype{"int32", "int32", 4},       Datatype{"uint32", "uint32", 4},
    Datatype{"int64", "int64", 8},    Datatype{"uint64", "uint64", 8},
};

/// nccl-tests gives the size of the larger buffer: for gathers and scatters that of all ranks together.
bool SizeIsOfAllRanks(std::string_view operation) {
  return operation == "all-gather" || operation == "reduce-scatter" || operation == "all-to-all" || operation == "gather" || operation == "scatter";
}

}  // namespace

CommandResult RunReplay(const Options& options) {
  const auto benchmark = std::ranges::find(kBenchmarks, std::string_view(options.operation), &Benchmark::operation);
  const auto datatype = std::ranges::find(kDatatypes, std::string_view(options.datatype), &Datatype::name);
  if (benchmark == kBenchmarks.end() || datatype == kDatatypes.end() || options.count == 0 || options.ranks == 0)
    return CouldNotRun({"replay needs --op, --count and --ranks", "take the line that the report prints", ""});
  const std::uint64_t bytes = options.count * static_cast<std::uint64_t>(datatype->bytes) * (SizeIsOfAllRanks(benchmark->operation) ? options.ranks : 1);
  const std::string command = fmt::format("timeout 60 ./build/{} -g {} -b {} -e {} -d {}{} -w 1 -n 5", benchmark->binary, options.ranks, bytes, bytes, datatype->argument,
                                          benchmark->rooted ? fmt::format(" -r {}", options.root) : "");
  return CouldNotRun({"this version cannot run collectives itself",
                      fmt::format("on one host with {} GPUs nccl-tests does the same, first as it is and then with NCCL_P2P_DISABLE=1 in front: {}", options.ranks, command), ""});
}

}  // namespace inquest
