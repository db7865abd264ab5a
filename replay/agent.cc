// One loop over the coordinator and the ranks. Whatever takes long is done by threads of LocalNode, so that a beat that
// is missing means something.
#include "replay/agent.h"

#include <poll.h>
#include <unistd.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>
#include <thread>

#include "replay/agent_wire.h"
#include "replay/channel.h"
#include "replay/connect.h"
#include "replay/local_node.h"
#include "replay/recipes.h"
#include "replay/scratch.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kAgentTick{100}, kBeat{250}, kRetry{200}, kGreetingLimit{5000}, kFarewell{10'000};
/// While ranks live the coordinator speaks four times a second; without a word for this long it is gone.
constexpr milliseconds kCoordinatorSilence{5000};
constexpr std::size_t kLogPiece = 256 * 1024, kLogHead = 2U << 20U, kLogTail = 2U << 20U, kUnsentReports = 1U << 20U,
                      kUnsentLogs = 32U << 20U, kSocketsAFrame = 1000;

class Agent {
 public:
  explicit Agent(const AgentSetup& setup) : setup_(setup), node_(setup.local) {}
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;

  AgentEnd Run() {
    if (const auto failed = Join()) return *failed;
    heard_ = Clock::now();
    while (!end_) {
      Await();
      for (const std::string& text : channel_->Work()) {
        heard_ = Clock::now();
        auto message = DecodeToAgent(text);
        if (!message) return {3, "the coordinator speaks another language: is it of another version?"};
        std::visit([&](auto& m) { Hear(m); }, *message);
      }
      if (end_) break;
      if (channel_->state() == Channel::State::kClosed)
        return {3, fmt::format("the coordinator at {} was lost: {}", Master(), channel_->why_closed())};
      // Where the coordinator is behind, the ranks wait in their sockets, as they do where it is on their own host.
      if (channel_->unsent() < kUnsentReports) {
        for (NodeEvent& event : node_.Take()) Tell(event);
      }
      if (Clock::now() >= next_beat_) {
        Send(AgentBeat{Clock::now()});
        next_beat_ = Clock::now() + kBeat;
      }
      if (!living_.empty() && Clock::now() - heard_ > kCoordinatorSilence)
        return {3, fmt::format("the coordinator at {} was lost: it said nothing for {:.0f} s", Master(),
                               std::chrono::duration<double>(kCoordinatorSilence).count())};
      if (const auto left = Left()) {
        // Ended by somebody, who may end the others next: that is no machine's fault.
        Send(Report{run_, {Clock::now(), NodeLost{left->complaint, true}}});
        channel_->Drain(kAgentTick);
        return *left;
      }
    }
    AwaitPrinted();
    return *end_;
  }

 private:
  std::string Master() const { return fmt::format("{}:{}", setup_.master, setup_.port); }
  void Send(const ToCoordinator& message) { channel_->Send(Encode(message)); }

  /// As poll() wants it, which passes over -1.
  int OwnerFd() const { return setup_.owner.value_or(-1); }

  /// Whether who started us wants an end.
  std::optional<AgentEnd> Left() const {
    if (setup_.interrupted && setup_.interrupted()) return AgentEnd{2, "interrupted"};
    pollfd owner{OwnerFd(), POLLIN, 0};
    if (setup_.owner && ::poll(&owner, 1, 0) > 0) {
      char byte = 0;
      if ((owner.revents & POLLIN) == 0 || ::read(*setup_.owner, &byte, 1) <= 0)
        return AgentEnd{3, "the inquest that started this one is gone"};
    }
    return std::nullopt;
  }

  /// Until the coordinator has printed its report and is gone: a launcher kills all once one has failed.
  void AwaitPrinted() {
    const Clock::time_point last = Clock::now() + kFarewell;
    while (channel_->state() != Channel::State::kClosed && Clock::now() < last && !Left()) {
      Await();
      (void)channel_->Work();
    }
  }

