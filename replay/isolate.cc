// First who, then which path.
//
// Of a sequence there is an answer before both: where its ranks wait for one another in a circle, or for a call that
// one never makes, no machine is at fault, and none is looked for.
//
// The baseline comes first. Where it passes every time, nothing is left to isolate, and that is a finding. As soon as
// it breaks the pairs are tried (pairs.cc), which mostly names a link or a rank in one more deadline or two. Where no
// pair breaks, or there are too many, the ranks are shrunk to the fewest that break the very call (subsets.cc). A
// deadline that was cut short there only leads the search: what it ends at is run once more, alone and with the whole
// deadline, and where that passes the search is begun anew with more patience.
//
// Then the variants, of those few ranks alone where they are known: each in fresh processes until the answer is clear.
// A variant that breaks too is out after its first broken run; one that passes has to pass as often as makes chance
// unlikely: three times where the baseline always broke, all repeats where it broke now and then. A variant for which
// NCCL used the very same transports as in the baseline has tested nothing and decides nothing. Of the variants that
// pass the most special one names the path: with shared memory off as well as peer-to-peer says less than peer-to-peer
// alone.
#include "replay/isolate.h"

#include <fmt/format.h>

#include <algorithm>

#include "replay/ops.h"
#include "replay/subsets.h"
#include "replay/variants.h"
#include "timeline/timeline.h"

namespace inquest {
namespace {

using Clock = std::chrono::steady_clock;

/// All pairs up to here, which is as many rounds; above, the ranks are shrunk first.
constexpr int kMostRanksInPairs = 32;
constexpr int kSurePasses = 3;
/// Of the searches below, which may cost a deadline a run.
constexpr std::size_t kMostCards = 8;
constexpr int kMostSets = 60, kMostSearches = 3;
constexpr std::string_view kOneCard = "hca ";

bool LostDeadline(const RunOutcome& run) {
  return !run.is_hurried && (run.verdict == RunVerdict::kHung || run.verdict == RunVerdict::kLinkDead);
}

bool Broke(RunVerdict verdict) {
  return verdict != RunVerdict::kPassed && verdict != RunVerdict::kInterrupted && verdict != RunVerdict::kCouldNotRun;
}

Plan Applied(Plan plan, const Variant& variant) {
  for (const auto& [name, value] : variant.env) plan.env.insert_or_assign(std::string(name), std::string(value));
  if (!variant.engine.empty()) plan.engine = std::string(variant.engine);
  return plan;
}

class Isolation {
 public:
  Isolation(const Plan& plan, const IsolationSetup& setup)
      : plan_(plan), setup_(setup), part_(plan), variants_(VariantsFor(plan, setup.inherited, setup.nccl)) {}

  IsolationOutcome Run() {
    TryBaseline(1);
    if (order_.empty() && Baseline().broken > 0 && !out_.interrupted) FindPart();
    // Where the baseline passes, or there is no GPU path to switch, the others say nothing.
    for (const Variant* variant : variants_) {
      if (out_.interrupted || Baseline().broken == 0 || !order_.empty()) break;
      if (variant == variants_.front() || variant->engine == plan_.engine) continue;
      if (plan_.engine != "nccl" && variant->engine.empty()) continue;
      Try(std::string(variant->id), Applied(part_, *variant));
    }
    if (order_.empty() && Baseline().broken > 0 && !out_.interrupted) TryCards();
    Conclude();
    out_.took = Clock::now() - begin_;
    return std::move(out_);
  }

 private:
  const VariantOutcome& Baseline() const { return out_.variants.front(); }
  bool AlwaysBreaks() const { return Baseline().broken == Baseline().runs || !out_.part.empty(); }

  /// How many passes in a row are an answer.
  int Wanted() const { return AlwaysBreaks() ? std::min(kSurePasses, setup_.repeats) : setup_.repeats; }

  RunOutcome RunOne(const Plan& plan, Pace* pace = nullptr) {
    RunOutcome run = setup_.run({plan}, pace).front();
    if (LostDeadline(run)) ++out_.deadlines;
    return run;
  }

