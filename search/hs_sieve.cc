// Finds the lines that rules or formats ask for, in one pass over a block.
#include "search/hs_sieve.h"

#include <hs.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/expression.h"
#include "core/result.h"
#include "search/cover.h"
#include "search/packed_sieve.h"
#include "search/window_filter.h"

namespace inquest {
namespace {

struct FreeScratch {
  void operator()(hs_scratch_t* scratch) const { hs_free_scratch(scratch); }
};
using Scratch = std::unique_ptr<hs_scratch_t, FreeScratch>;

/// Expressions and their ids, as libhs wants them.
struct Expressions {
  std::vector<std::string> texts;
  std::vector<unsigned> flags, ids;
};

/// All that is looked for. `covered` expressions match only lines that hold one of `literals`; the others may match
/// anywhere, and cost a search of every byte: a rule should not be among them.
struct Wanted {
  Expressions covered, anywhere;
  std::vector<std::string> literals;
};

using Kind = ExpressionPiece::Kind;

/// Pieces of an expression, [first, behind) of them.
struct Stretch {
  std::size_t first = 0, behind = 0;
  bool empty() const { return first >= behind; }
};

// A line that holds `ab`, `ab+c?` or `ab.*` holds `ab`, and the other way round. libhs would report each place where
// such an end can stop, and look for more than decides: so what may be left out at the ends of an expression is.
class OpenEnds {
 public:
  explicit OpenEnds(std::span<const ExpressionPiece> pieces) : pieces_(pieces), dropped_(pieces.size(), false) {
    TrimEnds({0, pieces.size()});
  }
  /// Whether the piece is not to be searched for.
  bool Dropped(std::size_t i) const { return dropped_[i]; }

 private:
  /// The alternatives at the top of a stretch.
  std::vector<Stretch> AlternativesIn(Stretch all) const {
    std::vector<Stretch> out;
    std::size_t first = all.first;
    int depth = 0;
    for (std::size_t i = all.first; i < all.behind; ++i) {
      depth += pieces_[i].Is(Kind::kGroupBegin) ? 1 : pieces_[i].Is(Kind::kGroupEnd) ? -1 : 0;
      if (depth > 0 || !pieces_[i].Is(Kind::kBar)) continue;
      out.push_back({first, i});
      first = i + 1;
    }
    out.push_back({first, all.behind});
    return out;
  }
  /// Where what ends in front of `behind`, a class or a group or one piece, begins.
  std::size_t BeginOfLast(std::size_t behind) const {
    std::size_t i = behind - 1;
    const Kind end = pieces_[i].kind;
    if (end != Kind::kGroupEnd && end != Kind::kClassEnd) return i;
    const Kind begin = end == Kind::kGroupEnd ? Kind::kGroupBegin : Kind::kClassBegin;
    for (int depth = 1; depth > 0;) depth += pieces_[--i].Is(end) ? 1 : pieces_[i].Is(begin) ? -1 : 0;
    return i;
  }
  void Drop(Stretch all) {
    std::fill_n(dropped_.begin() + static_cast<std::ptrdiff_t>(all.first), all.behind - all.first, true);
  }

  /// True: an alternative may match nothing, and so may all of it.
  bool TrimEnds(Stretch all) {
    const std::vector<Stretch> alternatives = AlternativesIn(all);
    return std::ranges::any_of(alternatives, [&](const Stretch& one) { return TrimEnd(one).empty(); });
  }

  Stretch TrimEnd(Stretch one) {
    while (!one.empty()) {
      const ExpressionPiece& last = pieces_[one.behind - 1];
      if (last.Is(Kind::kAnchor)) {
        --one.behind;
      } else if (last.Is(Kind::kTimes) && last.least <= 1) {
        const std::size_t from = last.least == 0 ? BeginOfLast(one.behind - 1) : one.behind - 1;
        Drop({from, one.behind});
        one.behind = from;
      } else if (last.Is(Kind::kGroupEnd)) {
        const std::size_t begin = BeginOfLast(one.behind);
        if (!TrimEnds({begin + 1, one.behind - 1})) return one;
        Drop({begin, one.behind});
        one.behind = begin;
      } else {
        return one;
      }
    }
    return one;
  }

