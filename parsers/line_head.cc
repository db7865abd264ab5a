// What stands in front of every line of a log that went through other hands: its shapes, and where each ends.
#include "parsers/line_head.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <map>
#include <set>

#include "core/ascii.h"
#include "core/time.h"

namespace inquest {
namespace {

using std::string_view;
using Shape = LineHead::Shape;

constexpr std::size_t kLongest = 160;

bool IsNameChar(char c) { return IsWordChar(c) || c == '.' || c == '-' || c == '/'; }

std::size_t CountIf(string_view text, bool (*is)(char)) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), is) - text.begin());
}

std::optional<std::uint64_t> NumberOf(string_view digits) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  return !digits.empty() && error == std::errc() && end == digits.data() + digits.size() ? std::optional(number)
                                                                                         : std::nullopt;
}

/// Whether `text` begins with `words`, or is all that is left of it.
std::size_t WithOrWithoutBlank(string_view text, string_view words) {
  if (text.starts_with(words)) return words.size();
  const string_view trimmed = words.substr(0, words.find_last_not_of(" \t") + 1);
  return text == trimmed ? trimmed.size() : 0;
}

/// Words that say how bad it is, not whose it is.
bool IsLevel(string_view word) {
  static constexpr std::array<string_view, 14> kLevels = {
      "INFO", "WARNING", "WARN", "ERROR", "DEBUG", "CRITICAL", "FATAL", "NOTICE", "TRACE", "E", "W", "I", "F", "D"};
  return std::any_of(kLevels.begin(), kLevels.end(), [&](string_view level) {
    return word.size() == level.size() && std::equal(word.begin(), word.end(), level.begin(), [](char a, char b) {
             return std::toupper(static_cast<unsigned char>(a)) == b;
           });
  });
}

/// Sources name lines of their own in the same shape as grep does.
bool IsSourceFile(string_view path) {
  static constexpr std::array<string_view, 13> kSources = {".py",  ".cc", ".cpp", ".cu",   ".cuh", ".c", ".h",
                                                           ".hpp", ".go", ".rs",  ".java", ".ts",  ".js"};
  return std::any_of(kSources.begin(), kSources.end(), [&](string_view ending) { return path.ends_with(ending); });
}

/// `2031-04-05T06:07:08Z `, `[2031-04-05 06:07:08] `, `Apr  5 06:07:08 `, with a syslog priority in front or not.
std::size_t TakeTime(string_view line, FoundHead& found) {
  std::size_t at = 0;
  if (line.starts_with('<')) {
    const std::size_t digits = CountIf(line.substr(1, 3), IsDigit);
    if (digits == 0 || line.substr(1 + digits, 1) != ">") return 0;
    at = digits + 2;
    if (line.substr(at).starts_with("1 ")) at += 2;
  }
  const bool bracket = line.substr(at, 1) == "[";
  const auto parsed = ParseTime(line.substr(at + (bracket ? 1 : 0)));
  if (!parsed || parsed->time.date == Timestamp::Date::kNone) return 0;
  found.time = line.substr(at + (bracket ? 1 : 0), parsed->size);
  if (parsed->time.date != Timestamp::Date::kFull) found.time = {};
  at += parsed->size + (bracket ? 1 : 0);
  if (bracket && line.substr(at, 1) != "]") return 0;
  if (bracket) ++at;
  return at == line.size() || line[at] == ' ' ? std::min(at + 1, line.size()) : 0;
}

/// So many words of a name's letters, one blank between them.
std::size_t TakeWords(string_view text, std::size_t words) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < words; ++i) {
    const std::size_t size = CountIf(text.substr(at), IsNameChar);
    if (size == 0 || at + size > kLongest) return 0;
    at += size;
    if (at == text.size()) return i + 1 == words ? at : 0;
    if (text[at] != ' ') return 0;
    ++at;
  }
  return at;
}

