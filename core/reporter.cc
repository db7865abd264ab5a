// The names of those who tell that a process ended.
#include "core/reporter.h"

#include "core/names.h"

namespace inquest {

std::string_view Name(Reporter reporter) {
  static constexpr std::string_view kNames[] = {"",
                                                "aprun",
                                                "ci",
                                                "composer",
                                                "deepspeed",
                                                "docker",
                                                "flux",
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
  return NameIn<Reporter::kVllm>(kNames, reporter);
}

}  // namespace inquest
