// What a text is that no program printed: a program's source, or a document that quotes messages, by the look of its
// lines.
#include "parsers/writing.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/ascii.h"
#include "core/time.h"

namespace inquest {
namespace {

using std::string_view;

constexpr InputForm kSource{"source-code", "a program's source, which is passed over"};
constexpr InputForm kDocument{"document", "a document, which is passed over; if there is a log in it, give that alone"};

constexpr InputForm kData{"data", "data or a configuration, which is passed over"};

constexpr std::size_t kMostLines = 1000, kFirstLook = 100;
constexpr std::size_t kFewestLines = 8, kFirstLines = 4, kLastLines = 2;

bool IsOfName(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }

string_view Trimmed(string_view text) {
  constexpr const char* kBlank = " \t\r\f";
  const std::size_t begin = text.find_first_not_of(kBlank);
  return begin == kNowhere ? string_view() : text.substr(begin, text.find_last_not_of(kBlank) + 1 - begin);
}

template <std::size_t kSize>
bool BeginsWithOneOf(string_view text, const std::array<string_view, kSize>& heads) {
  return std::any_of(heads.begin(), heads.end(), [&](string_view head) { return text.starts_with(head); });
}

// ---- what only a running program prints -------------------------------------------------------------------------

bool IsException(string_view line) {
  const std::size_t end = line.substr(0, 96).find(": ");
  if (end == kNowhere) return false;
  const string_view name = line.substr(0, end);
  return std::all_of(name.begin(), name.end(), [](char c) { return IsOfName(c) || c == '.'; }) &&
         (name.ends_with("Error") || name.ends_with("Exception"));
}

/// A row of figures, as a program tabulates them: documents set rules between theirs.
bool IsRowOfFigures(string_view line) {
  constexpr std::size_t kFewest = 3;
  if (line.find_first_of("|,;&{") != kNowhere) return false;
  std::size_t words = 0, figures = 0;
  for (std::size_t at = line.find_first_not_of(" \t"); at != kNowhere; ++words) {
    const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
    const string_view word = line.substr(at, end - at);
    figures += word.find_first_not_of("0123456789.+-eE%") == kNowhere && IsDigit(word.back()) ? 1 : 0;
    at = line.find_first_not_of(" \t", end);
  }
  return figures >= kFewest && figures * 3 >= words * 2;
}

/// Open MPI's `[node17:04120] ` and `[[12065,1],23][btl_openib_component.c:...]`, which may stand among much advice.
bool IsOfOpenMpi(string_view line) {
  constexpr std::size_t kLongest = 80;
  if (line.size() > 2 && line.starts_with("[[")) return IsDigit(line[2]);
  const std::size_t end = line.starts_with('[') ? line.substr(0, kLongest).find(']') : kNowhere;
  const std::size_t colon = end == kNowhere ? kNowhere : line.substr(0, end).rfind(':');
  if (colon == kNowhere || colon < 2 || colon + 1 == end) return false;
  const auto is_of_host = [](char c) { return IsOfName(c) || c == '-' || c == '.'; };
  return std::all_of(line.begin() + 1, line.begin() + static_cast<std::ptrdiff_t>(colon), is_of_host) &&
         std::all_of(line.begin() + static_cast<std::ptrdiff_t>(colon) + 1,
                     line.begin() + static_cast<std::ptrdiff_t>(end), IsDigit);
}

/// Of a line without the blanks at its end. Exceptions are listed in comments too, indented.
bool IsPrinted(string_view whole) {
  static constexpr std::array<string_view, 28> kHeads = {"Traceback (most",
                                                         "broker.info[",
                                                         "LAMMPS (",
                                                         "HPLinpack ",
                                                         "End of Tests.",
                                                         "File \"",
                                                         "frame #",
                                                         "srun: ",
                                                         "slurmstepd: ",
                                                         "terminate called",
                                                         "NVRM: ",
                                                         "[rank",
                                                         "[default",
                                                         "[INFO",
                                                         "[WARN",
                                                         "[ERROR",
                                                         "[E ",
                                                         "[W ",
                                                         "Epoch",
                                                         "epoch ",
                                                         "epoch:",
                                                         "Step ",
                                                         "step ",
                                                         "step:",
                                                         "iteration",
                                                         "{'",
                                                         "Process SpawnProcess",
                                                         "Fatal Python error"};
  static constexpr std::array<string_view, 7> kLevels = {"INFO",  "WARNING",  "WARN", "ERROR",
                                                         "DEBUG", "CRITICAL", "FATAL"};
  const string_view line = Trimmed(whole);
  if (BeginsWithOneOf(line, kHeads) || IsOfOpenMpi(line)) return true;
  for (const string_view level : kLevels)
    if (line.starts_with(level) && line.size() > level.size() &&
        string_view(" :]|").find(line[level.size()]) != kNowhere)
      return true;
  const string_view inner = line.substr(std::min(line.find_first_not_of("[(<{|> "), line.size()));
  if (!inner.empty() && (IsDigit(inner[0]) || IsLetter(inner[0])) && ParseTime(inner)) return true;
  if (inner.size() > 5 && string_view("EWIF").find(inner[0]) != kNowhere &&
      std::all_of(inner.begin() + 1, inner.begin() + 4, IsDigit) && inner.substr(4, 3).find(' ') != kNowhere)
    return true;
  if (line[0] == '(' && line.substr(0, 64).find("pid=") != kNowhere) return true;
  if (IsRowOfFigures(line)) return true;
  if (const std::size_t tag = IsDigit(line[0]) ? line.find(": ") : kNowhere;
      tag < 5 && std::all_of(line.begin(), line.begin() + static_cast<std::ptrdiff_t>(tag), IsDigit))
    return true;
  const string_view head = line.substr(0, 160);
  return (line.size() == whole.size() && IsException(line)) || head.find("%|") != kNowhere ||
         head.find("] NCCL ") != kNowhere || head.find(":0:") != kNowhere;
}

// ---- source ------------------------------------------------------------------------------------------------------

struct Keyword {
  string_view word;
  bool opens = false;  ///< counts only where the line ends as one of source
};
constexpr std::array kKeywords = {Keyword{"#include"},
                                  Keyword{"#define"},
                                  Keyword{"#if"},
                                  Keyword{"#endif"},
                                  Keyword{"#else"},
                                  Keyword{"#pragma"},
                                  Keyword{"//"},
                                  Keyword{"/*"},
                                  Keyword{"\"\"\""},
                                  Keyword{"'''"},
                                  Keyword{"#!"},
                                  Keyword{"return"},
                                  Keyword{"raise "},
                                  Keyword{"def ", true},
                                  Keyword{"class ", true},
                                  Keyword{"elif ", true},
                                  Keyword{"else", true},
                                  Keyword{"try", true},
                                  Keyword{"except", true},
                                  Keyword{"finally", true},
                                  Keyword{"if", true},
                                  Keyword{"for", true},
                                  Keyword{"while", true},
                                  Keyword{"with ", true},
                                  Keyword{"assert ", true},
                                  Keyword{"static ", true},
                                  Keyword{"const ", true},
                                  Keyword{"void ", true},
                                  Keyword{"int ", true},
                                  Keyword{"struct ", true},
                                  Keyword{"template", true},
                                  Keyword{"namespace ", true},
                                  Keyword{"using ", true},
                                  Keyword{"public", true},
                                  Keyword{"private", true},
                                  Keyword{"func ", true},
                                  Keyword{"package "},
                                  Keyword{"fn ", true},
                                  Keyword{"let ", true},
                                  Keyword{"var ", true},
                                  Keyword{"async ", true},
                                  Keyword{"await ", true},
                                  Keyword{"case ", true},
                                  Keyword{"switch", true},
                                  Keyword{"break;"},
                                  Keyword{"continue;"},
                                  Keyword{"self."},
                                  Keyword{"yield"},
                                  Keyword{"#SBATCH"},
                                  Keyword{"fi"},
                                  Keyword{"done"},
                                  Keyword{"auto ", true},
                                  Keyword{"extern ", true},
                                  Keyword{"typedef ", true},
                                  Keyword{"@@ -"},
                                  Keyword{"diff --git"}};
constexpr std::size_t kImport = kKeywords.size(), kDecorator = kImport + 1, kKinds = kImport + 2;

/// The place of the keyword that the line begins with.
std::optional<std::size_t> KeywordOf(string_view line) {
  const bool opens = string_view(":{(),;").find(line.back()) != kNowhere;
  for (std::size_t i = 0; i < kKeywords.size(); ++i) {
    const auto& [word, needs_end] = kKeywords[i];
    if (!line.starts_with(word) || (needs_end && !opens)) continue;
    const bool ended = !IsOfName(word.back()) || line.size() == word.size() || !IsOfName(line[word.size()]);
    if (ended && (word.size() > 4 || needs_end || !IsLetter(word[0]) || line.size() == word.size())) return i;
  }
  const std::size_t words = static_cast<std::size_t>(std::count(line.begin(), line.end(), ' '));
  if ((line.starts_with("import ") && (words == 1 || line.find(" as ") != kNowhere || line.find(',') != kNowhere)) ||
      (line.starts_with("from ") && line.find(" import ") != kNowhere))
    return kImport;
  if (line.size() > 2 && line[0] == '@' && IsLetter(line[1]) && line.substr(0, line.find('(')).find(' ') == kNowhere)
    return kDecorator;
  return std::nullopt;
}

/// `name = value`, `name(...)`: so look lines of source, and dumps of a configuration.
bool IsStatement(string_view line) {
  if (line.size() > 1 && (line.back() == ';' || line.back() == '{' || line.back() == '\\') && !IsDigit(line[0]))
    return true;
  if (line.size() > 3 && line[0] == '{' && line.ends_with("},")) return true;
  std::size_t end = 0;
  while (end < line.size() && (IsOfName(line[end]) || string_view(".[]\"'*&:>-").find(line[end]) != kNowhere)) ++end;
  if (end == 0 || end == line.size()) return false;
  if (line[end] == '(') return string_view("),(").find(line.back()) != kNowhere;
  const std::size_t sign = line.find_first_not_of(' ', end);
  if (sign == kNowhere || sign + 2 >= line.size()) return false;
  const std::size_t equals = string_view("+-*/|&").find(line[sign]) != kNowhere ? sign + 1 : sign;
  return line[equals] == '=' && line[equals + 1] != '=';
}

// ---- a document --------------------------------------------------------------------------------------------------

/// Without tags, marks of lists and headings.
std::string WithoutMarks(string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::size_t end = line[i] == '<' ? line.find('>', i) : kNowhere;
    if (end != kNowhere && end - i < 80 && i + 1 < line.size() && (IsLetter(line[i + 1]) || line[i + 1] == '/'))
      i = end;
    else
      out += line[i];
  }
  out.erase(0, std::min(out.find_first_not_of("#*->|+ \t0123456789."), out.size()));
  return out;
}

bool IsOneOf(string_view word, std::span<const string_view> sorted) {
  return std::binary_search(sorted.begin(), sorted.end(), word);
}

enum class Voice : std::uint8_t { kNone, kOthers, kOwn };
/// Whether it is a sentence, and whether one who speaks of himself wrote it.
Voice VoiceOf(string_view line) {
  static constexpr std::array<string_view, 37> kFunctionWords = {
      "a",    "an",   "and", "are",  "as", "at",  "be",  "but",  "by",   "can",  "for", "from", "has",
      "have", "i",    "if",  "in",   "is", "it",  "may", "my",   "not",  "of",   "on",  "or",   "should",
      "so",   "that", "the", "this", "to", "use", "we",  "when", "will", "with", "you"};
  constexpr std::size_t kShortest = 25, kFewestWords = 6;
  const std::string text = WithoutMarks(line);
  // Chinese, Japanese and Korean put no blanks between words; three bytes a character, the first of which says so.
  constexpr std::ptrdiff_t kShortestOfSigns = 8;
  const auto signs = std::count_if(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) >= 0xE3 && static_cast<unsigned char>(c) <= 0xED;
  });
  if (signs >= kShortestOfSigns) return text.find("\xe6\x88\x91") == kNowhere ? Voice::kOthers : Voice::kOwn;
  if (text.size() < kShortest) return Voice::kNone;
  std::size_t words = 0, plain = 0, function = 0;
  bool own = false;
  for (std::size_t at = text.find_first_not_of(' '); at != kNowhere;
       at = text.find_first_not_of(' ', std::min(text.find(' ', at), text.size()))) {
    string_view word = string_view(text).substr(at, text.find(' ', at) - at);
    ++words;
    const std::size_t begin = word.find_first_not_of("\"'(*_`["), end = word.find_last_not_of("\"')*_`],.:;!?");
    word = begin == kNowhere || end == kNowhere || end < begin ? string_view() : word.substr(begin, end + 1 - begin);
    if (word.empty() || !IsLetter(word[0]) ||
        !std::all_of(word.begin(), word.end(), [](char c) { return IsLetter(c) || c == '-' || c == '\''; }))
      continue;
    ++plain;
    std::string lower(word);
    std::transform(lower.begin(), lower.end(), lower.begin(),
                   [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
    own = own || word == "I" || word == "I'm" || word == "I've" || lower == "my";
    function += IsOneOf(lower, kFunctionWords) ? 1 : 0;
  }
  const bool sentence = words >= kFewestWords && plain * 10 >= words * 7 && function >= 2 && function * 7 >= words;
  return !sentence ? Voice::kNone : own ? Voice::kOwn : Voice::kOthers;
}

enum class DocumentMark : std::uint8_t {
  kHeading,
  kUnderline,
  kFence,
  kBullet,
  kNumber,
  kLink,
  kDirective,
  kTag,
  kCode,
  kBold,
  kCount
};
using DocumentMarks = std::bitset<static_cast<std::size_t>(DocumentMark::kCount)>;

DocumentMarks MarksOf(string_view line, string_view before) {
  DocumentMarks marks;
  const auto set = [&](DocumentMark mark, bool there) {
    if (there) marks.set(static_cast<std::size_t>(mark));
  };
  const std::size_t hashes = std::min(line.find_first_not_of('#'), line.size());
  set(DocumentMark::kHeading,
      hashes > 0 && hashes < 7 && line.size() > hashes + 1 && line[hashes] == ' ' && IsLetter(line[hashes + 1]));
  set(DocumentMark::kUnderline, line.size() > 3 && string_view("=-~^*").find(line[0]) != kNowhere &&
                                    line.find_first_not_of(line[0]) == kNowhere && before.size() <= line.size() + 2 &&
                                    line.size() <= before.size() + 2);
  set(DocumentMark::kFence, line.starts_with("```") || line.starts_with("~~~"));
  set(DocumentMark::kBullet, line.size() > 3 && string_view("-*+").find(line[0]) != kNowhere && line[1] == ' ' &&
                                 (IsLetter(line[2]) || line[2] == '[' || line[2] == '`' || line[2] == '*'));
  const std::size_t digits = std::min(line.find_first_not_of("0123456789"), line.size());
  set(DocumentMark::kNumber, digits > 0 && digits < 3 && line.substr(digits).starts_with(". "));
  set(DocumentMark::kLink,
      line.find("](") != kNowhere || line.find("`_") != kNowhere || line.find("href=") != kNowhere);
  set(DocumentMark::kDirective, line.starts_with(".. "));
  set(DocumentMark::kTag, line.size() > 3 && line[0] == '<' &&
                              (IsLetter(line[1]) || line[1] == '/' || line[1] == '!') && line.find('>') != kNowhere);
  const std::size_t tick = line.find('`');
  set(DocumentMark::kCode, tick != kNowhere && line.find('`', tick + 1) != kNowhere);
  const std::size_t bold = line.find("**");
  set(DocumentMark::kBold, bold != kNowhere && line.find("**", bold + 2) != kNowhere);
  return marks;
}

/// A heading of the forms in which failures are reported.
bool IsOfIssue(string_view line) {
  static constexpr std::array<string_view, 16> kBegin = {
      "to reproduce",   "steps to reproduce", "expected behavio", "your current environment",
      "system info",    "environment info",   "what happened",    "bug description",
      "actual behavio", "additional context", "reproduction",     "issue type",
      "your question",  "describe the bug",   "the output of",    "versions"};
  constexpr std::size_t kLongest = 80;
  if (line.size() > kLongest) return false;
  std::string lower(line.substr(std::min(line.find_first_not_of("#*> \t"), line.size())));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return BeginsWithOneOf(lower, kBegin) || lower.find("describe the bug") != std::string::npos ||
         lower.find("how to reproduce") != std::string::npos;
}

// ---- data --------------------------------------------------------------------------------------------------------

/// JSON without a word of when, how bad or by whom: no record of anything.
bool IsJsonData(string_view text) {
  static constexpr std::array<string_view, 31> kOfRecords = {
      "\"time",     "\"@timestamp", "\"ts\"",    "\"date",   "\"_time", "Time\"",     "\"level\"",   "\"severity\"",
      "\"status\"", "Status\"",     "\"state\"", "\"State",  "\"exit",  "\"reason\"", "\"message\"", "\"msg\"",
      "\"log\"",    "\"line\"",     "\"error",   "\"kind\"", "\"event", "\"Event",    "\"output",    "\"rank",
      "\"pid\"",    "\"step",       "_steps",    "\"epoch",  "\"loss",  "\"iter",     "_time\""};
  text = Trimmed(text.substr(std::min(text.find_first_not_of("\n\r\t "), text.size())));
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text = Trimmed(text.substr(0, text.size() - 1));
  if (text.size() < 2 || (text[0] != '{' && text[0] != '[') || (text.back() != '}' && text.back() != ']')) return false;
  const std::size_t inner = text.find_first_not_of(" \t\r\n", 1);
  if (string_view("{[\"}]").find(text[inner]) == kNowhere ||
      (text[0] == '[' && text[inner] != '{' && text[inner] != '"'))
    return false;
  return std::none_of(kOfRecords.begin(), kOfRecords.end(),
                      [&](string_view key) { return text.find(key) != kNowhere; });
}

/// `key:`, `key: value`
bool IsYamlKey(string_view line) {
  const std::size_t end = static_cast<std::size_t>(
      std::find_if_not(line.begin(), line.end(),
                       [](char c) { return IsOfName(c) || c == '-' || c == '.' || c == '/'; }) -
      line.begin());
  return end > 0 && end < line.size() && line[end] == ':' && (end + 1 == line.size() || line[end + 1] == ' ');
}

/// Keys, and lists of quoted texts below them: rules, alerts, tables of messages. What tools print of a state has tabs,
/// or no such list.
bool IsYaml(string_view text) {
  constexpr std::size_t kFewestQuoted = 2, kLongEnough = 16;
  std::size_t lines = 0, keys = 0, items = 0, quoted = 0;
  for (; !text.empty(); text.remove_prefix(std::min(std::min(text.find('\n'), text.size()) + 1, text.size()))) {
    const string_view whole = text.substr(0, text.find('\n'));
    const string_view line = Trimmed(whole);
    if (line.empty() || line[0] == '#' || line == "---") continue;
    if (whole[0] == '\t' || (lines == 0 && !IsYamlKey(line))) return false;
    if (line == "status:" || line.starts_with("apiVersion:")) return false;
    if (++lines > kLongEnough && (keys + items) * 2 < lines) return false;
    const bool item = line.starts_with("- ");
    const string_view value = line.substr(std::min(line.find(item ? "- " : ": "), line.size() - 2) + 2);
    items += item ? 1 : 0;
    keys += !item && IsYamlKey(line) ? 1 : 0;
    const bool is_quoted = !value.empty() && (value[0] == '\'' || value[0] == '"');
    if (!item && !is_quoted && IsPrinted(whole)) return false;
    quoted += is_quoted ? 1 : 0;
  }
  return keys > 0 && quoted >= kFewestQuoted && (keys + items) * 10 >= lines * 9 && (items > 0 || quoted * 2 >= lines);
}

// ---- all of it ---------------------------------------------------------------------------------------------------

enum class LineKind : std::uint8_t { kOther, kPrinted, kCode, kProse, kNeutral };

struct Shares {
  std::vector<LineKind> lines;
  std::bitset<kKinds> keywords;
  DocumentMarks marks;
  std::size_t own_voice = 0, marked = 0, headings = 0;
  bool issue = false;
  std::size_t Count(LineKind kind) const {
    return static_cast<std::size_t>(std::count(lines.begin(), lines.end(), kind));
  }
  bool BeginsPrinted() const {
    constexpr std::size_t kFirst = kFirstLines;
    const auto end = lines.begin() + static_cast<std::ptrdiff_t>(std::min(kFirst, lines.size()));
    return std::find(lines.begin(), end, LineKind::kPrinted) != end;
  }
  /// Lines of code behind the last that was printed, if there is one, and among the last that tell.
  std::size_t CodeAtEnd() const {
    constexpr std::size_t kLast = 12;
    std::size_t code = 0, looked_at = 0;
    for (auto line = lines.rbegin(); line != lines.rend() && *line != LineKind::kPrinted && looked_at < kLast; ++line) {
      code += *line == LineKind::kCode ? 1 : 0;
      looked_at += *line == LineKind::kNeutral ? 0 : 1;
    }
    return code;
  }
  bool EndsPrinted(std::size_t last) const {
    return std::find(lines.end() - static_cast<std::ptrdiff_t>(std::min(last, lines.size())), lines.end(),
                     LineKind::kPrinted) != lines.end();
  }
};

/// Comments of scripts, brackets alone, names in a list: any text has them.
bool IsNeutral(string_view line) {
  if (line[0] == '#' && !line.starts_with("#!")) return true;
  return line.find_first_not_of("{}[]();,*/\\\"'") == kNowhere ||
         (line.back() == ',' && std::all_of(line.begin(), line.end() - 1, IsOfName));
}

std::vector<string_view> FilledLines(string_view text) {
  std::vector<string_view> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const string_view line = text.substr(0, end);
    if (const std::size_t last = line.find_last_not_of(" \t\r\f"); last != kNowhere)
      lines.push_back(line.substr(0, last + 1));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

Shares SharesOf(std::span<const string_view> all, std::size_t most) {
  Shares shares;
  std::set<string_view> seen;
  const std::size_t step = (all.size() + most - 1) / most;
  for (std::size_t i = 0; i < all.size(); i += step) {
    string_view line = Trimmed(all[i]);
    shares.issue = shares.issue || IsOfIssue(line);
    const DocumentMarks marks = MarksOf(line, i == 0 ? string_view() : Trimmed(all[i - 1]));
    shares.marks |= marks;
    shares.marked += marks.any() ? 1 : 0;
    shares.headings += marks.test(static_cast<std::size_t>(DocumentMark::kHeading)) ? 1 : 0;
    if (IsPrinted(all[i])) {
      shares.lines.push_back(LineKind::kPrinted);
      continue;
    }
    const bool of_patch = line.size() > 1 && (line[0] == '+' || line[0] == '-') && line[1] != line[0];
    if (const string_view rest = of_patch ? Trimmed(line.substr(1)) : line; !rest.empty()) line = rest;
    const auto keyword = KeywordOf(line);
    if (keyword) shares.keywords.set(*keyword);
    const bool code = keyword || (!IsNeutral(line) && IsStatement(line));
    // Every rank prints the same sentence; a document says a thing once.
    const Voice voice = code || !seen.insert(all[i]).second ? Voice::kNone : VoiceOf(Trimmed(all[i]));
    shares.own_voice += voice == Voice::kOwn ? 1 : 0;
    shares.lines.push_back(code                    ? LineKind::kCode
                           : voice != Voice::kNone ? LineKind::kProse
                           : IsNeutral(line)       ? LineKind::kNeutral
                                                   : LineKind::kOther);
  }
  return shares;
}

/// What `diff`, `git diff`, `git log -p` and `git format-patch` begin with.
bool BeginsPatch(string_view line) {
  static constexpr std::array<string_view, 3> kHeads = {"diff --git ", "--- a/", "Index: "};
  constexpr std::size_t kHash = 40;
  if (BeginsWithOneOf(line, kHeads)) return true;
  const std::size_t hash = line.starts_with("commit ") ? 7 : line.starts_with("From ") ? 5 : kNowhere;
  return hash != kNowhere && line.size() >= hash + kHash &&
         std::all_of(line.begin() + static_cast<std::ptrdiff_t>(hash),
                     line.begin() + static_cast<std::ptrdiff_t>(hash + kHash),
                     [](char c) { return IsDigit(c) || (c >= 'a' && c <= 'f'); });
}

bool IsSource(const Shares& shares, bool patch) {
  constexpr std::size_t kFewestKeywords = 4, kFewestAtEnd = 3;
  const std::size_t telling = shares.lines.size() - shares.Count(LineKind::kNeutral),
                    code = shares.Count(LineKind::kCode);
  if (shares.keywords.count() < kFewestKeywords || shares.issue || shares.BeginsPrinted()) return false;
  if (patch) return !shares.EndsPrinted(6) && shares.Count(LineKind::kPrinted) * 8 <= telling;
  if (shares.CodeAtEnd() < kFewestAtEnd) return false;
  return code * 10 >= telling * 3 && (code + shares.Count(LineKind::kProse)) * 2 >= telling &&
         shares.Count(LineKind::kPrinted) * 8 <= telling;
}

bool BeginsPage(string_view line) {
  std::string lower(line.substr(0, 14));
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return lower.starts_with("<!doctype html") || lower.starts_with("<html");
}

bool IsDocument(const Shares& shares, bool page) {
  constexpr std::size_t kFewestSentences = 12, kLong = 60, kManyMarks = 4, kManyHeadings = 8, kLast = 5;
  const std::size_t telling = shares.lines.size() - shares.Count(LineKind::kNeutral),
                    prose = shares.Count(LineKind::kProse), printed = shares.Count(LineKind::kPrinted);
  if (page && prose >= 2 && printed <= prose) return true;
  const bool fenced = shares.marks.test(static_cast<std::size_t>(DocumentMark::kFence));
  // All headings and lists, and hardly a sentence: a handbook.
  if (fenced && shares.headings >= kManyHeadings && shares.marks.count() >= kManyMarks &&
      shares.marked * 4 >= telling && printed * 4 <= shares.marked && shares.own_voice == 0 && !shares.issue &&
      !shares.BeginsPrinted() && !shares.EndsPrinted(kLast))
    return true;
  if (prose < kFewestSentences || prose * (shares.marks.count() < kManyMarks ? 5 : 8) < telling ||
      shares.marks.count() < 2 || shares.issue || shares.BeginsPrinted() || shares.EndsPrinted(kLast))
    return false;
  if (prose >= kLong) return printed <= prose;
  return printed * 2 <= prose && shares.own_voice * 6 <= prose;
}

/// Of the lines that are not empty, kFewestLines or more.
const InputForm* FormOfLines(std::span<const string_view> lines) {
  // Most texts are logs, and say so at either end or in a few lines.
  if (std::any_of(lines.begin(), lines.begin() + kFirstLines, IsPrinted) ||
      std::any_of(lines.end() - kLastLines, lines.end(), IsPrinted))
    return nullptr;
  const Shares first = SharesOf(lines, kFirstLook);
  if ((first.Count(LineKind::kCode) + first.Count(LineKind::kProse) + first.marked) * 8 < first.lines.size())
    return nullptr;
  const Shares shares = SharesOf(lines, kMostLines);
  return IsSource(shares, BeginsPatch(lines[0]))    ? &kSource
         : IsDocument(shares, BeginsPage(lines[0])) ? &kDocument
                                                    : nullptr;
}

}  // namespace

const InputForm* FormOfText(string_view text) {
  if (IsJsonData(text) || IsYaml(text)) return &kData;
  const std::vector<string_view> all = FilledLines(text);
  if (all.size() < kFewestLines) return nullptr;
  // A log between fences is what somebody pasted: they are none of its marks.
  const bool fenced = all.size() >= kFewestLines + 2 && all.front().starts_with("```") && all.back() == "```";
  return FormOfLines(fenced ? std::span(all).subspan(1, all.size() - 2) : std::span(all));
}

}  // namespace inquest
