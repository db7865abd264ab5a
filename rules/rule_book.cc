// Reads a folder of rules, with every mistake named at once.
#include "rules/rule_book.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <tuple>
#include <utility>

#include "core/pattern.h"
#include "rules/farewell.h"
#include "rules/finding_files.h"
#include "rules/yaml_mapping.h"

namespace inquest {
namespace {

namespace fs = std::filesystem;

constexpr Word<Component> kComponents[] = {
    {"any", Component::kAny}, {"nccl", Component::kNccl}, {"c10", Component::kC10}, {"kernel", Component::kKernel}};
constexpr Word<Rule::Blames> kBlames[] = {{"nobody", Rule::Blames::kNobody},
                                          {"printer", Rule::Blames::kPrinter},
                                          {"captured", Rule::Blames::kCaptured},
                                          {"host", Rule::Blames::kHost}};
constexpr Word<Rule::Kind> kFolders[] = {{"signatures", Rule::Kind::kSignature},
                                         {"symptoms", Rule::Kind::kSymptom},
                                         {"phases", Rule::Kind::kPhase},
                                         {"endings", Rule::Kind::kEnding}};
constexpr Word<ErrorCode::Class> kClasses[] = {{"application", ErrorCode::Class::kApplication},
                                               {"driver", ErrorCode::Class::kDriver},
                                               {"hardware", ErrorCode::Class::kHardware},
                                               {"nvlink", ErrorCode::Class::kNvlink},
                                               {"firmware", ErrorCode::Class::kFirmware}};
constexpr Word<ErrorCode::Role> kRoles[] = {
    {"cause", ErrorCode::Role::kCause}, {"follows", ErrorCode::Role::kFollows}, {"notice", ErrorCode::Role::kNotice}};
constexpr Word<ErrorCode::Need> kNeeds[] = {
    {"restart-job", ErrorCode::Need::kRestartJob},   {"reset-gpu", ErrorCode::Need::kResetGpu},
    {"reset-switch", ErrorCode::Need::kResetSwitch}, {"reboot-node", ErrorCode::Need::kRebootNode},
    {"drain-node", ErrorCode::Need::kDrainNode},     {"return-part", ErrorCode::Need::kReturnPart}};
constexpr std::string_view kFindingsFolder = "findings";
constexpr std::string_view kCatalogues[] = {"causes.yaml", "farewell.yaml", "steps.yaml", "sxids.yaml", "xids.yaml"};
constexpr Word<CauseLayer> kLayers[] = {{"program", CauseLayer::kProgram}, {"device", CauseLayer::kDevice},
                                        {"host", CauseLayer::kHost},       {"network", CauseLayer::kNetwork},
                                        {"nccl", CauseLayer::kNccl},       {"none", CauseLayer::kNone}};
constexpr std::string_view kScopes[] = {"last-line"};
/// A phase's kind: what it tells, and of work which.
struct PhaseKind {
  Rule::Says says = Rule::Says::kNothing;
  Activity at = Activity::kNone;
};
constexpr PhaseKind Work(Activity at) { return {Rule::Says::kWork, at}; }
constexpr Word<PhaseKind> kPhaseKinds[] = {{"bar", Work(Activity::kBar)},
                                           {"begins", {Rule::Says::kBegins}},
                                           {"data-preparation", Work(Activity::kDataPreparation)},
                                           {"checkpoint", Work(Activity::kCheckpoint)},
                                           {"compile", Work(Activity::kCompile)},
                                           {"done", Work(Activity::kDone)},
                                           {"epilog", {Rule::Says::kEpilog}},
                                           {"evaluation", Work(Activity::kEvaluation)},
                                           {"gave-up", {Rule::Says::kGaveUp}},
                                           {"goal", {Rule::Says::kGoal}},
                                           {"grumble", {Rule::Says::kGrumble}},
                                           {"heading", {Rule::Says::kHeading}},
                                           {"identity", {Rule::Says::kIdentity}},
                                           {"joining", Work(Activity::kJoining)},
                                           {"loading", Work(Activity::kLoading)},
                                           {"names", {Rule::Says::kNames}},
                                           {"over", {Rule::Says::kOver}},
                                           {"progress", Work(Activity::kProgress)},
                                           {"recovered", Work(Activity::kRecovered)},
                                           {"restart", {Rule::Says::kRestart}},
                                           {"serving", Work(Activity::kServing)},
                                           {"start", {Rule::Says::kStart}},
                                           {"training", Work(Activity::kTraining)}};

constexpr std::string_view kTraits[] = {"absence", "aftermath", "by-errno",  "lost-peer", "raised",
                                        "set-up",  "stop",      "transport", "wrong-path"};
constexpr Word<EndingKind> kEndingKinds[] = {
    {"figures", EndingKind::kFigures},      {"launcher", EndingKind::kLauncher},   {"leaving", EndingKind::kLeaving},
    {"saved-once", EndingKind::kSavedOnce}, {"scheduler", EndingKind::kScheduler}, {"scores", EndingKind::kScores},
    {"shell", EndingKind::kShell},          {"work", EndingKind::kWork},           {"worker", EndingKind::kWorker}};

// What a process does to itself is told by the process; a device's trouble by its host; the rest needs to be said.
Rule::Blames DefaultBlame(const Rule& rule) {
  static constexpr std::string_view kOwnDoing[] = {"cuda-oom",     "cuda-kernel-fault", "python-exception",
                                                   "native-crash", "shm-exhausted",     "resource-limit",
                                                   "storage-stall"};
  static constexpr std::string_view kHosts[] = {"gpu-fault",     "nvlink-fault",  "fabric-manager",      "pcie-fault",
                                                "thermal-power", "p2p-transport", "version-incompatible"};
  if (rule.kind != Rule::Kind::kSignature) return Rule::Blames::kNobody;
  if (std::find(std::begin(kOwnDoing), std::end(kOwnDoing), rule.cause) != std::end(kOwnDoing))
    return Rule::Blames::kPrinter;
  if (std::find(std::begin(kHosts), std::end(kHosts), rule.cause) != std::end(kHosts)) return Rule::Blames::kHost;
  return Rule::Blames::kNobody;
}

std::string_view DefaultCause(ErrorCode::Class origin) {
  switch (origin) {
    case ErrorCode::Class::kApplication:
      return "cuda-kernel-fault";
    case ErrorCode::Class::kNvlink:
      return "nvlink-fault";
    case ErrorCode::Class::kDriver:
    case ErrorCode::Class::kHardware:
    case ErrorCode::Class::kFirmware:
      break;
  }
  return "gpu-fault";
}

double DefaultConfidence(const ErrorCode& code) {
  if (code.role != ErrorCode::Role::kCause) return 0.3;
  switch (code.origin) {
    case ErrorCode::Class::kApplication:
      return 0.8;
    case ErrorCode::Class::kDriver:
      return 0.6;
    case ErrorCode::Class::kNvlink:
      return 0.86;
    case ErrorCode::Class::kHardware:
    case ErrorCode::Class::kFirmware:
      break;
  }
  return 0.93;
}

double DefaultConfidence(Strength strength) {
  switch (strength) {
    case Strength::kDecisive:
      return 0.9;
    case Strength::kSupporting:
      return 0.6;
    case Strength::kHint:
      break;
  }
  return 0.35;
}

/// Reads the files of one folder into a book.
class Loader {
 public:
  explicit Loader(fs::path dir) : dir_(std::move(dir)) {}

