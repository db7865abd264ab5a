// Native stacks of processes that crashed: the frame that tells, in the words of each that prints them.
#include "tests/catch.h"
#include "tests/support/rows.h"

namespace inquest {

extern const Format kCrashStack;
namespace crash_stack_test {

std::string ShowAll(std::string_view text) {
  std::string out;
  for (const Event& event : ParseLines(kCrashStack, text)) {
    if (!out.empty()) out += "; ";
    if (const auto* exit = std::get_if<ProcessExit>(&event.what)) {
      out += "signal " + std::to_string(exit->signal.value_or(0));
      continue;
    }
    const auto& frame = std::get<CrashFrame>(event.what);
    out += frame.library + "|" + frame.function + "|" + frame.file;
    if (event.origin.pid) out += " pid " + std::to_string(*event.origin.pid);
    if (event.origin.host) out += " on " + event.origin.host->value;
  }
  return out;
}

TEST_CASE("crash stack: the first frame beside the handler and the C library", "[crash]") {
  const Row rows[] = {
      // Open MPI, with its head and without
      {"[node17:41234] *** Process received signal ***\n"
       "[node17:41234] Signal: Segmentation fault (11)\n"
       "[node17:41234] [ 0] /lib/x86_64-linux-gnu/libpthread.so.0(+0x11390)[0x7f226a669390]\n"
       "[node17:41234] [ 1] /lib/x86_64-linux-gnu/libc.so.6(+0x14e116)[0x7f226a3dc116]\n"
       "[node17:41234] [ 2] /usr/lib/libtally.so.13(tally_up+0x54c)[0x7f21becf5cb7]\n"
       "[node17:41234] [ 3] /usr/lib/libmpi.so.12(MPI_Alltoall+0x16c)[0x7f21bf43c67c]\n"
       "[node17:41234] *** End of error message ***\n",
       "libtally.so.13|tally_up| pid 41234 on node17"},
      {"[ 0] /lib64/libpthread.so.0(+0xf630)[0x7f1b82419100]\n[ 1] ./solve[0x40151d]\n", "solve||"},
      {"[ 0] [0x7f1b82419100]\n[ 1] /opt/lib/libtally.so(_ZN5tally2upEv+0x9)[0x7f1b]\n", "libtally.so|_ZN5tally2upEv|"},
      // Stacks of two processes, woven into one another
      {"[a:1] [ 0] /lib/libc.so.6(+0x42520)[0x7f]\n[b:2] [ 0] /lib/libc.so.6(+0x42520)[0x7f]\n"
       "[b:2] [ 1] /x/libtwo.so(f+0x1)[0x7f]\n[a:1] [ 1] /x/libone.so(+0x1)[0x7f]\n[b:2] [ 2] "
       "/x/libone.so(+0x1)[0x7f]\n",
       "libtwo.so|f| pid 2 on b; libone.so|| pid 1 on a"},
      // UCX, with and without names of sources
      {"==== backtrace (tid: 296459) ====\n"
       " 0  /usr/lib/libucs.so.0(ucs_handle_error+0x2d4) [0x7fedc925c274]\n"
       " 1  /usr/lib/libucs.so.0(+0x2d44c) [0x7fedc925c44c]\n"
       " 2  /opt/nccl/lib/libnccl.so(+0x120057) [0x7ff1c18c1057]\n"
       " 3  /usr/lib/x86_64-linux-gnu/libc.so.6(+0x89144) [0x7ff1c151e144]\n"
       "=================================\n",
       "libnccl.so||"},
      {"==== backtrace (tid:   1139) ====\n 0 0x0000000000042520 __sigaction()  ???:0\n"
       " 1 0x00000000000a11f4 tally_up()  /src/tally-1.2/src/up.c:88\n 2 0x0000000000029d90 main()  ???:0\n",
       "|tally_up|up.c"},
      // glog and abseil
      {"*** Aborted at 1932904028 (unix time) try \"date -d @1932904028\" if you are using GNU date ***\n"
       "PC: @                0x0 (unknown)\n"
       "*** SIGSEGV (@0x18) received by PID 41234 (TID 0x7f1c40000000) from PID 24; stack trace: ***\n"
       "    @     0x7f1c4a1b2390 (unknown)\n    @     0x7f1c4a1b2391 __restore_rt\n    @     0x7f1c4a1b2392 "
       "ncclProxyService()\n    @     0x7f1c4a1b2393 start_thread\n",
       "|ncclProxyService|"},
      {"PC: @     0x7f1c4a1b2390  (unknown)  tally::Up()\n    @     0x7f1c4a1b2390        928  (unknown)\n",
       "|tally::Up|"},
      // MXNet, tvm-ffi, CPython, gdb
      {"Stack trace:\n  [bt] (0) /lib/x86_64-linux-gnu/libc.so.6(+0x42520) [0x7f1c4a1b2390]\n"
       "  [bt] (1) /usr/lib/libtally.so(+0x1b) [0x7f1c4a1b2391]\n",
       "libtally.so||"},
      {"!!!!!!! Segfault encountered !!!!!!!\n  File \"./nptl/pthread_kill.c\", line 44, in "
       "__pthread_kill_implementation\n"
       "  File \"<unknown>\", line 0, in ncclMemAlloc\n  File \"<unknown>\", line 0, in _start\n",
       "signal 11; |ncclMemAlloc|"},
      {"Current thread's C stack trace (most recent call first):\n"
       "  Binary file \"/usr/bin/python3.14\", at _Py_DumpStack+0x3b [0x5581]\n"
       "  Binary file \"/usr/lib/libtally.so\", at tally_up+0x1b [0x7f1c4a1b2391]\n",
       "libtally.so|tally_up|"},
      {"Thread 9 \"python\" received signal SIGSEGV, Segmentation fault.\n"
       "#0  0x00007f1c4a1b2390 in __memcpy_avx_unaligned_erms () from /lib/x86_64-linux-gnu/libc.so.6\n"
       "#1  0x00007f1c4a1b2391 in ncclProxyService (_args=0x55) from /usr/lib/libnccl.so.2\n",
       "signal 11; libnccl.so.2|ncclProxyService|"},
      // No stack of a crash: py-spy's and a list of numbers, c10's behind an exception, gdb's of a live process
      {"[ 0] 12 13 14\n[ 1] 15 16 17\n", ""},
      {"frame #0: c10::Error::Error(c10::SourceLocation) + 0x57 (0x7f1c in /lib/libc10.so)\n", ""},
      {"#0  0x00007f1c4a1b2390 in ncclProxyService () from /usr/lib/libnccl.so.2\n", ""},
      {"  File \"<unknown>\", line 0, in ncclMemAlloc\n", ""},
  };
  CheckRows(rows, ShowAll);
}

}  // namespace crash_stack_test
}  // namespace inquest
