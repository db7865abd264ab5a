// What somebody did to all lines of a log after it was written, found in its head, and undone line by line.
#include "parsers/restoration.h"

#include <algorithm>
#include <array>
#include <set>

#include "core/ascii.h"
#include "parsers/docker_line.h"
#include "parsers/envelope.h"

namespace inquest {
namespace {

using std::string_view;

constexpr std::size_t kMostChanges = 5;
constexpr std::size_t kHeadLines = 400, kTailLines = 100, kTellingLines = 100;
constexpr std::size_t kLongestSampled = 16 * 1024;

string_view WithoutReturn(string_view line) { return line.ends_with('\r') ? line.substr(0, line.size() - 1) : line; }

/// Characters of UTF-8.
std::size_t Width(string_view text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

// ---- what shows that a line is read as it was printed ------------------------------------------------------------

bool IsExceptionLine(string_view text) {
  const std::size_t end = text.find(": ");
  if (end == kNowhere || end > 96 || end < 5) return false;
  const string_view name = text.substr(0, end);
  const bool plain = std::all_of(name.begin(), name.end(), [](char c) { return IsWordChar(c) || c == '.'; });
  return plain && (name.ends_with("Error") || name.ends_with("Exception") || name.ends_with("Interrupt"));
}

/// `[E405 07:10:00`, `[E1129 10:22:33`.
bool IsC10Head(string_view text) {
  return text.size() > 12 && text[0] == '[' && string_view("EWIF").find(text[1]) != kNowhere && IsDigit(text[2]) &&
         IsDigit(text[3]) && IsDigit(text[4]);
}

/// `node07:4123:4177`
bool IsProcess(string_view word) {
  const std::size_t host = word.find(':'), pid = host == kNowhere ? kNowhere : word.find(':', host + 1);
  if (pid == kNowhere || host == 0 || pid + 1 == word.size()) return false;
  const auto digits = [](string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), IsDigit); };
  return digits(word.substr(host + 1, pid - host - 1)) && digits(word.substr(pid + 1)) && !digits(word.substr(0, host));
}

/// `[node07:41234] `, by which Open MPI, PMIx and UCX say who speaks.
bool IsSpeaker(string_view text) {
  const std::size_t colon = text.substr(0, 80).find(':'), close = text.substr(0, 96).find("] ");
  if (!text.starts_with('[') || colon < 2 || colon == kNowhere || close == kNowhere || close < colon + 2) return false;
  const string_view host = text.substr(1, colon - 1), pid = text.substr(colon + 1, close - colon - 1);
  return std::all_of(pid.begin(), pid.end(), IsDigit) && !std::all_of(host.begin(), host.end(), IsDigit) &&
         host.find_first_of(" []") == kNowhere;
}

/// Whether something that only begins a line begins this one.
bool IsBeginning(string_view text) {
  static constexpr std::array<string_view, 19> kHeads = {"Traceback (most recent call last)",
                                                         "  File \"",
                                                         "terminate called",
                                                         "Fatal Python error",
                                                         "Exception raised from",
                                                         "frame #",
                                                         "srun: ",
                                                         "slurmstepd: ",
                                                         "Segmentation fault",
                                                         "Process ",
                                                         "*** ",
                                                         "NCCL version ",
                                                         "[rank",
                                                         "[default",
                                                         "Current thread ",
                                                         "Thread 0x",
                                                         "During handling of",
                                                         "The above exception",
                                                         "Root Cause"};
  for (const string_view head : kHeads)
    if (text.starts_with(head)) return true;
  if (IsExceptionLine(text) || IsC10Head(text) || IsSpeaker(text)) return true;
  if (text.substr(0, 160).find(" NCCL ") != kNowhere && IsProcess(text.substr(0, text.find(' ')))) return true;
  // E0405 07:10:00.123000 41 torch/...
  return text.size() > 14 && string_view("EWIF").find(text[0]) != kNowhere &&
         std::all_of(text.begin() + 1, text.begin() + 5, IsDigit) && text[5] == ' ' && IsDigit(text[6]);
}

/// Whether an envelope's reader knows the line's front, or nothing is in front of it.
bool IsRead(string_view line, std::string& scratch) {
  if (line.empty()) return false;
  const Peeled peeled = Peel(line, scratch);
  return IsBeginning(peeled.text) || peeled.origin.rank || peeled.origin.local_rank ||
         (peeled.origin.pid && !peeled.origin.host);
}

// ---- the sample --------------------------------------------------------------------------------------------------

/// Lines of the head: the first, the last, and those in between that a change would hide most.
std::vector<std::string> Sample(string_view head, bool whole) {
  static constexpr std::array<string_view, 3> kTelling = {"Traceback (most recent call last)", "] NCCL WARN ",
                                                          "[Rank "};
  if (const std::size_t last = head.rfind('\n'); !whole && last != kNowhere) head = head.substr(0, last + 1);
  std::set<std::size_t> begins;
  std::size_t at = 0;
  for (; at < head.size() && begins.size() < kHeadLines; at = std::min(head.find('\n', at), head.size() - 1) + 1)
    begins.insert(at);
  const std::size_t first_end = at;
  std::size_t last_begin = head.size();
  for (std::size_t i = 0; i < kTailLines && last_begin > first_end; ++i) {
    const std::size_t before = last_begin < 2 ? kNowhere : head.rfind('\n', last_begin - 2);
    last_begin = std::max(before == kNowhere ? 0 : before + 1, first_end);
    begins.insert(last_begin);
  }
  for (const string_view words : kTelling) {
    std::size_t found = first_end;
    for (std::size_t i = 0; i < kTellingLines && (found = head.substr(0, last_begin).find(words, found)) != kNowhere;
         ++i, ++found)
      begins.insert(head.rfind('\n', found) + 1);
  }
  std::vector<std::string> lines;
  for (const std::size_t begin : begins)
    lines.emplace_back(WithoutReturn(head.substr(begin, std::min(head.find('\n', begin), head.size()) - begin))
                           .substr(0, kLongestSampled));
  return lines;
}

std::vector<std::string> Filled(const std::vector<std::string>& lines) {
  std::vector<std::string> out;
  std::copy_if(lines.begin(), lines.end(), std::back_inserter(out),
               [](const std::string& line) { return line.find_first_not_of(" \t") != kNowhere; });
  return out;
}

// ---- each kind of change -----------------------------------------------------------------------------------------

std::string WithoutEscapes(string_view text, EscapeSpelling spelling) {
  std::string out;
  AppendWithoutEscapes(text, spelling, out);
  return out;
}

std::optional<Change> FindEscapes(const std::vector<std::string>& lines) {
  constexpr std::size_t kEnough = 4;
  for (const EscapeSpelling spelling : {EscapeSpelling::kCaret, EscapeSpelling::kOctal, EscapeSpelling::kSlash,
                                        EscapeSpelling::kGone, EscapeSpelling::kC1}) {
    std::size_t count = 0;
    for (const std::string& line : lines) {
      if (line.starts_with('{')) continue;  // JSON spells ESC in a way of its own
      count += CountEscapes(line, spelling, kEnough - std::min(count, kEnough));
    }
    if (count >= kEnough) {
      Change change{.kind = Change::Kind::kEscapes};
      change.spelling = spelling;
      return change;
    }
  }
  return std::nullopt;
}

constexpr string_view kBlankEntity = "&nbsp;";
constexpr std::array<std::pair<string_view, string_view>, 7> kEntities = {{{kBlankEntity, " "},
                                                                           {"&lt;", "<"},
                                                                           {"&gt;", ">"},
                                                                           {"&quot;", "\""},
                                                                           {"&#39;", "'"},
                                                                           {"&#x27;", "'"},
                                                                           {"&amp;", "&"}}};

/// Copied from the source of a page: all marks are spelt out, and none is there as it is; or a mailer's, which spells
/// blanks, and of the marks some.
std::optional<Change> FindEntities(const std::vector<std::string>& lines) {
  constexpr std::size_t kEnough = 2, kEnoughBlanks = 3;
  std::size_t count = 0, blanks = 0;
  bool marks = false;
  for (const std::string& line : lines) {
    marks = marks || line.find_first_of("<>\"") != kNowhere;
    blanks += line.find(kBlankEntity) != kNowhere ? 1 : 0;
    for (const auto& [spelt, meant] : kEntities) count += line.find(spelt) != kNowhere ? 1 : 0;
  }
  const bool spelt = blanks >= kEnoughBlanks || (count >= kEnough && !marks);
  return spelt ? std::optional(Change{.kind = Change::Kind::kEntities}) : std::nullopt;
}

std::string BeginningOf(string_view line) {
  constexpr std::size_t kBytes = 6;
  std::string out(line.substr(0, kBytes));
  std::replace_if(out.begin(), out.end(), IsDigit, '0');
  return out;
}

bool IsUsualWidth(std::size_t width) {
  static constexpr std::array<std::size_t, 12> kUsual = {72, 80, 90, 100, 120, 132, 140, 150, 160, 180, 200, 240};
  return std::find(kUsual.begin(), kUsual.end(), width) != kUsual.end();
}

/// Whether one line may go on in the other: nothing that begins a sentence, a label, a rule or an indented block
/// follows.
bool MayGoOn(string_view line, string_view next) {
  if (line.ends_with(' ')) return next[0] != ' ';
  if (next.size() > 1 && next[0] == next[1] && !IsDigit(next[0])) return next[0] >= 'a' && next[0] <= 'z';
  return (next[0] >= 'a' && next[0] <= 'z') || IsDigit(next[0]) ||
         string_view(" )]},.:;_-/'\"%&@$!?\\<(=").find(next[0]) != kNowhere;
}

/// `====`, and the border of a table.
bool EndsARow(string_view line) {
  return line.ends_with('|') || line.ends_with('+') ||
         std::all_of(line.begin(), line.end(), [&](char c) { return c == line[0]; });
}

/// Rows of one table: words begin in the same columns, behind the blanks that fill up the column before. Text that was
/// cut at a width goes on without.
bool AreRows(string_view line, string_view next) {
  constexpr std::size_t kBlanks = 2, kColumns = 2;
  std::size_t columns = 0;
  for (std::size_t i = kBlanks; i < std::min(line.size(), next.size()); ++i) {
    const auto begins = [&](string_view row) {
      return row[i] != ' ' && row.substr(i - kBlanks, kBlanks).find_first_not_of(' ') == kNowhere;
    };
    const auto ends = [&](string_view row) {
      return row[i] == ' ' && row[i - 1] != ' ' && i + 1 < row.size() && row[i + 1] == ' ';
    };
    columns += (begins(line) && begins(next)) || (ends(line) && ends(next)) ? 1 : 0;
  }
  return columns >= kColumns;
}

/// Lines are cut where none is longer than a width that several have, and what follows one of those begins as no other
/// line does. Lines that are equally long by themselves begin alike; a table's end alike.
std::optional<Change> FindWidth(const std::vector<std::string>& lines) {
  constexpr std::size_t kNarrowest = 40, kWidest = 400, kEnough = 3, kEnoughOfAny = 8, kNarrowestOfAny = 60, kInner = 6;
  std::size_t widest = 0;
  std::vector<std::size_t> widths;
  for (const std::string& line : lines) {
    widths.push_back(Width(line));
    widest = std::max(widest, widths.back());
  }
  if (widest < kNarrowest || widest > kWidest) return std::nullopt;
  Change change{.kind = Change::Kind::kWidth};
  change.width = widest;
  for (std::size_t i = 0; i < lines.size(); ++i)
    if ((i == 0 || widths[i - 1] < widest) && lines[i].find_first_not_of(' ') < kInner)
      change.beginnings.push_back(BeginningOf(lines[i]));
  std::sort(change.beginnings.begin(), change.beginnings.end());
  change.beginnings.erase(std::unique(change.beginnings.begin(), change.beginnings.end()), change.beginnings.end());
  std::size_t cut = 0, begins = 0, ruled = 0, may_go_on = 0;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    if (widths[i] != widest) continue;
    ++cut;
    const std::string& next = lines[i + 1];
    if (EndsARow(lines[i]) || AreRows(lines[i], next)) ++ruled;
    if (next.empty() || IsBeginning(next) ||
        std::binary_search(change.beginnings.begin(), change.beginnings.end(), BeginningOf(next)))
      ++begins;
    else if (MayGoOn(lines[i], next))
      ++may_go_on;
  }
  const bool usual = IsUsualWidth(widest);
  const bool enough = usual ? cut >= kEnough || (cut > 0 && may_go_on == cut)
                            : cut >= kEnoughOfAny && widest >= kNarrowestOfAny && may_go_on * 10 >= cut * 7;
  return enough && begins * 4 <= cut && ruled * 2 <= cut ? std::optional(change) : std::nullopt;
}

