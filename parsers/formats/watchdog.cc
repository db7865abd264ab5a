// watchdog.cc: what the watchdog of PyTorch's ProcessGroupNCCL says when a collective does not end.
// Format:  c10 log lines (ProcessGroupNCCL.cpp), their copies inside `what():`, and the lines of a desync report
//            [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4711, OpType=ALLREDUCE, ...) ran
//            for ... [PG ID 2 PG GUID 3(mesh_dp) Rank 3]  failure detected by watchdog at work sequence id: 4711 PG
//            status: ...
// Clock:   c10's prefix: local time without year, and without date before PyTorch 2.4.
// Not read: the `#0 f from file:1` lines below "Stack trace of the failed collective": they hold no mark.
#include <algorithm>
#include <charconv>
#include <string>

#include "core/ascii.h"
#include "parsers/formats.h"
#include "parsers/formats/messages.h"
#include "search/word_set.h"

namespace inquest {
namespace {

/// What of a name's value is `in`, where one of `delimiters` follows: a line cut inside a number must not yield a
/// smaller one.
template <class In>
std::optional<std::string_view> Field(std::string_view text, std::string_view name, std::string_view delimiters, In in,
                                      std::size_t least = 1) {
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::string_view rest = text.substr(at + name.size());
    const auto size = static_cast<std::size_t>(std::find_if_not(rest.begin(), rest.end(), in) - rest.begin());
    if (size >= least && size < rest.size() && delimiters.find(rest[size]) != std::string_view::npos)
      return rest.substr(0, size);
  }
  return std::nullopt;
}

std::optional<std::int64_t> Number(std::string_view digits) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  return digits.empty() || error != std::errc() || end != digits.data() + digits.size() ? std::nullopt
                                                                                        : std::optional(value);
}
std::optional<std::int64_t> NumberField(std::string_view text, std::string_view name) {
  const auto digits = Field(text, name, ",)", IsDigit);
  return digits ? Number(*digits) : std::nullopt;
}

WorkFields ReadWork(std::string_view text) {
  WorkFields work;
  if (const auto seq = NumberField(text, "SeqNum=")) work.seq = SeqId{*seq};
  if (const auto op = Field(text, "OpType=", ",)", IsWordChar)) work.op = std::string(*op);
  work.numel_in = NumberField(text, "NumelIn=");
  work.numel_out = NumberField(text, "NumelOut=");
  if (const auto shape = Field(
          text, "TensorShape=[", "]", [](char c) { return IsDigit(c) || c == ',' || c == ' '; }, 0))
    work.shape = ReadNumbers<std::int64_t>(*shape);
  work.timeout_ms = NumberField(text, "Timeout(ms)=");
  return work;
}

bool IsQuoted(std::string_view before) {
  for (const std::string_view sign :
       {"what():", "terminated with exception", "reason for ", "Error: ", "Exception: "}) {
    if (Contains(before, sign)) return true;
  }
  return false;
}

/// `[Rank 3] ` or `[Rank 3]` that ends where `end` is: what stands in front of a message.
struct RankTag {
  std::size_t begin = 0;
  std::optional<GroupRank> rank;
};
RankTag TagBefore(std::string_view text, std::size_t end) {
  constexpr std::string_view kOpen = "[Rank ";
  std::size_t at = end > 0 && text[end - 1] == ' ' ? end - 1 : end;
  if (at == 0 || text[at - 1] != ']') return {end, {}};
  const std::size_t close = --at;
  while (at > 0 && IsDigit(text[at - 1])) --at;
  if (at == close || !text.substr(0, at).ends_with(kOpen)) return {end, {}};
  const auto rank = Number(text.substr(at, close - at));
  return {at - kOpen.size(),
          rank && IsRank(*rank) ? std::optional(GroupRank{static_cast<std::int32_t>(*rank)}) : std::nullopt};
}

/// "Watchdog caught ..."; "Caught ..." without the watchdog is what wait() threw up to 2.0.
struct Caught {
  std::size_t begin = 0;
  bool watchdog = true;
};
constexpr std::string_view kCaught = "Watchdog caught";
std::optional<Caught> FindCaught(std::string_view text) {
  constexpr std::string_view kMessage = "Watchdog caught collective operation timeout: ", kWatchdog = "Watchdog c",
                             kWords = kMessage.substr(kWatchdog.size());
  for (std::size_t at = text.find(kWords); at != std::string_view::npos; at = text.find(kWords, at + 1)) {
    if (text.substr(0, at).ends_with(kWatchdog)) return Caught{at - kWatchdog.size(), true};
    if (at > 0 && text[at - 1] == 'C') return Caught{at - 1, false};
  }
  // Cut there, as an excerpt is: of what it was is unknown, that its rank waited is not.
  const std::size_t cut = text.rfind(kCaught);
  if (cut != std::string_view::npos && kMessage.starts_with(text.substr(cut))) return Caught{cut, true};
  return std::nullopt;
}