  std::variant<RuleBook, RuleErrors> Load(const RuleBook* base) {
    const std::vector<fs::path> files = ListFiles();
    if (errors_.empty()) {
      ReadSteps(base);
      ReadCauses(base);
    }
    if (errors_.empty()) book_.xids = ReadCodes("xids.yaml", base != nullptr ? base->xids : std::vector<ErrorCode>());
    if (errors_.empty())
      book_.sxids = ReadCodes("sxids.yaml", base != nullptr ? base->sxids : std::vector<ErrorCode>());
    if (errors_.empty()) ReadFarewell(base);
    for (const fs::path& file : files) {
      if (std::ranges::find(kCatalogues, file.string()) != std::end(kCatalogues)) continue;
      *file.begin() == kFindingsFolder ? ReadFindingOf(file) : ReadRule(file);
    }
    if (base != nullptr) {
      for (const Rule& rule : base->rules) {
        if (!ids_.contains(rule.id)) book_.rules.push_back(rule);
      }
      for (const FindingRule& rule : base->findings) {
        if (!ids_.contains(rule.id)) book_.findings.push_back(rule);
      }
    }
    std::ranges::sort(book_.findings, {}, &FindingRule::id);
    std::sort(book_.rules.begin(), book_.rules.end(), [](const Rule& a, const Rule& b) {
      return std::pair(a.kind, std::string_view(a.id)) < std::pair(b.kind, std::string_view(b.id));
    });
    CheckNames();
    if (!errors_.empty()) return std::move(errors_);
    return std::move(book_);
  }

