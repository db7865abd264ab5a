// The lines in which NCCL says what it talks over: interface of the bootstrap, RDMA ports, sockets.
#include "core/pattern.h"
#include "parsers/formats/nccl.h"

namespace inquest {

// Up to 2.3 each interface has a line of its own, and the first is the one that bootstraps. Ports that were joined to
// one device stand in braces: `[0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}`.
std::optional<NetworkUsed> ReadNetwork(std::string_view message) {
  static const Pattern kHead(R"(^(?:(Bootstrap|NET/IB|NET/Socket) ?: Using |NET : Using interface ))");
  static const Pattern kPort(R"(^[^;]*?\]=?\{?(?:\[\d+\])? ?([\w.-]{1,64}:\d{1,3})/(?:IB|RoCE))");
  static const Pattern kInterface(R"(^(?:[^;]*?\[\d+\]| *)([^\s:<\[\]]{1,32}):([0-9A-Fa-f.:]+)(?:%\S*?)?<\d+>)");
  static const Pattern kOutOfBand(R"(; OOB [^\s:]{1,32}:([0-9A-Fa-f.:]+)(?:%\S*?)?<\d+>)");
  constexpr std::size_t kMostDevices = 64;
  const auto head = kHead.Search(message);
  if (!head) return std::nullopt;
  NetworkUsed used;
  if (head->text(1) == "NET/IB") used.use = NetworkUsed::Use::kRdma;
  if (head->text(1) == "NET/Socket") used.use = NetworkUsed::Use::kSocket;
  if (const auto out_of_band = kOutOfBand.Search(message)) used.address = std::string(out_of_band->text(1));
  const Pattern& device = used.use == NetworkUsed::Use::kRdma ? kPort : kInterface;
  std::string_view rest = message.substr(head->text(0).size());
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
