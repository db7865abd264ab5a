// What every match of an expression must contain, so that lines without it need not be searched.
// RE2 has FilteredRE2 for this, and it does not do: over our 456 rules it asks for 3,446 literals where these covers
// ask for 1,923, at ten times the cost in a log (the sum of CostOf). Its tree of AND and OR cannot be read from
// outside, so that of several sets, any one of which would do, all are looked for, and it takes literals by their
// length, not by how rare they are.
#include "search/cover.h"

#include <algorithm>
#include <bitset>
#include <limits>
#include <optional>
#include <unordered_set>

#include "core/expression.h"
#include "search/rarity.h"

namespace inquest {
namespace {

constexpr std::size_t kMostStrings = 64;    ///< of an expression that is a plain list of strings
constexpr std::size_t kMostLiterals = 400;  ///< in a cover
constexpr std::size_t kWidestClass = 4;     ///< `[Cc]` and `[:=]` are strings, `[a-z]` is not
constexpr int kDeepest = 60;

using Strings = std::vector<std::string>;
using Kind = ExpressionPiece::Kind;

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

/// What the pieces of an expression add up to. Whatever it does not know makes it give up. Case is folded away at the
/// end, so that `(?i)` changes nothing.
class Reader {
 public:
  explicit Reader(std::vector<ExpressionPiece> pieces) : pieces_(std::move(pieces)) {}
  Strings Read() {
    const Part whole = Alternatives(0);
    if (failed_ || at_ != pieces_.size()) return {};
    return WithoutImplied(Sequence::CoverOfPart(whole));
  }

 private:
  bool Next(Kind kind) const { return at_ < pieces_.size() && pieces_[at_].Is(kind); }
  bool Skip(Kind kind) {
    if (!Next(kind)) return false;
    ++at_;
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
    while (!failed_ && Skip(Kind::kBar)) {
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
    while (!failed_ && at_ < pieces_.size() && !Next(Kind::kBar) && !Next(Kind::kGroupEnd)) {
      const Part part = Atom(depth);
      AddTimes(part, sequence);
    }
    return sequence.Take();
  }

  /// Reads the quantifier behind `part`, if there is one.
  void AddTimes(const Part& part, Sequence& sequence) {
    if (!Next(Kind::kTimes)) return sequence.Add(part);
    const ExpressionPiece& times = pieces_[at_++];
    if (times.least > 0) return sequence.AddRepeated(part);
    if (!times.once || !part.strings) return sequence.Add(Unknown());
    Strings strings = *part.strings;
    strings.emplace_back();
    SortUnique(strings);
    sequence.Add(Exactly(std::move(strings)));
  }

  Part Atom(int depth) {
    const ExpressionPiece& piece = pieces_[at_++];
    switch (piece.kind) {
      case Kind::kCharacter:
        return Exactly({Fold(piece.text)});
      case Kind::kEscape:
        return Escape(piece.text[1]);
      case Kind::kAny:
        return Unknown();
      case Kind::kAnchor:
      case Kind::kFlags:
        return Exactly({""});
      case Kind::kClassBegin:
        return Class(piece.text == "[^");
      case Kind::kGroupBegin: {
        Part inside = Alternatives(depth + 1);
        return Skip(Kind::kGroupEnd) ? inside : Fail();
      }
      default:
        return Fail();
    }
  }

  Part Escape(char byte) {
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

  Part Class(bool negated) {
    std::bitset<256> bytes;
    bool wide = negated;
    while (!failed_ && !Next(Kind::kClassEnd)) {
      if (Next(Kind::kClassName)) return Fail();
      const std::optional<unsigned char> low = Member();
      std::optional<unsigned char> high = low;
      if (!failed_ && Next(Kind::kCharacter) && pieces_[at_].text == "-" && !pieces_[at_ + 1].Is(Kind::kClassEnd)) {
        ++at_;
        high = Member();
      }
      if (!low || !high || *low >= 0x80 || *high >= 0x80) {
        wide = true;
        continue;
      }
      for (unsigned value = *low; value <= *high; ++value) bytes.set(value | kCaseBit);
    }
    if (failed_ || !Skip(Kind::kClassEnd)) return Fail();
    if (wide || bytes.none() || bytes.count() > kWidestClass) return Unknown();
    Strings strings;
    for (std::size_t value = 0; value < bytes.size(); ++value)
      if (bytes.test(value)) strings.emplace_back(1, static_cast<char>(value));
    return Exactly(std::move(strings));
  }

  /// One byte of a class; nothing for `\d` and its like, which make the class too wide for a list.
  std::optional<unsigned char> Member() {
    const ExpressionPiece& piece = pieces_[at_++];
    if (piece.Is(Kind::kCharacter)) return static_cast<unsigned char>(piece.text.front());
    const char byte = piece.text[1];
    const Part escaped = Escape(byte);
    if (!escaped.strings || escaped.strings->size() > 1) return std::nullopt;
    if (escaped.strings->front().empty()) failed_ = true;  // \b in a class is a backspace to some
    return static_cast<unsigned char>(byte == 't' ? '\t' : byte);
  }

  std::vector<ExpressionPiece> pieces_;
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace

std::vector<std::string> CoverOf(std::string_view expression) {
  auto pieces = PiecesOf(expression);
  return pieces ? Reader(*std::move(pieces)).Read() : Strings();
}

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
