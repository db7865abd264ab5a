// The verdict for a tired person: what broke, who, may I restart, the lines that prove it, what to type next.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/page.h"
#include "report/report.h"
#include "report/terminal.h"

namespace inquest {
namespace {

// One screen holds this many rows of each part; JSON holds all.
constexpr int kWarningRows = 4;
constexpr std::size_t kAttemptsShown = 5, kEvidenceShown = 4, kCulpritsShown = 4, kRemediesShown = 3, kCollectShown = 3,
                      kCollectShownFirst = 8, kAlternativesShown = 3, kStatesShown = 4, kProblemsShown = 3;

std::string Percent(double confidence) { return fmt::format("{:.0f} %", confidence * 100); }

void Headline(Page& page, const Verdict& verdict) {
  struct Word {
    std::string_view text, paint;
  };
  static constexpr Word kFailed{"FAILED", style::kRed}, kHealthy{"HEALTHY", style::kGreen},
      kUndecided{"UNDECIDED", style::kYellow};
  const bool failed = verdict.outcome == Outcome::kFailed, healthy = verdict.outcome == Outcome::kHealthy;
  const Word& word = failed ? kFailed : healthy ? kHealthy : kUndecided;
  std::string rest = (failed ? verdict.cause + ": " : "") + verdict.title;
  if (failed || healthy) rest += fmt::format(" (confidence {})", Percent(verdict.confidence));
  rest = Cut(Sanitize(rest), page.width() - Columns(word.text) - 2);
  page.Print("", page.Painted(word.text, word.paint) + "  " + page.Painted(rest, style::kBold));
  page.Paragraph("", verdict.summary, 5);
}

// ---- whom, and whether to start again --------------------------------------------------------------------------

/// Culprits that share a line: ranks of one host, or processes on one device, for one reason.
struct Suspects {
  const Culprit* first = nullptr;
  std::vector<int> ranks;
  std::vector<std::int64_t> pids;
  std::size_t count = 0;
};

bool Together(const Culprit& a, const Culprit& b) {
  if (a.host != b.host || a.why != b.why || a.rank.has_value() != b.rank.has_value()) return false;
  return a.rank || (a.pid && b.pid && a.gpu_index == b.gpu_index && a.bus_id == b.bus_id);
}

std::vector<Suspects> Fold(const std::vector<Culprit>& culprits) {
  std::vector<Suspects> rows;
  for (const Culprit& culprit : culprits) {
    auto row = std::ranges::find_if(rows, [&](const Suspects& other) { return Together(*other.first, culprit); });
    if (row == rows.end()) row = rows.insert(rows.end(), {&culprit, {}, {}, 0});
    if (culprit.rank) row->ranks.push_back(culprit.rank->value);
    if (culprit.pid) row->pids.push_back(*culprit.pid);
    ++row->count;
  }
  return rows;
}

/// `rank 28 on node07 (pid 2113, GPU 4, 0000:4e:00.0)`, `ranks 0-7 on node07`, `pids 41, 42, GPU 0`.
std::string Who(const Suspects& suspects) {
  const Culprit& first = *suspects.first;
  std::string who;
  if (!suspects.ranks.empty()) who = fmt::format("rank{} {}", suspects.count > 1 ? "s" : "", FoldRanks(suspects.ranks));
  if (first.host) who += (who.empty() ? "host " : " on ") + *first.host;
  std::vector<std::string> details;
  const bool alone = suspects.count == 1;
  if (!suspects.pids.empty() && (alone || !first.rank))
    details.push_back(fmt::format("pid{} {}", alone ? "" : "s", fmt::join(suspects.pids, ", ")));
  if (first.gpu_index && (alone || !first.rank)) details.push_back(fmt::format("GPU {}", *first.gpu_index));
  if (first.bus_id && (alone || !first.rank)) details.push_back(*first.bus_id);
  if (details.empty()) return who;
  return who.empty() ? fmt::format("{}", fmt::join(details, ", "))
                     : fmt::format("{} ({})", who, fmt::join(details, ", "));
}

void Culprits(Page& page, const Verdict& verdict, std::string_view label) {
  const std::vector<Suspects> rows = Fold(verdict.culprits);
  for (std::size_t i = 0; i < std::min(rows.size(), kCulpritsShown); ++i) {
    std::string text = Who(rows[i]);
    const std::string& why = rows[i].first->why;
    if (!text.empty() && !why.empty()) text += ": ";
    text += why;
    page.Paragraph(i == 0 ? label : "         ", text, 2);
  }
  page.More(rows.size(), kCulpritsShown);
}

void Retry(Page& page, const Verdict& verdict) {
  static const std::map<std::string_view, std::string_view> kWords = {
      {"yes", "yes, as it is"},
      {"after-fix", "only after the fix below"},
      {"elsewhere", "yes, on other nodes; keep the culprit out"},
      {"no", "not yet: nothing says that it would end differently"}};
  const auto words = kWords.find(verdict.retry);
  if (verdict.outcome != Outcome::kHealthy && words != kWords.end())
    page.Line("", fmt::format("Restart  {}", words->second));
}

// ---- the lines that prove it -----------------------------------------------------------------------------------

/// Without runs of blanks, and if it is still too long to be shown whole, without the prefix that repeats what the
/// columns beside it say, or that another writer left on the line.
std::string Telling(const std::string& line, int width, int rows) {
  std::string text = line.substr(0, line.find_last_not_of(' ') + 1);
  if (Columns(text) <= width) return text;
  text.erase(std::unique(text.begin(), text.end(), [](char a, char b) { return a == ' ' && b == ' '; }), text.end());
  if (Columns(text) <= rows * width) return text;
  std::string_view rest = text;
  for (const auto& [mark, skipped] :
       {std::pair<std::string_view, std::size_t>{"NCCL WARN ", 0}, {"NCCL INFO ", 0}, {"]:[E", 2}, {"]:[W", 2}}) {
    if (const std::size_t at = rest.find(mark); at != std::string_view::npos) rest.remove_prefix(at + skipped);
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
    const std::string path =
        citation.where.input < timeline.inputs.size() ? timeline.inputs[citation.where.input].path : "?";
    rows.push_back({.place = Sanitize(fmt::format("{}:{}", path, citation.where.InputLine())),
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
      for (int column = Columns(text); columns > 0 && column < columns + 2; ++column) text += ' ';
      return text;
    };
    std::string head = (row.cause ? "> " : "  ") + pad(row.place, own_row ? 0 : place_columns);
    if (own_row) {
      page.Print("", head, style::kDim);
      head = "    ";
    }
    head += pad(row.clock, clock_columns) + pad(row.rank, rank_columns);
    const int room = std::max(page.width() - Columns(head), 20);
    const int lines = row.cause ? 2 : 1;
    page.Paragraph(head, Telling(row.text, room, lines), lines, row.cause ? style::kBold : style::kPlain);
  }
  page.More(verdict.evidence.size(), kEvidenceShown);
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
  std::map<std::string, std::vector<int>> states;
  RankSet told;
  if (verdict.collective) {
    const CollectiveRef& c = *verdict.collective;
    const std::string what = (c.op.empty() ? "a collective" : c.op) + (c.seq ? fmt::format(" #{}", *c.seq) : "");
    if (!c.ranks_waiting.empty())
      lines.push_back(fmt::format("{} waiting in {}{}", FoldRanks(c.ranks_waiting), what, Since(c.waiting_since)));
    told.Add(c.ranks_waiting);
    for (const int rank : c.ranks_absent) {
      const RankRow* row = timeline.FindRank(GlobalRank{rank});
      const std::string state = row == nullptr ? "" : StateOf(*row);
      states["never entered it" + (state.empty() ? "" : "; " + state)].push_back(rank);
    }
    told.Add(c.ranks_absent);
  }
  for (const RankRow& row : timeline.ranks) {
    const std::string state = StateOf(row);
    if (!state.empty() && !told.contains(row.rank.value)) states[state].push_back(row.rank.value);
  }
  std::vector<std::pair<std::string, std::vector<int>>> rare_first(states.begin(), states.end());
  std::ranges::stable_sort(rare_first, {}, [](const auto& entry) { return entry.second.size(); });
  for (const auto& [state, ranks] : rare_first) lines.push_back(fmt::format("{} {}", FoldRanks(ranks), state));
  if (lines.empty()) return;
  page.Heading("Ranks");
  for (std::size_t i = 0; i < std::min(lines.size(), kStatesShown); ++i) page.Paragraph("  ", lines[i], 2);
  page.More(lines.size(), kStatesShown);
}

// ---- what to do ------------------------------------------------------------------------------------------------

/// Running the collective alone, as one more thing to do.
std::optional<Remedy> Replay(const Verdict& verdict, const std::string& command) {
  if (command.empty() || verdict.outcome == Outcome::kHealthy || !verdict.collective) return std::nullopt;
  const bool all_called = verdict.collective->ranks_absent.empty();
  Remedy out;
  out.text =
      all_called
          ? "Run the collective alone: it hangs again only if the machines are at fault."
          : "Check that the machines can do the collective; a replay cannot bring back a rank that never called.";
  out.command = command;
  out.kind = Remedy::Kind::kShell;
  return out;
}

/// What stands in front of a command: where it is typed, and as whom; or what it is, if nothing to type.
std::string Prompt(const Remedy& remedy) {
  switch (remedy.kind) {
    case Remedy::Kind::kPython:
      return "in the program: ";
    case Remedy::Kind::kConfig:
      return "setting: ";
    case Remedy::Kind::kEdit:
      return "change: ";
    default:
      break;
  }
  const char* const end = remedy.root ? "# " : "$ ";
  if (remedy.run_on == Remedy::Where::kNodes) return fmt::format("every node{}", end);
  if (remedy.run_on != Remedy::Where::kHost) return end;
  return remedy.hosts.empty() ? fmt::format("its host{}", end) : fmt::format("{}{}", fmt::join(remedy.hosts, ","), end);
}

void Command(Page& page, const Remedy& remedy) {
  if (remedy.command.empty()) return;
  page.Command("     ", Prompt(remedy), remedy.command);
  for (const Remedy::Want& want : remedy.needs)
    page.Paragraph("       ", fmt::format("{}: {}", want.name, want.meaning), 2, style::kDim);
  if (remedy.destructive) page.Line("       ", "takes away what others may still use: look first", style::kDim);
}

void Remedies(Page& page, const Verdict& verdict, const std::string& replay_command) {
  // What to do about an unknown cause is to collect, which stands above.
  const std::size_t known = verdict.outcome == Outcome::kFailed ? verdict.remedies.size() : 0;
  std::vector<Remedy> shown(verdict.remedies.begin(),
                            verdict.remedies.begin() + static_cast<std::ptrdiff_t>(std::min(known, kRemediesShown)));
  if (const auto replay = Replay(verdict, replay_command)) shown.push_back(*replay);
  if (shown.empty()) return;
  page.Heading("What to do");
  for (std::size_t i = 0; i < shown.size(); ++i) {
    page.Paragraph(fmt::format("  {}. ", i + 1), shown[i].text, 3);
    Command(page, shown[i]);
  }
  page.More(known, kRemediesShown, fmt::format("with inquest explain {}", verdict.cause));
}

void CollectNext(Page& page, const Verdict& verdict, std::string_view title, std::size_t shown) {
  if (verdict.collect_next.empty()) return;
  page.Heading(title);
  for (std::size_t i = 0; i < std::min(verdict.collect_next.size(), shown); ++i)
    page.Paragraph("  - ", verdict.collect_next[i], 2);
  page.More(verdict.collect_next.size(), shown);
}

void Alternatives(Page& page, const Verdict& verdict, std::string_view title) {
  if (verdict.alternatives.empty()) return;
  page.Heading(title);
  for (std::size_t i = 0; i < std::min(verdict.alternatives.size(), kAlternativesShown); ++i) {
    const Alternative& other = verdict.alternatives[i];
    page.Line("  ", fmt::format("{} ({}): {}", other.cause, Percent(other.confidence), other.why));
  }
  page.More(verdict.alternatives.size(), kAlternativesShown);
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

/// What `inquest collect` could not get, by host and reason: `Not collected on node07: a.txt, b.txt (it is not
/// installed)`.
void NotCollectedOn(Page& page, const Timeline& timeline) {
  constexpr int kRows = 6;
  std::map<std::string, std::map<std::string, std::string>> hosts;
  for (const Event& event : timeline.events)
    if (const auto* lack = std::get_if<NotCollected>(&event.what)) {
      std::string& names = hosts[timeline.HostOf(event).value_or("its node")][lack->reason];
      names += (names.empty() ? "" : ", ") + lack->name;
    }
  std::size_t shown = 0;
  for (const auto& [host, reasons] : hosts) {
    if (++shown > kProblemsShown) break;
    std::string text;
    for (const auto& [reason, names] : reasons)
      text += fmt::format("{}{} ({})", text.empty() ? "" : "; ", names, reason);
    page.Paragraph("  ", fmt::format("Not collected on {}: {}", host, text), kRows);
  }
  page.More(hosts.size(), kProblemsShown);
}

/// The starts before the one that the verdict is of, the latest first.
void Attempts(Page& page, const Timeline& timeline, const Verdict& verdict) {
  if (verdict.attempts.empty()) return;
  page.Heading(fmt::format("Attempts: the job was started {} times", verdict.attempts.size()));
  std::size_t shown = 0;
  for (auto attempt = verdict.attempts.rbegin(); attempt != verdict.attempts.rend(); ++attempt) {
    if (++shown > kAttemptsShown) break;
    const std::string place =
        fmt::format("{}:{}", timeline.inputs[attempt->first.where.input].path, attempt->first.where.InputLine());
    const std::string what = attempt->judged ? "this verdict"
                             : attempt->cause.empty()
                                 ? "not looked at"
                                 : fmt::format("{} ({})", attempt->cause, Percent(attempt->confidence));
    page.Line("  ", fmt::format("{} from {}: {}", attempt->number, Sanitize(place), what));
  }
  page.More(verdict.attempts.size(), kAttemptsShown);
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
  page.Line("",
            fmt::format("Read {} file{}, {}, {} lines; {}.", files, files == 1 ? "" : "s", Size(sum.bytes), sum.lines,
                        sum.damaged == 0 ? "nothing damaged" : Size(sum.damaged) + " damaged"),
            style::kDim);
  std::size_t problems = 0;
  for (const InputSummary& input : timeline.inputs) {
    if (input.problem.empty()) continue;
    if (++problems <= kProblemsShown)
      page.Paragraph("  ", fmt::format("Not whole: {}: {}", input.path, input.problem), 3, style::kYellow);
  }
  page.More(problems, kProblemsShown);
  std::size_t forms = 0;
  for (const InputSummary& input : timeline.inputs)
    if (input.form != nullptr && ++forms <= kProblemsShown)
      page.Paragraph("  ", fmt::format("No log: {}: {}", input.path, input.form->text), 3);
  page.More(forms, kProblemsShown);
  std::string left_out;
  for (const auto& [what, count] : timeline.left_out)
    left_out += fmt::format("{}{} {}", left_out.empty() ? "" : ", ", count, what);
  if (!left_out.empty()) page.Line("  ", "Left out, more than is held in memory: " + left_out, style::kYellow);
  NotCollectedOn(page, timeline);
}

}  // namespace

std::string RenderText(const Timeline& timeline, const Verdict& verdict, const ReportContext& context) {
  Page page(context.text);
  const bool undecided = verdict.outcome == Outcome::kUndecided;
  Headline(page, verdict);
  for (const std::string& warning : verdict.warnings) page.Paragraph("! ", warning, kWarningRows, style::kYellow);
  if (undecided) {
    if (!verdict.culprits.empty()) page.Blank();
    Culprits(page, verdict, "Look at  ");
    CollectNext(page, verdict, "Collect this, then run inquest over all of it together", kCollectShownFirst);
    Alternatives(page, verdict, "Candidates");
  } else if (!verdict.culprits.empty() || verdict.outcome == Outcome::kFailed) {
    page.Blank();
    Culprits(page, verdict, "Culprit  ");
    Retry(page, verdict);
  }
  Evidence(page, timeline, verdict);
  Ranks(page, timeline, verdict);
  Remedies(page, verdict, context.replay_command);
  if (verdict.outcome == Outcome::kFailed)
    CollectNext(page, verdict, "Collect next, if that does not settle it", kCollectShown);
  if (!undecided) Alternatives(page, verdict, "Also possible");
  Attempts(page, timeline, verdict);
  Coverage(page, timeline);
  return page.Take();
}

}  // namespace inquest
