// The verdict for a tired person: what broke, who, may I restart, the lines that prove it, what to type next.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/replay_command.h"
#include "report/report.h"
#include "report/terminal.h"

namespace inquest {
namespace {

// One screen holds this many rows of each part; JSON holds all.
constexpr std::size_t kEvidenceShown = 5, kCulpritsShown = 4, kRemediesShown = 4, kCollectShown = 4, kCollectShownFirst = 8, kAlternativesShown = 3, kStatesShown = 4;

namespace style {
constexpr std::string_view kPlain, kBold = "\x1b[1m", kDim = "\x1b[2m", kRed = "\x1b[1;31m", kGreen = "\x1b[1;32m", kYellow = "\x1b[1;33m", kCyan = "\x1b[36m";
}

/// Lines of the report. Every piece that comes in is sanitised here, so that no caller can forget it.
class Page {
 public:
  explicit Page(const TextStyle& text) : color_(text.color), width_(std::max(text.width, 40)) {}
  int width() const { return width_; }

  void Blank() { out_ += '\n'; }
  void Heading(std::string_view title) {
    Blank();
    Line("", title, style::kBold);
  }
  /// One line, cut at the width.
  void Line(std::string_view indent, std::string_view text, std::string_view paint = {}) {
    Print(indent, Cut(Sanitize(text), width_ - Columns(indent)), paint);
  }
  /// A command, whole: the terminal may wrap it, but half a command helps nobody.
  void Command(std::string_view indent, std::string_view command) { Print(indent, "$ " + Sanitize(command), style::kCyan); }
  /// Wrapped behind `head`, whose columns indent the lines that follow.
  void Paragraph(std::string_view head, std::string_view text, int rows, std::string_view paint = {}) {
    const int indent = Columns(head);
    std::string lead(head);
    for (const std::string& line : Wrap(Sanitize(text), std::max(width_ - indent, 20), rows)) {
      Print(lead, line, paint);
      lead.assign(static_cast<std::size_t>(indent), ' ');
    }
  }
  void More(std::size_t total, std::size_t shown, std::string_view what) {
    if (total > shown) Line("  ", fmt::format("and {} more {}", total - shown, what), style::kDim);
  }
  std::string Painted(std::string_view text, std::string_view paint) const {
    if (color_ == Color::kNever || paint.empty()) return std::string(text);
    return fmt::format("{}{}\x1b[0m", paint, text);
  }
  void Print(std::string_view indent, std::string_view text, std::string_view paint = {}) {
    out_.append(indent).append(Painted(text, paint)).append("\n");
  }
  std::string Take() { return std::move(out_); }

