// crash_stack.cc: where a process was when a signal ended it, by the native stack that its handler printed.
// Format:  frames, innermost first, in the words of Open MPI (opal/util/stacktrace.c), UCX (src/ucs/debug), glog and
//          abseil, MXNet, tvm-ffi, CPython since 3.14 (Python/traceback.c), gdb
//            [node17:41234] [ 2] /usr/lib/libnccl.so.2(ncclProxyService+0x2b)[0x7f3c9d0a2740]
//             3  /opt/nccl/lib/libnccl.so(+0x120057) [0x7ff1c18c1057]
//             1 0x00000000000a11f4 tokenizer_push()  /src/tokenizer.c:88
//                @     0x7f3c9d0a2740  ncclProxyService
//              [bt] (2) /usr/lib/libnccl.so.2(+0x2b136) [0x7ff2bf5c3136]
//              File "<unknown>", line 0, in ncclProxyService              Binary file "/lib/a.so", at f+0x1b [0x7f]
//            #1  0x00007f3c1 in ncclProxyService () from /usr/lib/libnccl.so.2
// Clock:   none.        Not read: c10's `frame #1:`, which stands behind what an exception says; the kernel's stacks.
// What tells is the first frame that is neither the handler nor the C library: the rest of the stack is how it came
// there.
#include <set>
#include <string>
#include <utility>

#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/exit_status.h"

