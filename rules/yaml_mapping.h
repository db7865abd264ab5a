// One mapping of a YAML file, read so that every mistake is named with its line. The only door to yaml-cpp.
#pragma once

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <charconv>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules/rule_book.h"

namespace inquest {

/// A word of the rule language, and what it stands for.
template <class T>
struct Word {
  std::string_view word;
  T value;
};
inline constexpr Word<Strength> kStrengths[] = {
    {"hint", Strength::kHint}, {"supporting", Strength::kSupporting}, {"decisive", Strength::kDecisive}};
inline constexpr Word<Remedy::Kind> kRemedyKinds[] = {{"shell", Remedy::Kind::kShell},
                                                      {"python", Remedy::Kind::kPython},
                                                      {"config", Remedy::Kind::kConfig},
                                                      {"edit", Remedy::Kind::kEdit}};
inline constexpr Word<Remedy::Where> kRemedyPlaces[] = {{"job", Remedy::Where::kJob},
                                                        {"host", Remedy::Where::kHost},
                                                        {"nodes", Remedy::Where::kNodes},
                                                        {"login", Remedy::Where::kLogin}};
inline constexpr std::string_view kTrue[] = {"true"};
inline constexpr Word<Retry> kRetries[] = {
    {"yes", Retry::kYes}, {"after-fix", Retry::kAfterFix}, {"elsewhere", Retry::kElsewhere}, {"no", Retry::kNo}};

template <class Range>
std::string Join(const Range& words) {
  std::string joined;
  for (std::string_view word : words) joined.append(joined.empty() ? "" : ", ").append(word);
  return joined;
}

template <class T>
std::string JoinWords(std::span<const Word<T>> table) {
  std::vector<std::string_view> words;
  for (const Word<T>& row : table) words.push_back(row.word);
  return Join(words);
}

inline std::string At(const std::string& file, int line) { return file + ":" + std::to_string(line); }

enum class Need : std::uint8_t { kRequired, kOptional };

/// A YAML mapping of one file. What is wrong with it goes to `errors`, which outlives it.
class Mapping {
 public:
  Mapping(const YAML::Node& node, std::string file, int line, std::initializer_list<std::string_view> known,
          RuleErrors* errors)
      : node_(node), file_(std::move(file)), line_(line), errors_(errors) {
    if (!node_.IsMap()) {
      Complain("", "not a mapping of keys to values", "known keys: " + Join(known));
      return;
    }
    std::set<std::string> seen;
    for (const auto& pair : node_) {
      const std::string key = pair.first.Scalar();
      if (std::find(known.begin(), known.end(), key) == known.end()) {
        Complain(key, "unknown key '" + key + "'", "known keys: " + Join(known));
      } else if (!seen.insert(key).second) {
        errors_->push_back(
            {"key '" + key + "' stands twice", "keep one of them", At(file_, pair.first.Mark().line + 1)});
      }
    }
  }

  /// Of any keys.
  Mapping(const YAML::Node& node, std::string file, int line, RuleErrors* errors)
      : node_(node), file_(std::move(file)), line_(line), errors_(errors) {}

  bool Has(std::string_view key) const { return static_cast<bool>(Find(key)); }
  std::string Where(std::string_view key) const {
    const auto found = FindPair(key);
    return At(file_, found ? found->first.Mark().line + 1 : line_);
  }
  void Complain(std::string_view key, std::string message, std::string hint) const {
    errors_->push_back({std::move(message), std::move(hint), Where(key)});
  }

  std::string Text(std::string_view key, Need need, std::string_view hint = "") const {
    const YAML::Node value = Find(key);
    if (value && value.IsScalar() && !value.Scalar().empty()) return value.Scalar();
    if (value) {
      Complain(key, "'" + std::string(key) + "' is empty or not a text", std::string(hint));
    } else if (need == Need::kRequired) {
      Complain("", "no '" + std::string(key) + "'", hint.empty() ? "add the key" : std::string(hint));
    }
    return {};
  }

  std::vector<std::string> List(std::string_view key) const {
    std::vector<std::string> items;
    const YAML::Node value = Find(key);
    if (!value || value.IsNull()) return items;
    if (!value.IsSequence()) {
      Complain(key, "'" + std::string(key) + "' is not a list", "write one '- item' a line");
      return items;
    }
    for (const YAML::Node& item : value) {
      if (item.IsScalar() && !item.Scalar().empty()) {
        items.push_back(item.Scalar());
      } else {
        errors_->push_back({"an item of '" + std::string(key) + "' is empty or not a text", "quote it with ' '",
                            At(file_, item.Mark().line + 1)});
      }
    }
    return items;
  }

  template <class T, std::size_t n>
  T Choose(std::string_view key, Need need, const Word<T> (&table)[n], T fallback) const {
    const std::string hint = "one of " + JoinWords(std::span<const Word<T>>(table));
    const std::string text = Text(key, need, hint);
    if (text.empty()) return fallback;
    for (const Word<T>& row : table) {
      if (row.word == text) return row.value;
    }
    Complain(key, "bad " + std::string(key) + " '" + text + "'", hint);
    return fallback;
  }

  std::string OneOf(std::string_view key, Need need, std::span<const std::string_view> words) const {
    const std::string hint = "one of " + Join(words);
    std::string text = Text(key, need, hint);
    if (!text.empty() && std::find(words.begin(), words.end(), text) == words.end()) {
      Complain(key, "bad " + std::string(key) + " '" + text + "'", hint);
      text.clear();
    }
    return text;
  }

