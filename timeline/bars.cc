// Progress bars as tqdm draws them, also in its rich form.
#include "timeline/bars.h"

#include <algorithm>
#include <charconv>
#include <iterator>

#include "core/ascii.h"
#include "core/pattern.h"
#include "timeline/shape.h"

namespace inquest {
namespace {

/// Of `1,000,000`.
std::optional<std::uint64_t> CountIn(std::string_view text) {
  std::string digits;
  std::ranges::copy_if(text, std::back_inserter(digits), IsDigit);
  std::uint64_t out = 0;
  const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), out);
  return read.ec == std::errc() ? std::optional(out) : std::nullopt;
}

}  // namespace

std::optional<Bar> ReadBar(EventIndex event, std::string_view text) {
  static const Pattern kBar(R"((\d+)%(?:\|[^|]{0,200}\|)? *(\d+)/(\d+) \[(?:(\d{1,4}):)?(\d{1,4}):(\d\d)<)");
  static const Pattern kRich(R"((\d+)% +\S* +([\d,]+)/([\d,]+) +\[ +(?:(\d{1,4}):)?(\d{1,4}):(\d\d) <)");
  auto match = kBar.Search(text);
  if (!match) match = kRich.Search(text);
  if (!match || !match->number(5) || !match->number(6)) return std::nullopt;
  const auto count = CountIn(match->text(2)), of = CountIn(match->text(3));
  if (!count) return std::nullopt;
  std::string_view front = text.substr(0, static_cast<std::size_t>(match->text(0).data() - text.data()));
  front = front.substr(0, front.find_last_not_of(' ') + 1);  // the percentage is padded
  return Bar{.event = event,
             .loop = ShapeOf(front) + "/" + std::string(match->text(3)),
             .count = *count,
             .of = of.value_or(0),
             .elapsed = std::chrono::hours(match->has(4) ? match->number(4).value_or(0) : 0) +
                        std::chrono::minutes(*match->number(5)) + std::chrono::seconds(*match->number(6))};
}

}  // namespace inquest