// Each message that is read holds one of these.
constexpr std::string_view kTelling[] = {
    "aught collective operation timeout: ",
    kCaught,
    "timed out in blocking wait",
    "raised the following async exception",
    "found async exception when checking for NCCL errors",
    "SeqNum",
    "OpType",
    "milliseconds before timing out",
    "timed out",
    "timeout: ",
    "time-out: ",
    "watchdog at work",
    "Timeout at NCCL work",
    "ast enqueued ",
    "Received a ",
    "First PG on this rank to signal dumping",
    "First watchdog to set the dump signal",
    "watchdog got stuck for ",
    "Heartbeat monitor timed out!",
    "Timeout at collective: ",
    "are the lagging ranks that caused this timeout",
    "joined but didn't finish collective #",
    "didn't join collective #",
};

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

/// The words that lines of the watchdog are known by, and those that are its own and tell nothing more.
const WordSet& Words() {
  static const WordSet kWords = [] {
    std::vector<std::string_view> words(std::begin(kTelling), std::end(kTelling));
    words.insert(words.end(), std::begin(kClaimed), std::end(kClaimed));
    return WordSet(words);
  }();
  return kWords;
}

std::optional<WorkTimedOut> ReadTimeout(std::string_view text, std::uint64_t words) {
  using How = WorkTimedOut::How;
  static const std::uint64_t kCaughtWords = Words().Of({"aught collective operation timeout: ", kCaught}),
                             kBlockingWords = Words().Of({"timed out in blocking wait"}),
                             kAsyncWords = Words().Of({"raised the following async exception"}),
                             kFoundWords = Words().Of({"found async exception when checking for NCCL errors"}),
                             kFieldWords = Words().Of({"SeqNum", "OpType"}),
                             kEndWords =
                                 Words().Of({"milliseconds before timing out", "timed out", "timeout: ", "time-out: "});
  static const Pattern kBlocking(R"((?:\[Rank (\d+)\] ?)?Work Work\w*\(.*timed out in blocking wait)");
  static const Pattern kAsync(R"((?:\[Rank (\d+)\] ?)?Collective Work\w*\(.*raised the following async exception)");
  static const Pattern kFound(R"((?:\[Rank (\d+)\] ?)?found async exception when checking for NCCL errors)");
  const auto timed_out = [&](std::size_t at, std::optional<GroupRank> rank, How how) {
    const std::string_view rest = text.substr(at);
    WorkTimedOut out{.how = IsQuoted(text.substr(0, at)) ? How::kQuoted : how,
                     .group_rank = rank,
                     .work = ReadWork(rest),
                     .ran_ms = {}};
    static const Pattern kRan(R"(ran for (\d+) milliseconds)");
    if (const auto ran = kRan.Search(rest)) out.ran_ms = ran->number(1);
    return out;
  };
  const auto result = [&](const Pattern::Match& match, How how) {
    return timed_out(static_cast<std::size_t>(match.text(0).data() - text.data()), RankOf<GroupRank>(match, 1), how);
  };
  if (const auto caught = words & kCaughtWords ? FindCaught(text) : std::nullopt) {
    const RankTag tag = TagBefore(text, caught->begin);
    return timed_out(tag.begin, tag.rank, caught->watchdog ? How::kWatchdog : How::kBlockingWait);
  }
  if (words & kBlockingWords)
    if (const auto match = kBlocking.Search(text)) return result(*match, How::kBlockingWait);
  if (words & kAsyncWords)
    if (const auto match = kAsync.Search(text)) return result(*match, How::kAsyncError);
  if (words & kFoundWords)
    if (const auto match = kFound.Search(text)) return result(*match, How::kAsyncError);
  if (!(words & kFieldWords) || !(words & kEndWords)) return std::nullopt;
  // Another writer's words may stand inside these; the operation itself is whole.
  static const Pattern kWhole(
      R"((?:\[Rank (\d+)\] ?)?[^\[\]]*\bWork(?:NCCL|Gloo|UCC|XCCL|HCCL)\([^()]*(?:SeqNum|OpType).*?(?:milliseconds before timing out|timed out|time-?out: ))");
  if (const auto match = kWhole.Search(text))
    return result(*match, Contains(match->text(0), "blocking wait") ? How::kBlockingWait : How::kWatchdog);
  return std::nullopt;
}

/// Who speaks of its group: [Rank r], [PG name Rank r], [PG name (desc) Rank r], [PG ID i PG GUID g(desc) Rank r]; the
/// name became the GUID.
struct GroupTag {
  std::string_view id, guid, desc;
  std::optional<GroupRank> rank;
};

