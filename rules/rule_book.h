// The rules as data: read from YAML, or from the copy embedded in the binary. Language: docs/rules.md.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/event.h"
#include "core/pattern.h"
#include "core/result.h"
#include "rules/verdict.h"

namespace inquest {

/// One YAML file under rules/.
struct Rule {
  enum class Kind : std::uint8_t { kSignature, kSymptom, kPhase, kEnding };
  enum class Blames : std::uint8_t { kNobody, kPrinter, kCaptured, kHost };
  /// What a line tells that a phase's rule fits; nothing: the rule is of another kind.
  enum class Says : std::uint8_t {
    kNothing,
    kWork,
    kBegins,
    kEpilog,
    kGaveUp,
    kGoal,
    kGrumble,
    kHeading,
    kIdentity,
    kNames,
    kOver,
    kRestart,
    kStart
  };
  Kind kind = Kind::kSignature;
  std::string id, cause;  ///< cause: signatures only
  std::string summary;
  std::string text;  ///< RE2
  Component component = Component::kAny;
  Strength strength = Strength::kHint;
  double confidence = 0;  ///< as given, else by strength
  Blames blames = Blames::kNobody;
  std::vector<std::string>
      words;  ///< with a scope: one of them, in any case, is in every line that the text fits; empty: not told
  std::vector<std::string> explains;
  std::vector<Remedy> remedies;
  std::vector<std::string> collect;
  Retry retry = Retry::kUnsaid;
  std::vector<std::string> references;
  std::vector<std::string> match, differ;  ///< samples
  Says says = Says::kNothing;
  Activity at = Activity::kNone;            ///< of a phase that says which work
  EndingKind ending = EndingKind::kWorker;  ///< of an ending
  std::string scope;         ///< phases and endings: `last-line`, too common to be looked for everywhere; else empty
  std::string file;          ///< where it was read
  bool alone = false;        ///< signatures: decides although nothing else says that the job failed
  bool of_parent = false;    ///< a parent process or the program's frame prints it behind the death that it reports
  bool tells_death = false;  ///< a parent's word that a child of its is gone: what it raises behind that follows
  bool own_advice = false;   ///< its remedies stand in place of the cause's, and not before them

  /// Of `text`, when first asked for; copies made later share it. A job of many attempts is judged many times by one
  /// book. Not for two threads at once.
  const Pattern& Expression() const {
    if (!expression_)
      expression_ = std::make_shared<const Pattern>(text.c_str());  // the rule book refuses what RE2 refuses
    return *expression_;
  }

 private:
  mutable std::shared_ptr<const Pattern> expression_;
};

/// What several rules advise, said once: a row of rules/steps.yaml.
struct AdvisedStep {
  std::string name;
  Remedy remedy;
};

/// A remedy of a finding. Its texts may hold words of the detector.
struct Advice {
  Remedy remedy;
  std::string when;  ///< a word: given only where the detector says it; empty: always
};

/// How much a finding weighs, and what else it means, in one of the ways in which its relation may hold. What a grade
/// does not say is the finding's.
struct Grade {
  std::string name;
  bool by_catalogue = false;  ///< strength and confidence are those of the numbered error's row
  Strength strength = Strength::kHint;
  double confidence = 0;   ///< 0..1, of a verdict that rests on it alone
  std::string claim, why;  ///< with `{words}` of the detector; why: of each culprit whom the detector says nothing of
  std::vector<std::string> explains;
  std::vector<Advice> remedies;
  std::vector<std::string> collect;
};

/// Stands in `refuted_by`: the job ended well.
constexpr std::string_view kGoodEnd = "good-end";
/// The same: no two ranks are on one host, so they talk over the network alone.
constexpr std::string_view kOnlyBetweenHosts = "only-between-hosts";

/// One YAML file under rules/findings/: what it means that a relation holds which a detector looks for.
struct FindingRule {
  enum class Blames : std::uint8_t { kNobody, kRank, kHost, kDevice, kLink, kProcessGroup };
  /// Which cause it is depends on what the detector saw.
  struct KindCause {
    std::string kind, cause;
  };
  std::string id, detector, summary;
  std::string cause;              ///< the folder; empty: by kind, or of a catalogue's row
  std::vector<KindCause> causes;  ///< of a file without a folder
  std::vector<Grade> grades;      ///< at least one
  Blames blames = Blames::kNobody;
  std::vector<std::string> refuted_by;  ///< ids, cause codes, `good-end`
  bool alone = false;                   ///< decides although nothing else says that the job failed
  bool stall = false;                   ///< everybody is in and nothing moves
  Retry retry = Retry::kUnsaid;
  std::vector<std::string> references;
  std::string file;  ///< where it was read
};
std::string_view Name(FindingRule::Blames blames);

/// A piece of a finding's text: as it stands, or the name of a word.
struct TextPart {
  bool word = false;
  std::string_view text;
};
/// `{name}` is a word; every other brace stands for itself.
std::vector<TextPart> PartsOf(std::string_view text);
/// The word that every claim may hold: the finding's own `why`.
inline constexpr std::string_view kWhyWord = "why";

/// Where a cause lies.
enum class CauseLayer : std::uint8_t {
  kUnknown,  ///< no cause's
  kNone,
  kProgram,
  kDevice,
  kHost,
  kNetwork,
  kNccl
};
std::string_view Name(CauseLayer layer);

/// A row of rules/causes.yaml.
struct Cause {
  std::string code;
  CauseLayer layer = CauseLayer::kNone;
  std::string title, meaning;
  Retry retry = Retry::kNo;
  std::vector<Remedy> remedies;
  std::vector<std::string> collect;
  std::vector<std::string> traits;  ///< what the judge must know of it, see docs/rules.md
  bool Is(std::string_view trait) const { return std::find(traits.begin(), traits.end(), trait) != traits.end(); }
};

/// A row of rules/xids.yaml or rules/sxids.yaml: what a numbered error of the driver, or of a NVSwitch, means.
struct ErrorCode {
  enum class Class : std::uint8_t { kApplication, kDriver, kHardware, kNvlink, kFirmware };
  /// Whether a job can die of it, or something else came first, or nothing dies of it.
  enum class Role : std::uint8_t { kCause, kFollows, kNotice };
  /// What has to be done before a job may run there again.
  enum class Need : std::uint8_t { kRestartJob, kResetGpu, kResetSwitch, kRebootNode, kDrainNode, kReturnPart };
  std::uint64_t number = 0;
  std::string meaning;  ///< one sentence
  Class origin = Class::kDriver;
  Role role = Role::kCause;
  std::string cause;      ///< a cause code; by class where the row names none
  double confidence = 0;  ///< of a verdict that rests on it alone; by class and role where the row says none
  std::string action;     ///< what to do
  std::vector<Need> needs;
  std::string source;
};
std::string_view Name(ErrorCode::Class origin);
/// `reset-gpu`, as the catalogues call it.
std::string_view Name(ErrorCode::Need need);
/// How much a finding of this number weighs by itself.
Strength StrengthOf(const ErrorCode& code);

/// A row of rules/farewell.yaml: how much it tells of a good end that the last lines of a log show it.
struct FarewellSign {
  std::string name;
  std::string text;             ///< RE2; empty: a relation between lines, which rules/farewell.cc knows by its name
  std::string unless;           ///< RE2: a line that holds this as well does not show it
  double last = 0, before = 0;  ///< log odds, where the last line shows it, and where one shortly before does