bool TakeNumber(string_view rest, FoundHead& found) {
  const std::size_t blanks = std::min(rest.find_first_not_of(' '), rest.size()),
                    digits = CountIf(rest.substr(blanks), IsDigit);
  found.number = NumberOf(rest.substr(blanks, digits));
  if (!found.number) return false;
  const string_view behind = rest.substr(blanks + digits);
  std::size_t mark = 0;
  if (behind.starts_with('\t') || (blanks == 0 && (behind.starts_with(':') || behind.starts_with('-')))) mark = 1;
  if (mark == 0) mark = WithOrWithoutBlank(behind, " | ");
  if (mark == 0) mark = WithOrWithoutBlank(behind, " \xe2\x94\x82 ");  // bat
  found.size += blanks + digits + mark;
  return mark > 0;
}

bool TakeFile(string_view rest, bool numbered, FoundHead& found) {
  const std::size_t size = CountIf(rest.substr(0, kLongest), IsNameChar);
  string_view path = rest.substr(0, size);
  if (!numbered || rest.substr(size, 1) != ":") {
    // `job.out-12-`: a line of context.
    if (numbered && path.size() > 3) {
      const std::size_t dash = rest.find('-', path.find_last_of('.') == kNowhere ? 0 : path.find_last_of('.'));
      if (dash == kNowhere || dash + 1 >= rest.size()) return false;
      const std::size_t digits = CountIf(rest.substr(dash + 1), IsDigit);
      found.number = NumberOf(rest.substr(dash + 1, digits));
      if (!found.number || rest.substr(dash + 1 + digits, 1) != "-") return false;
      found.who = rest.substr(0, dash);
      found.size += dash + digits + 2;
      return found.who.find_first_of("./") != kNowhere && !IsSourceFile(found.who);
    }
    if (numbered || rest.substr(size, 1) != ":") return false;
  }
  if (path.find_first_of("./") == kNowhere || IsSourceFile(path) ||
      !std::any_of(path.begin(), path.end(), [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }))
    return false;
  found.who = path;
  found.size += size + 1;
  if (!numbered) return true;
  const std::size_t digits = CountIf(rest.substr(size + 1), IsDigit);
  found.number = NumberOf(rest.substr(size + 1, digits));
  found.size += digits + 1;
  return found.number && rest.substr(size + 1 + digits, 1) == ":";
}

/// `trainer-0 pytorch | `, `[trainer-0 pytorch] `, `node07> `: up to three words and a mark.
bool TakeMarked(string_view rest, string_view open, string_view close, FoundHead& found) {
  if (!rest.starts_with(open)) return false;
  const std::size_t end = std::min(
      rest.substr(0, kLongest)
          .find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-/ ", open.size()),
      rest.size());
  string_view who = rest.substr(open.size(), end - open.size());
  std::size_t blanks = 0;
  while (who.ends_with(' ')) {
    who.remove_suffix(1);
    ++blanks;
  }
  const std::size_t mark = WithOrWithoutBlank(
      rest.substr(open.size() + who.size() + (close[0] == ' ' ? blanks - std::min<std::size_t>(blanks, 1) : blanks)),
      close);
  if (mark == 0 || who.empty() || std::count(who.begin(), who.end(), ' ') > 2 || IsLevel(who) || NumberOf(who))
    return false;
  found.who = who;
  found.size +=
      open.size() + who.size() + (close[0] == ' ' ? blanks - std::min<std::size_t>(blanks, 1) : blanks) + mark;
  return true;
}

/// `node07 train[41]: `, `node07 train: `.
bool TakeProgram(string_view rest, string_view program, FoundHead& found) {
  const std::size_t host = CountIf(rest, IsNameChar);
  if (host == 0 || IsLevel(rest.substr(0, host)) || rest.substr(host, 1) != " " ||
      !rest.substr(host + 1).starts_with(program))
    return false;
  std::size_t at = host + 1 + program.size();
  if (rest.substr(at, 1) == "[") {
    const std::size_t digits = CountIf(rest.substr(at + 1), IsDigit);
    if (rest.substr(at + 1 + digits, 1) != "]") return false;
    at += digits + 2;
  }
  if (rest.substr(at, 1) != ":") return false;
  found.host = rest.substr(0, host);
  found.who = program;
  found.size += std::min(at + 2, rest.size());
  return at + 1 == rest.size() || rest[at + 1] == ' ';
}

