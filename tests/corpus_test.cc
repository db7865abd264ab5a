// Every case of the corpus through the whole program, against what its case.json promises.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>
#include <string_view>
#include <nlohmann/json.hpp>

#include "cli/analyze.h"
#include "parsers/formats.h"
#include "report/report.h"
#include "rules/sought.h"
#include "tests/catch.h"

using namespace inquest;
namespace fs = std::filesystem;
using Json = nlohmann::json;

namespace corpus_test {

const fs::path kCorpus = INQUEST_SOURCE_DIR "/corpus";

struct Case {
  fs::path dir;
  Json label;
  Analysis analysis;
};

std::vector<fs::path> CaseFolders() {
  std::vector<fs::path> folders;
  for (const auto& entry : fs::directory_iterator(kCorpus)) {
    if (fs::exists(entry.path() / "case.json")) folders.push_back(entry.path());
  }
  std::sort(folders.begin(), folders.end());
  return folders;
}

Case RunCase(const fs::path& dir, const RuleBook& book, const Sieve& sieve) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    if (entry.is_regular_file() && entry.path().filename() != "case.json") files.push_back(entry.path().string());
  }
  std::sort(files.begin(), files.end());
  Result<Analysis> analysis = Analyze(files, book, sieve, {});
  INFO(dir.string());
  REQUIRE(analysis);
  std::ifstream stream(dir / "case.json");
  return {dir, Json::parse(stream), std::move(*analysis)};
}

const std::vector<Case>& Cases() {
  static const std::vector<Case> kCases = [] {
    const RuleBook book = Deserialize(EmbeddedRules());
    const auto sieve = LoadSieve(EmbeddedSieve(), SoughtBy(book, Marks().marks));
    REQUIRE(sieve);
    std::vector<Case> cases;
    for (const fs::path& dir : CaseFolders()) cases.push_back(RunCase(dir, book, **sieve));
    return cases;
  }();
  return kCases;
}

bool HasKey(const Json& json, const std::string& key) { return json.contains(key) && !json[key].is_null(); }