/// Docker's and journald's have readers of their own.
bool HasReader(string_view line, std::string& scratch) {
  const auto docker = ReadDockerLine(line, scratch);
  return (docker && !docker->stream.empty() && !docker->time.empty()) ||
         line.find("\"__REALTIME_TIMESTAMP\"") != kNowhere;
}

std::optional<Change> FindObjects(const std::vector<std::string>& lines, ExportedLines& exported) {
  std::size_t objects = 0, members = 0, others = 0, keys = 0, data = 0;
  std::string scratch;
  const bool begins = !lines.empty() && (lines[0].starts_with('{') || lines[0].starts_with('['));
  for (const std::string& line : lines) {
    if (line.starts_with('{') && line.size() > 2) {
      data += exported.IsData(line) ? 1 : 0;
      (exported.Read(line) && !HasReader(line, scratch) ? objects : others) += 1;
    } else if (exported.ReadMember(line)) {
      ++members;
    } else {
      for (const string_view key : {string_view("\"timestamp\":"), string_view("\"receiveTimestamp\":")})
        if (const std::size_t at = line.find(key); at != kNowhere && line.find_first_not_of(" \t") == at) ++keys;
      if (!begins) ++others;
    }
  }
  // What data quotes did not happen: none of its lines is a log's.
  if (objects == 0 && data >= 3 && data * 20 >= lines.size() * 19) return Change{.kind = Change::Kind::kData};
  if (objects >= 2 && objects >= 4 * others) return Change{.kind = Change::Kind::kObjects};
  if (begins && members >= 3 && objects == 0 && keys * 10 >= members * 9) return Change{.kind = Change::Kind::kArray};
  return std::nullopt;
}

