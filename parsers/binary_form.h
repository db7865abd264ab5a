// What a file is that holds no lines, by its first bytes: a core dump, a profile, a dump of the Flight Recorder.
#pragma once

#include <string_view>

#include "core/input_form.h"

namespace inquest {

/// Of what is not read; nullptr: it may be a log. `path` counts only where bytes do not tell.
const InputForm* UnreadForm(std::string_view path, std::string_view head);

/// Of what is mostly no text, and is read as if it were; nullptr: it is text.
const InputForm* BinaryForm(std::string_view head);

}  // namespace inquest
