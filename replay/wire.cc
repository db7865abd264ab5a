// Messages as JSON. Bytes that are no text (addresses, ids) travel as hexadecimal digits.
#include "replay/wire.h"

#include <unistd.h>

#include <array>

#include "replay/wire_fields.h"
#include "replay/wire_json.h"

namespace inquest {
namespace {

unsigned Digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  throw wire::Malformed();
}

}  // namespace

std::string wire::BytesOfHex(const std::string& digits) {
  if (digits.size() % 2 != 0) throw Malformed();
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(Digit(digits[i]) * 16 + Digit(digits[i + 1]));
  return bytes;
}

std::string wire::HexDigits(std::string_view bytes) { return inquest::HexDigits(bytes); }

std::string HexDigits(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return text;
}

std::string OwnHostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string Encode(const ToWorker& message) { return wire::EncodeAny(message); }
std::string Encode(const ToSupervisor& message) { return wire::EncodeAny(message); }
std::optional<ToWorker> DecodeToWorker(std::string_view packet) { return wire::DecodeAny<ToWorker>(packet); }
std::optional<ToSupervisor> DecodeToSupervisor(std::string_view packet) {
  return wire::DecodeAny<ToSupervisor>(packet);
}

std::string EncodeProbe(const ProbeAnswer& answer) { return wire::EncodeAny(std::variant<ProbeAnswer>(answer)); }
std::optional<ProbeAnswer> DecodeProbe(std::string_view text) {
  auto answer = wire::DecodeAny<std::variant<ProbeAnswer>>(text);
  return answer ? std::optional(std::get<0>(*std::move(answer))) : std::nullopt;
}

}  // namespace inquest
