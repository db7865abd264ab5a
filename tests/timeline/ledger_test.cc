// The ledger of collective calls: counted and compared rank by rank, whatever the order in which the lines come.
#include "timeline/ledger.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/catch.h"

namespace inquest {
namespace ledger_test {

constexpr std::uint64_t kId = 0x8f3d2ab4c1e90d77;

std::uint64_t PointerOf(int rank, int comm = 0) {
  return 0x55d0c0000000 + static_cast<std::uint64_t>(rank) * 0x100000 + static_cast<std::uint64_t>(comm) * 0x1000;
}

CallDescriptor Reduce(std::uint64_t count) {
  return {.op = "AllReduce", .count = count, .datatype = 7, .redop = 0, .root = 0};
}
const CallDescriptor kBroadcast{.op = "Broadcast", .count = 64, .datatype = 0, .redop = 0, .root = 2};

CommInit InitOf(std::uint64_t pointer, int rank, int nranks, std::optional<std::uint64_t> id, bool complete = false) {
  CommInit init;
  init.complete = complete;
  init.comm = pointer;
  init.rank = GroupRank{rank};
  init.nranks = nranks;
  init.comm_id = id;
  return init;
}

/// What a ledger holds so far.
std::vector<CommunicatorRow> Rows(CallLedger ledger) {
  LeftOut left_out;
  std::vector<ProcessRow> processes;
  for (int device = 0; device < 8; ++device) processes.push_back({"alder04", 41200 + device, {}, {}, device, {}, {}});
  return ledger.Take(left_out, processes);
}

/// Feeds a ledger as the builder does: a batch a block, in slices between which communicators are born and die.
/// Process = rank.
class Feed {
 public:
  void Begin(int rank, int nranks, std::optional<std::uint64_t> id = kId, int comm = 0) {
    Born(rank, InitOf(PointerOf(rank, comm), rank, nranks, id));
  }
  void BeginAll(int nranks) {
    for (int rank = 0; rank < nranks; ++rank) Begin(rank, nranks);
  }
  void Split(int rank, int group_rank, int nranks, int color, int comm, std::optional<int> count) {
    CommInit init = InitOf(PointerOf(rank, comm), group_rank, nranks, std::nullopt);
    init.parent = PointerOf(rank);
    init.color = color;
    init.split_count = count;
    Born(rank, std::move(init));
  }
  void Destroy(int rank) {
    Life([this, rank] {
      ledger_.End(static_cast<std::uint32_t>(rank),
                  {.how = CommEnd::How::kDestroy, .complete = true, .comm = PointerOf(rank), .rank = GroupRank{rank}});
    });
  }
  void Call(int rank, const CallDescriptor& call, std::uint32_t op_count = 0, int comm = 0, int nranks = 4) {
    const std::uint32_t process = Process(rank);
    const auto known = std::find_if(batch_.comms.begin(), batch_.comms.end(), [&](const auto& c) {
      return c.process == process && c.pointer == PointerOf(rank, comm);
    });
    const auto place = static_cast<std::uint32_t>(known - batch_.comms.begin());
    if (known == batch_.comms.end()) batch_.comms.push_back({process, PointerOf(rank, comm), nranks});
    const auto same = std::find(batch_.descriptors.begin(), batch_.descriptors.end(), call);
    const auto descriptor = static_cast<std::uint32_t>(same - batch_.descriptors.begin());
    if (same == batch_.descriptors.end()) batch_.descriptors.push_back(call);
    const auto line = static_cast<std::uint32_t>(line_ - base_);
    batch_.calls.push_back({place, descriptor, op_count, line});
    batch_.processes[process].last_line = line;
    batch_.processes[process].last_text = fmt::format("line {}", line_++);
    if (batch_.calls.size() >= 4096) EndBlock();
  }
  void CallAll(int nranks, const CallDescriptor& call) {
    for (int rank = 0; rank < nranks; ++rank) Call(rank, call);
  }
  void EndBlock() {
    std::size_t begin = 0;
    const auto slice = [&](std::size_t end) {
      if (end != begin) ledger_.AddCalls(batch_, begin, end, {0, base_, 0}, processes_);
      begin = end;
    };
    for (const auto& [calls_before, life] : lives_) {
      slice(calls_before);
      life();
    }
    slice(batch_.calls.size());
    batch_ = {};
    processes_.clear();
    lives_.clear();
    base_ = line_;
  }
  std::vector<CommunicatorRow> Take() {
    EndBlock();
    return Rows(ledger_);
  }
  std::uint64_t line() const { return line_; }