/// PyTorch and NCCL spell one operation in several ways.
std::string OperationKey(std::string op) {
  std::erase(op, '_');
  std::transform(op.begin(), op.end(), op.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  if (op.ends_with("BASE")) op.resize(op.size() - 4);
  return op;
}

std::string CollectiveMismatch(const Json& want, const std::optional<CollectiveRef>& got) {
  if (!got) return "no collective";
  std::string wrong;
  if (HasKey(want, "op") && OperationKey(want["op"]) != OperationKey(got->op)) wrong += " op " + got->op;
  const std::pair<const char*, std::optional<std::int64_t>> numbers[] = {
      {"seq", got->seq},     {"op_count", got->op_count},    {"numel_in", got->numel_in}, {"numel_out", got->numel_out},
      {"count", got->count}, {"timeout_ms", got->timeout_ms}};
  for (const auto& [key, value] : numbers) {
    if (HasKey(want, key) && value != want[key].get<std::int64_t>())
      wrong += fmt::format(" {} {}", key, value ? fmt::format("{}", *value) : "null");
  }
  return wrong.empty() ? "" : "collective:" + wrong;
}

template <class T>
std::string SetMismatch(const std::string& name, const Json& want, const std::set<T>& got) {
  const std::set<T> wanted = want.get<std::set<T>>();
  return wanted == got ? "" : fmt::format("{} {{{}}}, not {{{}}}", name, fmt::join(got, ", "), fmt::join(wanted, ", "));
}

/// Lines quoted by the verdict, as `job.log:42`.
std::set<std::string> Quoted(const Case& c) {
  std::set<std::string> lines;
  for (const Citation& citation : c.analysis.verdict.evidence) {
    const fs::path path = c.analysis.timeline.inputs[citation.where.input].path;
    lines.insert(fmt::format("{}:{}", path.lexically_relative(c.dir).string(), citation.where.InputLine()));
  }
  return lines;
}

/// Whether a line that proves the verdict has what a command asks for, in words that leave no doubt. Read another way
/// than the rules do it.
bool IsOnALineOfTheCause(const Verdict& verdict, std::string_view want) {
  static const std::pair<std::string_view, std::regex> kSaid[] = {
      {"PID", std::regex(R"(==\d+==ERROR|\(pid:? \d+\)|: line \d+: +\d+ [A-Z][a-z]+)")},
      {"PEER", std::regex(R"(remote GID ::ffff:\d|[Cc]onnect to \d+\.\d+|peer [\w.]+<\d+>)")},
      {"MASTER_PORT", std::regex(R"((bind to|listen on) \S+:\d{2,5}\b|[Pp]ort: ?\d{2,5}\b)")},
      {"PORT", std::regex(R"((bind to|listen on) \S+:\d{2,5}\b|[Pp]ort: ?\d{2,5}\b|[Cc]onnect to \S+<\d+>)")},
      {"FILE", std::regex(R"(Errno \d+\] [^:]+: '/)")},
      {"JOB", std::regex(R"(SLURM_JOB_ID=\d|slurmstepd: error: \*\*\* (JOB|STEP) \d)")},
  };
  return std::any_of(verdict.evidence.begin(), verdict.evidence.end(), [&](const Citation& citation) {
    return citation.role == LineRole::kCause && std::any_of(std::begin(kSaid), std::end(kSaid), [&](const auto& said) {
             return said.first == want && std::regex_search(citation.text, said.second);
           });
  });
}

/// What a case promises and the verdict does not keep.
std::vector<std::string> Broken(const Case& c) {
  const Verdict& verdict = c.analysis.verdict;
  const std::set<std::string> causes = c.label["causes"].get<std::set<std::string>>();
  std::vector<std::string> broken;
  const auto add = [&](std::string complaint) {
    if (!complaint.empty()) broken.push_back(std::move(complaint));
  };
  if (!causes.contains(verdict.cause))
    add(fmt::format("cause {} by {}, not {}", verdict.cause, verdict.rule, fmt::join(causes, " or ")));
  std::set<int> ranks;
  std::set<std::string> hosts;
  for (const Culprit& culprit : verdict.culprits) {
    if (culprit.rank) ranks.insert(culprit.rank->value);
    if (culprit.host) hosts.insert(*culprit.host);
  }
  if (HasKey(c.label, "culprit_ranks")) add(SetMismatch("ranks", c.label["culprit_ranks"], ranks));
  if (HasKey(c.label, "culprit_hosts")) add(SetMismatch("hosts", c.label["culprit_hosts"], hosts));
  if (HasKey(c.label, "collective")) add(CollectiveMismatch(c.label["collective"], verdict.collective));
  std::set<std::string> commands;
  for (const Remedy& remedy : verdict.remedies)
    if (!remedy.command.empty() && !commands.insert(remedy.command).second) add("advises twice: " + remedy.command);
  const std::string report = RenderText(c.analysis.timeline, verdict, {.text = {.width = 80}, .tool_version = "0"});
  if (const auto lines = std::ranges::count(report, '\n'); lines > 24) add(fmt::format("a report of {} lines", lines));
  // What the case tells is asked of nobody.
  for (const Remedy& remedy : verdict.remedies)
    for (const Remedy::Want& want : remedy.needs)
      if ((want.name == "HOST" && hosts.size() == 1) || (want.name == "RANK" && ranks.size() == 1) ||
          IsOnALineOfTheCause(verdict, want.name))
        add(fmt::format("asks for {}: {}", want.name, remedy.command));
  if (HasKey(c.label, "cites") && !c.label["cites"].empty()) {
    const std::set<std::string> quoted = Quoted(c);
    const auto wanted = c.label["cites"].get<std::vector<std::string>>();
    if (std::none_of(wanted.begin(), wanted.end(), [&](const std::string& line) { return quoted.contains(line); })) {
      add(fmt::format("quotes {}, none of {}", fmt::join(quoted, " "), fmt::join(wanted, " ")));
    }
  }
  if (c.label["causes"].front() == "healthy") {
    for (const Finding& finding : verdict.findings) {
      if (!finding.cause.empty() && finding.strength != Strength::kHint)
        add(fmt::format("{} speaks for {} in a healthy job", finding.rule, finding.cause));
    }
  }
  return broken;
}

TEST_CASE("every case gets the verdict that it promises", "[corpus]") {
  REQUIRE_FALSE(Cases().empty());
  for (const Case& c : Cases()) {
    const std::vector<std::string> broken = Broken(c);
    if (!broken.empty()) FAIL_CHECK(fmt::format("{}: {}", c.dir.filename().string(), fmt::join(broken, "; ")));
  }
}

TEST_CASE("every byte of the corpus is accounted for, and every citation stands where it says", "[corpus]") {
  for (const Case& c : Cases()) {
    CAPTURE(c.dir.filename().string());
    for (const InputSummary& input : c.analysis.timeline.inputs) {
      CAPTURE(input.path);
      if (fs::exists(input.path)) CHECK(input.bytes == fs::file_size(input.path));  // not a member of an archive
      CHECK(input.claimed + input.plain + input.damaged == input.bytes);
    }
    for (const Citation& citation : c.analysis.verdict.evidence) {
      REQUIRE(citation.where.input < c.analysis.timeline.inputs.size());
      CHECK(citation.where.line >= 1);
      CHECK(citation.where.line <= c.analysis.timeline.inputs[citation.where.input].lines + 1);
    }
  }
}

TEST_CASE("every cause has a case, and a rule or a verdict that names it", "[corpus]") {
  const RuleBook book = Deserialize(EmbeddedRules());
  std::set<std::string> promised, named;
  for (const Case& c : Cases()) {
    for (const Json& cause : c.label["causes"]) promised.insert(cause.get<std::string>());
    named.insert(c.analysis.verdict.cause);
  }
  for (const Rule& rule : book.rules) named.insert(rule.cause);
  for (const Cause& cause : book.causes) {
    CAPTURE(cause.code);
    CHECK(promised.contains(cause.code));
    if (cause.code != "healthy" && cause.code != "unknown") CHECK(named.contains(cause.code));
  }
  for (const std::string& code : promised) {
    CAPTURE(code);
    CHECK(book.FindCause(code) != nullptr);
  }
}

TEST_CASE("look-alikes name a case of another cause", "[corpus]") {
  std::map<std::string, Json> labels;
  for (const Case& c : Cases()) labels[c.dir.filename().string()] = c.label;
  for (const auto& [name, label] : labels) {
    if (!HasKey(label, "look_alike_of")) continue;
    const std::string other = label["look_alike_of"];
    CAPTURE(name, other);
    REQUIRE(labels.contains(other));
    const bool differs = labels[other]["causes"].front() != label["causes"].front() ||
                         labels[other]["culprit_ranks"] != label["culprit_ranks"];
    CHECK(differs);
  }
}

}  // namespace corpus_test
