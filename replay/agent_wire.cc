// Messages between agents as JSON. What workers say travels as the text that they say it in.
#include "replay/agent_wire.h"

#include "replay/wire_json.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using wire::Enumerator;
using wire::Json;
using wire::Malformed;
using wire::Milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostRanks = 1 << 20;

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}
template <class T>
std::optional<T> Optional(const Json& json) {
  return json.is_null() ? std::nullopt : std::optional(json.get<T>());
}
Json Ticks(Clock::time_point at) { return std::chrono::duration_cast<nanoseconds>(at.time_since_epoch()).count(); }
/// One that can be told from any other: their difference fits as well.
Clock::time_point TimePoint(const Json& json) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  const auto ticks = json.get<std::int64_t>();
  if (ticks < 0 || ticks >= kMost) throw Malformed();
  return Clock::time_point(nanoseconds(ticks));
}
std::string Text(const Json& json, const char* key) { return json.at(key).get<std::string>(); }

using Texts = std::map<std::string, std::string>;

// ---- to an agent ----------------------------------------------------------------------------------------------------

Json Body(const ProbeOrder& m) { return {{"engine", m.engine}, {"options", m.options}}; }
void Read(const Json& json, ProbeOrder& m) { m = {Text(json, "engine"), json.at("options").get<Texts>()}; }

Json Body(const Begin& m) {
  Json ranks = Json::array();
  for (const RankOrder& rank : m.order.ranks) ranks.push_back({{"rank", rank.rank}, {"env", rank.env}, {"work", Encode(ToWorker(rank.work))}});
  return {{"run", m.run}, {"env", m.order.env}, {"ranks", ranks}};
}
void Read(const Json& json, Begin& m) {
  m.run = json.at("run").get<int>();
  m.order.env = json.at("env").get<Texts>();
  for (const Json& rank : json.at("ranks")) {
    const auto work = DecodeToWorker(Text(rank, "work"));
    const bool numbered = rank.at("rank").get<std::int64_t>() >= 0 && rank.at("rank").get<std::int64_t>() < kMostRanks;
    if (!numbered || !work || !std::holds_alternative<StartWork>(*work)) throw Malformed();
    m.order.ranks.push_back({.rank = rank.at("rank").get<int>(), .launcher = {}, .env = rank.at("env").get<Texts>(), .work = std::get<StartWork>(*work)});
  }
}

Json Body(const Told& m) { return {{"rank", m.rank}, {"message", Encode(m.message)}}; }
void Read(const Json& json, Told& m) {
  auto message = DecodeToWorker(Text(json, "message"));
  if (!message) throw Malformed();
  m = {json.at("rank").get<int>(), std::move(*message)};
}

Json Body(const LookAround& m) {
  const LookOrder& o = m.order;
  return {{"id", o.id}, {"threads", o.threads}, {"sockets", o.sockets}, {"apart", o.apart.count()}, {"backtraces", o.backtraces}, {"limit", o.limit.count()}, {"texts", o.texts},
          {"dump_signal", OrNull(o.dump_signal)}};
}
void Read(const Json& json, LookAround& m) {
  m.order = {.id = json.at("id").get<int>(),
             .threads = json.at("threads").get<bool>(),
             .sockets = json.at("sockets").get<bool>(),
             .apart = Milliseconds(json.at("apart")),
             .backtraces = json.at("backtraces").get<std::vector<int>>(),
             .limit = Milliseconds(json.at("limit")),
             .texts = json.at("texts").get<bool>(),
             .dump_signal = Optional<int>(json.at("dump_signal"))};
}

Json Body(const KillRanks& m) { return {{"ranks", m.ranks}}; }
void Read(const Json& json, KillRanks& m) { m.ranks = json.at("ranks").get<std::vector<int>>(); }

Json Body(const CoordinatorBeat&) { return Json::object(); }
void Read(const Json&, CoordinatorBeat&) {}

