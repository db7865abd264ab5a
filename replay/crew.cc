// Who connects is a stranger until it has proved the token: it gets a fixed few bytes of memory, one of a few places,
// and five seconds.
#include "replay/crew.h"

#include <poll.h>
#include <sys/socket.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>

#include "replay/connect.h"
#include "replay/remote_node.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr milliseconds kCrewTick{100}, kGreetingLimit{5000}, kProbeLimit{15'000}, kFarewell{1000};
constexpr std::size_t kMostStrangers = 128;

struct Peer {
  Channel channel;
  std::string address;
  Clock::time_point since;
};

/// `NCCL 2.28.9` of `NCCL 2.28.9 of /usr/lib/libnccl.so.2, 8 GPUs`.
std::string NameAndVersion(const std::string& engine) {
  const std::size_t first = engine.find(' ');
  return first == std::string::npos ? engine : engine.substr(0, engine.find_first_of(" ,", first + 1));
}

}  // namespace

struct Crew::State {
  CrewSetup setup;
  OwnedFd listener;
  std::uint16_t port = 0;
  std::vector<std::unique_ptr<RemoteNode>> nodes;  ///< by index - 1; null: not here yet
  std::vector<CrewMember> members;
  std::deque<Peer> strangers;
  std::map<std::string, int> refused;  ///< address -> connections with another token
  std::map<std::string, int> foreign;  ///< address -> connections that were no inquest

  std::string NameOf(int index) const {
    const auto place = static_cast<std::size_t>(index);
    const std::string name = index == 0                                     ? setup.host
                             : place - 1 < nodes.size() && nodes[place - 1] ? nodes[place - 1]->hello().host
                             : place < setup.names.size()                   ? setup.names[place]
                                                                            : "";
    return name.empty() ? fmt::format("node {}", index) : fmt::format("node {} ({})", index, name);
  }

  void Accept() {
    while (true) {
      OwnedFd socket(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!socket.is_open()) return;
      if (strangers.size() == kMostStrangers) strangers.pop_front();  // the one that has had the most time
      const std::string address = PeerAddressOf(socket.get());
      strangers.push_back({Channel(std::move(socket), Side::kCoordinator, setup.token), address, Clock::now()});
    }
  }

  /// What is wrong with a node that came.
  std::optional<Error> Greet(Peer& peer, const std::string& text) {
    auto message = DecodeToCoordinator(text);
    auto* hello = message ? std::get_if<AgentHello>(&*message) : nullptr;
    if (hello == nullptr) {
      peer.channel.Close("it did not say hello");
      return std::nullopt;
    }
    const std::string who = fmt::format("node {} ({})", hello->index, hello->host.empty() ? peer.address : hello->host);
    if (hello->version != setup.version || hello->wire != kWireVersion) {
      const bool same = hello->version == setup.version;
      return Error{fmt::format("{} has inquest {}{}, {} has inquest {}{}", NameOf(0), setup.version,
                               same ? fmt::format(" (wire {})", kWireVersion) : "", who, hello->version,
                               same ? fmt::format(" (wire {})", hello->wire) : ""),
                   "install the same inquest on every node", ""};
    }
    if (hello->count != setup.count)
      return Error{
          fmt::format("{} was started as one of {} nodes, {} as one of {}", who, hello->count, NameOf(0), setup.count),
          "start all of them alike", ""};
    if (hello->index < 1 || hello->index >= setup.count)
      return Error{fmt::format("{} has a number that none of {} nodes has", who, setup.count),
                   "nodes are counted from 0", ""};
    std::unique_ptr<RemoteNode>& place = nodes[static_cast<std::size_t>(hello->index) - 1];
    if (place)
      return Error{fmt::format("two nodes came as node {}: {} and {}", hello->index, place->hello().host, who),
                   "every node needs a number of its own", ""};
    place = std::make_unique<RemoteNode>(std::move(peer.channel), std::move(*hello), peer.address);
    return std::nullopt;
  }

  std::optional<Error> HearStrangers() {
    for (std::size_t i = 0; i < strangers.size();) {
      Peer& peer = strangers[i];
      const std::vector<std::string> texts = peer.channel.Work();
      if (!texts.empty()) {
        const auto error = Greet(peer, texts.front());
        if (error) return error;
      }
      const bool closed = peer.channel.state() == Channel::State::kClosed;
      if (closed && texts.empty()) ++(peer.channel.refused() ? refused : foreign)[peer.address];
      if (closed || !texts.empty() || Clock::now() - peer.since > kGreetingLimit)
        strangers.erase(strangers.begin() + static_cast<std::ptrdiff_t>(i));
      else
        ++i;
    }
    return std::nullopt;
  }

  bool Complete() const {
    return std::ranges::all_of(nodes, [](const auto& node) { return node != nullptr; });
  }

  /// A node that came and went while the others were awaited.
  std::optional<Error> LookForLost() {
    for (const auto& node : nodes) {
      if (!node) continue;
      (void)node->channel().Work();
      if (node->channel().state() == Channel::State::kClosed)
        return Error{fmt::format("{} was lost before all were there: {}", NameOf(node->hello().index),
                                 node->channel().why_closed()),
                     "", ""};
    }
    return std::nullopt;
  }

