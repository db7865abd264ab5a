// Which links are called slow: over times that a test makes up.
#include "replay/speeds.h"

#include <algorithm>

#include "cli/speed_file.h"
#include "tests/catch.h"
#include "tests/replay/replay_runs.h"

namespace inquest {
namespace speeds_test {

using std::chrono::nanoseconds;

/// A machine on which every link has 1 GB/s and 10 us, but where `factor` says otherwise.
struct Wires {
  std::function<double(int from, int to, const std::string& port, bool alone)> factor;
  std::vector<std::string> cards = {};
  std::function<bool(int from, int to)> fails = [](int, int) { return false; };
  std::vector<std::size_t> at_once = {};

  SpeedSetup Setup() {
    return {.run =
                [this](const std::vector<Plan>& plans, Pace*) {
                  at_once.push_back(plans.size());
                  std::vector<RunOutcome> runs;
                  for (const Plan& plan : plans) runs.push_back(Run(plan, plans.size() == 1));
                  return runs;
                },
            .cards = [this] { return cards; },
            .progress = {}};
  }

 private:
  RunOutcome Run(const Plan& plan, bool alone) {
    const auto rank = [&](int own) {
      return std::stoi(plan.places[static_cast<std::size_t>(own)].options.at("device"));
    };
    const int from = rank(plan.root.value), to = rank(plan.peer.value);
    const auto hca = plan.env.find("NCCL_IB_HCA");
    RunOutcome run;
    run.verdict = fails(from, to) ? RunVerdict::kHung : RunVerdict::kPassed;
    run.sentence = "As the test has it.";
    run.ranks.resize(2);
    const double bytes = static_cast<double>(plan.count.value * BytesOf(plan.datatype.value));
    const double slower = factor(from, to, hca == plan.env.end() ? "" : hca->second.substr(1), alone);
    for (RankOutcome& one : run.ranks) {
      one.host = "hosta";
      for (int i = 0; i < plan.iterations; ++i) {
        const double noise = 1 + 0.02 * (i % 5 - 2);
        one.times.push_back(nanoseconds(static_cast<std::int64_t>((10'000 + bytes) * slower * noise)));
      }
      one.times.front() *= 50;  // what only the first pays
    }
    return run;
  }
};

Plan PlanOf(int ranks) {
  Plan plan = SmallPlan(Operation::kSendRecv, 1000, ranks);
  plan.engine = "nccl";
  return plan;
}
constexpr SizeSweep kSweep{.first = 8, .last = 1U << 20U, .factor = 64};

SpeedsCompared Held(Wires now, Wires before, int ranks = 4) {
  const Speeds was = MeasureSpeeds(PlanOf(ranks), kSweep, before.Setup());
  const SpeedSetup setup = now.Setup();
  return Compare(PlanOf(ranks), MeasureSpeeds(PlanOf(ranks), kSweep, setup), was, setup);
}
double Same(int, int, const std::string&, bool) { return 1; }

TEST_CASE("speeds: sizes are swept as nccl-tests does", "[unit][replay]") {
  using Sizes = std::vector<std::uint64_t>;
  CHECK(SizesOf({.first = 8, .last = 64, .factor = 2}) == Sizes{8, 16, 32, 64});
  CHECK(SizesOf({.first = 8, .last = 100, .factor = 4}) == Sizes{8, 32, 100});
  CHECK(SizesOf({.first = 8, .last = 8, .factor = 2}) == Sizes{8});
  CHECK(SizesOf({}).back() == 128U << 20U);
}

TEST_CASE("speeds: every rank to every other, disjoint pairs at once, without the first iteration", "[unit][replay]") {
  Wires wires{.factor = Same};
  const Speeds speeds = MeasureSpeeds(PlanOf(4), kSweep, wires.Setup());
  REQUIRE(speeds.links.size() == 12);
  CHECK(wires.at_once == std::vector<std::size_t>(24, 2));  // four sizes, three rounds, two ways
  for (const LinkSpeed& link : speeds.links) {
    REQUIRE(link.samples.size() == 4);
    CHECK(link.samples.back().median_s == Approx(1.0586e-3).epsilon(0.01));
    CHECK(link.samples.back().mad_s < 5e-5);
    CHECK(GigabytesPerSecond(link.samples.back()) == Approx(0.99).epsilon(0.02));
  }
  CHECK(ExitStatus(Measured(speeds)) == 0);
}

TEST_CASE("speeds: a link, what a rank sends, what it gets, and a port are told apart", "[unit][replay]") {
  struct Row {
    std::function<bool(int from, int to, const std::string& port)> slow;
    std::string_view says;
    std::size_t links;
  };
  const Row rows[] = {
      {[](int from, int to, const std::string& port) { return from == 1 && to == 3 && port.empty(); },
       "Link 1->3 is slower than it was: ", 1},
      {[](int from, int, const std::string& port) { return from == 2 && port.empty(); },
       "All that rank 2 sends is slower than it was: 3 links", 3},
      {[](int, int to, const std::string& port) { return to == 2 && port.empty(); },
       "All that rank 2 gets is slower than it was: 3 links", 3},
      {[](int from, int to, const std::string& port) { return (from == 2 || to == 2) && port.empty(); },
       "All that rank 2 sends and gets is slower than it was: 6 links", 6},
      {[](int, int, const std::string& port) { return port == "mlx5_1:1"; },
       "Everything over RDMA port mlx5_1:1 is slower than it was: 4 links", 4},
      {[](int, int, const std::string& port) { return port.empty(); }, "Every link is slower than it was", 12},
  };
  for (const Row& row : rows) {
    CAPTURE(row.says);
    const std::vector<std::string> cards = {"mlx5_0:1", "mlx5_1:1"};
    const Wires now{
        .factor = [&](int from, int to, const std::string& port, bool) { return row.slow(from, to, port) ? 2.0 : 1.0; },
        .cards = cards};
    const auto compared = Held(now, {.factor = Same, .cards = cards});
    INFO(compared.finding);
    CHECK(Has(compared.finding, row.says));
    CHECK(compared.slow.size() == row.links);
    CHECK(ExitStatus(compared) == 1);
  }
}

TEST_CASE("speeds: nobody is accused for noise, company or a little", "[unit][replay]") {
  CHECK(Held({.factor = Same}, {.factor = Same}).slow.empty());
  const auto little = Held({.factor = [](int, int, const std::string&, bool) { return 1.2; }}, {.factor = Same});
  CHECK(little.slow.empty());
  CHECK(Has(little.finding, "No link is slower than it was by more than 25 %"));
  // Slow beside others alone, as on a machine that is busy for a moment.
  const auto company =
      Held({.factor = [](int, int, const std::string&, bool alone) { return alone ? 1.0 : 3.0; }}, {.factor = Same});
  CHECK(company.slow.empty());
  CHECK(ExitStatus(company) == 0);
  CHECK_FALSE(IsSlower({.bytes = 8, .median_s = 2, .mad_s = 0.5, .runs = 9},
                       {.bytes = 8, .median_s = 1, .mad_s = 0.1, .runs = 9}));
  CHECK(IsSlower({.bytes = 8, .median_s = 2, .mad_s = 0.05, .runs = 9},
                 {.bytes = 8, .median_s = 1, .mad_s = 0.1, .runs = 9}));
  // A busy machine spreads the times over a hundredfold, and none comes near what they were.
  CHECK(IsSlower({.bytes = 8, .median_s = 100, .mad_s = 99, .runs = 9, .least_s = 2},
                 {.bytes = 8, .median_s = 1, .mad_s = 0.1, .runs = 9}));
  CHECK_FALSE(IsSlower({.bytes = 8, .median_s = 100, .mad_s = 99, .runs = 9, .least_s = 1.4},
                       {.bytes = 8, .median_s = 1, .mad_s = 0.1, .runs = 9}));
}

TEST_CASE("speeds: what does not pass has no speed, and costs one deadline", "[unit][replay]") {
  Wires wires{.factor = Same, .fails = [](int from, int to) { return from == 0 && to == 1; }};
  const Speeds speeds = MeasureSpeeds(PlanOf(4), kSweep, wires.Setup());
  CHECK(std::ranges::count_if(speeds.links, [](const LinkSpeed& link) { return !link.error.empty(); }) == 1);
  CHECK(std::ranges::count(wires.at_once, std::size_t{1}) == 3);  // the larger sizes without it
  const auto measured = Measured(speeds);
  CHECK(Has(measured.finding, "11 links measured. What does not pass has no speed: 0->1; --isolate says why."));
  CHECK(ExitStatus(measured) == 1);
}

TEST_CASE("speeds: a baseline comes back from its file, and what is none is refused", "[unit][replay]") {
  Wires wires{.factor = Same, .cards = {"mlx5_0:1", "mlx5_1:1"}};
  const Speeds speeds = MeasureSpeeds(PlanOf(4), kSweep, wires.Setup());
  const auto read = ReadSpeeds(SpeedsDocument(speeds, "0"), "good.json");
  REQUIRE(read);
  REQUIRE(read->links.size() == speeds.links.size());
  CHECK(read->hosts == speeds.hosts);
  for (std::size_t i = 0; i < speeds.links.size(); ++i) {
    CHECK(read->links[i].port == speeds.links[i].port);
    CHECK(read->links[i].samples.back().median_s == speeds.links[i].samples.back().median_s);
  }
  for (const char* text :
       {"", "[]", "{}", R"({"schema": "inquest-speeds-2", "engine": "gloo", "hosts": [], "links": []})",
        R"({"schema": "inquest-speeds-1", "engine": "gloo", "hosts": ["a"],
                               "links": [{"from": 0, "to": 1, "port": null, "samples": []}]})",
        R"({"schema": "inquest-speeds-1", "engine": "gloo", "hosts": ["a", "b"],
                               "links": [{"from": 0, "to": 1, "port": null,
                                          "samples": [{"bytes": 8, "median_s": -1, "mad_s": 0, "runs": 3}]}]})"}) {
    CAPTURE(text);
    CHECK_FALSE(ReadSpeeds(text, "bad.json"));
  }
}

}  // namespace speeds_test
}  // namespace inquest
