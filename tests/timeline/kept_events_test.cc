// What is kept of a log in which everything is new: the first and the last of each kind, the rest counted.
#include "timeline/kept_events.h"

#include <algorithm>
#include <utility>

#include "tests/catch.h"
#include "timeline/identity.h"

namespace inquest {
namespace kept_events_test {

Event At(std::uint64_t line, What what, std::string text = "text") {
  Event event;
  event.where = {0, line, line};
  event.text = std::move(text);
  event.what = std::move(what);
  return event;
}

What Warning(std::uint64_t line) { return NcclWarn{.site = "site " + std::to_string(line), .text = "new"}; }

What Xid(std::uint64_t line) {
  XidReported xid;
  xid.xid = 79;
  xid.bus_id = std::to_string(line);
  return xid;
}

What Plain(bool sampled) {
  LogMessage message;
  message.sampled = sampled;
  return message;
}

What TimeOut(std::int32_t rank) {
  WorkTimedOut work;
  work.group_rank = GroupRank{rank};
  work.work.seq = SeqId{rank / 64};
  return work;
}

std::vector<std::uint64_t> LinesOf(const std::vector<Event>& events, std::string_view kind) {
  std::vector<std::uint64_t> lines;
  for (const Event& event : events)
    if (KindOf(event.what) == kind) lines.push_back(event.where.line);
  return lines;
}

TEST_CASE("kept events: a flood of one kind leaves its middle out and no other kind", "[kept]") {
  constexpr std::uint64_t kLines = 4000;
  KeptEvents kept(1 << 20, 1 << 20);
  for (std::uint64_t line = 1; line <= kLines; ++line)
    kept.AddTelling(line % 1000 == 500 ? At(line, Xid(line)) : At(line, Warning(line)));
  LeftOut left_out;
  const std::vector<Event> events = kept.Take({}, left_out);
  CHECK(LinesOf(events, "xid") == std::vector<std::uint64_t>{500, 1500, 2500, 3500});
  const auto warnings = LinesOf(events, "nccl-warn");
  CHECK(std::is_sorted(warnings.begin(), warnings.end()));
  CHECK(warnings.front() == 1);
  CHECK(warnings.back() == kLines);
  CHECK(warnings.size() * 600 < 1 << 20);
  CHECK(warnings.size() > 200);
  CHECK(left_out == LeftOut{{"nccl-warn", kLines - 4 - warnings.size()}});
}

TEST_CASE("kept events: places that were given up are used again, and the order stays that of the lines", "[kept]") {
  constexpr std::uint64_t kLines = 20000;
  KeptEvents kept(1 << 19, 1 << 19);
  for (std::uint64_t line = 1; line <= kLines; ++line) {
    // What comes again and again is held by its first words and its last.
    if (line % 50 == 0) kept.AddTelling(At(line, Xid(7), "last " + std::to_string(line)));
    kept.AddTelling(At(line, Warning(line), "line " + std::to_string(line)));
    if (line % 1000 == 0) kept.AddContext(At(line, Plain(true), "plain " + std::to_string(line)));
  }
  LeftOut left_out;
  std::vector<InputSummary> inputs(1);
  inputs.front().lines = kLines;
  const std::vector<Event> events = kept.Take(inputs, left_out);
  CHECK(std::is_sorted(events.begin(), events.end(), [](const Event& a, const Event& b) { return a.where < b.where; }));
  std::size_t warnings = 0;
  for (const Event& event : events) {
    const std::string number = std::to_string(event.where.line);
    CAPTURE(number);
    if (const auto* warning = std::get_if<NcclWarn>(&event.what)) {
      ++warnings;
      CHECK(warning->site == "site " + number);
      CHECK(event.text == "line " + number);
    } else {
      CHECK((event.text == "last " + number || event.text == "plain " + number));
    }
  }
  CHECK(warnings + left_out.at("nccl-warn") == kLines);
  CHECK(LinesOf(events, "xid").back() == kLines);
  CHECK(LinesOf(events, "log-message").back() == kLines);
}

TEST_CASE("kept events: repeats go before what is new", "[kept]") {
  KeptEvents kept(1 << 20, 1 << 20);
  std::uint64_t line = 0;
  for (int site = 0; site < 400; ++site)
    for (int times = 0; times < 5; ++times) kept.AddTelling(At(++line, Warning(static_cast<std::uint64_t>(site))));
  LeftOut left_out;
  std::vector<bool> seen(400);
  for (const Event& event : kept.Take({}, left_out))
    seen[std::stoul(std::get<NcclWarn>(event.what).site.substr(5))] = true;
  CHECK(std::all_of(seen.begin(), seen.end(), [](bool is) { return is; }));
  CHECK(left_out.at("nccl-warn") > 0);
}

TEST_CASE("kept events: a job of 16384 ranks is kept whole, one of which nothing ends is not", "[kept]") {
  for (const std::int32_t ranks : {1 << 14, 1 << 18}) {
    CAPTURE(ranks);
    KeptEvents kept(1 << 28, 1 << 20);
    for (std::int32_t rank = 0; rank < ranks; ++rank) {
      Event event = At(static_cast<std::uint64_t>(rank) + 1, TimeOut(rank), "");
      event.origin.rank = Known<GlobalRank>{GlobalRank{rank}, Basis::kEnvelope, {}};
      kept.AddTelling(std::move(event));
    }
    LeftOut left_out;
    const std::vector<Event> events = kept.Take({}, left_out);
    CHECK(left_out.empty() == (ranks == 1 << 14));
    CHECK(events.size() + (left_out.empty() ? 0 : left_out.at("work-timed-out")) == static_cast<std::size_t>(ranks));
    // Who waited in what was left out is not known to have been alone.
    CHECK(kept.waits_left_out().MayHold(static_cast<std::size_t>(ranks / 128)) == (ranks != 1 << 14));
    CHECK_FALSE(kept.waits_left_out().MayHold(0));
  }
}

TEST_CASE("kept events: where writers are too many, each has fewer last lines, and the silent ones none", "[kept]") {
  KeptEvents kept(1 << 20, 1 << 19);
  std::uint64_t line = 100;  // far from the input's begin
  for (int writer = 0; writer < 2000; ++writer)
    for (int times = 0; times < 8; ++times) {
      Event event = At(++line, Plain(true), "plain");
      event.origin.writer = "writer " + std::to_string(writer);
      kept.AddContext(std::move(event));
    }
  LeftOut left_out;
  std::vector<InputSummary> inputs(1);
  inputs[0].lines = 10 * line;  // none of these is at its end
  const std::vector<Event> events = kept.Take(inputs, left_out);
  CHECK(left_out.at("writer") > 1000);
  CHECK(events.back().where.line == line);
  // Besides those that are spread over the input, whoever wrote them.
  CHECK(events.size() >= 2000 - left_out.at("writer"));
  CHECK(events.size() <= 2000 - left_out.at("writer") + 512);
}

TEST_CASE("kept events: of a line that is written over again and again the last state is kept", "[kept]") {
  KeptEvents kept(1 << 20, 1 << 19);
  for (std::uint64_t line = 100; line < 140; ++line)
    for (int state = 0; state < 50; ++state) {
      Event event = At(line, Plain(true), "state " + std::to_string(state));
      event.where.offset = line * 100 + static_cast<std::uint64_t>(state);
      kept.AddContext(std::move(event));
    }
  LeftOut left_out;
  std::vector<InputSummary> inputs(1);
  inputs[0].lines = 10000;
  const std::vector<Event> events = kept.Take(inputs, left_out);
  REQUIRE(events.size() >= 40);
  for (const Event& event : events)
    if (event.where.line < 139) CHECK(event.text == "state 49");
}

TEST_CASE("kept events: what stands behind a bar on one line is kept beside the bar", "[kept]") {
  KeptEvents kept(1 << 20, 1 << 19);
  for (const std::string_view text : {"a bar", "a score", "a score"})
    kept.AddContext(At(100, Plain(true), std::string(text)));
  LeftOut left_out;
  std::vector<InputSummary> inputs(1);
  inputs[0].lines = 100;
  const std::vector<Event> events = kept.Take(inputs, left_out);
  REQUIRE(events.size() == 2);
  CHECK(events[0].text == "a bar");
  CHECK(events[1].text == "a score");
}

TEST_CASE("kept events: which plain lines are kept follows from where they stand, not from which were handed over",
          "[kept]") {
  std::vector<InputSummary> inputs(1);
  inputs[0].lines = 100;
  const auto lines = [&](const std::vector<std::uint64_t>& plain) {
    KeptEvents kept(1 << 20, 1 << 19);
    bool told = false;
    for (const std::uint64_t line : plain) {
      if (line > 50 && !std::exchange(told, true)) kept.AddTelling(At(50, Warning(50)));
      kept.AddContext(At(line, Plain(line == 20), "plain"));
    }
    LeftOut left_out;
    std::vector<std::uint64_t> out;
    for (const Event& event : kept.Take(inputs, left_out)) out.push_back(event.where.line);
    return out;
  };
  const std::vector<std::uint64_t> expected{3, 8, 20, 40, 45, 46, 48, 49, 50, 51, 57, 89, 100};
  CHECK(lines({3, 8, 20, 40, 45, 46, 48, 49, 51, 57, 89, 100}) == expected);
  CHECK(lines({3, 8, 9, 12, 13, 20, 40, 45, 46, 48, 49, 51, 57, 59, 70, 71, 72, 89, 100}) ==
        expected);  // blocks ended at 13, 45 and 72
}

TEST_CASE("kept events: of too many plain lines near telling ones the first and the last are kept", "[kept]") {
  constexpr std::uint64_t kTelling = 3000, kApart = 20;
  KeptEvents kept(1 << 26, 1 << 26);
  for (std::uint64_t i = 1; i <= kTelling; ++i) {
    kept.AddTelling(At(i * kApart, Warning(i)));
    for (std::uint64_t line = 1; line <= 4; ++line) kept.AddContext(At(i * kApart + line, Plain(false)));
  }
  LeftOut left_out;
  const auto lines = LinesOf(kept.Take({}, left_out), "log-message");
  const auto is_kept = [&](std::uint64_t telling) { return std::ranges::binary_search(lines, telling * kApart + 3); };
  CHECK(is_kept(1));
  CHECK_FALSE(is_kept(kTelling / 2));
  CHECK(is_kept(kTelling - 1));  // by a start's first lines the last attempt is known
  CHECK(is_kept(kTelling - 300));
}

TEST_CASE("processes: those that said least and have been silent for longest are forgotten", "[kept]") {
  Processes processes;
  const auto meet = [&](std::int64_t pid) {
    Event event;
    event.origin.pid = pid;
    event.origin.host = Known<std::string>{"node", Basis::kObserved, {}};
    return processes.Meet(event);
  };
  for (int times = 0; times < 5; ++times) meet(7);  // spoke much, long ago
  for (std::int64_t pid = 100; pid < 200; ++pid) meet(pid);
  std::vector<bool> kept(processes.rows.size());
  kept[1] = true;  // 100: somebody refers to it
  const std::vector<std::uint32_t> numbers = processes.Thin(4, kept);
  std::vector<std::int64_t> pids;
  for (const ProcessRow& row : processes.rows) pids.push_back(*row.pid);
  CHECK(pids == std::vector<std::int64_t>{7, 100, 101, 198, 199});
  CHECK(numbers[0] == 0);
  CHECK(numbers[1] == 1);
  CHECK(numbers[50] == Processes::kNone);
  CHECK(meet(199) == 4);
  CHECK(meet(150) == 5);  // as if it were new
}

TEST_CASE("kept events: what is kept of an input does not depend on the one in front of it", "[kept]") {
  const auto lines = [](bool after_another) {
    KeptEvents kept(1 << 20, 1 << 19);
    if (after_another) {
      for (std::uint64_t line = 1; line <= 90; ++line) kept.AddContext(At(line, Plain(true), "of the other"));
      kept.AddTelling(At(91, Warning(91)));  // nothing follows: the log ends in its complaint
    }
    const auto own = [](Event event) {
      event.where.input = 1;
      return event;
    };
    for (std::uint64_t line = 1; line <= 60; ++line) kept.AddContext(own(At(line, Plain(true), "plain")));
    kept.AddTelling(own(At(61, Warning(61))));
    LeftOut left_out;
    std::vector<InputSummary> inputs(2);
    inputs[0].lines = 91;
    inputs[1].lines = 1000;
    std::vector<std::uint64_t> out;
    for (const Event& event : kept.Take(inputs, left_out))
      if (event.where.input == 1) out.push_back(event.where.line);
    return out;
  };
  CHECK(lines(false).size() == 61);
  CHECK(lines(true) == lines(false));
}

}  // namespace kept_events_test
}  // namespace inquest