 private:
  std::vector<fs::path> ListFiles() {
    std::vector<fs::path> files;
    std::error_code error;
    fs::recursive_directory_iterator walk(dir_, error);
    for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) {
      const fs::path extension = walk->path().extension();
      const fs::path relative = walk->path().lexically_relative(dir_);
      if (extension == ".yml") {
        errors_.push_back({"rules are named .yaml", "rename the file", (dir_ / relative).string()});
      } else if (extension == ".yaml") {
        files.push_back(relative);
      }
    }
    if (error)
      errors_.push_back({"cannot read the folder of rules: " + error.message(), "give a folder laid out as rules/ is",
                         dir_.string()});
    std::sort(files.begin(), files.end());
    return files;
  }

  YAML::Node ReadYaml(const fs::path& relative) {
    const std::string path = (dir_ / relative).string();
    std::ifstream stream(path, std::ios::binary);
    std::stringstream text;
    if (!stream || !(text << stream.rdbuf())) {
      errors_.push_back({"cannot read the file, or it is empty", "write a rule into it or remove it", path});
      return YAML::Node(YAML::NodeType::Undefined);
    }
    try {
      return YAML::Load(text.str());
    } catch (const YAML::Exception& exception) {
      errors_.push_back({"not YAML: " + exception.msg, "put regular expressions and samples into single quotes",
                         At(path, exception.mark.line + 1)});
      return YAML::Node(YAML::NodeType::Undefined);
    }
  }

  /// `name: [one way, another under: ...]`. A step that `base` has is replaced.
  void ReadSteps(const RuleBook* base) {
    if (base != nullptr) book_.steps = base->steps;
    std::error_code error;
    if (!fs::exists(dir_ / "steps.yaml", error)) return;
    const YAML::Node list = ReadYaml("steps.yaml");
    const std::string path = (dir_ / "steps.yaml").string();
    if (!list.IsDefined()) return;
    if (!list.IsMap()) {
      errors_.push_back({"not a mapping of steps", "write 'name:' and below it '- text: ...'", At(path, 1)});
      return;
    }
    for (const auto& pair : list) {
      AdvisedStep step{pair.first.Scalar(), {}};
      const Mapping row(list, path, pair.first.Mark().line + 1, &errors_);
      std::vector<Remedy> ways;
      for (const Mapping& item :
           row.Items(step.name, {"under", "text", "command", "kind", "run_on", "root", "destructive"})) {
        ways.push_back(item.ReadRemedy());
        ways.back().under = item.OneOf("under", ways.size() > 1 ? Need::kRequired : Need::kOptional, Environments());
      }
      if (ways.empty()) {
        row.Complain(step.name, "the step '" + step.name + "' has no way", "write '- text: ...' below it");
        continue;
      }
      step.remedy = std::move(ways.front());
      step.remedy.otherwise.assign(std::make_move_iterator(ways.begin() + 1), std::make_move_iterator(ways.end()));
      const auto same = std::ranges::find(book_.steps, step.name, &AdvisedStep::name);
      if (same != book_.steps.end())
        *same = std::move(step);
      else
        book_.steps.push_back(std::move(step));
    }
  }

