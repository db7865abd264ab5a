// Letters, digits and words of ASCII, whatever the locale: what formats are written in.
#pragma once

#include <cstddef>
#include <string_view>

namespace inquest {

inline constexpr std::size_t kNowhere = std::string_view::npos;  ///< where nothing was found

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
constexpr bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
constexpr bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
constexpr bool IsLetter(char c) { return IsUpper(c) || IsLower(c); }
constexpr bool IsWordChar(char c) { return IsLetter(c) || IsDigit(c) || c == '_'; }  ///< what a name is made of

constexpr bool Contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

}  // namespace inquest
