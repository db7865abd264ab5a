// What training programs say of their devices and their size.
#include "tests/catch.h"
#include "tests/support/rows.h"

namespace inquest {

extern const Format kFramework;
namespace framework_test {

std::string Show(const DeviceReported& what) {
  return "device " + std::to_string(what.device) + (what.rank ? " of " + std::to_string(what.rank->value) : "");
}
std::string Show(const WorldSize& what) { return "world " + std::to_string(what.size); }
template <class T>
std::string Show(const T&) {
  return std::string(T::kKind);
}

std::string ShowAll(std::string_view text) {
  std::string out;
  for (const Event& event : ParseLines(kFramework, text)) {
    if (!out.empty()) out += "; ";
    out += std::visit([](const auto& what) { return Show(what); }, event.what);
    if (event.origin.rank) out += " by " + std::to_string(event.origin.rank->value.value);
    if (event.origin.local_rank) out += " local " + std::to_string(event.origin.local_rank->value);
    if (event.origin.host) out += " on " + event.origin.host->value;
    if (event.origin.pid) out += " pid " + std::to_string(*event.origin.pid);
  }
  return out;
}

template <std::size_t N>
void Check(const Row (&rows)[N]) {
  CheckRows(rows, ShowAll);
}

TEST_CASE("framework: devices", "[framework]") {
  Check({
      {"Process rank: 2, device: cuda:2, n_gpu: 1, distributed training: True", "device 2 of 2 by 2"},
      {"[INFO|2031-03-11 16:58:31] x.parser:384 >> Process rank: 1, world size: 4, device: cuda:0, distributed "
       "training: True",
       "device 0 of 1 by 1; world 4"},
      {"Process rank: -1, device: cuda:0, n_gpu: 2", "device 0"},
      {"LOCAL_RANK: 1 - CUDA_VISIBLE_DEVICES: [4,5]", "device 1 local 1"},
      {"| distributed init (rank 3): env://, gpu 3", "device 3 of 3 by 3"},
      {"Process rank: 2, device: cpu", ""},
      {"LOCAL_RANK: x - CUDA_VISIBLE_DEVICES: [", ""},
  });
}

TEST_CASE("framework: sizes", "[framework]") {
  Check({
      {"world_size=16", "world 16"},
      {"(EngineCore_DP0 pid=311) INFO 08-21 03:10:24 [parallel_state.py:1203] world_size=16 rank=8 local_rank=0 "
       "backend=nccl",
       "world 16 by 8 local 0 pid 311"},
      {"using world size: 8, data-parallel size: 1, tensor-model-parallel size: 2", "world 8"},
      {"  world_size ...................................... 8", "world 8"},
      {"dist_world_size=4", "world 4"},
      {"'world_size': 4,", "world 4"},
      {"Initializing distributed: GLOBAL_RANK: 1, MEMBER: 2/6", "world 6 by 1"},
      {"All distributed processes registered. Starting with 2 processes", "world 2"},
      {"| num_processes         | 4                                                  |", "world 4"},
      {"Number of processes: 4", "world 4"},
      {"Num processes: 4", "world 4"},
  });
}

TEST_CASE("framework: sizes of something else", "[framework]") {
  Check({
      {"data_parallel_world_size=4", ""},
      {"tensor model parallel world size: 2", ""},
      {"group_world_size=2", ""},
      {"tp_world_size: 2", ""},
      {"local world size: 8", ""},
      {"world_size=0", ""},
      {"world_size=-1", ""},
      {"world_size=args.world_size", ""},
      {"a small world size matters", ""},
      {"Starting with 2 processes", ""},
      {"world_size=1.5", ""},
  });
}

TEST_CASE("framework: lists of several lines", "[framework]") {
  Check({
      {"Num processes: 2\nProcess index: 1\nLocal process index: 1\nDevice: cuda:1\n", "world 2; device 1 of 1 by 1"},
      {"  min_nodes        : 2\n  max_nodes        : 2\n  nproc_per_node   : 4\n", "world 8"},
      {"  min_nodes        : 1\n  max_nodes        : 4\n  nproc_per_node   : 4\n", ""},
      {"  nproc_per_node   : 4\n", ""},
      {"# nThread 1 nGpus 2 minBytes 8 maxBytes 128 step: 2(factor) warmup iters: 5 iters: 20\n"
       "#  Rank  0 Group  0 Pid  4711 on n17 device  0 [0000:5d:00] NVIDIA X\n"
       "#   Rank  1 Pid  4712 on n17 device  1 [0x5e] NVIDIA X\n"
       "#                                    out-of-place                       in-place          \n",
       "device 0 of 0 by 0 on n17 pid 4711; device 1 of 1 by 1 on n17 pid 4712; world 2"},
  });
}

TEST_CASE("framework: cut at every byte", "[framework]") {
  const std::string text =
      "Process rank: 2, world size: 4, device: cuda:2\nworld_size=16 rank=8 local_rank=0\n  min_nodes : 2\n  max_nodes "
      ": 2\n  nproc_per_node : 8\n"
      "#  Rank  0 Group  0 Pid  4711 on n17 device  0 [0x06] NVIDIA X\n#    out-of-place    in-place\n";
  for (std::size_t size = 0; size <= text.size(); ++size) ParseLines(kFramework, text.substr(0, size));
}

}  // namespace framework_test
}  // namespace inquest
