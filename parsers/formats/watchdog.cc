// watchdog.cc: what the watchdog of PyTorch's ProcessGroupNCCL says when a collective does not end.
// Format:  c10 log lines (ProcessGroupNCCL.cpp), their copies inside `what():`, and the lines of a desync report
//            [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4711, OpType=ALLREDUCE, ...) ran
//            for ... [PG ID 2 PG GUID 3(mesh_dp) Rank 3]  failure detected by watchdog at work sequence id: 4711 PG
//            status: ...
// Clock:   c10's prefix: local time without year, and without date before PyTorch 2.4.
// Not read: the `#0 f from file:1` lines below "Stack trace of the failed collective": they hold no mark.
#include <string>

#include "parsers/formats.h"
#include "parsers/formats/messages.h"

namespace inquest {
namespace {

bool Contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

// A field counts only with its delimiter behind it: a line cut inside a number must not yield a smaller one.
WorkFields ReadWork(std::string_view text) {
  static const Pattern kSeq(R"(SeqNum=(\d+)[,)])"), kOp(R"(OpType=(\w+)[,)])"), kIn(R"(NumelIn=(\d+)[,)])"),
      kOut(R"(NumelOut=(\d+)[,)])"), kShape(R"(TensorShape=\[([\d, ]*)\])"), kTimeout(R"(Timeout\(ms\)=(\d+)[,)])");
  const auto number = [&](const Pattern& pattern) -> std::optional<std::int64_t> {
    const auto match = pattern.Search(text);
    return match ? match->number(1) : std::nullopt;
  };
  WorkFields work;
  if (const auto seq = number(kSeq)) work.seq = SeqId{*seq};
  if (const auto op = kOp.Search(text)) work.op = std::string(op->text(1));
  work.numel_in = number(kIn);
  work.numel_out = number(kOut);
  if (const auto shape = kShape.Search(text)) work.shape = ReadNumbers<std::int64_t>(shape->text(1));
  work.timeout_ms = number(kTimeout);
  return work;
}

bool IsQuoted(std::string_view before) {
  for (const std::string_view sign :
       {"what():", "terminated with exception", "reason for ", "Error: ", "Exception: "}) {
    if (Contains(before, sign)) return true;
  }
  return false;
}

std::optional<WorkTimedOut> ReadTimeout(std::string_view text) {
  using How = WorkTimedOut::How;
  static const Pattern kCaught(R"((?:\[Rank (\d+)\] ?)?(Watchdog c|C)aught collective operation timeout: )");
  static const Pattern kBlocking(R"((?:\[Rank (\d+)\] ?)?Work Work\w*\(.*timed out in blocking wait)");
  static const Pattern kAsync(R"((?:\[Rank (\d+)\] ?)?Collective Work\w*\(.*raised the following async exception)");
  static const Pattern kFound(R"((?:\[Rank (\d+)\] ?)?found async exception when checking for NCCL errors)");
  static const Pattern kRan(R"(ran for (\d+) milliseconds)");
  const auto result = [&](const Pattern::Match& match, How how) {
    const auto at = static_cast<std::size_t>(match.text(0).data() - text.data());
    WorkTimedOut timed_out{.how = IsQuoted(text.substr(0, at)) ? How::kQuoted : how,
                           .group_rank = RankOf<GroupRank>(match, 1),
                           .work = ReadWork(text.substr(at)),
                           .ran_ms = {}};
    if (const auto ran = kRan.Search(text.substr(at))) timed_out.ran_ms = ran->number(1);
    return timed_out;
  };
  // "Caught ..." without the watchdog is what wait() threw up to 2.0.
  if (const auto match = kCaught.Search(text))
    return result(*match, match->text(2) == "C" ? How::kBlockingWait : How::kWatchdog);
  if (const auto match = kBlocking.Search(text)) return result(*match, How::kBlockingWait);
  if (const auto match = kAsync.Search(text)) return result(*match, How::kAsyncError);
  if (const auto match = kFound.Search(text)) return result(*match, How::kAsyncError);
  // Another writer's words may stand inside these; the operation itself is whole.
  static const Pattern kWhole(R"((?:\[Rank (\d+)\] ?)?[^\[\]]*\bWork(?:NCCL|Gloo|UCC|XCCL|HCCL)\([^()]*(?:SeqNum|OpType).*?(?:milliseconds before timing out|timed out|time-?out: ))");
  if (const auto match = kWhole.Search(text)) return result(*match, Contains(match->text(0), "blocking wait") ? How::kBlockingWait : How::kWatchdog);
  return std::nullopt;
}

std::optional<GroupStatus> ReadStatus(std::string_view text) {
  // [Rank r], [PG name Rank r], [PG name (desc) Rank r], [PG ID i PG GUID g(desc) Rank r]; the name became the GUID.
  static const Pattern kPrefix(R"(\[(?:PG (?:ID (\S+) PG GUID )?([^\s(\]]+) ?(?:\(([^)\]]*)\))? )?Rank (\d+)\])");
  static const Pattern kFailed(R"((?:watchdog at|Timeout at NCCL) work(?: sequence id)?: (-?\d+)[, ])");
  static const Pattern kLast(R"([Ll]ast enqueued (?:NCCL )?work: (-?\d+), last completed (?:NCCL )?work: (-?\d+))");
  const auto failed = kFailed.Search(text);
  const auto last = kLast.Search(text);
  if (!failed && !last) return std::nullopt;
  GroupStatus status;
  if (const auto prefix = kPrefix.Search(text)) {
    status.pg_id = std::string(prefix->text(1));
    status.pg_guid = std::string(prefix->text(2));
    status.pg_desc = std::string(prefix->text(3));
    status.group_rank = RankOf<GroupRank>(*prefix, 4);
  }
  if (failed) status.failed_work = failed->number(1);
  if (last) {
    status.last_enqueued = last->number(1);
    status.last_completed = last->number(2);
  }
  return status;
}

std::optional<DumpSignal> ReadDumpSignal(std::string_view text) {
  static const Pattern kReceived(R"(Received a (?:global )?dump signal .*from (?:this local rank| ?rank (\d+)))");
  if (const auto match = kReceived.Search(text)) return DumpSignal{RankOf<GlobalRank>(*match, 1)};
  if (Contains(text, "First PG on this rank to signal dumping") ||
      Contains(text, "First watchdog to set the dump signal"))
    return DumpSignal{};
  return std::nullopt;
}

std::optional<HeartbeatLost> ReadHeartbeat(std::string_view text) {
  static const Pattern kStuck(R"(watchdog got stuck for (\d+) seconds)");
  if (const auto match = kStuck.Search(text)) return HeartbeatLost{match->number(1)};
  if (Contains(text, "Heartbeat monitor timed out!")) return HeartbeatLost{};
  return std::nullopt;
}

std::optional<DesyncLine> ReadDesyncVerdict(std::string_view text) {
  using State = DesyncLine::State;
  const auto line = [](State state, const Pattern::Match& match, std::size_t ranks, std::size_t op, std::size_t seq) {
    DesyncLine desync{
        .state = state, .ranks = ReadNumbers<int>(match.text(ranks)), .op = std::string(match.text(op)), .seq = {}};
    if (const auto number = match.number(seq)) desync.seq = SeqId{*number};
    return desync;
  };
  constexpr std::size_t kNone = 99;
  static const Pattern kTimedOut(R"(- \[(\d+)\] Timeout at collective: (\w+), #(\d+))");
  static const Pattern kNever(R"(knowledge, ranks \[([\d, ]+)\] are the lagging ranks that caused this timeout)");
  static const Pattern kNotFinished(R"(\[([\d, ]+)\] joined but didn't finish collective #(\d+) )");
  static const Pattern kNotJoined(R"(\[([\d, ]+)\] finished collective #\d+, but didn't join collective #(\d+) )");
  if (const auto match = kTimedOut.Search(text)) return line(State::kTimedOut, *match, 1, 2, 3);
  if (const auto match = kNever.Search(text)) return line(State::kNeverJoined, *match, 1, kNone, kNone);
  if (const auto match = kNotFinished.Search(text)) return line(State::kNotFinished, *match, 1, kNone, 2);
  if (const auto match = kNotJoined.Search(text)) return line(State::kNotJoined, *match, 1, kNone, 2);
  return std::nullopt;
}

// Words that are the watchdog's own and tell nothing that the lines above do not.
constexpr std::string_view kClaimed[] = {
    "Stack trace of the failed collective",
    "To our best knowledge, the lagging/dead",
    "Snapshot of ranks' latest states",
    "recorder dump signal from another rank",
    "First PG on this rank detecting the dump signal",
    "preparing to dump debug info",
    "dumping nccl trace to",
    "Finished flight recorder successfully",
    "Flight Recorder trace successfully dumped",
    "Some NCCL operations have failed or timed out",
    "To avoid data inconsistency, we are taking",
    "watchdog thread terminated with exception",
    "Terminating the process after attempting to dump",
    "Could not acquire GIL within",
    "remote error detected from rank",
    "NCCL communicator encountered error set by ProcessGroupNCCL",
    "because we want to wait longer to verify",
    "flag on TCPStore, (maybe TCPStore server",
};

class WatchdogParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    if (ReadExceptionLine(record.text)) return false;
    bool ours = false;
    for (What& what : ReadWatchdogMessage(record.text)) {
      out.Add(C10EventFrom(record, std::move(what)));
      ours = true;
    }
    if (ours || ConsumeSnapshot(record, out)) return true;
    for (const std::string_view words : kClaimed) {
      if (Contains(record.text, words)) return true;
    }
    return false;
  }