  std::span<const ExpressionPiece> pieces_;
  std::vector<bool> dropped_;
};

// What libhs is to search for. `^` and `$` speak of the text without its envelope, which a block cannot know, and libhs
// knows no `$` in the middle of an expression: without them it lets too much through, and RE2 confirms every line
// anyway. A class that is about a line must not run on into the next one.
std::string WithinLine(std::string_view text) {
  const auto pieces = PiecesOf(text);
  if (!pieces) return std::string(text);  // RE2 refuses it, and libhs will say so
  const OpenEnds ends(*pieces);
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < pieces->size(); ++i) {
    const ExpressionPiece& piece = (*pieces)[i];
    if (piece.Is(Kind::kClassBegin) || piece.Is(Kind::kClassEnd)) in_class = piece.Is(Kind::kClassBegin);
    if (piece.Is(Kind::kAnchor) || ends.Dropped(i)) continue;
    if (piece.text == R"(\s)") {
      out += in_class ? R"( \t\f\x0b)" : R"([ \t\f\x0b])";
    } else if (piece.text == R"(\D)" && !in_class) {
      out += R"([^\d\n])";
    } else if (piece.text == R"(\W)" && !in_class) {
      out += R"([^\w\n])";
    } else {
      out += piece.text;
      if (piece.Is(Kind::kClassBegin) && piece.text == "[^") out += R"(\n)";
    }
  }
  return out;
}

// An expression that libhs cannot run exactly becomes a filter that passes too much; RE2 confirms every line anyway.
bool Compiles(const std::string& text, unsigned flags) {
  hs_expr_info_t* info = nullptr;
  hs_compile_error_t* error = nullptr;
  const bool good = hs_expression_info(text.c_str(), flags, &info, &error) == HS_SUCCESS;
  if (error != nullptr) hs_free_compile_error(error);
  std::free(info);
  return good;
}

/// Of the expressions only those with `is_wanted`.
template <class IsWanted>
Wanted Collect(const Sought& sought, std::span<const std::string_view> marks, IsWanted is_wanted) {
  Wanted out;
  const auto add = [&out](std::string text, std::size_t id, const std::vector<std::string>& cover) {
    Expressions& to = cover.empty() ? out.anywhere : out.covered;
    out.literals.insert(out.literals.end(), cover.begin(), cover.end());
    const unsigned exact = HS_FLAG_MULTILINE;
    to.flags.push_back(Compiles(text, exact) ? exact : exact | HS_FLAG_PREFILTER);
    to.texts.push_back(std::move(text));
    to.ids.push_back(static_cast<unsigned>(id));
  };
  for (std::size_t i = 0; i < sought.expressions.size(); ++i)
    if (const auto& one = sought.expressions[i]; one.in_sieve && is_wanted(i))
      add(WithinLine(one.text), i, CoverOf(one.text));
  for (std::size_t i = 0; i < marks.size(); ++i)
    add(QuoteExpression(marks[i]), sought.expressions.size() + i, CoverOf(QuoteExpression(marks[i])));
  out.literals = WithoutImplied(std::move(out.literals));
  return out;
}

/// Null for no expressions. For any processor, not for this one: one binary is copied to many nodes, and the window
/// filter leaves libhs little to do.
Result<Database> Compile(const Expressions& expressions, const Sought& sought) {
  if (expressions.texts.empty()) return NoDatabase();
  std::vector<const char*> texts;
  for (const std::string& text : expressions.texts) texts.push_back(text.c_str());
  hs_database_t* db = nullptr;
  hs_compile_error_t* error = nullptr;
  const hs_platform_info_t platform{HS_TUNE_FAMILY_GENERIC, 0, 0, 0};
  const hs_error_t status =
      hs_compile_multi(texts.data(), expressions.flags.data(), expressions.ids.data(),
                       static_cast<unsigned>(texts.size()), HS_MODE_BLOCK, &platform, &db, &error);
  if (status == HS_SUCCESS) return Database(db, FreeCompiled);
  const unsigned id =
      error != nullptr && error->expression >= 0 ? expressions.ids[static_cast<std::size_t>(error->expression)] : ~0u;
  Error out{error != nullptr ? error->message : "out of memory", "use RE2's syntax without bounded repeats of hundreds",
            ""};
  if (id < sought.expressions.size()) out.where = sought.expressions[id].where;
  hs_free_compile_error(error);
  return out;
}

/// What a sieve is made of.
struct LayeredParts {
  Layer layer;
  std::vector<WindowFilter::Literal> literals;
};

Result<LayeredParts> Compile(Wanted wanted, const Sought& sought) {
  auto covered = Compile(wanted.covered, sought);
  if (!covered) return covered.error();
  auto anywhere = Compile(wanted.anywhere, sought);
  if (!anywhere) return anywhere.error();
  LayeredParts parts{{std::move(*covered), std::move(*anywhere), {}}, {}};
  for (std::string& literal : wanted.literals) parts.literals.push_back({literal, RarestWindows(literal)});
  return parts;
}

Result<LayeredParts> Compile(const Sought& sought) {
  return Compile(Collect(sought, sought.marks, [](std::size_t) { return true; }), sought);
}

struct Found {
  std::vector<Sieve::Hit>& hits;
  const std::vector<std::uint32_t>& ids;
};

int OnMatch(unsigned id, unsigned long long, unsigned long long to, unsigned, void* context) {
  const auto& found = *static_cast<const Found*>(context);
  const std::uint32_t known = found.ids.empty() ? id : found.ids[id];
  if (known != kDropped) found.hits.push_back({known, static_cast<std::uint32_t>(to)});
  return 0;
}

/// The spaces that a database needs to run, one for each scanner that is at work: who scans one short text after the
/// other would spend half its time on making them.
class Spaces {
 public:
  explicit Spaces(const hs_database_t* db) : db_(db) {}
  Scratch Take() {
    if (db_ == nullptr) return nullptr;
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        Scratch space = std::move(free_.back());
        free_.pop_back();
        return space;
      }
    }
    hs_scratch_t* scratch = nullptr;
    INQUEST_CHECK(hs_alloc_scratch(db_, &scratch) == HS_SUCCESS);
    return Scratch(scratch);
  }
  void Give(Scratch space) {
    const std::lock_guard lock(mutex_);
    if (space) free_.push_back(std::move(space));
  }
  const hs_database_t* db() const { return db_; }

 private:
  const hs_database_t* db_;
  std::mutex mutex_;
  std::vector<Scratch> free_;
};

