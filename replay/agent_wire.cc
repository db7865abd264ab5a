// Messages between agents as JSON.
#include "replay/agent_wire.h"

#include "replay/wire_fields.h"
#include "replay/wire_json.h"

namespace inquest {

static std::size_t CountOf(SocketSight::State) { return static_cast<std::size_t>(SocketSight::State::kListening) + 1; }

// ---- to an agent ----------------------------------------------------------------------------------------------------

template <class Archive>
void Fields(Archive& archive, ProbeOrder& m) {
  archive("engine", m.engine);
  archive("options", m.options);
}
template <class Archive>
void Fields(Archive& archive, RankOrder& m) {  // its launcher is of the coordinator's own host
  archive("rank", m.rank);
  archive("env", m.env);
  archive("work", m.work);
  archive.Demand(m.rank >= 0 && m.rank < kMostRanks);
}
template <class Archive>
void Fields(Archive& archive, Begin& m) {
  archive("on_host", m.order.on_host);
  archive("run", m.run);
  archive("env", m.order.env);
  archive("ranks", m.order.ranks);
}
template <class Archive>
void Fields(Archive& archive, ToldRank& m) {
  archive("rank", m.rank);
  archive("message", m.message);
}
template <class Archive>
void Fields(Archive& archive, LookAround& m) {
  archive("id", m.order.id);
  archive("threads", m.order.threads);
  archive("sockets", m.order.sockets);
  archive("apart", m.order.apart);
  archive("backtraces", m.order.backtraces);
  archive("limit", m.order.limit);
  archive("texts", m.order.texts);
  archive("dump_signal", m.order.dump_signal);
}
template <class Archive>
void Fields(Archive& archive, KillRanks& m) {
  archive("ranks", m.ranks);
}
template <class Archive>
void Fields(Archive&, CoordinatorBeat&) {}
template <class Archive>
void Fields(Archive& archive, AgentFarewell& m) {
  archive("status", m.status);
  archive("complaint", m.complaint);
}

// ---- to the coordinator ---------------------------------------------------------------------------------------------

template <class Archive>
void Fields(Archive& archive, AgentHello& m) {
  archive("index", m.index);
  archive("count", m.count);
  archive.Maybe("host", m.host);
  archive.Maybe("net", m.net);
  archive.Maybe("address", m.address);
  archive("version", m.version);
  archive.Maybe("wire", m.wire);
  archive.Maybe("local_rank", m.local_rank);
}

template <class Archive>
void Fields(Archive& archive, ThreadState& thread) {
  archive("tid", thread.tid);
  archive("name", thread.name);
  archive("state", thread.state);
  archive("wchan", thread.wchan);
  archive("syscall", thread.syscall);
  archive("stack", thread.stack);
}
template <class Archive>
void Fields(Archive& archive, RankSight& sight) {
  archive("rank", sight.rank);
  archive("process_state", sight.process_state);
  archive("threads", sight.threads);
  archive("backtrace", sight.backtrace);
}
template <class Archive>
void Fields(Archive& archive, SocketSight& socket) {
  archive("rank", socket.rank);
  archive("net", socket.net);
  archive("local", socket.local);
  archive("remote", socket.remote);
  archive("state", socket.state);
  archive("acked", socket.acked);
  archive("received", socket.received);
  archive("unread", socket.unread);
  archive("acked_later", socket.acked_later);
  archive("received_later", socket.received_later);
  archive("unread_later", socket.unread_later);
  archive("queued", socket.queued);
  archive("retransmits", socket.retransmits);
  archive("since_ack", socket.since_ack);
  archive("segments_out", socket.segments_out);
  archive("segments_in", socket.segments_in);
}

template <class Archive>
void Fields(Archive& archive, RankSpawned& e) {
  archive("rank", e.rank);
  archive("pid", e.pid);
}
template <class Archive>
void Fields(Archive& archive, RankNotSpawned& e) {
  archive("rank", e.rank);
  archive("error", e.error);
}
template <class Archive>
void Fields(Archive& archive, RankSaid& e) {
  archive("rank", e.rank);
  archive("message", e.message);
}
template <class Archive>
void Fields(Archive& archive, RankEnded& e) {
  archive("rank", e.rank);
  archive("exit_code", e.exit_code);
  archive("signal", e.signal);
  archive("output", e.output);
  archive("why", e.why);
}
template <class Archive>
void Fields(Archive& archive, RankStopped& e) {
  archive("rank", e.rank);
  archive("why", e.why);
}
template <class Archive>
void Fields(Archive& archive, NodeSaw& e) {
  archive("id", e.id);
  archive("more", e.more);
  archive("ranks", e.ranks);
  archive("sockets", e.sockets);
  archive("texts", e.texts);
}
template <class Archive>
void Fields(Archive& archive, NodeLost& e) {
  archive("why", e.why);
  archive("interrupted", e.interrupted);
}

template <class Archive>
void Fields(Archive& archive, Report& m) {
  archive("run", m.run);
  archive("at", m.event.at);
  archive.OneOf("event", m.event.what);
}
template <class Archive>
void Fields(Archive& archive, LogPiece& m) {
  archive("rank", m.rank);
  archive("text", m.text);
}
template <class Archive>
void Fields(Archive& archive, AgentBeat& m) {
  archive("at", m.at);
}

std::string Encode(const ToAgent& message) { return wire::EncodeAny(message); }
std::string Encode(const ToCoordinator& message) { return wire::EncodeAny(message); }
std::optional<ToAgent> DecodeToAgent(std::string_view text) { return wire::DecodeAny<ToAgent>(text); }
std::optional<ToCoordinator> DecodeToCoordinator(std::string_view text) { return wire::DecodeAny<ToCoordinator>(text); }

}  // namespace inquest
