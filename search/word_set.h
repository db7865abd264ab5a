// Which of a few literals a line holds, all of them in one look at it.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inquest {

/// For readers that ask a line for many things of which it says one: they look once, and then only where there is
/// something.
class WordSet {
 public:
  /// At most 64, of four bytes or more each.
  explicit WordSet(std::span<const std::string_view> words);
  WordSet(std::initializer_list<std::string_view> words) : WordSet(std::span(words.begin(), words.size())) {}
  /// A bit for each of them, the first is bit 0.
  std::uint64_t In(std::string_view text) const;
  /// The bits of those words, which are of the set.
  std::uint64_t Of(std::span<const std::string_view> words) const;
  std::uint64_t Of(std::initializer_list<std::string_view> words) const {
    return Of(std::span(words.begin(), words.size()));
  }

 private:
  // Of each word four bytes in a row stand in the table, the rarest of it, by their hash.
  struct Entry {
    std::string word;
    std::size_t at = 0;     ///< of the four bytes in the word
    std::uint8_t next = 0;  ///< entry of the same hash, counted from 1
  };
  static constexpr unsigned kBits = 12;
  std::array<std::uint8_t, std::size_t{1} << kBits> first_{};  ///< entries, counted from 1
  std::vector<Entry> entries_;
};

}  // namespace inquest
