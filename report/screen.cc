// A report that fits one screen.
#include "report/screen.h"

#include <algorithm>
#include <limits>
#include <tuple>

#include "report/terminal.h"

namespace inquest {
namespace {

constexpr int kScreen = 24;  ///< rows

/// Of a terminal: a command or a path is one line, so that it can be copied whole, and goes on in the next row.
int RowsOf(std::string_view text, int width) {
  int rows = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    rows += std::max(1, (Columns(Sanitize(line)) + width - 1) / width);
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return rows;
}

}  // namespace

void Screen::Add(int turn, Page& page) { parts_.back().items.push_back({turn, page.Take()}); }

void Screen::More(std::size_t total, std::size_t shown) {
  if (total <= shown) return;
  Page page = NewPage();
  page.More(total, shown);
  Add(std::numeric_limits<int>::max(), page);
}

// On one screen, titles alone set the parts apart; but for the verdict, which stands by itself.
int Screen::HeadOf(std::size_t part) const {
  if (parts_[part].goes_on) return parts_[part - 1].items.empty() ? HeadOf(part - 1) : 0;
  const bool blank = part > 0 && (style_.whole || part == 1);
  return static_cast<int>(blank) + static_cast<int>(!parts_[part].title.empty());
}

std::vector<std::size_t> Screen::Places() const {
  std::vector<std::tuple<int, std::size_t, std::size_t>> order;  // turn, part, item
  for (std::size_t part = 0; part < parts_.size(); ++part)
    for (std::size_t item = 0; item < parts_[part].items.size(); ++item)
      order.emplace_back(parts_[part].items[item].turn, part, item);
  std::ranges::sort(order);
  std::vector<std::size_t> out(parts_.size());
  int left = style_.whole ? std::numeric_limits<int>::max() : kScreen - 1;  // the last line
  for (const auto& [turn, part, item] : order) {
    if (out[part] != item) continue;  // one in front of it found none
    const bool first = item == 0;
    const int rows = RowsOf(parts_[part].items[item].text, NewPage().width()) + (first ? HeadOf(part) : 0);
    if (rows > left && turn > 0) continue;
    left -= rows;
    ++out[part];
  }
  return out;
}

std::string Screen::Take() const {
  const std::vector<std::size_t> places = Places();
  Page page = NewPage();
  std::string out;
  bool whole = true;
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    whole = whole && places[i] == part.items.size();
    if (places[i] == 0) continue;
    if (HeadOf(i) > static_cast<int>(!part.title.empty())) page.Blank();
    if (!part.title.empty()) page.Line("", part.title, style::kBold);
    out += page.Take();
    for (std::size_t item = 0; item < places[i]; ++item) out += part.items[item].text;
  }
  if (style_.whole) page.Blank();
  page.Line("", whole ? end_ + "." : end_ + "; -v shows the rest.", style::kDim);
  return out + page.Take();
}

}  // namespace inquest