/// One database and its space, while a scanner lives.
class Search {
 public:
  Search(Spaces& spaces, const std::vector<std::uint32_t>& ids)
      : spaces_(&spaces), ids_(&ids), scratch_(spaces.Take()) {}
  Search(Search&&) = default;
  Search& operator=(Search&&) = delete;
  ~Search() { spaces_->Give(std::move(scratch_)); }
  void Run(std::string_view text, std::vector<Sieve::Hit>& hits) const {
    if (spaces_->db() == nullptr || text.empty()) return;
    Found found{hits, *ids_};
    const hs_error_t status =
        hs_scan(spaces_->db(), text.data(), static_cast<unsigned>(text.size()), 0, scratch_.get(), OnMatch, &found);
    INQUEST_CHECK(status == HS_SUCCESS);
  }

 private:
  Spaces* spaces_;
  const std::vector<std::uint32_t>* ids_;
  Scratch scratch_;
};

/// What every search begins with. libhs leaps at first to where a literal may begin, and on arm64 Vectorscan 5.4.9
/// leaps past some: one of these bytes stops it, and from there on it looks at every byte.
constexpr std::string_view kFirstLine =
    " !\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~\n";

/// The lines that the filter finds are copied together, so that libhs is called once a block.
class HsScanner final : public Sieve::Scanner {
 public:
  explicit HsScanner(const WindowFilter& filter) : filter_(filter) {}
  void Add(Spaces& covered, Spaces& anywhere, const std::vector<std::uint32_t>& ids) {
    covered_.emplace_back(covered, ids);
    anywhere_.emplace_back(anywhere, ids);
  }
  void Scan(std::string_view block, std::vector<Sieve::Hit>& hits) override {
    for (const Search& search : anywhere_) search.Run(block, hits);
    lines_.clear();
    begins_.clear();
    text_ = kFirstLine;
    filter_.FindLines(block, lines_);
    if (lines_.empty()) return;
    for (const WindowFilter::Line& line : lines_) {
      begins_.push_back(static_cast<std::uint32_t>(text_.size()));
      text_ += block.substr(line.begin, line.end - line.begin);
      text_ += '\n';
    }
    const std::size_t first = hits.size();
    for (const Search& search : covered_) search.Run(text_, hits);
    const auto in_first_line = [](const Sieve::Hit& hit) { return hit.end <= kFirstLine.size(); };
    hits.erase(std::remove_if(hits.begin() + static_cast<std::ptrdiff_t>(first), hits.end(), in_first_line),
               hits.end());
    for (std::size_t i = first; i < hits.size(); ++i) hits[i].end = InBlock(hits[i].end);
  }

