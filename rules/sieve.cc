// Finds the lines that rules or formats ask for, in one pass over a block. The only door to libhs.
#include "rules/sieve.h"

#include <fmt/format.h>
#include <hs.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "rules/cover.h"
#include "rules/packed_sieve.h"
#include "rules/window_filter.h"

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

/// A training line says nothing about a failure and stands in every second line of a log; it is looked for, as rules of
/// the last line are, only where a writer's last lines are kept anyway.
bool InSieve(const Rule& rule) {
  return !(rule.kind == Rule::Kind::kPhase && rule.phase_kind == "training") && rule.scope.empty();
}

bool KeepLastOnly(const Rule& rule) { return rule.kind == Rule::Kind::kPhase || rule.kind == Rule::Kind::kEnding; }

// What libhs is to search for. `^` and `$` speak of the text without its envelope, which a block cannot know, and libhs
// knows no `$` in the middle of an expression: without them it lets too much through, and RE2 confirms every line
// anyway. A class that is about a line must not run on into the next one.
std::string WithinLine(std::string_view text) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      const char escaped = text[++i];
      if (escaped == 's')
        out += in_class ? R"( \t\f\x0b)" : R"([ \t\f\x0b])";
      else if (!in_class && escaped == 'D')
        out += R"([^\d\n])";
      else if (!in_class && escaped == 'W')
        out += R"([^\w\n])";
      else
        out += text.substr(i - 1, 2);
      continue;
    }
    if (!in_class && (text[i] == '^' || text[i] == '$')) continue;
    if (text[i] == '[' && !in_class) {
      in_class = true;
      // A ']' right behind the head of a class is a member of it.
      const bool negated = i + 1 < text.size() && text[i + 1] == '^';
      const std::size_t head = negated ? 2 : 1;
      const std::size_t size = i + head < text.size() && text[i + head] == ']' ? head + 1 : head;
      out += text.substr(i, size);
      if (negated) out += R"(\n)";
      i += size - 1;
      continue;
    }
    if (text[i] == ']') in_class = false;
    out += text[i];
  }
  return out;
}

