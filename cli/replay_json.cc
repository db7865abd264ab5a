// The result of a replay as one JSON document, fixed by docs/replay.schema.json.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/replay_report.h"
#include "replay/links.h"
#include "replay/ops.h"

namespace inquest {
namespace {

using Json = nlohmann::ordered_json;

/// Seconds, to the microsecond.
Json SecondsValue(std::chrono::nanoseconds time) {
  return std::round(std::chrono::duration<double>(time).count() * 1e6) / 1e6;
}
Json OrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
Json OrNull(const std::optional<int>& value) { return value ? Json(*value) : Json(nullptr); }

template <class T>
Json BasisOf(const Argument<T>& argument) {
  return {{"basis", Name(argument.basis)},
          {"rule", OrNull(argument.rule)},
          {"source", argument.at ? Json(argument.at->path) : Json(nullptr)},
          {"line", argument.at ? Json(argument.at->line) : Json(nullptr)}};
}

template <class T, class Print>
Json ArgumentOf(const Argument<T>& argument, Print print) {
  Json json = {{"value", print(argument.value)}};
  json.update(BasisOf(argument));
  json["tried"] = Json::array();
  for (const T& value : argument.sweep) json["tried"].push_back(print(value));
  return json;
}

Json ToJson(const RankPlace& place, std::size_t rank) {
  const JobPlace& was = place.was;
  return {{"rank", rank},
          {"node", place.node},
          {"job_rank", OrNull(was.rank)},
          {"host", OrNull(was.host)},
          {"bus_id", OrNull(was.bus_id)},
          {"device", OrNull(was.device)},
          {"source", was.at ? Json(was.at->path) : Json(nullptr)},
          {"line", was.at ? Json(was.at->line) : Json(nullptr)},
          {"options", place.options},
          {"env", place.env}};
}

Json ToJson(const Sequence& sequence) {
  Json communicators = Json::array(), ranks = Json::array(), differ = Json::array();
  for (const SequenceCommunicator& communicator : sequence.communicators)
    communicators.push_back({{"name", communicator.name}, {"ranks", communicator.ranks}});
  for (const auto& of_rank : sequence.steps) {
    Json steps = Json::array();
    for (const SequenceStep& step : of_rank)
      steps.push_back({{"communicator", step.communicator},
                       {"call", Describe(sequence.calls[step.call])},
                       {"number", step.called},
                       {"stream", step.stream},
                       {"group_call", step.batch > 0 ? Json(step.batch) : Json(nullptr)},
                       {"source", step.at && !step.at->path.empty() ? Json(step.at->path) : Json(nullptr)},
                       {"line", step.at && !step.at->path.empty() ? Json(step.at->line) : Json(nullptr)}});
    ranks.push_back(steps);
  }
  for (const Disagreement& one : DisagreementsOf(sequence)) differ.push_back(one.sentence);
  return {{"rule", OrNull(sequence.rule)}, {"communicators", communicators}, {"ranks", ranks}, {"differences", differ}};
}

Json ToJson(const SoakOutcome& soak, const std::string& state) {
  const RateInterval interval = WilsonInterval(soak.state.failed, soak.state.iterations());
  const std::uint64_t all = soak.state.iterations();
  return {{"iterations", all},
          {"failed", soak.state.failed},
          {"rate", all > 0 ? Json(static_cast<double>(soak.state.failed) / static_cast<double>(all)) : Json(nullptr)},
          {"low", interval.low},
          {"high", interval.high},
          {"confidence", 0.95},
          {"first_failed", soak.state.first_failed ? Json(*soak.state.first_failed) : Json(nullptr)},
          {"first_sentence", OrNull(soak.state.sentence)},
          {"runs", soak.state.runs},
          {"verdicts", soak.state.verdicts},
          {"time_s", SecondsValue(soak.state.time)},
          {"resumed", soak.resumed},
          {"interrupted", soak.interrupted},
          {"stopped_by", OrNull(soak.cannot)},
          {"state", state}};
}

Json ToJson(const Plan& plan) {
  const ReplayOp& op = RowOf(plan.operation.value);
  const auto same = [](auto value) { return value; };
  const auto name = [](auto value) { return std::string(Name(value)); };
  Json places = Json::array();
  for (std::size_t rank = 0; rank < plan.places.size(); ++rank) places.push_back(ToJson(plan.places[rank], rank));
  const bool single = !plan.sequence, counts = single && op.operation != Operation::kBarrier && plan.count.value > 0;
  return {
      {"op", plan.has_operation() ? ArgumentOf(plan.operation, name) : Json(nullptr)},
      {"count", counts ? ArgumentOf(plan.count, same) : Json(nullptr)},
      {"dtype", plan.sequence || op.operation == Operation::kBarrier ? Json(nullptr) : ArgumentOf(plan.datatype, name)},
      {"redop", single && op.needs_redop ? ArgumentOf(plan.redop, name) : Json(nullptr)},
      {"root", single && op.needs_root ? ArgumentOf(plan.root, same) : Json(nullptr)},
      {"peer", single && op.needs_peer ? ArgumentOf(plan.peer, same) : Json(nullptr)},
      {"ranks", plan.ranks.value > 0 ? ArgumentOf(plan.ranks, same) : Json(nullptr)},
      {"at_least", plan.at_least > 0 ? Json(plan.at_least) : Json(nullptr)},
      {"nodes", ArgumentOf(plan.nodes, same)},
      {"splits", plan.splits},
      {"sequence", plan.sequence ? ToJson(*plan.sequence) : Json(nullptr)},
      {"engine", plan.engine},
      {"options", plan.options},
      {"env", plan.env},
      {"places", places},
      {"iterations", plan.iterations},
      {"timeout_s", SecondsValue(plan.deadlines.each)},
      {"notes", plan.notes},
      {"cannot", plan.cannot}};
}

Json ToJson(const RankOutcome& rank) {
  Json phases = Json::array();
  for (const auto& [phase, time] : rank.phases)
    phases.push_back({{"phase", Name(phase)},
                      {"iteration", time.iteration > 0 ? Json(time.iteration) : Json(nullptr)},
                      {"begun_s", SecondsValue(time.begun)},
                      {"reached_s", time.reached ? SecondsValue(*time.reached) : Json(nullptr)}});
  Json threads = Json::array();
  for (const ThreadState& t : rank.threads)
    threads.push_back({{"tid", t.tid},
                       {"name", t.name},
                       {"state", t.state},
                       {"wchan", OrNull(t.wchan)},
                       {"syscall", OrNull(t.syscall)},
                       {"stack", OrNull(t.stack)}});
  Json times = Json::array();
  for (const auto& time : rank.times) times.push_back(SecondsValue(time));
  Json wrong = nullptr;
  if (const auto& w = rank.wrong_data)
    wrong = {{"elements", w->elements}, {"first", w->first}, {"wanted", w->wanted}, {"got", w->got}};
  return {{"rank", rank.rank},
          {"node", rank.node},
          {"host", OrNull(rank.host)},
          {"pid", rank.pid > 0 ? Json(rank.pid) : Json(nullptr)},
          {"in", Text(rank.doing)},
          {"reached", Text(rank.last)},
          {"phases", phases},
          {"times_s", times},
          {"exit_code", OrNull(rank.exit_code)},
          {"signal", OrNull(rank.signal)},
          {"stopped", OrNull(rank.stopped)},
          {"asked", rank.asked ? Json(Describe(*rank.asked)) : Json(nullptr)},
          {"error", OrNull(rank.error)},
          {"wrong_data", wrong},
          {"notes", rank.describe},
          {"process_state", OrNull(rank.process_state)},
          {"threads", threads},
          {"backtrace", OrNull(rank.backtrace)},
          {"output", OrNull(rank.output)}};
}

Json ToJson(const LinkRow& link) {
  return {{"from", link.from},
          {"to", link.to},
          {"from_address", link.from_address},
          {"to_address", link.to_address},
          {"connected", link.connected},
          {"acknowledged", link.acked},
          {"arrived", link.received},
          {"waiting", link.queued},
          {"unread", link.unread},
          {"sent_again", link.retransmits},
          {"moves", link.moves},
          {"dead", IsDead(link)}};
}

Json ToJson(const TrialOutcome& trial) {
  const RunOutcome& run = trial.run;
  Json blamed = Json::array(), ranks = Json::array(), links = Json::array(), bandwidth = nullptr;
  for (const Blamed& b : run.blamed) blamed.push_back({{"rank", OrNull(b.rank)}, {"to", OrNull(b.to)}});
  for (const RankOutcome& rank : run.ranks) ranks.push_back(ToJson(rank));
  for (const LinkRow& link : run.links) links.push_back(ToJson(link));
  if (const auto& b = run.bandwidth)
    bandwidth = {{"bytes", b->bytes},
                 {"first_s", SecondsValue(b->first)},
                 {"best_s", SecondsValue(b->best)},
                 {"mean_s", SecondsValue(b->mean)},
                 {"algorithm_gb_s", b->algorithm},
                 {"bus_gb_s", b->bus}};
  Json waiting = Json::array();
  for (const Waiting& w : run.waiting)
    waiting.push_back({{"rank", w.rank},
                       {"stream", w.stream},
                       {"step", w.step},
                       {"call", w.call},
                       {"waits_for", w.for_ranks},
                       {"never_made_by", w.never},
                       {"source", w.at && !w.at->path.empty() ? Json(w.at->path) : Json(nullptr)},
                       {"line", w.at && !w.at->path.empty() ? Json(w.at->line) : Json(nullptr)}});
  return {{"call", TitleOf(trial.plan)},
          {"verdict", Name(run.verdict)},
          {"sentence", run.sentence},
          {"notes", run.notes},
          {"blamed", blamed},
          {"cycle", run.cycle},
          {"waiting", waiting},
          {"bandwidth", bandwidth},
          {"took_s", SecondsValue(run.took)},
          {"event_s", run.verdict == RunVerdict::kPassed ? Json(nullptr) : SecondsValue(run.event_at)},
          {"decided_s", SecondsValue(run.decided_at)},
          {"leaving_s", SecondsValue(run.leaving)},
          {"ranks", ranks},
          {"links", links},
          {"dumps", run.dumps},
          {"used", trial.used},
          {"log_says", OrNull(trial.log_says)}};
}

Json ToJson(const ReportNode& node) {
  return {{"name", node.name},
          {"host", node.host},
          {"address", node.address},
          {"engine", OrNull(node.engine)},
          {"ranks", node.ranks}};
}

Json ToJson(const IsolationOutcome& isolation) {
  Json variants = Json::array(), pairs = Json::array(), parts = Json::array();
  for (const VariantOutcome& tried : isolation.variants)
    variants.push_back({{"id", tried.id},
                        {"runs", tried.runs},
                        {"broken", tried.broken},
                        {"could_not_run", tried.could_not_run},
                        {"used", tried.used},
                        {"changed_nothing", tried.changed_nothing},
                        {"verdict", Name(tried.verdict)},
                        {"sentence", OrNull(tried.sentence)}});
  const auto or_null = [](const std::optional<bool>& value) { return value ? Json(*value) : Json(nullptr); };
  for (const PairOutcome& pair : isolation.pairs.pairs)
    pairs.push_back({{"ranks", {pair.ranks.low, pair.ranks.high}},
                     {"state", Name(pair.state)},
                     {"forth", or_null(pair.forth)},
                     {"back", or_null(pair.back)},
                     {"sentence", OrNull(pair.sentence)}});
  for (const SubsetOutcome& part : isolation.subsets)
    parts.push_back({{"ranks", part.ranks},
                     {"broken", part.broken},
                     {"could_not_run", part.could_not_run},
                     {"sentence", OrNull(part.sentence)}});
  return {{"finding", isolation.finding},
          {"hint", OrNull(isolation.hint)},
          {"part", isolation.part},
          {"variants", variants},
          {"pair_bytes", isolation.pairs.pairs.empty() ? Json(nullptr) : Json(isolation.pairs.bytes)},
          {"pairs", pairs},
          {"subsets", parts},
          {"deadlines", isolation.deadlines},
          {"named_s", isolation.named_at ? SecondsValue(*isolation.named_at) : Json(nullptr)},
          {"took_s", SecondsValue(isolation.took)}};
}

Json ToJson(const SpeedSample& sample) {
  return {{"bytes", sample.bytes},
          {"median_s", sample.median_s},
          {"mad_s", sample.mad_s},
          {"runs", sample.runs},
          {"gb_s", GigabytesPerSecond(sample)}};
}

Json ToJson(const SpeedReport& report) {
  const SpeedsCompared& compared = report.compared;
  Json links = Json::array();
  for (std::size_t index = 0; index < compared.now.links.size(); ++index) {
    const LinkSpeed& link = compared.now.links[index];
    Json samples = Json::array();
    for (const SpeedSample& sample : link.samples) samples.push_back(ToJson(sample));
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"port", OrNull(link.port)},
                     {"samples", samples},
                     {"slow", std::ranges::find(compared.slow, index) != compared.slow.end()},
                     {"again", link.again ? ToJson(*link.again) : Json(nullptr)},
                     {"before", link.before ? ToJson(*link.before) : Json(nullptr)},
                     {"error", OrNull(link.error)}});
  }
  return {{"finding", compared.finding}, {"baseline", OrNull(report.baseline)}, {"saved", OrNull(report.saved)},
          {"slower_by", kSlowerBy},      {"hosts", compared.now.hosts},         {"links", links},
          {"notes", compared.notes}};
}

