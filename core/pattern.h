// A regular expression in RE2's syntax, with captures by name. The only door to RE2.
#ifndef INQUEST_CORE_PATTERN_H  // no pragma: compilers know files by their times, and this one may come precompiled out
                                // of a cache
#define INQUEST_CORE_PATTERN_H

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace re2 {
class RE2;
}

namespace inquest {

class Pattern {
 public:
  /// A match's captures: views into the text searched.
  class Match {
   public:
    /// Group 0 is the match; empty where the group did not take part.
    std::string_view text(std::size_t group) const {
      return group < groups_.size() ? groups_[group] : std::string_view();
    }
    bool has(std::size_t group) const { return group < groups_.size() && groups_[group].data() != nullptr; }
    /// nullopt: absent, not a number, or out of range.
    std::optional<std::int64_t> number(std::size_t group) const;

   private:
    friend class Pattern;
    std::vector<std::string_view> groups_;
  };

  /// For expressions in our own code: compiled once a text holds its RequiredLiteral. A bad one aborts then.
  explicit Pattern(const char* expression);
  /// For expressions of users.
  static Result<Pattern> Compile(std::string_view expression);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  /// Searches anywhere in the text.
  std::optional<Match> Search(std::string_view text) const;
  bool Matches(std::string_view text) const;
  /// Name of each group, by index; empty where it has none.
  const std::vector<std::string>& group_names() const;

 private:
  struct Compiled;
  explicit Pattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

/// The longest text that every match of the expression holds, as far as its outermost words tell. Empty: none is known.
std::string RequiredLiteral(std::string_view expression);

}  // namespace inquest

#endif  // INQUEST_CORE_PATTERN_H