/// Of the heads that lines may have, the one behind which most is read that is not read with it.
std::optional<Change> FindHeads(const std::vector<std::string>& sample) {
  const std::vector<std::string> lines = Filled(sample);
  if (lines.empty()) return std::nullopt;
  std::string scratch;
  std::optional<std::ptrdiff_t> before;  // counted once a head fits
  std::ptrdiff_t most = 0;
  std::optional<Change> best;
  for (const LineHead& head : PossibleHeads(lines)) {
    const HeadFit fit = FitOf(lines, head);
    if (fit == HeadFit::kNone) continue;
    if (!before) {
      most = std::count_if(lines.begin(), lines.end(), [&](const std::string& line) { return IsRead(line, scratch); });
      before = most;
    }
    std::ptrdiff_t after = 0;
    for (const std::string& line : lines)
      if (const auto found = FindHead(line, head))
        after += IsRead(string_view(line).substr(found->size), scratch) ? 1 : 0;
    if ((after <= most || after < 1) &&
        (best || fit != HeadFit::kSure ||
         (after < *before && head.shape != LineHead::Shape::kNumber && head.shape != LineHead::Shape::kFileNumber)))
      continue;
    most = after;
    best = Change{.kind = Change::Kind::kHead};
    best->head = head;
  }
  return best;
}

