// Rows that a program prints again and again: whether what they count goes on.
#include "timeline/row_counters.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace inquest {
namespace {

/// What a line counts: its whole numbers, and itself without any number.
struct Count {
  std::string shape;
  std::vector<std::uint64_t> numbers;
};

Count CountIn(std::string_view text) {
  constexpr std::size_t kRead = 160, kMost = 8, kDigits = 18;
  Count out;
  text = text.substr(0, kRead);
  out.shape.reserve(text.size());
  out.numbers.reserve(kMost);
  const auto is_digit = [&](std::size_t i) { return i < text.size() && text[i] >= '0' && text[i] <= '9'; };
  for (std::size_t i = 0; i < text.size();) {
    // Columns are padded: the wider a number, the fewer blanks.
    if (!is_digit(i)) {
      if (text[i] != ' ' || out.shape.empty() || out.shape.back() != ' ') out.shape += text[i];
      ++i;
      continue;
    }
    std::size_t end = i;
    std::uint64_t value = 0;
    for (; is_digit(end); ++end)
      if (end - i < kDigits) value = value * 10 + static_cast<std::uint64_t>(text[end] - '0');
    const auto is_exponent = [&](std::size_t at) {
      return at + 2 < text.size() && text[at] == 'e' && (text[at + 1] == '-' || text[at + 1] == '+') &&
             is_digit(at + 2);
    };
    const bool fraction = (i > 0 && text[i - 1] == '.') ||
                          (end < text.size() && text[end] == '.' && is_digit(end + 1)) || is_exponent(end) ||
                          (i >= 2 && is_exponent(i - 2));
    // Keras' `64/64 - 3s - loss: `: how long the epoch took is no count.
    const bool took = i >= 2 && text.substr(i - 2, 2) == "- " && text.substr(end, 2) == "s ";
    if (!fraction && !took && out.numbers.size() < kMost) out.numbers.push_back(value);
    if (out.shape.empty() || out.shape.back() != '0') out.shape += '0';
    i = end;
  }
  return out;
}

}  // namespace

// Numbers that mean nothing rise as often as they fall: the fewer the moves, the fewer of them may be falls.
bool RowCounters::Moves::KeepRising() const {
  constexpr std::uint64_t kFew = 12;
  return rises > 0 && falls * (rises + falls < kFew ? 6 : 3) <= rises + falls;
}

bool RowCounters::Row::KeepsRising() const { return std::ranges::any_of(moves, &Moves::KeepRising); }

bool RowCounters::Row::GoesOn() const {
  const auto moved = [](const Moves& place) { return place.rises + place.falls > 0; };
  return std::ranges::none_of(moves, moved) || KeepsRising();
}

const RowCounters::Row* RowCounters::Take(const Event& event) {
  Count count = CountIn(MessageOf(event));
  Row& row = rows_[event.where.input][std::move(count.shape)];
  if (row.last) {
    row.moves.resize(std::max(row.moves.size(), count.numbers.size()));
    for (std::size_t i = 0; i < std::min(row.last->size(), count.numbers.size()); ++i)
      if ((*row.last)[i] != count.numbers[i])
        ++((*row.last)[i] < count.numbers[i] ? row.moves[i].rises : row.moves[i].falls);
  }
  row.last = std::move(count.numbers);
  return &row;
}

}  // namespace inquest
