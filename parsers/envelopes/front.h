// What every envelope works on: a line's front, and who and when the envelopes taken off so far say.
#pragma once

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/ascii.h"
#include "core/event.h"

namespace inquest {

/// A line on its way out of its envelopes.
struct Front {
  explicit Front(std::string_view line) : text(line) {}

  std::string_view text;  ///< what is left
  Origin origin;
  bool own_rank = false;        ///< the rank is what the process itself printed
  std::optional<Timestamp> at;  ///< of the outermost envelope that has one
  std::string_view bar;         ///< somebody's progress bar that stood in front
  Origin bar_origin;

  void SetHost(std::string_view host) {
    if (!origin.host) origin.host = Known<std::string>{std::string(host), Basis::kEnvelope, {}};
  }
  void SetTime(const Timestamp& time) {
    if (!at) at = time;
  }
  void AddWriter(std::string_view tag) {
    if (origin.writer.find(tag) != std::string::npos) return;  // torchrun repeats its tag
    if (!origin.writer.empty()) origin.writer += ' ';
    origin.writer += tag;
  }
  /// The time with a date that the text begins with, if it does: several ask, it is read once.
  const std::optional<ParsedTime>& Dated() {
    if (dated_at_ == text.data()) return dated_;
    dated_at_ = text.data();
    dated_ = ParseTime(text);
    if (dated_ && dated_->time.date == Timestamp::Date::kNone) dated_.reset();
    return dated_;
  }

 private:
  const char* dated_at_ = nullptr;
  std::optional<ParsedTime> dated_;
};

/// All that the program knows of an envelope.
struct Envelope {
  char first = 0;              ///< `[` or `(`: every one begins with it; 0: none begins with either
  bool (*peel)(Front& front);  ///< of a text that is not empty. False: there is none, and nothing changed
};

/// Every envelope, in the order in which they are looked for.
std::span<const Envelope* const> Envelopes();

// Tags that others look for behind themselves, by rank_tag.cc, mpirun.cc and torchrun.cc.
bool PeelRankTag(Front& front);
bool PeelMpirunTag(Front& front);
bool PeelRoleTag(Front& front);
/// Whether one of these stands there.
bool StartsWithTag(std::string_view text);

inline bool IsHostChar(char c) { return IsLetter(c) || IsDigit(c) || c == '.' || c == '_' || c == '-'; }

inline std::size_t CountDigits(std::string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), IsDigit) - text.begin());
}

template <class T>
std::optional<T> Number(std::string_view digits) {
  T value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

inline bool StartsWithAny(std::string_view text, std::span<const std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return text.starts_with(word); });
}

}  // namespace inquest
