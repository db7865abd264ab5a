// Reads the files under rules/findings/, and holds them against the detectors whose findings they are.
#include "rules/finding_files.h"

#include "rules/detectors.h"
#include "rules/yaml_mapping.h"

namespace inquest {
namespace {

constexpr Word<FindingRule::Blames> kFindingBlames[] = {
    {"nobody", FindingRule::Blames::kNobody}, {"rank", FindingRule::Blames::kRank},
    {"host", FindingRule::Blames::kHost},     {"device", FindingRule::Blames::kDevice},
    {"link", FindingRule::Blames::kLink},     {"process-group", FindingRule::Blames::kProcessGroup}};

const Detector* FindDetector(std::string_view id) {
  for (const Detector* detector : Detectors())
    if (detector->id == id) return detector;
  return nullptr;
}

const FindingRow* FindRow(const Detector& detector, std::string_view id) {
  const auto found = std::find_if(detector.findings.begin(), detector.findings.end(),
                                  [&](const FindingRow& row) { return row.id == id; });
  return found == detector.findings.end() ? nullptr : &*found;
}

class Reader {
 public:
  Reader(const Mapping& map, std::span<const AdvisedStep> steps, FindingFile& out)
      : map_(map), steps_(steps), out_(out) {}

  void Read() {
    FindingRule& rule = out_.rule;
    rule.summary = map_.Text("summary", Need::kRequired, "say in one sentence what holds");
    if (!rule.summary.empty() && !rule.summary.ends_with('.'))
      map_.Complain("summary", "the summary does not end in a full stop", "write one plain sentence");
    rule.blames = map_.Choose("blames", Need::kRequired, kFindingBlames, FindingRule::Blames::kNobody);
    rule.alone = map_.Flag("alone");
    rule.stall = map_.Flag("stall");
    rule.retry = map_.Choose("retry", Need::kOptional, kRetries, Retry::kUnsaid);
    rule.references = map_.List("references");
    rule.refuted_by = Names("refuted_by", map_);
    ReadRow();
    ReadGrades();
    ReadCauses();
  }

 private:
  /// Whose finding it is, and what that one can say.
  void ReadRow() {
    out_.rule.detector = map_.Text("detector", Need::kRequired, "name the detector whose finding it is");
    if (out_.rule.detector.empty()) return;
    const Detector* detector = FindDetector(out_.rule.detector);
    if (detector == nullptr) {
      map_.Complain("detector", "no detector is called '" + out_.rule.detector + "'", "rules/detectors.cc lists them");
      return;
    }
    row_ = FindRow(*detector, out_.rule.id);
    if (row_ != nullptr) return;
    std::vector<std::string_view> ids;
    for (const FindingRow& row : detector->findings) ids.push_back(row.id);
    map_.Complain("detector", "the detector '" + out_.rule.detector + "' has no finding '" + out_.rule.id + "'",
                  "it has " + Join(ids));
  }

  std::vector<std::string> Names(const std::string& key, const Mapping& map) {
    const std::vector<std::string> names = map.List(key);
    for (const std::string& name : names) out_.names.push_back({key, name, map.Where(key)});
    return names;
  }

  void CheckWords(const Mapping& map, std::string_view key, std::string_view text, bool why_too = false) {
    if (row_ == nullptr) return;
    for (const TextPart& part : PartsOf(text)) {
      if (!part.word || Lists(row_->words, part.text) || (why_too && part.text == kWhyWord)) continue;
      map.Complain(key, "the detector has no word '" + std::string(part.text) + "'",
                   row_->words.empty() ? "it has none" : "it has " + Join(NamesIn(row_->words)));
    }
  }

  std::vector<Advice> Remedies(const Mapping& map) {
    std::vector<Advice> out;
    for (const Mapping& item :
         map.Items("remedies", {"step", "text", "command", "kind", "run_on", "root", "destructive", "when"})) {
      Advice advice{item.ReadRemedy(steps_), item.Text("when", Need::kOptional)};
      CheckWords(item, "text", advice.remedy.text);
      if (!advice.when.empty()) CheckWords(item, "when", "{" + advice.when + "}");
      out.push_back(std::move(advice));
    }
    return out;
  }

  std::vector<std::string> Collect(const Mapping& map) {
    std::vector<std::string> items = map.List("collect");
    for (const std::string& item : items) CheckWords(map, "collect", item);
    return items;
  }

  /// What a mapping says of a grade, or of all grades.
  void ReadMeaning(const Mapping& map, Grade& grade) {
    if (map.Has("claim"))
      grade.claim = map.Text("claim", Need::kRequired, "say who did what, with the detector's words");
    if (map.Has("why")) grade.why = map.Text("why", Need::kRequired, "say what is held against a culprit");
    if (map.Has("explains")) grade.explains = Names("explains", map);
    if (map.Has("remedies")) grade.remedies = Remedies(map);
    if (map.Has("collect")) grade.collect = Collect(map);
    CheckWords(map, "claim", grade.claim, true);
    CheckWords(map, "why", grade.why);
  }

