// Rule files: what is wrong is said with file and line, all at once; what is right survives packing.
#include "rules/rule_book.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tests/catch.h"

using namespace inquest;
namespace fs = std::filesystem;

namespace rule_book_test {

constexpr std::string_view kCauses =
    "- code: ib-fault\n  layer: network\n  title: IB\n  meaning: It failed.\n  retry: elsewhere\n"
    "  remedies:\n    - text: Look.\n      command: ibstat\n  collect: [ibstat]\n";
constexpr std::string_view kGood =
    "summary: A queue pair gave up.\n"
    "text: 'status=12 from rank (?P<rank>\\d+)'\n"
    "where: {component: nccl}\n"
    "strength: decisive\n"
    "culprit: captured\n"
    "explains: [remote-error, ib-fault]\n"
    "references: [net_ib.cc]\n"
    "samples:\n"
    "  match: ['status=12 from rank 3']\n"
    "  differ: ['status=5 from rank 3']\n";
constexpr std::string_view kSymptom =
    "summary: A peer went away.\ntext: remote error\nreferences: [x]\nsamples: {match: [remote error], differ: [local "
    "error]}\n";

constexpr std::string_view kFinding =
    "summary: Call lines differ.\n"
    "detector: call-divergence\n"
    "claim: 'Call {number} was {first-call}.'\n"
    "grades:\n"
    "  whole-history: {strength: decisive, confidence: 0.8}\n"
    "  by-op-count: {strength: decisive, confidence: 0.8}\n"
    "explains: [remote-error]\n"
    "blames: rank\n"
    "remedies:\n"
    "  - text: Look at call {number}.\n";

/// A folder of rules that goes away with the object.
class RuleFolder {
 public:
  RuleFolder() : dir_(fs::temp_directory_path() / ("inquest-rules-" + std::to_string(getpid()))) {
    fs::remove_all(dir_);
    Write("causes.yaml", kCauses);
    Write("signatures/ib-fault/retry-exceeded.yaml", kGood);
    Write("symptoms/remote-error.yaml", kSymptom);
  }
  ~RuleFolder() { fs::remove_all(dir_); }
  RuleFolder(const RuleFolder&) = delete;
  RuleFolder& operator=(const RuleFolder&) = delete;

  void Write(const std::string& name, std::string_view text) const {
    fs::create_directories((dir_ / name).parent_path());
    std::ofstream(dir_ / name, std::ios::binary) << text;
  }
  void Remove(const std::string& name) const { fs::remove(dir_ / name); }
  std::variant<RuleBook, RuleErrors> Load(const RuleBook* base = nullptr) const {
    return LoadRules(dir_.string(), base);
  }
  /// `file:line: message`, without the folder.
  std::vector<std::string> Errors() const {
    std::vector<std::string> lines;
    const auto loaded = Load();
    if (const auto* errors = std::get_if<RuleErrors>(&loaded)) {
      for (const Error& error : *errors)
        lines.push_back(fs::path(error.where).lexically_relative(dir_).string() + ": " + error.message);
    }
    return lines;
  }

 private:
  fs::path dir_;
};

std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  return out.replace(out.find(from), from.size(), to);
}

TEST_CASE("a good folder loads, sorted by kind and id", "[rules]") {
  const RuleFolder folder;
  folder.Write("phases/saving.yaml", Replaced(kSymptom, "references", "kind: checkpoint\nreferences"));
  folder.Write("endings/done.yaml", Replaced(kSymptom, "references", "kind: worker\nreferences"));
  const auto loaded = folder.Load();
  REQUIRE(std::holds_alternative<RuleBook>(loaded));
  const RuleBook& book = std::get<RuleBook>(loaded);
  std::vector<std::string> ids;
  for (const Rule& rule : book.rules) ids.push_back(rule.id);
  CHECK(ids == std::vector<std::string>{"retry-exceeded", "remote-error", "saving", "done"});
  const Rule* rule = book.FindRule("retry-exceeded");
  REQUIRE(rule != nullptr);
  CHECK(rule->cause == "ib-fault");
  CHECK(rule->component == Component::kNccl);
  CHECK(rule->strength == Strength::kDecisive);
  CHECK(rule->confidence == 0.9);
  CHECK(rule->blames == Rule::Blames::kCaptured);
  CHECK(book.FindRule("done")->kind == Rule::Kind::kEnding);
  CHECK(book.FindRule("saving")->at == Activity::kCheckpoint);
  CHECK(book.FindRule("nothing") == nullptr);
  CHECK(book.FindCause("ib-fault")->remedies.front().command == "ibstat");
  CHECK(book.FindCause("nothing") == nullptr);
}

