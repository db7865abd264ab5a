// The pairs of a round run at once, in the baseline as in what is held against it, so that both have the same company.
// What is slower in company may only have had the worse moment: it is run again alone, where it has every advantage,
// and has to be slower than the baseline's in company all the same. So a link is never accused because others were
// busy; a link that is slow in company alone is acquitted.
#include "replay/speeds.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "replay/judgement.h"
#include "replay/ops.h"
#include "timeline/timeline.h"

namespace inquest {
namespace {

constexpr std::uint64_t kLargeBytes = 4U << 20U;
constexpr int kIterations = 20, kIterationsOfLarge = 8;
constexpr int kTimesAgain = 2;
constexpr std::size_t kMostCardsTried = 8;
constexpr std::chrono::milliseconds kLeastPace{5000};
/// Median absolute deviations to a standard deviation, and that of single times to that of their median, of what is
/// spread as noise is; and how many of those are noise.
constexpr double kSigma = 1.4826, kOfMedian = 1.2533, kNoise = 3;

/// How far a median may be off.
double NoiseOf(const SpeedSample& sample) { return kOfMedian * kSigma * sample.mad_s / std::sqrt(sample.runs); }

double Median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

SpeedSample SampleOf(const RunOutcome& run, std::uint64_t bytes) {
  std::size_t iterations = SIZE_MAX;
  for (const RankOutcome& rank : run.ranks) iterations = std::min(iterations, rank.times.size());
  std::vector<double> times;
  for (std::size_t i = iterations > 1 ? 1 : 0; i < iterations && !run.ranks.empty(); ++i) {
    std::chrono::nanoseconds slowest{};
    for (const RankOutcome& rank : run.ranks) slowest = std::max(slowest, rank.times[i]);
    times.push_back(std::chrono::duration<double>(slowest).count());
  }
  if (times.empty()) return {.bytes = bytes};
  SpeedSample sample{.bytes = bytes,
                     .median_s = Median(times),
                     .mad_s = 0,
                     .runs = static_cast<int>(times.size()),
                     .least_s = *std::ranges::min_element(times)};
  for (double& time : times) time = std::abs(time - sample.median_s);
  sample.mad_s = Median(std::move(times));
  return sample;
}

Plan Timed(Plan plan, std::uint64_t bytes, const std::string& port) {
  plan.iterations = bytes >= kLargeBytes ? kIterationsOfLarge : kIterations;
  if (port.empty()) return plan;
  plan.env["NCCL_IB_HCA"] = "=" + port;  // exactly this one
  // Within a host nothing else may carry it.
  plan.env["NCCL_P2P_DISABLE"] = std::string("1");
  plan.env["NCCL_SHM_DISABLE"] = std::string("1");
  return plan;
}

std::uint64_t BytesIn(const Plan& plan) { return plan.count.value * BytesOf(plan.datatype.value); }

class Measurement {
 public:
  Measurement(const Plan& plan, const SizeSweep& sweep, const SpeedSetup& setup)
      : plan_(plan), sizes_(SizesOf(sweep)), setup_(setup) {}

  Speeds Run() {
    speeds_.engine = plan_.engine;
    speeds_.hosts.resize(static_cast<std::size_t>(plan_.ranks.value));
    std::vector<std::string> cards;
    for (const std::uint64_t bytes : sizes_) {
      Pace pace(kLeastPace);
      for (const auto& round : RoundsOf(plan_.ranks.value)) {
        if (!RunRound(round, bytes, "", pace)) return std::move(speeds_);
        if (cards.empty() && setup_.cards) cards = setup_.cards();
      }
    }
    if (cards.size() > 1 && plan_.engine == "nccl") {
      if (cards.size() > kMostCardsTried) cards.resize(kMostCardsTried);
      std::vector<RankPair> halves;
      for (int low = 0, half = plan_.ranks.value / 2; low < half; ++low) halves.push_back({low, low + half});
      for (const std::string& card : cards) {
        Pace pace(kLeastPace);
        if (!RunRound(halves, sizes_.back(), card, pace)) break;
      }
    }
    std::ranges::sort(speeds_.links, {},
                      [](const LinkSpeed& link) { return std::tuple(link.port, link.from, link.to); });
    return std::move(speeds_);
  }

