// Fuzz target: any bytes as a compressed file or an archive: each member is read to its end, and no limit is passed.
#include "parsers/archive_source.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/result.h"
#include "parsers/unpack.h"

namespace inquest {
namespace {

void Run(std::string_view bytes) {
  const std::string_view head = bytes.substr(0, kArchiveHead);
  if (!IsArchive(head)) return;
  constexpr ExpansionLimits kLimits{.bytes = 1U << 20U, .ratio = 100, .dense_bytes = 1U << 16U, .members = 64};
  const int file = ::memfd_create("fuzz", MFD_CLOEXEC);
  INQUEST_CHECK(file >= 0 && ::write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  ::lseek(file, static_cast<off_t>(head.size()), SEEK_SET);
  {
    ArchiveSource archive("fuzz.tar", std::string(head), file, kLimits, nullptr);
    std::array<char, 4096> piece{};
    std::uint64_t total = 0, members = 0;
    while (archive.Next()) {
      // Not more than the limit, and the one line that says what is wrong.
      INQUEST_CHECK(++members <= kLimits.members + 2);
      for (std::size_t got = piece.size(); got == piece.size(); total += got)
        got = archive.Read(piece.data(), piece.size());
      INQUEST_CHECK(total <= kLimits.bytes + piece.size());
    }
    INQUEST_CHECK(members > 0);
  }
  ::close(file);
}

}  // namespace
}  // namespace inquest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  inquest::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
