// What most units include, parsed once. No file may rely on it: each includes what it uses.
#ifndef INQUEST_CORE_PRECOMPILED_H  // no pragma: compilers know files by their times, and this one may come precompiled
                                    // out of a cache
#define INQUEST_CORE_PRECOMPILED_H

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "core/event.h"
#include "core/pattern.h"
#include "core/result.h"

#endif  // INQUEST_CORE_PRECOMPILED_H
