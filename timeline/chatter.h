// Lines that come again and again and count nothing: what a reader steps over.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "timeline/timeline.h"

namespace inquest {

struct Told;

// Other ranks, libraries and tables of settings print between any two lines that belong together. Chatter are plain
// lines of one kind that make a good part of an input, stand in knots (a program that is started again and again prints
// each of its lines once a start), and whose numbers do not keep rising: rows that count on are work, and what stands
// in front of them is over. Two lines with nothing but chatter between them stand together.
class Chatter {
 public:
  enum class Asked : std::uint8_t { kIfAnybodyComplains, kAlways };
  /// `told`: lines of which the rules tell more than work or a grumble are none.
  Chatter(const Timeline& timeline, std::span<const Told> told, Asked asked = Asked::kIfAnybodyComplains);
  bool was_looked_for() const { return looked_for_; }
  bool Holds(const SourcePos& where) const;
  /// Lines from one to a later one, that one counted and chatter not; 0 where it is not later; of lines that are not
  /// kept nobody knows what they were, so only few count for chatter.
  std::uint64_t Apart(std::uint32_t input, std::uint64_t from, std::uint64_t to) const;

 private:
  bool looked_for_;
  std::map<std::uint32_t, std::vector<std::uint64_t>> kept_;  ///< by input that has chatter: kept lines that are none
};

}  // namespace inquest
