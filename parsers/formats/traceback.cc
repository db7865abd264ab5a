// traceback.cc: Python tracebacks, and the stacks of `Fatal Python error` and of faulthandler.
// Format:  "Traceback (most recent call last)", frames, the exception's line; chains of them; faulthandler's dumps
//              File "train.py", line 84, in main
//            torch.OutOfMemoryError: CUDA out of memory. Tried to allocate ...
//          IPython's (core/ultratb.py): `KeyError          Traceback (most recent call last)`, frames of its own form,
//          `KeyError: 'x'`; an exception without a message ends in `KeyboardInterrupt: `.
// Clock:   none of its own.        Not read: lines of a message behind its first; source lines between frames.
// The exception's line is found by its mark; one of another name, only where it stands right below the last frame.
// An exception is held back until it is known whether another one of its chain follows, so its event can come behind
// those of later lines. A message that quotes a worker's traceback ("Original Traceback ...", DataLoader, DataParallel)
// is a chain told backwards: the quoted exception comes last and is the one marked as nearer the cause.
// A traceback that was cut before its exception tells where its process waited, if that is what its frames show.
#include <algorithm>
#include <string>
#include <utility>

#include "core/ascii.h"
#include "parsers/formats.h"
#include "parsers/formats/exit_status.h"
#include "parsers/formats/frames.h"
#include "parsers/formats/messages.h"

