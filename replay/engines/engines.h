// The libraries of collectives that can be replayed with: the table.
#pragma once

#include <span>
#include <string_view>

#include "replay/engine.h"

namespace inquest {

/// Those that this build lacks are listed too, and say why.
std::span<const Engine* const> Engines();
/// nullptr: none of ours.
const Engine* FindEngine(std::string_view name);

}  // namespace inquest
