// traceback.cc: Python tracebacks, and the stacks of `Fatal Python error`.
// Format:  "Traceback (most recent call last)", frames, the exception's line; chains of them; faulthandler's dumps
//              File "train.py", line 84, in main
//            torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ...
// Clock:   none of its own.        Not read: lines of a message behind its first; source lines between frames.
// The exception's line is found by its mark; one of another name, only where it stands right below the last frame.
// An exception is held back until it is known whether another one of its chain follows, so its event can come behind
// those of later lines. A message that quotes a worker's traceback ("Original Traceback ...", DataLoader, DataParallel)
// is a chain told backwards: the quoted exception comes last and is the one marked as nearer the cause.
#include <algorithm>
#include <string>
#include <utility>

#include "parsers/formats.h"
#include "parsers/formats/exit_status.h"
#include "parsers/formats/messages.h"

namespace inquest {
namespace {

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

constexpr std::size_t kMostFrames = 64;
constexpr std::size_t kMostOpen = 16;
// Lines behind which an unfinished traceback was cut, or a chain has ended: C++ backtraces may stand between.
constexpr std::uint64_t kReach = 500;
// An exception of a name that tells nothing stands so near below the last frame, its source line and the carets.
constexpr std::uint64_t kEndReach = 5;

// `Exception ignored in: <function ...>` stands right above its traceback.
constexpr std::uint64_t kIgnoredReach = 2;

// What a logger or a launcher of unknown make puts in front of every line is no longer.
constexpr std::size_t kLongestHead = 120;

struct Frame {
  std::string text;  // `file:line in function`
  bool library = false;
  std::string head;  // what stands in front of it, as in front of the lines around it
};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// How much of `text` repeats `head`, numbers apart: `ERROR 07-26 10:00:01 [worker.py:226] `. Nullopt where it does
/// not.
std::optional<std::size_t> SizeOfHead(std::string_view text, std::string_view head) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < head.size();) {
    if (at == text.size()) return std::nullopt;
    if (!IsDigit(head[i])) {
      if (head[i++] != text[at++]) return std::nullopt;
      continue;
    }
    if (!IsDigit(text[at])) return std::nullopt;
    while (i < head.size() && IsDigit(head[i])) ++i;
    while (at < text.size() && IsDigit(text[at])) ++at;
  }
  return at;
}

/// `[node1:4]: `, `worker-1  | `, `2031-02-03 04:05:06,789 - ERROR - `: the end of what is put in front of a line.
bool IsHead(std::string_view head) {
  const std::size_t last = head.find_last_not_of(' ');
  return head.size() <= kLongestHead &&
         (last == std::string_view::npos || std::string_view(":])|>-").find(head[last]) != std::string_view::npos);
}

bool IsLibrary(std::string_view file) {
  for (const std::string_view part : {"site-packages", "dist-packages", "lib/python", "/torch/"}) {
    if (Contains(file, part)) return true;
  }
  return file.starts_with("<frozen") || file.starts_with("<string>");
}