/// `node07 train 41 ID47 - `, `node07 train 41 - [meta x="1"] `.
bool TakeStructured(string_view rest, FoundHead& found) {
  std::size_t at = 0;
  for (int word = 0; word < 4; ++word) {
    const std::size_t blank = rest.substr(0, 2 * kLongest).find(' ', at);
    if (blank == kNowhere || blank == at) return false;
    if (word == 0) found.host = rest.substr(0, blank);
    if (word == 1) found.who = rest.substr(at, blank - at);
    at = blank + 1;
  }
  if (rest.substr(at, 1) == "-") {
    ++at;
  } else if (rest.substr(at, 1) == "[") {
    const std::size_t end = rest.find(']', at);
    if (end == kNowhere) return false;
    at = end + 1;
  } else {
    return false;
  }
  if (at < rest.size() && rest[at] != ' ') return false;
  found.size += std::min(at + 1, rest.size());
  return true;
}

bool TakeShape(string_view rest, const LineHead& head, FoundHead& found) {
  switch (head.shape) {
    case Shape::kNone:
      return true;
    case Shape::kNumber:
      return TakeNumber(rest, found);
    case Shape::kFile:
      return TakeFile(rest, false, found);
    case Shape::kFileNumber:
      return TakeFile(rest, true, found);
    case Shape::kStep: {
      const bool is = rest.size() >= 3 && IsDigit(rest[0]) && IsDigit(rest[1]) && (rest[2] == 'O' || rest[2] == 'E') &&
                      (rest.size() == 3 || rest[3] == ' ' || rest[3] == '+');
      found.size += std::min<std::size_t>(4, rest.size());
      return is;
    }
    case Shape::kBar:
      return TakeMarked(rest, "", " | ", found) || TakeMarked(rest, "", " \xe2\x80\xba ", found);
    case Shape::kBracket:
      return TakeMarked(rest, "[", "] ", found);
    case Shape::kArrow:
      return TakeMarked(rest, "", "> ", found);
    case Shape::kWords: {
      const std::size_t size = TakeWords(rest, head.constant.size());
      found.who = rest.substr(0, rest.substr(0, size).find_last_not_of(' ') + 1);
      found.size += size;
      return size > 0 && !IsDigit(rest[0]) && found.who.find_first_of("-/") != kNowhere;
    }
    case Shape::kProgram:
      return TakeProgram(rest, head.constant, found);
    case Shape::kStructured:
      return TakeStructured(rest, found);
    case Shape::kConstant: {
      const std::size_t size = WithOrWithoutBlank(rest, head.constant);
      found.size += size;
      return size > 0;
    }
  }
  return false;
}

/// What nearly all lines begin with, behind their time where they have one.
std::string CommonStart(const std::vector<std::string>& lines, bool time) {
  std::string common;
  std::size_t looked_at = 0, others = 0;
  for (const std::string& line : lines) {
    FoundHead found;
    string_view rest = line;
    if (time) {
      const std::size_t size = TakeTime(line, found);
      if (size == 0) continue;
      rest.remove_prefix(size);
    }
    rest = rest.substr(0, kLongest);
    if (looked_at++ == 0) {
      common = rest;
      continue;
    }
    const auto end = std::mismatch(common.begin(), common.end(), rest.begin(), rest.end()).first - common.begin();
    if (static_cast<std::size_t>(end) == rest.size()) continue;  // shorter, or empty behind it
    if (end == 0 && ++others * 20 < looked_at) continue;
    common.resize(static_cast<std::size_t>(end));
  }
  return common;
}

