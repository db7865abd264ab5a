// What every match of an expression must contain, so that lines without it need not be searched.
#include "rules/cover.h"

#include <algorithm>
#include <bitset>
#include <limits>
#include <optional>
#include <unordered_set>

#include "rules/rarity.h"

namespace inquest {
namespace {

constexpr std::size_t kMostStrings = 64;    ///< of an expression that is a plain list of strings
constexpr std::size_t kMostLiterals = 400;  ///< in a cover
constexpr std::size_t kWidestClass = 4;     ///< `[Cc]` and `[:=]` are strings, `[a-z]` is not
constexpr int kDeepest = 60;

using Strings = std::vector<std::string>;

/// What is known of a part of an expression.
struct Part {
  std::optional<Strings> strings;  ///< all that it can match, if that is a short list; zero-width parts match ""
  Strings cover;                   ///< one of these is in every match of it; empty: none known but `strings`
};

Part Unknown() { return {}; }
Part Exactly(Strings strings) { return {std::move(strings), {}}; }

void SortUnique(Strings& strings) {
  std::sort(strings.begin(), strings.end());
  strings.erase(std::unique(strings.begin(), strings.end()), strings.end());
}

// A match of a sequence contains a match of each of its parts, and where parts that are lists of strings stand side by
// side, one of their concatenations. Each such thing is offered as the cover; the cheapest is taken.
class Sequence {
 public:
  void Add(const Part& part) {
    Offer(part.cover);
    if (!part.strings) return Break();
    const Strings& strings = *part.strings;
    if (strings.size() > 1) {
      Offer(strings);
      EndPlain();
    } else {
      plain_ += strings[0];
    }
    ShortenFor(strings.size());
    Strings longer;
    for (const std::string& head : run_)
      for (const std::string& tail : strings) longer.push_back(head + tail);
    SortUnique(longer);
    run_ = std::move(longer);
  }
  /// One or more times `part`: the first of them ends what stands before, the last begins what follows.
  void AddRepeated(const Part& part) {
    Add(part);
    Break();
    if (part.strings) Add(part);
    exact_ = false;
  }
  Part Take() {
    std::optional<Strings> strings;
    if (exact_) strings = run_;
    Break();
    return {std::move(strings), std::move(best_)};
  }

  static Strings CoverOfPart(const Part& part) {
    if (!part.strings || !part.cover.empty()) return part.cover;
    Sequence alone;
    alone.Offer(*part.strings);
    return alone.best_;
  }

 private:
  void Break() {
    EndPlain();
    Offer(run_);
    run_ = {""};
    exact_ = false;
  }
  /// Makes room for a list of so many strings to follow: of what stands before it, the last few bytes do.
  void ShortenFor(std::size_t strings) {
    if (run_.size() * strings > kMostStrings) Offer(run_);
    for (std::size_t bytes = 8; run_.size() > 1 && run_.size() * strings > kMostStrings; bytes /= 2) {
      for (std::string& string : run_) string.erase(0, string.size() - std::min(string.size(), bytes));
      SortUnique(run_);
      exact_ = false;
    }
  }
  void EndPlain() {
    Offer({plain_});
    plain_.clear();
  }
  void Offer(const Strings& strings) {
    if (strings.empty() || strings.size() > kMostLiterals) return;
    for (const std::string& string : strings)
      if (string.size() < kShortestLiteral) return;
    Strings offered = WithoutImplied(strings);
    double cost = 0;
    for (const std::string& string : offered) cost += CostOf(string);
    if (cost >= cost_) return;
    cost_ = cost;
    best_ = std::move(offered);
  }

  Strings run_ = {""};  ///< what the parts since the last break can match
  std::string plain_;   ///< the end of it to which every part gave one string only
  bool exact_ = true;   ///< no break yet
  Strings best_;
  double cost_ = std::numeric_limits<double>::infinity();
};

/// Reads the part of RE2's syntax that log messages need. Whatever else it meets makes it give up. Case is folded away
/// at the end, so that `(?i)` changes nothing.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}
  Strings Read() {
    const Part whole = Alternatives(0);
    if (failed_ || at_ != text_.size()) return {};
    return WithoutImplied(Sequence::CoverOfPart(whole));
  }

