// What a process is at, by the frames of its stack.
#include "parsers/formats/frames.h"

#include <array>

#include "core/pattern.h"

namespace inquest {
namespace {

/// Function and file of a frame, `save (torch/serialization.py`, or the function of a native one.
Activity AtInFrame(std::string_view frame) {
  struct Row {
    Activity at;
    Pattern pattern;
  };
  static const std::array<Row, 10> kRows = {{
      {Activity::kCompile,
       Pattern(
           R"(\(torch/(?:_dynamo|_inductor|utils/cpp_extension|utils/file_baton|jit/)|\(triton/|\bnvrtc\w+|\bptxas|\(jax/_src/(?:compiler|interpreters/mlir)|ninja)")},
      {Activity::kJoining,
       Pattern(
           R"(\b(?:init_process_group|_store_based_barrier|_new_process_group_helper|initialize_dist\w*|init_distributed\w*) \(|\(torch/distributed/(?:rendezvous|elastic/rendezvous/))")},
      {Activity::kCollective,
       Pattern(
           R"(\(torch/distributed/(?:distributed_c10d|c10d_logger|_functional_collectives)|\bnccl[A-Z]\w+ ?\(|ProcessGroup(?:NCCL|Gloo|Wrapper|MPI)|\bgloo::|\bMPI_\w+|\bc10d::)")},
      {Activity::kCheckpoint,
       Pattern(
           R"(\(torch/distributed/checkpoint/.*(?:sav|writ|fs_|filesystem)|\b_?(?:save|_save|_legacy_save|save_file|save_checkpoint|save_model|save_pretrained|save_state_dict|save_zero_checkpoint|async_save) \()")},
      {Activity::kLoading,
       Pattern(
           R"(\b(?:load_checkpoint|load_state_dict|from_pretrained|load_file|load_sharded_checkpoint|snapshot_download|hf_hub_download) \(|\bload \(torch/serialization)")},
      {Activity::kDataPreparation,
       Pattern(
           R"(\(torch/utils/data/|\(datasets/|\(webdataset/|\(streaming/base/|\(tokenizers/|\(tensorflow_datasets/|\(fsspec/|\(s3fs/|\(PIL/|\b(?:tokenize|preprocess|build_dataset|prepare_data|load_dataset)\w* \()")},
      {Activity::kEvaluation,
       Pattern(
           R"(\b(?:evaluate|evaluation_loop|validate|run_validation|validation_step|eval_step|generate_samples) \()")},
      {Activity::kDeviceWait,
       Pattern(
           R"(\bsynchronize \(torch/cuda|\bcuda(?:Stream|Device|Event)Synchronize|\bcu(?:Stream|Ctx|Event)Synchronize|\bcudaMemcpy\w*|\bcuMemcpy\w*)")},
      {Activity::kTraining, Pattern(R"(\(torch/(?:autograd|nn/modules|optim)/|\b_engine_run_backward)")},
      {Activity::kCheckpoint, Pattern(R"(\(safetensors/)")},
  }};
  for (const Row& row : kRows)
    if (row.pattern.Matches(frame)) return row.at;
  return Activity::kNone;
}

/// One process prepares what the others read, and they wait until it has.
bool IsTurn(std::string_view frame) {
  static const Pattern kTurns(R"(\b(?:\w*main_process_first|\w*_goes_first|\w*zero_first) \()");
  return kTurns.Matches(frame);
}

}  // namespace

std::optional<ToldByFrame> ReadFrames(std::span<const std::string> frames) {
  for (std::size_t i = 0; i < frames.size(); ++i) {
    const Activity at = AtInFrame(frames[i]);
    if (at == Activity::kNone) continue;
    for (std::size_t outer = i + 1; at == Activity::kCollective && outer < frames.size(); ++outer)
      if (IsTurn(frames[outer])) return ToldByFrame{outer, Activity::kTurn};
    return ToldByFrame{i, at};
  }
  return std::nullopt;
}

std::string InWordsOfPySpy(std::string_view file, std::string_view line, std::string_view function) {
  static const Pattern kPackages(R"(^.*/(?:site-packages|dist-packages|lib/python[0-9.]+)/(.+)$)");
  if (const auto match = kPackages.Search(file)) file = match->text(1);
  std::string out(function);
  out.append(" (").append(file).append(":").append(line).append(")");
  return out;
}

}  // namespace inquest
