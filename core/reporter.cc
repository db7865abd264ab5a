// The names of those who tell that a process ended.
#include "core/reporter.h"

#include <array>
#include <cstddef>

namespace inquest {

std::string_view Name(Reporter reporter) {
  static constexpr std::array<std::string_view, static_cast<std::size_t>(Reporter::kVllm) + 1> kNames = {
      "",
      "aprun",
      "ci",
      "composer",
      "deepspeed",
      "docker",
      "gasnet",
      "horovod",
      "htcondor",
      "jsrun",
      "lightning",
      "lsf",
      "mindspore",
      "mpd",
      "mpich",
      "mpiexec",
      "mpirun",
      "mpt",
      "mvapich",
      "nsys",
      "paddle",
      "pals",
      "pdsh",
      "platform-mpi",
      "plexec",
      "poe",
      "program",
      "psid",
      "realm",
      "sglang",
      "shell",
      "slurm",
      "spawn",
      "srun",
      "text-generation-inference",
      "torchelastic",
      "vllm"};
  static_assert(kNames.back() == "vllm");
  return kNames[static_cast<std::size_t>(reporter)];
}

}  // namespace inquest