/// The syslog program that most lines are of.
std::string CommonProgram(const std::vector<std::string>& lines) {
  std::map<std::string, std::size_t> counts;
  for (const std::string& line : lines) {
    FoundHead found;
    string_view rest = string_view(line).substr(TakeTime(line, found));
    const std::size_t host = rest.find(' ');
    if (rest.size() == line.size() || host == kNowhere) continue;
    rest.remove_prefix(host + 1);
    const std::size_t size = CountIf(rest, IsNameChar);
    if (size > 0 && (rest.substr(size, 1) == "[" || rest.substr(size, 1) == ":"))
      ++counts[std::string(rest.substr(0, size))];
  }
  const auto most =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == counts.end() ? std::string() : most->first;
}

/// What says by its name what its lines are.
bool IsDaemon(string_view program) {
  static constexpr std::array<string_view, 16> kDaemons = {
      "kernel", "slurm",     "systemd", "nv",     "nvidia", "dockerd", "containerd", "kubelet",
      "sshd",   "rasdaemon", "mce",     "opensm", "ibacm",  "dbus",    "cron",       "CRON"};
  return std::any_of(kDaemons.begin(), kDaemons.end(), [&](string_view daemon) { return program.starts_with(daemon); });
}

/// Whether most lines have a host and a program behind their time: then the time is syslog's, and more than that is.
bool IsSyslog(const std::vector<std::string>& lines) {
  std::size_t programs = 0;
  std::set<string_view> hosts;
  for (const std::string& line : lines) {
    FoundHead found;
    const string_view rest = string_view(line).substr(TakeTime(line, found));
    const std::size_t host = CountIf(rest, IsNameChar),
                      program = CountIf(rest.substr(std::min(host + 1, rest.size())), IsNameChar);
    const string_view behind = rest.substr(std::min(host + 1 + program, rest.size()));
    if (host == 0 || program == 0 || (!behind.starts_with(':') && !behind.starts_with('['))) continue;
    ++programs;
    hosts.insert(rest.substr(0, host));
  }
  return programs * 2 > lines.size() && hosts.size() * 4 <= programs + 3;
}

/// `trainer-0`, `trainer-7d9f4`.
bool HasOrdinal(string_view name) {
  const std::size_t dash = name.substr(0, name.find(' ')).rfind('-');
  return dash != kNowhere && name.substr(dash, name.find(' ') - dash).find_first_of("0123456789") != kNowhere;
}

/// `> `, `    `: nothing that could be of the text.
bool IsDecoration(string_view constant) { return constant.find_first_not_of("> \t") == kNowhere; }

}  // namespace

std::optional<FoundHead> FindHead(string_view line, const LineHead& head) {
  FoundHead found;
  if (head.time && (found.size = TakeTime(line, found)) == 0) return std::nullopt;
  if (head.shape == Shape::kStructured && !line.starts_with('<')) return std::nullopt;
  return TakeShape(line.substr(found.size), head, found) ? std::optional(found) : std::nullopt;
}

std::vector<LineHead> PossibleHeads(const std::vector<std::string>& lines) {
  std::vector<LineHead> heads = {{false, Shape::kNumber}, {false, Shape::kFileNumber}, {true, Shape::kStructured}};
  if (const std::string program = CommonProgram(lines); !program.empty() && !IsDaemon(program))
    heads.push_back({true, Shape::kProgram, program});
  heads.push_back({true, Shape::kStep});
  for (const bool time : {false, true}) {
    if (time) heads.push_back({true, Shape::kNone});
    for (const Shape shape : {Shape::kFile, Shape::kBar, Shape::kBracket, Shape::kArrow})
      heads.push_back({time, shape});
    const std::string common = CommonStart(lines, time);
    // Not further than the blanks that are of the text: a mark ends what was put in front.
    if (const std::size_t indent = std::min(common.find_first_not_of(' '), common.size()); indent > 0)
      heads.push_back({time, Shape::kConstant, common.substr(0, indent)});
    for (std::size_t at = 0; at < common.size(); ++at) {
      const bool blank =
          common[at] == ' ' && (at == 0 || common[at - 1] != ' ' || at + 1 == common.size() || common[at + 1] != ' ');
      if (!blank && common.substr(at + 1, 1) == " ") continue;
      if (blank || common[at] == '>' || common[at] == '|' || common[at] == ']' || common[at] == '\t' ||
          common[at] == '+')
        heads.push_back({time, Shape::kConstant, common.substr(0, at + 1)});
    }
    for (const char* blanks : {"   ", "  ", " "}) heads.push_back({time, Shape::kWords, blanks});
  }
  return heads;
}

