// Text in UTF-16, as PowerShell's `>` writes it, turned into UTF-8 while it is read.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "parsers/byte_source.h"

namespace inquest {

/// Whether bytes are UTF-16, of either order: they begin with its mark, or every second one of most is NUL, as of Latin
/// letters.
bool IsUtf16(std::string_view head);

// By hand: iconv loads its converters from files that a node need not have.
/// Turns a stream of UTF-16 into UTF-8 without a byte order mark. A half pair becomes U+FFFD, as does an odd last byte.
class Utf16Reader {
 public:
  /// `head`: the first bytes of the stream, its mark among them where it has one; `whole`: there are no others.
  Utf16Reader(std::string head, bool whole, ReadBytes read);
  /// At most `room` bytes of text; fewer: it has ended.
  std::size_t Fill(char* to, std::size_t room);

 private:
  /// False: there is nothing left.
  bool Decode();
  /// So many bytes are there, unless the stream has ended.
  bool Have(std::size_t bytes);
  char32_t Unit() const;

  ReadBytes read_;
  std::string raw_;  ///< read, and not turned from at_ on
  std::size_t at_ = 0;
  std::string character_;  ///< the last one turned, in UTF-8: what of it did not fit stays
  bool big_endian_ = false, whole_ = false;
};

}  // namespace inquest