  // ---- who ----------------------------------------------------------------------------------------------------------
  /// Until so many have broken at the start, or all repeats are run.
  void TryBaseline(int broken_at_start) {
    if (out_.variants.empty()) out_.variants.emplace_back().id = "baseline";
    VariantOutcome& base = out_.variants.front();
    while (base.runs < setup_.repeats && !(base.broken == base.runs && base.broken >= broken_at_start)) {
      if (setup_.progress) setup_.progress(fmt::format("{} {}/{}", base.id, base.runs + 1, setup_.repeats));
      const RunOutcome run = RunOne(plan_);
      if (!Count(run, base)) return;
      if (setup_.cards && base.runs == 1) cards_ = setup_.cards();
      if (Broke(run.verdict)) blamed_ = run.blamed;
      if (IsOfOrder(run)) {
        order_ = run.sentence;
        return;
      }
    }
  }

  /// Whether it hangs by what the ranks call, and in which order.
  bool IsOfOrder(const RunOutcome& run) const {
    if (!plan_.sequence || run.verdict != RunVerdict::kHung) return false;
    return !run.cycle.empty() ||
           std::ranges::any_of(run.waiting, [](const Waiting& waiting) { return !waiting.never.empty(); });
  }

  void FindPart() {
    if (plan_.ranks.value < 3) return TryBaseline(2);
    if (plan_.ranks.value <= kMostRanksInPairs) TryPairs(1);
    if (out_.interrupted || !out_.part.empty()) return;
    TryBaseline(2);
    // What breaks now and then is not found by one look.
    if (!out_.interrupted && plan_.ranks.value <= kMostRanksInPairs && !AlwaysBreaks()) TryPairs(setup_.repeats - 1);
    if (!out_.interrupted && out_.part.empty()) TryParts();
  }

  void TryPairs(int times) {
    for (int time = 0; time < times && out_.part.empty() && !out_.interrupted; ++time) {
      out_.pairs = FindBrokenPairs(plan_, blamed_, {.run = setup_.run, .progress = setup_.progress, .pace = &pace_});
      out_.deadlines += out_.pairs.deadlines;
      out_.interrupted = out_.pairs.interrupted;
      const auto pair = BrokenPair(out_.pairs);
      if (!pair) continue;
      SetPart({pair->low, pair->high}, PairOf(plan_, *pair));
    }
  }

  void SetPart(std::vector<int> ranks, Plan plan) {
    out_.part = std::move(ranks);
    out_.named_at = Clock::now() - begin_;
    part_ = std::move(plan);
    part_used_ = setup_.used ? setup_.used() : std::set<std::string>();
    variants_ = VariantsFor(part_, setup_.inherited, setup_.nccl);
  }

  /// Whether each of these sets breaks, tried at once.
  std::optional<std::vector<bool>> Break(const std::vector<std::vector<int>>& sets, int passes) {
    std::vector<SubsetOutcome> tried;
    for (const std::vector<int>& ranks : sets) tried.push_back({.ranks = ranks});
    const auto is_known = [&](const SubsetOutcome& one) {
      return one.broken || one.could_not_run || MakesNoCall(one.ranks);
    };
    for (int pass = 0; pass < passes; ++pass) {
      std::vector<Plan> plans;
      std::vector<SubsetOutcome*> of_plans;
      for (SubsetOutcome& one : tried) {
        if (is_known(one)) continue;
        plans.push_back(SubsetOf(plan_, one.ranks));
        of_plans.push_back(&one);
        if (setup_.progress)
          setup_.progress(fmt::format("{} of {} ranks: {}", one.ranks.size(), plan_.ranks.value, FoldRanks(one.ranks)));
      }
      if (plans.empty()) break;
      const std::vector<RunOutcome> runs = setup_.run(plans, &part_pace_);
      ++part_runs_;
      bool lost = false;
      for (std::size_t i = 0; i < runs.size(); ++i) {
        if (runs[i].verdict == RunVerdict::kInterrupted) {
          out_.interrupted = true;
          return std::nullopt;
        }
        of_plans[i]->broken = Broke(runs[i].verdict);
        of_plans[i]->could_not_run = runs[i].verdict == RunVerdict::kCouldNotRun;
        of_plans[i]->sentence = runs[i].sentence + RanksHere(of_plans[i]->ranks);
        lost = lost || LostDeadline(runs[i]);
      }
      out_.deadlines += lost ? 1 : 0;
    }
    std::vector<bool> answers;
    for (SubsetOutcome& one : tried) {
      answers.push_back(one.broken);
      out_.subsets.push_back(std::move(one));
    }
    return answers;
  }

