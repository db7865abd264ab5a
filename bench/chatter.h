// The talk of healthy training: what fills most of a real job's log and says nothing about its end.
#pragma once

#include <string_view>

#include "bench/job.h"

namespace inquest::bench {

/// Lines of several training programs, hardly two alike, none of which is evidence of a failure.
class Chatter {
 public:
  explicit Chatter(const Job& job);

  /// The first lines of a launch: among them the size of the job.
  void WriteStart(LogWriter& log);
  /// One message: a line, a burst of progress bars, or a warning of two lines. `progress` is 0 .. 999999 through the
  /// job and moves the clock.
  void Write(std::uint64_t progress, LogWriter& log);

 private:
  using Message = void (Chatter::*)(LogWriter&);
  void Clock(LogWriter& log, std::string_view before_ms);
  void Loss(LogWriter& log, unsigned decimals);
  void Words(LogWriter& log, std::uint64_t count);

  void Tqdm(LogWriter& log);
  void HuggingFace(LogWriter& log);
  void Megatron(LogWriter& log);
  void NeMo(LogWriter& log);
  void Titan(LogWriter& log);
  void Fairseq(LogWriter& log);
  void DeepSpeed(LogWriter& log);
  void NanoGpt(LogWriter& log);
  void LlmC(LogWriter& log);
  void JsonMetrics(LogWriter& log);
  void Logger(LogWriter& log);
  void DataWarning(LogWriter& log);
  void Wandb(LogWriter& log);
  void Sample(LogWriter& log);

  Job job_;
  Random random_;
  std::uint64_t step_ = 100, second_ = 0;
};

}  // namespace inquest::bench