 private:
  LinkSpeed& Link(int from, int to, const std::string& port) {
    const auto found = std::ranges::find_if(
        speeds_.links, [&](const LinkSpeed& link) { return link.from == from && link.to == to && link.port == port; });
    return found != speeds_.links.end() ? *found : speeds_.links.emplace_back(LinkSpeed{from, to, port});
  }

  /// Both ways, one after the other. False: interrupted.
  bool RunRound(const std::vector<RankPair>& round, std::uint64_t bytes, const std::string& port, Pace& pace) {
    for (const bool forth : {true, false}) {
      std::vector<Plan> plans;
      std::vector<std::pair<int, int>> ways;
      for (const RankPair& pair : round) {
        const int from = forth ? pair.low : pair.high, to = forth ? pair.high : pair.low;
        if (!Link(from, to, port).error.empty()) continue;  // no second deadline for it
        plans.push_back(Timed(SendOf(plan_, from, to, bytes), bytes, port));
        ways.emplace_back(from, to);
      }
      if (plans.empty()) continue;
      if (setup_.progress)
        setup_.progress(
            fmt::format("{}{}, {} pairs at once", SizeText(bytes), port.empty() ? "" : " over " + port, plans.size()));
      const std::vector<RunOutcome> runs = setup_.run(plans, &pace);
      for (std::size_t i = 0; i < runs.size(); ++i) {
        if (runs[i].verdict == RunVerdict::kInterrupted) {
          speeds_.interrupted = true;
          return false;
        }
        const auto [from, to] = ways[i];
        LinkSpeed& link = Link(from, to, port);
        const RankPair pair{std::min(from, to), std::max(from, to)};
        if (runs[i].verdict != RunVerdict::kPassed) {
          link.error = runs[i].sentence + RanksHere({pair.low, pair.high});
          continue;
        }
        link.samples.push_back(SampleOf(runs[i], BytesIn(plans[i])));
        speeds_.hosts[static_cast<std::size_t>(pair.low)] = runs[i].ranks[0].host;
        speeds_.hosts[static_cast<std::size_t>(pair.high)] = runs[i].ranks[1].host;
      }
    }
    return true;
  }

  const Plan& plan_;
  std::vector<std::uint64_t> sizes_;
  const SpeedSetup& setup_;
  Speeds speeds_;
};

const SpeedSample* Find(const LinkSpeed& link, std::uint64_t bytes) {
  const auto found = std::ranges::find(link.samples, bytes, &SpeedSample::bytes);
  return found == link.samples.end() ? nullptr : &*found;
}
const LinkSpeed* Find(const Speeds& speeds, const LinkSpeed& like) {
  const auto found = std::ranges::find_if(speeds.links, [&](const LinkSpeed& link) {
    return link.from == like.from && link.to == like.to && link.port == like.port;
  });
  return found == speeds.links.end() ? nullptr : &*found;
}

// ---- in words
// ---------------------------------------------------------------------------------------------------------

std::string Name(const LinkSpeed& link) {
  return fmt::format("{}->{}{}", link.from, link.to, link.port.empty() ? "" : " over " + link.port);
}

/// `1.2 GB/s, before 11.8, at 134.2 MB`.
std::string Fall(const LinkSpeed& link) {
  return fmt::format("{:.3g} GB/s, before {:.3g}, at {}", GigabytesPerSecond(*link.again),
                     GigabytesPerSecond(*link.before), SizeText(link.again->bytes));
}

/// What rank or port all of one kind have in common; what that does not explain, link by link.
class Telling {
 public:
  explicit Telling(const SpeedsCompared& compared) : links_(compared.now.links) {
    for (const std::size_t index : compared.slow) slow_.insert(&links_[index]);
  }

