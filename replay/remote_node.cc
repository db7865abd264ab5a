// Times: an agent stamps what it reports by its own clock. The smallest difference between a stamp and its arrival is
// the difference of the clocks and the shortest way together; by it all later stamps are read. A report that the
// network held up is dated when it was sent, not when it came, and a rank is not called late for it.
#include "replay/remote_node.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "replay/recipes.h"
#include "replay/words.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kCoordinatorBeat{250};
/// Without a word from the agent for so long its host is looked at; it is given up at once where that is silent too.
constexpr milliseconds kNodeSilence{1500}, kHostSilence{1200}, kAgentSilence{6000};
constexpr std::size_t kLogBytes = 8U << 20U;

}  // namespace

RemoteNode::RemoteNode(Channel channel, AgentHello hello, std::string address)
    : channel_(std::move(channel)), hello_(std::move(hello)), address_(std::move(address)), heard_(Clock::now()) {}

void RemoteNode::Start(const StartOrder& order) {
  ++run_;
  heard_ = Clock::now();
  lost_ = false;  // it is told again, in this run
  taken_ = {};
  logs_.clear();
  for (const RankOrder& rank : order.ranks) {
    const auto file = rank.env.find(std::string(kLogFileVariable));
    if (file != rank.env.end()) logs_[rank.rank].path = file->second;
  }
  Send(Begin{run_, order});
}

RemoteNode::Clock::time_point RemoteNode::Here(Clock::time_point there) {
  const Clock::time_point now = Clock::now();
  offset_ = std::min(offset_.value_or(now - there), now - there);
  return there + *offset_;
}

std::vector<NodeEvent> RemoteNode::Take() {
  std::vector<NodeEvent> events;
  if (lost_) return events;
  for (const std::string& text : channel_.Work()) {
    heard_ = Clock::now();
    if (auto message = DecodeToCoordinator(text))
      Hear(std::move(*message), events);
    else
      channel_.Close("what its agent says is not understood");
  }
  if (Clock::now() >= next_beat_) {
    Send(CoordinatorBeat{});
    next_beat_ = Clock::now() + kCoordinatorBeat;
  }
  // Where this process itself stood still, the others' silence is nobody's.
  const Clock::time_point now = Clock::now();
  if (taken_ != Clock::time_point() && now - taken_ > kNodeSilence / 2)
    heard_ = std::max(heard_, now - kNodeSilence / 2);
  taken_ = now;
  if (const std::string why = lost_ ? "" : WhyLost(); !why.empty()) {
    lost_ = true;
    channel_.Close(why);
    events.push_back({Clock::now(), NodeLost{why}});
  }
  return events;
}

/// An agent that is only slow is waited for as long as its host's kernel answers.
std::string RemoteNode::WhyLost() const {
  if (channel_.state() == Channel::State::kClosed) return channel_.why_closed();
  const auto silent = Clock::now() - heard_;
  if (silent < kNodeSilence) return "";
  if (silent > kAgentSilence)
    return fmt::format("its agent said nothing for {:.1f} s, though its host answers", Seconds(silent));
  tcp_info info{};
  socklen_t length = sizeof info;
  if (::getsockopt(channel_.fd(), IPPROTO_TCP, TCP_INFO, &info, &length) != 0) return "";
  if (info.tcpi_unacked == 0 || milliseconds(info.tcpi_last_ack_recv) < kHostSilence) return "";
  return fmt::format("nothing came from its host for {:.1f} s, not even an acknowledgement", Seconds(silent));
}

void RemoteNode::Hear(ToCoordinator message, std::vector<NodeEvent>& events) {
  if (auto* report = std::get_if<Report>(&message)) {
    report->event.at = Here(report->event.at);
    if (report->run != run_) return;
    if (auto* leaves = std::get_if<NodeLost>(&report->event.what)) {
      lost_ = true;
      leaves->interrupted = true;  // all that it can say of itself
    }
    events.push_back(std::move(report->event));
  } else if (const auto* beat = std::get_if<AgentBeat>(&message)) {
    Here(beat->at);
  } else if (const auto* piece = std::get_if<LogPiece>(&message)) {
    AppendLog(*piece);
  } else if (auto* answer = std::get_if<ProbeAnswer>(&message)) {
    answer_ = std::move(*answer);
  }
}

void RemoteNode::AppendLog(const LogPiece& piece) {
  log_bytes_ += piece.text.size();
  const auto found = logs_.find(piece.rank);
  if (found == logs_.end() || found->second.bytes + piece.text.size() > kLogBytes) return;
  found->second.bytes += piece.text.size();
  std::ofstream(found->second.path, std::ios::binary | std::ios::app) << piece.text;
}

std::optional<ProbeAnswer> RemoteNode::AwaitProbe(milliseconds limit) {
  const Clock::time_point last = Clock::now() + limit;
  while (!answer_ && channel_.state() != Channel::State::kClosed && Clock::now() < last) {
    pollfd ready{channel_.fd(), POLLIN, 0};
    ::poll(&ready, 1, 50);
    std::vector<NodeEvent> ignored;
    for (const std::string& text : channel_.Work()) {
      if (auto message = DecodeToCoordinator(text)) Hear(std::move(*message), ignored);
    }
  }
  heard_ = Clock::now();
  return std::exchange(answer_, std::nullopt);
}

}  // namespace inquest