  void ReadCauses(const RuleBook* base) {
    if (base != nullptr) book_.causes = base->causes;
    std::error_code error;
    if (base != nullptr && !fs::exists(dir_ / "causes.yaml", error)) return;
    const YAML::Node list = ReadYaml("causes.yaml");
    const std::string path = (dir_ / "causes.yaml").string();
    if (!list.IsDefined()) return;
    if (!list.IsSequence()) {
      errors_.push_back({"not a list of causes", "write '- code: ...' for every cause", At(path, 1)});
      return;
    }
    std::set<std::string> codes;
    for (const YAML::Node& item : list) {
      const Mapping row(item, path, item.Mark().line + 1,
                        {"code", "layer", "title", "meaning", "retry", "traits", "remedies", "collect"}, &errors_);
      Cause cause{.code = row.Text("code", Need::kRequired),
                  .layer = row.Choose("layer", Need::kRequired, kLayers, CauseLayer::kNone),
                  .title = row.Text("title", Need::kRequired),
                  .meaning = row.Text("meaning", Need::kRequired),
                  .retry = row.Choose("retry", Need::kRequired, kRetries, Retry::kNo),
                  .remedies = row.Remedies("remedies", book_.steps),
                  .collect = row.List("collect"),
                  .traits = row.List("traits")};
      for (const std::string& trait : cause.traits)
        if (std::find(std::begin(kTraits), std::end(kTraits), trait) == std::end(kTraits))
          row.Complain("traits", "bad trait '" + trait + "'", "of " + Join(kTraits));
      if (!cause.code.empty() && !codes.insert(cause.code).second) {
        row.Complain("code", "cause '" + cause.code + "' stands twice", "a code is never reused; keep one row");
        continue;
      }
      const auto same = std::find_if(book_.causes.begin(), book_.causes.end(),
                                     [&](const Cause& other) { return other.code == cause.code; });
      if (same != book_.causes.end()) {
        *same = std::move(cause);
      } else {
        book_.causes.push_back(std::move(cause));
      }
    }
  }

