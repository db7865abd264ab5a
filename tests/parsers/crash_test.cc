// How a process died by a signal, and words that only look like it.
#include "tests/catch.h"
#include "tests/support/rows.h"

namespace inquest {

extern const Format kCrash;
namespace crash_test {

std::string ShowAll(std::string_view text) {
  std::string out;
  for (const ProcessExit& exit : Only<ProcessExit>(ParseLines(kCrash, text))) {
    CHECK(exit.reporter == Reporter::kShell);
    if (!out.empty()) out += "; ";
    out += "signal " + (exit.signal ? std::to_string(*exit.signal) : "?");
    if (exit.pid) out += " pid " + std::to_string(*exit.pid);
    if (exit.host) out += " host " + *exit.host;
  }
  return out;
}

template <std::size_t N>
void Check(const Row (&rows)[N]) {
  CheckRows(rows, ShowAll);
}

TEST_CASE("crash: words of a shell", "[crash]") {
  Check({
      {"Segmentation fault (core dumped)", "signal 11"},
      {"Segmentation fault", "signal 11"},
      {"Bus error (core dumped)", "signal 7"},
      {"Killed", "signal 9"},
      {"Aborted (core dumped)", "signal 6"},
      {"Floating point exception(core dumped)", "signal 8"},
      {"Terminated", "signal 15"},
      {"run.sh: line 12:  4711 Killed                  python train.py --lr 1", "signal 9 pid 4711"},
      {"/bin/bash: line 1:  4711 Segmentation fault      (core dumped) python train.py", "signal 11 pid 4711"},
      {"[1]+  Killed                  python train.py", "signal 9"},
      {"[1]    4711 killed     python train.py", "signal 9 pid 4711"},
      {"zsh: segmentation fault (core dumped)  python train.py", "signal 11"},
      {"Command terminated by signal 9", "signal 9"},
      {"Epoch 1:  40%|== | 12/30 [01:02<03:04,  1.20s/it]Killed", "signal 9"},
  });
}

TEST_CASE("crash: words of handlers and libraries", "[crash]") {
  Check({
      {"[n17:04711] *** Process received signal ***\n[n17:04711] Signal: Segmentation fault (11)\n[n17:04711] Signal "
       "code: Address not mapped (1)",
       "signal 11 pid 4711 host n17"},
      {"*** SIGSEGV (@0x0) received by PID 4711 (TID 0x7f0011) from PID 0; stack trace: ***", "signal 11 pid 4711"},
      {"[n17:4711 :0:4790] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x28)",
       "signal 11 pid 4711 host n17"},
      {"[n17:4711:0:4790] Caught signal 11 (Segmentation fault: address not mapped to object at address 0x28)",
       "signal 11 pid 4711 host n17"},
      {"SIGABRT(6), PID: 4711, Thread 4711: ", "signal 6 pid 4711"},
      {"ocean.x:4711 terminated with signal 11 at PC=507387 SP=7fffffff3080.  Backtrace:", "signal 11 pid 4711"},
      {"ocean.x:4711 terminated with signal 8. Backtrace:", "signal 8 pid 4711"},
      {"worker:4711 terminated with signal 15", ""},
      {"terminate called after throwing an instance of 'c10::DistBackendError'", "signal 6"},
      {"terminate called without an active exception", "signal 6"},
      {"double free or corruption (out)", "signal 6"},
      {"*** Error in `python': free(): invalid pointer: 0x00007f00 ***", "signal 6"},
      {"free(): invalid pointer", "signal 6"},
      {"corrupted size vs. prev_size", "signal 6"},
      {"*** stack smashing detected ***: terminated", "signal 6"},
  });
}

TEST_CASE("crash: words in chatter", "[crash]") {
  Check({
      {"job killed by user ada", ""},
      {"Killed the old worker", ""},
      {"Killed: 3 of 4 candidates", ""},
      {"Aborted! run again with --force", ""},
      {"fixes a Segmentation fault in the loader", ""},
      {"Out of memory: Killed process 4711 (python)", ""},
      {"PCIe Bus Error: severity=Corrected", ""},
      {"line 12: 4711 people Killed it", ""},
      {"epoch [1] Killed", ""},
      {"[n17] Signal: strong", ""},
      {"we call free(): it is cheap", ""},
      {"RuntimeError: DataLoader worker (pid 318) is killed by signal: Killed. ", ""},
  });
}

TEST_CASE("crash: cut at every byte", "[crash]") {
  const std::string text =
      "run.sh: line 12:  4711 Segmentation fault      (core dumped) python\n*** SIGSEGV (@0x0) received by PID 4711 "
      "(TID 0x7f0011) from PID 0\n"
      "[n17:04711] Signal: Segmentation fault (11)\nterminate called after throwing an instance of 'X'\n";
  for (std::size_t size = 0; size <= text.size(); ++size) ParseLines(kCrash, text.substr(0, size));
}

}  // namespace crash_test
}  // namespace inquest
