// Ranks waited in different operations, sizes or orders at one sequence number of one process group.
//
// What holds: two ranks timed out at the same sequence number of the same group in operations that cannot meet, or
// DETAIL's fingerprints differ. Why that implies the cause: the sequence number counts a group's operations on each
// rank, so a correct program has the same one at each number. What looks like it: two groups that count alike, so ranks
// whose group the log does not name are held against each other with less confidence; all-to-all, send, gather and
// scatter, whose sizes may differ. Models whose numbers of parameters differ are told in the same way. A minority is
// found by vote; where the vote is tied nobody is blamed, but of two alone both: either may be wrong.
#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>

#include "rules/detectors.h"

namespace inquest {
namespace work_mismatch {

constexpr FindingRow kFindings[] = {
    {"work-mismatch", "group-named group-guessed", "first-ranks first-call other-ranks other-call"},
    {"work-order-mismatch", "across-numbers across-sizes group-guessed", "early late"},
    {"fingerprint-mismatch", "compared", "rank call other-rank other-call"},
    {"models-differ", "compared", "rank params other-rank other-params"},
};
using Found = FoundIn<kFindings>;

bool SizesMustAgree(const std::string& op) {
  return op == "ALLREDUCE" || op == "BROADCAST" || op == "REDUCE" || op == "_ALLGATHER_BASE" ||
         op == "_REDUCE_SCATTER_BASE" || op == "ALLGATHER" || op == "REDUCE_SCATTER" || op == "BARRIER";
}

/// Nobody is through with it before all came.
bool EndsForAll(const std::string& op) { return SizesMustAgree(op) && op != "BROADCAST" && op != "REDUCE"; }

bool PairOp(const std::string& op) {
  return op == "SEND" || op == "RECV" || op == "RECVANYSOURCE" || op == "COALESCED" || op == "UNKNOWN";
}

/// Of operations that were launched as one, those whose output is so many times the input, or the other way round, are
/// all-gathers and reduce-scatters: sends and receives have no such sizes.
bool GathersOrScatters(const WorkFields& work) {
  const std::int64_t in = work.numel_in.value_or(0), out = work.numel_out.value_or(0);
  return work.op == "COALESCED" && in > 0 && out > 0 && in != out && (out % in == 0 || in % out == 0);
}

std::string Describe(const WorkFields& work) {
  std::string out = work.op.empty() ? "an operation" : work.op;
  if (work.seq) out += fmt::format(" #{}", work.seq->value);
  if (work.numel_in) out += fmt::format(" of {} elements", *work.numel_in);
  return out;
}

/// Waiters by what they asked for; the most numerous first, ties by who timed out first.
using Sides = std::vector<std::vector<const CollectiveRow::Waiter*>>;

Sides Split(const CollectiveRow& row) {
  using Sizes = std::pair<std::optional<std::int64_t>, std::optional<std::int64_t>>;
  std::map<std::pair<std::string, Sizes>, std::vector<const CollectiveRow::Waiter*>> by_what;
  const bool sized = std::any_of(row.waiters.begin(), row.waiters.end(),
                                 [](const auto& waiter) { return waiter.work.numel_in.has_value(); });
  for (const auto& waiter : row.waiters) {
    if (PairOp(waiter.work.op) && !GathersOrScatters(waiter.work)) continue;
    if (waiter.work.op.empty() || (sized && !waiter.work.numel_in)) continue;  // its line is torn
    const bool agree = SizesMustAgree(waiter.work.op) || GathersOrScatters(waiter.work);
    by_what[{waiter.work.op, agree ? Sizes(waiter.work.numel_in, waiter.work.numel_out) : Sizes()}].push_back(&waiter);
  }
  Sides sides;
  for (auto& [key, side] : by_what) sides.push_back(std::move(side));
  const auto first = [](const auto& side) {
    EventIndex event = side.front()->event;
    for (const auto* waiter : side) event = std::min(event, waiter->event);
    return event;
  };
  std::sort(sides.begin(), sides.end(), [&](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() > b.size() : first(a) < first(b);
  });
  return sides;
}

std::vector<int> RanksOf(const std::vector<const CollectiveRow::Waiter*>& side) {
  std::vector<int> ranks;
  for (const auto* waiter : side) ranks.push_back(waiter->rank.value);
  return ranks;
}

Found FromSides(const Timeline& timeline, const CollectiveRow& row, const Sides& sides) {
  const bool group_named = !row.guessed && timeline.groups[row.group].named();
  Found found(group_named ? Found::Held{"work-mismatch", "group-named"}
                          : Found::Held{"work-mismatch", "group-guessed"});
  found.Say("first-ranks", FoldRanks(RanksOf(sides[0])));
  found.Say("first-call", Describe(sides[0].front()->work));
  found.Say("other-ranks", FoldRanks(RanksOf(sides[1])));
  found.Say("other-call", Describe(sides[1].front()->work));
  found.collective = RefOf(timeline, row);
  const bool of_two = sides.size() == 2 && sides[0].size() == 1;  // the first is the largest
  if (of_two || sides[0].size() > sides[1].size())
    for (std::size_t i = of_two ? 0 : 1; i < sides.size(); ++i)
      for (const auto* waiter : sides[i])
        found.culprits.push_back(BlameRank(timeline, waiter->rank, "called " + Describe(waiter->work)));
  for (std::size_t i = sides.size(); i-- > 0;)
    found.citations.push_back(Cite(timeline, sides[i].front()->event, LineRole::kCause));
  return found;
}

// A rank that timed out further on had left the earlier operation behind, or never shared it: an operation of all ranks
// ends for none before all came, so their counts fell apart. Where they are one apart, a transport that failed late can
// have let some go on, and two of one size would have met, whatever their numbers.
std::optional<Found> FromNumbers(const Timeline& timeline, const CollectiveRow& early, const CollectiveRow& late) {
  if ((early.recorded && late.recorded) || early.work.seq->value >= late.work.seq->value) return std::nullopt;
  const bool one_kind = early.work.op == late.work.op;
  const bool next = early.work.seq->value + 1 == late.work.seq->value;
  if (one_kind && (!EndsForAll(early.work.op) || (next && early.work.numel_in == late.work.numel_in)))
    return std::nullopt;
  Found found({"work-order-mismatch", "across-numbers"});
  if (one_kind && next) found.Grade({"work-order-mismatch", "across-sizes"});
  if (early.guessed || late.guessed) found.Grade({"work-order-mismatch", "group-guessed"});
  found.Say("early", Describe(early.work));
  found.Say("late", Describe(late.work));
  found.collective = RefOf(timeline, early);
  const auto blame = [&](const CollectiveRow& row) {
    for (const auto& waiter : row.waiters)
      found.culprits.push_back(BlameRank(timeline, waiter.rank, "waited in " + Describe(waiter.work)));
  };
  const std::size_t at_early = early.waiters.size(), at_late = late.waiters.size();
  const bool of_two = at_early == 1 && at_late == 1;
  if (of_two || at_early < at_late) blame(early);
  if (of_two || at_late < at_early) blame(late);
  found.citations = {Cite(timeline, early.waiters.front().event, LineRole::kCause),
                     Cite(timeline, late.waiters.front().event, LineRole::kCause)};
  return found;
}

void AcrossNumbers(const Timeline& timeline, std::vector<Relation>& out) {
  constexpr std::size_t kFurther = 16;  ///< operations of a group; a log of thousands holds many runs
  std::map<std::uint32_t, std::vector<const CollectiveRow*>> by_group;
  for (const CollectiveRow& row : timeline.collectives) {
    const GroupRow& group = timeline.groups[row.group];
    if (row.work.seq && !PairOp(row.work.op) && group.named()) by_group[row.group].push_back(&row);
  }
  for (auto& [group, rows] : by_group) {
    std::ranges::stable_sort(rows, {}, [](const CollectiveRow* row) { return row->work.seq->value; });
    for (std::size_t early = 0; early < rows.size(); ++early)
      for (std::size_t late = early + 1; late < std::min(rows.size(), early + 1 + kFurther); ++late)
        if (auto found = FromNumbers(timeline, *rows[early], *rows[late])) out.push_back(std::move(*found));
  }
}

// Of a job of two each operation is of both, whatever its group: two that wait in different ones wait for one another.
void OfTwo(const Timeline& timeline, std::vector<Relation>& out) {
  if (timeline.ranks.size() != 2 || timeline.KnownRanks() != 2) return;
  std::map<int, const CollectiveRow*> first;  // by rank, of the lowest number
  for (const CollectiveRow& row : timeline.collectives) {
    if (!row.work.seq || row.recorded || PairOp(row.work.op) || row.waiters.size() != 1 ||
        timeline.groups[row.group].named())
      return;
    const CollectiveRow*& known = first[row.waiters.front().rank.value];
    if (known == nullptr || row.work.seq->value < known->work.seq->value) known = &row;
  }
  if (first.size() != 2) return;
  const CollectiveRow *early = first.begin()->second, *late = first.rbegin()->second;
  if (early->work.seq->value > late->work.seq->value) std::swap(early, late);
  if (early->work.op == late->work.op) return;
  if (auto found = FromNumbers(timeline, *early, *late)) {
    found->Grade({"work-order-mismatch", "group-guessed"});
    out.push_back(*std::move(found));
  }
}

/// nullopt: more than there can be.
std::optional<std::int64_t> Elements(const std::vector<std::int64_t>& shape) {
  std::int64_t product = 1;
  for (const std::int64_t side : shape)
    if (__builtin_mul_overflow(product, side, &product) || product < 0) return std::nullopt;
  return product;
}

std::string KeyOf(const Fingerprint& print) {
  std::string key = print.op + "|" + print.dtype;
  if (print.shape)
    for (const std::int64_t side : *print.shape) key += fmt::format("|{}", side);
  return key;
}

/// Each rank names the first one that differs from itself; over all reports every rank has one key, and the minority is
/// who differs from most. Of two alone either may be wrong.
std::vector<Culprit> MinorityOf(const Timeline& timeline, const std::map<int, std::string>& by_rank) {
  std::map<std::string, std::vector<GlobalRank>> sides;
  for (const auto& [rank, key] : by_rank) sides[key].push_back(GlobalRank{rank});
  std::size_t largest = 0;
  for (const auto& [key, ranks] : sides) largest = std::max(largest, ranks.size());
  std::vector<GlobalRank> minority;
  std::size_t as_large = 0;
  for (const auto& [key, ranks] : sides) {
    if (ranks.size() == largest)
      ++as_large;
    else
      minority.insert(minority.end(), ranks.begin(), ranks.end());
  }
  std::vector<Culprit> out;
  if (as_large == 1)
    for (const GlobalRank rank : minority) out.push_back(BlameRank(timeline, rank, ""));
  else if (by_rank.size() == 2)
    for (const auto& [rank, key] : by_rank)
      out.push_back(BlameRank(timeline, GlobalRank{rank}, "called something else than the other"));
  return out;
}

/// Where two are in the same call, the numbers of their calls are what differs.
std::map<int, std::string> Fingerprints(const Timeline& timeline) {
  std::map<int, std::string> by_rank, numbers;
  bool by_number = false;
  const auto add = [&](const GroupRank& rank, const Fingerprint& print) {
    by_rank.try_emplace(rank.value, KeyOf(print));
    numbers.try_emplace(rank.value, print.seq ? std::to_string(print.seq->value) : std::string());
  };
  for (const Event& event : timeline.events) {
    const auto* mismatch = std::get_if<FingerprintMismatch>(&event.what);
    if (mismatch == nullptr) continue;
    add(mismatch->rank_a, mismatch->a);
    add(mismatch->rank_b, mismatch->b);
    by_number = by_number || KeyOf(mismatch->a) == KeyOf(mismatch->b);
  }
  return by_number ? numbers : by_rank;
}

/// DDP compares how many parameters each rank's model has, and each says of whom it differs.
void FromModels(const Evidence& evidence, std::vector<Relation>& out) {
  static const Pattern kCounts(R"(but Rank (\d+) has (\d+) params, while rank (\d+) has inconsistent (\d+) params)");
  std::map<int, std::string> by_rank;
  std::optional<Found> found;
  for (const LineMatch& match : evidence.matches) {
    if (evidence.book.rules[match.rule].id != "model-differs") continue;
    const auto counts = kCounts.Search(MessageOf(evidence.timeline.events[match.event]));
    const auto rank = counts ? counts->number(1) : std::nullopt, other = counts ? counts->number(3) : std::nullopt;
    if (!rank || !other || std::max(*rank, *other) > 1 << 24) continue;
    by_rank.try_emplace(static_cast<int>(*rank), counts->text(2));
    by_rank.try_emplace(static_cast<int>(*other), counts->text(4));
    if (found) continue;
    found.emplace(Found::Held{"models-differ", "compared"});
    found->Say("rank", std::string(counts->text(1)));
    found->Say("params", std::string(counts->text(2)));
    found->Say("other-rank", std::string(counts->text(3)));
    found->Say("other-params", std::string(counts->text(4)));
    found->citations = {Cite(evidence.timeline, match.event, LineRole::kCause)};
  }
  if (!found || by_rank.size() < 3) return;  // of two nobody is wrong, and the rule says as much
  found->culprits = MinorityOf(evidence.timeline, by_rank);
  out.push_back(*std::move(found));
}

void FromFingerprints(const Timeline& timeline, std::vector<Relation>& out) {
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const auto* mismatch = std::get_if<FingerprintMismatch>(&timeline.events[i].what);
    if (mismatch == nullptr) continue;
    Found found({"fingerprint-mismatch", "compared"});
    found.Say("rank", std::to_string(mismatch->rank_a.value));
    found.Say("call", mismatch->a.op);
    found.Say("other-rank", std::to_string(mismatch->rank_b.value));
    found.Say("other-call", mismatch->b.op);
    CollectiveRef ref;
    ref.op = mismatch->a.op;
    if (mismatch->a.seq) ref.seq = mismatch->a.seq->value;
    if (mismatch->a.shape) ref.numel_in = Elements(*mismatch->a.shape);
    if (!mismatch->a.dtype.empty()) ref.dtype = mismatch->a.dtype;
    found.collective = std::move(ref);
    found.culprits = MinorityOf(timeline, Fingerprints(timeline));
    found.citations.push_back(Cite(timeline, i, LineRole::kCause));
    out.push_back(std::move(found));
    return;  // each rank says the same of its own neighbour; the first is enough
  }
}

std::vector<Relation> Run(const Evidence& evidence) {
  std::vector<Relation> out;
  FromFingerprints(evidence.timeline, out);
  FromModels(evidence, out);
  for (const CollectiveRow& row : evidence.timeline.collectives) {
    if (!row.work.seq || row.recorded) continue;
    const Sides sides = Split(row);
    if (sides.size() > 1) out.push_back(FromSides(evidence.timeline, row, sides));
  }
  AcrossNumbers(evidence.timeline, out);
  if (out.empty()) OfTwo(evidence.timeline, out);
  return out;
}

}  // namespace work_mismatch

const Detector kWorkMismatch{"work-mismatch", "Ranks waited in different operations or sizes at one sequence number.",
                             work_mismatch::kFindings, &work_mismatch::Run};

}  // namespace inquest