 private:
  /// A match that ends with the '\n' is taken to end with the line's text: the block may end there.
  std::uint32_t InBlock(std::uint32_t end) const {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), end - 1);
    const auto number = static_cast<std::size_t>(after - begins_.begin()) - 1;
    return std::min(lines_[number].begin + (end - begins_[number]), lines_[number].end);
  }

  const WindowFilter& filter_;
  std::vector<Search> covered_, anywhere_;
  std::vector<WindowFilter::Line> lines_;
  std::vector<std::uint32_t> begins_;  ///< of the lines, in text_
  std::string text_;
};

class HsSieve final : public Sieve {
 public:
  HsSieve(std::vector<Layer> layers, WindowFilter filter, const Sought& sought)
      : layers_(std::move(layers)),
        filter_(std::move(filter)),
        expressions_(static_cast<std::uint32_t>(sought.expressions.size())) {
    for (const Sought::Expression& one : sought.expressions) last_only_.push_back(one.keep_last_only);
    for (const Layer& layer : layers_)
      spaces_.push_back(
          {std::make_unique<Spaces>(layer.covered.get()), std::make_unique<Spaces>(layer.anywhere.get())});
  }
  std::unique_ptr<Scanner> MakeScanner() const override {
    auto scanner = std::make_unique<HsScanner>(filter_);
    for (std::size_t i = 0; i < layers_.size(); ++i)
      scanner->Add(*spaces_[i].covered, *spaces_[i].anywhere, layers_[i].ids);
    return scanner;
  }
  std::uint32_t first_mark_id() const override { return expressions_; }
  bool keep_last_only(std::uint32_t id) const override { return id < expressions_ && last_only_[id]; }

 private:
  struct SpacesOfLayer {
    std::unique_ptr<Spaces> covered, anywhere;
  };
  std::vector<Layer> layers_;
  std::vector<SpacesOfLayer> spaces_;  ///< of the layers
  WindowFilter filter_;
  std::uint32_t expressions_;
  std::vector<bool> last_only_;
};

std::unique_ptr<Sieve> SieveOf(Layer layer, WindowFilter filter, const Sought& sought) {
  std::vector<Layer> layers;
  layers.push_back(std::move(layer));
  return std::make_unique<HsSieve>(std::move(layers), std::move(filter), sought);
}

}  // namespace

Result<std::unique_ptr<Sieve>> CompileSieve(const Sought& sought) {
  auto parts = Compile(sought);
  if (!parts) return parts.error();
  return SieveOf(std::move(parts->layer), WindowFilter(parts->literals), sought);
}

Result<std::string> PackSieve(const Sought& sought) {
  const auto parts = Compile(sought);
  if (!parts) return parts.error();
  return Pack(parts->layer, parts->literals);
}

Result<std::unique_ptr<Sieve>> LoadSieve(std::string_view bytes, const Sought& sought) {
  auto packed = Unpack(bytes);
  if (!packed) return CompileSieve(sought);
  return SieveOf(std::move(packed->layer), WindowFilter(packed->tables), sought);
}

Result<std::unique_ptr<Sieve>> ExtendSieve(std::string_view bytes, const Sought& base, const Sought& sought) {
  auto known = Unpack(bytes);
  if (!known) return CompileSieve(sought);
  Layer& layer = known->layer;
  std::map<std::string_view, std::size_t> numbers;
  for (std::size_t i = 0; i < sought.expressions.size(); ++i) numbers[sought.expressions[i].name] = i;
  std::set<std::size_t> covered;
  for (const Sought::Expression& one : base.expressions) {
    const auto now = numbers.find(one.name);
    const bool is_same = now != numbers.end() && one.text == sought.expressions[now->second].text &&
                         one.in_sieve == sought.expressions[now->second].in_sieve;
    layer.ids.push_back(is_same ? static_cast<std::uint32_t>(now->second) : kDropped);
    if (is_same) covered.insert(now->second);
  }
  for (std::size_t i = 0; i < sought.marks.size(); ++i)
    layer.ids.push_back(static_cast<std::uint32_t>(sought.expressions.size() + i));
  auto added = Compile(Collect(sought, {}, [&](std::size_t number) { return !covered.contains(number); }), sought);
  if (!added) return added.error();
  std::vector<WindowFilter::Literal> literals = known->literals();
  std::move(added->literals.begin(), added->literals.end(), std::back_inserter(literals));
  std::vector<Layer> layers;
  layers.push_back(std::move(layer));
  layers.push_back(std::move(added->layer));
  return std::unique_ptr<Sieve>(std::make_unique<HsSieve>(std::move(layers), WindowFilter(literals), sought));
}

}  // namespace inquest
