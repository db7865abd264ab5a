// Progress bars as tqdm draws them.
#include "timeline/bars.h"

#include "core/pattern.h"
#include "timeline/shape.h"

namespace inquest {

std::optional<Bar> ReadBar(EventIndex event, std::string_view text) {
  static const Pattern kBar(R"((\d+)%\|[^|]{0,200}\| *(\d+)/(\d+) \[(?:(\d{1,4}):)?(\d{1,4}):(\d\d)<)");
  const auto match = kBar.Search(text);
  if (!match || !match->number(2) || !match->number(5) || !match->number(6)) return std::nullopt;
  std::string_view front = text.substr(0, static_cast<std::size_t>(match->text(0).data() - text.data()));
  front = front.substr(0, front.find_last_not_of(' ') + 1);  // the percentage is padded
  return Bar{.event = event,
             .loop = ShapeOf(front) + "/" + std::string(match->text(3)),
             .count = static_cast<std::uint64_t>(*match->number(2)),
             .of = static_cast<std::uint64_t>(match->number(3).value_or(0)),
             .elapsed = std::chrono::hours(match->has(4) ? match->number(4).value_or(0) : 0) +
                        std::chrono::minutes(*match->number(5)) + std::chrono::seconds(*match->number(6))};
}

}  // namespace inquest