Json Body(const Farewell& m) { return {{"status", m.status}, {"complaint", m.complaint}}; }
void Read(const Json& json, Farewell& m) { m = {json.at("status").get<int>(), Text(json, "complaint")}; }

// ---- to the coordinator ---------------------------------------------------------------------------------------------

Json Body(const AgentHello& m) {
  return {{"index", m.index}, {"count", m.count}, {"host", m.host}, {"net", m.net}, {"address", m.address}, {"version", m.version}, {"wire", m.wire}, {"local_rank", OrNull(m.local_rank)}};
}
void Read(const Json& json, AgentHello& m) {
  m = {.index = json.at("index").get<int>(),
       .count = json.at("count").get<int>(),
       .host = json.value("host", ""),
       .net = json.value("net", ""),
       .address = json.value("address", ""),
       .version = Text(json, "version"),
       .wire = json.value("wire", 0),
       .local_rank = Optional<int>(json.value("local_rank", Json()))};
}

Json Body(const ProbeAnswer& m) { return {{"version", m.found.version}, {"tests", m.found.tests}, {"missing", m.missing}, {"hint", m.hint}}; }
void Read(const Json& json, ProbeAnswer& m) { m = {{Text(json, "version"), Text(json, "tests")}, Text(json, "missing"), Text(json, "hint")}; }

Json ToJson(const ThreadState& t) { return {{"tid", t.tid}, {"name", t.name}, {"state", t.state}, {"wchan", t.wchan}, {"syscall", t.syscall}, {"stack", t.stack}}; }
ThreadState ThreadOf(const Json& json) {
  return {json.at("tid").get<std::int64_t>(), Text(json, "name"), Text(json, "state"), Text(json, "wchan"), Text(json, "syscall"), Text(json, "stack")};
}

Json ToJson(const SocketSight& s) {
  return {{"rank", s.rank}, {"net", s.net}, {"local", s.local}, {"remote", s.remote}, {"state", s.state},
          {"first", {s.acked, s.received, s.unread}}, {"second", {s.acked_later, s.received_later, s.unread_later}},
          {"queued", s.queued}, {"retransmits", s.retransmits}, {"since_ack", s.since_ack.count()}};
}
SocketSight SocketOf(const Json& json) {
  const auto number = [&](const char* key, std::size_t index) { return json.at(key).at(index).get<std::uint64_t>(); };
  return {.rank = json.at("rank").get<int>(),
          .net = Text(json, "net"),
          .local = Text(json, "local"),
          .remote = Text(json, "remote"),
          .state = Enumerator<SocketSight::State>(json.at("state"), static_cast<std::size_t>(SocketSight::State::kListening) + 1),
          .acked = number("first", 0),
          .received = number("first", 1),
          .unread = number("first", 2),
          .acked_later = number("second", 0),
          .received_later = number("second", 1),
          .unread_later = number("second", 2),
          .queued = json.at("queued").get<std::uint64_t>(),
          .retransmits = json.at("retransmits").get<std::uint32_t>(),
          .since_ack = Milliseconds(json.at("since_ack"))};
}