/// From behind the opening bracket.
std::optional<GroupTag> ReadGroupTag(std::string_view text) {
  const auto take_until = [&](std::string_view& from, std::string_view ends) {
    const std::string_view taken = from.substr(0, from.find_first_of(ends));
    from.remove_prefix(taken.size());
    return taken;
  };
  const auto rank_of = [](std::string_view rest, GroupTag tag) -> std::optional<GroupTag> {
    if (!rest.starts_with("Rank ")) return std::nullopt;
    rest.remove_prefix(5);
    const auto digits = static_cast<std::size_t>(std::find_if_not(rest.begin(), rest.end(), IsDigit) - rest.begin());
    if (digits == 0 || !rest.substr(digits).starts_with(']')) return std::nullopt;
    if (const auto rank = Number(rest.substr(0, digits)); rank && IsRank(*rank))
      tag.rank = GroupRank{static_cast<std::int32_t>(*rank)};
    return tag;
  };
  if (!text.starts_with("PG ")) return rank_of(text, {});
  const auto named = [&](std::string_view rest, GroupTag tag) -> std::optional<GroupTag> {
    tag.guid = take_until(rest, " \t\n\f\r(]");
    if (tag.guid.empty()) return std::nullopt;
    const auto behind = [&](std::string_view from) -> std::optional<GroupTag> {
      if (from.starts_with('(')) {
        std::string_view inner = from.substr(1);
        const std::string_view desc = take_until(inner, ")]");
        GroupTag described = tag;
        described.desc = desc;
        if (inner.starts_with(") "))
          if (const auto found = rank_of(inner.substr(2), described)) return found;
      }
      return from.starts_with(' ') ? rank_of(from.substr(1), tag) : std::nullopt;
    };
    if (rest.starts_with(' '))
      if (const auto found = behind(rest.substr(1))) return found;
    return behind(rest);
  };
  text.remove_prefix(3);
  if (text.starts_with("ID ")) {
    std::string_view rest = text.substr(3);
    GroupTag tag;
    tag.id = take_until(rest, " \t\n\f\r");
    constexpr std::string_view kGuid = " PG GUID ";
    if (!tag.id.empty() && rest.starts_with(kGuid))
      if (const auto found = named(rest.substr(kGuid.size()), tag)) return found;
  }
  return named(text, {});
}

std::optional<GroupTag> FindGroupTag(std::string_view text) {
  for (std::size_t at = text.find('['); at != std::string_view::npos; at = text.find('[', at + 1))
    if (const auto tag = ReadGroupTag(text.substr(at + 1))) return tag;
  return std::nullopt;
}

/// `Last enqueued work: 7, last completed work: 6`, in the middle of a sentence or at its begin.
std::optional<Pattern::Match> FindLast(std::string_view text) {
  static const Pattern kLast(R"(ast enqueued (?:NCCL )?work: (-?\d+), last completed (?:NCCL )?work: (-?\d+))");
  for (std::string_view rest = text;;) {
    auto match = kLast.Search(rest);
    if (!match) return std::nullopt;
    const auto at = static_cast<std::size_t>(match->text(0).data() - text.data());
    if (at > 0 && (text[at - 1] == 'L' || text[at - 1] == 'l')) return match;
    rest = text.substr(at + 1);
  }
}

std::optional<GroupStatus> ReadStatus(std::string_view text, std::uint64_t words) {
  static const std::uint64_t kFailedWords = Words().Of({"watchdog at work", "Timeout at NCCL work"}),
                             kLastWords = Words().Of({"ast enqueued "});
  if (!(words & (kFailedWords | kLastWords))) return std::nullopt;
  static const Pattern kDetected(R"(watchdog at work(?: sequence id)?: (-?\d+)[, ])"),
      kTimedOut(R"(Timeout at NCCL work(?: sequence id)?: (-?\d+)[, ])");
  auto failed = kDetected.Search(text);
  if (const auto timed_out = kTimedOut.Search(text);
      timed_out && (!failed || timed_out->text(0).data() < failed->text(0).data()))
    failed = timed_out;
  const auto last = words & kLastWords ? FindLast(text) : std::nullopt;
  if (!failed && !last) return std::nullopt;
  GroupStatus status;
  if (const auto tag = FindGroupTag(text)) {
    status.pg_id = std::string(tag->id);
    status.pg_guid = std::string(tag->guid);
    status.pg_desc = std::string(tag->desc);
    status.group_rank = tag->rank;
  }
  if (failed) status.failed_work = failed->number(1);
  if (last) {
    status.last_enqueued = last->number(1);
    status.last_completed = last->number(2);
  }
  return status;
}