  // ---- coming in ----------------------------------------------------------------------------------------------------
  std::optional<AgentEnd> Join() {
    const Clock::time_point last = Clock::now() + setup_.join;
    std::string why;
    while (true) {
      Result<OwnedFd> socket = ConnectTo(setup_.master, setup_.port, milliseconds(2000));
      if (!socket) {
        why = socket.error().message;
      } else {
        channel_.emplace(std::move(*socket), Side::kAgent, setup_.token);
        const Clock::time_point patience = std::min(last, Clock::now() + kGreetingLimit);
        while (channel_->state() == Channel::State::kGreeting && Clock::now() < patience) {
          pollfd ready{channel_->fd(), POLLIN, 0};
          ::poll(&ready, 1, static_cast<int>(kAgentTick.count()));
          (void)channel_->Work();  // the coordinator says nothing before our hello
          if (const auto left = Left()) return left;
        }
        if (channel_->state() == Channel::State::kOpen) break;
        if (channel_->refused())
          return AgentEnd{3, fmt::format("{}: {}; every node needs the same one", Master(), channel_->why_closed())};
        why = channel_->state() == Channel::State::kClosed ? channel_->why_closed() : "it does not answer";
      }
      if (Clock::now() >= last)
        return AgentEnd{3, fmt::format("node {} found no coordinator at {} within {:.1f} s: {}", setup_.index, Master(),
                                       std::chrono::duration<double>(setup_.join).count(), why)};
      if (const auto left = Left()) return left;
      std::this_thread::sleep_for(kRetry);
    }
    Send(AgentHello{.index = setup_.index,
                    .count = setup_.count,
                    .host = setup_.host,
                    .net = NetOfThisThread(),
                    .address = OwnAddressOf(channel_->fd()),
                    .version = setup_.version,
                    .local_rank = setup_.local_rank});
    return std::nullopt;
  }

  void Await() {
    pollfd ready[] = {{channel_->fd(), static_cast<short>(channel_->has_unsent() ? POLLIN | POLLOUT : POLLIN), 0},
                      {channel_->unsent() < kUnsentReports ? node_.fd() : -1, POLLIN, 0},
                      {OwnerFd(), POLLIN, 0}};
    (void)::poll(ready, std::size(ready), static_cast<int>(kAgentTick.count()));
  }

  // ---- what the coordinator says
  // --------------------------------------------------------------------------------------
  void Hear(const ProbeOrder& order) {
    const Result<EngineProbe> found = setup_.probe(order.engine, order.options);
    Send(found ? ProbeAnswer{*found, "", ""} : ProbeAnswer{{}, found.error().message, found.error().hint});
    heard_ = Clock::now();
  }

  void Hear(Begin& begin) {
    run_ = begin.run;
    living_.clear();
    RemoveLogs();
    for (RankOrder& rank : begin.order.ranks) {
      const auto file = rank.env.find(std::string(kLogFileVariable));
      if (file == rank.env.end()) continue;
      // The coordinator's path means nothing here.
      if (!scratch_) MakeLogFolder();
      if (scratch_)
        logs_[rank.rank] = file->second = fmt::format("{}/{}.log", scratch_->path(), rank.rank);
      else
        rank.env.erase(file);  // there is no place for it: what NCCL says goes with what the rank prints
    }
    node_.Start(begin.order);
  }

  void Hear(const ToldRank& told) { node_.Tell(told.rank, told.message); }
  void Hear(const LookAround& look) { node_.Look(look.order); }
  void Hear(const KillRanks& kill) { node_.Kill(kill.ranks); }
  void Hear(const CoordinatorBeat&) {}
  void Hear(const AgentFarewell& farewell) { end_ = AgentEnd{farewell.status, farewell.complaint}; }