// faulthandler writes no comma before `in`; a SyntaxError's frame has no function. Bars are an ExceptionGroup's.
std::optional<Frame> ReadFrame(std::string_view text) {
  static const Pattern kFrame(R"re(^[ |]*File "([^"]*)", line (\d+)(?:,? in (.*))?$)re");
  const std::size_t at = text.find("  File \"");
  const bool bare =
      at == std::string_view::npos || text.substr(0, at).find_first_not_of(" |") == std::string_view::npos;
  const std::string_view head = text.substr(0, bare ? 0 : at);
  if (!IsHead(head)) return std::nullopt;
  const auto match = kFrame.Search(text.substr(head.size()));
  if (!match) return std::nullopt;
  Frame frame{std::string(match->text(1)) + ":" + std::string(match->text(2)), IsLibrary(match->text(1)),
              std::string(head)};
  if (!match->text(3).empty()) frame.text += " in " + std::string(match->text(3));
  return frame;
}

// What ends a traceback is its exception, whatever it is called: `filelock._error.Timeout: ...`, `Stop`. A bare name
// without small letters is a log level.
std::optional<ExceptionLine> ReadAnyExceptionLine(std::string_view text) {
  static const Pattern kLine(R"(^(?:  )?((?:[A-Za-z_]\w*\.)+[A-Za-z_]\w*|[A-Z_]\w*[a-z]\w*)(?:: (.*)|:)?$)");
  const auto match = kLine.Search(text);
  if (!match) return std::nullopt;
  std::string_view message = match->text(2);
  while (message.ends_with(' ')) message.remove_suffix(1);
  return ExceptionLine{match->text(1), message};
}

/// A source line, the carets below it, `[Previous line repeated 9 more times]`: what stands below a frame.
bool BelowFrame(std::string_view text) { return text.starts_with("    ") || text.starts_with("  [Previous line"); }

/// A traceback whose exception has not come yet.
struct OpenTraceback {
  SourcePos begin;
  std::uint64_t last_line = 0;
  bool quoted = false;
  bool ignored = false;  // "Exception ignored in" stands above it
  bool headed = false;   // "Traceback" was seen; frames alone may be a stack that was printed on request
  std::string process;   // "Process Process-1:" stands above it
  std::string head;      // what stands in front of its lines
  std::vector<std::string> stack;
  std::string user_frame;

  void Add(Frame frame) {
    head = std::move(frame.head);
    if (!frame.library) user_frame = frame.text;
    if (stack.size() == kMostFrames) stack.erase(stack.begin());
    stack.push_back(std::move(frame.text));
  }
  ExceptionRaised Close(const ExceptionLine& line) {
    ExceptionRaised raised{.type = std::string(line.type),
                           .message = std::string(line.message),
                           .frame = std::move(user_frame),
                           .stack = std::move(stack),
                           .ignored = ignored,
                           .chained_first = quoted,
                           .begin = begin,
                           .process = std::move(process)};
    if (raised.frame.empty() && !raised.stack.empty()) raised.frame = raised.stack.back();
    return raised;
  }
};

/// The stacks of a fatal error, innermost first. The current thread's counts; where it runs no Python, there is none
/// that says "Current", and the first one counts.
struct FatalDump {
  Event event;
  std::uint64_t last_line = 0;
  bool collecting = true;
  std::vector<Frame> stack;

  void BeginThread(bool current) {
    collecting = current || stack.empty();
    if (current) stack.clear();
  }

  Event Close() {
    auto& raised = std::get<ExceptionRaised>(event.what);
    const auto own = std::find_if(stack.begin(), stack.end(), [](const Frame& frame) { return !frame.library; });
    if (!stack.empty()) raised.frame = own != stack.end() ? own->text : stack.front().text;
    for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) raised.stack.push_back(std::move(frame->text));
    return std::move(event);
  }
};

class TracebackParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    Expire(record.where.line, out);
    const bool end_may_follow = std::exchange(end_may_follow_, false);
    if (ConsumeFatal(record, out) || ConsumeHead(record, out) || ConsumeFrame(record)) return true;
    Record line = record;
    line.text = TakeHead(record.text);
    if (ConsumeException(line, end_may_follow, out)) return true;
    if (open_.empty() || !BelowFrame(line.text)) return false;
    end_may_follow_ = end_may_follow;
    return true;
  }

  bool Expects(std::string_view text) const override {
    if (!end_may_follow_ || open_.empty()) return false;
    const std::string_view line = text.substr(SizeOfHead(text, open_.back().head).value_or(0));
    return BelowFrame(line) || ReadAnyExceptionLine(line);
  }

  void Finish(EventSink& out) override {
    FlushFatal(out);
    FlushPending(false, out);
    open_.clear();
  }

 private:
  void Expire(std::uint64_t line, EventSink& out) {
    const auto cut = [&](std::uint64_t last) { return line > last + kReach; };
    std::erase_if(open_, [&](const OpenTraceback& open) { return cut(open.last_line); });
    if (pending_ && cut(pending_->where.line)) FlushPending(false, out);
    if (fatal_ && cut(fatal_->last_line)) FlushFatal(out);
  }

  void FlushPending(bool chained_first, EventSink& out) {
    if (!pending_) return;
    std::get<ExceptionRaised>(pending_->what).chained_first |= chained_first;
    out.Add(*std::exchange(pending_, std::nullopt));
  }

  void FlushFatal(EventSink& out) {
    if (!fatal_) return;
    out.Add(fatal_->Close());
    fatal_.reset();
  }

  bool ConsumeFatal(const Record& record, EventSink& out) {
    static const Pattern kFatal(R"(Fatal Python error: ?(.*)$)");
    if (const auto match = kFatal.Search(record.text)) {
      FlushFatal(out);
      FlushPending(false, out);
      fatal_.emplace();
      ExceptionRaised raised;
      raised.type = "Fatal Python error";
      raised.message = std::string(match->text(1));
      raised.begin = record.where;
      fatal_->event = EventFrom(record, std::move(raised));
      fatal_->last_line = record.where.line;
      return true;
    }
    if (Contains(record.text, "(most recent call first):")) {
      if (fatal_) fatal_->BeginThread(record.text.starts_with("Current thread"));
      dump_line_ = record.where.line;
      return true;
    }
    if (!fatal_) return false;
    auto frame = ReadFrame(record.text);
    if (!frame) {
      FlushFatal(out);
      return false;
    }
    fatal_->last_line = record.where.line;
    if (fatal_->collecting && fatal_->stack.size() < kMostFrames) fatal_->stack.push_back(*std::move(frame));
    return true;
  }

  bool ConsumeHead(const Record& record, EventSink& out) {
    constexpr std::string_view kHead = "Traceback (most recent call last):";
    if (Contains(record.text, "Exception ignored in")) {
      ignored_line_ = record.where.line;
      return true;
    }
    static const Pattern kChild(R"(^Process ((?:\w+Process|Process|\w+PoolWorker)-\d+(?::\d+)*):\s*$)");
    if (const auto child = kChild.Search(record.text)) {
      child_ = {std::string(child->text(1)), record.where.line};
      return true;
    }
    if (Contains(record.text, "During handling of the above exception, another") ||
        Contains(record.text, "The above exception was the direct cause of")) {
      FlushPending(true, out);
      return true;
    }
    // Rich draws a box around the frames; the exception's line stands below it, as ever.
    if (record.text.starts_with("\u256d\u2500") && Contains(record.text, " Traceback (most recent call last) ")) {
      FlushPending(false, out);
      Open(record.where).headed = true;
      return true;
    }
    const std::size_t at = record.text.rfind(kHead);
    // Text behind it: a traceback inside one line of JSON, or a log that quotes.
    if (at == std::string_view::npos ||
        record.text.find_first_not_of(" \t", at + kHead.size()) != std::string_view::npos)
      return false;
    FlushPending(false, out);
    OpenTraceback& open = Open(record.where);
    open.headed = true;
    open.quoted = record.text.substr(0, at).ends_with("Original ");
    if (IsHead(record.text.substr(0, at))) open.head = record.text.substr(0, at);
    return true;
  }

  OpenTraceback& Open(const SourcePos& where) {
    if (open_.size() == kMostOpen) open_.erase(open_.begin());
    open_.push_back({.begin = where,
                     .last_line = where.line,
                     .quoted = false,
                     .ignored = ignored_line_ && where.line <= *ignored_line_ + kIgnoredReach,
                     .headed = false,
                     .process = child_ && where.line == child_->second + 1 ? child_->first : std::string(),
                     .head = {},
                     .stack = {},
                     .user_frame = {}});
    return open_.back();
  }

  /// Without what stands in front of the lines of an open traceback, which is then the one that is continued.
  std::string_view TakeHead(std::string_view text) {
    if (open_.empty()) return text;
    const auto own = std::find_if(open_.rbegin(), open_.rend(), [&](const OpenTraceback& open) {
      return !open.head.empty() && text.starts_with(open.head);
    });
    if (own != open_.rend()) std::rotate(own.base() - 1, own.base(), open_.end());
    return text.substr(SizeOfHead(text, open_.back().head).value_or(0));
  }

  bool ConsumeFrame(const Record& record) {
    auto frame = ReadFrame(record.text);
    if (!frame) return false;
    // A dump of faulthandler on request tells of no exception.
    if (dump_line_ && record.where.line <= *dump_line_ + kMostFrames && open_.empty()) return true;
    const auto same =
        std::find_if(open_.rbegin(), open_.rend(), [&](const OpenTraceback& open) { return open.head == frame->head; });
    OpenTraceback& open = open_.empty() ? Open(record.where) : same != open_.rend() ? *same : open_.back();
    open.last_line = record.where.line;
    open.Add(*std::move(frame));
    end_may_follow_ = true;
    return true;
  }

  // A type with its module, alone at the head of a line, is the end of a traceback whose beginning was cut: nothing
  // else prints that. One without is most likely the same, if it has a message.
  static bool IsAlone(std::string_view text, const ExceptionLine& line) {
    if (line.type.ends_with("Warning")) return false;
    return Contains(line.type, ".") || (text.starts_with(line.type) && !line.message.empty() && !IsStop(line.type));
  }
  static bool IsStop(std::string_view type) {
    return type == "KeyboardInterrupt" || type == "SystemExit" || type == "GeneratorExit" || type == "Exception" ||
           type.ends_with("Iteration") || type.ends_with("Timeout");
  }

  // Tracebacks of several ranks may interleave in one stream: each line closes the youngest one that is open.
  bool ConsumeException(const Record& record, bool end_may_follow, EventSink& out) {
    auto line = ReadExceptionLine(record.text);
    const bool below = end_may_follow && !open_.empty() && open_.back().headed &&
                       record.where.line <= open_.back().last_line + kEndReach;
    if (!line && below) line = ReadAnyExceptionLine(record.text);
    if (!line) return false;
    if (open_.empty() && IsAlone(record.text, *line)) Open(record.where);
    const bool raised = !open_.empty();
    if (raised) {
      FlushPending(false, out);
      pending_ = EventFrom(record, open_.back().Close(*line));
      open_.pop_back();
      for (OpenTraceback& open : open_) open.last_line = record.where.line;
    }
    return AddTold(record, *line, raised, out) || raised;
  }

  static bool AddTold(const Record& record, const ExceptionLine& line, bool raised, EventSink& out) {
    bool told = false;
    for (const auto read : {&ReadWatchdogMessage, &ReadC10dMessage, &ReadElasticMessage}) {
      for (What& what : read(record.text)) {
        out.Add(EventFrom(record, std::move(what)));
        told = true;
      }
    }
    if (raised && line.type == "KeyboardInterrupt") out.Add(EventFrom(record, JobStopped{"keyboard", SignalName(2)}));
    return told;
  }

  std::vector<OpenTraceback> open_;  // oldest first
  bool end_may_follow_ = false;      // the last line was a frame, or stood below one
  std::optional<Event> pending_;
  std::optional<FatalDump> fatal_;
  std::optional<std::uint64_t> dump_line_, ignored_line_;
  std::optional<std::pair<std::string, std::uint64_t>> child_;  // its name, and where it stands
};

