// Finds the lines that rules or formats ask for, in one pass over a block. The only door to libhs.
#include "rules/sieve.h"

#include <fmt/format.h>
#include <hs.h>

#include <cstring>

#include <string>
#include <utility>
#include <vector>

#include "core/result.h"

namespace inquest {
namespace {

struct FreeDatabase { void operator()(hs_database_t* db) const { hs_free_database(db); } };
struct FreeScratch { void operator()(hs_scratch_t* scratch) const { hs_free_scratch(scratch); } };
using Database = std::unique_ptr<hs_database_t, FreeDatabase>;
using Scratch = std::unique_ptr<hs_scratch_t, FreeScratch>;

/// What one id looks for, as libhs wants it.
struct Expressions {
  std::vector<std::string> texts;
  std::vector<unsigned> flags, ids;
};

/// A training line says nothing about a failure and stands in every second line of a log; it is looked for, as rules of
/// the last line are, only where a writer's last lines are kept anyway.
bool InSieve(const Rule& rule) { return !(rule.kind == Rule::Kind::kPhase && rule.phase_kind == "training") && rule.scope.empty(); }

bool KeepLastOnly(const Rule& rule) { return rule.kind == Rule::Kind::kPhase || rule.kind == Rule::Kind::kEnding; }

// `^` and `$` speak of the text without its envelope, which a block cannot know, and libhs knows no `$` in the middle of
// an expression. Without them it lets too much through; RE2 confirms every line anyway.
std::string WithoutAnchors(std::string_view text) {
  std::string out;
  bool in_class = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      out += text.substr(i++, 2);
      continue;
    }
    if (!in_class && (text[i] == '^' || text[i] == '$')) continue;
    if (text[i] == '[' && !in_class) {
      in_class = true;
      // A ']' right behind the head of a class is a member of it.
      const std::size_t head = i + 1 < text.size() && text[i + 1] == '^' ? 2 : 1;
      const std::size_t size = i + head < text.size() && text[i + head] == ']' ? head + 1 : head;
      out += text.substr(i, size);
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

Expressions Collect(const RuleBook& book, std::span<const std::string_view> marks) {
  Expressions out;
  const auto add = [&](std::string text, std::size_t id) {
    const unsigned exact = HS_FLAG_MULTILINE;
    out.flags.push_back(Compiles(text, exact) ? exact : exact | HS_FLAG_PREFILTER);
    out.texts.push_back(std::move(text));
    out.ids.push_back(static_cast<unsigned>(id));
  };
  for (std::size_t i = 0; i < book.rules.size(); ++i)
    if (InSieve(book.rules[i])) add(WithoutAnchors(book.rules[i].text), i);
  for (std::size_t i = 0; i < marks.size(); ++i) add(Quote(marks[i]), book.rules.size() + i);
  return out;
}

Result<Database> Compile(const RuleBook& book, std::span<const std::string_view> marks) {
  const Expressions expressions = Collect(book, marks);
  std::vector<const char*> texts;
  for (const std::string& text : expressions.texts) texts.push_back(text.c_str());
  hs_database_t* db = nullptr;
  hs_compile_error_t* error = nullptr;
  const hs_error_t status = hs_compile_multi(texts.data(), expressions.flags.data(), expressions.ids.data(),
                                             static_cast<unsigned>(texts.size()), HS_MODE_BLOCK, nullptr, &db, &error);
  if (status == HS_SUCCESS) return Database(db);
  const unsigned id = error != nullptr && error->expression >= 0 ? expressions.ids[static_cast<std::size_t>(error->expression)] : ~0u;
  Error out{error != nullptr ? error->message : "out of memory", "use RE2's syntax without bounded repeats of hundreds", ""};
  if (id < book.rules.size()) out.where = book.rules[id].file;
  hs_free_compile_error(error);
  return out;
}

int OnMatch(unsigned id, unsigned long long, unsigned long long to, unsigned, void* context) {
  static_cast<std::vector<Sieve::Hit>*>(context)->push_back({id, static_cast<std::uint32_t>(to)});
  return 0;
}

class HsScanner final : public Sieve::Scanner {
 public:
  explicit HsScanner(const hs_database_t* db) : db_(db) {
    hs_scratch_t* scratch = nullptr;
    INQUEST_CHECK(hs_alloc_scratch(db_, &scratch) == HS_SUCCESS);
    scratch_.reset(scratch);
  }
  void Scan(std::string_view block, std::vector<Sieve::Hit>& hits) override {
    if (block.empty()) return;
    const hs_error_t status = hs_scan(db_, block.data(), static_cast<unsigned>(block.size()), 0, scratch_.get(), OnMatch, &hits);
    INQUEST_CHECK(status == HS_SUCCESS);
  }

 private:
  const hs_database_t* db_;
  Scratch scratch_;
};

class HsSieve final : public Sieve {
 public:
  HsSieve(Database db, const RuleBook& book) : db_(std::move(db)), rules_(static_cast<std::uint32_t>(book.rules.size())) {
    for (const Rule& rule : book.rules) last_only_.push_back(KeepLastOnly(rule));
  }
  std::unique_ptr<Scanner> MakeScanner() const override { return std::make_unique<HsScanner>(db_.get()); }
  std::uint32_t first_mark_id() const override { return rules_; }
  bool keep_last_only(std::uint32_t id) const override { return id < rules_ && last_only_[id]; }

 private:
  Database db_;
  std::uint32_t rules_;
  std::vector<bool> last_only_;
};

}  // namespace

Result<std::unique_ptr<Sieve>> CompileSieve(const RuleBook& book, std::span<const std::string_view> marks) {
  auto db = Compile(book, marks);
  if (!db) return db.error();
  return std::unique_ptr<Sieve>(std::make_unique<HsSieve>(std::move(*db), book));
}

Result<std::string> SerializeSieve(const RuleBook& book, std::span<const std::string_view> marks) {
  auto db = Compile(book, marks);
  if (!db) return db.error();
  char* bytes = nullptr;
  std::size_t size = 0;
  if (hs_serialize_database(db->get(), &bytes, &size) != HS_SUCCESS) return Error{"the sieve's database cannot be serialised", "", ""};
  std::string out(bytes, size);
  std::free(bytes);
  return out;
}

Result<std::unique_ptr<Sieve>> LoadSieve(std::string_view bytes, const RuleBook& book, std::span<const std::string_view> marks) {
  hs_database_t* db = nullptr;
  if (hs_deserialize_database(bytes.data(), bytes.size(), &db) != HS_SUCCESS) return CompileSieve(book, marks);
  hs_scratch_t* probe = nullptr;  // a database of another processor loads and then cannot run
  if (hs_alloc_scratch(db, &probe) != HS_SUCCESS) {
    hs_free_database(db);
    return CompileSieve(book, marks);
  }
  hs_free_scratch(probe);
  return std::unique_ptr<Sieve>(std::make_unique<HsSieve>(Database(db), book));
}

}  // namespace inquest