namespace inquest {
namespace {

using std::string_view;

/// As printed; what was not is empty.
struct NativeFrame {
  string_view library, function, file, host;
  std::optional<std::int64_t> pid, number;
};

/// `/usr/lib/libnccl.so.2(ncclProxyService+0x2b) [0x7f]`, and less.
std::optional<NativeFrame> ReadBody(string_view body) {
  static const Pattern kBody(R"(^([^\s()\[\]]*)(?:\(([^()+\s]*)(?:\+0x[0-9a-f]+)?\))? ?\[(?:0x)?[0-9a-f]+\]\s*$)");
  const auto match = kBody.Search(body);
  if (!match) return std::nullopt;
  return NativeFrame{match->text(1), match->text(2), "", "", {}, {}};
}

std::optional<NativeFrame> Numbered(std::optional<NativeFrame> frame, std::optional<std::int64_t> number) {
  if (frame) frame->number = number;
  return frame;
}

std::optional<NativeFrame> ReadOpenMpi(string_view text) {
  static const Pattern kFrame(R"(^(?:\[([^\s:\]]+):(\d+)\] )?\[ ?(\d+)\] (\S*(?:\([^()]*\))?\[0x[0-9a-f]+\])\s*$)");
  const auto match = kFrame.Search(text);
  auto frame = match ? Numbered(ReadBody(match->text(4)), match->number(3)) : std::nullopt;
  if (!frame) return std::nullopt;
  frame->host = match->text(1);
  frame->pid = match->number(2);
  return frame;
}

std::optional<NativeFrame> ReadUcx(string_view text) {
  static const Pattern kResolved(R"(^ *(\d+) 0x[0-9a-f]+ ([^\s()]+)\(\) +(\S+?)(?::\d+)?\s*$)");
  static const Pattern kPlain(R"(^ *(\d+)  ?(/\S+ \[0x[0-9a-f]+\])\s*$)");
  if (const auto match = kResolved.Search(text))
    return NativeFrame{"", match->text(2),  match->text(3) == "???" ? string_view() : match->text(3), "",
                       {}, match->number(1)};
  const auto match = kPlain.Search(text);
  return match ? Numbered(ReadBody(match->text(2)), match->number(1)) : std::nullopt;
}

std::optional<NativeFrame> ReadGlog(string_view text) {
  static const Pattern kFrame(R"(^(PC: |\s*)@ +0x[0-9a-f]+ +(?:\d+ +)?(?:\(unknown\) *)?(\S[^()]*)?)");
  const auto match = kFrame.Search(text);
  if (!match) return std::nullopt;
  NativeFrame frame;
  if (match->text(1) == "PC: ") frame.number = 0;
  frame.function = match->text(2);
  return frame;
}

std::optional<NativeFrame> ReadMxnet(string_view text) {
  static const Pattern kFrame(R"(^\s*\[bt\] \((\d+)\) (.*)$)");
  const auto match = kFrame.Search(text);
  return match ? Numbered(ReadBody(match->text(2)), match->number(1)) : std::nullopt;
}

std::optional<NativeFrame> ReadTvm(string_view text) {
  static const Pattern kFrame(R"re(^  File "([^"]*)", line \d+, in (\S[^()]*))re");
  const auto match = kFrame.Search(text);
  if (!match) return std::nullopt;
  return NativeFrame{"", match->text(2), match->text(1) == "<unknown>" ? string_view() : match->text(1), "", {}, {}};
}

std::optional<NativeFrame> ReadPython(string_view text) {
  static const Pattern kFrame(R"re(^  Binary file "([^"]+)"(?:, at ([^+\s]*)\+0x[0-9a-f]+)? \[0x[0-9a-f]+\]\s*$)re");
  const auto match = kFrame.Search(text);
  if (!match) return std::nullopt;
  return NativeFrame{match->text(1), match->text(2), "", "", {}, {}};
}

std::optional<NativeFrame> ReadGdb(string_view text) {
  static const Pattern kFrame(R"(^#(\d+)\s+(?:0x[0-9a-f]+ in )?([^\s(]+) \(.*?\)(?: from (\S+)| at ([^\s:]+))?)");
  const auto match = kFrame.Search(text);
  if (!match) return std::nullopt;
  const string_view function = match->text(2) == "??" ? string_view() : match->text(2);
  return NativeFrame{match->text(3), function, match->text(4), "", {}, match->number(1)};
}

/// Who prints a stack, what stands in front of it, and how a frame of it reads.
struct Printer {
  string_view head;  ///< empty: its first frame is its own mark
  std::optional<NativeFrame> (*read)(string_view);
  std::optional<int> signal = {};  ///< that the head tells of
};
constexpr Printer kPrinters[] = {
    {"", &ReadOpenMpi},
    {"==== backtrace (tid:", &ReadUcx},
    {"", &ReadGlog},
    {"", &ReadMxnet},
    {"!!!!!!! Segfault encountered !!!!!!!", &ReadTvm, 11},
    {"C stack trace (most recent call first):", &ReadPython},
    {"received signal SIGSEGV", &ReadGdb, 11},
    {"terminated with signal SIGSEGV", &ReadGdb, 11},
};

string_view NameOf(string_view path) { return path.substr(path.rfind('/') + 1); }

/// The handler that prints, what it prints with, and the C library's way from the fault to it. Copying and comparing
/// memory belong to whoever asked for it.
bool OfHandler(const NativeFrame& frame) {
  static const Pattern kLibrary(
      R"(^(?:libc|libpthread|ld-linux\S*|ld|linux-vdso|libgcc_s|libstdc\+\+|libucs|libSegFault|libtvm_ffi)[-.][\w.-]*so[\w.-]*$)");
  static const Pattern kFunction(
      R"(^(?:_*sigaction|\.annobin_\S+|_*restore_rt|<signal handler called>|gsignal|_*raise|_*abort\w*|_*assert\w*|killpg|funlockfile|(?:_*GI_)?_*pthread_kill\w*|_*mem(?:cpy|move|set|cmp)\w*|_*str(?:len|cmp|cpy|chr)\w*|ucs_(?:handle_error|debug_|error_)\w*|google::|absl::|tsl::|tvm::ffi::|TVMFFI\w*|c10::FatalSignalHandler|std::terminate|__gnu_cxx::|__cxxabiv1::|__cxa_\w+|_Unwind_\w+|faulthandler_\w+|_Py_Dump\w+|0x[0-9a-f]+$))");
  if (frame.library.empty() && frame.function.empty() && frame.file.empty()) return true;
  return kLibrary.Matches(NameOf(frame.library)) || kFunction.Matches(frame.function);
}

class CrashStackParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    for (const Printer& printer : kPrinters)
      if (!printer.head.empty() && record.text.find(printer.head) != string_view::npos) {
        open_ = &printer;
        told_.clear();
        if (printer.signal) out.Add(EventFrom(record, ExitBySignal(printer.signal, Reporter::kShell)));
        return true;
      }
    for (const Printer& printer : kPrinters) {
      if (!printer.head.empty() && open_ != &printer) continue;
      if (const auto frame = printer.read(record.text)) {
        Take(*frame, record, out);
        return true;
      }
    }
    return false;
  }

  bool Expects(string_view text) const override {
    for (const Printer& printer : kPrinters)
      if ((printer.head.empty() || open_ == &printer) && printer.read(text)) return true;
    return false;
  }

  void Take(const NativeFrame& frame, const Record& record, EventSink& out) {
    if (frame.number == 0) told_.erase(frame.pid);
    if (OfHandler(frame) || told_.size() == kMostAtOnce || !told_.insert(frame.pid).second) return;
    Event event = EventFrom(record, CrashFrame{std::string(frame.function.substr(0, kMostText)),
                                               std::string(NameOf(frame.library).substr(0, kMostText)),
                                               std::string(NameOf(frame.file).substr(0, kMostText))});
    if (frame.pid) event.origin.pid = frame.pid;
    if (!frame.host.empty() && !event.origin.host)
      event.origin.host = Known<std::string>{std::string(frame.host), Basis::kObserved, {}};
    out.Add(std::move(event));
  }

  static constexpr std::size_t kMostAtOnce = 1024, kMostText = 120;
  const Printer* open_ = nullptr;
  std::set<std::optional<std::int64_t>> told_;  ///< processes of whose stack the frame that tells was seen
};

constexpr string_view kCrashStackMarks[] = {
    "[ 0] ",
    "==== backtrace (tid:",
    "    @     0x",
    "PC: @ ",
    "[bt] (0) ",
    "!!!!!!! Segfault encountered !!!!!!!",
    "C stack trace (most recent call first):",
    "received signal SIGSEGV",
    "terminated with signal SIGSEGV",
};

}  // namespace

extern const Format kCrashStack{.name = "crash-stack",
                                .framing = Framing::kLines,
                                .component = Component::kAny,
                                .marks = kCrashStackMarks,
                                .follow = 64,
                                .make = &Make<CrashStackParser>};

}  // namespace inquest
