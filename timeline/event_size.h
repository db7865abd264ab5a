// What an event takes of memory.
#pragma once

#include <cstddef>

#include "core/event.h"

namespace inquest {

/// Bytes of the event and of all that it holds, near enough to keep a budget.
std::size_t SizeOf(const Event& event);

}  // namespace inquest
