// Lines of a report for a terminal: sanitised, fitted to its width, painted where it has colour.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "report/report.h"
#include "report/terminal.h"

namespace inquest {

namespace style {
inline constexpr std::string_view kPlain, kBold = "\x1b[1m", kDim = "\x1b[2m", kRed = "\x1b[1;31m",
                                          kGreen = "\x1b[1;32m", kYellow = "\x1b[1;33m", kCyan = "\x1b[36m";
}

/// Lines of the report. Texts are sanitised here, so that no caller can forget it; heads and indents are our own.
class Page {
 public:
  explicit Page(const TextStyle& text) : color_(text.color), width_(std::max(text.width, 40)) {}
  int width() const { return width_; }

  void Blank() { out_ += '\n'; }
  void Heading(std::string_view title) {
    Blank();
    Line("", title, style::kBold);
  }
  /// One line, cut at the width.
  void Line(std::string_view indent, std::string_view text, std::string_view paint = {}) {
    Print(indent, Cut(Sanitize(text), width_ - Columns(indent)), paint);
  }
  /// A command, whole: the terminal may wrap it, but half a command helps nobody.
  void Command(std::string_view indent, std::string_view prompt, std::string_view command) {
    Print(indent, Sanitize(prompt) + Sanitize(command), style::kCyan);
  }
  /// Wrapped behind `head`, whose columns indent the lines that follow.
  void Paragraph(std::string_view head, std::string_view text, int rows, std::string_view paint = {}) {
    const int indent = Columns(head);
    std::string lead(head);
    for (const std::string& line : Wrap(Sanitize(text), std::max(width_ - indent, 20), rows)) {
      Print(lead, line, paint);
      lead.assign(static_cast<std::size_t>(indent), ' ');
    }
  }
  void More(std::size_t total, std::size_t shown, std::string_view where = "in --format json") {
    if (total > shown) Line("  ", fmt::format("and {} more {}", total - shown, where), style::kDim);
  }
  std::string Painted(std::string_view text, std::string_view paint) const {
    if (color_ == Color::kNever || paint.empty()) return std::string(text);
    return fmt::format("{}{}\x1b[0m", paint, text);
  }
  void Print(std::string_view indent, std::string_view text, std::string_view paint = {}) {
    out_.append(indent).append(Painted(text, paint)).append("\n");
  }
  std::string Take() { return std::exchange(out_, {}); }

 private:
  Color color_;
  int width_;
  std::string out_;
};

}  // namespace inquest