constexpr std::string_view kMarks[] = {
    "(most recent call last)",
    "(most recent call first):",
    "\", line ",  // of a frame, indented or not
    "During handling of the above exception",
    "Exception ignored in",
    "Process Process-",
    "Process SpawnProcess-",
    "Process ForkProcess-",
    "Process SpawnPoolWorker-",
    "Process ForkPoolWorker-",
    "The above exception was the direct cause",
    "Fatal Python error",
    "Error:",
    "Error): ",
    "Exception:",
    "AssertionError",
    "BrokenPipeError",
    "CancelledError",
    "ConnectionRefusedError",
    "ConnectionResetError",
    "EOFError",
    "MemoryError",
    "NotImplementedError",
    "RecursionError",
    "RuntimeError",
    "TimeoutError",
    "ValueError",
    "ExceptionGroup: ",
    "GeneratorExit",
    "KeyboardInterrupt",
    "StopIteration",
    "StopAsyncIteration",
    "SystemExit",
    "BdbQuit",
    "CompilerFailed: ",
    "Unsupported: ",
    "TimeoutExpired: ",
    "TemplateNotFound: ",
    "socket.timeout",
    "gaierror: ",
    "queue.Empty",
    "zlib.error: ",
    "struct.error: ",
    "binascii.error: ",
};

}  // namespace