  /// Compiled when first asked, as a rule's are.
  bool ShowsIn(std::string_view line) const {
    if (!expression_) expression_ = std::make_shared<const Pattern>(text.c_str());
    if (!expression_->Matches(line)) return false;
    if (unless.empty()) return true;
    if (!unless_) unless_ = std::make_shared<const Pattern>(unless.c_str());
    return !unless_->Matches(line);
  }

 private:
  mutable std::shared_ptr<const Pattern> expression_, unless_;
};

struct RuleBook {
  std::vector<Rule> rules;             ///< by kind, then id; an index into it is the rule's number
  std::vector<FindingRule> findings;   ///< of detectors, by id
  std::vector<Cause> causes;           ///< in the order of causes.yaml
  std::vector<AdvisedStep> steps;      ///< in the order of steps.yaml
  std::vector<ErrorCode> xids, sxids;  ///< by number
  std::vector<FarewellSign> farewell;  ///< in the order of farewell.yaml
  const ErrorCode* FindXid(int number) const;
  const ErrorCode* FindSxid(int number) const;
  const Rule* FindRule(std::string_view id) const;  ///< no finding of a detector
  const FindingRule* FindFinding(std::string_view id) const;
  const Cause* FindCause(std::string_view code) const;
  /// Whether the row of a cause has the trait. A finding without a cause, a symptom, has none.
  bool CauseIs(std::string_view code, std::string_view trait) const;
  /// `program`, `device`, `host`, `network`, `nccl`; empty: no cause.
  CauseLayer LayerOf(std::string_view code) const;  ///< kUnknown: no such cause
};

/// All errors at once, each with file and line.
using RuleErrors = std::vector<Error>;

/// Reads `dir` (causes.yaml optional there if `base` has causes). A rule of an id that `base` has replaces it.
std::variant<RuleBook, RuleErrors> LoadRules(const std::string& dir, const RuleBook* base);

/// What the detectors and the files of their findings lack of each other: a finding without its file, a grade or a word
/// that only one side knows. Of a whole set of rules; a folder that adds to ours need not have them all.
RuleErrors CheckFindings(const RuleBook& book);

/// Whether a rule's samples are read with it: they take as much as all the rest, and no job is judged by them.
enum class Samples : std::uint8_t { kRead, kLeft };

/// Bytes for embedding, and back. Aborts on bytes that are not ours.
std::string Serialize(const RuleBook& book);
RuleBook Deserialize(std::string_view bytes, Samples samples = Samples::kRead);

/// The book and the sieve database that were embedded at build time.
std::string_view EmbeddedRules();
std::string_view EmbeddedSieve();

}  // namespace inquest