  /// Of a sequence, ranks that never call together.
  bool MakesNoCall(const std::vector<int>& ranks) const {
    return plan_.sequence && SubsetOf(*plan_.sequence, ranks).size() == 0;
  }

  void TryParts() {
    if (!plan_.sequence && RowOf(plan_.operation.value).needs_peer) return;  // the call itself names its two
    std::vector<int> all;
    for (int rank = 0; rank < plan_.ranks.value; ++rank) all.push_back(rank);
    const int passes = AlwaysBreaks() ? 1 : setup_.repeats;
    for (int search = 0; search < kMostSearches; ++search) {
      shrunk_ = Shrink(
          all, [&](const std::vector<std::vector<int>>& sets) { return Break(sets, passes); }, kMostSets);
      if (out_.interrupted || shrunk_->smallest.size() == all.size()) return;
      const Plan plan = SubsetOf(plan_, shrunk_->smallest);
      for (int run = 0; run < passes; ++run) {
        const RunOutcome sure = RunOne(plan);
        if (sure.verdict == RunVerdict::kInterrupted) {
          out_.interrupted = true;
          return;
        }
        if (!Broke(sure.verdict)) continue;
        return SetPart(shrunk_->smallest, plan);
      }
      part_pace_.Widen();
    }
    shrunk_.reset();
    not_confirmed_ = true;
  }

  // ---- which path ---------------------------------------------------------------------------------------------------
  /// False: it was no answer, and there will be none.
  bool Count(const RunOutcome& run, VariantOutcome& tried) {
    if (run.verdict == RunVerdict::kInterrupted) {
      out_.interrupted = true;
      return false;
    }
    if (run.verdict == RunVerdict::kCouldNotRun) {
      ++tried.could_not_run;
      tried.verdict = run.verdict;
      tried.sentence = run.sentence;
      return false;
    }
    ++tried.runs;
    if (setup_.used) tried.used.merge(setup_.used());
    if (!Broke(run.verdict)) return true;
    ++tried.broken;
    tried.verdict = run.verdict;
    tried.sentence = run.sentence;
    return true;
  }

  void Try(const std::string& id, const Plan& plan) {
    VariantOutcome& tried = out_.variants.emplace_back();
    tried.id = id;
    while (tried.runs < Wanted() && tried.broken == 0) {
      if (setup_.progress) setup_.progress(fmt::format("{} {}/{}", id, tried.runs + 1, Wanted()));
      const RunOutcome run = RunOne(plan);
      if (!Count(run, tried)) break;
    }
    if (plan.engine != plan_.engine) tried.used.clear();
    tried.changed_nothing =
        !tried.used.empty() && tried.used == (out_.part.empty() ? Baseline().used : part_used_) && MovesTransport(id);
  }

  /// NLVS, protocols and the moment of connecting do not show in the channels' lines.
  static bool MovesTransport(std::string_view id) {
    return id == "net-only" || id == "socket" || id == "p2p-off" || id == "shm-off" || id == "gdr-off";
  }

  bool IsClear(const VariantOutcome& tried) const {
    return tried.broken == 0 && tried.runs >= Wanted() && !tried.changed_nothing;
  }