  // ---- what it is told
  // ------------------------------------------------------------------------------------------------
  void Tell(NodeEvent& event) {
    if (const auto* spawned = std::get_if<RankSpawned>(&event.what)) living_.insert(spawned->rank);
    if (const auto* ended = std::get_if<RankEnded>(&event.what)) {
      living_.erase(ended->rank);
      SendLog(ended->rank);
    }
    if (auto* saw = std::get_if<NodeSaw>(&event.what)) SendPartsOf(event.at, *saw);
    Send(Report{run_, std::move(event)});
  }

  /// A picture of many ranks may be longer than a frame: all but an empty last part goes ahead.
  void SendPartsOf(Clock::time_point at, NodeSaw& saw) {
    const auto part = [&] { return NodeSaw{.id = saw.id, .ranks = {}, .sockets = {}, .texts = {}, .more = true}; };
    for (RankSight& rank : saw.ranks) {
      NodeSaw one = part();
      one.ranks.push_back(std::move(rank));
      Send(Report{run_, {at, std::move(one)}});
    }
    for (std::size_t begin = 0; begin < saw.sockets.size(); begin += kSocketsAFrame) {
      NodeSaw one = part();
      one.sockets.assign(
          saw.sockets.begin() + static_cast<std::ptrdiff_t>(begin),
          saw.sockets.begin() + static_cast<std::ptrdiff_t>(std::min(begin + kSocketsAFrame, saw.sockets.size())));
      Send(Report{run_, {at, std::move(one)}});
    }
    for (auto& [name, text] : saw.texts) {
      NodeSaw one = part();
      one.texts.emplace(name, std::move(text));
      Send(Report{run_, {at, std::move(one)}});
    }
    saw = NodeSaw{.id = saw.id, .ranks = {}, .sockets = {}, .texts = {}, .more = false};
  }

  // ---- logs
  // -----------------------------------------------------------------------------------------------------------
  void MakeLogFolder() {
    Result<ScratchFolder> made = ScratchFolder::In(setup_.scratch);
    if (made) scratch_.emplace(std::move(*made));
  }

  void RemoveLogs() {
    scratch_.reset();
    logs_.clear();
  }

  /// Its begin and its end: libraries say at the begin what they use, and at the end what went wrong.
  void SendLog(int rank) {
    const auto found = logs_.find(rank);
    if (found == logs_.end() || channel_->unsent() > kUnsentLogs) return;
    std::ifstream file(found->second, std::ios::binary | std::ios::ate);
    if (!file) return;
    const auto size = static_cast<std::size_t>(std::max<std::streamoff>(file.tellg(), 0));
    const bool cut = size > kLogHead + kLogTail;
    SendLogFrom(file, rank, 0, cut ? kLogHead : size);
    if (!cut) return;
    Send(LogPiece{rank, fmt::format("\n[{} bytes left out here]\n", size - kLogHead - kLogTail)});
    SendLogFrom(file, rank, size - kLogTail, kLogTail);
  }

  void SendLogFrom(std::ifstream& file, int rank, std::size_t begin, std::size_t bytes) {
    file.seekg(static_cast<std::streamoff>(begin));
    while (bytes > 0) {
      std::string text(std::min(bytes, kLogPiece), '\0');
      file.read(text.data(), static_cast<std::streamsize>(text.size()));
      text.resize(static_cast<std::size_t>(file.gcount()));
      if (text.empty()) return;
      bytes -= text.size();
      Send(LogPiece{rank, std::move(text)});
    }
  }

  const AgentSetup& setup_;
  std::optional<Channel> channel_;
  LocalNode node_;
  int run_ = 0;
  std::set<int> living_;
  std::optional<ScratchFolder> scratch_;  ///< for what libraries log
  std::map<int, std::string> logs_;
  Clock::time_point heard_{}, next_beat_{};
  std::optional<AgentEnd> end_;
};

}  // namespace

AgentEnd RunAgent(const AgentSetup& setup) { return Agent(setup).Run(); }

}  // namespace inquest
