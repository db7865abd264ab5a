// Escape sequences of terminals, and how they look once something has spelt them out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace inquest {

/// How the byte ESC came down to us.
enum class EscapeSpelling : std::uint8_t {
  kByte,   ///< as it is
  kCaret,  ///< `^[`: cat -v, script viewers
  kOctal,  ///< `#033`: rsyslog, which spells tabs as `#011` as well
  kSlash,  ///< `\x1b`, `\033`, `\u001b`
  kGone,   ///< dropped on the way, what followed was not
  kC1,     ///< the byte 0x9b stands for ESC and `[`
};

/// Appends the line without its escape sequences: CSI (`ESC [ 31 m`, `ESC [ K`), OSC (titles, links, up to BEL or ESC
/// \), and those of two or three bytes. One that has no end ends with the line. `\r` and `\b` are left alone.
void AppendWithoutEscapes(std::string_view line, EscapeSpelling spelling, std::string& out);

/// The same of many lines.
void AppendLinesWithoutEscapes(std::string_view text, std::string& out);

/// How many sequences of that spelling there are; counts no further than `enough`.
std::size_t CountEscapes(std::string_view text, EscapeSpelling spelling, std::size_t enough);

}  // namespace inquest
