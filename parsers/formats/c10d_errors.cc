// c10d_errors.cc: errors of torch.distributed's process groups, stores and sockets.
// Format:  the text of c10::Error, in a log line of its own or behind an exception's type, and its C++ backtrace
//            Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(...),
//            but ... [Rank 0]: Ranks 1, 5 failed to pass monitoredBarrier in 60000 ms [3] is setting up NCCL
//            communicator and retrieving ncclUniqueId from [0] via c10d key-value store by key '0', ...
// Clock:   c10's prefix, where there is one.
// Not read: the text below "Last error:", which is NCCL's own and holds no mark.
#include <string>

#include "parsers/formats.h"
#include "parsers/formats/messages.h"
#include "search/word_set.h"

namespace inquest {
namespace {

// The first few open messages that carry an event. A line with another is ours too; what it means is for rules to say.
constexpr std::string_view kC10dErrorsMarks[] = {
    "Detected mismatch between collectives",
    "monitoredBarrier",
    "store based barrier",
    "ompleted store-based barrier",
    "is setting up NCCL communicator",
    "used by this process",
    "ncclUnhandledCudaError: ",
    "ncclSystemError: ",
    "ncclInternalError: ",
    "ncclInvalidArgument: ",
    "ncclInvalidUsage: ",
    "ncclRemoteError: ",
    "Unknown NCCL error!",
    "NCCL error in: ",
    "NCCL error: ",
    "NCCL timeout in: ",
    "Last error:",
    "Exception raised from ",
    "frame #",
    "[c10d] ",
    "The client socket has ",
    "The server socket has ",
    "TCP client failed to connect/validate",
    "waiting for clients. ",
    "wait timeout after ",
    "failed on SocketImpl(",
    "Gloo connectFullMesh failed",
    "gloo/transport/tcp/",
    "Unable to resolve hostname to a (local) address",
    "process group has NOT been destroyed",
    "destroy_process_group() was not called before",
    "processed in monitoredBarrier",
    "Successfully processed ranks: ",
    "waitForInput: ",
};
constexpr std::span kC10dClaimed = std::span(kC10dErrorsMarks).subspan(6);

/// An abort prints them by the thousand.
constexpr std::string_view kSilent[] = {"frame #", "Exception raised from "};

/// What a message that is read holds, and what makes a line ours.
const WordSet& C10dWords() {
  static const WordSet kWords = [] {
    std::vector<std::string_view> words = {"Detected mismatch between collectives on ranks",
                                           "monitoredBarrier",
                                           "store based barrier",
                                           "ompleted store-based barrier",
                                           "is setting up NCCL communicator and retr",
                                           "Timed out waiting ",
                                           "Error: Socket Timeout",
                                           "as device"};
    words.insert(words.end(), kC10dClaimed.begin(), kC10dClaimed.end());
    return WordSet(words);
  }();
  return kWords;
}

// The form without tensors has no separator: `SequenceNumber=12OpType=BARRIER`.
Fingerprint ReadFingerprint(std::string_view text) {
  static const Pattern kSeq(R"(SequenceNumber=(\d+)\D)"), kOp(R"(OpType=(\w+)[,)])"),
      kShape(R"(TensorShape=\[([\d, ]*)\])"), kDtypes(R"(TensorDtypes=(.*?), TensorDeviceTypes=)");
  Fingerprint print;
  if (const auto seq = kSeq.Search(text); seq && seq->number(1)) print.seq = SeqId{*seq->number(1)};
  if (const auto op = kOp.Search(text)) print.op = std::string(op->text(1));
  if (const auto shape = kShape.Search(text)) print.shape = ReadNumbers<std::int64_t>(shape->text(1));
  if (const auto dtypes = kDtypes.Search(text)) print.dtype = std::string(dtypes->text(1));
  return print;
}

std::optional<FingerprintMismatch> ReadMismatch(std::string_view text) {
  static const Pattern kMismatch(
      R"(Detected mismatch between collectives on ranks\. Rank (\d+) is running collective: )"
      R"((CollectiveFingerPrint\(.*), but Rank (\d+) is running collective: (CollectiveFingerPrint\(.*))");
  const auto match = kMismatch.Search(text);
  if (!match) return std::nullopt;
  const auto a = RankOf<GroupRank>(*match, 1), b = RankOf<GroupRank>(*match, 3);
  if (!a || !b) return std::nullopt;
  return FingerprintMismatch{*a, *b, ReadFingerprint(match->text(2)), ReadFingerprint(match->text(4))};
}

// Only rank 0 knows the names of those that did not come; the other forms say no more than who waited.
std::optional<MonitoredBarrierFailed> ReadBarrier(std::string_view text) {
  static const Pattern kFailed(R"((?:\[Rank (\d+)\]: )?Ranks? ([\d, ]+) failed to pass monitoredBarrier in (\d+) ms)");
  static const Pattern kReached(R"(Rank (\d+) successfully reached monitoredBarrier, but received errors)");
  static const Pattern kTimedOut(R"(Rank (\d+) timed out in monitoredBarrier after (\d+) ms)");
  MonitoredBarrierFailed failed;
  if (const auto match = kFailed.Search(text)) {
    failed.printer = RankOf<GroupRank>(*match, 1);
    failed.ranks = ReadNumbers<int>(match->text(2));
    failed.timeout_ms = match->number(3);
  } else if (const auto reached = kReached.Search(text)) {
    failed.printer = RankOf<GroupRank>(*reached, 1);
  } else if (const auto timed_out = kTimedOut.Search(text)) {
    failed.printer = RankOf<GroupRank>(*timed_out, 1);
    failed.timeout_ms = timed_out->number(2);
  } else {
    return std::nullopt;
  }
  return failed;
}

// "for rank: 3, key:" while it waits, "on rank: 3, for key:" or "on rank 3, for key:" when it gives up. Keys count the
// groups.
std::optional<StoreBarrierCount> ReadStoreBarrier(std::string_view text) {
  static const Pattern kCount(
      R"(store based barrier .*rank:? (\d+), (?:for )?key: \S+ \(world_size=(\d+), (?:worker_count|num_workers_joined)=(\d+),)");
  static const Pattern kDone(R"(\bRank (\d+): Completed store-based barrier for key:\S+ with (\d+) nodes)");
  if (const auto done = kDone.Search(text); done && done->number(2))
    return StoreBarrierCount{RankOf<GlobalRank>(*done, 1), *done->number(2), *done->number(2), false};
  const auto match = kCount.Search(text);
  const auto size = match ? match->number(2) : std::nullopt, came = match ? match->number(3) : std::nullopt;
  if (!size || !came) return std::nullopt;
  return StoreBarrierCount{RankOf<GlobalRank>(*match, 1), *size, *came,
                           text.find("Timed out initializing process group") != std::string_view::npos};
}

std::optional<UniqueIdWait> ReadUniqueIdWait(std::string_view text) {
  // "retreiving" up to 1.12.
  static const Pattern kWait(
      R"(\[(\d+)\] is setting up NCCL communicator and retr(?:ie|ei)ving ncclUniqueId from \[(\d+)\] )"
      R"(via c10d key-value store by key '([^']*)'(?:, but store->get\('[^']*'\) got error: (.*))?)");
  const auto match = kWait.Search(text);
  if (!match) return std::nullopt;
  const auto waiter = RankOf<GroupRank>(*match, 1), publisher = RankOf<GroupRank>(*match, 2);
  if (!waiter || !publisher) return std::nullopt;
  std::string_view error = match->text(4);
  error = error.substr(0, error.find(". This may indicate"));
  return UniqueIdWait{*waiter, *publisher, std::string(match->text(3)), std::string(error)};
}

// Other waits that end in the same words speak for themselves: who failed to join is counted there.
std::optional<WaitGivenUp> ReadWait(std::string_view text) {
  static const Pattern kGloo(R"(Timed out waiting (\d+)ms for (recv|send) operation)");
  static const Pattern kStore(R"((?:^|Error: )(?:\[\d+\]: )?wait timeout after (\d+)ms, keys: (\S+))");
  static const Pattern kOldStore(R"(^\w[\w.]*Error: Socket Timeout$)");
  static const Pattern kSocket(R"(waitForInput: socket SocketImpl\(.*\) timed out after (\d+)ms)");
  if (kOldStore.Matches(text)) return WaitGivenUp{"a key of the store", std::nullopt};
  if (const auto gloo = kGloo.Search(text)) return WaitGivenUp{"Gloo " + std::string(gloo->text(2)), gloo->number(1)};
  if (const auto store = kStore.Search(text))
    return WaitGivenUp{"store key " + std::string(store->text(2)), store->number(1)};
  if (const auto socket = kSocket.Search(text)) return WaitGivenUp{"an answer of the store", socket->number(1)};
  return std::nullopt;
}

std::optional<GuessedDevice> ReadGuess(std::string_view text) {
  static const Pattern kGuess(
      R"((?:Rank (\d+)\]?\s+)?using GPU (\d+) (?:to perform barrier )?as devices? used by this process)");
  const auto match = kGuess.Search(text);
  if (!match || !match->number(2) || *match->number(2) > 0xffff) return std::nullopt;
  return GuessedDevice{RankOf<GroupRank>(*match, 1), static_cast<int>(*match->number(2))};
}

std::vector<What> ReadC10d(std::string_view text, std::uint64_t words) {
  static const std::uint64_t kMismatchWords = C10dWords().Of({"Detected mismatch between collectives on ranks"}),
                             kBarrierWords = C10dWords().Of({"monitoredBarrier"}),
                             kStoreWords = C10dWords().Of({"store based barrier", "ompleted store-based barrier"}),
                             kIdWords = C10dWords().Of({"is setting up NCCL communicator and retr"}),
                             kWaitWords = C10dWords().Of({"Timed out waiting ", "Error: Socket Timeout",
                                                          "wait timeout after ", "waitForInput: "}),
                             kGuessWords = C10dWords().Of({"as device"});
  std::vector<What> found;
  const auto add = [&](auto what) {
    if (what) found.emplace_back(*std::move(what));
  };
  if (words & kMismatchWords) add(ReadMismatch(text));
  if (words & kBarrierWords) add(ReadBarrier(text));
  if (words & kStoreWords) add(ReadStoreBarrier(text));
  if (words & kIdWords) add(ReadUniqueIdWait(text));
  if (words & kWaitWords) add(ReadWait(text));
  if (words & kGuessWords) add(ReadGuess(text));
  return found;
}

class C10dErrorsParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    static const std::uint64_t kClaimedWords = C10dWords().Of(kC10dClaimed);
    if (ReadExceptionLine(record.text)) return false;
    const std::uint64_t words = C10dWords().In(record.text);
    std::vector<What> found = ReadC10d(record.text, words);
    for (What& what : found) out.Add(C10EventFrom(record, std::move(what)));
    return !found.empty() || (words & kClaimedWords) != 0;
  }
};

}  // namespace

std::vector<What> ReadC10dMessage(std::string_view text) { return ReadC10d(text, C10dWords().In(text)); }

extern const Format kC10dErrors{.name = "pytorch-c10d",
                                .framing = Framing::kLines,
                                .component = Component::kC10,
                                .marks = kC10dErrorsMarks,
                                .silent = kSilent,
                                .make = &Make<C10dErrorsParser>};

}  // namespace inquest