  ErrorCode ReadCode(const YAML::Node& item, const std::string& path) {
    const Mapping row(item, path, item.Mark().line + 1,
                      {"number", "meaning", "class", "role", "cause", "confidence", "action", "needs", "source"},
                      &errors_);
    ErrorCode code;
    const auto number = [&](std::string_view key, Need need, auto fallback) {
      const std::string text = row.Text(key, need, "a number");
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), fallback);
      if (!text.empty() && (error != std::errc() || end != text.data() + text.size()))
        row.Complain(key, "bad " + std::string(key) + " '" + text + "'", "a number");
      return fallback;
    };
    code.number = number("number", Need::kRequired, std::uint64_t{0});
    code.meaning = row.Text("meaning", Need::kRequired, "say in one sentence what it reports");
    code.origin = row.Choose("class", Need::kRequired, kClasses, ErrorCode::Class::kDriver);
    code.role = row.Choose("role", Need::kRequired, kRoles, ErrorCode::Role::kNotice);
    code.cause = row.Text("cause", Need::kOptional);
    if (code.cause.empty()) code.cause = DefaultCause(code.origin);
    if (book_.FindCause(code.cause) == nullptr)
      row.Complain("cause", "'" + code.cause + "' is no cause", "use a code of causes.yaml");
    code.confidence = number("confidence", Need::kOptional, DefaultConfidence(code));
    code.action = row.Text("action", Need::kRequired, "say what to do");
    for (const std::string& word : row.List("needs")) {
      const auto need = std::ranges::find(kNeeds, word, &Word<ErrorCode::Need>::word);
      if (need == std::end(kNeeds))
        row.Complain("needs", "bad need '" + word + "'",
                     "of " + JoinWords(std::span<const Word<ErrorCode::Need>>(kNeeds)));
      else
        code.needs.push_back(need->value);
    }
    code.source = row.Text("source", Need::kRequired, "say where the meaning comes from");
    return code;
  }

  /// A catalogue of numbered errors. Absent: that of `base`. A number that `base` has is replaced.
  std::vector<ErrorCode> ReadCodes(const std::string& file, std::vector<ErrorCode> codes) {
    std::error_code error;
    if (!fs::exists(dir_ / file, error)) return codes;
    const YAML::Node list = ReadYaml(file);
    if (!list.IsDefined()) return codes;
    const std::string path = (dir_ / file).string();
    if (!list.IsSequence())
      errors_.push_back({"not a list of numbered errors", "write '- number: ...' for every one", At(path, 1)});
    std::set<std::uint64_t> own;
    for (const YAML::Node& item : list) {
      ErrorCode code = ReadCode(item, path);
      if (!own.insert(code.number).second)
        errors_.push_back({"number " + std::to_string(code.number) + " stands twice", "keep one row",
                           At(path, item.Mark().line + 1)});
      const auto same = std::ranges::find(codes, code.number, &ErrorCode::number);
      if (same != codes.end())
        *same = std::move(code);
      else
        codes.push_back(std::move(code));
    }
    std::ranges::sort(codes, {}, &ErrorCode::number);
    return codes;
  }

  /// The signs of a good end. Absent: those of `base`. Weights are fitted together, so a table of one's own replaces
  /// all.
  void ReadFarewell(const RuleBook* base) {
    static constexpr char kFile[] = "farewell.yaml";
    if (base != nullptr) book_.farewell = base->farewell;
    std::error_code error;
    if (!fs::exists(dir_ / kFile, error)) return;
    const YAML::Node list = ReadYaml(kFile);
    if (!list.IsDefined()) return;
    const std::string path = (dir_ / kFile).string();
    if (!list.IsSequence()) {
      errors_.push_back({"not a list of signs", "write '- sign: ...' for every one", At(path, 1)});
      return;
    }
    book_.farewell.clear();
    for (const YAML::Node& item : list) {
      const Mapping row(item, path, item.Mark().line + 1, {"sign", "text", "unless", "last", "before"}, &errors_);
      FarewellSign sign;
      sign.name = row.Text("sign", Need::kRequired);
      sign.text = row.Text("text", Need::kOptional);
      sign.unless = row.Text("unless", Need::kOptional);
      sign.last = row.Weight("last").value_or(0);
      sign.before = row.Weight("before").value_or(0);
      if (std::ranges::find(book_.farewell, sign.name, &FarewellSign::name) != book_.farewell.end())
        row.Complain("sign", "the sign '" + sign.name + "' stands twice", "keep one row");
      if (sign.text.empty() != IsFarewellRelation(sign.name))
        row.Complain("sign",
                     sign.text.empty() ? "no text, and '" + sign.name + "' is no relation between lines"
                                       : "'" + sign.name + "' is a relation between lines, and has a text",
                     "rules/farewell.cc knows the relations");
      for (const char* const key : {"unless", "before"})
        if (sign.text.empty() && row.Has(key))
          row.Complain(key, "'" + std::string(key) + "' of a relation", "a relation has one weight, 'last'");
      for (const auto& [key, text] : {std::pair("text", &sign.text), std::pair("unless", &sign.unless)})
        if (const auto compiled = Pattern::Compile(*text); !compiled)
          row.Complain(key, "bad expression: " + compiled.error().message, "RE2's syntax");
      book_.farewell.push_back(std::move(sign));
    }
  }

  /// Kind and cause, by the folder.
  std::optional<std::pair<Rule::Kind, std::string>> Place(const fs::path& relative) {
    std::vector<std::string> parts;
    for (const fs::path& part : relative) parts.push_back(part.string());
    for (const Word<Rule::Kind>& folder : kFolders) {
      if (parts[0] != folder.word) continue;
      const bool signature = folder.value == Rule::Kind::kSignature;
      if (parts.size() != (signature ? 3U : 2U)) break;
      if (signature && book_.FindCause(parts[1]) == nullptr) {
        errors_.push_back({"the folder '" + parts[1] + "' is no cause", "use a code of causes.yaml",
                           At((dir_ / relative).string(), 1)});
      }
      return std::pair(folder.value, signature ? parts[1] : std::string());
    }
    errors_.push_back({"a rule does not belong into this folder",
                       "signatures/<cause>/, findings/<cause>/, symptoms/, phases/ or endings/",
                       At((dir_ / relative).string(), 1)});
    return std::nullopt;
  }

  void ReadRule(const fs::path& relative) {
    const auto place = Place(relative);
    const YAML::Node node = ReadYaml(relative);
    if (!place || !node.IsDefined()) return;
    Rule rule;
    std::tie(rule.kind, rule.cause) = *place;
    rule.id = relative.stem().string();
    rule.file = (dir_ / relative).string();
    const Mapping map(
        node, rule.file, 1,
        {"summary", "text", "where", "strength", "confidence", "kind", "scope", "words", "culprit", "alone",
         "of_parent", "tells_death", "explains", "remedies", "own_advice", "collect", "retry", "references", "samples"},
        &errors_);
    if (!node.IsMap()) return;
    ReadId(rule.id, rule.file);
    ReadText(rule, map);
    ReadWeight(rule, map);
    ReadAdvice(rule, map);
    ReadSamples(rule, map);
    book_.rules.push_back(std::move(rule));
  }

  /// `findings/<cause>/<id>.yaml`, or without a cause where the detector tells which.
  void ReadFindingOf(const fs::path& relative) {
    const std::vector<fs::path> parts(relative.begin(), relative.end());
    const std::string path = (dir_ / relative).string();
    if (parts.size() > 3) {
      errors_.push_back({"a finding does not belong into this folder",
                         "findings/<cause>/, or findings/ where its cause is not always the same", At(path, 1)});
      return;
    }
    const std::string cause = parts.size() == 3 ? parts[1].string() : std::string();
    if (!cause.empty() && book_.FindCause(cause) == nullptr)
      errors_.push_back({"the folder '" + cause + "' is no cause", "use a code of causes.yaml", At(path, 1)});
    const YAML::Node node = ReadYaml(relative);
    if (!node.IsDefined()) return;
    FindingFile read =
        ReadFinding(node, {.id = relative.stem().string(), .cause = cause, .file = path}, book_.steps, &errors_);
    names_.insert(names_.end(), read.names.begin(), read.names.end());
    ReadId(read.rule.id, path);
    book_.findings.push_back(std::move(read.rule));
  }

  void ReadId(const std::string& id, const std::string& file) {
    const bool kebab = id.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == std::string::npos;
    if (!kebab)
      errors_.push_back({"the id '" + id + "' is not kebab-case", "name the file with a-z, 0-9 and -", At(file, 1)});
    const auto [first, added] = ids_.emplace(id, file);
    if (!added)
      errors_.push_back({"the id '" + id + "' is taken by " + first->second, "rename one of the files", At(file, 1)});
  }

  void ReadText(Rule& rule, const Mapping& map) {
    rule.summary = map.Text("summary", Need::kRequired, "say in one sentence what happened");
    if (!rule.summary.empty() && !rule.summary.ends_with('.'))
      map.Complain("summary", "the summary does not end in a full stop", "write one plain sentence");
    if (map.Has("where"))
      rule.component =
          map.Child("where", {"component"}).Choose("component", Need::kRequired, kComponents, Component::kAny);
    rule.text = map.Text("text", Need::kRequired, "give the expression to search for");
    rule.blames = map.Choose("culprit", Need::kOptional, kBlames, DefaultBlame(rule));
    if (rule.text.empty()) return;
    if (rule.text.starts_with(".*") || rule.text.ends_with(".*"))
      map.Complain("text", "the expression has '.*' at an end", "leave it out: the search is unanchored");
    const Result<Pattern> pattern = Pattern::Compile(rule.text);
    if (!pattern) {
      map.Complain(
          "text", pattern.error().message,
          pattern.error().hint.empty() ? "RE2 has no look-around and no back-references" : pattern.error().hint);
      return;
    }
    const std::vector<std::string>& names = pattern->group_names();
    const auto has = [&](std::string_view name) { return std::find(names.begin(), names.end(), name) != names.end(); };
    if (rule.blames == Rule::Blames::kCaptured && !has("rank") && !has("ranks") && !has("host")) {
      map.Complain("culprit", "culprit 'captured', but the text has no group rank, ranks or host",
                   "name a group (?P<rank>...)");
    }
  }

  void ReadWeight(Rule& rule, const Mapping& map) {
    const bool signature = rule.kind == Rule::Kind::kSignature;
    if (!signature && map.Has("strength"))
      map.Complain("strength", "only signatures have a strength", "remove the key");
    rule.strength = map.Choose("strength", signature ? Need::kRequired : Need::kOptional, kStrengths, Strength::kHint);
    rule.confidence = map.Fraction("confidence").value_or(DefaultConfidence(rule.strength));
    if (!signature && map.Has("alone"))
      map.Complain("alone", "only signatures and findings decide alone", "remove the key");
    rule.alone = map.Flag("alone");
    const bool phase = rule.kind == Rule::Kind::kPhase;
    const bool ending = rule.kind == Rule::Kind::kEnding;
    if (!phase && !ending && map.Has("kind"))
      map.Complain("kind", "only phases and endings have a kind", "remove the key");
    if (ending) rule.ending = map.Choose("kind", Need::kRequired, kEndingKinds, EndingKind::kWorker);
    const auto [says, at] =
        ending ? PhaseKind() : map.Choose("kind", phase ? Need::kRequired : Need::kOptional, kPhaseKinds, {});
    rule.says = says;
    rule.at = at;
    const bool scoped = phase || ending;
    if (!scoped && map.Has("scope")) map.Complain("scope", "only phases and endings have a scope", "remove the key");
    rule.scope = map.OneOf("scope", Need::kOptional, kScopes);
    rule.words = map.List("words");
    if (!rule.words.empty() && rule.scope.empty() && rule.at != Activity::kTraining)
      map.Complain("words", "only rules for last lines have words: the others are found by the sieve",
                   "remove the key");
    rule.explains = map.List("explains");
    for (const std::string& name : rule.explains) names_.push_back({"explains", name, map.Where("explains")});
  }

  void ReadAdvice(Rule& rule, const Mapping& map) {
    rule.of_parent = map.Flag("of_parent");
    rule.tells_death = map.Flag("tells_death");
    rule.remedies = map.Remedies("remedies", book_.steps);
    rule.own_advice = map.Flag("own_advice");
    if (rule.own_advice && rule.remedies.empty())
      map.Complain("own_advice", "'own_advice' without remedies", "say what to do, or remove the key");
    rule.collect = map.List("collect");
    rule.retry = map.Choose("retry", Need::kOptional, kRetries, Retry::kUnsaid);
    rule.references = map.List("references");
    if (rule.references.empty())
      map.Complain("references", "no reference", "say who prints it: program, file, function");
  }

  void ReadSamples(Rule& rule, const Mapping& map) {
    if (!map.Has("samples")) {
      map.Complain("", "no 'samples'", "add raw lines under 'match' and the nearest misses under 'differ'");
      return;
    }
    const Mapping samples = map.Child("samples", {"match", "differ"});
    rule.match = samples.List("match");
    rule.differ = samples.List("differ");
    if (rule.match.empty()) samples.Complain("match", "no sample under 'match'", "paste a raw line that must match");
    if (rule.differ.empty())
      samples.Complain("differ", "no sample under 'differ'", "add the nearest line that must not match");
  }

  void CheckNames() {
    for (const NameElsewhere& named : names_) {
      if (named.key == "refuted_by" && (named.name == kGoodEnd || named.name == kOnlyBetweenHosts)) continue;
      const bool cause = book_.FindCause(named.name) != nullptr;
      if (cause ||
          (named.key != "cause" && (book_.FindRule(named.name) != nullptr || book_.FindFinding(named.name) != nullptr)))
        continue;
      errors_.push_back(
          {"'" + named.key + "' names nothing known: '" + named.name + "'",
           named.key == "cause" ? "use a code of causes.yaml" : "use the id of a rule or finding, or a cause code",
           named.where});
    }
  }

  fs::path dir_;
  RuleBook book_;
  RuleErrors errors_;
  std::map<std::string, std::string> ids_;  ///< id -> file
  std::vector<NameElsewhere> names_;
};

}  // namespace

