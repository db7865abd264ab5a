// Each variant is run in fresh processes until the answer is clear.
//
// The baseline comes first. Where it passes every time, nothing is left to isolate, and that is a finding. Where it
// breaks, a variant that breaks too is out after its first broken run; one that passes has to pass as often as makes
// chance unlikely: three times where the baseline always broke, all repeats where it broke now and then. A variant for
// which NCCL used the very same transports as in the baseline has tested nothing and decides nothing. Of the variants
// that pass the most special one names the path: with shared memory off as well as peer-to-peer says less than
// peer-to-peer alone.
#include "replay/isolate.h"

#include <fmt/format.h>

#include <algorithm>

#include "replay/ops.h"
#include "replay/subsets.h"
#include "replay/variants.h"

namespace inquest {
namespace {

/// All pairs up to here are tried one by one.
constexpr int kMostRanksInPairs = 16;
constexpr int kSurePasses = 3;
/// Of the searches below, which may cost a deadline a run.
constexpr std::size_t kMostCards = 8;
constexpr int kMostSets = 40;
constexpr std::string_view kOneCard = "hca ";

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
      : plan_(plan), setup_(setup), variants_(VariantsFor(plan, setup.inherited, setup.nccl)) {}

  IsolationOutcome Run() {
    for (const Variant* variant : variants_) {
      if (out_.interrupted) break;
      // Where the baseline passes, or there is no GPU path to switch, the others say nothing.
      if (variant != variants_.front() &&
          (Baseline().broken == 0 || (plan_.engine != "nccl" && variant->engine.empty())))
        break;
      if (variant->engine == plan_.engine) continue;
      Try(std::string(variant->id), Applied(plan_, *variant));
      if (variant == variants_.front() && setup_.cards) cards_ = setup_.cards();
    }
    if (Baseline().broken > 0) {
      TryCards();
      if (plan_.ranks.value > kMostRanksInPairs)
        TryParts();
      else if (plan_.ranks.value > 2)
        TryPairs();
    }
    Conclude();
    return std::move(out_);
  }

 private:
  const VariantOutcome& Baseline() const { return out_.variants.front(); }

  /// How many passes in a row are an answer.
  int Wanted() const {
    if (out_.variants.size() < 2) return setup_.repeats;
    return Baseline().broken == Baseline().runs ? std::min(kSurePasses, setup_.repeats) : setup_.repeats;
  }

  VariantOutcome& Try(const std::string& id, const Plan& plan) {
    VariantOutcome& tried = out_.variants.emplace_back();
    tried.id = id;
    const bool is_baseline = out_.variants.size() == 1;
    while (tried.runs < Wanted()) {
      if (setup_.progress) setup_.progress(fmt::format("{} {}/{}", id, tried.runs + 1, Wanted()));
      const RunOutcome run = setup_.run(plan);
      if (run.verdict == RunVerdict::kInterrupted) {
        out_.interrupted = true;
        return tried;
      }
      if (run.verdict == RunVerdict::kCouldNotRun) {
        ++tried.could_not_run;
        tried.verdict = run.verdict;
        tried.sentence = run.sentence;
        return tried;
      }
      ++tried.runs;
      if (setup_.used && plan.engine == plan_.engine) tried.used.merge(setup_.used());
      if (!Broke(run.verdict)) continue;
      ++tried.broken;
      tried.verdict = run.verdict;
      tried.sentence = run.sentence;
      // A second broken baseline says that it breaks; how often matters only for one that also passes.
      if (!is_baseline || (tried.broken == tried.runs && tried.broken == 2)) break;
    }
    tried.changed_nothing = !is_baseline && !tried.used.empty() && tried.used == Baseline().used && MovesTransport(id);
    return tried;
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
      Plan plan = plan_;
      plan.env["NCCL_IB_HCA"] = "=" + cards_[i];  // exactly this one
      Try(std::string(kOneCard) + cards_[i], plan);
    }
  }

  void TryParts() {
    if (RowOf(plan_.operation.value).needs_peer || out_.interrupted) return;
    std::vector<int> all;
    for (int rank = 0; rank < plan_.ranks.value; ++rank) all.push_back(rank);
    const auto breaks = [&](const std::vector<int>& ranks) -> std::optional<bool> {
      SubsetOutcome& tried = out_.subsets.emplace_back();
      tried.ranks = ranks;
      const Plan plan = SubsetOf(plan_, ranks);
      for (int pass = 0; pass < Wanted() && !tried.broken; ++pass) {
        if (setup_.progress)
          setup_.progress(fmt::format("{} of {} ranks, from rank {}", ranks.size(), plan_.ranks.value, ranks.front()));
        const RunOutcome run = setup_.run(plan);
        ++part_runs_;
        if (run.verdict == RunVerdict::kInterrupted) {
          out_.interrupted = true;
          out_.subsets.pop_back();
          return std::nullopt;
        }
        tried.broken = Broke(run.verdict);
        tried.sentence = run.sentence;
      }
      return tried.broken;
    };
    parts_ = Bisect(all, breaks, kMostSets);
  }

