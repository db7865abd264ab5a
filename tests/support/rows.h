// Table tests of line formats: a text goes in, its events come out, shown as one line.
#pragma once

#include <string>
#include <string_view>

#include "tests/catch.h"
#include "tests/support/collect.h"

namespace inquest {

struct Row {
  const char* text;
  const char* shown;
};

/// The events of a text, each as `show` gives it, joined by "; ".
template <class Show>
std::string ShowEvents(const Format& format, std::string_view text, Show show) {
  std::string out;
  for (const Event& event : ParseLines(format, text)) {
    if (!out.empty()) out += "; ";
    out += std::visit(show, event.what);
  }
  return out;
}

template <std::size_t N, class ShowText>
void CheckRows(const Row (&rows)[N], ShowText show) {
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(show(row.text) == row.shown);
  }
}

}  // namespace inquest