TEST_CASE("every mistake of a rule file is named with its line", "[rules]") {
  struct Row {
    std::string name, file, text, error;
  };
  const std::string place = "signatures/ib-fault/x.yaml";
  const Row rows[] = {
      {"unknown key", place, Replaced(kGood, "culprit:", "culprits:"), place + ":5: unknown key 'culprits'"},
      {"key twice", place, std::string(kGood) + "summary: Again.\n", place + ":11: key 'summary' stands twice"},
      {"no summary", place, Replaced(kGood, "summary: A queue pair gave up.\n", ""), place + ":1: no 'summary'"},
      {"no full stop", place, Replaced(kGood, "up.", "up"), place + ":1: the summary does not end in a full stop"},
      {"bad expression", place, Replaced(kGood, "status=12", "status=(?!12)"), place + ":2: "},
      {"expression with .* at its end", place, Replaced(kGood, "+)'", "+).*'"),
       place + ":2: the expression has '.*' at an end"},
      {"no strength", place, Replaced(kGood, "strength: decisive\n", ""), place + ":1: no 'strength'"},
      {"bad strength", place, Replaced(kGood, "decisive", "sure"), place + ":4: bad strength 'sure'"},
      {"bad component", place, Replaced(kGood, "{component: nccl}", "{component: dmesg}"),
       place + ":3: bad component 'dmesg'"},
      {"nothing captured", place, Replaced(kGood, "?P<rank>", ""),
       place + ":5: culprit 'captured', but the text has no group rank, ranks or host"},
      {"bad confidence", place, Replaced(kGood, "culprit:", "confidence: 1.5\nculprit:"),
       place + ":5: bad confidence '1.5'"},
      {"bad retry", place, Replaced(kGood, "culprit:", "retry: perhaps\nculprit:"), place + ":5: bad retry 'perhaps'"},
      {"explains nothing known", place, Replaced(kGood, "[remote-error", "[remote-eror"),
       place + ":6: 'explains' names nothing known: 'remote-eror'"},
      {"no reference", place, Replaced(kGood, "references: [net_ib.cc]\n", ""), place + ":1: no reference"},
      {"no samples", place,
       Replaced(kGood, "samples:\n  match: ['status=12 from rank 3']\n  differ: ['status=5 from rank 3']\n", ""),
       place + ":1: no 'samples'"},
      {"no differ", place, Replaced(kGood, "  differ: ['status=5 from rank 3']\n", ""),
       place + ":8: no sample under 'differ'"},
      {"empty match", place, Replaced(kGood, "['status=12 from rank 3']", "[]"), place + ":9: no sample under 'match'"},
      {"unknown cause", "signatures/nonsense/x.yaml", std::string(kGood),
       "signatures/nonsense/x.yaml:1: the folder 'nonsense' is no cause"},
      {"wrong folder", "signature/x.yaml", std::string(kGood),
       "signature/x.yaml:1: a rule does not belong into this folder"},
      {"strength of a symptom", "symptoms/x.yaml", Replaced(kSymptom, "references", "strength: hint\nreferences"),
       "symptoms/x.yaml:3: only signatures have a strength"},
      {"scope of a symptom", "symptoms/x.yaml", Replaced(kSymptom, "references", "scope: last-line\nreferences"),
       "symptoms/x.yaml:3: only phases and endings have a scope"},
      {"bad scope", "endings/x.yaml", Replaced(kSymptom, "references", "scope: first-line\nreferences"),
       "endings/x.yaml:3: bad scope 'first-line'"},
      {"phase without kind", "phases/x.yaml", std::string(kSymptom), "phases/x.yaml:1: no 'kind'"},
      {"id taken", "symptoms/retry-exceeded.yaml", std::string(kSymptom),
       "symptoms/retry-exceeded.yaml:1: the id 'retry-exceeded' is taken by "},
      {"id not kebab-case", "symptoms/Retry_Exceeded.yaml", std::string(kSymptom),
       "symptoms/Retry_Exceeded.yaml:1: the id 'Retry_Exceeded' is not kebab-case"},
      {"not YAML", place, "summary: [\ntext: 'x\n", place + ":"},
      {"a list", place, "- summary\n", place + ":1: not a mapping of keys to values"},
      {"empty", place, "", place + ": cannot read the file, or it is empty"},
      {"other ending", "symptoms/x.yml", std::string(kSymptom), "symptoms/x.yml: rules are named .yaml"},
      {"cause without code", "causes.yaml", "- layer: network\n  title: IB\n  meaning: M.\n  retry: 'no'\n",
       "causes.yaml:1: no 'code'"},
      {"cause twice", "causes.yaml", std::string(kCauses) + std::string(kCauses),
       "causes.yaml:10: cause 'ib-fault' stands twice"},
      {"signs no list", "farewell.yaml", "sign: finished\n", "farewell.yaml:1: not a list of signs"},
      {"sign twice", "farewell.yaml", "- {sign: x, text: a, last: 1}\n- {sign: x, text: b, last: 1}\n",
       "farewell.yaml:2: the sign 'x' stands twice"},
      {"sign without text", "farewell.yaml", "- {sign: finished, last: 1}\n",
       "farewell.yaml:1: no text, and 'finished' is no relation between lines"},
      {"relation with text", "farewell.yaml", "- {sign: any-log, text: a, last: 1}\n",
       "farewell.yaml:1: 'any-log' is a relation between lines, and has a text"},
      {"relation before", "farewell.yaml", "- sign: any-log\n  last: 1\n  before: 1\n",
       "farewell.yaml:3: 'before' of a relation"},
      {"weight no number", "farewell.yaml", "- sign: x\n  text: a\n  last: much\n", "farewell.yaml:3: bad last 'much'"},
      {"sign of a bad expression", "farewell.yaml", "- sign: x\n  text: '('\n  last: 1\n",
       "farewell.yaml:2: bad expression: "},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const RuleFolder folder;
    folder.Write(row.file, row.text);
    const std::vector<std::string> errors = folder.Errors();
    CAPTURE(errors);
    CHECK(std::any_of(errors.begin(), errors.end(),
                      [&](const std::string& error) { return error.starts_with(row.error); }));
  }
}