void Replace(std::string& text, string_view words, string_view by) {
  for (std::size_t at = text.find(words); at != kNowhere; at = text.find(words, at + by.size()))
    text.replace(at, words.size(), by);
}

}  // namespace

Restoration::Restoration(std::vector<Change> changes) : changes_(std::move(changes)), width_(changes_.size()) {
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    if (changes_[i].kind == Change::Kind::kWidth) width_ = i;
    if (changes_[i].kind == Change::Kind::kArray || changes_[i].kind == Change::Kind::kData) drops_ = true;
  }
}

std::optional<Restoration> Restoration::Find(string_view head, bool whole) {
  std::vector<std::string> lines = Sample(head, whole);
  if (lines.empty()) return std::nullopt;
  for (std::string& line : lines)
    if (line.find('\x1b') != kNowhere) line = WithoutEscapes(line, EscapeSpelling::kByte);
  // The bytes themselves are dealt with wherever they stand; here they must not hide what is around them.
  Restoration found({Change{.kind = Change::Kind::kEscapes}});
  while (found.changes_.size() <= kMostChanges) {
    std::optional<Change> change = FindObjects(lines, found.exported_);
    if (!change) change = FindEscapes(lines);
    if (!change && std::none_of(found.changes_.begin(), found.changes_.end(),
                                [](const Change& one) { return one.kind == Change::Kind::kEntities; }))
      change = FindEntities(lines);
    if (!change && !found.joins()) change = FindWidth(lines);
    if (!change) change = FindHeads(lines);
    if (!change) break;
    found.CountNames(*change, lines);
    std::vector<std::string> undone;
    bool goes_on = false;
    for (std::string& line : lines) {
      RestoredLine restored{line, {}};
      if (change->kind == Change::Kind::kWidth) {
        const bool full = Width(line) == change->width;
        if (goes_on)
          undone.back() += line;
        else
          undone.push_back(std::move(line));
        goes_on = full;
      } else if (found.Undo(*change, restored)) {
        undone.push_back(std::move(restored.text));
      }
    }
    lines = std::move(undone);
    const bool over = change->kind == Change::Kind::kData;
    found.changes_.push_back(std::move(*change));
    found = Restoration(std::move(found.changes_));
    if (over) break;
  }
  return found.changes_.size() > 1 ? std::optional(std::move(found)) : std::nullopt;
}