  Error Missing(milliseconds limit) const {
    std::string who;
    int more = 0;
    for (int index = 1; index < setup.count; ++index) {
      if (nodes[static_cast<std::size_t>(index) - 1]) continue;
      if (who.size() > 400) {
        ++more;
        continue;
      }
      who += fmt::format("{}{}", who.empty() ? "" : ", ", NameOf(index));
    }
    if (more > 0) who += fmt::format(" and {} more", more);
    std::string hint = fmt::format("start the same command there; it must reach this host at port {}", port);
    for (const auto& [address, times] : refused)
      hint += fmt::format("; {} connected {} and did not know the job token", address,
                          times == 1 ? "once" : fmt::format("{} times", times));
    for (const auto& [address, times] : foreign)
      hint += fmt::format("; what connected {} from {} was no inquest of this version",
                          times == 1 ? "once" : fmt::format("{} times", times), address);
    return {fmt::format("{} of {} never came within {:.1f} s", who, setup.count,
                        std::chrono::duration<double>(limit).count()),
            hint, ""};
  }

  std::optional<Error> Join(milliseconds limit) {
    const Clock::time_point last = Clock::now() + limit;
    while (!Complete()) {
      std::vector<pollfd> ready = {{listener.get(), POLLIN, 0}};
      for (const Peer& peer : strangers) ready.push_back({peer.channel.fd(), POLLIN, 0});
      (void)::poll(ready.data(), ready.size(), static_cast<int>(kCrewTick.count()));
      Accept();
      if (auto error = HearStrangers()) return error;
      if (auto error = LookForLost()) return error;
      if (Complete()) break;
      if (setup.interrupted && setup.interrupted())
        return Error{"interrupted while waiting for the other nodes", "", ""};
      if (const std::string why = setup.hopeless ? setup.hopeless() : ""; !why.empty()) return Error{why, "", ""};
      if (Clock::now() >= last) return Missing(limit);
    }
    listener.Close();
    strangers.clear();
    Introduce();
    return std::nullopt;
  }

  /// Addresses: those by which we reach one another; who came over loopback lives on this host and has our address.
  void Introduce() {
    CrewMember own{.host = setup.host, .net = NetOfThisThread(), .address = "", .version = setup.version};
    for (const auto& node : nodes) {
      const std::string address = OwnAddressOf(node->channel().fd());
      if (own.address.empty() || IsLoopbackAddress(own.address)) own.address = address;
    }
    members = {own};
    for (const auto& node : nodes) {
      const bool here = IsLoopbackAddress(node->address()) && node->hello().net == own.net;
      members.push_back({node->hello().host, node->hello().net,
                         here                            ? own.address
                         : node->hello().address.empty() ? node->address()
                                                         : node->hello().address,
                         node->hello().local_rank, node->hello().version});
    }
  }
};

Result<Crew> Crew::Listen(CrewSetup setup) {
  Result<OwnedFd> listener = ListenOn(setup.port);
  if (!listener) return listener.error();
  auto state = std::make_unique<State>();
  state->port = PortOf(listener->get());
  state->listener = std::move(*listener);
  state->nodes.resize(static_cast<std::size_t>(setup.count - 1));
  state->setup = std::move(setup);
  return Crew(std::move(state));
}

Crew::Crew(std::unique_ptr<State> state) : state_(std::move(state)) {}
Crew::Crew(Crew&&) noexcept = default;
Crew::~Crew() = default;

std::uint16_t Crew::port() const { return state_->port; }
const std::vector<CrewMember>& Crew::members() const { return state_->members; }

std::optional<Error> Crew::Join(milliseconds limit) {
  auto error = state_->Join(limit);
  if (error) {
    // Those that are greeting just now are told as well.
    for (Peer& peer : state_->strangers) {
      peer.channel.Send(Encode(ToAgent(AgentFarewell{3, error->message})));
      peer.channel.Drain(kCrewTick);
    }
    Farewell(3, error->message);
  }
  return error;
}

std::vector<Node*> Crew::Nodes(Node* own) const {
  std::vector<Node*> nodes = {own};
  for (const auto& node : state_->nodes) nodes.push_back(node.get());
  return nodes;
}

Result<std::vector<EngineProbe>> Crew::Probe(const std::string& engine,
                                             const std::map<std::string, std::string>& options,
                                             const std::optional<EngineProbe>& own) {
  for (const auto& node : state_->nodes) node->Send(ProbeOrder{engine, options});
  std::vector<EngineProbe> found = {own.value_or(EngineProbe())};
  for (const auto& node : state_->nodes) {
    const auto answer = node->AwaitProbe(kProbeLimit);
    const std::string who = state_->NameOf(node->hello().index);
    if (!answer)
      return Error{fmt::format("{} does not say what it has of {}", who, engine), node->channel().why_closed(), ""};
    if (!answer->missing.empty())
      return Error{fmt::format("{}: {}", who, answer->missing), answer->hint, fmt::format("engine {}", engine)};
    const std::size_t first = own ? 0 : 1;
    if (found.size() > first && NameAndVersion(answer->found.version) != NameAndVersion(found[first].version))
      return Error{fmt::format("{} has {}, {} has {}", state_->NameOf(static_cast<int>(first)), found[first].version,
                               who, answer->found.version),
                   "every node needs the same version of it", fmt::format("engine {}", engine)};
    found.push_back(answer->found);
  }
  return found;
}

void Crew::Farewell(int status, const std::string& complaint) {
  for (const auto& node : state_->nodes) {
    if (!node) continue;
    node->Send(AgentFarewell{status, complaint});
    node->channel().Drain(kFarewell);
  }
}

}  // namespace inquest
