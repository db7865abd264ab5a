// Looks at every four bytes of a line, and at a word where its own four stand.
#include "search/word_set.h"

#include <algorithm>
#include <cstring>

#include "core/result.h"

namespace inquest {
namespace {

constexpr std::size_t kGram = 4;

std::uint32_t Load(const char* at) {
  std::uint32_t value = 0;
  std::memcpy(&value, at, kGram);
  return value;
}

/// How often such a byte stands in a log, roughly.
int Commonness(char c) {
  constexpr std::string_view kOften = " eationrsld0123456789", kSeldom = "QXZJKVWYUFBMGPHqxzjkv'\"#!@~^&|()";
  if (kOften.find(c) != std::string_view::npos) return 4;
  return kSeldom.find(c) != std::string_view::npos ? 0 : 2;
}

}  // namespace

WordSet::WordSet(std::span<const std::string_view> words) {
  INQUEST_CHECK(words.size() <= 64);
  for (const std::string_view word : words) {
    INQUEST_CHECK(word.size() >= kGram);
    Entry entry{.word = std::string(word)};
    int least = 5 * kGram;
    for (std::size_t at = 0; at + kGram <= word.size(); ++at) {
      int sum = 0;
      for (const char c : word.substr(at, kGram)) sum += Commonness(c);
      if (sum < least) least = sum, entry.at = at;
    }
    entries_.push_back(std::move(entry));
    std::uint8_t& first = first_[Load(word.data() + entries_.back().at) * 0x9e3779b1U >> (32 - kBits)];
    entries_.back().next = first;
    first = static_cast<std::uint8_t>(entries_.size());
  }
}

std::uint64_t WordSet::In(std::string_view text) const {
  std::uint64_t found = 0;
  for (std::size_t at = 0; at + kGram <= text.size(); ++at) {
    for (std::uint8_t i = first_[Load(text.data() + at) * 0x9e3779b1U >> (32 - kBits)]; i != 0;
         i = entries_[i - 1].next) {
      const Entry& entry = entries_[i - 1];
      if (at >= entry.at && text.substr(at - entry.at).starts_with(entry.word)) found |= std::uint64_t{1} << (i - 1);
    }
  }
  return found;
}

std::uint64_t WordSet::Of(std::span<const std::string_view> words) const {
  std::uint64_t bits = 0;
  for (const std::string_view word : words) {
    const auto it =
        std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) { return entry.word == word; });
    INQUEST_CHECK(it != entries_.end());
    bits |= std::uint64_t{1} << (it - entries_.begin());
  }
  return bits;
}

}  // namespace inquest