 private:
  bool More() const { return at_ < text_.size(); }
  bool Next(char byte) const { return More() && text_[at_] == byte; }
  bool Skip(std::string_view token) {
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  Part Fail() {
    failed_ = true;
    return Unknown();
  }

  Part Alternatives(int depth) {
    if (depth > kDeepest) return Fail();
    Part all = OneAlternative(depth);
    all.cover = Sequence::CoverOfPart(all);
    while (!failed_ && Skip("|")) {
      const Part next = OneAlternative(depth);
      const Strings cover = Sequence::CoverOfPart(next);
      if (cover.empty()) all.cover.clear();
      if (!all.cover.empty()) all.cover.insert(all.cover.end(), cover.begin(), cover.end());
      if (all.strings && next.strings)
        all.strings->insert(all.strings->end(), next.strings->begin(), next.strings->end());
      else
        all.strings.reset();
    }
    if (all.strings) SortUnique(*all.strings);
    if (all.strings && all.strings->size() > kMostStrings) all.strings.reset();
    return all;
  }

  Part OneAlternative(int depth) {
    Sequence sequence;
    while (!failed_ && More() && !Next('|') && !Next(')')) {
      const Part part = Atom(depth);
      AddTimes(part, sequence);
    }
    return sequence.Take();
  }

  /// Reads the quantifier behind `part`, if there is one.
  void AddTimes(const Part& part, Sequence& sequence) {
    std::size_t least = 1;
    bool repeated = false;
    bool optional_once = false;
    if (Skip("?")) {
      least = 0;
      optional_once = true;
    } else if (Skip("*")) {
      least = 0;
      repeated = true;
    } else if (Skip("+")) {
      repeated = true;
    } else if (const std::optional<std::size_t> counted = Counted()) {
      least = *counted;
      repeated = true;
    }
    if (repeated || optional_once) Skip("?");  // not greedy: the same matches
    if (Next('?') || Next('*') || Next('+')) {
      failed_ = true;  // possessive or doubled: not RE2's
      return;
    }
    if (least == 0) {
      if (optional_once && part.strings) {
        Strings strings = *part.strings;
        strings.emplace_back();
        SortUnique(strings);
        sequence.Add(Exactly(std::move(strings)));
      } else {
        sequence.Add(Unknown());
      }
      return;
    }
    if (repeated)
      sequence.AddRepeated(part);
    else
      sequence.Add(part);
  }

  /// `{m}`, `{m,}` or `{m,n}`: its m. Anything else is the character itself.
  std::optional<std::size_t> Counted() {
    if (!Next('{')) return std::nullopt;
    const std::size_t close = text_.find('}', at_);
    if (close == std::string_view::npos) return std::nullopt;
    const std::string_view inside = text_.substr(at_ + 1, close - at_ - 1);
    const std::size_t comma = std::min(inside.find(','), inside.size());
    const auto digits = [](std::string_view text) {
      return std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
    };
    if (comma == 0 || comma > 6 || !digits(inside.substr(0, comma)) ||
        !digits(inside.substr(std::min(comma + 1, inside.size()))))
      return std::nullopt;
    at_ = close + 1;
    std::size_t least = 0;
    for (const char digit : inside.substr(0, comma)) least = least * 10 + static_cast<std::size_t>(digit - '0');
    return least;
  }

  Part Atom(int depth) {
    const char byte = text_[at_++];
    if (byte == '(') return Group(depth);
    if (byte == '[') return Class();
    if (byte == '\\') return Escape();
    if (byte == '.') return Unknown();
    if (byte == '^' || byte == '$') return Exactly({""});
    if (byte == '*' || byte == '+' || byte == '?') return Fail();
    std::string literal(1, byte);
    // A quantifier repeats a whole code point.
    if (static_cast<unsigned char>(byte) >= 0xc0)
      while (More() && (static_cast<unsigned char>(text_[at_]) & 0xc0U) == 0x80) literal += text_[at_++];
    return Exactly({Fold(literal)});
  }

  Part Group(int depth) {
    if (Skip("?P<") || Skip("?<")) {
      if (Next('=') || Next('!')) return Fail();
      const std::size_t close = text_.find('>', at_);
      if (close == std::string_view::npos) return Fail();
      at_ = close + 1;
    } else if (Skip("?")) {
      while (More() && std::string_view("imsU-").find(text_[at_]) != std::string_view::npos) ++at_;
      if (Skip(")")) return Exactly({""});  // flags for what follows
      if (!Skip(":")) return Fail();
    }
    Part inside = Alternatives(depth + 1);
    return Skip(")") ? inside : Fail();
  }

  Part Escape() {
    if (!More()) return Fail();
    const char byte = text_[at_++];
    const auto is_one_of = [byte](std::string_view letters) { return letters.find(byte) != std::string_view::npos; };
    if (byte == 's') return Exactly({Fold(" "), Fold("\t"), Fold("\f"), Fold("\v")});  // what a line may hold of it
    if (byte == 't') return Exactly({Fold("\t")});
    if (is_one_of("dDwWSnrfv")) return Unknown();
    if (is_one_of("bBAz")) return Exactly({""});
    const bool letter_or_digit =
        (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9');
    if (letter_or_digit || static_cast<unsigned char>(byte) >= 0x80) return Fail();
    return Exactly({Fold(std::string(1, byte))});
  }

  Part Class() {
    const bool negated = Skip("^");
    std::bitset<256> bytes;
    bool wide = negated;
    for (bool first = true; More() && (first || !Next(']')); first = false) {
      if (Skip("[:")) return Fail();
      std::optional<unsigned char> low = ClassByte();
      if (failed_) return Unknown();
      std::optional<unsigned char> high = low;
      if (Next('-') && at_ + 1 < text_.size() && text_[at_ + 1] != ']') {
        ++at_;
        high = ClassByte();
        if (failed_) return Unknown();
      }
      if (!low || !high || *low >= 0x80 || *high >= 0x80) {
        wide = true;
        continue;
      }
      for (unsigned value = *low; value <= *high; ++value) bytes.set(value | kCaseBit);
    }
    if (!Skip("]")) return Fail();
    if (wide || bytes.none() || bytes.count() > kWidestClass) return Unknown();
    Strings strings;
    for (std::size_t value = 0; value < bytes.size(); ++value)
      if (bytes.test(value)) strings.emplace_back(1, static_cast<char>(value));
    return Exactly(std::move(strings));
  }

  /// One byte of a class; nothing for `\d` and its like, which make the class too wide for a list.
  std::optional<unsigned char> ClassByte() {
    if (!More()) {
      failed_ = true;
      return std::nullopt;
    }
    const char byte = text_[at_++];
    if (byte != '\\') return static_cast<unsigned char>(byte);
    const Part escaped = Escape();
    if (!escaped.strings || escaped.strings->size() > 1) return std::nullopt;
    if (escaped.strings->front().empty()) failed_ = true;  // \b in a class is a backspace to some
    return static_cast<unsigned char>(text_[at_ - 1] == 't' ? '\t' : text_[at_ - 1]);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace

std::vector<std::string> CoverOf(std::string_view expression) { return Reader(expression).Read(); }

std::vector<std::string> WithoutImplied(std::vector<std::string> literals) {
  SortUnique(literals);
  std::size_t longest = 0;
  std::vector<bool> lengths;
  for (const std::string& literal : literals) longest = std::max(longest, literal.size());
  lengths.assign(longest + 1, false);
  for (const std::string& literal : literals) lengths[literal.size()] = true;
  const std::unordered_set<std::string_view> all(literals.begin(), literals.end());
  const auto implied = [&](std::string_view literal) {
    for (std::size_t size = 0; size < literal.size(); ++size)
      for (std::size_t at = 0; lengths[size] && at + size <= literal.size(); ++at)
        if (all.contains(literal.substr(at, size))) return true;
    return false;
  };
  std::vector<std::string> out;
  for (const std::string& literal : literals)
    if (!implied(literal)) out.push_back(literal);
  return out;
}

}  // namespace inquest
