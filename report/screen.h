// A report that fits one screen: each part says what it has and in which turn it claims a place; what finds none is
// left for those who ask for all of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/page.h"

namespace inquest {

class Screen {
 public:
  explicit Screen(const TextStyle& style) : style_(style) {}
  Page NewPage() const { return Page(style_); }
  /// A part begins. Its title, and the blank line above it, are printed where any of its items is.
  void Begin(std::string_view title) { parts_.push_back({std::string(title), false, {}}); }
  /// A part without a title that goes on where the one above it ends, and finds its place without it.
  void GoOn() { parts_.push_back({{}, true, {}}); }
  /// What stands on the page becomes the next item of the part, and the page is empty again. Of a part no item is shown
  /// behind one that found no place.
  void Add(int turn, Page& page);
  /// Of all of the part, `shown` were added.
  void More(std::size_t total, std::size_t shown);
  /// The last line.
  void End(std::string text) { end_ = std::move(text); }
  std::string Take() const;

 private:
  struct Item {
    int turn = 0;
    std::string text;
  };
  struct Part {
    std::string title;
    bool goes_on = false;
    std::vector<Item> items;
  };
  /// Lines of its title and of the blank above it.
  int HeadOf(std::size_t part) const;
  /// How many items of each part find a place.
  std::vector<std::size_t> Places() const;

  TextStyle style_;
  std::vector<Part> parts_;
  std::string end_;
};

}  // namespace inquest
