// A set of ranks, held as stretches.
#include "core/rank_set.h"

#include <algorithm>
#include <limits>

namespace inquest {

void RankSet::Add(int first, int last) {
  if (last < first) return;
  constexpr int kLowest = std::numeric_limits<int>::min(), kHighest = std::numeric_limits<int>::max();
  // Those that overlap or touch become one.
  const int before = first == kLowest ? first : first - 1, behind = last == kHighest ? last : last + 1;
  const auto begin = std::lower_bound(stretches_.begin(), stretches_.end(), before,
                                      [](const Stretch& s, int rank) { return s.last < rank; });
  auto end = begin;
  while (end != stretches_.end() && end->first <= behind) ++end;
  if (begin == end) {
    stretches_.insert(begin, {first, last});
    return;
  }
  *begin = {std::min(first, begin->first), std::max(last, std::prev(end)->last)};
  stretches_.erase(std::next(begin), end);
}

void RankSet::Add(const RankSet& other) {
  for (const Stretch& stretch : other.stretches_) Add(stretch.first, stretch.last);
}

void RankSet::Remove(int rank) {
  const auto at =
      std::lower_bound(stretches_.begin(), stretches_.end(), rank, [](const Stretch& s, int r) { return s.last < r; });
  if (at == stretches_.end() || rank < at->first) return;
  const Stretch whole = *at;
  if (whole.first == whole.last) {
    stretches_.erase(at);
  } else if (rank == whole.first) {
    ++at->first;
  } else if (rank == whole.last) {
    --at->last;
  } else {
    at->last = rank - 1;
    stretches_.insert(std::next(at), {rank + 1, whole.last});
  }
}

RankSet RankSet::Without(const RankSet& other) const {
  RankSet out;
  auto hole = other.stretches_.begin();
  for (const Stretch& stretch : stretches_) {
    std::int64_t first = stretch.first;
    while (hole != other.stretches_.end() && hole->last < first) ++hole;
    for (auto at = hole; at != other.stretches_.end() && at->first <= stretch.last; ++at) {
      if (first < at->first) out.stretches_.push_back({static_cast<int>(first), at->first - 1});
      first = std::int64_t{at->last} + 1;
    }
    if (first <= stretch.last) out.stretches_.push_back({static_cast<int>(first), stretch.last});
  }
  return out;
}

bool RankSet::contains(int rank) const {
  const auto at =
      std::lower_bound(stretches_.begin(), stretches_.end(), rank, [](const Stretch& s, int r) { return s.last < r; });
  return at != stretches_.end() && at->first <= rank;
}

std::uint64_t RankSet::size() const {
  std::uint64_t size = 0;
  for (const Stretch& stretch : stretches_)
    size += static_cast<std::uint64_t>(std::int64_t{stretch.last} - stretch.first + 1);
  return size;
}

}  // namespace inquest