std::optional<DumpSignal> ReadDumpSignal(std::string_view text, std::uint64_t words) {
  static const std::uint64_t kReceivedWords = Words().Of({"Received a "}),
                             kFirstWords = Words().Of(
                                 {"First PG on this rank to signal dumping", "First watchdog to set the dump signal"});
  if (words & kFirstWords && !(words & kReceivedWords)) return DumpSignal{};
  if (!(words & kReceivedWords)) return std::nullopt;
  static const Pattern kReceived(R"(Received a (?:global )?dump signal .*from (?:this local rank| ?rank (\d+)))");
  if (const auto match = kReceived.Search(text)) return DumpSignal{RankOf<GlobalRank>(*match, 1)};
  return words & kFirstWords ? std::optional(DumpSignal{}) : std::nullopt;
}

std::optional<HeartbeatLost> ReadHeartbeat(std::string_view text, std::uint64_t words) {
  static const std::uint64_t kStuckWords = Words().Of({"watchdog got stuck for "}),
                             kSilentWords = Words().Of({"Heartbeat monitor timed out!"});
  if (!(words & (kStuckWords | kSilentWords))) return std::nullopt;
  static const Pattern kStuck(R"(watchdog got stuck for (\d+) seconds)");
  if (const auto match = kStuck.Search(text)) return HeartbeatLost{match->number(1)};
  return words & kSilentWords ? std::optional(HeartbeatLost{}) : std::nullopt;
}

std::optional<DesyncLine> ReadDesyncVerdict(std::string_view text, std::uint64_t words) {
  static const std::uint64_t kVerdictWords =
      Words().Of({"Timeout at collective: ", "are the lagging ranks that caused this timeout",
                  "joined but didn't finish collective #", "didn't join collective #"});
  if (!(words & kVerdictWords)) return std::nullopt;
  using State = DesyncLine::State;
  const auto line = [](State state, const Pattern::Match& match, std::size_t ranks, std::size_t op, std::size_t seq) {
    DesyncLine desync{
        .state = state, .ranks = ReadNumbers<int>(match.text(ranks)), .op = std::string(match.text(op)), .seq = {}};
    if (const auto number = match.number(seq)) desync.seq = SeqId{*number};
    return desync;
  };
  constexpr std::size_t kNoGroup = 99;
  static const Pattern kTimedOut(R"(- \[(\d+)\] Timeout at collective: (\w+), #(\d+))");
  static const Pattern kNever(R"(knowledge, ranks \[([\d, ]+)\] are the lagging ranks that caused this timeout)");
  static const Pattern kNotFinished(R"(\[([\d, ]+)\] joined but didn't finish collective #(\d+) )");
  static const Pattern kNotJoined(R"(\[([\d, ]+)\] finished collective #\d+, but didn't join collective #(\d+) )");
  if (const auto match = kTimedOut.Search(text)) return line(State::kTimedOut, *match, 1, 2, 3);
  if (const auto match = kNever.Search(text)) return line(State::kNeverJoined, *match, 1, kNoGroup, kNoGroup);
  if (const auto match = kNotFinished.Search(text)) return line(State::kNotFinished, *match, 1, kNoGroup, 2);
  if (const auto match = kNotJoined.Search(text)) return line(State::kNotJoined, *match, 1, kNoGroup, 2);
  return std::nullopt;
}

std::vector<What> Read(std::string_view text, std::uint64_t words) {
  std::vector<What> found;
  if (words == 0) return found;
  if (auto what = ReadTimeout(text, words)) found.emplace_back(*std::move(what));
  if (auto what = ReadDumpSignal(text, words)) found.emplace_back(*std::move(what));
  if (auto what = ReadStatus(text, words)) found.emplace_back(*std::move(what));
  if (auto what = ReadHeartbeat(text, words)) found.emplace_back(*std::move(what));
  if (auto what = ReadDesyncVerdict(text, words)) found.emplace_back(*std::move(what));
  return found;
}

class WatchdogParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    static const std::uint64_t kClaimedWords = Words().Of(kClaimed);
    if (ReadExceptionLine(record.text)) return false;
    const std::uint64_t words = Words().In(record.text);
    bool ours = false;
    for (What& what : Read(record.text, words)) {
      out.Add(C10EventFrom(record, std::move(what)));
      ours = true;
    }
    return ours || ConsumeSnapshot(record, out) || (words & kClaimedWords) != 0;
  }

 private:
  // The snapshot of a desync report prints the number once, above the ranks of each operation.
  bool ConsumeSnapshot(const Record& record, EventSink& out) {
    if (!Contains(record.text, "started ") && !Contains(record.text, "finished ")) return false;
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

constexpr std::string_view kWatchdogMarks[] = {
    kCaught,
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

std::vector<What> ReadWatchdogMessage(std::string_view text) { return Read(text, Words().In(text)); }

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
                              .marks = kWatchdogMarks,
                              .make = &Make<WatchdogParser>};

}  // namespace inquest
