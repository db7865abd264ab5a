// Build-time tool: rules as YAML -> rules.bin, sieve.bin and the assembler file that embeds both, and the schemas.
// usage: inquest_embed RULES_DIR DOCS_DIR OUT_DIR
#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "parsers/formats.h"
#include "rules/rule_book.h"
#include "rules/sought.h"

namespace inquest {
namespace {

namespace fs = std::filesystem;

void Print(const Error& error) {
  std::fprintf(stderr, "%s%s%s%s%s\n", error.where.c_str(), error.where.empty() ? "" : ": ", error.message.c_str(),
               error.hint.empty() ? "" : "; ", error.hint.c_str());
}

std::optional<Error> WriteFile(const fs::path& path, std::string_view bytes) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (stream.flush()) return std::nullopt;
  return Error{"cannot write the file", "look at the space and the rights of the build folder", path.string()};
}

/// `%progbits`, not `@progbits`: `@` starts a comment on ARM.
std::string Assembler(const fs::path& docs, const fs::path& out) {
  std::string text = "    .section .rodata,\"a\"\n";
  const std::pair<std::string_view, fs::path> files[] = {{"rules", out / "rules.bin"},
                                                         {"sieve", out / "sieve.bin"},
                                                         {"verdict_schema", docs / "verdict.schema.json"},
                                                         {"events_schema", docs / "events.schema.json"},
                                                         {"triage_schema", docs / "triage.schema.json"},
                                                         {"evidence_schema", docs / "evidence.schema.json"},
                                                         {"replay_schema", docs / "replay.schema.json"}};
  for (const auto& [name, path] : files) {
    text += fmt::format(
        "    .balign 64\n    .globl inquest_{0}_begin\ninquest_{0}_begin:\n    .incbin \"{1}\"\n"
        "    .globl inquest_{0}_end\ninquest_{0}_end:\n    .byte 0\n",
        name, path.string());
  }
  return text + "    .section .note.GNU-stack,\"\",%progbits\n";
}

int Embed(const std::string& source, const fs::path& docs, const fs::path& out) {
  std::variant<RuleBook, RuleErrors> loaded = LoadRules(source, nullptr);
  const RuleErrors* bad = std::get_if<RuleErrors>(&loaded);
  const RuleErrors errors = bad != nullptr ? *bad : CheckFindings(std::get<RuleBook>(loaded));
  for (const Error& error : errors) Print(error);
  if (!errors.empty()) return 1;
  RuleBook& book = std::get<RuleBook>(loaded);
  // The place of the build must not reach the binary.
  const auto below = [&](const std::string& file) {
    return (fs::path("rules") / fs::path(file).lexically_relative(source)).string();
  };
  for (Rule& rule : book.rules) rule.file = below(rule.file);
  for (FindingRule& rule : book.findings) rule.file = below(rule.file);
  const Result<std::string> sieve = PackSieve(SoughtBy(book, Marks().marks));
  if (!sieve) {
    Print(sieve.error());
    return 1;
  }
  const fs::path folder = fs::absolute(out);
  const std::pair<const char*, std::string> files[] = {{"rules.bin", Serialize(book)},
                                                       {"sieve.bin", *sieve},
                                                       {"embedded_rules.S", Assembler(fs::absolute(docs), folder)}};
  for (const auto& [name, bytes] : files) {
    if (const std::optional<Error> error = WriteFile(folder / name, bytes)) {
      Print(*error);
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace inquest

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fputs("usage: inquest_embed RULES_DIR DOCS_DIR OUT_DIR\n", stderr);
    return 2;
  }
  return inquest::Embed(argv[1], argv[2], argv[3]);
}
