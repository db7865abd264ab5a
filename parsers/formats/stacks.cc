// stacks.cc: the stack of a live process, by py-spy dump and by gdb's `thread apply all bt`.
// Format:  py-spy (src/dump.rs): the main thread's head, then its frames, innermost first
//            Thread 41234 (active): "MainThread"
//                _try_get_data (torch/utils/data/dataloader.py:1133)
//          gdb: the main thread is number 1
//            Thread 1 (Thread 0x7f3c9d0a2740 (LWP 41234) "python"):
//            #3  0x00007f3c1 in ncclAllReduce () from /usr/lib/x86_64-linux-gnu/libnccl.so.2
// Clock:   none.        Not read: other threads, local variables (py-spy -l), py-spy's JSON.
// What the process is at is told by the innermost frame that the table below knows: a barrier inside of a checkpoint is
// a barrier. On Linux the main thread's id is the process'.
#include <string>
#include <vector>

#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/frames.h"

namespace inquest {
namespace {

/// Loader workers, compile workers and the like have a main thread too, and are not the rank.
bool OfHelper(std::string_view frame) {
  static const Pattern kHelper(
      R"(^_worker_loop \(|\(torch/_inductor/compile_worker/|\(multiprocessing/(?:resource_tracker|forkserver))");
  return kHelper.Matches(frame);
}

/// `    name (file.py:12)` of py-spy; `#3  0x7f in name (args) at file.c:12` of gdb.
std::optional<std::string_view> ReadPythonFrame(std::string_view text) {
  static const Pattern kFrame(R"(^    (\S.* \([^()]+?(?::\d+)?\))$)");
  const auto match = kFrame.Search(text);
  return match ? std::optional(match->text(1)) : std::nullopt;
}
std::optional<std::string_view> ReadNativeFrame(std::string_view text) {
  static const Pattern kFrame(R"(^#\d+\s+(?:0x[0-9a-f]+ in )?(\S.*)$)");
  const auto match = kFrame.Search(text);
  return match ? std::optional(match->text(1)) : std::nullopt;
}

class StackParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    if (ReadTitle(record, out) || BeginPython(record, out) || BeginNative(record, out)) return true;
    if (!held_) return false;
    const auto frame = python_ ? ReadPythonFrame(record.text) : ReadNativeFrame(record.text);
    if (!frame) {
      // Local variables stand deeper than frames.
      if (python_ && record.text.starts_with("        ")) return true;
      Flush(out);
      return false;
    }
    if (OfHelper(*frame)) helper_ = true;
    if (frames_.size() == kMostFrames) return true;
    frames_.emplace_back(frame->substr(0, kCitedBytes));
    lines_.push_back({record.where, std::string(record.text.substr(0, kCitedBytes))});
    return true;
  }

  bool Expects(std::string_view text) const override {
    if (!held_) return false;
    if (text.starts_with("Thread ")) return true;  // another thread: this one is over
    return python_ ? ReadPythonFrame(text) || text.starts_with("        ") : ReadNativeFrame(text).has_value();
  }

  void Finish(EventSink& out) override { Flush(out); }

 private:
  /// py-spy's first line of a process: `Process 41234: sglang::scheduler_TP0`, `Process 41234: VLLM::Worker_TP1_EP1`.
  bool ReadTitle(const Record& record, EventSink& out) {
    static const Pattern kTitle(
        R"(^Process (\d+): (?:sglang::scheduler|VLLM::Worker)_(?:DP\d+_)?TP(\d+)(?:_EP\d+)?\s*$)");
    const auto match = kTitle.Search(record.text);
    if (!match) return false;
    Flush(out);
    titled_ = match->number(1);
    if (const auto rank = match->number(2); rank && *rank <= 1 << 20)
      title_ = Known<GlobalRank>{GlobalRank{static_cast<std::int32_t>(*rank)}, Basis::kDerived,
                                 "tensor-parallel rank in the process's title, in a job without others"};
    return true;
  }

  bool BeginPython(const Record& record, EventSink& out) {
    static const Pattern kHead(R"re(^Thread (?:(\d+)|0x[0-9A-Fa-f]+) \((?:active|idle)(?:\+gil)?\): "MainThread"$)re");
    const auto match = kHead.Search(record.text);
    if (!match) return false;
    Begin(record, "py-spy", match->number(1), out);
    python_ = true;
    return true;
  }

  bool BeginNative(const Record& record, EventSink& out) {
    static const Pattern kHead(R"(^Thread (\d+) \(Thread 0x[0-9a-f]+ \(LWP (\d+)\))");
    const auto match = kHead.Search(record.text);
    if (!match) return false;
    Flush(out);
    if (match->number(1) != 1) return true;
    Begin(record, "gdb", match->number(2), out);
    python_ = false;
    return true;
  }

  void Begin(const Record& record, const char* tool, std::optional<std::int64_t> pid, EventSink& out) {
    Flush(out);
    held_ = EventFrom(record, StackSeen{.tool = tool, .at = Activity::kNone, .frame = {}, .thread = {}});
    if (pid) held_->origin.pid = pid;
    if (title_ && pid && pid == titled_ && !held_->origin.rank) held_->origin.rank = title_;
    helper_ = false;
    frames_.clear();
    lines_.clear();
  }

  /// The line that tells is the one to cite; else the innermost frame's.
  void Flush(EventSink& out) {
    if (held_ && !helper_ && !frames_.empty()) {
      const ToldByFrame told = ReadFrames(frames_).value_or(ToldByFrame{});
      auto& stack = std::get<StackSeen>(held_->what);
      stack.at = told.at;
      stack.frame = std::move(frames_[told.frame]);
      held_->where = lines_[told.frame].where;
      held_->text = std::move(lines_[told.frame].text);
      out.Add(std::move(*held_));
    }
    held_.reset();
  }

  struct Line {
    SourcePos where;
    std::string text;
  };
  static constexpr std::size_t kMostFrames = 256;
  std::optional<Event> held_;
  std::vector<std::string> frames_;  ///< innermost first
  std::vector<Line> lines_;          ///< of the frames
  bool python_ = false, helper_ = false;
  std::optional<std::int64_t> titled_;      ///< pid of the process whose title was read
  std::optional<Known<GlobalRank>> title_;  ///< and its rank there
};

constexpr std::string_view kStacksMarks[] = {": \"MainThread\"", " (Thread 0x", ": sglang::scheduler_",
                                             ": VLLM::Worker_"};

}  // namespace

extern const Format kStacks{.name = "stacks",
                            .framing = Framing::kLines,
                            .component = Component::kAny,
                            .marks = kStacksMarks,
                            .follow = 48,
                            .make = &Make<StackParser>};

}  // namespace inquest