/// The blanks and bars (of an ExceptionGroup) in front of an exception's name. Indented by two: the report of
/// torchelastic.
static std::optional<std::size_t> SizeOfIndent(std::string_view text) {
  const std::size_t size = std::min(text.find_first_not_of(" |"), text.size()), bar = text.substr(0, size).rfind('|');
  const std::size_t blanks = bar == std::string_view::npos ? size : size - bar - 1;
  return blanks <= (bar == std::string_view::npos ? 3U : 1U) ? std::optional(size) : std::nullopt;
}

/// A name with its module may end as it likes; a bare one must say that it is an exception.
static bool IsExceptionName(std::string_view name) {
  static constexpr std::string_view kEndings[] = {"Error",   "Exception", "Exit", "Interrupt", "Iteration",
                                                  "Warning", "Group",     "Quit", "Expired",   "Timeout"};
  const auto begins = [](std::string_view part) { return !part.empty() && !IsDigit(part[0]); };
  const std::size_t dot = name.rfind('.');
  const std::string_view last = name.substr(dot == std::string_view::npos ? 0 : dot + 1);
  const bool capital = begins(last) && !(last[0] >= 'a' && last[0] <= 'z');
  if (dot == std::string_view::npos)
    return name == "Exception" ||
           (capital && std::any_of(std::begin(kEndings), std::end(kEndings), [&](std::string_view ending) {
              return name.size() > ending.size() && name.ends_with(ending);
            }));
  for (std::string_view module = name.substr(0, dot + 1); !module.empty(); module.remove_prefix(module.find('.') + 1))
    if (!begins(module) || module[0] == '.') return false;
  return capital || last == "timeout" || last == "gaierror" || last == "error";
}