Json EventBody(const RankSpawned& e) { return {{"event", "spawned"}, {"rank", e.rank}, {"pid", e.pid}}; }
Json EventBody(const RankNotSpawned& e) { return {{"event", "not-spawned"}, {"rank", e.rank}, {"error", e.error}}; }
Json EventBody(const RankSaid& e) { return {{"event", "said"}, {"rank", e.rank}, {"message", Encode(e.message)}}; }
Json EventBody(const RankEnded& e) { return {{"event", "ended"}, {"rank", e.rank}, {"exit_code", OrNull(e.exit_code)}, {"signal", OrNull(e.signal)}, {"output", e.output}}; }
Json EventBody(const RankStopped& e) { return {{"event", "stopped"}, {"rank", e.rank}, {"why", e.why}}; }
Json EventBody(const NodeLost& e) { return {{"event", "lost"}, {"why", e.why}}; }
Json EventBody(const NodeSaw& e) {
  Json ranks = Json::array(), sockets = Json::array();
  for (const RankSight& rank : e.ranks) {
    Json threads = Json::array();
    for (const ThreadState& thread : rank.threads) threads.push_back(ToJson(thread));
    ranks.push_back({{"rank", rank.rank}, {"process_state", rank.process_state}, {"threads", threads}, {"backtrace", rank.backtrace}});
  }
  for (const SocketSight& socket : e.sockets) sockets.push_back(ToJson(socket));
  return {{"event", "saw"}, {"id", e.id}, {"more", e.more}, {"ranks", ranks}, {"sockets", sockets}, {"texts", e.texts}};
}

NodeSaw SawOf(const Json& json) {
  NodeSaw saw{.id = json.at("id").get<int>(), .ranks = {}, .sockets = {}, .texts = json.at("texts").get<Texts>(), .more = json.at("more").get<bool>()};
  for (const Json& rank : json.at("ranks")) {
    RankSight& sight = saw.ranks.emplace_back();
    sight.rank = rank.at("rank").get<int>();
    sight.process_state = Text(rank, "process_state");
    sight.backtrace = Text(rank, "backtrace");
    for (const Json& thread : rank.at("threads")) sight.threads.push_back(ThreadOf(thread));
  }
  for (const Json& socket : json.at("sockets")) saw.sockets.push_back(SocketOf(socket));
  return saw;
}

decltype(NodeEvent::what) EventOf(const Json& json) {
  const std::string event = Text(json, "event");
  if (event == "saw") return SawOf(json);
  if (event == "lost") return NodeLost{Text(json, "why")};
  const int rank = json.at("rank").get<int>();
  if (event == "spawned") return RankSpawned{rank, json.at("pid").get<std::int64_t>()};
  if (event == "not-spawned") return RankNotSpawned{rank, Text(json, "error")};
  if (event == "stopped") return RankStopped{rank, Text(json, "why")};
  if (event == "ended") return RankEnded{rank, Optional<int>(json.at("exit_code")), Optional<int>(json.at("signal")), Text(json, "output")};
  auto message = event == "said" ? DecodeToSupervisor(Text(json, "message")) : std::nullopt;
  if (!message) throw Malformed();
  return RankSaid{rank, std::move(*message)};
}

Json Body(const Report& m) {
  Json json = std::visit([](const auto& event) { return EventBody(event); }, m.event.what);
  json["run"] = m.run;
  json["at"] = Ticks(m.event.at);
  return json;
}
void Read(const Json& json, Report& m) { m = {json.at("run").get<int>(), {TimePoint(json.at("at")), EventOf(json)}}; }

Json Body(const LogPiece& m) { return {{"rank", m.rank}, {"text", m.text}}; }
void Read(const Json& json, LogPiece& m) { m = {json.at("rank").get<int>(), Text(json, "text")}; }

Json Body(const AgentBeat& m) { return {{"at", Ticks(m.at)}}; }
void Read(const Json& json, AgentBeat& m) { m.at = TimePoint(json.at("at")); }

}  // namespace

std::string Encode(const ToAgent& message) { return wire::EncodeAny(message, [](const auto& m) { return Body(m); }); }
std::string Encode(const ToCoordinator& message) { return wire::EncodeAny(message, [](const auto& m) { return Body(m); }); }
std::optional<ToAgent> DecodeToAgent(std::string_view text) { return wire::DecodeAny<ToAgent>(text, [](const Json& json, auto& m) { Read(json, m); }); }
std::optional<ToCoordinator> DecodeToCoordinator(std::string_view text) { return wire::DecodeAny<ToCoordinator>(text, [](const Json& json, auto& m) { Read(json, m); }); }

}  // namespace inquest
