// The verdict for a tired person: what broke, who, may I restart, the lines that prove it, what to type next.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "report/page.h"
#include "report/report.h"
#include "report/screen.h"
#include "report/terminal.h"
#include "report/words.h"

namespace inquest {
namespace {

// What `-v` shows of each part at most; JSON holds all.
constexpr int kRows = 100;  ///< advice and warnings are never cut
constexpr std::size_t kAttemptsShown = 12, kEvidenceShown = 12, kCulpritsShown = 12, kRemediesShown = 12,
                      kCollectShown = 12, kAlternativesShown = 6, kStatesShown = 12, kSymptomsShown = 4,
                      kProblemsShown = 6;

// In which order lines claim their place on the screen. A part of each kind comes before the second of any.
enum Turn : int {
  kMust,
  kProof,     ///< the first line that proves it, the first thing to do, the first to collect
  kDoubt,     ///< what makes the verdict doubtful: warnings, input that was not whole, other attempts
  kMore,      ///< the second of each
  kSymptoms,  ///< what followed from it
  kThird,
  kRanks,
  kOthers,  ///< other candidates
  kForms,
  kRest,
};
/// Of the i-th of a kind.
Turn TurnOf(std::size_t i) { return i == 0 ? kProof : i == 1 ? kMore : i == 2 ? kThird : kRest; }

void Headline(Screen& screen, const Verdict& verdict) {
  Page page = screen.NewPage();
  const bool failed = verdict.outcome == Outcome::kFailed, healthy = verdict.outcome == Outcome::kHealthy;
  const std::string_view badge = Badge(verdict.outcome);
  const std::string_view paint = failed ? style::kRed : healthy ? style::kGreen : style::kYellow;
  std::string rest = Sanitize((failed ? verdict.cause + ": " : "") + verdict.title);
  const int room = page.width() - Columns(badge) - 2;
  if (failed || healthy) {
    // How sure it is is never cut away.
    std::string sure = fmt::format(" (confidence {})", Percent(verdict.confidence));
    if (Columns(rest) + Columns(sure) > room) sure = fmt::format(" ({})", Percent(verdict.confidence));
    rest = Cut(rest, room - Columns(sure)) + sure;
  }
  rest = Cut(rest, room);
  page.Print("", page.Painted(badge, paint) + "  " + page.Painted(rest, style::kBold));
  page.Paragraph("", verdict.summary, 5);
  screen.Add(kMust, page);
  for (const std::string& warning : verdict.warnings) {
    page.Paragraph("! ", warning, kRows, style::kYellow);
    screen.Add(kDoubt, page);
  }
}

// ---- whom, and whether to start again --------------------------------------------------------------------------

void Culprits(Screen& screen, const Verdict& verdict, std::string_view label) {
  screen.Begin("");
  Page page = screen.NewPage();
  const std::vector<Suspects> rows = FoldCulprits(verdict.culprits);
  for (std::size_t i = 0; i < std::min(rows.size(), kCulpritsShown); ++i) {
    page.Paragraph(i == 0 ? label : "         ", WhoAndWhy(rows[i]), 2);
    screen.Add(i == 0 ? kMust : TurnOf(i), page);
  }
  screen.More(rows.size(), kCulpritsShown);
}

void Restart(Screen& screen, const Verdict& verdict) {
  const std::string_view words = RetryInWords(verdict);
  if (words.empty()) return;
  screen.GoOn();
  Page page = screen.NewPage();
  page.Line("", fmt::format("Restart  {}", words));
  screen.Add(kMust, page);
}

// ---- the lines that prove it -----------------------------------------------------------------------------------

/// The lines are of several days, so that a clock alone does not say when.
bool OnSeveralDays(const std::vector<Citation>& citations) {
  std::set<std::chrono::sys_days> days;
  for (const Citation& citation : citations)
    if (citation.at && citation.at->date == Timestamp::Date::kFull)
      days.insert(std::chrono::floor<std::chrono::days>(citation.at->at));
  return days.size() > 1;
}

std::string ClockOf(const Citation& citation, bool with_day) {
  if (!citation.at) return {};
  if (!with_day || citation.at->date != Timestamp::Date::kFull) return FormatClock(*citation.at);
  const std::string whole = FormatTime(*citation.at);  // 2031-04-05T12:01:05.123Z
  return whole.substr(0, 10) + " " + FormatClock(*citation.at);
}

void Evidence(Screen& screen, const Timeline& timeline, const Verdict& verdict) {
  screen.Begin("Evidence");
  struct Row {
    std::string place, clock, rank, text;
    bool cause = false;
  };
  std::vector<Row> rows;
  int place_columns = 0, clock_columns = 0, rank_columns = 0;
  const bool with_day = OnSeveralDays(verdict.evidence);
  for (const Citation& citation : verdict.evidence) {
    if (rows.size() == kEvidenceShown) break;
    rows.push_back({.place = Sanitize(PlaceOf(timeline, citation.where)),
                    .clock = ClockOf(citation, with_day),
                    .rank = citation.rank ? fmt::format("rank {}", citation.rank->value) : "",
                    .text = Sanitize(citation.text),
                    .cause = citation.role == LineRole::kCause});
    place_columns = std::max(place_columns, Columns(rows.back().place));
    clock_columns = std::max(clock_columns, Columns(rows.back().clock));
    rank_columns = std::max(rank_columns, Columns(rows.back().rank));
  }
  // A long path takes a row of its own, so that it can be copied whole.
  Page page = screen.NewPage();
  const bool own_row = place_columns > 24;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const auto pad = [](std::string text, int columns) {
      for (int column = Columns(text); columns > 0 && column < columns + 2; ++column) text += ' ';
      return text;
    };
    const char* const mark = row.cause ? "> " : "  ";
    const std::string when = pad(row.clock, clock_columns) + pad(row.rank, rank_columns);
    const std::string whole = when.substr(0, when.find_last_not_of(' ') + 1);
    std::string head = mark + pad(row.place, place_columns) + when;
    if (own_row) {
      page.Print("", mark + row.place + (whole.empty() ? "" : "  " + whole), style::kDim);
      head = "    ";
    }
    const int room = std::max(page.width() - Columns(head), 20);
    const int lines = row.cause ? 2 : 1;
    page.Paragraph(head, Telling(row.text, room, lines), lines, row.cause ? style::kBold : style::kPlain);
    // What followed is counted below; where nothing is a cause, its lines are what there is.
    screen.Add(row.cause || !rows.front().cause ? TurnOf(i) : kRest, page);
  }
  screen.More(verdict.evidence.size(), kEvidenceShown);
}

void Symptoms(Screen& screen, const Verdict& verdict) {
  screen.Begin("What followed");
  Page page = screen.NewPage();
  std::size_t shown = 0;
  for (const Symptom& symptom : SymptomsOf(verdict)) {
    if (++shown > kSymptomsShown) break;
    // Whatever is cut, the time is not.
    page.Line("  ", Cut(Sanitize(symptom.what), page.width() - 2 - Columns(symptom.when)) + symptom.when);
    screen.Add(shown == 1 ? kMore : shown == 2 ? kSymptoms : kRest, page);
  }
}

// ---- where everybody was ---------------------------------------------------------------------------------------

std::string Since(const std::optional<Timestamp>& at) { return at ? " since " + FormatClock(*at) : ""; }

/// `timed out; last seen in ALLREDUCE #3`, `killed by signal 15; told to end behind rank 3`; empty where nothing is
/// known.
std::string StateOf(const RankRow& row, const std::map<GlobalRank, Because>& edges) {
  std::string state = row.final_state;
  if (!row.last_collective.empty()) state += (state.empty() ? "" : "; ") + ("last seen in " + row.last_collective);
  const auto edge = edges.find(row.rank);
  if (edge == edges.end()) return state;
  const Because& because = edge->second;
  constexpr std::size_t kMost = 8;  // stretches
  const std::string whom = because.of->stretches().size() > kMost
                               ? fmt::format("{} ranks", because.of->size())
                               : fmt::format("rank{} {}", because.of->size() == 1 ? "" : "s", FoldRanks(*because.of));
  return state + (state.empty() ? "" : "; ") +
         (because.how == Because::How::kTold ? "told to end behind " : "waited for ") + whom;
}

void Ranks(Screen& screen, const Timeline& timeline, const Verdict& verdict) {
  std::vector<std::string> lines;
  std::map<std::string, std::vector<int>> states;
  std::map<GlobalRank, Because> edges;
  for (const Lifeline& line : verdict.lifelines)
    if (line.rank && line.end.because) edges.emplace(*line.rank, *line.end.because);
  RankSet told;
  if (verdict.collective) {
    const CollectiveRef& c = *verdict.collective;
    const std::string what = (c.op.empty() ? "a collective" : c.op) + (c.seq ? fmt::format(" #{}", *c.seq) : "");
    if (!c.ranks_waiting.empty())
      lines.push_back(fmt::format("{} waiting in {}{}", FoldRanks(c.ranks_waiting), what, Since(c.waiting_since)));
    told.Add(c.ranks_waiting);
    for (const int rank : c.ranks_absent) {
      const RankRow* row = timeline.FindRank(GlobalRank{rank});
      const std::string state = row == nullptr ? "" : StateOf(*row, edges);
      states["never entered it" + (state.empty() ? "" : "; " + state)].push_back(rank);
    }
    told.Add(c.ranks_absent);
  }
  for (const RankRow& row : timeline.ranks) {
    if (told.contains(row.rank.value)) continue;
    if (std::string state = StateOf(row, edges); !state.empty()) states[std::move(state)].push_back(row.rank.value);
  }
  std::vector<std::pair<std::string, std::vector<int>>> rare_first(states.begin(), states.end());
  std::ranges::stable_sort(rare_first, {}, [](const auto& entry) { return entry.second.size(); });
  for (const auto& [state, ranks] : rare_first) lines.push_back(fmt::format("{} {}", FoldRanks(ranks), state));
  screen.Begin("Ranks");
  Page page = screen.NewPage();
  for (std::size_t i = 0; i < std::min(lines.size(), kStatesShown); ++i) {
    page.Paragraph("  ", lines[i], 2);
    screen.Add(i < 2 ? kRanks : kRest, page);
  }
  screen.More(lines.size(), kStatesShown);
}

// ---- what to do ------------------------------------------------------------------------------------------------

void Command(Page& page, const Remedy& remedy) {
  if (remedy.command.empty()) return;
  page.Command("     ", PromptOf(remedy), remedy.command);
  for (const Remedy::Want& want : remedy.needs)
    page.Paragraph("       ", fmt::format("{}: {}", want.name, want.meaning), 2, style::kDim);
  if (remedy.destructive) page.Line("       ", kDestructive, style::kDim);
}

void Remedies(Screen& screen, const Verdict& verdict, const std::string& replay_command) {
  const std::vector<Remedy> shown = RemediesOf(verdict, replay_command);
  screen.Begin("What to do");
  Page page = screen.NewPage();
  for (std::size_t i = 0; i < std::min(shown.size(), kRemediesShown); ++i) {
    page.Paragraph(fmt::format("  {}. ", i + 1), shown[i].text, kRows);
    Command(page, shown[i]);
    screen.Add(TurnOf(i), page);
  }
  screen.More(shown.size(), kRemediesShown);
}

void CollectNext(Screen& screen, const Verdict& verdict, std::string_view title) {
  screen.Begin(title);
  Page page = screen.NewPage();
  constexpr std::size_t kFirst = 3;  // of an undecided case, which lives by them
  for (std::size_t i = 0; i < std::min(verdict.collect_next.size(), kCollectShown); ++i) {
    page.Paragraph("  - ", verdict.collect_next[i], kRows);
    screen.Add(verdict.outcome == Outcome::kUndecided && i < kFirst ? kProof : TurnOf(i), page);
  }
  screen.More(verdict.collect_next.size(), kCollectShown);
}

void Alternatives(Screen& screen, const Verdict& verdict, std::string_view title) {
  screen.Begin(title);
  Page page = screen.NewPage();
  for (std::size_t i = 0; i < std::min(verdict.alternatives.size(), kAlternativesShown); ++i) {
    const Alternative& other = verdict.alternatives[i];
    page.Line("  ", fmt::format("{} ({}): {}", other.cause, Percent(other.confidence), other.why));
    screen.Add(verdict.outcome == Outcome::kUndecided ? TurnOf(i) : kOthers, page);
  }
  screen.More(verdict.alternatives.size(), kAlternativesShown);
}

/// The starts before the one that the verdict is of, the latest first.
void Attempts(Screen& screen, const Timeline& timeline, const Verdict& verdict) {
  screen.Begin(fmt::format("Attempts: the job was started {} times", verdict.attempts.size()));
  Page page = screen.NewPage();
  std::size_t shown = 0;
  for (auto attempt = verdict.attempts.rbegin(); attempt != verdict.attempts.rend(); ++attempt) {
    if (++shown > kAttemptsShown) break;
    page.Line("  ", fmt::format("{} from {}: {}", attempt->number, Sanitize(PlaceOf(timeline, attempt->first.where)),
                                JudgedAs(*attempt)));
    screen.Add(shown <= 2 ? kDoubt : kRest, page);
  }
  screen.More(verdict.attempts.size(), kAttemptsShown);
}

/// What of the inputs could not be read, or is no log; where the report ends.
void Coverage(Screen& screen, const Timeline& timeline) {
  screen.Begin("");
  Page page = screen.NewPage();
  std::size_t problems = 0;
  for (const InputSummary& input : timeline.inputs) {
    if (input.problem.empty() || ++problems > kProblemsShown) continue;
    page.Paragraph("", fmt::format("Not whole: {}: {}", input.path, input.problem), 3, style::kYellow);
    screen.Add(kDoubt, page);
  }
  screen.More(problems, kProblemsShown);
  if (const std::string left_out = LeftOutInWords(timeline); !left_out.empty()) {
    page.Line("", left_out, style::kYellow);
    screen.Add(kDoubt, page);
  }
  std::size_t forms = 0;
  for (const InputSummary& input : timeline.inputs) {
    if (input.form == nullptr || ++forms > kProblemsShown) continue;
    page.Paragraph("", fmt::format("No log: {}: {}", input.path, input.form->text), 3);
    screen.Add(kForms, page);
  }
  screen.More(forms, kProblemsShown);
  const std::vector<std::string> lacks = NotCollectedInWords(timeline);
  for (std::size_t i = 0; i < std::min(lacks.size(), kProblemsShown); ++i) {
    page.Paragraph("  ", lacks[i], kRows);
    screen.Add(kForms, page);
  }
  screen.More(lacks.size(), kProblemsShown);
  screen.End(ReadInWords(timeline));
}

}  // namespace

std::string RenderText(const Timeline& timeline, const Verdict& verdict, const ReportContext& context) {
  Screen screen(context.text);
  const bool undecided = verdict.outcome == Outcome::kUndecided, failed = verdict.outcome == Outcome::kFailed;
  screen.Begin("");
  Headline(screen, verdict);
  if (undecided) {
    Culprits(screen, verdict, "Look at  ");
    CollectNext(screen, verdict, "Collect this, then run inquest over all of it together");
    Alternatives(screen, verdict, "Candidates");
  } else if (!verdict.culprits.empty() || failed) {
    Culprits(screen, verdict, "Culprit  ");
    Restart(screen, verdict);
  }
  Evidence(screen, timeline, verdict);
  Symptoms(screen, verdict);
  Ranks(screen, timeline, verdict);
  Remedies(screen, verdict, context.replay_command);
  if (failed) CollectNext(screen, verdict, "Collect next, if that does not settle it");
  if (!undecided) Alternatives(screen, verdict, "Also possible");
  Attempts(screen, timeline, verdict);
  Coverage(screen, timeline);
  return screen.Take();
}

}  // namespace inquest