HeadFit FitOf(const std::vector<std::string>& lines, const LineHead& head) {
  constexpr std::size_t kFewestSure = 3, kFewestWords = 10, kFewestTimes = 4, kMostNames = 64;
  std::size_t found_count = 0, rising = 0, counting = 0, without_date = 0, bracketed = 0, behind_blank = 0, missing = 0;
  std::set<string_view> names;
  std::map<string_view, std::uint64_t> last;
  for (const std::string& line : lines) {
    const auto found = FindHead(line, head);
    if (!found) {
      if (++missing * 20 > lines.size()) return HeadFit::kNone;
      continue;
    }
    ++found_count;
    if (!found->who.empty()) names.insert(found->who);
    if (names.size() > kMostNames) return HeadFit::kNone;
    if (found->size < line.size() && line[found->size] == ' ') ++behind_blank;
    if (found->time.empty()) ++without_date;
    if (line[0] == '[' && line.size() > 1 && IsDigit(line[1])) ++bracketed;
    if (!found->number) continue;
    const auto [it, is_new] = last.try_emplace(found->who, *found->number);
    if (is_new || it->second < *found->number) ++rising;
    if (!is_new && it->second + 1 == *found->number) ++counting;
    it->second = *found->number;
  }
  // What two lines have in common may be what they say; numbers, and what a syslog server writes, show by themselves.
  const bool shows = head.shape == Shape::kNumber || head.shape == Shape::kFileNumber ||
                     head.shape == Shape::kStructured || head.shape == Shape::kStep;
  if (found_count < kFewestSure && !shows) return HeadFit::kNone;
  if (found_count == 0 || (names.size() > 1 && names.size() * 3 > found_count)) return HeadFit::kNone;
  const bool numbered = head.shape == Shape::kNumber || head.shape == Shape::kFileNumber;
  if (numbered && rising * 20 < found_count * 19) return HeadFit::kNone;
  // srun's task labels
  if (head.shape == Shape::kFile && behind_blank * 10 > found_count * 9)
    return HeadFit::kNone;  // a name and what it says
  if (head.shape == Shape::kNumber && lines[0].find(':') < 8 && behind_blank * 10 > found_count * 9)
    return HeadFit::kNone;
  if (missing > 0 || names.size() > 1) return HeadFit::kShape;
  if (numbered)
    return found_count >= kFewestSure || counting + 1 == found_count
               ? (found_count > 1 ? HeadFit::kSure : HeadFit::kShape)
               : HeadFit::kShape;
  if (found_count < kFewestSure) return HeadFit::kShape;
  const string_view name = names.empty() ? string_view() : *names.begin();
  switch (head.shape) {
    case Shape::kStep:
    case Shape::kStructured:
    case Shape::kProgram:
      return HeadFit::kSure;
    case Shape::kNone:
      return found_count >= kFewestTimes && (without_date == found_count ? !IsSyslog(lines) : bracketed == found_count)
                 ? HeadFit::kSure
                 : HeadFit::kShape;
    case Shape::kBar:
    case Shape::kBracket:
    case Shape::kArrow:
    case Shape::kFile:
      return head.time ? HeadFit::kShape : HeadFit::kSure;
    case Shape::kWords:
      return (head.time ? name.find('/') != kNowhere : found_count >= kFewestWords || HasOrdinal(name))
                 ? HeadFit::kSure
                 : HeadFit::kShape;
    case Shape::kConstant:
      return !head.time && IsDecoration(head.constant) ? HeadFit::kSure : HeadFit::kShape;
    default:
      return HeadFit::kShape;
  }
}

}  // namespace inquest
