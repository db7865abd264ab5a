// Stacks of live processes: what the main thread is at.
#include "tests/catch.h"
#include "tests/support/collect.h"

namespace inquest {

extern const Format kStacks;
namespace stacks_test {

std::string ShowAll(std::string_view text) {
  std::string out;
  for (const Event& event : ParseLines(kStacks, text)) {
    const auto& stack = std::get<StackSeen>(event.what);
    out += (out.empty() ? "" : "; ") + stack.tool + " " + (event.origin.pid ? std::to_string(*event.origin.pid) : "?") +
           ": " + (stack.at == Activity::kNone ? "?" : std::string(Name(stack.at))) + " " + stack.frame + " at line " +
           std::to_string(event.where.line);
  }
  return out;
}

TEST_CASE("stacks: py-spy", "[stacks]") {
  const std::string head =
      "Process 41234: python train.py\nPython v3.10.12 (/usr/bin/python3.10)\n\nThread 41234 (idle): \"MainThread\"\n";
  const struct {
    const char* frames;
    const char* shown;
  } rows[] = {
      {"    select (selectors.py:416)\n    _try_get_data (torch/utils/data/dataloader.py:1133)\n    main "
       "(train.py:84)\n",
       "py-spy 41234: data-preparation _try_get_data (torch/utils/data/dataloader.py:1133) at line 6"},
      {"    all_reduce (torch/distributed/distributed_c10d.py:2050)\n    save_checkpoint (train.py:84)\n",
       "py-spy 41234: collective all_reduce (torch/distributed/distributed_c10d.py:2050) at line 5"},
      {"    _save (torch/serialization.py:850)\n    save (torch/serialization.py:628)\n    save_checkpoint "
       "(train.py:84)\n",
       "py-spy 41234: checkpoint _save (torch/serialization.py:850) at line 5"},
      {"    wait (threading.py:320)\n    compile (torch/_inductor/async_compile.py:231)\n",
       "py-spy 41234: compile compile (torch/_inductor/async_compile.py:231) at line 6"},
      {"    wait (torch/utils/file_baton.py:42)\n",
       "py-spy 41234: compile wait (torch/utils/file_baton.py:42) at line 5"},
      {"    synchronize (torch/cuda/__init__.py:792)\n",
       "py-spy 41234: device-wait synchronize (torch/cuda/__init__.py:792) at line 5"},
      {"    step (env.py:12)\n        Locals:\n            self: <Env>\n    main (train.py:84)\n",
       "py-spy 41234: ? step (env.py:12) at line 5"},
      {"    _worker_loop (torch/utils/data/_utils/worker.py:308)\n    run (multiprocessing/process.py:108)\n",
       ""},  // a loader worker has a main thread too
      {"    poll (a.py:1)\nThread 41301 (idle): \"Thread-1\"\n    all_reduce "
       "(torch/distributed/distributed_c10d.py:2050)\n",
       "py-spy 41234: ? poll (a.py:1) at line 5"},
      {"    poll (a.py:1)\nThread 41301 (idle): \"Thread-2 (_pin_memory_loop)\"\n    wait (threading.py:331)\n    "
       "_worker_loop (torch/utils/data/_utils/worker.py:61)\n",
       "py-spy 41234: ? poll (a.py:1) at line 5"},
      {"\n", ""},
  };
  for (const auto& row : rows) {
    CAPTURE(row.frames);
    CHECK(ShowAll(head + row.frames) == row.shown);
  }
}

TEST_CASE("stacks: gdb", "[stacks]") {
  const std::string text =
      "Thread 2 (Thread 0x7f3c1 (LWP 41250) \"pt_autograd_0\"):\n#0  0x00007f3c in ncclAllReduce () from "
      "/usr/lib/libnccl.so.2\n\n"
      "Thread 1 (Thread 0x7f3c9d0a2740 (LWP 41234) \"python\"):\n"
      "#0  0x00007f3c in sched_yield () from /lib/x86_64-linux-gnu/libc.so.6\n"
      "#1  0x00007f3c in cuStreamSynchronize () from /lib/x86_64-linux-gnu/libcuda.so.1\n"
      "#2  0x00007f3c in c10d::ProcessGroupNCCL::WorkNCCL::synchronizeStream() () from libtorch_cuda.so\n";
  CHECK(ShowAll(text) ==
        "gdb 41234: device-wait cuStreamSynchronize () from /lib/x86_64-linux-gnu/libcuda.so.1 at line 6");
}

}  // namespace stacks_test
}  // namespace inquest