 private:
  void Life(std::function<void()> life) {
    lives_.emplace_back(batch_.calls.size(), std::move(life));
    ++line_;
  }
  /// START and COMPLETE.
  void Born(int rank, CommInit init) {
    for (const bool complete : {false, true}) {
      init.complete = complete;
      Life([this, rank, init] { ledger_.Init(static_cast<std::uint32_t>(rank), init, {}); });
    }
  }
  std::uint32_t Process(int rank) {
    const auto it = std::find(processes_.begin(), processes_.end(), static_cast<std::uint32_t>(rank));
    if (it != processes_.end()) return static_cast<std::uint32_t>(it - processes_.begin());
    processes_.push_back(static_cast<std::uint32_t>(rank));
    CallBatch::Process process;
    process.host = "alder04";
    process.pid = 41200 + rank;
    batch_.processes.push_back(std::move(process));
    return static_cast<std::uint32_t>(processes_.size() - 1);
  }

  CallLedger ledger_;
  CallBatch batch_;
  std::vector<std::uint32_t> processes_;
  std::vector<std::pair<std::size_t, std::function<void()>>> lives_;
  std::uint64_t line_ = 1, base_ = 1;
};

/// `#3: AllReduce 8 on 0 1 3 | AllReduce 9 on 2`.
std::string Show(const CommunicatorRow& row) {
  if (!row.divergence) return "alike";
  std::string out = fmt::format("#{}:", row.divergence->number);
  for (const auto& side : row.divergence->sides)
    out += fmt::format("{} {} {} on {}", &side == &row.divergence->sides.front() ? "" : " |", side.call.op,
                       side.call.count, fmt::join(side.ranks, " "));
  return out;
}

std::vector<std::uint64_t> Counts(const CommunicatorRow& row) {
  std::vector<std::uint64_t> counts;
  for (const auto& member : row.members) counts.push_back(member.calls);
  return counts;
}

TEST_CASE("ledger: calls that all ranks made alike are counted and differ nowhere", "[ledger]") {
  Feed feed;
  feed.BeginAll(4);
  for (std::uint64_t i = 0; i < 500; ++i) feed.CallAll(4, Reduce(i % 7));
  const auto rows = feed.Take();
  REQUIRE(rows.size() == 1);
  CHECK(Show(rows[0]) == "alike");
  CHECK(rows[0].whole_history);
  CHECK(rows[0].nranks == 4);
  REQUIRE(rows[0].comm_id);
  CHECK(rows[0].comm_id->value == kId);
  CHECK(Counts(rows[0]) == std::vector<std::uint64_t>{500, 500, 500, 500});
  CHECK(rows[0].members[2].last_call == Reduce(499 % 7));
}

TEST_CASE("ledger: the first call that differs, and who is in the minority, whoever speaks first", "[ledger]") {
  std::vector<int> order = {0, 1, 2, 3};
  do {
    for (const int odd : {0, 1, 2, 3})
      for (const std::uint64_t at : {0u, 1u, 63u, 64u, 65u, 130u}) {
        CAPTURE(order, odd, at);
        Feed feed;
        feed.BeginAll(4);
        for (std::uint64_t i = 0; i < 140; ++i)
          for (const int rank : order) feed.Call(rank, rank == odd && i == at ? Reduce(9) : Reduce(8));
        std::vector<int> others = {0, 1, 2, 3};
        others.erase(std::find(others.begin(), others.end(), odd));
        CHECK(Show(feed.Take()[0]) ==
              fmt::format("#{}: AllReduce 8 on {} | AllReduce 9 on {}", at, fmt::join(others, " "), odd));
      }
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST_CASE("ledger: what differs may be any field of a call", "[ledger]") {
  const CallDescriptor usual{.op = "Broadcast", .count = 64, .datatype = 7, .redop = 0, .root = 0};
  std::vector<CallDescriptor> others(5, usual);
  others[0].op = "Reduce";
  others[1].count = 65;
  others[2].datatype = 6;
  others[3].redop = 2;
  others[4].root = 3;
  for (const CallDescriptor& other : others) {
    Feed feed;
    feed.BeginAll(3);
    for (int rank = 0; rank < 3; ++rank) feed.Call(rank, rank == 1 ? other : usual);
    const auto rows = feed.Take();
    REQUIRE(rows[0].divergence);
    REQUIRE(rows[0].divergence->sides.size() == 2);
    CHECK(rows[0].divergence->sides[0].call == usual);
    CHECK(rows[0].divergence->sides[1].call == other);
    CHECK(rows[0].divergence->sides[1].ranks == std::vector<int>{1});
  }
}

TEST_CASE("ledger: each side cites the line of its first rank", "[ledger]") {
  Feed feed;
  feed.BeginAll(3);
  feed.CallAll(3, Reduce(8));
  const std::uint64_t first = feed.line();
  feed.Call(0, Reduce(8));
  feed.Call(1, kBroadcast);
  feed.Call(2, Reduce(8));
  const auto rows = feed.Take();
  REQUIRE(rows[0].divergence);
  REQUIRE(rows[0].divergence->sides.size() == 2);
  CHECK(rows[0].divergence->sides[0].where.line == first);
  CHECK(rows[0].divergence->sides[1].where.line == first + 1);
}

TEST_CASE("ledger: three sides, ties by lowest rank", "[ledger]") {
  Feed feed;
  feed.BeginAll(5);
  const std::uint64_t counts[] = {7, 9, 8, 9, 7};
  for (int rank = 4; rank >= 0; --rank) feed.Call(rank, Reduce(counts[rank]));
  CHECK(Show(feed.Take()[0]) == "#0: AllReduce 7 on 0 4 | AllReduce 9 on 1 3 | AllReduce 8 on 2");
}

TEST_CASE("ledger: an earlier difference found later replaces a later one", "[ledger]") {
  Feed feed;
  feed.BeginAll(4);
  for (int rank = 0; rank < 4; ++rank)
    for (int i = 0; i < 40; ++i)
      feed.Call(rank, rank == 1 && i == 20 ? Reduce(9) : rank == 3 && i == 10 ? kBroadcast : Reduce(8));
  CHECK(Show(feed.Take()[0]) == "#10: AllReduce 8 on 0 1 2 | Broadcast 64 on 3");
}

TEST_CASE("ledger: interleaved lines and a file a rank say the same", "[ledger]") {
  const auto call_of = [](int rank, int i) {
    return rank == 2 && i == 77 ? Reduce(5) : Reduce(static_cast<std::uint64_t>(i % 3));
  };
  const int made[] = {100, 100, 90, 60};
  Feed interleaved, apart;
  interleaved.BeginAll(4);
  for (int i = 0; i < 100; ++i)
    for (int rank = 0; rank < 4; ++rank)
      if (i < made[rank]) interleaved.Call(rank, call_of(rank, i));
  for (int rank = 3; rank >= 0; --rank) {
    apart.Begin(rank, 4);
    for (int i = 0; i < made[rank]; ++i) apart.Call(rank, call_of(rank, i));
    apart.EndBlock();
  }
  const auto a = interleaved.Take(), b = apart.Take();
  REQUIRE(a.size() == b.size());
  CHECK(Show(a[0]) == Show(b[0]));
  CHECK(Show(a[0]) == "#77: AllReduce 2 on 0 1 | AllReduce 5 on 2");
  CHECK(Counts(a[0]) == Counts(b[0]));
  CHECK(Counts(a[0]) == std::vector<std::uint64_t>{100, 100, 90, 60});
}

TEST_CASE("ledger: an address that a later communicator gets again is another communicator", "[ledger]") {
  Feed feed;
  feed.BeginAll(2);
  feed.CallAll(2, Reduce(8));
  for (int rank = 0; rank < 2; ++rank) feed.Destroy(rank);
  for (int rank = 0; rank < 2; ++rank) feed.Begin(rank, 2, 0x77);
  feed.Call(0, kBroadcast);
  feed.Call(1, kBroadcast);
  feed.Call(1, kBroadcast);
  const auto rows = feed.Take();
  REQUIRE(rows.size() == 2);
  CHECK(Counts(rows[0]) == std::vector<std::uint64_t>{1, 1});
  CHECK(rows[0].members[0].ended);
  CHECK(Counts(rows[1]) == std::vector<std::uint64_t>{1, 2});
  CHECK_FALSE(rows[1].members[0].ended);
  CHECK(Show(rows[0]) == "alike");
  CHECK(Show(rows[1]) == "alike");
}

TEST_CASE("ledger: a communicator is dead and its address taken again within one block", "[ledger]") {
  for (const bool announced : {true, false}) {  // from NCCL 2.30 on no line tells of a communicator's end
    CAPTURE(announced);
    Feed feed;
    feed.BeginAll(2);
    feed.CallAll(2, Reduce(8));
    for (int rank = 0; rank < 2; ++rank) {
      if (announced) feed.Destroy(rank);
      feed.Begin(rank, 2, 0x77);
      feed.Call(rank, kBroadcast);
    }
    const auto rows = feed.Take();
    REQUIRE(rows.size() == 2);
    CHECK(Counts(rows[0]) == std::vector<std::uint64_t>{1, 1});
    CHECK(Counts(rows[1]) == std::vector<std::uint64_t>{1, 1});
    CHECK(rows[1].members[1].last_call == kBroadcast);
  }
}

TEST_CASE("ledger: children of a split are told apart by parent and colour", "[ledger]") {
  for (const bool counted : {true, false}) {
    CAPTURE(counted);
    Feed feed;
    feed.BeginAll(4);
    // Ranks 0 and 2 get colour 0, ranks 1 and 3 colour 1; a second split makes all colour 0.
    for (int rank = 0; rank < 4; ++rank)
      feed.Split(rank, rank / 2, 2, rank % 2, 1, counted ? std::optional(1) : std::nullopt);
    for (int rank = 3; rank >= 0; --rank) feed.Split(rank, rank, 4, 0, 2, counted ? std::optional(2) : std::nullopt);
    for (int rank = 0; rank < 4; ++rank) {
      feed.Call(rank, rank % 2 == 0 ? Reduce(8) : kBroadcast, 0, 1, 2);  // differs between the colours, as it may
      feed.Call(rank, rank == 2 ? Reduce(9) : Reduce(8), 0, 2, 4);
    }
    const auto rows = feed.Take();
    REQUIRE(rows.size() == 4);
    CHECK(Show(rows[1]) == "alike");
    CHECK(Show(rows[2]) == "alike");
    CHECK(rows[1].members.size() == 2);
    CHECK(rows[2].members.size() == 2);
    CHECK(Show(rows[3]) == "#0: AllReduce 8 on 0 1 3 | AllReduce 9 on 2");
  }
}

TEST_CASE("ledger: sends and receives are not compared, and do not count as calls", "[ledger]") {
  const auto pair = [](const char* op, int peer) {
    return CallDescriptor{.op = op, .count = 4096, .datatype = 7, .redop = 0, .root = peer};
  };
  Feed feed;
  feed.BeginAll(3);
  feed.CallAll(3, Reduce(8));
  feed.Call(0, pair("Send", 1));
  feed.Call(0, pair("Send", 2));
  feed.Call(1, pair("Recv", 0));
  feed.Call(2, pair("Recv", 0));
  for (const char* op : {"PutSignal", "Signal", "WaitSignal"}) feed.Call(1, pair(op, 0));
  feed.CallAll(3, Reduce(16));
  const auto rows = feed.Take();
  CHECK(Show(rows[0]) == "alike");
  CHECK(Counts(rows[0]) == std::vector<std::uint64_t>{2, 2, 2});
}

TEST_CASE("ledger: opCount is no key", "[ledger]") {
  for (const std::uint32_t step : {0u, 1u, 3u}) {  // 0: a communicator of one host from NCCL 2.27 on
    CAPTURE(step);
    Feed feed;
    feed.BeginAll(3);
    for (std::uint32_t i = 0; i < 30; ++i)
      for (int rank = 0; rank < 3; ++rank)
        feed.Call(rank, rank == 1 && i == 12 ? Reduce(4) : Reduce(8), rank == 2 ? 0 : i * step);
    const auto rows = feed.Take();
    CHECK(Show(rows[0]) == "#12: AllReduce 8 on 0 2 | AllReduce 4 on 1");
    REQUIRE(rows[0].members[0].last_op_count);
    CHECK(*rows[0].members[0].last_op_count == 29 * step);
  }
}

TEST_CASE("ledger: histories that begin in the middle are counted and not compared", "[ledger]") {
  Feed feed;
  for (int rank = 0; rank < 4; ++rank)
    for (int i = 0; i < 10 + rank; ++i) feed.Call(rank, i % (rank + 2) == 0 ? kBroadcast : Reduce(8));
  const auto rows = feed.Take();
  REQUIRE(rows.size() == 1);
  CHECK_FALSE(rows[0].whole_history);
  CHECK(Show(rows[0]) == "alike");
  std::vector<std::uint64_t> counts = Counts(rows[0]);
  std::sort(counts.begin(), counts.end());
  CHECK(counts == std::vector<std::uint64_t>{10, 11, 12, 13});
}

TEST_CASE("ledger: histories that begin in the middle are compared where opCount shows where", "[ledger]") {
  const auto seen = [](std::uint32_t late_by, int others) {
    Feed feed;
    for (int rank = 0; rank < 4; ++rank)
      for (std::uint32_t i = 0; i < 3; ++i)
        feed.Call(rank, rank == 2 && i == 1 ? kBroadcast : Reduce(8), 500 + i + (rank == 3 ? late_by : 0));
    for (int other = 0; other < others; ++other) feed.Call(1, Reduce(8), 500, 1 + other, 2);
    return feed.Take()[0];
  };
  CHECK(Show(seen(0, 0)) == "#1: AllReduce 8 on 0 1 3 | Broadcast 64 on 2");
  CHECK(Show(seen(1, 0)) == "alike");  // rank 3 is seen from a later call on
  CHECK(Show(seen(0, 1)) == "alike");  // a process with two communicators may have met others on them
  for (const auto& member : seen(1, 0).members) CHECK_FALSE(member.rank);
}

TEST_CASE("ledger: one rank far ahead of the others", "[ledger]") {
  const auto call_of = [](std::uint64_t i) { return Reduce(1 + i % 5); };
  for (const std::optional<std::uint64_t> at : {std::optional<std::uint64_t>(), std::optional<std::uint64_t>(77777)}) {
    CAPTURE(at.value_or(0));
    Feed feed;
    feed.Begin(1, 2);
    feed.Begin(2, 2);
    for (const int rank : {1, 2})
      for (std::uint64_t i = 0; i < 100000; ++i) feed.Call(rank, rank == 2 && at == i ? kBroadcast : call_of(i));
    const auto rows = feed.Take();
    CHECK(Counts(rows[0]) == std::vector<std::uint64_t>{100000, 100000});
    CHECK(Show(rows[0]) ==
          (at ? fmt::format("#{}: AllReduce {} on 1 | Broadcast 64 on 2", *at, 1 + *at % 5) : "alike"));
  }
}

TEST_CASE("ledger: a line is quoted for a rank's last call only if it is that call's", "[ledger]") {
  Feed feed;
  for (int comm : {0, 1})
    for (int rank = 0; rank < 2; ++rank) feed.Begin(rank, 2, kId + static_cast<std::uint64_t>(comm), comm);
  feed.Call(0, Reduce(8), 0, 0);
  feed.EndBlock();
  const std::uint64_t line = feed.line();
  feed.Call(0, Reduce(9), 0, 0);
  feed.Call(0, kBroadcast, 0, 1);  // the block's last line of this process is of another communicator
  const auto rows = feed.Take();
  REQUIRE(rows.size() == 2);
  const auto& member = rows[0].members[0];
  CHECK(member.last_call_at.line == line);
  CHECK(member.last_call_text == CallText(Reduce(9), 0));
  CHECK(rows[1].members[0].last_call_text == fmt::format("line {}", line + 1));
}

TEST_CASE("ledger: the events of a communicator's birth are given back", "[ledger]") {
  CallLedger ledger;
  ledger.Init(0, InitOf(PointerOf(0), 0, 2, kId), {0, 11, 0});
  CHECK(Rows(ledger)[0].members[0].started);
  CHECK_FALSE(Rows(ledger)[0].members[0].completed);
  CHECK(Rows(ledger)[0].members[0].init_at == SourcePos{0, 11, 0});
  ledger.Init(0, InitOf(PointerOf(0), 0, 2, kId, true), {0, 12, 0});
  const auto rows = Rows(ledger);
  REQUIRE(rows[0].members.size() == 1);
  CHECK(rows[0].members[0].completed);
  CHECK(rows[0].members[0].init_at == SourcePos{0, 12, 0});
}

TEST_CASE("ledger: an abort is not an end that all is well with", "[ledger]") {
  CallLedger ledger;
  ledger.Init(0, InitOf(PointerOf(0), 0, 1, kId, true), {0, 1, 0});
  ledger.End(0, {.how = CommEnd::How::kAbort, .complete = false, .comm = PointerOf(0), .rank = GroupRank{0}});
  CHECK(Rows(ledger)[0].members[0].aborted);
  CHECK_FALSE(Rows(ledger)[0].members[0].ended);
  ledger.End(0, {.how = CommEnd::How::kAbort, .complete = true, .comm = PointerOf(0), .rank = GroupRank{0}});
  CHECK(Rows(ledger)[0].members[0].ended);
}

TEST_CASE("ledger: names of data types", "[ledger]") {
  CHECK(DatatypeName(7) == "float32");
  CHECK(DatatypeName(9) == "bfloat16");
  CHECK(DatatypeName(11) == "float8e5m2");
  CHECK_FALSE(DatatypeName(12));
  CHECK_FALSE(DatatypeName(-1));
}

}  // namespace ledger_test
}  // namespace inquest