namespace inquest {
namespace {

constexpr std::size_t kMostFrames = 64;
constexpr std::size_t kMostOpen = 16;
// Lines behind which an unfinished traceback was cut, or a chain has ended: C++ backtraces may stand between.
constexpr std::uint64_t kReach = 500;
// Tracebacks of several processes that interleave begin so near to one another.
constexpr std::uint64_t kInterleaved = 400;

// An exception of a name that tells nothing stands so near below the last frame, its source line and the carets. Lines
// of other ranks may stand between; then its name must have a module.
constexpr std::uint64_t kEndReach = 5, kTaggedEndReach = 100;

// `Exception ignored in: <function ...>`, since CPython 3.14 also `Exception ignored while calling deallocator <...>:`,
// stands right above its traceback.
constexpr std::string_view kIgnoredIn = "Exception ignored in", kIgnoredWhile = "Exception ignored while ";
// So does uvicorn's word (protocols/http/*_impl.py, run_asgi) that a request failed: it answers 500 and serves on.
constexpr std::string_view kRequestFailed = "Exception in ASGI application";
// logging.Handler.handleError shows what a record of its own raised, and goes on.
constexpr std::string_view kLoggingFailed = "--- Logging error ---";
// Other processes print in between.
constexpr std::uint64_t kIgnoredReach = 40;

// What a logger or a launcher of unknown make puts in front of every line is no longer.
constexpr std::size_t kLongestHead = 120;

struct Frame {
  std::string text;  // `file:line in function`
  bool library = false;
  std::string head;  // what stands in front of it, as in front of the lines around it
};

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

/// Several processes wrote at once: `KeyErrorKeyError`.
std::string_view Once(std::string_view type) {
  constexpr std::size_t kShortest = 7, kLongest = 4096;
  for (std::size_t size = kShortest; 2 * size <= type.size() && type.size() <= kLongest; ++size)
    if (type.size() % size == 0 && type.substr(size) == type.substr(0, type.size() - size)) return type.substr(0, size);
  return type;
}

/// JAX raises these to show a stack, in front of the exception that they stand for.
bool IsStandIn(std::string_view type) {
  constexpr std::string_view kStandIns[] = {"JaxStackTraceBeforeTransformation", "UnfilteredStackTrace",
                                            "SimplifiedTraceback"};
  return std::ranges::any_of(kStandIns, [&](std::string_view name) { return type.ends_with(name); });
}

/// `W0405 06:07:08.123000 41200 torch/_dynamo/convert_frame.py:1233] `: glog's mark of a warning.
bool IsOfWarning(std::string_view head) {
  constexpr std::string_view kForm = "W0000 00:00:";
  const std::size_t at = head.find_last_of('W', head.find(':'));
  if (at == std::string_view::npos || head.size() < at + kForm.size()) return false;
  return std::equal(kForm.begin(), kForm.end(), head.begin() + static_cast<std::ptrdiff_t>(at),
                    [](char form, char c) { return form == '0' ? IsDigit(c) : form == c; });
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

// faulthandler writes no comma before `in`; a SyntaxError's frame has no function, nor has one that was wrapped behind
// its comma. Bars are an ExceptionGroup's.
std::optional<Frame> ReadFrame(std::string_view text) {
  static const Pattern kFrame(R"re(^[ |]*File "([^"]*)", line (\d+)(?:,? in (.*)|,)?$)re");
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
  // A frame of which a cut left the first letters.
  constexpr std::string_view kFrame = "  File";
  if (!match || (text.size() > 2 && kFrame.starts_with(text))) return std::nullopt;
  std::string_view message = match->text(2);
  while (message.ends_with(' ')) message.remove_suffix(1);
  return ExceptionLine{match->text(1), message};
}

/// conda tells its own errors so, and the script that called it goes on (conda/exceptions.py, CommandNotFoundError and
/// `conda activate` without its shell function).
bool IsOfConda(const ExceptionLine& line) {
  return (line.type == "CommandNotFoundError" &&
          line.message.starts_with("Your shell has not been properly configured")) ||
         (line.type == "CondaError" && line.message.starts_with("Run 'conda init' before"));
}

/// Paddle's handler of signals reports an abort in the words of an exception; what led to it was told before.
bool IsAbortReport(const ExceptionLine& line) {
  return line.type == "FatalError" && line.message.starts_with("`Process abort signal` is detected by");
}

/// A source line, the carets below it, `[Previous line repeated 9 more times]`: what stands below a frame.
bool BelowFrame(std::string_view text) { return text.starts_with("    ") || text.starts_with("  [Previous line"); }

/// The parts of `file:line in function`.
struct FrameParts {
  explicit FrameParts(std::string_view frame) {
    const std::size_t in = frame.find(" in "), end = std::min(in, frame.size());
    const std::size_t colon = std::min(frame.substr(0, end).rfind(':'), end);
    file = frame.substr(0, colon);
    if (colon < end) line = frame.substr(colon + 1, end - colon - 1);
    if (in != std::string_view::npos) function = frame.substr(in + 4);
  }
  std::string_view file, line, function;
};

/// What a stack shows that its process waits for, of frames from the outermost to the innermost.
std::optional<Event> WaitIn(std::span<const std::string> stack, std::span<const SourcePos> places, Event event) {
  std::vector<std::string> frames;
  for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) {
    const FrameParts parts(*frame);
    frames.push_back(InWordsOfPySpy(parts.file, parts.line, parts.function));
  }
  const auto told = ReadFrames(frames);
  auto& seen = std::get<StackSeen>(event.what);
  // Of what went wrong at other work the exception would have told.
  if (!told || (seen.raised && told->at != Activity::kCollective && told->at != Activity::kJoining &&
                told->at != Activity::kTurn))
    return std::nullopt;
  seen.at = told->at;
  seen.frame = frames[told->frame];
  const std::size_t place = places.size() - 1 - told->frame;
  event.where = places[place];
  const FrameParts parts(stack[place]);
  event.text = std::string("  File \"").append(parts.file).append("\", line ").append(parts.line);
  event.text.append(seen.tool == "traceback" ? ", in " : " in ").append(parts.function);
  return event;
}

constexpr std::string_view kTracebackHead = "Traceback (most recent call last):";

/// A traceback whose exception has not come yet.
struct OpenTraceback {
  SourcePos begin;
  std::uint64_t last_line = 0;
  bool quoted = false;
  bool ignored = false;          // "Exception ignored in" stands above it
  bool headed = false;           // "Traceback" was seen; frames alone may be a stack that was printed on request
  std::string process;           // "Process Process-1:" stands above it
  std::string head;              // what stands in front of its lines
  std::string type;              // IPython's: its head names the exception
  std::optional<GlobalRank> of;  // whose it is, where another rank shows it
  std::vector<std::string> stack;
  std::vector<SourcePos> places;  // of its frames
  std::string user_frame;
  Origin origin;  // of its last line
  std::optional<Timestamp> at;

  void Add(const Record& record, Frame frame) {
    last_line = record.where.line;
    origin = record.origin;
    at = record.at;
    head = std::move(frame.head);
    if (!frame.library) user_frame = frame.text;
    if (stack.size() == kMostFrames) {
      stack.erase(stack.begin());
      places.erase(places.begin());
    }
    stack.push_back(std::move(frame.text));
    places.push_back(record.where);
  }
  bool Has(const Frame& frame) const { return std::ranges::find(stack, frame.text) != stack.end(); }

  /// `Error processing line 1 of .../nspkg.pth:`: CPython's site.py shows what a line of a path file raised, and goes
  /// on.
  bool IsOfPathFile() const {
    return !stack.empty() && Contains(stack.front(), "/site.py:") && stack.front().ends_with(" in addpackage");
  }

  /// Where the process waited, of a traceback whose exception is missing.
  std::optional<Event> Cut() const {
    if (!headed || stack.empty()) return std::nullopt;
    return WaitIn(stack, places, Raising());
  }
  /// The log ends within the traceback: something was raised, whatever it was. What begins behind its head is one where
  /// each line has its rank in front, as PyTorch prints what nobody caught.
  std::optional<Event> CutAtEnd() const {
    constexpr std::size_t kFewestFrames = 3;
    const bool tagged = origin.rank && origin.rank->basis == Basis::kEnvelope && stack.size() >= kFewestFrames;
    if ((!headed && !tagged) || quoted || ignored || (stack.empty() && !type.empty())) return std::nullopt;
    Event event = Raising();
    if (stack.empty()) {
      event.where = begin;
      event.text = kTracebackHead;
      return event;
    }
    event.where = places.back();
    event.text = std::string("  ").append(stack.back());
    std::get<StackSeen>(event.what).frame = user_frame.empty() ? stack.back() : user_frame;
    return event;
  }
  /// Its writer raised, wherever that was.
  Event Raising() const {
    Event event;
    event.at = at;
    event.origin = origin;
    event.what = StackSeen{.tool = "traceback", .at = Activity::kNone, .frame = {}, .thread = {}, .raised = true};
    return event;
  }
  ExceptionRaised Close(const ExceptionLine& line) {
    const bool goes_on = ignored || IsOfWarning(head) || IsOfPathFile() || IsOfConda(line);
    ExceptionRaised raised{.type = std::string(Once(line.type)),
                           .message = std::string(line.message),
                           .frame = std::move(user_frame),
                           .stack = std::move(stack),
                           .ignored = goes_on,
                           .chained_first = quoted,
                           .begin = begin,
                           .process = std::move(process),
                           .headless = !headed};
    if (raised.frame.empty() && !raised.stack.empty()) raised.frame = raised.stack.back();
    return raised;
  }
};

/// The stacks that faulthandler writes, of a fatal error or when it was asked, innermost frame first. The current
/// thread's counts. Where it runs no Python, there is none that says "Current", and of a fatal error the first one
/// counts; else the one that runs the program, or the last.
struct ThreadDump {
  Event event;  // what it will be: an exception, or a look at the process
  std::uint64_t last_line = 0;
  bool collecting = true;
  std::vector<Frame> stack;
  std::vector<SourcePos> places;

  bool Fatal() const { return std::holds_alternative<ExceptionRaised>(event.what); }

  void BeginThread(bool current) {
    const bool main =
        std::ranges::any_of(stack, [](const Frame& frame) { return frame.text.ends_with(" in <module>"); });
    collecting = current || stack.empty() || (!Fatal() && !main);
    if (!collecting || (!current && Fatal())) return;
    stack.clear();
    places.clear();
  }

  void Add(const SourcePos& where, Frame frame) {
    last_line = where.line;
    if (!collecting || stack.size() == kMostFrames) return;
    stack.push_back(std::move(frame));
    places.push_back(where);
  }

  std::optional<Event> Close() {
    std::vector<std::string> outermost_first;
    for (auto frame = stack.rbegin(); frame != stack.rend(); ++frame) outermost_first.push_back(frame->text);
    if (!Fatal()) {
      std::ranges::reverse(places);
      return WaitIn(outermost_first, places, std::move(event));
    }
    auto& raised = std::get<ExceptionRaised>(event.what);
    const auto own = std::find_if(stack.begin(), stack.end(), [](const Frame& frame) { return !frame.library; });
    if (!stack.empty()) raised.frame = own != stack.end() ? own->text : stack.front().text;
    raised.stack = std::move(outermost_first);
    return std::move(event);
  }
};

class TracebackParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    Expire(record.where.line, out);
    const bool end_may_follow = std::exchange(end_may_follow_, false);
    if (ConsumeDump(record, out) || ConsumeHead(record, out) || ConsumeFrame(record)) return true;
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
    FlushDump(out);
    FlushPending(false, out);
    for (const OpenTraceback& open : open_)
      if (!Abandon(open, out))
        if (auto torn = open.CutAtEnd()) out.Add(*std::move(torn));
    open_.clear();
  }

 private:
  static bool Abandon(const OpenTraceback& open, EventSink& out) {
    auto wait = open.Cut();
    if (!wait) return false;
    out.Add(*std::move(wait));
    return true;
  }

  void Expire(std::uint64_t line, EventSink& out) {
    const auto cut = [&](std::uint64_t last) { return line > last + kReach; };
    std::erase_if(open_, [&](const OpenTraceback& open) {
      if (!cut(open.last_line)) return false;
      Abandon(open, out);
      return true;
    });
    if (pending_ && cut(pending_->where.line)) FlushPending(false, out);
    if (dump_ && cut(dump_->last_line)) FlushDump(out);
  }

  void FlushPending(bool chained_first, EventSink& out) {
    if (!pending_) return;
    std::get<ExceptionRaised>(pending_->what).chained_first |= chained_first;
    out.Add(*std::exchange(pending_, std::nullopt));
  }

  void FlushDump(EventSink& out) {
    if (!dump_) return;
    if (auto event = dump_->Close()) out.Add(*std::move(event));
    dump_.reset();
  }

  void BeginDump(const Record& record, What what) {
    dump_.emplace();
    dump_->event = EventFrom(record, std::move(what));
    dump_->last_line = record.where.line;
  }

  bool ConsumeDump(const Record& record, EventSink& out) {
    static const Pattern kFatal(R"(Fatal Python error: ?(.*)$)");
    if (const auto match = kFatal.Search(record.text)) {
      FlushDump(out);
      FlushPending(false, out);
      ExceptionRaised raised;
      raised.type = "Fatal Python error";
      raised.message = std::string(match->text(1));
      raised.begin = record.where;
      BeginDump(record, std::move(raised));
      return true;
    }
    if (Contains(record.text, "(most recent call first):")) {
      const bool current = record.text.starts_with("Current thread 0x");
      if (!dump_ && (current || record.text.starts_with("Thread 0x")))
        BeginDump(record, StackSeen{.tool = "faulthandler", .at = Activity::kNone, .frame = {}, .thread = {}});
      if (dump_) dump_->BeginThread(current);
      dump_line_ = record.where.line;
      return true;
    }
    if (!dump_) return false;
    auto frame = ReadFrame(record.text);
    if (!frame) {
      // Blank lines stand between the threads of a dump.
      if (!dump_->Fatal() && record.text.empty()) return false;
      FlushDump(out);
      return false;
    }
    dump_->Add(record.where, *std::move(frame));
    return true;
  }

  bool ConsumeHead(const Record& record, EventSink& out) {
    if (Contains(record.text, kIgnoredIn) || Contains(record.text, kIgnoredWhile) ||
        Contains(record.text, kRequestFailed) || record.text == kLoggingFailed) {
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
      if (pending_ && std::get<ExceptionRaised>(pending_->what).ignored) ignored_line_ = record.where.line;
      FlushPending(true, out);
      return true;
    }
    // Rich draws a box around the frames; the exception's line stands below it, as ever.
    if (record.text.starts_with("\u256d\u2500") && Contains(record.text, " Traceback (most recent call last) ")) {
      FlushPending(false, out);
      Open(record.where).headed = true;
      return true;
    }
    if (record.text.ends_with(kTracebackHead.substr(0, kTracebackHead.size() - 1)) && ConsumeNotebookHead(record, out))
      return true;
    const std::size_t at = record.text.rfind(kTracebackHead);
    if (at == std::string_view::npos) return false;
    const auto of = RankBehind(record.text.substr(at + kTracebackHead.size()));
    // Text behind it: a traceback inside one line of JSON, or a log that quotes.
    if (!of && record.text.find_first_not_of(" \t", at + kTracebackHead.size()) != std::string_view::npos) return false;
    FlushPending(false, out);
    OpenTraceback& open = Open(record.where);
    open.headed = true;
    open.origin = record.origin;
    open.at = record.at;
    open.of = of;
    open.quoted = record.text.substr(0, at).ends_with("Original ");
    if (IsHead(record.text.substr(0, at))) open.head = record.text.substr(0, at);
    return true;
  }

  /// ` (RANK 5)`: torch.distributed.checkpoint shows on all ranks what some of them raised (checkpoint/api.py).
  static std::optional<GlobalRank> RankBehind(std::string_view text) {
    if (!text.starts_with(" (RANK ")) return std::nullopt;
    static const Pattern kOf(R"(^ \(RANK (\d{1,9})\)\s*$)");
    const auto of = kOf.Search(text);
    return of ? std::optional(GlobalRank{static_cast<int>(*of->number(1))}) : std::nullopt;
  }

  bool ConsumeNotebookHead(const Record& record, EventSink& out) {
    static const Pattern kNamed(R"(^([A-Za-z_]\w*) +Traceback)");
    const auto named = kNamed.Search(record.text);
    if (!named) return false;
    FlushPending(false, out);
    OpenTraceback& open = Open(record.where);
    open.headed = true;
    open.type = named->text(1);
    return true;
  }

  OpenTraceback& Open(const SourcePos& where) {
    const auto ignored = std::exchange(ignored_line_, std::nullopt);  // of one traceback
    if (open_.size() == kMostOpen) open_.erase(open_.begin());
    open_.push_back({.begin = where,
                     .last_line = where.line,
                     .quoted = false,
                     .ignored = ignored && where.line <= *ignored + kIgnoredReach,
                     .headed = false,
                     .process = child_ && where.line == child_->second + 1 ? child_->first : std::string(),
                     .head = {},
                     .type = {},
                     .of = {},
                     .stack = {},
                     .places = {},
                     .user_frame = {},
                     .origin = {},
                     .at = {}});
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
    OpenTraceback& open = open_.empty() ? Open(record.where) : WhoseIs(*frame, record.where.line);
    open.Add(record, *std::move(frame));
    end_may_follow_ = true;
    return true;
  }

  /// Of those that are open the youngest with the same head. Where processes of one program write at once, a frame that
  /// it has already is another's.
  OpenTraceback& WhoseIs(const Frame& frame, std::uint64_t line) {
    OpenTraceback* own = nullptr;
    for (auto open = open_.rbegin(); open != open_.rend(); ++open) {
      if (open->head != frame.head) continue;
      if (own == nullptr) own = &*open;
      if (open->headed && line <= open->begin.line + kInterleaved && !open->Has(frame)) return *open;
    }
    return own != nullptr ? *own : open_.back();
  }

  /// The exception that IPython's head announced, whatever it is called.
  std::optional<ExceptionLine> ReadAnnounced(std::string_view text) const {
    if (open_.empty() || open_.back().type.empty() || !text.starts_with(open_.back().type)) return std::nullopt;
    std::string_view message = text.substr(open_.back().type.size());
    if (!message.starts_with(':')) return std::nullopt;
    message.remove_prefix(std::min<std::size_t>(message.size(), message.starts_with(": ") ? 2 : 1));
    return ExceptionLine{text.substr(0, open_.back().type.size()), message};
  }

  // A type with its module, alone at the head of a line, is the end of a traceback whose beginning was cut: nothing
  // else prints that. One without is most likely the same, if it has a message.
  static bool IsAlone(std::string_view text, const ExceptionLine& line) {
    if (line.type.ends_with("Warning")) return false;
    return Contains(line.type, ".") || (text.starts_with(line.type) && !line.message.empty() && !IsStop(line.type));
  }
  /// `[rank2]: EOFError`, as PyTorch prints of each rank what nobody caught.
  static bool IsTagged(const Record& record, const ExceptionLine& line) {
    return record.origin.rank && record.origin.rank->basis == Basis::kEnvelope && line.type.ends_with("Error") &&
           record.text == line.type;
  }
  static bool IsStop(std::string_view type) {
    return type == "KeyboardInterrupt" || type == "SystemExit" || type == "GeneratorExit" || type == "Exception" ||
           type.ends_with("Iteration") || type.ends_with("Timeout");
  }

  // Tracebacks of several ranks may interleave in one stream: each line closes the youngest one that is open.
  bool ConsumeException(const Record& record, bool end_may_follow, EventSink& out) {
    auto line = ReadExceptionLine(record.text);
    if (!line) line = ReadAnnounced(record.text);
    const std::uint64_t behind =
        end_may_follow && !open_.empty() && open_.back().headed ? record.where.line - open_.back().last_line : kReach;
    const std::uint64_t reach = record.origin.rank ? kTaggedEndReach : kEndReach;
    if (!line && behind <= reach) {
      line = ReadAnyExceptionLine(record.text);
      if (line && behind > kEndReach && !Contains(line->type, ".")) line.reset();
    }
    if (!line || IsAbortReport(*line)) return false;
    if (open_.empty() && (IsAlone(record.text, *line) || IsTagged(record, *line))) Open(record.where);
    const bool raised = !open_.empty();
    if (raised) {
      FlushPending(false, out);
      if (!IsStandIn(line->type)) pending_ = EventFrom(record, open_.back().Close(*line));
      if (pending_ && open_.back().of)
        pending_->origin.rank = Known<GlobalRank>{*open_.back().of, Basis::kDerived, "the head of its traceback"};
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
    if (raised && line.type == "KeyboardInterrupt")
      out.Add(EventFrom(record, JobStopped{JobStopped::By::kKeyboard, SignalName(2)}));
    return told;
  }

  std::vector<OpenTraceback> open_;  // oldest first
  bool end_may_follow_ = false;      // the last line was a frame, or stood below one
  std::optional<Event> pending_;
  std::optional<ThreadDump> dump_;
  std::optional<std::uint64_t> dump_line_, ignored_line_;
  std::optional<std::pair<std::string, std::uint64_t>> child_;  // its name, and where it stands
};

constexpr std::string_view kTracebackMarks[] = {
    "(most recent call last)",
    "(most recent call first):",
    "\", line ",  // of a frame, indented or not
    "During handling of the above exception",
    kIgnoredIn,
    kIgnoredWhile,
    kRequestFailed,
    kLoggingFailed,
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
  const auto indent = SizeOfIndent(text);
  if (!indent) return std::nullopt;
  text.remove_prefix(*indent);
  auto size = static_cast<std::size_t>(
      std::find_if_not(text.begin(), text.end(), [&](char c) { return IsWordChar(c) || c == '.'; }) - text.begin());
  if (size == 0 || (size < text.size() && text[size] != ':' && text[size] != '(') ||
      !IsExceptionName(text.substr(0, size)))
    return std::nullopt;
  if (text.substr(size).starts_with('(')) {
    const auto close = static_cast<std::size_t>(
        std::find_if_not(text.begin() + static_cast<std::ptrdiff_t>(size) + 1, text.end(), IsWordChar) - text.begin());
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
                               .marks = kTracebackMarks,
                               .follow = 4,
                               .make = &Make<TracebackParser>};

}  // namespace inquest