std::string Quote(std::string_view literal) {
  std::string out;
  for (const char c : literal) {
    if (std::strchr("\\^$.|?*+()[]{}", c) != nullptr) out += '\\';
    out += c;
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

/// Of the book's rules only those with `is_wanted`.
template <class IsWanted>
Wanted Collect(const RuleBook& book, std::span<const std::string_view> marks, IsWanted is_wanted) {
  Wanted out;
  const auto add = [&out](std::string text, std::size_t id, const std::vector<std::string>& cover) {
    Expressions& to = cover.empty() ? out.anywhere : out.covered;
    out.literals.insert(out.literals.end(), cover.begin(), cover.end());
    const unsigned exact = HS_FLAG_MULTILINE;
    to.flags.push_back(Compiles(text, exact) ? exact : exact | HS_FLAG_PREFILTER);
    to.texts.push_back(std::move(text));
    to.ids.push_back(static_cast<unsigned>(id));
  };
  for (std::size_t i = 0; i < book.rules.size(); ++i)
    if (InSieve(book.rules[i]) && is_wanted(book.rules[i])) add(WithinLine(book.rules[i].text), i, CoverOf(book.rules[i].text));
  for (std::size_t i = 0; i < marks.size(); ++i) add(Quote(marks[i]), book.rules.size() + i, CoverOf(Quote(marks[i])));
  out.literals = WithoutImplied(std::move(out.literals));
  return out;
}

/// Null for no expressions. For any processor, not for this one: one binary is copied to many nodes, and the window
/// filter leaves libhs little to do.
Result<Database> Compile(const Expressions& expressions, const RuleBook& book) {
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
  if (id < book.rules.size()) out.where = book.rules[id].file;
  hs_free_compile_error(error);
  return out;
}

/// What a sieve is made of.
struct Parts {
  Layer layer;
  std::vector<WindowFilter::Literal> literals;
};

Result<Parts> Compile(Wanted wanted, const RuleBook& book) {
  auto covered = Compile(wanted.covered, book);
  if (!covered) return covered.error();
  auto anywhere = Compile(wanted.anywhere, book);
  if (!anywhere) return anywhere.error();
  Parts parts{{std::move(*covered), std::move(*anywhere), {}}, {}};
  for (std::string& literal : wanted.literals) parts.literals.push_back({literal, RarestWindows(literal)});
  return parts;
}

Result<Parts> Compile(const RuleBook& book, std::span<const std::string_view> marks) {
  return Compile(Collect(book, marks, [](const Rule&) { return true; }), book);
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

/// One database and the space it needs to run.
class Search {
 public:
  Search(const hs_database_t* db, const std::vector<std::uint32_t>& ids) : db_(db), ids_(ids) {
    if (db_ == nullptr) return;
    hs_scratch_t* scratch = nullptr;
    INQUEST_CHECK(hs_alloc_scratch(db_, &scratch) == HS_SUCCESS);
    scratch_.reset(scratch);
  }
  void Run(std::string_view text, std::vector<Sieve::Hit>& hits) const {
    if (db_ == nullptr || text.empty()) return;
    Found found{hits, ids_};
    const hs_error_t status = hs_scan(db_, text.data(), static_cast<unsigned>(text.size()), 0, scratch_.get(), OnMatch, &found);
    INQUEST_CHECK(status == HS_SUCCESS);
  }

 private:
  const hs_database_t* db_;
  const std::vector<std::uint32_t>& ids_;
  Scratch scratch_;
};

/// The lines that the filter finds are copied together, so that libhs is called once a block.
class HsScanner final : public Sieve::Scanner {
 public:
  HsScanner(const WindowFilter& filter, const std::vector<Layer>& layers) : filter_(filter) {
    for (const Layer& layer : layers) {
      covered_.emplace_back(layer.covered.get(), layer.ids);
      anywhere_.emplace_back(layer.anywhere.get(), layer.ids);
    }
  }
  void Scan(std::string_view block, std::vector<Sieve::Hit>& hits) override {
    for (const Search& search : anywhere_) search.Run(block, hits);
    lines_.clear();
    begins_.clear();
    text_.clear();
    filter_.FindLines(block, lines_);
    for (const WindowFilter::Line& line : lines_) {
      begins_.push_back(static_cast<std::uint32_t>(text_.size()));
      text_ += block.substr(line.begin, line.end - line.begin);
      text_ += '\n';
    }
    const std::size_t first = hits.size();
    for (const Search& search : covered_) search.Run(text_, hits);
    for (std::size_t i = first; i < hits.size(); ++i) hits[i].end = InBlock(hits[i].end);
  }

 private:
  /// A match that ends with the '\n' is taken to end with the line's text: the block may end there.
  std::uint32_t InBlock(std::uint32_t end) const {
    const auto after = std::upper_bound(begins_.begin(), begins_.end(), end == 0 ? 0 : end - 1);
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
  HsSieve(std::vector<Layer> layers, WindowFilter filter, const RuleBook& book)
      : layers_(std::move(layers)), filter_(std::move(filter)), rules_(static_cast<std::uint32_t>(book.rules.size())) {
    for (const Rule& rule : book.rules) last_only_.push_back(KeepLastOnly(rule));
  }
  std::unique_ptr<Scanner> MakeScanner() const override {
    return std::make_unique<HsScanner>(filter_, layers_);
  }
  std::uint32_t first_mark_id() const override { return rules_; }
  bool keep_last_only(std::uint32_t id) const override { return id < rules_ && last_only_[id]; }

 private:
  std::vector<Layer> layers_;
  WindowFilter filter_;
  std::uint32_t rules_;
  std::vector<bool> last_only_;
};

std::unique_ptr<Sieve> SieveOf(Layer layer, WindowFilter filter, const RuleBook& book) {
  std::vector<Layer> layers;
  layers.push_back(std::move(layer));
  return std::make_unique<HsSieve>(std::move(layers), std::move(filter), book);
}

}  // namespace

Result<std::unique_ptr<Sieve>> CompileSieve(const RuleBook& book, std::span<const std::string_view> marks) {
  auto parts = Compile(book, marks);
  if (!parts) return parts.error();
  return SieveOf(std::move(parts->layer), WindowFilter(parts->literals), book);
}

Result<std::string> PackSieve(const RuleBook& book, std::span<const std::string_view> marks) {
  const auto parts = Compile(book, marks);
  if (!parts) return parts.error();
  return Pack(parts->layer, parts->literals);
}

Result<std::unique_ptr<Sieve>> LoadSieve(std::string_view bytes, const RuleBook& book,
                                         std::span<const std::string_view> marks) {
  auto packed = Unpack(bytes);
  if (!packed) return CompileSieve(book, marks);
  return SieveOf(std::move(packed->layer), WindowFilter(packed->tables), book);
}

Result<std::unique_ptr<Sieve>> ExtendSieve(std::string_view bytes, const RuleBook& base, const RuleBook& book,
                                           std::span<const std::string_view> marks) {
  auto known = Unpack(bytes);
  if (!known) return CompileSieve(book, marks);
  Layer& layer = known->layer;
  std::map<std::pair<Rule::Kind, std::string_view>, const Rule*> rules;
  for (const Rule& rule : book.rules) rules[{rule.kind, rule.id}] = &rule;
  const auto same = [](const Rule& a, const Rule& b) { return a.text == b.text && InSieve(a) == InSieve(b); };
  std::set<const Rule*> covered;
  for (const Rule& rule : base.rules) {
    const auto now = rules.find({rule.kind, rule.id});
    const bool is_same = now != rules.end() && same(rule, *now->second);
    layer.ids.push_back(is_same ? static_cast<std::uint32_t>(now->second - book.rules.data()) : kDropped);
    if (is_same) covered.insert(now->second);
  }
  for (std::size_t i = 0; i < marks.size(); ++i) layer.ids.push_back(static_cast<std::uint32_t>(book.rules.size() + i));
  auto added = Compile(Collect(book, {}, [&](const Rule& rule) { return !covered.contains(&rule); }), book);
  if (!added) return added.error();
  std::vector<WindowFilter::Literal> literals = known->literals();
  std::move(added->literals.begin(), added->literals.end(), std::back_inserter(literals));
  std::vector<Layer> layers;
  layers.push_back(std::move(layer));
  layers.push_back(std::move(added->layer));
  return std::unique_ptr<Sieve>(std::make_unique<HsSieve>(std::move(layers), WindowFilter(literals), book));
}

}  // namespace inquest
