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
#include <array>
#include <string>

#include "core/pattern.h"
#include "parsers/formats.h"

namespace inquest {
namespace {

/// By kind: function and file of a frame, `save (torch/serialization.py`, or the function of a native one.
std::string_view KindOfFrame(std::string_view frame) {
  struct Row {
    std::string_view kind;
    Pattern pattern;
  };
  static const std::array<Row, 9> kRows = {{
      {"compile",
       Pattern(
           R"(\(torch/(?:_dynamo|_inductor|utils/cpp_extension|utils/file_baton|jit/)|\(triton/|\bnvrtc\w+|\bptxas|\(jax/_src/(?:compiler|interpreters/mlir)|ninja)")},
      {"collective",
       Pattern(
           R"(\(torch/distributed/(?:distributed_c10d|c10d_logger|_functional_collectives|rendezvous)|\bnccl[A-Z]\w+ ?\(|ProcessGroup(?:NCCL|Gloo|Wrapper|MPI)|\bgloo::|\bMPI_\w+|\bc10d::)")},
      {"checkpoint",
       Pattern(
           R"(\(torch/distributed/checkpoint/.*(?:sav|writ|fs_|filesystem)|\b_?(?:save|_save|_legacy_save|save_file|save_checkpoint|save_model|save_pretrained|save_state_dict|save_zero_checkpoint|async_save) \()")},
      {"loading",
       Pattern(
           R"(\b(?:load_checkpoint|load_state_dict|from_pretrained|load_file|load_sharded_checkpoint|snapshot_download|hf_hub_download) \(|\bload \(torch/serialization)")},
      {"data-preparation",
       Pattern(
           R"(\(torch/utils/data/|\(datasets/|\(webdataset/|\(streaming/base/|\(tokenizers/|\(tensorflow_datasets/|\(fsspec/|\(s3fs/|\(PIL/|\b(?:tokenize|preprocess|build_dataset|prepare_data|load_dataset)\w* \()")},
      {"evaluation",
       Pattern(
           R"(\b(?:evaluate|evaluation_loop|validate|run_validation|validation_step|eval_step|generate_samples) \()")},
      {"device-wait",
       Pattern(
           R"(\bsynchronize \(torch/cuda|\bcuda(?:Stream|Device|Event)Synchronize|\bcu(?:Stream|Ctx|Event)Synchronize|\bcudaMemcpy\w*|\bcuMemcpy\w*)")},
      {"training", Pattern(R"(\(torch/(?:autograd|nn/modules|optim)/|\b_engine_run_backward)")},
      {"checkpoint", Pattern(R"(\(safetensors/)")},
  }};
  for (const Row& row : kRows)
    if (row.pattern.Matches(frame)) return row.kind;
  return {};
}

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
    if (BeginPython(record, out) || BeginNative(record, out)) return true;
    if (!held_) return false;
    const auto frame = python_ ? ReadPythonFrame(record.text) : ReadNativeFrame(record.text);
    if (!frame) {
      // Local variables stand deeper than frames.
      if (python_ && record.text.starts_with("        ")) return true;
      Flush(out);
      return false;
    }
    auto& stack = std::get<StackSeen>(held_->what);
    if (OfHelper(*frame)) helper_ = true;
    if (stack.frame.empty()) Tell(record, *frame, stack);
    if (!stack.at.empty()) return true;
    if (const std::string_view kind = KindOfFrame(*frame); !kind.empty()) {
      stack.at = std::string(kind);
      Tell(record, *frame, stack);
    }
    return true;
  }

  bool Expects(std::string_view text) const override {
    if (!held_) return false;
    if (text.starts_with("Thread ")) return true;  // another thread: this one is over
    return python_ ? ReadPythonFrame(text) || text.starts_with("        ") : ReadNativeFrame(text).has_value();
  }

  void Finish(EventSink& out) override { Flush(out); }

 private:
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
    held_ = EventFrom(record, StackSeen{tool, {}, {}, {}});
    if (pid) held_->origin.pid = pid;
    helper_ = false;
  }

  /// The line that tells is the one to cite.
  void Tell(const Record& record, std::string_view frame, StackSeen& stack) {
    stack.frame = std::string(frame.substr(0, kCitedBytes));
    held_->where = record.where;
    held_->text = std::string(record.text.substr(0, kCitedBytes));
  }

  void Flush(EventSink& out) {
    if (held_ && !helper_ && !std::get<StackSeen>(held_->what).frame.empty()) out.Add(std::move(*held_));
    held_.reset();
  }

  std::optional<Event> held_;
  bool python_ = false, helper_ = false;
};

constexpr std::string_view kMarks[] = {": \"MainThread\"", " (Thread 0x"};

}  // namespace

extern const Format kStacks{.name = "stacks",
                            .framing = Framing::kLines,
                            .component = Component::kAny,
                            .marks = kMarks,
                            .follow = 48,
                            .make = &Make<StackParser>};

}  // namespace inquest
