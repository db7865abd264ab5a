// Fuzz target: any bytes as a rule file. They load, or say why not; what loads survives being embedded.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <variant>

#include "core/result.h"
#include "rules/rule_book.h"

namespace inquest {
namespace {

/// A rules folder with one file in it, removed at exit.
class RulesFolder {
 public:
  RulesFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "inquest-fuzz-XXXXXX").string();
    INQUEST_CHECK(mkdtemp(name.data()) != nullptr);
    folder_ = name;
    std::filesystem::create_directories(file().parent_path());
  }
  RulesFolder(const RulesFolder&) = delete;
  RulesFolder& operator=(const RulesFolder&) = delete;
  ~RulesFolder() {
    std::error_code error;
    std::filesystem::remove_all(folder_, error);
  }
  std::string path() const { return folder_.string(); }
  std::filesystem::path file() const { return folder_ / "signatures" / "rank-absent" / "fuzzed.yaml"; }

 private:
  std::filesystem::path folder_;
};

/// The built-in rules by their names alone, all that a file can refer to: each trial copies them and writes them down.
RuleBook Names() {
  RuleBook book = Deserialize(EmbeddedRules());
  for (Rule& rule : book.rules) {
    Rule bare;
    bare.kind = rule.kind;
    bare.id = std::move(rule.id);
    bare.cause = std::move(rule.cause);
    rule = std::move(bare);
  }
  for (FindingRule& finding : book.findings) {
    FindingRule bare;
    bare.id = std::move(finding.id);
    finding = std::move(bare);
  }
  book.xids.clear();
  book.sxids.clear();
  return book;
}

void Run(std::string_view rule) {
  static const RuleBook kBase = Names();
  static const RulesFolder kFolder;
  std::ofstream(kFolder.file(), std::ios::binary | std::ios::trunc)
      .write(rule.data(), static_cast<std::streamsize>(rule.size()));
  const std::variant<RuleBook, RuleErrors> loaded = LoadRules(kFolder.path(), &kBase);
  if (const auto* errors = std::get_if<RuleErrors>(&loaded)) {
    INQUEST_CHECK(!errors->empty());
    for (const Error& error : *errors) INQUEST_CHECK(!error.message.empty());
    return;
  }
  const std::string bytes = Serialize(std::get<RuleBook>(loaded));
  INQUEST_CHECK(Serialize(Deserialize(bytes)) == bytes);
}

}  // namespace
}  // namespace inquest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  inquest::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