  /// One RDMA port at a time, where there are several and the baseline went over them, as far as it says.
  void TryCards() {
    const auto& used = Baseline().used;
    if (cards_.size() < 2 || plan_.engine != "nccl") return;
    if (!used.empty() && std::ranges::none_of(used, [](const std::string& via) { return via.starts_with("NET/IB"); }))
      return;
    for (std::size_t i = 0; i < std::min(cards_.size(), kMostCards) && !out_.interrupted; ++i) {
      Plan plan = part_;
      plan.env["NCCL_IB_HCA"] = "=" + cards_[i];  // exactly this one
      Try(std::string(kOneCard) + cards_[i], plan);
    }
  }

  // ---- in words ------------------------------------------------------------------------------------------------

  void Conclude() {
    const VariantOutcome& base = Baseline();
    if (base.could_not_run > 0 && base.runs == 0) {
      out_.finding = "The baseline could not run: " + base.sentence;
      return;
    }
    if (base.broken == 0) {
      out_.finding = fmt::format(
          "Passes {} of {}: the machines can do {} now. Then it was {}, something passing, or a node that is no longer "
          "among these.",
          base.runs, base.runs, plan_.sequence ? "these calls in this order" : "this collective",
          plan_.sequence ? "what came between the calls" : "the program (ranks that did not make the same calls)");
      return;
    }
    if (!order_.empty()) {
      out_.finding = fmt::format(
          "Breaks {} of {}, by what the ranks call and in which order, whatever machines they "
          "are on; no machine was looked for. {}",
          base.broken, base.runs, order_);
      return;
    }
    const std::string who = Who();
    out_.finding = fmt::format("Breaks {} of {}", base.broken, base.runs);
    if (!out_.part.empty()) {
      out_.finding += fmt::format(". {}", who);
      out_.finding += fmt::format(" {} alone break{}", RanksText(out_.part), out_.part.size() == 1 ? "s" : "");
    }
    const Variant* clear = nullptr;
    std::vector<std::string_view> also;
    for (const Variant* variant : variants_) {
      const VariantOutcome* tried = Find(variant->id);
      if (tried == nullptr || tried == &base || !IsClear(*tried)) continue;
      if (clear != nullptr) also.push_back(clear->changes);
      clear = variant;
    }
    if (clear == nullptr) {
      out_.finding += NothingHelps();
    } else {
      out_.finding += fmt::format(", 0 of {} {}: {}.", Find(clear->id)->runs, clear->changes, PathOf(*clear));
      if (!also.empty()) out_.finding += fmt::format(" It passes too {}.", fmt::join(also, ", "));
      out_.hint = clear->hint;
    }
    if (const std::string cards = Cards(); !cards.empty()) out_.finding += " " + cards;
    if (out_.part.empty() && !who.empty()) out_.finding += " " + who;
  }

  static std::string RanksText(const std::vector<int>& ranks) {
    return fmt::format("{} {}", ranks.size() == 1 ? "Rank" : "Ranks", FoldRanks(ranks));
  }

  std::string Who() const {
    std::string text = PairsInWords(out_.pairs, plan_.ranks.value);
    if (const std::string parts = Parts(); !parts.empty()) text += (text.empty() ? "" : " ") + parts;
    if (not_confirmed_)
      text += fmt::format(
          "{}Parts of the ranks did not pass in the time that others take, and passed alone with more: no fewer ranks "
          "are named.",
          text.empty() ? "" : " ");
    return text;
  }

  /// What one protocol or algorithm shows, its neighbours narrow.
  std::string PathOf(const Variant& clear) const {
    const auto broke = [&](std::string_view id) {
      const VariantOutcome* tried = Find(id);
      return tried != nullptr && tried->broken > 0;
    };
    if (clear.id == "proto-simple" && broke("proto-no-ll128")) return "the protocol LL";
    if (clear.id == "proto-ll" && broke("proto-simple")) return "the protocol Simple";
    if (clear.id == "algo-ring" && broke("algo-tree")) return "the algorithm Tree";
    if (clear.id == "algo-tree" && broke("algo-ring")) return "the algorithm Ring";
    return std::string(clear.path);
  }

