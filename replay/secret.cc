// HMAC-SHA256 and constant-time comparison of Nettle, random numbers of the kernel.
#include "replay/secret.h"

#include <sys/random.h>
#include <fmt/format.h>
#include <nettle/hmac.h>
#include <nettle/memops.h>
#include <nettle/version.h>

namespace inquest {

std::string Hmac(std::string_view key, std::string_view text) {
  const auto bytes = [](std::string_view of) { return reinterpret_cast<const std::uint8_t*>(of.data()); };
  std::string digest(kDigestBytes, '\0');
  static_assert(kDigestBytes == SHA256_DIGEST_SIZE);
  hmac_sha256_ctx context;
  ::hmac_sha256_set_key(&context, key.size(), bytes(key));
  ::hmac_sha256_update(&context, text.size(), bytes(text));
#if NETTLE_VERSION_MAJOR >= 4
  ::hmac_sha256_digest(&context, reinterpret_cast<std::uint8_t*>(digest.data()));
#else
  ::hmac_sha256_digest(&context, digest.size(), reinterpret_cast<std::uint8_t*>(digest.data()));
#endif
  return digest;
}

bool SameBytes(std::string_view a, std::string_view b) {
  return a.size() == b.size() && ::memeql_sec(a.data(), b.data(), a.size()) != 0;
}

std::string RandomBytes() {
  std::string bytes(kDigestBytes, '\0');
  INQUEST_CHECK(::getentropy(bytes.data(), bytes.size()) == 0);
  return bytes;
}

Result<std::string> TokenFrom(std::string text, std::string_view source) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  if (text.size() < kLeastTokenBytes || text.size() > 4096)
    return Error{fmt::format("the job token is {}", text.size() > 4096
                                                        ? "longer than 4096 characters"
                                                        : fmt::format("shorter than {} characters", kLeastTokenBytes)),
                 "make one with `openssl rand -hex 32`, and give the same one to every node", std::string(source)};
  return text;
}

}  // namespace inquest