  void TryPairs() {
    for (int from = 0; from < plan_.ranks.value; ++from) {
      for (int to = 0; to < plan_.ranks.value; ++to) {
        if (from == to) continue;
        Plan pair = plan_;
        pair.operation.value = Operation::kSendRecv;
        pair.root = {.value = from};
        pair.peer = {.value = to};
        pair.count.value = std::max<std::uint64_t>(pair.count.value, 1);
        if (setup_.progress) setup_.progress(fmt::format("rank {} to rank {}", from, to));
        const RunOutcome run = setup_.run(pair);
        if (run.verdict == RunVerdict::kInterrupted) {
          out_.interrupted = true;
          return;
        }
        out_.pairs.push_back({from, to, Broke(run.verdict), run.sentence});
      }
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
          "Passes {} of {}: the machines can do this collective now. Then it was the program (ranks that did not make "
          "the same calls), something passing, or a node that is no longer among these.",
          base.runs, base.runs);
      return;
    }
    out_.finding = fmt::format("Breaks {} of {}", base.broken, base.runs);
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
    for (const std::string& more : {Cards(), Pairs(), Parts()})
      if (!more.empty()) out_.finding += " " + more;
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
    if (!parts_) return "";
    const std::string runs = fmt::format("found in {} runs of parts of the ranks{}", part_runs_,
                                         parts_->is_whole ? "" : ", then given up: there may be a smaller one");
    if (static_cast<int>(parts_->smallest.size()) == plan_.ranks.value)
      return fmt::format("No smaller part of the ranks breaks; {}.", runs);
    const std::string ranks = fmt::format("{}", fmt::join(parts_->smallest, ", "));
    if (parts_->smallest.size() == 1) return fmt::format("Rank {} breaks all by itself; {}.", ranks, runs);
    return fmt::format("Alone, {} {} break; {}.", parts_->smallest.size() == 2 ? "the pair of ranks" : "ranks", ranks,
                       runs);
  }

  std::string NothingHelps() const {
    if (const VariantOutcome* cpu = Find("cpu"); cpu != nullptr && cpu->broken > 0)
      return ", and on CPUs over TCP too: the hosts or their IP network, before anything of the GPUs.";
    if (plan_.engine == "gloo") return ": the hosts or their IP network; the GPUs were not used.";
    return ", whatever part of the transport is switched off: rather a GPU, the driver or NCCL itself than one path.";
  }

  std::string Pairs() const {
    std::vector<std::string> broken;
    for (const PairOutcome& pair : out_.pairs)
      if (pair.broken) broken.push_back(fmt::format("{}->{}", pair.from, pair.to));
    if (out_.pairs.empty()) return "";
    if (broken.empty()) return "Every pair alone passes.";
    if (broken.size() == out_.pairs.size()) return "Every pair alone breaks too.";
    const auto rank = broken.size() > 1 ? CommonRank() : std::nullopt;
    return fmt::format("Alone, {}: {}{}.", broken.size() == 1 ? "this pair breaks" : "these pairs break",
                       fmt::join(broken, ", "), rank ? fmt::format("; rank {} is in each", *rank) : "");
  }

  /// The one rank that is in every broken pair; nullopt: none, or more than one.
  std::optional<int> CommonRank() const {
    std::optional<int> common;
    for (int rank = 0; rank < plan_.ranks.value; ++rank) {
      const bool in_all = std::ranges::all_of(
          out_.pairs, [&](const PairOutcome& pair) { return !pair.broken || pair.from == rank || pair.to == rank; });
      if (in_all && common) return std::nullopt;
      if (in_all) common = rank;
    }
    return common;
  }

  /// nullptr: it was not run.
  const VariantOutcome* Find(std::string_view id) const {
    const auto found = std::ranges::find(out_.variants, id, &VariantOutcome::id);
    return found == out_.variants.end() ? nullptr : &*found;
  }

  const Plan& plan_;
  const IsolationSetup& setup_;
  std::vector<const Variant*> variants_;
  std::vector<std::string> cards_;  ///< RDMA ports of the baseline
  std::optional<Bisection> parts_;
  int part_runs_ = 0;
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