// By hand: it is asked of every line that any of PyTorch's formats is offered.
std::optional<ExceptionLine> ReadExceptionLine(std::string_view text) {
  const auto is_word = [](char c) {
    return IsDigit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  const auto indent = SizeOfIndent(text);
  if (!indent) return std::nullopt;
  text.remove_prefix(*indent);
  auto size = static_cast<std::size_t>(
      std::find_if_not(text.begin(), text.end(), [&](char c) { return is_word(c) || c == '.'; }) - text.begin());
  if (size == 0 || (size < text.size() && text[size] != ':' && text[size] != '(') ||
      !IsExceptionName(text.substr(0, size)))
    return std::nullopt;
  if (text.substr(size).starts_with('(')) {
    const auto close = static_cast<std::size_t>(
        std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(size) + 1, text.end(), is_word) - text.begin());
    if (close == size + 1 || !text.substr(close).starts_with(')')) return std::nullopt;
    size = close + 1;
  }
  std::string_view message = text.substr(size);
  if ((!message.empty() && message[0] != ':') || message.find('\n') != std::string_view::npos) return std::nullopt;
  message.remove_prefix(std::min<std::size_t>(message.starts_with(": ") ? 2 : 1, message.size()));
  while (message.ends_with(' ')) message.remove_suffix(1);
  return ExceptionLine{text.substr(0, size), message};
}

extern const Format kTraceback{.name = "python-traceback",
                               .framing = Framing::kLines,
                               .component = Component::kAny,
                               .marks = kMarks,
                               .follow = 4,
                               .make = &Make<TracebackParser>};

}  // namespace inquest
