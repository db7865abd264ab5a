// Processes on GPUs, and the files that their environment names.
#include "collect/running.h"

#include <filesystem>

#include "tests/catch.h"
#include "tests/support/run_job.h"

using namespace inquest;
namespace fs = std::filesystem;

TEST_CASE("processes that hold a GPU open are found by their open files", "[unit][collect]") {
  const JobFolder proc(
      {{"41/fd/.keep", ""}, {"7/fd/.keep", ""}, {"300/fd/.keep", ""}, {"12/status", ""}, {"self/fd/.keep", ""}});
  const auto link = [&](const char* from, const char* to) { fs::create_symlink(to, fs::path(proc.path()) / from); };
  link("41/fd/3", "/dev/null");
  link("41/fd/4", "/dev/nvidia7");
  link("7/fd/9", "/dev/nvidia0");
  link("300/fd/1", "/dev/nvidiactl");
  link("300/fd/2", "/dev/nvidia-uvm");
  link("self/fd/1", "/dev/nvidia0");
  CHECK(ProcessesOnGpus(proc.path()) == std::vector<std::int64_t>{7, 41});
  CHECK(ProcessesOnGpus("/nowhere").empty());
}

TEST_CASE("a rank's environment names what it writes", "[unit][collect]") {
  struct Row {
    std::vector<std::string> environment, files;
  };
  const Row rows[] = {
      {{}, {}},
      {{"NCCL_DEBUG_FILE=/logs/nccl.%h.%p.log"}, {"/logs/nccl.node07.17.log"}},
      {{"NCCL_DEBUG_FILE=nccl-%%-%x-%"}, {"nccl-%-%x-%"}},
      {{"NCCL_DEBUG_FILE="}, {}},
      {{"NCCL_DEBUG_FILE=stderr"}, {}},
      {{"RANK=3", "HOME=/home/me"},
       {"/tmp/nccl_trace_rank_3", "/tmp/comm_lib_trace_rank_3", "/home/me/.cache/torch/nccl_trace_rank_3",
        "/home/me/.cache/torch/comm_lib_trace_rank_3"}},
      {{"RANK=3", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/d/fr_"}, {"/d/fr_3"}},
      {{"RANK=3", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE=/d/old_", "TORCH_FR_DUMP_TEMP_FILE=/d/new_"}, {"/d/new_3"}},
      {{"RANK=3", "TORCH_FR_DUMP_TEMP_FILE=/d/whole", "TORCH_FR_DUMP_DYNAMIC_FILE_NAME=1"}, {"/d/whole"}},
      {{"RANK=../../etc", "TORCH_FR_DUMP_TEMP_FILE=/d/"}, {}},
      {{"MY_RANK=3", "RANK"}, {}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.environment);
    CHECK(FilesNamedBy({41234, 17, row.environment}, "node07.example.org") == row.files);
  }
}

TEST_CASE("dumps of the last day are found, others are not", "[unit][collect]") {
  const JobFolder folder({{"nccl_trace_rank_0", "x"},
                          {"comm_lib_trace_rank_12", "x"},
                          {"nccl_trace_rank_1", "x"},
                          {"nccl_trace_rank_0.pipe", "x"},
                          {"other", "x"}});
  fs::last_write_time(fs::path(folder.path()) / "nccl_trace_rank_1",
                      fs::file_time_type::clock::now() - std::chrono::hours(30));
  fs::create_symlink("/etc/passwd", fs::path(folder.path()) / "nccl_trace_rank_2");
  CHECK(RecentDumps({folder.path(), "/nowhere"}) ==
        std::vector<std::string>{folder.path() + "/comm_lib_trace_rank_12", folder.path() + "/nccl_trace_rank_0"});
  CHECK(DumpFolders({"HOME=/h"}) == std::vector<std::string>{"/tmp", "/h/.cache/torch"});
  CHECK(DumpFolders({"HOME=/h", "XDG_CACHE_HOME=/c"}) == std::vector<std::string>{"/tmp", "/c/torch"});
}
