// Traces of PyTorch's profiler: the collective calls that a rank made while it was watched.
// Format:  Chrome's trace format as Kineto writes it (libkineto/src/output_json.cpp): one object, `distributedInfo`
// with
//          rank and groups, and `traceEvents`, of which those called `record_param_comms` are calls, and kernels that
//          carry a `Collective name` are their ends (torch/csrc/profiler/util.cpp names the keys)
// Clock:   microseconds since the epoch, or since `baseTimeNanoseconds`, of the rank's host.
// Not read: everything else, which is most of it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/call_trace.h"

namespace inquest {

/// Whether a file that begins so is such a trace.
bool IsProfilerTrace(std::string_view head);

// Read while it streams: a trace of minutes is larger than memory. Strings and brackets alone are followed; only what
// names a collective is parsed. Where a call's number is not recorded (before 2.6), it has none that other ranks share.
class ProfilerTraceReader {
 public:
  ProfilerTraceReader();
  ~ProfilerTraceReader();
  void Feed(std::string_view bytes);
  /// Spent afterwards.
  CallTrace Finish();

 private:
  struct Parsed;
  void Take(std::string_view object);
  void TakeCall(std::string_view object);
  void TakeInfo(std::string_view object);
  std::uint32_t GroupOf(std::string_view name, std::string_view desc, std::string_view ranks, std::int64_t size);

  std::unique_ptr<Parsed> parsed_;
  CallTrace out_;
  std::string key_, object_;  ///< the last key of the outermost object; what has begun and not ended
  std::size_t depth_ = 0;
  std::size_t capture_depth_ = 0;  ///< of the object that is kept in object_
  bool in_string_ = false, escaped_ = false, capturing_ = false, cut_ = false, done_ = false;
  std::map<std::pair<std::string, std::string>, std::uint32_t> groups_;
  std::map<CallForm, std::uint32_t> forms_;
  std::vector<std::int64_t> ids_;  ///< of each call, what its kernel names
  struct Kernel {
    std::int64_t begin_ns = 0, end_ns = 0;  ///< as the trace counts; 0: not told
  };
  std::unordered_map<std::int64_t, Kernel> kernels_;  ///< by the call that they name; of several the last
  std::vector<std::int64_t> numbers_;                 ///< of each group, calls without a number so far
  std::int64_t base_ns_ = 0;
};

}  // namespace inquest
