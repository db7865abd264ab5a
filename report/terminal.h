// Text made safe for a terminal and fitted to its width.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace inquest {

/// What a log or a file name says, fit to be printed: no escape sequences, no C0 or C1 controls, no invisible or
/// direction-changing code points; U+FFFD for bytes that are not UTF-8; tabs and line ends become one space.
std::string Sanitize(std::string_view text);

/// The same made visible, for where nothing obeys it: controls as their pictures (U+241B for an escape), code points
/// that hide or turn text by their numbers.
std::string Reveal(std::string_view text);

/// Columns that sanitised text takes: two for a wide character, none for a combining mark.
int Columns(std::string_view text);

/// The text if it fits, else its head and `…`.
std::string Cut(std::string_view text, int width);

/// Without runs of blanks, and if it is still too long to be shown whole, without the prefix that repeats what stands
/// beside it, or that another writer left on the line.
std::string Telling(const std::string& line, int width, int rows);

/// A line of a log that stands for itself in a picture: what tells most of it, controls made visible, cut at the width.
std::string Shortened(std::string_view line, int width);
inline constexpr int kShortened = 280;

/// Lines of at most `width` columns, broken at spaces, hard where a word is longer; at most `rows` of them, the last
/// one cut if more would follow. At least one line.
std::vector<std::string> Wrap(std::string_view text, int width, int rows);

}  // namespace inquest
