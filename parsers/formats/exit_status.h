// How a process ended, in the spellings of launchers and shells: exit codes, signal numbers, names and words.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/event.h"

namespace inquest {

/// Linux signal numbers by name (`KILL`) and by the words of strsignal(3) (`Killed`).
struct SignalWords {
  int number = 0;
  std::string_view name, words;
};
inline constexpr SignalWords kSignals[] = {
    {1, "HUP", "Hangup"},
    {2, "INT", "Interrupt"},
    {3, "QUIT", "Quit"},
    {4, "ILL", "Illegal instruction"},
    {5, "TRAP", "Trace/breakpoint trap"},
    {6, "ABRT", "Aborted"},
    {7, "BUS", "Bus error"},
    {8, "FPE", "Floating point exception"},
    {9, "KILL", "Killed"},
    {10, "USR1", "User defined signal 1"},
    {11, "SEGV", "Segmentation fault"},
    {12, "USR2", "User defined signal 2"},
    {13, "PIPE", "Broken pipe"},
    {14, "ALRM", "Alarm clock"},
    {15, "TERM", "Terminated"},
    {24, "XCPU", "CPU time limit exceeded"},
    {25, "XFSZ", "File size limit exceeded"},
};

/// Of `9`, `KILL`, `SIGKILL`, `Signals.SIGKILL` or `Killed`; nullopt for anything else.
inline std::optional<int> SignalNumber(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc() && end == text.data() + text.size())
    return number > 0 && number < 65 ? std::optional(number) : std::nullopt;
  if (text.starts_with("Signals.")) text.remove_prefix(8);
  if (text.starts_with("SIG")) text.remove_prefix(3);
  for (const SignalWords& signal : kSignals) {
    if (text == signal.name || text == signal.words) return signal.number;
  }
  return std::nullopt;
}

/// `SIGKILL`; `signal 40` where it has no name of its own.
inline std::string SignalName(int number) {
  for (const SignalWords& signal : kSignals) {
    if (signal.number == number) return "SIG" + std::string(signal.name);
  }
  return "signal " + std::to_string(number);
}

/// What the status of an exception that ended a process on Windows is elsewhere (winnt.h, ntstatus.h); Python prints it
/// as a number without a sign or with one.
inline std::optional<int> SignalOfStatus(std::int64_t code) {
  constexpr std::int64_t kOverrun = 0xC0000409, kHeap = 0xC0000374, kAccess = 0xC0000005, kStack = 0xC00000FD,
                         kIllegal = 0xC000001D, kDivideFloat = 0xC000008E, kDivide = 0xC0000094,
                         kPrivileged = 0xC0000096, kCtrlC = 0xC000013A, kWord = std::int64_t{1} << 32;
  switch (code < 0 ? code + kWord : code) {
    case kOverrun:
    case kHeap:
      return 6;
    case kAccess:
    case kStack:
      return 11;
    case kIllegal:
    case kPrivileged:
      return 4;
    case kDivide:
    case kDivideFloat:
      return 8;
    case kCtrlC:
      return 2;
    default:
      return std::nullopt;
  }
}

/// An exit code as launchers print it: -9 is signal 9; 137 is an exit code that a shell made of signal 9.
inline ProcessExit ExitWithCode(std::int64_t code, Reporter reporter) {
  constexpr std::int64_t kShellBase = 128, kLastClassic = 31;
  ProcessExit exit;
  exit.reporter = reporter;
  if (code >= 0 && code <= 255) exit.exit_code = static_cast<int>(code);
  if (code < 0 && code > -65) exit.signal = static_cast<int>(-code);
  if (const auto signal = SignalOfStatus(code)) exit.signal = signal;
  if (code > kShellBase && code <= kShellBase + kLastClassic) exit.signal = static_cast<int>(code - kShellBase);
  return exit;
}

/// What a program hands to MPI_Abort or exit is cut to a byte, and no signal.
inline ProcessExit ExitWithArgument(std::int64_t argument, Reporter reporter) {
  ProcessExit exit;
  exit.reporter = reporter;
  exit.exit_code = static_cast<int>(argument & 0xFF);
  return exit;
}

inline ProcessExit ExitBySignal(std::optional<int> signal, Reporter reporter) {
  ProcessExit exit;
  exit.signal = signal;
  exit.reporter = reporter;
  return exit;
}

}  // namespace inquest
