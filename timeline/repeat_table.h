// How often each thing was said, by its key: a table in one piece, since a flood asks it once a line.
#pragma once

#include <cstdint>
#include <vector>

namespace inquest {

/// Keys are hashes, and none is 0. References last until the next At() or Erase().
class RepeatTable {
 public:
  struct Entry {
    std::uint64_t key = 0;
    std::uint32_t count = 0, last = 0;
  };

  /// The key's entry, new if need be.
  Entry& At(std::uint64_t key) {
    if ((size_ + 1) * 2 > entries_.size()) Grow();
    Entry& entry = entries_[Find(key)];
    if (entry.key == 0) {
      entry.key = key;
      ++size_;
    }
    return entry;
  }
  /// nullptr: it is not there.
  Entry* Of(std::uint64_t key) {
    if (size_ == 0) return nullptr;
    Entry& entry = entries_[Find(key)];
    return entry.key == 0 ? nullptr : &entry;
  }
  void Erase(std::uint64_t key) {
    const std::size_t mask = entries_.size() - 1;
    std::size_t hole = Find(key);
    // Whatever was put behind it, for want of a place of its own, moves up.
    for (std::size_t i = (hole + 1) & mask; entries_[i].key != 0; i = (i + 1) & mask)
      if (((i - Home(entries_[i].key)) & mask) >= ((i - hole) & mask)) {
        entries_[hole] = entries_[i];
        hole = i;
      }
    entries_[hole] = {};
    --size_;
  }
  void Clear() {
    entries_ = {};
    size_ = 0;
  }

 private:
  std::size_t Home(std::uint64_t key) const { return (key >> 1) * 0x9e3779b97f4a7c15U >> 20 & (entries_.size() - 1); }
  /// Where the key stands, or would.
  std::size_t Find(std::uint64_t key) const {
    std::size_t i = Home(key);
    while (entries_[i].key != 0 && entries_[i].key != key) i = (i + 1) & (entries_.size() - 1);
    return i;
  }
  void Grow() {
    std::vector<Entry> old(entries_.empty() ? 64 : entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old)
      if (entry.key != 0) entries_[Find(entry.key)] = entry;
  }

  std::vector<Entry> entries_;  ///< a power of 2 of them, half of them in use at most
  std::size_t size_ = 0;
};

}  // namespace inquest
