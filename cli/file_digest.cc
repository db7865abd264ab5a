// SHA-256 of files, by Nettle.
#include "cli/file_digest.h"

#include <fcntl.h>
#include <unistd.h>
#include <fmt/format.h>
#include <nettle/sha2.h>
#include <nettle/version.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace inquest {

Result<Digest> Sha256OfFile(const std::string& path) {
  constexpr std::size_t kPiece = 1 << 20;
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return Error{std::strerror(errno), "", path};
  sha256_ctx context;
  ::sha256_init(&context);
  std::vector<std::uint8_t> piece(kPiece);
  Digest digest;
  int error = 0;
  while (true) {
    const ssize_t got = ::read(file, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) error = errno;
    if (got <= 0) break;
    ::sha256_update(&context, static_cast<std::size_t>(got), piece.data());
    digest.bytes += static_cast<std::uint64_t>(got);
  }
  ::close(file);
  if (error != 0) return Error{std::strerror(error), "", path};
  std::array<std::uint8_t, SHA256_DIGEST_SIZE> bytes{};
#if NETTLE_VERSION_MAJOR >= 4
  ::sha256_digest(&context, bytes.data());
#else
  ::sha256_digest(&context, bytes.size(), bytes.data());
#endif
  for (const std::uint8_t byte : bytes) digest.hex += fmt::format("{:02x}", byte);
  return digest;
}

}  // namespace inquest