std::string_view OutcomeOf(const ReplayReport& report) {
  constexpr std::string_view kOutcomes[] = {"passed", "reproduced", "undecided", "could-not-run"};
  // A link that is slow is no repetition of what hung.
  if (report.speeds && ExitStatus(report.speeds->compared) == 1) return "slow";
  if (report.speeds) return kOutcomes[ExitStatus(report.speeds->compared)];
  if (report.status) return kOutcomes[*report.status];
  if (report.isolation) return kOutcomes[ExitStatus(*report.isolation)];
  return report.trials.empty() ? "dry-run" : kOutcomes[ExitStatus(report.trials)];
}

}  // namespace

std::string ReplayJson(const ReplayReport& report, std::string_view tool_version) {
  Json trials = Json::array(), nodes = Json::array();
  for (const ReportNode& node : report.nodes) nodes.push_back(ToJson(node));
  for (const TrialOutcome& trial : report.trials) trials.push_back(ToJson(trial));
  const std::string command = NcclTestsCommand(report.plan);
  const Json document = {
      {"schema", "inquest-replay-1"},
      {"tool", {{"name", "inquest"}, {"version", tool_version}}},
      {"outcome", OutcomeOf(report)},
      {"plan", ToJson(report.plan)},
      {"engine",
       {{"name", report.plan.engine}, {"version", OrNull(report.engine)}, {"tests", OrNull(report.engine_tests)}}},
      {"nodes", nodes},
      {"nccl_tests", OrNull(command)},
      {"conclusion", OrNull(Conclusion(report))},
      {"trials", trials},
      {"soak", report.soak ? ToJson(*report.soak, report.state) : Json(nullptr)},
      {"isolation", report.isolation ? ToJson(*report.isolation) : Json(nullptr)},
      {"speeds", report.speeds ? ToJson(*report.speeds) : Json(nullptr)}};
  return document.dump(2, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace inquest