const Rule* RuleBook::FindRule(std::string_view id) const {
  for (const Word<Rule::Kind>& folder : kFolders) {
    const auto key = [](const Rule& rule) { return std::pair(rule.kind, std::string_view(rule.id)); };
    const auto found = std::ranges::lower_bound(rules, std::pair(folder.value, id), {}, key);
    if (found != rules.end() && found->kind == folder.value && found->id == id) return &*found;
  }
  return nullptr;
}

const FindingRule* RuleBook::FindFinding(std::string_view id) const {
  const auto found =
      std::ranges::lower_bound(findings, id, {}, [](const FindingRule& rule) { return std::string_view(rule.id); });
  return found != findings.end() && found->id == id ? &*found : nullptr;
}

std::string_view Name(CauseLayer layer) {
  const auto word = std::ranges::find(kLayers, layer, &Word<CauseLayer>::value);
  return word == std::end(kLayers) ? std::string_view() : word->word;
}
std::string_view Name(ErrorCode::Need need) { return kNeeds[static_cast<std::size_t>(need)].word; }
std::string_view Name(ErrorCode::Class origin) { return kClasses[static_cast<std::size_t>(origin)].word; }

Strength StrengthOf(const ErrorCode& code) {
  if (code.role != ErrorCode::Role::kCause || code.confidence < 0.45) return Strength::kHint;
  return code.confidence < 0.8 ? Strength::kSupporting : Strength::kDecisive;
}