  std::string Words() {
    std::size_t plain = 0, plain_slow = 0;
    for (const LinkSpeed& link : links_) {
      if (!link.port.empty()) continue;
      ++plain;
      plain_slow += slow_.contains(&link) ? 1 : 0;
    }
    if (plain > 2 && plain == plain_slow) {
      const LinkSpeed* worst = Worst(slow_);
      return fmt::format("Every link is slower than it was ({}: {}): what they all share, not one link.", Name(*worst),
                         Fall(*worst));
    }
    std::set<std::string> ports;
    std::set<int> ranks;
    for (const LinkSpeed& link : links_) {
      if (!link.port.empty()) ports.insert(link.port);
      ranks.insert({link.from, link.to});
    }
    for (const std::string& port : ports)
      Tell(fmt::format("Everything over RDMA port {} is slower than it was", port),
           [&](const LinkSpeed& link) { return link.port == port; });
    for (const int rank : ranks) {
      const auto sends = [&](const LinkSpeed& link) { return link.port.empty() && link.from == rank; };
      const auto gets = [&](const LinkSpeed& link) { return link.port.empty() && link.to == rank; };
      const bool both = All(sends) && All(gets);
      if (both)
        Tell(fmt::format("All that rank {} sends and gets is slower than it was", rank),
             [&](const LinkSpeed& link) { return sends(link) || gets(link); });
      else if (!Tell(fmt::format("All that rank {} sends is slower than it was", rank), sends))
        Tell(fmt::format("All that rank {} gets is slower than it was", rank), gets);
    }
    constexpr std::size_t kShown = 8;
    std::size_t shown = 0;
    for (const LinkSpeed& link : links_) {
      if (!slow_.contains(&link) || told_.contains(&link) || ++shown > kShown) continue;
      text_ += fmt::format("{}Link {} is slower than it was: {}.", text_.empty() ? "" : " ", Name(link), Fall(link));
    }
    if (shown > kShown) text_ += fmt::format(" And {} more links.", shown - kShown);
    return text_;
  }

 private:
  static const LinkSpeed* Worst(const std::set<const LinkSpeed*>& links) {
    return *std::ranges::max_element(
        links, {}, [](const LinkSpeed* link) { return link->again->median_s / link->before->median_s; });
  }

  template <class Which>
  bool All(const Which& which) const {
    std::size_t all = 0;
    for (const LinkSpeed& link : links_) {
      if (!which(link)) continue;
      ++all;
      if (!slow_.contains(&link)) return false;
    }
    return all > 1;
  }

  template <class Which>
  bool Tell(const std::string& what, const Which& which) {
    if (!All(which)) return false;
    std::set<const LinkSpeed*> these;
    for (const LinkSpeed& link : links_)
      if (which(link)) these.insert(&link);
    told_.insert(these.begin(), these.end());
    const LinkSpeed* worst = Worst(these);
    text_ += fmt::format("{}{}: {} links, the worst {}: {}.", text_.empty() ? "" : " ", what, these.size(),
                         Name(*worst), Fall(*worst));
    return true;
  }