 private:
  // The snapshot of a desync report prints the number once, above the ranks of each operation.
  bool ConsumeSnapshot(const Record& record, EventSink& out) {
    static const Pattern kHead(R"(^\s*#(\d+) (?:started|finished) ranks:)");
    static const Pattern kRanks(R"(^\s*\[([\d, ]+)\] (started|finished) ([A-Z_]+)$)");
    if (const auto head = kHead.Search(record.text)) {
      snapshot_seq_ = head->number(1);
      return true;
    }
    const auto match = kRanks.Search(record.text);
    if (!match) return false;
    DesyncLine line{.state = match->text(2) == "started" ? DesyncLine::State::kStarted : DesyncLine::State::kFinished,
                    .ranks = ReadNumbers<int>(match->text(1)),
                    .op = std::string(match->text(3)),
                    .seq = {}};
    if (snapshot_seq_) line.seq = SeqId{*snapshot_seq_};
    out.Add(EventFrom(record, std::move(line)));
    return true;
  }

  std::optional<std::int64_t> snapshot_seq_;
};

constexpr std::string_view kMarks[] = {
    "collective operation timeout: ",
    " milliseconds before timing out",
    "timed out in blocking wait",
    "raised the following async exception",
    "found async exception when checking",
    "last enqueued NCCL work: ",
    "Last enqueued NCCL work: ",
    "last enqueued work: ",
    "detected by watchdog at work",
    "Timeout at NCCL work: ",
    "dump signal",
    "to signal dumping",
    "watchdog got stuck for ",
    "Heartbeat monitor timed out!",
    "Timeout at collective: ",
    "To our best knowledge, ",
    "joined but didn't finish collective",
    "but didn't join collective",
    " finished ranks:",
    " started ranks:",
    "] finished ",
    "] started ",
    "Stack trace of the failed collective",
    "Snapshot of ranks' latest states",
    "preparing to dump debug info",
    "dumping nccl trace to",
    "Finished flight recorder successfully",
    "Flight Recorder trace successfully dumped",
    "Some NCCL operations have failed or timed out",
    "To avoid data inconsistency, we are taking",
    "watchdog thread terminated with exception",
    "Terminating the process after attempting to dump",
    "Could not acquire GIL within",
    "remote error detected from rank",
    "NCCL communicator encountered error set by",
    "because we want to wait longer to verify",
    "flag on TCPStore, (maybe TCPStore server",
};

}  // namespace