namespace {

const ErrorCode* FindCode(const std::vector<ErrorCode>& codes, int number) {
  const auto wanted = static_cast<std::uint64_t>(number);
  const auto found = std::ranges::lower_bound(codes, wanted, {}, &ErrorCode::number);
  return number >= 0 && found != codes.end() && found->number == wanted ? &*found : nullptr;
}

}  // namespace

const ErrorCode* RuleBook::FindXid(int number) const { return FindCode(xids, number); }
const ErrorCode* RuleBook::FindSxid(int number) const { return FindCode(sxids, number); }

const Cause* RuleBook::FindCause(std::string_view code) const {
  const auto found = std::ranges::find(causes, code, &Cause::code);
  return found == causes.end() ? nullptr : &*found;
}

bool RuleBook::CauseIs(std::string_view code, std::string_view trait) const {
  const Cause* cause = FindCause(code);
  return cause != nullptr && cause->Is(trait);
}

CauseLayer RuleBook::LayerOf(std::string_view code) const {
  const Cause* cause = FindCause(code);
  return cause == nullptr ? CauseLayer::kUnknown : cause->layer;
}

std::variant<RuleBook, RuleErrors> LoadRules(const std::string& dir, const RuleBook* base) {
  try {
    return Loader(dir).Load(base);
  } catch (const YAML::Exception& exception) {  // yaml-cpp throws on odd nodes too, not only while parsing
    return RuleErrors{{"cannot read the rules: " + exception.msg, "", At(dir, exception.mark.line + 1)}};
  }
}

}  // namespace inquest
