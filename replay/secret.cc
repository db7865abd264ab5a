// HMAC-SHA256, random numbers and constant-time comparison, all of OpenSSL.
#include "replay/secret.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

namespace inquest {

std::string Hmac(std::string_view key, std::string_view text) {
  std::string digest(kDigestBytes, '\0');
  unsigned int length = 0;
  const auto* made = ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                            reinterpret_cast<unsigned char*>(digest.data()), &length);
  INQUEST_CHECK(made != nullptr && length == kDigestBytes);
  return digest;
}

bool SameBytes(std::string_view a, std::string_view b) { return a.size() == b.size() && ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

std::string RandomBytes() {
  std::string bytes(kDigestBytes, '\0');
  INQUEST_CHECK(::RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size())) == 1);
  return bytes;
}

std::string HexDigits(std::string_view bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return text;
}

Result<std::string> TokenFrom(std::string text, std::string_view source) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  if (text.size() < kLeastTokenBytes || text.size() > 4096)
    return Error{fmt::format("the job token is {}", text.size() > 4096 ? "longer than 4096 characters" : fmt::format("shorter than {} characters", kLeastTokenBytes)),
                 "make one with `openssl rand -hex 32`, and give the same one to every node", std::string(source)};
  return text;
}

}  // namespace inquest
