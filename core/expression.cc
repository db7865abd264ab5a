// How expressions are spelt in RE2's syntax.
#include "core/expression.h"

#include <algorithm>

#include "core/ascii.h"

namespace inquest {
namespace {

using Kind = ExpressionPiece::Kind;

class ExpressionReader {
 public:
  explicit ExpressionReader(std::string_view text) : text_(text) {}
  std::optional<std::vector<ExpressionPiece>> Read() {
    int depth = 0;
    while (at_ < text_.size()) {
      const Kind kind = Next();
      if (failed_) return std::nullopt;
      if (kind == Kind::kGroupBegin) ++depth;
      if (kind == Kind::kGroupEnd && --depth < 0) return std::nullopt;
    }
    if (depth != 0 || in_class_) return std::nullopt;
    return std::move(pieces_);
  }

 private:
  std::string_view Rest() const { return text_.substr(at_); }
  Kind Take(Kind kind, std::size_t size) {
    failed_ = failed_ || size > text_.size() - at_;
    pieces_.push_back({.kind = kind, .text = text_.substr(at_, size)});
    at_ += std::min(size, text_.size() - at_);
    return kind;
  }

  Kind Next() {
    const char c = text_[at_];
    if (c == '\\') return Take(Kind::kEscape, 2);
    if (in_class_) return Member(c);
    switch (c) {
      case '.':
        return Take(Kind::kAny, 1);
      case '^':
      case '$':
        return Take(Kind::kAnchor, 1);
      case '|':
        return Take(Kind::kBar, 1);
      case ')':
        return Take(Kind::kGroupEnd, 1);
      case '(':
        return Group();
      case '[':
        in_class_ = true;
        Take(Kind::kClassBegin, Rest().starts_with("[^") ? 2 : 1);
        return Rest().starts_with("]") ? Take(Kind::kCharacter, 1) : Kind::kClassBegin;  // the first one is a member
      case '*':
      case '+':
      case '?':
        return Times(1, c == '+' ? 1 : 0, c == '?');
      case '{':
        if (const auto least = Counted()) return Times(text_.find('}', at_) + 1 - at_, *least, false);
        return Take(Kind::kCharacter, 1);
      default:
        return Character();
    }
  }

  Kind Character() {
    std::size_t size = 1;
    if (static_cast<unsigned char>(text_[at_]) >= 0xc0)
      while (at_ + size < text_.size() && (static_cast<unsigned char>(text_[at_ + size]) & 0xc0U) == 0x80) ++size;
    return Take(Kind::kCharacter, size);
  }

  Kind Member(char c) {
    if (Rest().starts_with("[:")) {
      const std::size_t end = text_.find(":]", at_ + 2);
      return Take(Kind::kClassName, end == kNowhere ? kNowhere : end + 2 - at_);
    }
    if (c != ']') return Character();
    in_class_ = false;
    return Take(Kind::kClassEnd, 1);
  }

  Kind Group() {
    if (!Rest().starts_with("(?")) return Take(Kind::kGroupBegin, 1);
    if (Rest().starts_with("(?P<") || Rest().starts_with("(?<")) {
      const std::size_t close = text_.find('>', at_);
      const bool looks_behind = Rest().starts_with("(?<=") || Rest().starts_with("(?<!");
      return Take(Kind::kGroupBegin, close == kNowhere || looks_behind ? kNowhere : close + 1 - at_);
    }
    const std::size_t end = text_.find_first_not_of("imsU-", at_ + 2);
    if (end == kNowhere || (text_[end] != ')' && text_[end] != ':')) return Take(Kind::kGroupBegin, kNowhere);
    return Take(text_[end] == ')' ? Kind::kFlags : Kind::kGroupBegin, end + 1 - at_);
  }

  Kind Times(std::size_t size, std::size_t least, bool once) {
    if (at_ + size < text_.size() && text_[at_ + size] == '?') ++size;  // not greedy
    Take(Kind::kTimes, size);
    pieces_.back().least = least;
    pieces_.back().once = once;
    const char next = at_ < text_.size() ? text_[at_] : '\0';
    failed_ = failed_ || pieces_.size() == 1 || next == '*' || next == '+' || next == '?';  // possessive or doubled
    return Kind::kTimes;
  }

  /// `{m}`, `{m,}` or `{m,n}`: its m. Anything else is the character itself.
  std::optional<std::size_t> Counted() const {
    const std::size_t close = text_.find('}', at_);
    if (close == kNowhere) return std::nullopt;
    const std::string_view inside = text_.substr(at_ + 1, close - at_ - 1);
    const std::string_view least = inside.substr(0, inside.find(','));
    const std::string_view most = inside.substr(std::min(least.size() + 1, inside.size()));
    if (least.empty() || least.size() > 6 || !std::all_of(least.begin(), least.end(), IsDigit) ||
        !std::all_of(most.begin(), most.end(), IsDigit))
      return std::nullopt;
    std::size_t number = 0;
    for (const char digit : least) number = number * 10 + static_cast<std::size_t>(digit - '0');
    return number;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool in_class_ = false, failed_ = false;
  std::vector<ExpressionPiece> pieces_;
};

}  // namespace

std::optional<std::vector<ExpressionPiece>> PiecesOf(std::string_view expression) {
  return ExpressionReader(expression).Read();
}

bool SetsCase(const ExpressionPiece& piece) {
  if (!piece.Is(Kind::kFlags) && !piece.Is(Kind::kGroupBegin)) return false;
  return piece.text.starts_with("(?") && piece.text.find('<') == kNowhere && piece.text.find('i') != kNowhere;
}

std::string QuoteExpression(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("\\^$.|?*+()[]{}").find(c) != kNowhere) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace inquest