  /// One item of `remedies`, or one way of a step.
  Remedy ReadRemedy() const {
    Remedy out;
    out.text = Text("text", Need::kRequired);
    out.command = Text("command", Need::kOptional);
    if (out.command.empty()) {
      for (const char* const key : {"kind", "run_on", "root", "destructive"})
        if (Has(key)) Complain(key, "'" + std::string(key) + "' without a command", "it says how a command is meant");
      return out;
    }
    out.kind = Choose("kind", Need::kOptional, kRemedyKinds, Remedy::Kind::kShell);
    out.run_on = Choose("run_on", Need::kOptional, kRemedyPlaces, Remedy::Where::kJob);
    out.root = OneOf("root", Need::kOptional, kTrue) == "true";
    out.destructive = OneOf("destructive", Need::kOptional, kTrue) == "true";
    if (const std::string_view why = WhyNotToFill(out.kind, out.command); !why.empty())
      Complain("command", std::string(why), "its value is quoted by itself");
    return out;
  }

  /// `steps`: those that an item may name in place of all else.
  Remedy ReadRemedy(std::span<const AdvisedStep> steps) const {
    if (!Has("step")) return ReadRemedy();
    for (const char* const key : {"text", "command", "kind", "run_on", "root", "destructive"})
      if (Has(key)) Complain(key, "'" + std::string(key) + "' beside a step", "what the step is stands in steps.yaml");
    const std::string name = Text("step", Need::kRequired);
    const auto step = std::ranges::find(steps, name, &AdvisedStep::name);
    if (step != steps.end()) return step->remedy;
    Complain("step", "no step '" + name + "'", "name a step of steps.yaml");
    return {};
  }

  std::vector<Remedy> Remedies(std::string_view key, std::span<const AdvisedStep> steps) const {
    std::vector<Remedy> remedies;
    for (const Mapping& row : Items(key, {"step", "text", "command", "kind", "run_on", "root", "destructive"}))
      remedies.push_back(row.ReadRemedy(steps));
    return remedies;
  }

  /// A number from 0 to 1. nullopt: the key is not there.
  std::optional<double> Fraction(std::string_view key) const { return NumberIn(key, 0, 1, "a number from 0 to 1"); }

  /// A log odds, of a size that no single sign outgrows. nullopt: the key is not there.
  std::optional<double> Weight(std::string_view key) const { return NumberIn(key, -10, 10, "a number from -10 to 10"); }

  bool Flag(std::string_view key) const {
    const std::string text = Has(key) ? Text(key, Need::kRequired, "true, or leave the key out") : std::string();
    if (!text.empty() && text != "true")
      Complain(key, "bad " + std::string(key) + " '" + text + "'", "true, or leave the key out");
    return text == "true";
  }

  /// `key: {name: text, ...}`, in the order of the file.
  std::vector<std::pair<std::string, std::string>> Pairs(std::string_view key) const {
    std::vector<std::pair<std::string, std::string>> out;
    const YAML::Node value = Find(key);
    if (value && !value.IsMap())
      Complain(key, "'" + std::string(key) + "' is not a mapping", "write {name: text, ...}");
    if (value && value.IsMap())
      for (const auto& pair : value)
        out.emplace_back(pair.first.Scalar(), pair.second.IsScalar() ? pair.second.Scalar() : std::string());
    return out;
  }

  /// `key: {name: {...}, ...}`, each with the same known keys, in the order of the file.
  std::vector<std::pair<std::string, Mapping>> Children(std::string_view key,
                                                        std::initializer_list<std::string_view> known) const {
    std::vector<std::pair<std::string, Mapping>> out;
    const YAML::Node value = Find(key);
    if (value && !value.IsMap())
      Complain(key, "'" + std::string(key) + "' is not a mapping", "write 'name: {...}', one a line");
    if (value && value.IsMap())
      for (const auto& pair : value)
        out.emplace_back(pair.first.Scalar(), Mapping(pair.second, file_, pair.first.Mark().line + 1, known, errors_));
    return out;
  }

  /// The items of a list of mappings.
  std::vector<Mapping> Items(std::string_view key, std::initializer_list<std::string_view> known) const {
    std::vector<Mapping> out;
    const YAML::Node value = Find(key);
    if (value && !value.IsNull() && !value.IsSequence())
      Complain(key, "'" + std::string(key) + "' is not a list", "write '- text: ...' and below it 'command: ...'");
    if (value && value.IsSequence())
      for (const YAML::Node& item : value) out.emplace_back(item, file_, item.Mark().line + 1, known, errors_);
    return out;
  }

  Mapping Child(std::string_view key, std::initializer_list<std::string_view> known) const {
    const auto found = FindPair(key);
    return Mapping(found->second, file_, found->first.Mark().line + 1, known, errors_);
  }

 private:
  std::optional<double> NumberIn(std::string_view key, double least, double most, std::string_view hint) const {
    if (!Has(key)) return std::nullopt;
    const std::string text = Text(key, Need::kRequired, hint);
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc() && end == text.data() + text.size();
    if (!text.empty() && (!whole || !(value >= least && value <= most)))
      Complain(key, "bad " + std::string(key) + " '" + text + "'", std::string(hint));
    return value;
  }
  std::optional<std::pair<YAML::Node, YAML::Node>> FindPair(std::string_view key) const {
    if (!node_.IsMap()) return std::nullopt;
    for (const auto& pair : node_) {
      if (pair.first.Scalar() == key) return std::pair<YAML::Node, YAML::Node>(pair.first, pair.second);
    }
    return std::nullopt;
  }
  YAML::Node Find(std::string_view key) const {
    const auto found = FindPair(key);
    return found ? found->second : YAML::Node(YAML::NodeType::Undefined);
  }

  YAML::Node node_;
  std::string file_;
  int line_;
  RuleErrors* errors_;
};

}  // namespace inquest
