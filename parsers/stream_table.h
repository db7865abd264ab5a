// The writers of one input, each with the parsers that it has met: a table in one piece, since a flood asks it once a
// line.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parsers/parser.h"

namespace inquest {

/// One writer: its parsers, and the one that took its last record.
struct Stream {
  std::string key;  ///< who it is
  std::map<const Format*, std::unique_ptr<Parser>> parsers;
  std::map<const Format*, std::uint64_t> sections;  ///< the last line that is offered for a marked one above it
  const Format* last = nullptr;
  Parser& Get(const Format* format);
  bool InSection(std::uint64_t line) const;
};

/// Streams by their keys. They stay where they are until Clear().
class StreamTable {
 public:
  /// nullptr: there is none.
  Stream* Find(std::string_view key);
  /// The key's stream, new if need be; beyond a number that no job has, one for all that are new: a hostile log that
  /// invents a writer a line must not cost memory for each.
  Stream& At(std::string_view key);
  /// All, by key.
  std::vector<Stream*> InOrder();
  void Clear();

 private:
  struct Place {
    std::size_t hash = 0;
    Stream* stream = nullptr;
  };
  Place& PlaceOf(std::string_view key, std::size_t hash);
  void Grow();

  std::deque<Stream> streams_;
  std::vector<Place> places_;  ///< a power of 2 of them, half of them in use at most
};

}  // namespace inquest
