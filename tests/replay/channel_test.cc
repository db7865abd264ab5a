// The connection between coordinator and agent: whatever pieces bytes come in, and whoever sends them.
#include "replay/channel.h"

#include <sys/socket.h>

#include <array>
#include <random>

#include "replay/agent_wire.h"
#include "replay/secret.h"
#include "tests/catch.h"

using namespace inquest;

namespace channel_test {

std::string Bytes(std::mt19937& random, std::size_t count) {
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::vector<std::string> All(FrameReader& reader) {
  std::vector<std::string> payloads;
  while (auto payload = reader.Next()) payloads.push_back(*payload);
  return payloads;
}

struct Pair {
  Pair(const std::string& coordinators, const std::string& agents) {
    std::array<int, 2> ends = {-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
    coordinator.emplace(OwnedFd(ends[0]), Side::kCoordinator, coordinators);
    agent.emplace(OwnedFd(ends[1]), Side::kAgent, agents);
  }
  void Greet() {
    for (int i = 0; i < 4; ++i) {
      (void)agent->Work();
      (void)coordinator->Work();
    }
  }
  std::optional<Channel> coordinator, agent;
};

const std::string kToken = "0123456789abcdef0123456789abcdef";

/// One whole handshake over bytes.
struct Greeting {
  Handshake coordinator{Side::kCoordinator, kToken, std::string(kDigestBytes, 'c')};
  Handshake agent{Side::kAgent, kToken, std::string(kDigestBytes, 'a')};
  std::string to_agent = coordinator.Opening(), to_coordinator;
};

TEST_CASE("frames survive any chunking", "[unit][replay]") {
  std::mt19937 random(7);
  for (const std::size_t most : {1U, 3U, 50U, 5000U}) {
    FrameWriter writer("key");
    FrameReader reader("key");
    std::string stream;
    std::vector<std::string> sent;
    for (const std::size_t size : {0U, 1U, 31U, 4096U, 70'000U})
      stream += writer.Frame(sent.emplace_back(Bytes(random, size)));
    std::vector<std::string> got;
    for (std::size_t at = 0; at < stream.size();) {
      const std::size_t piece = 1 + random() % most;
      reader.Add(std::string_view(stream).substr(at, piece));
      at += piece;
      for (std::string& payload : All(reader)) got.push_back(std::move(payload));
    }
    CHECK(got == sent);
    CHECK_FALSE(reader.is_broken());
  }
}

TEST_CASE("a frame that was changed, repeated, dropped, swapped or made by another breaks the channel",
          "[unit][replay]") {
  FrameWriter writer("key"), other("another key");
  const std::string a = writer.Frame("first"), b = writer.Frame("second");
  std::string changed = a, longer = a, huge = a;
  changed[6] = static_cast<char>(changed[6] ^ 1);
  longer[3] = static_cast<char>(longer[3] + 1);
  huge[0] = '\x7f';
  struct Row {
    const char* what;
    std::string bytes;
    std::size_t good;
  };
  const Row rows[] = {{"payload changed", changed, 0},
                      {"length changed", longer + b, 0},
                      {"2 GiB announced", huge, 0},
                      {"repeated", a + a, 1},
                      {"dropped", b, 0},
                      {"swapped", b + a, 0},
                      {"another key", other.Frame("x"), 0},
                      {"garbage", std::string(200, '\0') + "x", 0}};
  for (const Row& row : rows) {
    CAPTURE(row.what);
    FrameReader reader("key");
    reader.Add(row.bytes);
    CHECK(All(reader).size() == row.good);
    CHECK(reader.is_broken());
    reader.Add(a);
    CHECK_FALSE(reader.Next());
  }
}

TEST_CASE("a handshake ends well only with the same token, and both sides have each other's keys", "[unit][replay]") {
  Greeting one;
  CHECK(one.agent.Take(one.to_agent, one.to_coordinator) == Handshake::State::kGoing);
  CHECK(one.coordinator.Take(one.to_coordinator, one.to_agent) == Handshake::State::kDone);
  CHECK(one.agent.Take(one.to_agent, one.to_coordinator) == Handshake::State::kDone);
  for (const Side side : {Side::kCoordinator, Side::kAgent})
    CHECK(one.agent.KeyFrom(side) == one.coordinator.KeyFrom(side));
  CHECK(one.agent.KeyFrom(Side::kAgent) != one.agent.KeyFrom(Side::kCoordinator));

  Greeting wrong;
  wrong.agent = Handshake(Side::kAgent, "another token of enough letters", std::string(kDigestBytes, 'a'));
  (void)wrong.agent.Take(wrong.to_agent, wrong.to_coordinator);
  CHECK(wrong.coordinator.Take(wrong.to_coordinator, wrong.to_agent) == Handshake::State::kRefused);
  CHECK(wrong.to_agent.empty());  // nothing to learn from

  // What was recorded of another handshake proves nothing in this one; nor does what the other side itself said.
  Greeting recorded, fresh;
  (void)recorded.agent.Take(recorded.to_agent, recorded.to_coordinator);
  fresh.coordinator = Handshake(Side::kCoordinator, kToken, std::string(kDigestBytes, 'C'));
  CHECK(fresh.coordinator.Take(recorded.to_coordinator, fresh.to_agent) == Handshake::State::kRefused);
  std::string reflected = fresh.coordinator.Opening() + std::string(kDigestBytes, 'x');
  CHECK(fresh.coordinator.Take(reflected, fresh.to_agent) == Handshake::State::kRefused);

  std::string stranger = "SSH-2.0-OpenSSH_9.2\r\n", short_stranger = "G";
  CHECK(Greeting().agent.Take(stranger, one.to_coordinator) == Handshake::State::kStranger);
  CHECK(Greeting().coordinator.Take(short_stranger, one.to_agent) == Handshake::State::kStranger);
}

TEST_CASE("channels: greeting, messages both ways, another token, garbage", "[unit][replay]") {
  Pair pair(kToken, kToken);
  pair.Greet();
  REQUIRE(pair.coordinator->state() == Channel::State::kOpen);
  pair.agent->Send("from the agent");
  pair.coordinator->Send("from the coordinator");
  CHECK(pair.coordinator->Work() == std::vector<std::string>{"from the agent"});
  CHECK(pair.agent->Work() == std::vector<std::string>{"from the coordinator"});
  pair.agent->Close("done");
  CHECK(pair.coordinator->Work().empty());
  CHECK(pair.coordinator->state() == Channel::State::kClosed);
  CHECK(pair.coordinator->why_closed() == "its connection was closed");
  pair.coordinator->Send("into nothing");

  Pair strangers(kToken, "another token of enough letters");
  strangers.Greet();
  CHECK(strangers.coordinator->state() == Channel::State::kClosed);
  CHECK(strangers.coordinator->refused());
  CHECK(strangers.agent->refused());

  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    std::array<int, 2> ends = {-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()) == 0);
    Channel coordinator(OwnedFd{ends[0]}, Side::kCoordinator, kToken);
    const OwnedFd peer(ends[1]);
    const std::string bytes = (i % 2 == 0 ? "inquest replay 1" : "") + Bytes(random, random() % 300);
    REQUIRE(::send(peer.get(), bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
    CHECK(coordinator.Work().empty());
    CHECK(coordinator.state() != Channel::State::kOpen);
  }
}

TEST_CASE("what agents say comes through as it was; what is none of it is refused", "[unit][replay]") {
  NodeSaw saw{
      .id = 3,
      .ranks = {{.rank = 1,
                 .process_state = "S (sleeping)",
                 .threads = {{.tid = 7, .name = "x", .state = "S", .wchan = "", .syscall = "", .stack = "a\nb"}},
                 .backtrace = "#0"}},
      .sockets = {{.rank = 1,
                   .net = "n/1",
                   .local = "a:1",
                   .remote = "b:2",
                   .state = SocketSight::State::kConnecting,
                   .acked = 5,
                   .queued = 9,
                   .retransmits = 2}},
      .texts = {{"ras.json", "{}"}},
      .more = true};
  const std::vector<ToCoordinator> messages = {
      AgentHello{
          .index = 2, .count = 3, .host = "h", .net = "n", .address = "10.0.0.2", .version = "1", .local_rank = 4},
      ProbeAnswer{{"Gloo", "tests"}, "", ""},
      Report{1, {{}, RankSpawned{2, 99}}},
      Report{1, {{}, RankNotSpawned{2, "no"}}},
      Report{1, {{}, RankSaid{2, StoreGet{"key"}}}},
      Report{1, {{}, RankEnded{2, {}, 9, "out"}}},
      Report{1, {{}, RankStopped{2, "T"}}},
      Report{1, {{}, saw}},
      LogPiece{1, "NCCL INFO\n"},
      AgentBeat{}};
  for (const ToCoordinator& message : messages) {
    const std::string text = Encode(message);
    CAPTURE(text);
    const auto again = DecodeToCoordinator(text);
    REQUIRE(again);
    CHECK(Encode(*again) == text);
    for (std::size_t cut = 0; cut < text.size(); ++cut) CHECK_FALSE(DecodeToCoordinator(text.substr(0, cut)));
  }
  StartOrder order{.env = {{"A", "1"}}, .ranks = {{.rank = 3, .launcher = {}, .env = {{"B", "2"}}, .work = {}}}};
  order.ranks[0].work.engine = "gloo";
  for (const ToAgent& message : std::vector<ToAgent>{ProbeOrder{"gloo", {{"interface", "eth0"}}}, Begin{4, order},
                                                     ToldRank{1, ToWorker(Proceed{2})},
                                                     LookAround{{.id = 1, .threads = true, .backtraces = {1, 2}}},
                                                     KillRanks{{1, 2}}, CoordinatorBeat{}, AgentFarewell{3, "why"}}) {
    const auto again = DecodeToAgent(Encode(message));
    REQUIRE(again);
    CHECK(Encode(*again) == Encode(message));
  }
  CHECK_FALSE(DecodeToCoordinator(R"({"kind":"report","run":1,"at":0,"event":"said","rank":1,"message":{}})"));
  CHECK_FALSE(DecodeToCoordinator(R"({"kind":"beat","at":1e300})"));
  CHECK_FALSE(DecodeToCoordinator(R"({"kind":"log","rank":4294967296,"text":""})"));
  CHECK_FALSE(DecodeToAgent(R"({"kind":"kill","ranks":[0.5]})"));
  // Another version's greeting: what it lacks is not there.
  const auto old = DecodeToCoordinator(R"({"kind":"hello","index":1,"count":2,"version":"0"})");
  REQUIRE(old);
  CHECK(std::get<AgentHello>(*old).wire == 0);
  CHECK_FALSE(DecodeToAgent(R"({"kind":"begin","run":1,"env":{},"ranks":[{"rank":0,"env":{},"work":"nothing"}]})"));
}

TEST_CASE("a token is a line of enough letters, and HMAC-SHA256 is that of RFC 4231", "[unit][replay]") {
  CHECK(*TokenFrom("0123456789abcdef\r\n", "x") == "0123456789abcdef");
  CHECK_FALSE(TokenFrom("short\n", "x"));
  CHECK_FALSE(TokenFrom("", "x"));
  CHECK(HexDigits(Hmac("Jefe", "what do ya want for nothing?")) ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(SameBytes("abc", "abc"));
  CHECK_FALSE(SameBytes("abc", "abd"));
  CHECK_FALSE(SameBytes("abc", "ab"));
  CHECK(RandomBytes() != RandomBytes());
}

}  // namespace channel_test
