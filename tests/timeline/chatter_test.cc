// Lines that a reader steps over: what is chatter, and what stands together though it stands between.
#include "timeline/chatter.h"

#include <fmt/format.h>

#include "tests/catch.h"
#include "timeline/course.h"

namespace inquest {
namespace chatter_test {

Event Plain(std::uint64_t line, std::string text) {
  Event event;
  event.where = {0, line, line};
  event.text = std::move(text);
  event.what = LogMessage{};
  return event;
}

/// A complaint at line 100 and another at 112, with `between` in all other lines, by their number.
template <typename Between>
Chatter ChatterOf(Between between) {
  Timeline timeline;
  timeline.inputs.resize(1);
  std::vector<Told> told;
  for (std::uint64_t line = 1; line <= 200; ++line) {
    const bool complains = line == 100 || line == 112;
    if (complains) told.push_back({static_cast<EventIndex>(timeline.events.size()), Told::What::kComplaint, {}});
    timeline.events.push_back(Plain(line, complains ? "cannot reach the store" : between(line)));
  }
  return Chatter(timeline, told);
}

TEST_CASE("chatter: numbers that go up and down are stepped over, a counter that goes on is not", "[chatter]") {
  const Chatter measured = ChatterOf([](std::uint64_t line) { return fmt::format("tokens {}", line * 37 % 101); });
  CHECK(measured.Holds({0, 101}));
  CHECK_FALSE(measured.Holds({0, 112}));
  CHECK(measured.Apart(0, 100, 112) == 1);
  const Chatter counted = ChatterOf([](std::uint64_t line) { return fmt::format("step {}", line); });
  CHECK_FALSE(counted.Holds({0, 101}));
  CHECK(counted.Apart(0, 100, 112) == 12);
}

TEST_CASE("chatter: what each start prints once is none, however often it is started", "[chatter]") {
  const Chatter starts = ChatterOf([](std::uint64_t line) {
    return line % 8 == 0 ? std::string("loading the model") : fmt::format("line {} of a start", "abcdefgh"[line % 8]);
  });
  CHECK_FALSE(starts.Holds({0, 104}));
  CHECK(starts.Apart(0, 100, 112) == 12);
}

TEST_CASE("chatter: of lines that are not kept only few are taken for it", "[chatter]") {
  Timeline timeline;
  timeline.inputs.resize(1);
  for (std::uint64_t line = 1; line <= 40; ++line) timeline.events.push_back(Plain(line, "  warnings.warn("));
  timeline.events.push_back(Plain(41, "cannot reach the store"));
  timeline.events.push_back(Plain(5000, "recovered"));
  const std::vector<Told> told = {{40, Told::What::kComplaint, {}}};
  const Chatter chatter(timeline, told);
  CHECK(chatter.Apart(0, 30, 41) == 1);
  CHECK(chatter.Apart(0, 41, 5000) == 4959);
  CHECK(chatter.Apart(1, 3, 9) == 6);
  CHECK(chatter.Apart(1, 9, 3) == 0);
}

}  // namespace chatter_test
}  // namespace inquest