std::vector<What> ReadWatchdogMessage(std::string_view text) {
  std::vector<What> found;
  if (auto what = ReadTimeout(text)) found.emplace_back(*std::move(what));
  if (auto what = ReadDumpSignal(text)) found.emplace_back(*std::move(what));
  if (auto what = ReadStatus(text)) found.emplace_back(*std::move(what));
  if (auto what = ReadHeartbeat(text)) found.emplace_back(*std::move(what));
  if (auto what = ReadDesyncVerdict(text)) found.emplace_back(*std::move(what));
  return found;
}

Event C10EventFrom(const Record& record, What what) {
  static const Pattern kOwn(R"(\[rank(\d+)\]:\[[IWEF]\d*\b)");
  static const Pattern kTime(R"(\[[IWEF](\d{3,4} \d\d:\d\d:\d\d\.\d+) )");
  Event event = EventFrom(record, std::move(what));
  if (const auto own = kOwn.Search(record.text)) {
    if (const auto rank = RankOf<GlobalRank>(*own, 1))
      event.origin.rank = Known<GlobalRank>{*rank, Basis::kEnvelope, {}};
  }
  if (event.at) return event;
  if (const auto time = kTime.Search(record.text)) {
    if (const auto parsed = ParseC10Time(time->text(1))) event.at = parsed->time;
  }
  return event;
}

extern const Format kWatchdog{.name = "pytorch-watchdog",
                       .framing = Framing::kLines,
                       .component = Component::kC10,
                       .marks = kMarks,
                       .make = &Make<WatchdogParser>};

}  // namespace inquest
