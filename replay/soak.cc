// A replay that is run again and again.
#include "replay/soak.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "replay/wire.h"
#include "replay/wire_json.h"

namespace inquest {

template <class Archive>
void Fields(Archive& archive, SoakState& state) {
  archive("schema", state.schema);
  archive("plan", state.plan);
  archive("passed", state.passed);
  archive("failed", state.failed);
  archive("runs", state.runs);
  archive("first_failed", state.first_failed);
  archive("verdicts", state.verdicts);
  archive("sentence", state.sentence);
  archive("time_ms", state.time);
  archive("over", state.over);
}

namespace {

using Clock = std::chrono::steady_clock;

/// Iterations that every rank has completed.
std::uint64_t CompletedBy(const RunOutcome& run) {
  std::size_t fewest = SIZE_MAX;
  for (const RankOutcome& rank : run.ranks) fewest = std::min(fewest, rank.times.size());
  return run.ranks.empty() ? 0 : fewest;
}

}  // namespace

RateInterval WilsonInterval(std::uint64_t failed, std::uint64_t of) {
  if (of == 0) return {};
  constexpr double z = 1.959963984540054;  // of 95 %, two-sided
  const auto n = static_cast<double>(of);
  const double part = static_cast<double>(failed) / n, square = z * z / n;
  const double middle = (part + square / 2) / (1 + square);
  const double half = z / (1 + square) * std::sqrt(part * (1 - part) / n + square / (4 * n));
  return {failed == 0 ? 0 : std::max(0.0, middle - half), failed == of ? 1 : std::min(1.0, middle + half)};
}

std::string Encode(const SoakState& state) {
  wire::Writer writer;
  writer.Add(state);
  return writer.Text() + "\n";
}

std::optional<SoakState> DecodeSoak(std::string_view text) {
  try {
    const wire::Json json = wire::Json::parse(text);
    SoakState state;
    wire::Reader reader(json);
    Fields(reader, state);
    return state.schema == SoakState().schema ? std::optional(state) : std::nullopt;
  } catch (const wire::Json::exception&) {
    return std::nullopt;
  } catch (const wire::Malformed&) {
    return std::nullopt;
  }
}

std::string PlanKey(const Plan& plan) {
  std::string text = fmt::format("{} {} {} ", plan.engine, plan.ranks.value, plan.iterations);
  for (const auto& [name, value] : plan.env) text += fmt::format("{}={}\n", name, value);
  for (int rank = 0; rank < plan.ranks.value; ++rank) {
    StartWork work{.engine = plan.engine, .setup = {}, .faults = {}};
    if (plan.sequence)
      work.setup.sequence = WorkOf(*plan.sequence, rank);
    else
      work.setup.call = CallOf(plan);
    text += Encode(ToWorker(work));
    if (!plan.sequence) break;
  }
  std::uint64_t hash = 0xcbf29ce484222325U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  return fmt::format("{:016x}", hash);
}

SoakOutcome Soak(const Plan& plan, const SoakAsked& asked, std::optional<SoakState> before,
                 const std::function<RunOutcome(const Plan&)>& run, const std::function<void(const SoakState&)>& keep) {
  SoakOutcome out;
  out.resumed = before && !before->over && before->plan == PlanKey(plan);
  if (out.resumed) out.state = *before;
  out.state.plan = PlanKey(plan);
  SoakState& state = out.state;
  const auto earlier = state.time;
  const Clock::time_point begin = Clock::now();
  const auto is_over = [&] {
    return (asked.until_fails && state.failed > 0) || (asked.for_time && state.time >= *asked.for_time);
  };
  while (!is_over()) {
    RunOutcome one = run(plan);
    state.time = earlier + std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin);
    const bool failed = one.verdict != RunVerdict::kPassed;
    const bool counts = one.verdict != RunVerdict::kInterrupted && one.verdict != RunVerdict::kCouldNotRun;
    if (one.verdict == RunVerdict::kPassed) {
      state.passed += static_cast<std::uint64_t>(plan.iterations);
    } else {
      state.passed += CompletedBy(one);
      // What is verified wrong was completed.
      if (one.verdict == RunVerdict::kWrongData && state.passed > 0) --state.passed;
    }
    if (failed && counts) {
      ++state.failed;
      if (!state.first_failed) {
        state.first_failed = state.iterations();
        state.sentence = one.sentence;
      }
    }
    if (counts) ++state.runs, ++state.verdicts[std::string(Name(one.verdict))];
    const bool lost = one.verdict == RunVerdict::kNodeLost;
    out.interrupted = one.verdict == RunVerdict::kInterrupted;
    if (one.verdict == RunVerdict::kCouldNotRun || lost) out.cannot = one.sentence;
    const bool first = failed && counts && (!out.telling || out.telling->verdict == RunVerdict::kPassed);
    if (first || !out.telling || out.telling->verdict == RunVerdict::kPassed) out.telling = std::move(one);
    state.over = is_over();
    keep(state);
    if (out.interrupted || !out.cannot.empty()) break;
  }
  return out;
}

std::string InWords(const SoakState& state) {
  const std::uint64_t all = state.iterations();
  if (all == 0) return "No iteration came to an end.";
  const RateInterval interval = WilsonInterval(state.failed, all);
  const auto percent = [](double part) {
    return part > 0 && part < 0.001 ? fmt::format("{:.3f}", 100 * part) : fmt::format("{:.1f}", 100 * part);
  };
  const std::string rate = fmt::format("{} % ({} to {} % by Wilson's interval of 95 %)",
                                       percent(static_cast<double>(state.failed) / static_cast<double>(all)),
                                       percent(interval.low), percent(interval.high));
  return fmt::format("{} of {} iteration{} failed: {}{}.", state.failed, all, all == 1 ? "" : "s", rate,
                     state.first_failed ? fmt::format(", the first was number {}", *state.first_failed) : "");
}

}  // namespace inquest
