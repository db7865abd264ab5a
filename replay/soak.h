// A replay that is run again and again: how often it failed, how sure that is, and what is kept over an interrupt.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "replay/outcome.h"

namespace inquest {

/// What a part of all iterations is likely to be of many more.
struct RateInterval {
  double low = 0, high = 1;
};
/// Wilson's score interval of 95 %: good where nearly none or nearly all failed, and of few. `of` 0: 0 to 1.
RateInterval WilsonInterval(std::uint64_t failed, std::uint64_t of);

/// What is known so far; kept in a file.
struct SoakState {
  std::string schema = "inquest-replay-state-1";
  std::string plan;                                    ///< PlanKey of what is run
  std::uint64_t passed = 0, failed = 0;                ///< iterations
  std::uint64_t runs = 0;                              ///< starts of all ranks, with one iteration or more each
  std::optional<std::uint64_t> first_failed = {};      ///< number of the iteration, from 1
  std::map<std::string, std::uint64_t> verdicts = {};  ///< of runs
  std::string sentence = {};                           ///< of the first run that failed
  std::chrono::milliseconds time{};                    ///< that it was at work, over all parts
  bool over = false;                                   ///< it came to the end that was asked for: the next begins anew
  std::uint64_t iterations() const { return passed + failed; }
};
std::string Encode(const SoakState& state);
/// nullopt: none of ours.
std::optional<SoakState> DecodeSoak(std::string_view text);

/// Two plans that do the same have one: 16 hexadecimal digits.
std::string PlanKey(const Plan& plan);

struct SoakAsked {
  bool until_fails = false;
  std::optional<std::chrono::milliseconds> for_time = {};  ///< over all parts
};

/// What came of it; `state` is what was kept.
struct SoakOutcome {
  SoakState state;
  bool resumed = false, interrupted = false;
  std::string cannot = {};                 ///< why it could not go on; empty: nothing stopped it
  std::optional<RunOutcome> telling = {};  ///< the first that failed in this part, else the last
};
/// Runs the plan until what is asked for; `keep` after every run.
SoakOutcome Soak(const Plan& plan, const SoakAsked& asked, std::optional<SoakState> before,
                 const std::function<RunOutcome(const Plan&)>& run, const std::function<void(const SoakState&)>& keep);

/// `3 of 120 iterations failed: 2.5 % (0.9 to 7.1 % by Wilson's interval of 95 %), the first was 17.`
std::string InWords(const SoakState& state);

}  // namespace inquest
