// A set of ranks, held as stretches: a log may speak of a million that nobody has seen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <vector>

namespace inquest {

/// Ranks of one kind, ascending. Its size in memory is that of its stretches: 0 to 999,999 without 3 are two.
class RankSet {
 public:
  struct Stretch {
    int first = 0, last = 0;  ///< both are in it
    bool operator==(const Stretch&) const = default;
  };

  /// The ranks one by one, ascending.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = int;
    using difference_type = std::ptrdiff_t;
    using pointer = const int*;
    using reference = int;
    Iterator() = default;
    Iterator(std::vector<Stretch>::const_iterator at, std::vector<Stretch>::const_iterator end)
        : at_(at), end_(end), rank_(at == end ? 0 : at->first) {}
    int operator*() const { return rank_; }
    Iterator& operator++() {
      if (rank_ != at_->last) return ++rank_, *this;
      ++at_;
      rank_ = at_ == end_ ? 0 : at_->first;
      return *this;
    }
    Iterator operator++(int) {
      Iterator before = *this;
      ++*this;
      return before;
    }
    bool operator==(const Iterator&) const = default;

   private:
    std::vector<Stretch>::const_iterator at_, end_;
    int rank_ = 0;
  };

  template <class Ranks>
  static RankSet Of(const Ranks& ranks) {
    RankSet out;
    for (const int rank : ranks) out.Add(rank);
    return out;
  }

  /// 0 to size - 1: ranks count from 0.
  static RankSet Below(int size) {
    RankSet out;
    out.Add(0, size - 1);
    return out;
  }

  void Add(int rank) { Add(rank, rank); }
  /// first to last; nothing where last is below first. At the upper end without moving any other stretch.
  void Add(int first, int last);
  void Add(const RankSet& other);
  void Remove(int rank);
  RankSet Without(const RankSet& other) const;

  bool contains(int rank) const;
  bool empty() const { return stretches_.empty(); }
  std::uint64_t size() const;
  int front() const { return stretches_.front().first; }
  int back() const { return stretches_.back().last; }
  const std::vector<Stretch>& stretches() const { return stretches_; }
  Iterator begin() const { return {stretches_.begin(), stretches_.end()}; }
  Iterator end() const { return {stretches_.end(), stretches_.end()}; }
  bool operator==(const RankSet&) const = default;

 private:
  std::vector<Stretch> stretches_;  ///< ascending, with a gap between each and the next
};

}  // namespace inquest