  const std::vector<LinkSpeed>& links_;
  std::set<const LinkSpeed*> slow_, told_;
  std::string text_;
};

std::string Errors(const Speeds& speeds) {
  std::vector<std::string> names;
  for (const LinkSpeed& link : speeds.links)
    if (!link.error.empty()) names.push_back(Name(link));
  if (names.empty()) return "";
  constexpr std::size_t kShown = 8;
  const std::size_t more = names.size() - std::min(names.size(), kShown);
  names.resize(std::min(names.size(), kShown));
  return fmt::format(" What does not pass has no speed: {}{}; --isolate says why.", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace

std::vector<std::uint64_t> SizesOf(const SizeSweep& sweep) {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = sweep.first; bytes <= sweep.last; bytes *= sweep.factor) {
    sizes.push_back(bytes);
    if (bytes > sweep.last / sweep.factor) break;
  }
  if (sizes.empty() || sizes.back() != sweep.last) sizes.push_back(sweep.last);
  return sizes;
}

double GigabytesPerSecond(const SpeedSample& sample) {
  return sample.median_s > 0 ? static_cast<double>(sample.bytes) / sample.median_s / 1e9 : 0;
}

Speeds MeasureSpeeds(const Plan& plan, const SizeSweep& sweep, const SpeedSetup& setup) {
  return Measurement(plan, sweep, setup).Run();
}

bool IsSlower(const SpeedSample& now, const SpeedSample& before) {
  if (now.runs < 1 || before.runs < 1) return false;
  const double bound = before.median_s / (1 - kSlowerBy);
  return now.median_s - bound > kNoise * std::hypot(NoiseOf(now), NoiseOf(before)) ||
         now.least_s - bound > kNoise * NoiseOf(before);
}

SpeedsCompared Compare(const Plan& plan, Speeds now, const Speeds& before, const SpeedSetup& setup) {
  SpeedsCompared compared{.now = std::move(now), .slow = {}, .notes = {}, .finding = ""};
  for (std::size_t rank = 0; rank < std::min(compared.now.hosts.size(), before.hosts.size()); ++rank)
    if (compared.now.hosts[rank] != before.hosts[rank])
      compared.notes.push_back(
          fmt::format("rank {} was on {}, and is on {}", rank, before.hosts[rank], compared.now.hosts[rank]));
  std::size_t held = 0;
  for (std::size_t index = 0; index < compared.now.links.size() && !compared.now.interrupted; ++index) {
    LinkSpeed& link = compared.now.links[index];
    const LinkSpeed* was = Find(before, link);
    if (was == nullptr) continue;
    std::optional<SpeedSample> then;
    for (const SpeedSample& sample : link.samples) {
      const SpeedSample* same = Find(*was, sample.bytes);
      held += same != nullptr ? 1 : 0;
      if (same != nullptr && IsSlower(sample, *same)) then = *same;
    }
    if (!then) continue;
    link.before = then;
    bool slow = true;
    for (int time = 0; time < kTimesAgain && slow; ++time) {
      if (setup.progress) setup.progress(fmt::format("{} alone, {}", Name(link), SizeText(then->bytes)));
      const Plan again = Timed(SendOf(plan, link.from, link.to, then->bytes), then->bytes, link.port);
      const RunOutcome run = setup.run({again}, nullptr).front();
      if (run.verdict == RunVerdict::kInterrupted) compared.now.interrupted = true;
      slow = run.verdict == RunVerdict::kPassed;
      if (!slow) break;
      const SpeedSample sample = SampleOf(run, then->bytes);
      if (!link.again || sample.median_s < link.again->median_s) link.again = sample;
      slow = IsSlower(sample, *then);
    }
    if (slow) compared.slow.push_back(index);
  }
  if (held == 0 && !compared.now.interrupted)
    compared.finding = "The baseline has none of these links and sizes: nothing can be held against it.";
  else if (compared.slow.empty())
    compared.finding =
        fmt::format("No link is slower than it was by more than {:.0f} % and the noise.", kSlowerBy * 100);
  else
    compared.finding = Telling(compared).Words();
  compared.finding += Errors(compared.now);
  return compared;
}

SpeedsCompared Measured(Speeds now) {
  SpeedsCompared measured{.now = std::move(now), .slow = {}, .notes = {}, .finding = ""};
  const auto with_samples =
      std::ranges::count_if(measured.now.links, [](const LinkSpeed& link) { return !link.samples.empty(); });
  measured.finding = fmt::format("{} links measured.", with_samples) + Errors(measured.now);
  return measured;
}

int ExitStatus(const SpeedsCompared& compared) {
  if (compared.now.interrupted) return 2;
  const auto& links = compared.now.links;
  if (std::ranges::all_of(links, [](const LinkSpeed& link) { return link.samples.empty(); })) return 3;
  const bool fails = std::ranges::any_of(links, [](const LinkSpeed& link) { return !link.error.empty(); });
  return fails || !compared.slow.empty() ? 1 : 0;
}

}  // namespace inquest
