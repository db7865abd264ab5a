// Runs one program with a time limit and keeps what it printed.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace inquest {

struct ChildLimits {
  std::chrono::milliseconds time{};
  std::size_t output_bytes = 0;                              ///< where it prints more it is stopped
  std::function<bool()> interrupted = [] { return false; };  ///< once it says so the program is stopped
};

/// How it ended. Neither `exit_code` nor `signal`: it did not start, or could not be killed.
struct ChildEnd {
  std::string output;   ///< standard output and error, as they came
  std::string missing;  ///< why it did not start; empty: it did
  std::optional<int> exit_code, signal;
  bool timed_out = false, cut = false, interrupted = false;
  std::chrono::milliseconds took{};
};

/// In a process group of its own, which is killed when the program ends or its time does; so is the program if we die.
/// One that not even SIGKILL ends (it hangs in the driver of a lost GPU) is left behind after a second.
ChildEnd RunChild(const std::vector<std::string>& command, const ChildLimits& limits);

}  // namespace inquest