TEST_CASE("every mistake of a finding's file is named with its line", "[rules]") {
  struct Row {
    std::string name, file, text, error;
  };
  const std::string place = "findings/ib-fault/call-divergence.yaml", root = "findings/call-divergence.yaml";
  const std::string work = Replaced(
      Replaced(Replaced(kFinding, "call-divergence", "stacks-differ"), "Call {number} was {first-call}.", "{who}"),
      "call {number}", "it");
  const std::string stack = Replaced(Replaced(work, "  by-op-count:", "  as-many:"), "  whole-history:", "  minority:");
  const std::string kinds =
      "causes: {data-preparation: ib-fault, checkpoint: ib-fault, compile: ib-fault, evaluation: ib-fault, loading: "
      "ib-fault}\n";
  const Row rows[] = {
      {"unknown detector", place, Replaced(kFinding, "call-divergence", "calls"),
       place + ":2: no detector is called 'calls'"},
      {"another detector", place, Replaced(kFinding, "call-divergence", "xid"),
       place + ":2: the detector 'xid' has no finding 'call-divergence'"},
      {"unknown word", place, Replaced(kFinding, "{first-call}", "{first-cal}"),
       place + ":3: the detector has no word 'first-cal'"},
      {"unknown word of a remedy", place, Replaced(kFinding, "call {number}", "call {numbr}"),
       place + ":10: the detector has no word 'numbr'"},
      {"unknown word to ask for", place, std::string(kFinding) + "    when: often\n",
       place + ":11: the detector has no word 'often'"},
      {"unknown grade", place, Replaced(kFinding, "whole-history", "half-history"),
       place + ":5: the detector has no grade 'half-history'"},
      {"grade that is not there", place, Replaced(kFinding, "whole-history", "half-history"),
       place + ":4: no grade 'whole-history'"},
      {"no grades", place,
       Replaced(kFinding,
                "grades:\n  whole-history: {strength: decisive, confidence: 0.8}\n  by-op-count: {strength: decisive, "
                "confidence: 0.8}\n",
                ""),
       place + ":1: no 'grades'"},
      {"no confidence", place, Replaced(kFinding, ", confidence: 0.8", ""), place + ":5: no 'confidence'"},
      {"bad confidence", place, Replaced(kFinding, "0.8", "1.8"), place + ":5: bad confidence '1.8'"},
      {"bad strength", place, Replaced(kFinding, "decisive", "sure"), place + ":5: bad strength 'sure'"},
      {"no claim", place, Replaced(kFinding, "claim: 'Call {number} was {first-call}.'\n", ""),
       place + ":4: no 'claim'"},
      {"explains nothing known", place, Replaced(kFinding, "[remote-error]", "[remote-eror]"),
       place + ":7: 'explains' names nothing known: 'remote-eror'"},
      {"refuted by nothing known", place, std::string(kFinding) + "refuted_by: [good-end, bad-end]\n",
       place + ":11: 'refuted_by' names nothing known: 'bad-end'"},
      {"bad blame", place, Replaced(kFinding, "blames: rank", "blames: me"), place + ":8: bad blames 'me'"},
      {"bad flag", place, std::string(kFinding) + "alone: no\n", place + ":11: bad alone 'no'"},
      {"unknown key", place, std::string(kFinding) + "colour: red\n", place + ":11: unknown key 'colour'"},
      {"no cause", root, std::string(kFinding), root + ":1: no cause"},
      {"folder is no cause", "findings/ib-falt/call-divergence.yaml", std::string(kFinding),
       "findings/ib-falt/call-divergence.yaml:1: the folder 'ib-falt' is no cause"},
      {"causes beside the folder", place, std::string(kFinding) + "causes: {a: ib-fault}\n",
       place + ":11: the folder names the cause"},
      {"kind without a cause", "findings/stack-at-other-work.yaml", stack + Replaced(kinds, "compile: ib-fault, ", ""),
       "findings/stack-at-other-work.yaml:11: no cause for the kind 'compile'"},
      {"kind of a cause that is none", "findings/stack-at-other-work.yaml",
       stack + Replaced(kinds, "compile: ib-fault", "compile: ib-falt"),
       "findings/stack-at-other-work.yaml:11: 'cause' names nothing known: 'ib-falt'"},
      {"id of a rule", "findings/ib-fault/retry-exceeded.yaml", std::string(kFinding),
       "signatures/ib-fault/retry-exceeded.yaml:1: the id 'retry-exceeded' is taken"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const RuleFolder folder;
    folder.Write(row.file, row.text);
    const std::vector<std::string> errors = folder.Errors();
    CAPTURE(errors);
    CHECK(std::any_of(errors.begin(), errors.end(),
                      [&](const std::string& error) { return error.starts_with(row.error); }));
  }
  for (const auto& [file, text] : {std::pair(place, std::string(kFinding)),
                                   std::pair(std::string("findings/stack-at-other-work.yaml"), stack + kinds)}) {
    const RuleFolder folder;
    folder.Write(file, text);
    const std::vector<std::string> errors = folder.Errors();
    CAPTURE(file, errors);
    CHECK(errors.empty());
  }
}

TEST_CASE("a finding without its file, and a word that no text uses, are named", "[rules]") {
  const RuleFolder folder;
  folder.Write("findings/ib-fault/call-divergence.yaml", kFinding);
  const auto loaded = folder.Load();
  REQUIRE(std::holds_alternative<RuleBook>(loaded));
  std::vector<std::string> errors;
  for (const Error& error : CheckFindings(std::get<RuleBook>(loaded))) errors.push_back(error.message);
  const auto has = [&](const std::string& message) {
    return std::find(errors.begin(), errors.end(), message) != errors.end();
  };
  CHECK(has("no file for the finding 'rank-absent' of the detector 'rank-absent'"));
  CHECK(has("the word 'other-call' of the detector is not used"));
  CHECK_FALSE(has("the word 'number' of the detector is not used"));
}

TEST_CASE("only names in braces are words", "[rules]") {
  const auto words = [](std::string_view text) {
    std::string out;
    for (const TextPart& part : PartsOf(text))
      out += part.word ? "<" + std::string(part.text) + ">" : std::string(part.text);
    return out;
  };
  CHECK(words("{a} was {b-2}{c}.") == "<a> was <b-2><c>.");
  CHECK(words("awk '{print $1}' {} {A} {a b} {{a}} {a") == "awk '{print $1}' {} {A} {a b} {<a>} {a");
  CHECK(words("").empty());
}

TEST_CASE("all mistakes come at once", "[rules]") {
  const RuleFolder folder;
  folder.Write("signatures/ib-fault/a.yaml", Replaced(kGood, "decisive", "sure"));
  folder.Write("symptoms/b.yaml", "colour: red\n");
  CHECK(folder.Errors().size() >= 5);
  folder.Remove("causes.yaml");
  CHECK_FALSE(folder.Errors().empty());
}

TEST_CASE("a rule of the same id replaces that of the base", "[rules]") {
  const RuleFolder folder;
  const auto base = folder.Load();
  REQUIRE(std::holds_alternative<RuleBook>(base));
  folder.Remove("causes.yaml");
  folder.Remove("symptoms/remote-error.yaml");
  folder.Write("signatures/ib-fault/retry-exceeded.yaml", Replaced(kGood, "gave up", "gave up early"));
  const auto loaded = folder.Load(&std::get<RuleBook>(base));
  REQUIRE(std::holds_alternative<RuleBook>(loaded));
  const RuleBook& book = std::get<RuleBook>(loaded);
  CHECK(book.rules.size() == 2);
  CHECK(book.FindRule("retry-exceeded")->summary == "A queue pair gave up early.");
  CHECK(book.FindRule("remote-error") != nullptr);
  CHECK(book.causes.size() == 1);
}

TEST_CASE("a folder that is not there is an error", "[rules]") {
  const auto loaded = LoadRules("/nonexistent/rules", nullptr);
  REQUIRE(std::holds_alternative<RuleErrors>(loaded));
  CHECK(std::get<RuleErrors>(loaded).front().where == "/nonexistent/rules");
}

TEST_CASE("the catalogues of numbered errors name a source, an action and a known cause", "[rules]") {
  const auto loaded = LoadRules(INQUEST_SOURCE_DIR "/rules", nullptr);
  REQUIRE(std::holds_alternative<RuleBook>(loaded));
  const RuleBook& book = std::get<RuleBook>(loaded);
  CHECK(book.xids.size() >= 80);
  CHECK(book.sxids.size() >= 60);
  for (const auto* codes : {&book.xids, &book.sxids})
    for (const ErrorCode& code : *codes) {
      CAPTURE(code.number);
      CHECK(code.meaning.ends_with('.'));
      CHECK_FALSE(code.action.empty());
      CHECK_FALSE(code.source.empty());
      CHECK(book.FindCause(code.cause) != nullptr);
      CHECK((code.confidence > 0 && code.confidence < 1));
    }
  struct Row {
    int xid;
    const char* cause;
    ErrorCode::Role role;
    Strength strength;
  };
  static const Row kRows[] = {{31, "cuda-kernel-fault", ErrorCode::Role::kCause, Strength::kDecisive},
                              {43, "cuda-kernel-fault", ErrorCode::Role::kFollows, Strength::kHint},
                              {45, "cuda-kernel-fault", ErrorCode::Role::kFollows, Strength::kHint},
                              {54, "thermal-power", ErrorCode::Role::kCause, Strength::kDecisive},
                              {63, "gpu-fault", ErrorCode::Role::kNotice, Strength::kHint},
                              {74, "nvlink-fault", ErrorCode::Role::kCause, Strength::kDecisive},
                              {79, "gpu-fault", ErrorCode::Role::kCause, Strength::kDecisive},
                              {80, "pcie-fault", ErrorCode::Role::kCause, Strength::kSupporting},
                              {119, "gpu-fault", ErrorCode::Role::kCause, Strength::kDecisive}};
  for (const Row& row : kRows) {
    CAPTURE(row.xid);
    const ErrorCode* code = book.FindXid(row.xid);
    REQUIRE(code != nullptr);
    CHECK(code->cause == row.cause);
    CHECK(code->role == row.role);
    CHECK(StrengthOf(*code) == row.strength);
  }
  CHECK(book.FindXid(-1) == nullptr);
  CHECK(book.FindXid(20034) == nullptr);
  REQUIRE(book.FindSxid(20034) != nullptr);
  CHECK(book.FindSxid(20034)->cause == "nvlink-fault");
}

TEST_CASE("a catalogue of one's own adds and replaces rows; its mistakes are named", "[rules]") {
  constexpr std::string_view kRow =
      "- number: 79\n  meaning: Gone.\n  class: hardware\n  role: cause\n  cause: ib-fault\n  action: Replace it.\n  "
      "source: me\n";
  const RuleFolder folder;
  folder.Write("xids.yaml", std::string(kRow));
  const auto loaded = folder.Load();
  REQUIRE(std::holds_alternative<RuleBook>(loaded));
  const RuleBook& book = std::get<RuleBook>(loaded);
  REQUIRE(book.FindXid(79) != nullptr);
  CHECK(book.FindXid(79)->confidence == 0.93);
  folder.Write("xids.yaml", Replaced(kRow, "79", "80"));
  const auto more = folder.Load(&book);
  REQUIRE(std::holds_alternative<RuleBook>(more));
  CHECK(std::get<RuleBook>(more).xids.size() == 2);
  folder.Write("xids.yaml", std::string(kRow) + std::string(kRow));
  CHECK(folder.Errors() == std::vector<std::string>{"xids.yaml:8: number 79 stands twice"});
  folder.Write("xids.yaml", Replaced(Replaced(kRow, "hardware", "hardwear"), "ib-fault", "no-cause"));
  CHECK(folder.Errors() ==
        std::vector<std::string>{"xids.yaml:3: bad class 'hardwear'", "xids.yaml:5: 'no-cause' is no cause"});
}

TEST_CASE("a step is written once, and its mistakes are named", "[rules]") {
  constexpr std::string_view kSteps =
      "drain:\n  - text: Drain it.\n    command: drain {host}\n  - under: lsf\n    text: Close it.\n    command: close "
      "{host}\n";
  const std::string with_step = Replaced(kGood, "references", "remedies:\n  - step: drain\nreferences");
  const RuleFolder folder;
  folder.Write("steps.yaml", kSteps);
  folder.Write("signatures/ib-fault/retry-exceeded.yaml", with_step);
  const auto loaded = folder.Load();
  REQUIRE(std::holds_alternative<RuleBook>(loaded));
  const Rule* rule = std::get<RuleBook>(loaded).FindRule("retry-exceeded");
  REQUIRE((rule != nullptr && rule->remedies.size() == 1));
  CHECK(Under("", rule->remedies[0]).command == "drain {host}");
  CHECK(Under("slurm", rule->remedies[0]).command == "drain {host}");
  CHECK(Under("lsf", rule->remedies[0]).command == "close {host}");
  struct Row {
    std::string name, steps, rule;
    std::vector<std::string> errors;
  };
  const std::string place = "signatures/ib-fault/retry-exceeded.yaml";
  const Row rows[] = {
      {"unknown step",
       std::string(kSteps),
       Replaced(with_step, "step: drain", "step: drian"),
       {place + ":8: no step 'drian'"}},
      {"a step and a text",
       std::string(kSteps),
       Replaced(with_step, "step: drain\n", "step: drain\n    text: Look.\n"),
       {place + ":9: 'text' beside a step"}},
      {"unknown environment", Replaced(kSteps, "lsf", "lfs"), with_step, {"steps.yaml:4: bad under 'lfs'"}},
      {"two ways for everywhere",
       Replaced(kSteps, "- under: lsf\n    text", "- text"),
       with_step,
       {"steps.yaml:4: no 'under'"}},
      {"no way", std::string(kSteps) + "reset:\n", with_step, {"steps.yaml:7: the step 'reset' has no way"}},
      {"a list", "- drain\n", with_step, {"steps.yaml:1: not a mapping of steps", place + ":8: no step 'drain'"}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    folder.Write("steps.yaml", row.steps);
    folder.Write(place, row.rule);
    CHECK(folder.Errors() == row.errors);
  }
}

TEST_CASE("packing and unpacking gives the same book", "[rules]") {
  for (const bool whole : {false, true}) {
    const RuleFolder folder;
    const auto loaded = whole ? LoadRules(INQUEST_SOURCE_DIR "/rules", nullptr) : folder.Load();
    REQUIRE(std::holds_alternative<RuleBook>(loaded));
    const RuleBook& book = std::get<RuleBook>(loaded);
    const std::string bytes = Serialize(book);
    const RuleBook back = Deserialize(bytes);
    CHECK(Serialize(back) == bytes);
    REQUIRE(back.rules.size() == book.rules.size());
    CHECK(back.rules.front().text == book.rules.front().text);
    CHECK(back.rules.front().confidence == book.rules.front().confidence);
    CHECK(back.causes.size() == book.causes.size());
    CHECK(back.steps.size() == book.steps.size());
    CHECK(back.findings.size() == book.findings.size());
    CHECK(back.xids.size() == book.xids.size());
    CHECK(back.sxids.size() == book.sxids.size());
  }
}

}  // namespace rule_book_test
