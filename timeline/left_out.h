// What a log said beyond what is held of it: counted, and remembered as far as that takes no memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/ids.h"

namespace inquest {

/// How many of what: kinds of events by their own names, `process`, `communicator`, `call` (that was not compared),
/// `writer` (whose last lines are not known), `input`. Empty for the log of any job of reasonable size.
using LeftOut = std::map<std::string, std::uint64_t, std::less<>>;

/// Things that were forgotten. One that was is always told; now and then, one that was not is told as well.
class Forgotten {
 public:
  void Add(std::size_t hash) {
    bits_.resize(kBits);
    bits_[hash * 0x9e3779b97f4a7c15U % kBits] = true;
  }
  bool MayHold(std::size_t hash) const { return !bits_.empty() && bits_[hash * 0x9e3779b97f4a7c15U % kBits]; }
  bool empty() const { return bits_.empty(); }

 private:
  static constexpr std::size_t kBits = (1 << 23) - 15;
  std::vector<bool> bits_;
};

/// Of the operation of a time-out: its number, where it was printed.
inline std::size_t HashOfWait(std::optional<SeqId> seq) {
  return std::hash<std::optional<std::int64_t>>()(seq ? std::optional(seq->value) : std::nullopt);
}

}  // namespace inquest
