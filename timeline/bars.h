// Progress bars as tqdm draws them: which loop, how far, for how long.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "timeline/timeline.h"

namespace inquest {

struct Bar {
  EventIndex event = 0;
  std::string loop;  ///< what stands in front of it, and of how many
  std::uint64_t count = 0, of = 0;
  std::chrono::seconds elapsed{};
};

/// Of `Train:  20%|##        | 375/1881 [3:40:16<`, or ` 100% ━━━━ 1,000,000/1,000,000  [ 0:27:04 <`; nullopt: it does
/// not say of how many, or for how long.
std::optional<Bar> ReadBar(EventIndex event, std::string_view text);

}  // namespace inquest
