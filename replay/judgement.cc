// What outranks what: a node that is gone explains all that its ranks and their peers did; a death or a frozen process
// explains the errors and waits of the others; a mismatch is known before anyone waits; a link that holds bytes
// explains ranks that wait in the same step; only then is the rank that lags the one to look at.
#include "replay/judgement.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "core/pattern.h"
#include "replay/links.h"
#include "replay/ops.h"
#include "replay/sequence_judgement.h"
#include "replay/words.h"
#include "timeline/timeline.h"

namespace inquest {
namespace {

using std::string;

bool Finished(const RankOutcome& rank) { return rank.last.phase == Phase::kFinalized; }
bool Died(const RankOutcome& rank) { return rank.exit_code || rank.signal; }

/// `; ranks 0, 2 wait in completed #1, rank 3 is done`: where the others are, by step.
string Others(const RunOutcome& run, const std::vector<int>& but) {
  std::vector<std::pair<Step, std::vector<int>>> steps;
  std::vector<int> done;
  for (const RankOutcome& rank : run.ranks) {
    if (Finished(rank)) done.push_back(rank.rank);
    if (Died(rank) || Finished(rank) || !rank.error.empty() || std::ranges::find(but, rank.rank) != but.end()) continue;
    const auto found = std::ranges::find(steps, rank.doing, &std::pair<Step, std::vector<int>>::first);
    if (found == steps.end())
      steps.push_back({rank.doing, {rank.rank}});
    else
      found->second.push_back(rank.rank);
  }
  string text;
  for (const auto& [step, ranks] : steps)
    text += fmt::format("{} {} wait{} in {}", text.empty() ? ";" : ",", Ranks(ranks), ranks.size() == 1 ? "s" : "",
                        Text(step));
  if (!done.empty())
    text += fmt::format("{} {} {} done", text.empty() ? ";" : ",", Ranks(done), done.size() == 1 ? "is" : "are");
  return text;
}

/// ` on node 1 (hostb)`, where there are several.
string On(const RunOutcome& run, const RankOutcome& rank) {
  const auto node = static_cast<std::size_t>(rank.node);
  return run.nodes.size() > 1 && node < run.nodes.size() ? " on " + run.nodes[node].name : "";
}

/// `in completed #1`; `after started #1` where it had come through that and begun nothing else.
string Where(const RankOutcome& rank) {
  return fmt::format("{} {}", rank.last == rank.doing ? "after" : "in", Text(rank.doing));
}

/// The last line that says something.
string LastWords(const string& output) {
  std::size_t end = output.size();
  while (end > 0) {
    const std::size_t begin = output.rfind('\n', end - 1);
    const string line =
        output.substr(begin == string::npos ? 0 : begin + 1, end - (begin == string::npos ? 0 : begin + 1));
    if (line.find_first_not_of(" \t\r\n") != string::npos) return line.substr(0, 300);
    if (begin == string::npos) break;
    end = begin;
  }
  return "";
}

/// Before anyone spoke to another the host or the installation is at fault, not the collective.
bool IsAlone(const Step& step) { return step.phase <= Phase::kIdReceived || step.phase == Phase::kBuffersReady; }

/// What it was in, or about to begin.
Step Heading(const RankOutcome& rank, const Plan& plan) {
  return rank.last == rank.doing ? StepAfter(rank.doing, plan) : rank.doing;
}

Judgement OfDeath(const RunOutcome& run, const RankOutcome& dead, const Plan& plan) {
  string how = dead.signal ? fmt::format("was killed by signal {} ({})", *dead.signal, ::strsignal(*dead.signal))
                           : fmt::format("exited with {}", dead.exit_code.value_or(0));
  string sentence =
      fmt::format("Rank {}{} {} {}{}.", dead.rank, On(run, dead), how, Where(dead), Others(run, {dead.rank}));
  if (!dead.ended_by.empty()) sentence += " " + Capital(dead.ended_by) + ".";
  const string words = LastWords(dead.output);
  if (!words.empty()) sentence += fmt::format(" Its last words: {}", words);
  if (words.find("Resource temporarily unavailable") != string::npos)
    sentence += " No more processes or threads may be started: ulimit -u, or pids.max of the cgroup.";
  const bool of_host = !dead.ended_by.empty() || IsAlone(Heading(dead, plan));
  return {of_host ? RunVerdict::kCouldNotRun : RunVerdict::kRankDied, sentence, {{.rank = dead.rank, .to = {}}}};
}

Judgement OfLostNode(const RunOutcome& run, std::size_t node) {
  Judgement judgement{RunVerdict::kNodeLost, "", {}};
  std::vector<int> ranks;
  for (const RankOutcome& rank : run.ranks) {
    if (static_cast<std::size_t>(rank.node) != node) continue;
    ranks.push_back(rank.rank);
    judgement.blamed.push_back({.rank = rank.rank, .to = {}});
  }
  judgement.sentence =
      fmt::format("{} was lost with {}: {}{}.", Capital(run.nodes[node].name),
                  ranks.empty() ? "no rank on it" : Ranks(ranks), run.nodes[node].lost, Others(run, ranks));
  return judgement;
}

Judgement OfMismatch(const RunOutcome& run, const Plan& plan) {
  Judgement judgement{RunVerdict::kMismatch, "", {}};
  std::vector<int> agree;
  for (const RankOutcome& rank : run.ranks) {
    if (!rank.asked) {
      agree.push_back(rank.rank);
      continue;
    }
    judgement.sentence += fmt::format("{}ank {}{} asked for {}", judgement.sentence.empty() ? "R" : ", r", rank.rank,
                                      On(run, rank), Difference(*rank.asked, CallOf(plan)));
    judgement.blamed.push_back({.rank = rank.rank, .to = {}});
  }
  judgement.sentence += agree.empty() ? "." : fmt::format("; {} asked for {}.", Ranks(agree), Describe(CallOf(plan)));
  return judgement;
}

Judgement OfWrongData(const RunOutcome& run, const RankOutcome& rank, const Plan& plan) {
  const WrongData& data = *rank.wrong_data;
  const auto own = static_cast<std::size_t>(rank.rank);
  if (plan.sequence && data.step && *data.step < plan.sequence->steps[own].size())
    return {RunVerdict::kWrongData,
            fmt::format("Rank {}{} got wrong data out of {}: element {} is {}, not {}; {} element{} wrong.", rank.rank,
                        On(run, rank), InWordsWhole(*plan.sequence, plan.sequence->steps[own][*data.step]), data.first,
                        data.got, data.wanted, data.elements, data.elements == 1 ? " is" : "s are"),
            {{.rank = rank.rank, .to = {}}}};
  return {RunVerdict::kWrongData,
          fmt::format("Rank {}{} got wrong data in #{}: element {} is {}, not {}; {} element{} wrong.", rank.rank,
                      On(run, rank), rank.doing.iteration, data.first, data.got, data.wanted, data.elements,
                      data.elements == 1 ? " is" : "s are"),
          {{.rank = rank.rank, .to = {}}}};
}

/// The rank whose address an error names: `[10.0.0.2]:4711`, `10.0.0.2<4711>`, `10.0.0.2:4711`.
std::optional<int> RankAt(const string& error, const RunOutcome& run) {
  for (const auto& [address, rank] : run.listeners) {
    const std::size_t colon = address.rfind(':');
    const string host = address.substr(0, colon), port = address.substr(colon + 1);
    for (const string& form : {address, fmt::format("[{}]:{}", host, port), fmt::format("{}<{}>", host, port)}) {
      const std::size_t at = error.find(form), end = at + form.size();
      const bool whole = at != string::npos && (end == error.size() || error[end] < '0' || error[end] > '9');
      if (whole) return rank;
    }
  }
  return std::nullopt;
}

std::optional<int> PeerOf(const RankOutcome& rank, const RunOutcome& run) {
  const auto peer = RankAt(rank.error, run);
  return peer == rank.rank ? std::nullopt : peer;
}

/// `[10.0.0.2]:4711`, `10.0.0.2<4711>`, `10.0.0.2:4711`: whoever that is.
bool NamesAnAddress(const string& error) {
  static const Pattern kAddress(R"((?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F]*:[0-9a-fA-F:]+)\]?[:<]\d{1,5}\b)");
  return kAddress.Matches(error);
}

/// The first to fail, but for one that fails at nearly the same moment and says who it could not reach. Of a pair of
/// Gloo's the side that connected gave the other an address at which nobody is any more: the other's error names that.
const RankOutcome& Telling(const RunOutcome& run, const RankOutcome& first) {
  if (PeerOf(first, run)) return first;
  const bool at_nobodys = NamesAnAddress(first.error);
  const auto telling = std::ranges::find_if(run.ranks, [&](const RankOutcome& rank) {
    const auto peer = PeerOf(rank, run);
    return !rank.error.empty() && peer && (rank.doing == first.doing || (at_nobodys && *peer == first.rank));
  });
  return telling == run.ranks.end() ? first : *telling;
}

/// ` from node 0 (hosta) to node 1 (hostb)`, where there are several and it crosses.
string Between(const RunOutcome& run, int from, int to) {
  const RankOutcome &sender = run.ranks[static_cast<std::size_t>(from)],
                    &receiver = run.ranks[static_cast<std::size_t>(to)];
  if (run.nodes.size() < 2 || sender.node == receiver.node) return "";
  return fmt::format(" from {} to {}", run.nodes[static_cast<std::size_t>(sender.node)].name,
                     run.nodes[static_cast<std::size_t>(receiver.node)].name);
}

Judgement OfError(const RunOutcome& run, const RankOutcome& first) {
  const RankOutcome& rank = Telling(run, first);
  const bool alone = IsAlone(rank.doing);
  string error = rank.error;
  while (!error.empty() && (error.back() == '.' || error.back() == '\n')) error.pop_back();
  const auto peer = alone ? std::nullopt : PeerOf(rank, run);
  const bool connecting = peer && (rank.doing.phase == Phase::kCommInit || rank.doing.phase == Phase::kConnected);
  if (rank.pid == 0 && rank.doing.phase == Phase::kSpawned)
    return {
        RunVerdict::kCouldNotRun, fmt::format("{}{}.", Capital(error), On(run, rank)), {{.rank = rank.rank, .to = {}}}};
  string sentence = fmt::format("Rank {}{} failed in {}: {}{}.", rank.rank, On(run, rank), Text(rank.doing), error,
                                Others(run, {rank.rank}));
  if (peer)
    sentence += fmt::format(" That is the address of rank {}: link {}->{}{}{}.", *peer, rank.rank, *peer,
                            Between(run, rank.rank, *peer), connecting ? " does not connect" : "");
  return {alone        ? RunVerdict::kCouldNotRun
          : connecting ? RunVerdict::kLinkDead
                       : RunVerdict::kEngineError,
          sentence,
          {{.rank = rank.rank, .to = peer}}};
}

string LinkText(const RunOutcome& run, const LinkRow& link) {
  const string between = Between(run, link.from, link.to);
  if (!link.connected)
    return fmt::format("link {}->{}{} does not connect ({} tries)", link.from, link.to, between, link.retransmits + 1);
  return fmt::format("link {}->{}{} holds {} that do not move (sent again {} times, last sign of life {:.1f} s ago)",
                     link.from, link.to, between, SizeText(link.queued), link.retransmits, Seconds(link.since_ack));
}

/// ` All of them end at node 1 (hostb).`: the one or two nodes that every dead link has an end on.
string CommonNodes(const RunOutcome& run, const std::vector<const LinkRow*>& dead) {
  if (run.nodes.size() < 2 || dead.size() < 2) return "";
  std::vector<string> common;
  for (std::size_t node = 0; node < run.nodes.size(); ++node) {
    const auto on = [&](int rank) {
      return static_cast<std::size_t>(run.ranks[static_cast<std::size_t>(rank)].node) == node;
    };
    if (std::ranges::all_of(dead, [&](const LinkRow* link) { return on(link->from) || on(link->to); }))
      common.push_back(run.nodes[node].name);
  }
  if (common.size() == 1) return fmt::format(" All of them end at {}.", common[0]);
  return common.size() == 2 ? fmt::format(" All of them run between {} and {}.", common[0], common[1]) : "";
}

std::optional<Judgement> OfLinks(const RunOutcome& run) {
  std::vector<const LinkRow*> dead;
  for (const LinkRow& link : run.links) {
    if (IsDead(link)) dead.push_back(&link);
  }
  // Bytes of which only the acknowledgement is lost are held up by the way back, which is dead by itself.
  const auto arrives = [](const LinkRow* link) { return Arrives(*link) == true; };
  const auto lost_back = [&](const LinkRow* link) {
    return arrives(link) && std::ranges::any_of(dead, [&](const LinkRow* other) {
             return other->from == link->to && other->to == link->from && Arrives(*other) == false;
           });
  };
  std::set<std::pair<int, int>> one_way;
  for (const LinkRow* link : dead)
    if (lost_back(link)) one_way.insert({link->to, link->from});
  // Two connections of one pair that say the opposite acquit neither way.
  const std::set<std::pair<int, int>> either = one_way;
  std::erase_if(one_way, [&](const auto& way) { return either.contains({way.second, way.first}); });
  std::erase_if(dead, [&](const LinkRow* link) { return one_way.contains({link->to, link->from}); });
  if (dead.empty()) return std::nullopt;
  std::ranges::stable_sort(dead, std::ranges::greater{}, [](const LinkRow* link) { return link->queued; });
  Judgement judgement{RunVerdict::kLinkDead, "", {}};
  std::map<int, std::size_t> touched;
  for (const LinkRow* link : dead) {
    constexpr std::size_t kShown = 4;
    if (judgement.blamed.size() < kShown)
      judgement.sentence += (judgement.sentence.empty() ? "" : "; ") + LinkText(run, *link);
    judgement.blamed.push_back({.rank = link->from, .to = link->to});
    ++touched[link->from];
    ++touched[link->to];
  }
  judgement.sentence = Capital(judgement.sentence) + ".";
  for (const auto& [from, to] : one_way)
    judgement.sentence += fmt::format(
        " What rank {1} sends arrives at rank {0}, and what rank {0} sends does not arrive at rank {1}: it is lost on "
        "the "
        "way from rank {0} to rank {1}.",
        from, to);
  judgement.sentence += CommonNodes(run, dead);
  if (dead.size() > 1) {
    for (const auto& [rank, links] : touched) {
      if (links == dead.size()) judgement.sentence += fmt::format(" All of them end at rank {}.", rank);
    }
  }
  return judgement;
}

/// What it means to hang before the first iteration, in what connects.
string OfFirstCall(Phase phase, const Plan& plan) {
  if (plan.engine != "nccl") return "";
  if (phase == Phase::kWarmedUp)
    return " That is the first call of all, of little data, in which NCCL connects: nothing was measured yet.";
  if (phase != Phase::kRehearsed) return "";
  return fmt::format(
      " That is {}, before any is measured: little data had come through, and what only calls of this size connect or "
      "move does not.",
      plan.sequence ? "the first time that each of the calls is made, one after the other in one order on all ranks"
                    : "the first call of this size");
}

Judgement OfHang(const RunOutcome& run, const Plan& plan, std::chrono::milliseconds waited) {
  std::vector<int> silent;
  for (const RankOutcome& rank : run.ranks)
    if (!rank.spoke && rank.pid > 0) silent.push_back(rank.rank);
  if (!silent.empty())
    return {RunVerdict::kCouldNotRun,
            fmt::format("The worker{} of {} said nothing within {:.1f} s: is inquest-replay-worker that of this "
                        "version, and can it be run?",
                        silent.size() == 1 ? "" : "s", Ranks(silent), Seconds(waited)),
            {{.rank = silent.front(), .to = {}}}};
  const RankOutcome *behind = nullptr, *ahead = nullptr;
  for (const RankOutcome& rank : run.ranks) {
    if (behind == nullptr || IsBefore(rank.doing, behind->doing)) behind = &rank;
    if (ahead == nullptr || IsBefore(ahead->doing, rank.doing)) ahead = &rank;
  }
  if (plan.sequence && (behind->doing.phase == Phase::kStarted || behind->doing.phase == Phase::kCompleted))
    return JudgeSequence(run, plan, waited);
  const string time = fmt::format(" within {:.1f} s", Seconds(waited));
  if (behind->doing == ahead->doing) {
    return {RunVerdict::kHung,
            fmt::format("All {} ranks wait in {}, none came through{}; no rank is behind and no connection between "
                        "them holds bytes.{}",
                        run.ranks.size(), Text(behind->doing), time, OfFirstCall(behind->doing.phase, plan)),
            {}};
  }
  Judgement judgement{RunVerdict::kHung, "", {}};
  std::vector<int> late;
  for (const RankOutcome& rank : run.ranks) {
    if (rank.doing == behind->doing) {
      late.push_back(rank.rank);
      judgement.blamed.push_back({.rank = rank.rank, .to = {}});
    }
  }
  const bool between = behind->last == behind->doing;  // it hangs in no step: it never began the next
  const Step missing = between ? StepAfter(behind->last, plan) : behind->doing;
  const string what = missing.phase == Phase::kEnqueued ? fmt::format("did not enqueue #{}", missing.iteration)
                      : between                         ? "never reached " + Text(missing)
                                                        : "did not get through " + Text(missing);
  const bool together = std::ranges::all_of(
      late, [&](int rank) { return run.ranks[static_cast<std::size_t>(rank)].node == behind->node; });
  judgement.sentence = Capital(fmt::format("{}{} {}{}{}.{}", Ranks(late), together ? On(run, *behind) : "", what, time,
                                           Others(run, late), OfFirstCall(missing.phase, plan)));
  return judgement;
}

/// With all others that the picture shows standing as well.
Judgement OfStopped(const RunOutcome& run, const RankOutcome& first) {
  Judgement judgement{RunVerdict::kRankStopped, "", {}};
  std::vector<int> ranks;
  bool alike = true;
  for (const RankOutcome& rank : run.ranks) {
    const bool stands = rank.process_state.starts_with('T') || rank.process_state.starts_with('t');
    if (rank.stopped.empty() && !stands) continue;
    ranks.push_back(rank.rank);
    judgement.blamed.push_back({.rank = rank.rank, .to = {}});
    alike = alike && (rank.stopped.empty() || rank.stopped == first.stopped);
  }
  const string where = ranks.size() == 1 ? " " + Where(first) : "";
  judgement.sentence = fmt::format("{}{} {} {}{}{}.", Capital(Ranks(ranks)), ranks.size() == 1 ? On(run, first) : "",
                                   ranks.size() == 1 ? "is" : "are", alike ? first.stopped : "stopped or held", where,
                                   Others(run, ranks));
  return judgement;
}

string OfInterrupt(const RunOutcome& run) {
  for (const NodeOutcome& node : run.nodes)
    if (node.interrupted) return fmt::format("{} was interrupted before the run was over.", Capital(node.name));
  switch (run.interruption) {
    case Interruption::kCallerGone:
      return "The process that started this replay is gone, and the run was ended before it was over; nohup or setsid "
             "lets a replay go on alone.";
    case Interruption::kReaderGone:
      return "Nobody reads any more what this replay prints, and the run was ended before it was over.";
    default:
      return "Interrupted before the run was over.";
  }
}

/// The first to match, by the time it ended.
const RankOutcome* First(const RunOutcome& run, bool (*matches)(const RankOutcome&)) {
  const RankOutcome* first = nullptr;
  for (const RankOutcome& rank : run.ranks) {
    if (matches(rank) && (first == nullptr || rank.ended_at < first->ended_at)) first = &rank;
  }
  return first;
}

/// What the library made nothing of: a mismatch of sizes need not hang.
string AllowedDifferences(const Sequence& sequence) {
  const auto differ = DisagreementsOf(sequence);
  return differ.empty() ? "" : " They did so although not all do the same: " + differ.front().sentence;
}

/// Of which calls of it the data was verified.
string VerifiedOf(const RunOutcome& run, const Sequence& sequence) {
  std::size_t checked = 0;
  for (std::size_t rank = 0; rank < sequence.steps.size() && rank < run.ranks.size(); ++rank)
    if (run.ranks[rank].verifies)
      checked += static_cast<std::size_t>(std::ranges::count(sequence.steps[rank], true, &SequenceStep::checked));
  if (checked == sequence.size()) return ", data verified";
  return checked == 0 ? ", data not verified" : fmt::format(", data of {} of the calls verified", checked);
}

Judgement JudgeHere(const RunOutcome& run, const Plan& plan, Ending ending, std::chrono::milliseconds waited) {
  // What came after it came of it.
  if (ending == Ending::kInterrupted) return {RunVerdict::kInterrupted, OfInterrupt(run), {}};
  const auto lost = std::ranges::find_if(run.nodes, [](const NodeOutcome& node) { return !node.lost.empty(); });
  if (lost != run.nodes.end()) return OfLostNode(run, static_cast<std::size_t>(lost - run.nodes.begin()));
  if (const auto* dead = First(run, [](const RankOutcome& r) { return Died(r) && !Finished(r); }))
    return OfDeath(run, *dead, plan);
  if (const auto* still = First(run, [](const RankOutcome& r) { return !r.stopped.empty(); }))
    return OfStopped(run, *still);
  if (First(run, [](const RankOutcome& r) { return r.asked.has_value(); }) != nullptr) return OfMismatch(run, plan);
  if (const auto* wrong = First(run, [](const RankOutcome& r) { return r.wrong_data.has_value(); }))
    return OfWrongData(run, *wrong, plan);
  if (const auto* failed = First(run, [](const RankOutcome& r) { return !r.error.empty(); }))
    return OfError(run, *failed);
  if (ending == Ending::kDeadline) {
    if (auto links = OfLinks(run)) return *links;
    return OfHang(run, plan, waited);
  }
  if (plan.sequence)
    return {RunVerdict::kPassed,
            fmt::format("{} passed on {} ranks{}.{}", Capital(Describe(*plan.sequence)), run.ranks.size(),
                        VerifiedOf(run, *plan.sequence), AllowedDifferences(*plan.sequence)),
            {}};
  return {RunVerdict::kPassed,
          fmt::format("{} passed on {} rank{}{}.", Capital(Describe(CallOf(plan))), run.ranks.size(),
                      run.ranks.size() == 1 ? "" : "s",
                      plan.operation.value == Operation::kBarrier ? "" : ", data verified"),
          {}};
}

/// Ranks of a group are counted anew: who they are in the job, and where that was.
string InTheJob(const Judgement& judgement, const Plan& plan) {
  constexpr std::size_t kShown = 4;
  std::vector<int> named;
  for (const Blamed& blamed : judgement.blamed)
    for (const std::optional<int>& rank : {blamed.rank, blamed.to})
      if (rank && named.size() < kShown && std::ranges::find(named, *rank) == named.end()) named.push_back(*rank);
  string text;
  for (const int rank : named) {
    if (static_cast<std::size_t>(rank) >= plan.places.size()) continue;
    const JobPlace& was = plan.places[static_cast<std::size_t>(rank)].was;
    if (!was.rank || *was.rank == rank) continue;
    text += fmt::format(" Rank {} was rank {} of the job{}{}.", rank, *was.rank,
                        was.host.empty() ? "" : " on " + was.host, was.bus_id.empty() ? "" : ", GPU " + was.bus_id);
  }
  return text;
}

}  // namespace

Judgement Judge(const RunOutcome& run, const Plan& plan, Ending ending, std::chrono::milliseconds waited) {
  Judgement judgement = JudgeHere(run, plan, ending, waited);
  const bool of_calls = judgement.verdict == RunVerdict::kRankDied || judgement.verdict == RunVerdict::kEngineError ||
                        judgement.verdict == RunVerdict::kWrongData || judgement.verdict == RunVerdict::kLinkDead;
  if (const string differ = of_calls ? NameDisagreements(run, plan) : ""; !differ.empty())
    judgement.sentence += (judgement.sentence.ends_with('.') ? "" : ".") + differ;
  judgement.sentence += InTheJob(judgement, plan);
  return judgement;
}

Step StepAfter(const Step& step, const Plan& plan) {
  if (step.phase == Phase::kBuffersReady && !plan.warm_up) return {Phase::kDescriptorAgreed, 1};
  if (step.phase == Phase::kVerified)
    return step.iteration < plan.iterations ? Step{Phase::kDescriptorAgreed, step.iteration + 1}
                                            : Step{Phase::kFinalized, 0};
  if (step.phase == Phase::kExited) return step;
  const auto next = static_cast<Phase>(static_cast<int>(step.phase) + 1);
  return {next, !IsRepeated(next) ? 0 : std::max(step.iteration, 1)};
}

std::optional<Bandwidth> BandwidthOf(const RunOutcome& run, const Plan& plan) {
  if (plan.sequence) return std::nullopt;
  std::size_t iterations = SIZE_MAX;
  for (const RankOutcome& rank : run.ranks) iterations = std::min(iterations, rank.times.size());
  if (run.ranks.empty() || iterations == 0) return std::nullopt;
  const ReplayOp& op = RowOf(plan.operation.value);
  const Call call = CallOf(plan);
  const auto nranks = static_cast<int>(run.ranks.size());
  Bandwidth bandwidth{.bytes = op.bandwidth_elements(call, nranks) * BytesOf(call.datatype),
                      .best = std::chrono::nanoseconds::max()};
  for (std::size_t i = 0; i < iterations; ++i) {
    std::chrono::nanoseconds slowest{};
    for (const RankOutcome& rank : run.ranks) slowest = std::max(slowest, rank.times[i]);
    if (i == 0) bandwidth.first = slowest;
    if (i == 0 && iterations > 1) continue;
    bandwidth.best = std::min(bandwidth.best, slowest);
    bandwidth.mean += slowest;
  }
  bandwidth.mean /= static_cast<std::int64_t>(std::max<std::size_t>(iterations - 1, 1));
  if (bandwidth.mean.count() > 0)
    bandwidth.algorithm =
        static_cast<double>(bandwidth.bytes) / static_cast<double>(bandwidth.mean.count());  // B/ns is GB/s
  bandwidth.bus = bandwidth.algorithm * op.bus_factor(nranks);
  return bandwidth;
}

string SizeText(std::uint64_t bytes) {
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double size = static_cast<double>(bytes);
  const char* unit = "B";
  for (const char* next : {"kB", "MB", "GB", "TB"}) {
    if (size < 1000) break;
    size /= 1000;
    unit = next;
  }
  return fmt::format("{:.1f} {}", size, unit);
}

std::string_view Name(RunVerdict verdict) {
  constexpr std::string_view kNames[] = {"passed",       "hung",          "link-dead",    "rank-died",
                                         "rank-stopped", "call-mismatch", "wrong-data",   "engine-error",
                                         "node-lost",    "interrupted",   "could-not-run"};
  return kNames[static_cast<std::size_t>(verdict)];
}

std::vector<std::string> LatenessNotes(const std::vector<Lateness>& late, const RunOutcome& run) {
  constexpr std::size_t kMostNotes = 3;
  struct Group {
    Step step;
    std::vector<int> ranks;
    std::chrono::milliseconds least{}, most{};
  };
  std::vector<Group> groups;
  for (const Lateness& one : late) {
    const bool blamed = std::ranges::any_of(run.blamed, [&](const Blamed& who) { return who.rank == one.rank; });
    if (run.verdict == RunVerdict::kPassed ? one.by < run.took / 4 : !blamed) continue;
    const auto found = std::ranges::find(groups, one.step, &Group::step);
    if (found == groups.end()) {
      groups.push_back({one.step, {one.rank}, one.by, one.by});
    } else {
      found->ranks.push_back(one.rank);
      found->least = std::min(found->least, one.by);
      found->most = std::max(found->most, one.by);
    }
  }
  std::ranges::stable_sort(groups, std::greater(), &Group::most);
  if (groups.size() > kMostNotes) groups.resize(kMostNotes);
  std::vector<std::string> notes;
  for (const Group& group : groups) {
    const auto seconds = [](std::chrono::milliseconds time) {
      return fmt::format("{:.1f}", std::chrono::duration<double>(time).count());
    };
    const std::string range = seconds(group.least) == seconds(group.most)
                                  ? seconds(group.most)
                                  : fmt::format("{} to {}", seconds(group.least), seconds(group.most));
    notes.push_back(fmt::format("{} {} {} s late at {}.", group.ranks.size() == 1 ? "Rank" : "Ranks",
                                FoldRanks(group.ranks), group.ranks.size() == 1 ? "was " + range : "were " + range,
                                Text(group.step)));
  }
  return notes;
}

int ExitStatus(const std::vector<TrialOutcome>& trials) {
  enum : int { kPassed, kReproduced, kUndecided, kCouldNotRun };
  const auto any = [&](auto matches) {
    return std::ranges::any_of(trials, [&](const TrialOutcome& trial) { return matches(trial.run.verdict); });
  };
  const auto undecided = [](RunVerdict verdict) { return verdict == RunVerdict::kInterrupted; };
  const auto not_run = [](RunVerdict verdict) { return verdict == RunVerdict::kCouldNotRun; };
  if (any([&](RunVerdict v) { return v != RunVerdict::kPassed && !undecided(v) && !not_run(v); })) return kReproduced;
  if (any(undecided)) return kUndecided;
  if (!any(not_run) && !trials.empty()) return kPassed;
  return any([](RunVerdict v) { return v == RunVerdict::kPassed; }) ? kUndecided : kCouldNotRun;
}

}  // namespace inquest
