// The lines in which NCCL says what it talks over: interface of the bootstrap, RDMA ports, sockets, and by name the
// network that it chose for a communicator, its own or a plugin's (since 2.7).
#include "core/pattern.h"
#include "parsers/formats/nccl.h"

namespace inquest {
namespace {

struct Head {
  NetworkUsed::Use use;
  std::size_t size;
};

/// `Bootstrap : Using `, `NET/IB: Using `, `NET : Using interface `: what is said before anything is read of it.
std::optional<Head> ReadHead(std::string_view message) {
  using Use = NetworkUsed::Use;
  static constexpr std::pair<std::string_view, Use> kHeads[] = {{"Bootstrap : Using ", Use::kBootstrap},
                                                                {"Bootstrap: Using ", Use::kBootstrap},
                                                                {"NET/IB : Using ", Use::kRdma},
                                                                {"NET/IB: Using ", Use::kRdma},
                                                                {"NET/Socket : Using ", Use::kSocket},
                                                                {"NET/Socket: Using ", Use::kSocket},
                                                                {"NET : Using interface ", Use::kBootstrap}};
  for (const auto& [words, use] : kHeads)
    if (message.starts_with(words)) return Head{use, words.size()};
  return std::nullopt;
}

}  // namespace

// Up to 2.3 each interface has a line of its own, and the first is the one that bootstraps. Ports that were joined to
// one device stand in braces: `[0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}`.
std::optional<NetworkUsed> ReadNetwork(std::string_view message) {
  static const Pattern kPort(R"(^[^;]*?\]=?\{?(?:\[\d+\])? ?([\w.-]{1,64}:\d{1,3})/(?:IB|RoCE))");
  static const Pattern kInterface(R"(^(?:[^;]*?\[\d+\]| *)([^\s:<\[\]]{1,32}):([0-9A-Fa-f.:]+)(?:%\S*?)?<\d+>)");
  static const Pattern kOutOfBand(R"(; OOB [^\s:]{1,32}:([0-9A-Fa-f.:]+)(?:%\S*?)?<\d+>)");
  static const Pattern kChosen(R"(^Using network (\S.{0,63}?)\s*$)");
  constexpr std::size_t kMostDevices = 64;
  if (const auto chosen = kChosen.Search(message))
    return NetworkUsed{NetworkUsed::Use::kChosen, {std::string(chosen->text(1))}, ""};
  const auto head = ReadHead(message);
  if (!head) return std::nullopt;
  NetworkUsed used;
  used.use = head->use;
  if (const auto out_of_band = kOutOfBand.Search(message)) used.address = std::string(out_of_band->text(1));
  const Pattern& device = used.use == NetworkUsed::Use::kRdma ? kPort : kInterface;
  std::string_view rest = message.substr(head->size);
  while (used.devices.size() < kMostDevices) {
    const auto match = device.Search(rest);
    if (!match) break;
    used.devices.emplace_back(match->text(1));
    if (used.address.empty()) used.address = std::string(match->text(2));
    rest.remove_prefix(match->text(0).size());
  }
  if (used.devices.empty()) return std::nullopt;
  return used;
}

}  // namespace inquest
