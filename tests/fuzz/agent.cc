// Bytes from a peer at the port of a replay: before it has proved anything, as frames, and as messages of one that has.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "replay/agent_wire.h"
#include "replay/channel.h"
#include "replay/links.h"
#include "replay/secret.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace inquest;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  for (const Side side : {Side::kCoordinator, Side::kAgent}) {
    Handshake handshake(side, "a token of the fuzzer", std::string(kDigestBytes, 'n'));
    std::string input(bytes), answer;
    INQUEST_CHECK(handshake.Take(input, answer) != Handshake::State::kDone);
  }
  FrameReader reader("key");
  reader.Add(bytes);
  INQUEST_CHECK(!reader.Next());  // nobody forges a frame
  (void)DecodeToAgent(bytes);
  (void)DecodeToSupervisor(bytes);
  const auto message = DecodeToCoordinator(bytes);
  if (!message) return 0;
  INQUEST_CHECK(DecodeToCoordinator(Encode(*message)).has_value());
  if (const auto* report = std::get_if<Report>(&*message)) {
    if (const auto* saw = std::get_if<NodeSaw>(&report->event.what)) (void)LinksBetween(saw->sockets);
  }
  return 0;
}
