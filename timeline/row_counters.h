// Rows that a program prints again and again: whether what they count goes on.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/event.h"

namespace inquest {

/// Lines of one shape none of whose numbers keeps rising count nothing that goes on: they are of several runs, or
/// measure something. A counter that begins anew with each epoch falls seldom; a time that is left falls all the while.
class RowCounters {
 public:
  struct Moves {
    std::uint64_t rises = 0, falls = 0;
    bool KeepRising() const;
  };
  struct Row {
    std::optional<std::vector<std::uint64_t>> last;
    std::vector<Moves> moves;  ///< by the place of the number
    bool GoesOn() const;
    bool KeepsRising() const;
  };

  /// The row that the line is counted in: lives as long as this, and tells once all are taken.
  const Row* Take(const Event& event);

 private:
  std::map<std::uint32_t, std::unordered_map<std::string, Row>> rows_;  ///< by input and shape
};

}  // namespace inquest