// A collector that stands beside one launcher names one host, whatever hosts the ranks are on whose output it relays.
void Restoration::CountNames(Change& change, const std::vector<std::string>& lines) {
  if (change.kind != Change::Kind::kObjects && change.kind != Change::Kind::kHead) return;
  std::set<std::string> hosts, writers;
  change.hosts = change.writers = true;
  for (const std::string& line : lines) {
    RestoredLine restored{line, {}};
    if (!Undo(change, restored)) continue;
    if (!restored.head.host.empty()) hosts.insert(std::move(restored.head.host));
    if (!restored.head.writer.empty()) writers.insert(std::move(restored.head.writer));
  }
  change.hosts = hosts.size() > 1;
  change.writers = writers.size() > 1;
}

bool Restoration::Undo(const Change& change, RestoredLine& line) {
  switch (change.kind) {
    case Change::Kind::kEscapes:
      line.text = WithoutEscapes(line.text, change.spelling);
      return true;
    case Change::Kind::kEntities:
      for (const auto& [spelt, meant] : kEntities) Replace(line.text, spelt, meant);
      return true;
    case Change::Kind::kWidth:
      return true;
    case Change::Kind::kObjects: {
      std::optional<ExportedLines::Line> read = exported_.Read(line.text);
      if (!read) return true;
      line.text = WithoutEscapes(read->text, EscapeSpelling::kByte);
      while (line.text.ends_with('\n') || line.text.ends_with('\r')) line.text.pop_back();
      // A text of several lines stays one line of the input, as what a progress bar overwrote does.
      Replace(line.text, "\r\n", "\r");
      std::replace(line.text.begin(), line.text.end(), '\n', '\r');
      line.head = std::move(read->head);
      if (!change.hosts) line.head.host.clear();
      if (!change.writers) line.head.writer.clear();
      return true;
    }
    case Change::Kind::kArray: {
      std::optional<std::string> text = exported_.ReadMember(line.text);
      if (!text) return false;
      while (text->ends_with('\n')) text->pop_back();
      std::replace(text->begin(), text->end(), '\n', '\r');
      line.text = WithoutEscapes(*text, EscapeSpelling::kByte);
      return true;
    }
    case Change::Kind::kData:
      return false;
    case Change::Kind::kHead: {
      const auto found = FindHead(line.text, change.head);
      if (!found) return true;
      if (line.head.time.empty()) line.head.time = found->time;
      if (line.head.host.empty() && change.hosts) line.head.host = found->host;
      if (line.head.writer.empty() && change.writers) line.head.writer = found->who;
      line.text.erase(0, found->size);
      return true;
    }
  }
  return true;
}

bool Restoration::Begin(RestoredLine& line) {
  for (std::size_t i = 0; i < width_; ++i)
    if (!Undo(changes_[i], line)) return false;
  return true;
}

bool Restoration::End(RestoredLine& line) {
  for (std::size_t i = width_; i < changes_.size(); ++i)
    if (!Undo(changes_[i], line)) return false;
  return true;
}

bool Restoration::GoesOn(string_view last, string_view next) const {
  if (!joins() || next.empty() || Width(last) != changes_[width_].width || IsBeginning(next)) return false;
  return !std::binary_search(changes_[width_].beginnings.begin(), changes_[width_].beginnings.end(), BeginningOf(next));
}

}  // namespace inquest