 private:
  Color color_;
  int width_;
  std::string out_;
};

std::string Percent(double confidence) { return fmt::format("{:.0f} %", confidence * 100); }

void Headline(Page& page, const Verdict& verdict) {
  const bool failed = verdict.outcome == Outcome::kFailed, healthy = verdict.outcome == Outcome::kHealthy;
  const std::string_view word = failed ? "FAILED" : healthy ? "HEALTHY" : "UNDECIDED";
  const std::string title = Sanitize(verdict.title);
  std::string rest = failed ? fmt::format("{}: {}", Sanitize(verdict.cause), title) : title;
  if (verdict.outcome != Outcome::kUndecided) rest += fmt::format(" (confidence {})", Percent(verdict.confidence));
  const int room = page.width() - Columns(word) - 2;
  page.Print("", page.Painted(word, failed ? style::kRed : healthy ? style::kGreen : style::kYellow) + "  " + page.Painted(Cut(rest, room), style::kBold));
  page.Paragraph("", verdict.summary, 5);
}

// ---- whom, and whether to start again --------------------------------------------------------------------------

std::string Place(const Culprit& culprit) {
  std::vector<std::string> parts;
  if (culprit.pid) parts.push_back(fmt::format("pid {}", *culprit.pid));
  if (culprit.gpu_index) parts.push_back(fmt::format("GPU {}", *culprit.gpu_index));
  if (culprit.bus_id) parts.push_back(*culprit.bus_id);
  return parts.empty() ? "" : fmt::format(" ({})", fmt::join(parts, ", "));
}

/// Culprits on one host for one reason share a line; one alone keeps its process and device.
void Culprits(Page& page, const Verdict& verdict) {
  struct Shared {
    std::vector<int> ranks;
    const Culprit* only = nullptr;
    std::size_t count = 0;
  };
  std::vector<std::pair<std::pair<std::string, std::string>, Shared>> rows;
  for (const Culprit& culprit : verdict.culprits) {
    const std::pair<std::string, std::string> key(culprit.host.value_or(""), culprit.why);
    auto row = std::ranges::find(rows, key, [](const auto& entry) { return entry.first; });
    if (row == rows.end() || !culprit.rank) row = rows.insert(rows.end(), {key, {}});
    if (culprit.rank) row->second.ranks.push_back(culprit.rank->value);
    row->second.only = &culprit;
    ++row->second.count;
  }
  for (std::size_t i = 0; i < std::min(rows.size(), kCulpritsShown); ++i) {
    const auto& [key, shared] = rows[i];
    std::string who;
    if (!shared.ranks.empty()) who = fmt::format("rank{} {}", shared.ranks.size() > 1 ? "s" : "", FoldRanks(shared.ranks));
    if (!key.first.empty()) who += (who.empty() ? "host " : " on ") + key.first;
    if (shared.count == 1) who += Place(*shared.only);
    if (who.starts_with(' ')) who.erase(0, 1);
    const std::string why = key.second.empty() ? "" : (who.empty() ? "" : ": ") + key.second;
    page.Paragraph(i == 0 ? "Culprit  " : "         ", who + why, 2);
  }
  page.More(rows.size(), kCulpritsShown, "culprits in --format json");
}

void Retry(Page& page, const Verdict& verdict) {
  static const std::map<std::string_view, std::string_view> kWords = {{"yes", "yes, as it is"},
                                                                      {"after-fix", "only after the fix below"},
                                                                      {"elsewhere", "yes, on other nodes; keep the culprit out"},
                                                                      {"no", "not yet: nothing says that it would end differently"}};
  const auto words = kWords.find(verdict.retry);
  if (verdict.outcome != Outcome::kHealthy && words != kWords.end()) page.Line("", fmt::format("Restart  {}", words->second));
}

// ---- the lines that prove it -----------------------------------------------------------------------------------

/// Without the prefix that repeats what the columns beside it say, if the line is too long to be shown whole.
std::string Telling(const std::string& text, int room) {
  if (Columns(text) <= room) return text;
  std::string_view rest = text;
  for (const std::string_view mark : {"NCCL WARN ", "NCCL INFO "}) {
    if (const std::size_t at = rest.find(mark); at != std::string_view::npos && at < 120) rest.remove_prefix(at);
  }
  while (rest.starts_with('[')) {
    const std::size_t end = rest.find(']');
    if (end == std::string_view::npos || end > 100) break;
    rest.remove_prefix(end + 1);
    while (rest.starts_with(' ') || rest.starts_with(':')) rest.remove_prefix(1);
  }
  return rest.empty() || rest.size() == text.size() ? text : "…" + std::string(rest);
}

void Evidence(Page& page, const Timeline& timeline, const Verdict& verdict) {
  if (verdict.evidence.empty()) return;
  struct Row {
    std::string place, clock, rank, text;
    bool cause = false;
  };
  std::vector<Row> rows;
  int place_columns = 0, clock_columns = 0, rank_columns = 0;
  for (const Citation& citation : verdict.evidence) {
    if (rows.size() == kEvidenceShown) break;
    const std::string path = citation.where.input < timeline.inputs.size() ? timeline.inputs[citation.where.input].path : "?";
    rows.push_back({.place = Sanitize(fmt::format("{}:{}", path, citation.where.line)),
                    .clock = citation.at ? FormatClock(*citation.at) : "",
                    .rank = citation.rank ? fmt::format("rank {}", citation.rank->value) : "",
                    .text = Sanitize(citation.text),
                    .cause = citation.role == "cause"});
    place_columns = std::max(place_columns, Columns(rows.back().place));
    clock_columns = std::max(clock_columns, Columns(rows.back().clock));
    rank_columns = std::max(rank_columns, Columns(rows.back().rank));
  }
  page.Heading("Evidence");
  // A long path takes a row of its own, so that it can be copied whole.
  const bool own_row = place_columns > 36;
  for (const Row& row : rows) {
    const auto pad = [](std::string text, int columns) {
      if (columns > 0) text.append(static_cast<std::size_t>(std::max(columns - Columns(text), 0) + 2), ' ');
      return text;
    };
    std::string head = (row.cause ? "> " : "  ") + pad(row.place, own_row ? 0 : place_columns);
    if (own_row) {
      page.Print("", head, style::kDim);
      head = "    ";
    }
    head += pad(row.clock, clock_columns) + pad(row.rank, rank_columns);
    const int room = std::max(page.width() - Columns(head), 20);
    page.Paragraph(head, Telling(row.text, 2 * room), 2, row.cause ? style::kBold : style::kPlain);
  }
  page.More(verdict.evidence.size(), kEvidenceShown, "lines in --format json");
}

// ---- where everybody was ---------------------------------------------------------------------------------------

std::string Since(const std::optional<Timestamp>& at) { return at ? " since " + FormatClock(*at) : ""; }

/// `timed out; last seen in ALLREDUCE #3`; empty where nothing is known.
std::string StateOf(const RankRow& row) {
  std::string state = row.final_state == "unknown" ? "" : row.final_state;
  if (!row.last_collective.empty()) state += (state.empty() ? "" : "; ") + ("last seen in " + row.last_collective);
  return state;
}

void Ranks(Page& page, const Timeline& timeline, const Verdict& verdict) {
  std::vector<std::string> lines;
  std::vector<int> waiting, absent;
  if (verdict.collective) {
    const CollectiveRef& c = *verdict.collective;
    const std::string what = (c.op.empty() ? "a collective" : c.op) + (c.seq ? fmt::format(" #{}", *c.seq) : "");
    waiting = c.ranks_waiting;
    absent = c.ranks_absent;
    if (!waiting.empty()) lines.push_back(fmt::format("{} waiting in {}{}", FoldRanks(waiting), what, Since(c.waiting_since)));
  }
  std::map<std::string, std::vector<int>> states;
  for (const int rank : absent) {
    const RankRow* row = timeline.FindRank(GlobalRank{rank});
    const std::string state = row == nullptr ? "" : StateOf(*row);
    states["never entered it" + (state.empty() ? "" : "; " + state)].push_back(rank);
  }
  for (const RankRow& row : timeline.ranks) {
    const auto is_row = [&](int rank) { return rank == row.rank.value; };
    const std::string state = StateOf(row);
    if (!state.empty() && std::ranges::none_of(waiting, is_row) && std::ranges::none_of(absent, is_row)) states[state].push_back(row.rank.value);
  }
  std::vector<std::pair<std::string, std::vector<int>>> rare_first(states.begin(), states.end());
  std::ranges::stable_sort(rare_first, {}, [](const auto& entry) { return entry.second.size(); });
  for (const auto& [state, ranks] : rare_first) lines.push_back(fmt::format("{} {}", FoldRanks(ranks), state));
  if (lines.empty()) return;
  page.Heading("Ranks");
  for (std::size_t i = 0; i < std::min(lines.size(), kStatesShown); ++i) page.Paragraph("  ", lines[i], 2);
  page.More(lines.size(), kStatesShown, "states in --format json");
}

// ---- what to do ------------------------------------------------------------------------------------------------

void Remedies(Page& page, const Verdict& verdict) {
  if (verdict.remedies.empty()) return;
  page.Heading("What to do");
  for (std::size_t i = 0; i < std::min(verdict.remedies.size(), kRemediesShown); ++i) {
    page.Paragraph(fmt::format("  {}. ", i + 1), verdict.remedies[i].text, 3);
    if (!verdict.remedies[i].command.empty()) page.Command("     ", verdict.remedies[i].command);
  }
  page.More(verdict.remedies.size(), kRemediesShown, fmt::format("with: inquest explain {}", verdict.cause));
}

void CollectNext(Page& page, const Verdict& verdict, std::string_view title, std::size_t shown) {
  if (verdict.collect_next.empty()) return;
  page.Heading(title);
  for (std::size_t i = 0; i < std::min(verdict.collect_next.size(), shown); ++i) page.Paragraph("  - ", verdict.collect_next[i], 2);
  page.More(verdict.collect_next.size(), shown, "in --format json");
}

void Replay(Page& page, const Timeline& timeline, const Verdict& verdict) {
  if (verdict.outcome == Outcome::kHealthy || !verdict.collective) return;
  const auto command = ReplayCommand(timeline, *verdict.collective);
  if (!command) return;
  const bool never_called = !verdict.collective->ranks_absent.empty();
  page.Heading(never_called ? "Replay (can the machines do it? It cannot bring back a rank that never called)" : "Replay the collective alone");
  page.Command("  ", *command);
}

void Alternatives(Page& page, const Verdict& verdict, std::string_view title) {
  if (verdict.alternatives.empty()) return;
  page.Heading(title);
  for (std::size_t i = 0; i < std::min(verdict.alternatives.size(), kAlternativesShown); ++i) {
    const Alternative& other = verdict.alternatives[i];
    page.Line("  ", fmt::format("{} ({}): {}", other.cause, Percent(other.confidence), other.why));
  }
  page.More(verdict.alternatives.size(), kAlternativesShown, "in --format json");
}

std::string Size(std::uint64_t bytes) {
  double size = static_cast<double>(bytes);
  if (bytes < 1024) return fmt::format("{} B", bytes);
  const char* unit = "KiB";
  size /= 1024;
  for (const char* next : {"MiB", "GiB", "TiB"}) {
    if (size < 1024) break;
    size /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", size, unit);
}

void Coverage(Page& page, const Timeline& timeline) {
  InputSummary sum;
  for (const InputSummary& input : timeline.inputs) {
    sum.bytes += input.bytes;
    sum.lines += input.lines;
    sum.damaged += input.damaged;
  }
  page.Blank();
  const std::size_t files = timeline.inputs.size();
  page.Line("", fmt::format("Read {} file{}, {}, {} lines; {}.", files, files == 1 ? "" : "s", Size(sum.bytes), sum.lines, sum.damaged == 0 ? "nothing damaged" : Size(sum.damaged) + " damaged"),
            style::kDim);
}

}  // namespace

std::string RenderText(const Timeline& timeline, const Verdict& verdict, const TextStyle& text) {
  Page page(text);
  const bool undecided = verdict.outcome == Outcome::kUndecided;
  Headline(page, verdict);
  if (undecided) {
    CollectNext(page, verdict, "Collect this, then run inquest over all of it together", kCollectShownFirst);
    Alternatives(page, verdict, "Candidates");
  } else if (!verdict.culprits.empty() || verdict.outcome == Outcome::kFailed) {
    page.Blank();
    Culprits(page, verdict);
    Retry(page, verdict);
  }
  Evidence(page, timeline, verdict);
  Ranks(page, timeline, verdict);
  if (verdict.outcome == Outcome::kFailed) Remedies(page, verdict);
  if (verdict.outcome == Outcome::kFailed) CollectNext(page, verdict, "Collect next, if that does not settle it", kCollectShown);
  Replay(page, timeline, verdict);
  if (!undecided) Alternatives(page, verdict, "Also possible");
  Coverage(page, timeline);
  return page.Take();
}

}  // namespace inquest
