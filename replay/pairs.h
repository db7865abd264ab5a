// Which pairs of ranks cannot talk to one another: each as a job of its own two ranks, disjoint ones at once.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/outcome.h"
#include "replay/pace.h"
#include "replay/rounds.h"

namespace inquest {

/// Fresh processes for each plan, all of them at the same time; their ranks are on places of their own. In the order of
/// the plans. `pace`: what cuts their deadlines short; nullptr: nothing does.
using RunPlans = std::function<std::vector<RunOutcome>(const std::vector<Plan>& plans, Pace* pace)>;

/// Two ranks that each sent to the other, at the same time and alone.
struct PairOutcome {
  enum class State : std::uint8_t {
    kPassed,       ///< data verified, whatever was tried before
    kBroken,       ///< run again without those that pass, with the whole deadline, and it broke again
    kUnconfirmed,  ///< did not pass in the time that others take, and was not run again
    kCouldNotRun,
    kNotRun  ///< interrupted before
  };
  RankPair ranks = {};
  State state = State::kNotRun;
  std::string sentence = {};                  ///< of the last run that did not pass; empty: it passed at once
  std::optional<bool> forth = {}, back = {};  ///< low to high alone passes, and high to low; nullopt: not tried
};
std::string_view Name(PairOutcome::State state);

struct PairsOutcome {
  std::vector<PairOutcome> pairs;  ///< all of them, ascending; empty: not looked for
  std::uint64_t bytes = 0;         ///< each way
  int rounds = 0;                  ///< in which they ran
  int deadlines = 0;               ///< whole ones that were waited for
  bool interrupted = false;
};

struct PairSearch {
  RunPlans run;
  std::function<void(std::string_view what)> progress = {};  ///< may be empty
  Pace* pace = nullptr;                                      ///< never null; learns what a pair takes
};

/// The plan of two ranks of `of` that send to one another; of a sequence as much as its largest call. At most 16 MB
/// each way.
Plan PairOf(const Plan& of, const RankPair& pair);
/// The plan of one rank that sends to another.
Plan SendOf(const Plan& of, int from, int to, std::uint64_t bytes);

/// Every pair once, in rounds; then those that did not pass again, apart from those that did. Of more than two rounds
/// that each lose a whole deadline the rest stays unconfirmed. `last`: ranks and links that an earlier run blames;
/// their rounds come last, when it is known what a pair takes.
PairsOutcome FindBrokenPairs(const Plan& plan, const std::vector<Blamed>& last, const PairSearch& search);

/// One that broke; nullopt: none did.
std::optional<RankPair> BrokenPair(const PairsOutcome& outcome);
/// `Alone, this pair breaks: 2<->5.` `Rank 3 passes with no other rank, ...`. Empty: none was run.
std::string PairsInWords(const PairsOutcome& outcome, int ranks);

/// ` Here rank 0 is 2, rank 1 is 5.`: what a sentence of a part of the ranks needs.
std::string RanksHere(const std::vector<int>& ranks);

}  // namespace inquest