  void ReadGrades() {
    Grade common;
    ReadMeaning(map_, common);
    if (!map_.Has("grades"))
      map_.Complain("", "no 'grades'", "add 'grades:' and below it 'name: {strength: ..., confidence: ...}'");
    for (const auto& [name, map] : map_.Children(
             "grades", {"strength", "confidence", "weight", "claim", "why", "explains", "remedies", "collect"})) {
      Grade grade = common;
      grade.name = name;
      grade.by_catalogue = !map.OneOf("weight", Need::kOptional, kWeights).empty();
      const Need need = grade.by_catalogue ? Need::kOptional : Need::kRequired;
      grade.strength = map.Choose("strength", need, kStrengths, Strength::kHint);
      grade.confidence = map.Fraction("confidence").value_or(0);
      if (need == Need::kRequired && !map.Has("confidence"))
        map.Complain("", "no 'confidence'", "a number from 0 to 1, with the reason behind a #");
      ReadMeaning(map, grade);
      if (grade.claim.empty()) map.Complain("", "no 'claim'", "say who did what, with the detector's words");
      if (row_ != nullptr && !Lists(row_->grades, name))
        map.Complain("", "the detector has no grade '" + name + "'", "it has " + Join(NamesIn(row_->grades)));
      out_.rule.grades.push_back(std::move(grade));
    }
    if (row_ == nullptr) return;
    for (const std::string_view name : NamesIn(row_->grades))
      if (std::ranges::find(out_.rule.grades, name, &Grade::name) == out_.rule.grades.end())
        map_.Complain("grades", "no grade '" + std::string(name) + "'", "the detector may find it");
  }

  /// Without a folder: by what the detector saw, or handed over by it.
  void ReadCauses() {
    for (const auto& [kind, cause] : map_.Pairs("causes")) {
      out_.rule.causes.push_back({kind, cause});
      out_.names.push_back({"cause", cause, map_.Where("causes")});
      if (row_ != nullptr && !Lists(row_->kinds, kind))
        map_.Complain("causes", "the detector has no kind '" + kind + "'",
                      row_->kinds.empty() ? "it has none" : "it has " + Join(NamesIn(row_->kinds)));
    }
    if (!out_.rule.cause.empty()) {
      if (map_.Has("causes")) map_.Complain("causes", "the folder names the cause", "move the file, or remove the key");
      return;
    }
    if (row_ == nullptr || row_->names_cause) return;
    if (row_->kinds.empty()) map_.Complain("", "no cause", "move the file into findings/<cause>/");
    for (const std::string_view kind : NamesIn(row_->kinds))
      if (std::ranges::find(out_.rule.causes, kind, &FindingRule::KindCause::kind) == out_.rule.causes.end())
        map_.Complain("causes", "no cause for the kind '" + std::string(kind) + "'", "add it to 'causes'");
  }

  static constexpr std::string_view kWeights[] = {"catalogue"};

  const Mapping& map_;
  std::span<const AdvisedStep> steps_;
  FindingFile& out_;
  const FindingRow* row_ = nullptr;
};

bool Uses(std::string_view text, std::string_view word) {
  for (const TextPart& part : PartsOf(text))
    if (part.word && part.text == word) return true;
  return false;
}

bool Uses(const FindingRule& rule, std::string_view word) {
  return std::ranges::any_of(rule.grades, [&](const Grade& grade) {
    return Uses(grade.claim, word) || Uses(grade.why, word) ||
           std::ranges::any_of(grade.collect, [&](const std::string& item) { return Uses(item, word); }) ||
           std::ranges::any_of(grade.remedies, [&](const Advice& advice) {
             return advice.when == word || Uses(advice.remedy.text, word);
           });
  });
}

}  // namespace

FindingFile ReadFinding(const YAML::Node& node, const FindingPlace& place, std::span<const AdvisedStep> steps,
                        RuleErrors* errors) {
  FindingFile out;
  out.rule.id = place.id;
  out.rule.cause = place.cause;
  out.rule.file = place.file;
  const Mapping map(node, out.rule.file, 1,
                    {"summary", "detector", "claim", "why", "causes", "grades", "explains", "blames", "refuted_by",
                     "alone", "stall", "remedies", "collect", "retry", "references"},
                    errors);
  if (node.IsMap()) Reader(map, steps, out).Read();
  return out;
}

RuleErrors CheckFindings(const RuleBook& book) {
  RuleErrors errors;
  for (const Detector* detector : Detectors())
    for (const FindingRow& row : detector->findings) {
      const FindingRule* rule = book.FindFinding(row.id);
      if (rule == nullptr || rule->detector != detector->id) {
        errors.push_back({"no file for the finding '" + std::string(row.id) + "' of the detector '" +
                              std::string(detector->id) + "'",
                          "write rules/findings/<cause>/" + std::string(row.id) + ".yaml", ""});
        continue;
      }
      for (const std::string_view word : NamesIn(row.words))
        if (!Uses(*rule, word))
          errors.push_back({"the word '" + std::string(word) + "' of the detector is not used",
                            "use it in a text, or take it out of the detector", rule->file});
    }
  return errors;
}

std::string_view Name(FindingRule::Blames blames) { return kFindingBlames[static_cast<std::size_t>(blames)].word; }

std::vector<TextPart> PartsOf(std::string_view text) {
  constexpr std::string_view kNameChars = "abcdefghijklmnopqrstuvwxyz0123456789-";
  std::vector<TextPart> parts;
  const auto add = [&](bool word, std::string_view part) {
    if (!part.empty()) parts.push_back({word, part});
  };
  std::size_t begin = 0;
  for (std::size_t at = text.find('{'); at != std::string_view::npos; at = text.find('{', at + 1)) {
    const std::size_t end = text.find_first_not_of(kNameChars, at + 1);
    if (end == std::string_view::npos || end == at + 1 || text[end] != '}') continue;
    add(false, text.substr(begin, at - begin));
    add(true, text.substr(at + 1, end - at - 1));
    begin = end + 1;
  }
  add(false, text.substr(begin));
  return parts;
}

}  // namespace inquest
