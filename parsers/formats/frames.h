// What a process is at, by the frames of its stack.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/activity.h"

namespace inquest {

/// The frame that tells, and what it tells.
struct ToldByFrame {
  std::size_t frame = 0;  ///< its place in the stack
  Activity at = Activity::kNone;
};

/// Of a stack, innermost frame first, each as py-spy writes it: `save (torch/serialization.py:628)`; a native one as
/// gdb does. The innermost frame that is known tells: a barrier inside of a checkpoint is a barrier. Who waits inside
/// of a section in which one process goes first waits for its turn, and that tells more.
std::optional<ToldByFrame> ReadFrames(std::span<const std::string> frames);

/// `File "/opt/lib/python3.10/site-packages/torch/serialization.py", line 628, in save` in py-spy's words, which cut
/// the path where a package begins.
std::string InWordsOfPySpy(std::string_view file, std::string_view line, std::string_view function);

}  // namespace inquest
