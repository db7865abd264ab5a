// The result of a replay as text, with a picture of ranks and phases.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "cli/replay_report.h"
#include "cli/speeds_text.h"
#include "replay/judgement.h"
#include "replay/links.h"
#include "replay/ops.h"
#include "replay/words.h"
#include "report/terminal.h"

namespace inquest {
namespace {

constexpr std::size_t kShownRanks = 64, kShownLinks = 24, kShownLines = 12, kShownDumps = 4;

/// Four columns for any time.
std::string ShortSeconds(std::chrono::nanoseconds time) {
  const double seconds = Seconds(time);
  return seconds < 9.995   ? fmt::format("{:.2f}", seconds)
         : seconds < 99.95 ? fmt::format("{:.1f}", seconds)
                           : fmt::format("{:.0f}", seconds);
}

std::string Bold(std::string_view text, const TextStyle& style) {
  return style.color == Color::kAlways ? fmt::format("\x1b[1m{}\x1b[0m", text) : std::string(text);
}

void AppendWrapped(std::string& text, std::string_view line, const TextStyle& style, std::string_view indent = "") {
  constexpr int kRows = 12;
  for (const std::string& row :
       Wrap(Sanitize(line), std::max(style.width, 40) - static_cast<int>(indent.size()), kRows))
    text += fmt::format("{}{}\n", indent, row);
}

/// `PASSED`, `REPRODUCED (link-dead)`.
std::string Headline(RunVerdict verdict) {
  switch (verdict) {
    case RunVerdict::kPassed:
      return "PASSED";
    case RunVerdict::kInterrupted:
      return "UNDECIDED";
    case RunVerdict::kCouldNotRun:
      return "COULD NOT RUN";
    default:
      return fmt::format("REPRODUCED ({})", Name(verdict));
  }
}

struct Column {
  Phase phase;
  std::string_view title;
};
constexpr std::array kColumns = {
    Column{Phase::kLibsLoaded, "libs"}, Column{Phase::kDeviceSet, "device"}, Column{Phase::kIdReceived, "id"},
    Column{Phase::kCommInit, "init"},   Column{Phase::kConnected, "conn"},   Column{Phase::kBuffersReady, "bufs"},
    Column{Phase::kWarmedUp, "warm"},   Column{Phase::kRehearsed, "rehear"}, Column{Phase::kDescriptorAgreed, "agree"},
    Column{Phase::kEnqueued, "enq"},    Column{Phase::kStarted, "start"},    Column{Phase::kCompleted, "done"},
    Column{Phase::kVerified, "verify"}, Column{Phase::kFinalized, "final"}};
constexpr int kCell = 7;

std::string Cell(const RankOutcome& rank, const Column& column, std::chrono::nanoseconds now) {
  const auto found = rank.phases.find(column.phase);
  const bool here = rank.doing.phase == column.phase && !(rank.last == rank.doing);
  if (found == rank.phases.end()) return "-";
  if (here) return fmt::format(">{}", ShortSeconds(now - found->second.begun));
  return found->second.reached ? ShortSeconds(*found->second.reached) : "-";
}

/// A row a rank, a column a phase: when it was reached, or how long the rank has been in the step that leads there.
std::string Picture(const RunOutcome& run) {
  std::string text = fmt::format("{:>6}", "rank");
  for (const Column& column : kColumns) text += fmt::format("{:>{}}", column.title, kCell);
  text += "  #\n";
  const auto now = run.event_at.count() > 0 ? run.event_at : run.took;
  for (const RankOutcome& rank : run.ranks) {
    if (static_cast<std::size_t>(rank.rank) == kShownRanks) {
      text += fmt::format("  and {} more in --format json\n", run.ranks.size() - kShownRanks);
      break;
    }
    text += fmt::format("{:>6}", rank.rank);
    for (const Column& column : kColumns) text += fmt::format("{:>{}}", Cell(rank, column, now), kCell);
    text += fmt::format("  {}", rank.doing.iteration > 0 ? fmt::format("{}", rank.doing.iteration)
                                : rank.times.empty()     ? "-"
                                                         : fmt::format("{}", rank.times.size()));
    if (rank.signal) text += fmt::format("  signal {}", *rank.signal);
    if (rank.exit_code) text += fmt::format("  exit {}", *rank.exit_code);
    if (!rank.stopped.empty()) text += "  stopped";
    text += "\n";
  }
  return text;
}

void AppendLinks(std::string& text, const RunOutcome& run) {
  std::size_t shown = 0;
  for (const LinkRow& link : run.links) {
    if (link.queued == 0 && link.unread == 0 && !IsDead(link)) continue;
    if (shown++ == 0) text += "\nConnections that hold bytes\n";
    if (shown > kShownLinks) continue;
    text += fmt::format("  {}->{}  waiting {}, acknowledged {}, arrived {}, unread {}, sent again {} times, {}\n",
                        link.from, link.to, SizeText(link.queued), SizeText(link.acked), SizeText(link.received),
                        SizeText(link.unread), link.retransmits,
                        IsDead(link) ? "dead"
                        : link.moves ? "moving"
                                     : "not moving");
  }
}

void AppendThreads(std::string& text, const RunOutcome& run, const TextStyle& style) {
  for (const Blamed& blamed : run.blamed) {
    if (!blamed.rank) continue;
    const RankOutcome& rank = run.ranks[static_cast<std::size_t>(*blamed.rank)];
    if (rank.threads.empty() && rank.output.empty()) continue;
    text += fmt::format("\nRank {}, process {}{}\n", rank.rank, rank.pid,
                        rank.process_state.empty() ? "" : fmt::format(", {}", rank.process_state));
    for (std::size_t i = 0; i < std::min(rank.threads.size(), kShownLines); ++i) {
      const ThreadState& thread = rank.threads[i];
      text += Cut(Sanitize(fmt::format("  thread {} {}  {}  {}", thread.tid, thread.name, thread.state, thread.wchan)),
                  style.width) +
              "\n";
    }
    std::string_view output = rank.output;
    while (output.ends_with('\n')) output.remove_suffix(1);
    std::size_t begin = output.size();
    for (std::size_t lines = 0; begin > 0 && lines < kShownLines; ++lines) {
      begin = output.rfind('\n', begin - 1);
      if (begin == std::string_view::npos) begin = 0;
    }
    if (!rank.backtrace.empty()) text += "  gdb's backtrace of every thread is in --format json\n";
    if (output.empty()) continue;
    text += "  printed last:\n";
    for (output.remove_prefix(begin); !output.empty();) {
      const std::size_t end = std::min(output.find('\n'), output.size());
      if (end > 0) text += Cut("    " + Sanitize(output.substr(0, end)), style.width) + "\n";
      output.remove_prefix(std::min(end + 1, output.size()));
    }
  }
}

/// Which further texts there are, and where; of the proxy's dumps what is active.
void AppendDumps(std::string& text, const RunOutcome& run, const TextStyle& style) {
  if (run.dumps.empty()) return;
  std::vector<std::string> names;
  for (const auto& [name, dump] : run.dumps) names.push_back(fmt::format("{} ({})", name, SizeText(dump.size())));
  text += "\n";
  AppendWrapped(text, fmt::format("Taken while it stood, in --format json and --logs: {}.", fmt::join(names, ", ")),
                style);
  std::size_t shown = 0;
  for (const auto& [name, dump] : run.dumps) {
    if (name.find("proxy.rank") == std::string::npos || shown++ == kShownDumps) continue;
    text += fmt::format("{}\n", name);
    std::string_view rest = std::string_view(dump).substr(0, dump.find("FREE OPS"));
    for (std::size_t lines = 0; !rest.empty() && lines < kShownLines; ++lines) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      text += Cut("  " + Sanitize(rest.substr(0, end)), style.width) + "\n";
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
}

/// `where   4-7 of the job on elm04, GPUs 0000:2b:00.0, ...`: a row a host, in the order of ranks.
void AppendPlaces(std::string& text, const Plan& plan, const TextStyle& style) {
  for (std::size_t first = 0; first < plan.places.size();) {
    const std::string& host = plan.places[first].was.host;
    std::vector<int> here, job;
    std::vector<std::string> gpus;
    std::size_t next = first;
    for (; next < plan.places.size() && plan.places[next].was.host == host; ++next) {
      const JobPlace& was = plan.places[next].was;
      here.push_back(static_cast<int>(next));
      if (was.rank) job.push_back(*was.rank);
      if (!was.bus_id.empty() || was.device)
        gpus.push_back(was.bus_id.empty() ? fmt::format("{}", *was.device) : was.bus_id);
    }
    if (!job.empty() || !host.empty() || !gpus.empty()) {
      const auto& at = plan.places[first].was.at;
      std::string line = fmt::format("rank {}", FoldRanks(here));
      if (!job.empty() && job != here) line += fmt::format(": {} of the job", FoldRanks(job));
      if (!host.empty()) line += fmt::format("{} on {}", line.ends_with("job") ? "" : ":", host);
      if (!gpus.empty()) line += fmt::format(", GPU {}", fmt::join(gpus, ", "));
      if (at) line += fmt::format(", {}:{}", at->path, at->line);
      text += Cut(fmt::format("  {:<7} {}", "was", Sanitize(line)), style.width) + "\n";
    }
    first = next;
  }
}

/// Its communicators, and of some ranks what they call in which order.
void AppendSequence(std::string& text, const Sequence& sequence, const TextStyle& style) {
  text += Cut(Sanitize(fmt::format("  {:<7} {}", "calls", Describe(sequence))), style.width) + "\n";
  for (std::size_t i = 0; i < std::min(sequence.communicators.size(), kShownLinks); ++i)
    text += Cut(Sanitize(fmt::format("  {:<7} {}: ranks {}", "comm", sequence.communicators[i].name,
                                     FoldRanks(sequence.communicators[i].ranks))),
                style.width) +
            "\n";
  for (std::size_t rank = 0; rank < std::min(sequence.steps.size(), kShownLines); ++rank) {
    std::string line = fmt::format("rank {} calls", rank);
    for (const SequenceStep& step : sequence.steps[rank])
      line += fmt::format(" {}{};", step.stream > 0 ? fmt::format("[stream {}] ", step.stream) : "",
                          InWords(sequence, step));
    AppendWrapped(text, line, style, "  ");
  }
}

void AppendPlan(std::string& text, const ReplayReport& report, const TextStyle& style) {
  for (const ArgumentLine& line : Arguments(report.plan)) {
    text += fmt::format("  {:<7} {:<14} {}\n", line.name, line.value, Sanitize(line.origin));
    if (line.sweep.size() > 1) text += fmt::format("  {:<7} {:<14} tried: {}\n", "", "", fmt::join(line.sweep, ", "));
  }
  if (report.plan.sequence) AppendSequence(text, *report.plan.sequence, style);
  text += fmt::format("  {:<7} {:<14} {}\n", "engine", report.plan.engine, Sanitize(report.engine));
  for (const ReportNode& node : report.nodes)
    text += Cut(fmt::format("  {:<7} {:<14} {}, {}", "", Sanitize(node.address), Sanitize(node.name),
                            node.ranks.empty() ? "no ranks" : fmt::format("ranks {}", FoldRanks(node.ranks))),
                style.width) +
            "\n";
  AppendPlaces(text, report.plan, style);
  for (const std::string& note : report.plan.notes) AppendWrapped(text, note, style, "  ");
  for (const std::string& why : report.plan.cannot)
    AppendWrapped(text, "Cannot show what happened: " + why, style, "  ");
  if (!report.engine_tests.empty()) AppendWrapped(text, report.engine_tests, style, "  ");
}

/// A row for each call that a rank is in.
void AppendWaiting(std::string& text, const RunOutcome& run, const TextStyle& style) {
  if (run.waiting.empty()) return;
  text += "\nWhere the ranks stand\n";
  const bool several = std::ranges::any_of(run.waiting, [](const Waiting& w) { return w.stream > 0; });
  std::size_t shown = 0;
  for (const Waiting& w : run.waiting) {
    if (shown++ == kShownRanks) {
      text += fmt::format("  and {} more in --format json\n", run.waiting.size() - kShownRanks);
      break;
    }
    std::string line = fmt::format("rank {}, call {}", w.rank, w.step);
    if (several) line += fmt::format(" on stream {}", w.stream);
    if (!w.for_ranks.empty()) line += fmt::format(", waits for rank {}", FoldRanks(w.for_ranks));
    if (!w.never.empty()) line += fmt::format(", never made by rank {}", FoldRanks(w.never));
    line += fmt::format(": {}", w.call);
    if (w.at && !w.at->path.empty()) line += fmt::format(", {}:{}", w.at->path, w.at->line);
    AppendWrapped(text, line, style, "  ");
  }
}

void AppendSoak(std::string& text, const ReplayReport& report, const TextStyle& style) {
  const SoakOutcome& soak = *report.soak;
  text += Bold(InWords(soak.state), style) + "\n";
  const double seconds = Seconds(soak.state.time);
  AppendWrapped(
      text,
      fmt::format("{} run{} in {}{}{}. The counts are in {}.", soak.state.runs, soak.state.runs == 1 ? "" : "s",
                  seconds < 600 ? fmt::format("{:.1f} s", seconds) : fmt::format("{:.1f} h", seconds / 3600),
                  soak.resumed ? ", gone on with after an interrupt" : "",
                  soak.interrupted ? "; interrupted: the same command goes on" : "", report.state),
      style);
  if (!soak.cannot.empty()) AppendWrapped(text, "Nothing could be run after that: " + soak.cannot, style);
  if (soak.state.failed > 0 && soak.resumed) AppendWrapped(text, "The first: " + soak.state.sentence, style);
  text += "\n";
}

void AppendTrial(std::string& text, const TrialOutcome& trial, const TextStyle& style) {
  const RunOutcome& run = trial.run;
  text +=
      Bold(fmt::format("{}  {}, {} ranks", Headline(run.verdict), TitleOf(trial.plan), trial.plan.ranks.value), style) +
      "\n";
  AppendWrapped(text, run.sentence, style);
  for (const std::string& note : run.notes) AppendWrapped(text, note, style);
  if (!trial.used.empty()) AppendWrapped(text, fmt::format("NCCL used {}.", fmt::join(trial.used, ", ")), style);
  if (!trial.log_says.empty()) AppendWrapped(text, "Its log says " + trial.log_says, style);
  if (run.bandwidth) {
    const Bandwidth& b = *run.bandwidth;
    const std::string first =
        trial.plan.iterations > 1 ? fmt::format("; the first, apart, {:.3f} ms", Seconds(b.first) * 1e3) : "";
    text += fmt::format(
        "{} in {:.3f} ms (best {:.3f} ms{}), slowest rank: algorithm bandwidth {:.3f} GB/s, bus bandwidth {:.3f} "
        "GB/s\n",
        SizeText(b.bytes), Seconds(b.mean) * 1e3, Seconds(b.best) * 1e3, first, b.algorithm, b.bus);
  }
  if (!run.ranks.empty() && run.ranks[0].pid > 0) {
    text += "\nSeconds until each step was reached; > for how long the rank was in it\n" + Picture(run);
    AppendWaiting(text, run, style);
    AppendLinks(text, run);
    AppendThreads(text, run, style);
    AppendDumps(text, run, style);
  }
}

bool Passed(const TrialOutcome& trial) { return trial.run.verdict == RunVerdict::kPassed; }

/// A row for each combination of what is assumed, with the arguments that differ.
void AppendTable(std::string& text, const ReplayReport& report, const TextStyle& style) {
  const Plan& plan = report.plan;
  struct Differs {
    std::string_view title;
    bool shown;
    std::string (*value)(const Plan&);
  };
  const Differs columns[] = {
      {"dtype", plan.datatype.sweep.size() > 1, [](const Plan& one) { return std::string(Name(one.datatype.value)); }},
      {"redop", plan.redop.sweep.size() > 1, [](const Plan& one) { return std::string(Name(one.redop.value)); }},
      {"root", plan.root.sweep.size() > 1, [](const Plan& one) { return fmt::format("{}", one.root.value); }}};
  const auto row = [&](auto cell, std::string_view verdict, std::string_view time, std::string_view bandwidth) {
    std::string line;
    for (const Differs& column : columns)
      if (column.shown) line += fmt::format("  {:<11}", cell(column));
    text += Cut(line + fmt::format("  {:<14} {:>12} {:>12}", verdict, time, bandwidth), style.width) + "\n";
  };
  row([](const Differs& column) { return std::string(column.title); }, "verdict", "time", "bus GB/s");
  for (const TrialOutcome& trial : report.trials) {
    const auto& b = trial.run.bandwidth;
    row([&](const Differs& column) { return column.value(trial.plan); }, Name(trial.run.verdict),
        b ? fmt::format("{:.3f} ms", Seconds(b->mean) * 1e3) : "-", b ? fmt::format("{:.3f}", b->bus) : "-");
  }
}

void AppendIsolation(std::string& text, const IsolationOutcome& isolation, const TextStyle& style) {
  AppendWrapped(text, isolation.interrupted ? "Interrupted. " + isolation.finding : isolation.finding, style);
  if (!isolation.hint.empty()) AppendWrapped(text, "Known causes: " + isolation.hint + ".", style);
  text += fmt::format("\n  {:<14} {:>13}  {}\n", "variant", "broken", "");
  for (const VariantOutcome& tried : isolation.variants) {
    std::string line = fmt::format("  {:<14} {:>13}  ", tried.id,
                                   tried.runs == 0 ? "-" : fmt::format("{} of {}", tried.broken, tried.runs));
    if (tried.changed_nothing) line += "changed nothing: the same transports; ";
    if (!tried.used.empty()) line += fmt::format("{}; ", fmt::join(tried.used, ", "));
    text += Cut(Sanitize(line + tried.sentence), style.width) + "\n";
  }
  for (const SubsetOutcome& part : isolation.subsets)
    text += Cut(fmt::format("  {:<14} {:>13}  {}", fmt::format("{} ranks", part.ranks.size()),
                            part.broken          ? "broken"
                            : part.could_not_run ? "not run"
                                                 : "passes",
                            FoldRanks(part.ranks)),
                style.width) +
            "\n";
  for (const PairOutcome& pair : isolation.pairs.pairs)
    if (pair.state != PairOutcome::State::kPassed)
      text += Cut(Sanitize(fmt::format("  {:<14} {:>13}  {}", fmt::format("{} and {}", pair.ranks.low, pair.ranks.high),
                                       Name(pair.state), pair.sentence)),
                  style.width) +
              "\n";
  text += fmt::format("\n  {:.1f} s, {} whole deadline{}", Seconds(isolation.took), isolation.deadlines,
                      isolation.deadlines == 1 ? "" : "s");
  if (isolation.named_at) text += fmt::format("; ranks named after {:.1f} s", Seconds(*isolation.named_at));
  text += "\n\n";
}

}  // namespace

std::string NcclTestsCommand(const Plan& plan) {
  const ReplayOp& op = RowOf(plan.operation.value);
  if (plan.sequence || op.nccl_tests.empty() || WhyNotRunnable(plan)) return "";
  const Call call = CallOf(plan);
  const std::uint64_t bytes = op.bandwidth_elements(call, plan.ranks.value) * BytesOf(call.datatype);
  return fmt::format("timeout 60 ./build/{} -g {} -b {} -e {} -d {}{} -w 1 -n 5", op.nccl_tests, plan.ranks.value,
                     bytes, bytes, RowOf(call.datatype).nccl_tests,
                     op.needs_root && !op.needs_peer ? fmt::format(" -r {}", call.root) : "");
}

std::string Conclusion(const ReplayReport& report) {
  const std::size_t ran = report.trials.size();
  if (ran == 0) return "";
  const auto failed = ran - static_cast<std::size_t>(std::ranges::count_if(report.trials, Passed));
  constexpr std::size_t kMany = 4096;
  if (ran > 1) {
    const std::size_t all = Combinations(report.plan, kMany).size();
    const std::string combinations =
        all > ran ? fmt::format("the first {} of {} combinations", ran, all) : fmt::format("{} combinations", ran);
    if (failed == 0) return fmt::format("It did not come back with any of {} of what is assumed.", combinations);
    return fmt::format("{} of {} of what is assumed did not pass.", failed, combinations);
  }
  // What was given by options alone is no repetition of anything.
  if (failed > 0 || report.plan.operation.basis == Basis::kGiven || report.plan.operation.basis == Basis::kAssumed)
    return "";
  std::vector<std::string_view> assumed;
  for (const ArgumentLine& line : Arguments(report.plan))
    if (line.basis == Basis::kAssumed) assumed.push_back(line.name);
  if (assumed.empty()) return "It did not come back with the observed arguments.";
  return fmt::format("It did not come back; {} {} assumed, not observed.", fmt::join(assumed, " and "),
                     assumed.size() == 1 ? "is" : "are");
}

std::string ReplayText(const ReplayReport& report, const TextStyle& style, ReplayDetail detail) {
  std::string text;
  if (report.soak) AppendSoak(text, report, style);
  if (const std::string words = report.soak ? "" : Conclusion(report); !words.empty()) {
    text += Bold(words, style) + "\n";
    if (report.trials.size() > 1) AppendTable(text, report, style);
    text += "\n";
  }
  // Of many the first that broke says most; where none did, the table has it all.
  const auto first = std::ranges::find_if_not(report.trials, Passed);
  for (auto trial = report.trials.begin(); trial != report.trials.end(); ++trial) {
    if (detail == ReplayDetail::kTelling && report.trials.size() > 1 && trial != first) continue;
    AppendTrial(text, *trial, style);
    text += "\n";
  }
  if (report.isolation) AppendIsolation(text, *report.isolation, style);
  if (report.speeds) text += SpeedsText(*report.speeds, style);
  const bool is_dry = report.trials.empty() && !report.isolation && !report.speeds;
  text += is_dry ? "Would run\n" : "What was run\n";
  AppendPlan(text, report, style);
  if (is_dry) {
    const std::string command = NcclTestsCommand(report.plan);
    if (!command.empty())
      text +=
          fmt::format("\nOn one host with {} GPUs nccl-tests does the same:\n  {}\n", report.plan.ranks.value, command);
  }
  return text;
}

}  // namespace inquest