  std::string Cards() const {
    std::vector<std::string_view> broken, well;
    for (const VariantOutcome& tried : out_.variants) {
      if (!tried.id.starts_with(kOneCard)) continue;
      if (tried.broken > 0) broken.push_back(std::string_view(tried.id).substr(kOneCard.size()));
      if (IsClear(tried)) well.push_back(std::string_view(tried.id).substr(kOneCard.size()));
    }
    const std::string left = cards_.size() > kMostCards
                                 ? fmt::format(" (the first {} of {} RDMA ports were tried)", kMostCards, cards_.size())
                                 : "";
    if (broken.empty() && well.empty()) return "";
    if (broken.empty()) return fmt::format("Each RDMA port alone passes{}.", left);
    if (well.empty()) return fmt::format("Each RDMA port alone breaks too{}.", left);
    return fmt::format("It breaks with {} {} alone, and passes with {} alone{}: {} card, cable or switch port.",
                       broken.size() == 1 ? "RDMA port" : "each of the RDMA ports", fmt::join(broken, ", "),
                       fmt::join(well, ", "), left, broken.size() == 1 ? "its" : "their");
  }

  std::string Parts() const {
    if (!shrunk_) return "";
    const std::string runs = fmt::format("found in {} runs of parts of the ranks{}", part_runs_,
                                         shrunk_->is_whole ? "" : ", then given up: there may be a smaller one");
    if (static_cast<int>(shrunk_->smallest.size()) == plan_.ranks.value)
      return fmt::format("No smaller part of the ranks breaks; {}.", runs);
    const std::string ranks = fmt::format("{}", fmt::join(shrunk_->smallest, ", "));
    if (shrunk_->smallest.size() == 1) return fmt::format("Rank {} breaks all by itself; {}.", ranks, runs);
    return fmt::format("Alone, {} {} break, and no fewer of them; {}.",
                       shrunk_->smallest.size() == 2 ? "the pair of ranks" : "ranks", ranks, runs);
  }

  std::string NothingHelps() const {
    if (const VariantOutcome* cpu = Find("cpu"); cpu != nullptr && cpu->broken > 0)
      return ", and on CPUs over TCP too: the hosts or their IP network, before anything of the GPUs.";
    if (plan_.engine == "gloo") return ": the hosts or their IP network; the GPUs were not used.";
    return ", whatever part of the transport is switched off: rather a GPU, the driver or NCCL itself than one path.";
  }

  /// nullptr: it was not run.
  const VariantOutcome* Find(std::string_view id) const {
    const auto found = std::ranges::find(out_.variants, id, &VariantOutcome::id);
    return found == out_.variants.end() ? nullptr : &*found;
  }

  const Plan& plan_;
  const IsolationSetup& setup_;
  Plan part_;                        ///< what the variants are of: the whole plan, or the smallest part that breaks
  std::set<std::string> part_used_;  ///< the transports of its last run
  std::vector<const Variant*> variants_;
  std::vector<std::string> cards_;  ///< RDMA ports of the baseline
  std::vector<Blamed> blamed_;      ///< by its last broken run
  std::optional<Shrunk> shrunk_;
  bool not_confirmed_ = false;
  std::string order_;  ///< the sentence of a run that hangs by the order of the calls; empty: none did
  int part_runs_ = 0;
  Pace pace_, part_pace_;  ///< of pairs; of parts, which have the call to do
  Clock::time_point begin_ = Clock::now();
  IsolationOutcome out_;
};

}  // namespace

IsolationOutcome Isolate(const Plan& plan, const IsolationSetup& setup) { return Isolation(plan, setup).Run(); }

int ExitStatus(const IsolationOutcome& outcome) {
  if (outcome.interrupted || outcome.variants.empty()) return 2;
  const VariantOutcome& base = outcome.variants.front();
  if (base.runs == 0) return 3;
  return base.broken > 0 ? 1 : 0;
}

}  // namespace inquest
