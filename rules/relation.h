// What a detector hands over when its relation holds. What that means (claim, weight, what it explains, what to do)
// stands in rules/findings/.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules/rule_book.h"
#include "rules/verdict.h"

namespace inquest {

/// One finding of a detector, as its C++ knows it. The lists are names with a space between: `one-way by-gap`. The
/// build refuses a row without its file, and a file that does not have these grades, words and kinds.
struct FindingRow {
  std::string_view id;
  std::string_view grades;
  std::string_view words = {};  ///< that may stand in the texts of its file: `{ranks}`
  std::string_view kinds = {};  ///< keys of `causes`, where the cause depends on what was seen
  bool names_cause = false;     ///< the relation names it, from a catalogue's row, or it is a symptom and names none
};

/// Whether a row's list has the name.
constexpr bool Lists(std::string_view list, std::string_view name) {
  while (!list.empty()) {
    const std::string_view first = list.substr(0, list.find(' '));
    if (first == name) return true;
    list.remove_prefix(std::min(first.size() + 1, list.size()));
  }
  return false;
}
/// The names of a row's list, in order.
std::vector<std::string_view> NamesIn(std::string_view list);

/// What a catalogue's row says in place of a grade.
struct RowWeight {
  Strength strength = Strength::kHint;
  double confidence = 0;
};

/// A relation that holds: which finding it is and in which grade, whom it is about, the lines that show it, and the
/// words that its texts want.
struct Relation {
  std::string_view id, grade;
  std::string kind;                 ///< which of the finding's `causes`; empty: the folder's
  std::string cause;                ///< of a catalogue's row; empty: by folder or kind
  std::optional<RowWeight> weight;  ///< of a catalogue's row
  Retry retry = Retry::kUnsaid;     ///< of a catalogue's row; unsaid: the finding's
  std::vector<std::pair<std::string_view, std::string>> words;  ///< one that is not given is empty
  std::vector<Culprit> culprits;                                ///< `why` empty: the finding's
  std::vector<Citation> citations;                              ///< the telling ones first
  std::optional<CollectiveRef> collective;
  std::uint64_t times = 1;
  std::string explained_by;  ///< set aside from the start, by what is no finding
};

/// Not constexpr: called while compiling, it is the error.
inline void NotInTheTableOfThisDetector() {}

/// The same, of a detector whose rows are `kRows`: a misspelt id, grade or word does not compile.
template <const auto& kRows>
struct FoundIn : Relation {
  /// A finding in one of its grades.
  struct Held {
    consteval Held(const char* of, const char* in) : id(of), grade(in) {
      if (std::none_of(std::begin(kRows), std::end(kRows),
                       [&](const FindingRow& row) { return row.id == id && Lists(row.grades, grade); }))
        NotInTheTableOfThisDetector();
    }
    std::string_view id, grade;
  };
  struct Word {
    consteval Word(const char* word) : name(word) {
      if (std::none_of(std::begin(kRows), std::end(kRows),
                       [&](const FindingRow& row) { return Lists(row.words, name); }))
        NotInTheTableOfThisDetector();
    }
    std::string_view name;
  };

  explicit FoundIn(Held held) { Grade(held); }
  void Grade(Held held) {
    id = held.id;
    grade = held.grade;
  }
  void Say(Word word, std::string value) { words.emplace_back(word.name, std::move(value)); }
};

/// How much a finding weighs in a grade.
const Grade& GradeOf(const RuleBook& book, std::string_view id, std::string_view grade);
/// The finding that a relation is, by its file. Aborts where the book has none: the build has checked that ours has.
Finding Tell(const RuleBook& book, Relation relation);

/// `Rank 3`, `Ranks 0-2, 5`.
std::string RanksInWords(const RankSet& ranks);
std::string RanksInWords(const std::vector<int>& ranks);
/// `rank 3`, `ranks 0-2, 5`.
std::string RanksWithin(const RankSet& ranks);
std::string RanksWithin(const std::vector<int>& ranks);
/// `s` or nothing.
constexpr std::string_view PluralS(std::size_t count) { return count > 1 ? "s" : ""; }

}  // namespace inquest
