// crash.cc: how a process died by a signal, in the words of its shell, its C library or its own handler.
// Format:  a line that is nothing else, or one with the shell's, glibc's, glog's or Open MPI's own head
//            Segmentation fault (core dumped)
//            run.sh: line 12: 4711 Killed                  python train.py
//            *** SIGSEGV (@0x0) received by PID 4711 (TID 0x7f00) from PID 0; stack trace: ***
//            terminate called after throwing an instance of 'c10::DistBackendError'
// Clock:   none.        Not read: words such as "Killed" inside other text; C++ and kernel backtraces.
#include <string>
#include <utility>

#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/exit_status.h"

namespace inquest {
namespace {

// Also for what the process says itself: like a shell, the line stands among its own output.
constexpr Reporter kReporter = Reporter::kShell;

/// The words of a shell for the signals that end a process, between two other expressions.
Pattern AroundWords(std::string before, std::string_view after) {
  before += R"((Hangup|Illegal instruction|Trace/breakpoint trap|Aborted|Bus error|Floating point exception|Killed|)"
            R"(Segmentation fault|Terminated)(?:\s*\(core dumped\))?)";
  before += after;
  return Pattern(before.c_str());
}

// What bash, sh and their kin print for a child: alone (perhaps right behind a progress bar), behind `line 12: 4711`,
// or behind a job number.
std::optional<ProcessExit> ReadShell(std::string_view text) {
  static const Pattern kWhole = AroundWords(R"((?:^|(?:s/it|it/s)[^\]]{0,80}\]\s*))", R"(\s*$)");
  static const Pattern kLine = AroundWords(R"(\bline \d+:\s+(\d+) )", R"((?:\s.*)?$)");
  static const Pattern kJob = AroundWords(R"(^\[\d+\][+-]?\s\s+(?:(\d+) )?)", R"((?:\s.*)?$)");
  static const Pattern kTime(R"(^Command terminated by signal (\d+))");
  if (const auto match = kWhole.Search(text)) return ExitBySignal(SignalNumber(match->text(1)), kReporter);
  if (const auto match = kTime.Search(text)) return ExitBySignal(SignalNumber(match->text(1)), kReporter);
  auto match = kLine.Search(text);
  if (!match) match = kJob.Search(text);
  if (!match) return std::nullopt;
  ProcessExit exit = ExitBySignal(SignalNumber(match->text(2)), kReporter);
  exit.pid = match->number(1);
  return exit;
}

std::optional<ProcessExit> ReadZsh(std::string_view text) {
  static constexpr std::pair<std::string_view, int> kWords[] = {{"killed", 9},      {"segmentation fault", 11},
                                                                {"abort", 6},       {"bus error", 7},
                                                                {"terminated", 15}, {"floating point exception", 8}};
  static const Pattern kForm(
      R"((?:^|(?:s/it|it/s)[^\]]{0,80}\]\s*)(?:zsh: |\[\d+\]  [+-]? *(\d+) )(killed|segmentation fault|abort|bus error|terminated|floating point exception)\s)");
  const auto match = kForm.Search(text);
  if (!match) return std::nullopt;
  ProcessExit exit;
  exit.reporter = kReporter;
  exit.pid = match->number(1);
  for (const auto& [words, signal] : kWords) {
    if (match->text(2) == words) exit.signal = signal;
  }
  return exit;
}

// Handlers that print before the process dies: glog's, abseil's, c10's, PSM2's (opa_debug.c), Open MPI's, UCX's.
std::optional<ProcessExit> ReadHandler(std::string_view text) {
  static const Pattern kGlog(R"(\*\*\* (SIG[A-Z]+) \(@[^)]*\) received by PID (\d+))");
  static const Pattern kC10(R"(^(SIG[A-Z]+)\(\d+\), PID: (\d+), Thread )");
  static const Pattern kOpenMpi(R"(\[([^\s:\]]+):(\d+)\] Signal: [^(]+\((\d+)\))");
  static const Pattern kUcx(R"(\[([^\s:\]]+):(\d+) *:\d+:\d+\] Caught signal (\d+) \()");
  static const Pattern kPsm(
      R"(^.{1,60}:(\d{1,9}) terminated with signal (\d{1,2})(?: at PC=[0-9a-f]+ SP=[0-9a-f]+)?\. +Backtrace:)");
  static const Pattern kAbseil(R"(^\*\*\* (SIG[A-Z]+) received at time=\d+ on cpu)");
  if (const auto abseil = kAbseil.Search(text)) return ExitBySignal(SignalNumber(abseil->text(1)), kReporter);
  if (const auto psm = kPsm.Search(text)) {
    ProcessExit exit = ExitBySignal(SignalNumber(psm->text(2)), kReporter);
    exit.pid = psm->number(1);
    return exit;
  }
  auto match = kGlog.Search(text);
  if (!match) match = kC10.Search(text);
  if (match) {
    ProcessExit exit = ExitBySignal(SignalNumber(match->text(1)), kReporter);
    exit.pid = match->number(2);
    return exit;
  }
  match = kOpenMpi.Search(text);
  if (!match) match = kUcx.Search(text);
  if (!match) return std::nullopt;
  ProcessExit exit = ExitBySignal(SignalNumber(match->text(3)), kReporter);
  exit.host = std::string(match->text(1));
  exit.pid = match->number(2);
  return exit;
}

// C and C++ libraries that abort the process.
std::optional<ProcessExit> ReadAbort(std::string_view text) {
  static const Pattern kTerminate(
      R"(terminate called (?:after throwing an instance of|without an active exception|recursively))");
  static const Pattern kHeap(
      R"(^(?:\*\*\* Error in `[^']*': )?(?:double free or corruption|free\(\): |malloc\(\): |realloc\(\): |malloc_consolidate\(\)|)"
      R"(munmap_chunk\(\)|corrupted size vs\. prev_size|corrupted double-linked list|\*\*\* (?:stack smashing|buffer overflow) detected))");
  if (!kTerminate.Matches(text) && !kHeap.Matches(text)) return std::nullopt;
  return ExitBySignal(6, kReporter);
}

class CrashParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    for (const auto read : {&ReadShell, &ReadZsh, &ReadHandler, &ReadAbort}) {
      if (auto exit = read(record.text)) {
        out.Add(EventFrom(record, *std::move(exit)));
        return true;
      }
    }
    return record.text.find("*** Process received signal ***") != std::string_view::npos;
  }
};

constexpr std::string_view kCrashMarks[] = {
    "Hangup",
    "Illegal instruction",
    "Trace/breakpoint trap",
    "Aborted",
    "Bus error",
    "Floating point exception",
    "Killed",
    "Segmentation fault",
    "Terminated",
    "Command terminated by signal",
    "zsh: ",
    " killed  ",
    " segmentation fault ",
    " received by PID ",
    "), PID: ",
    "*** Process received signal ***",
    "] Signal: ",
    "] Caught signal ",
    " received at time=",
    " terminated with signal ",
    "terminate called ",
    "double free or corruption",
    "free(): ",
    "malloc(): ",
    "realloc(): ",
    "malloc_consolidate()",
    "munmap_chunk()",
    "corrupted size vs. prev_size",
    "corrupted double-linked list",
    "stack smashing detected",
    "buffer overflow detected",
};

}  // namespace

extern const Format kCrash{.name = "crash",
                           .framing = Framing::kLines,
                           .component = Component::kAny,
                           .marks = kCrashMarks,
                           .make = &Make<CrashParser>};

}  // namespace inquest
