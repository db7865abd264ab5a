// What stands in front of every line of a log that went through other hands: its shapes, and where each ends.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace inquest {

/// What of every line's front is to be taken off.
struct LineHead {
  enum class Shape : std::uint8_t {
    kNone,        ///< nothing, or a time alone
    kNumber,      ///< `12:`, `12-` (grep -n), `    12\t` (cat -n), `  12 | `
    kFile,        ///< `logs/job.out:`
    kFileNumber,  ///< `logs/job.out:12:`, `logs/job.out-12-`
    kStep,        ///< `01O ` behind a time (GitLab)
    kBar,         ///< `trainer-0 pytorch | `
    kBracket,     ///< `[trainer-0] `
    kArrow,       ///< `node07> `
    kWords,       ///< `trainer-0 pytorch ` (stern), `pytorch/trainer/4f1e ` (CloudWatch)
    kProgram,     ///< `node07 train[41]: ` behind a time, of one program (syslog)
    kStructured,  ///< `node07 train 41 - - ` behind a priority and a time (RFC 5424)
    kConstant,    ///< the same bytes
  };
  bool time = false;
  Shape shape = Shape::kNone;
  std::string constant =
      {};  ///< kConstant: the bytes; kProgram: the program; kWords: as many blanks as there are words
};

/// One line's. Views are of the line.
struct FoundHead {
  std::size_t size = 0;
  std::string_view time, host, who;
  std::optional<std::uint64_t> number;
};
/// nullopt: the line has none of that shape. A line that is nothing but its head may lack the blank at its end.
std::optional<FoundHead> FindHead(std::string_view line, const LineHead& head);

/// Heads that lines may all have, likeliest first; `lines` are not empty.
std::vector<LineHead> PossibleHeads(const std::vector<std::string>& lines);

/// How a head fits lines.
enum class HeadFit : std::uint8_t {
  kNone,
  kShape,  ///< nearly all have the shape, and it is what it says: numbers rise, names are few
  kSure,   ///< and nobody prints such a thing in front of all lines: numbers that count them, one name for all
};
HeadFit FitOf(const std::vector<std::string>& lines, const LineHead& head);

}  // namespace inquest
