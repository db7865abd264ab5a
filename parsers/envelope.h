// Peels what launchers and collectors put in front of a line: rank tags, pod times, host names, JSON wrappers.
// Format:  a file each in envelopes/; `{"log":"...","stream":...,"time":...}` (docker), `{"MESSAGE":...}` (journalctl
// -o
//          json) and ANSI colour codes anywhere.
// Clock:   the collector's, UTC where it says so.        Not read: logging-module prefixes (only their time).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/event.h"

namespace inquest {

/// A line without its envelopes. `text` is a view of the argument, or of `scratch` where the line had to be
/// rewritten (colour codes, JSON escapes); `scratch` is left as it was where it had not.
struct Peeled {
  std::string_view text;
  Origin origin;
  std::optional<Timestamp> at;  ///< of the text's own head if that has a whole date; else of the outermost envelope
                                ///< that has one; else of the text's own head, `[E219 04:05:06.1` and such
  std::unique_ptr<const Peeled> bar = {};  ///< somebody's progress bar that stood in front of the text on its line
};
Peeled Peel(std::string_view line, std::string& scratch);

}  // namespace inquest
