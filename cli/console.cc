// Asks the operating system about the terminal, and writes to it.
#include "cli/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

namespace inquest {
namespace {

constexpr int kWidth = 100;  ///< where nothing says how wide the page is; the same on every machine

int WidthOfOutput() {
  winsize size{};
  if (isatty(STDOUT_FILENO) != 0 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  int width = 0;
  if (const char* columns = std::getenv("COLUMNS")) std::from_chars(columns, columns + std::strlen(columns), width);
  return width > 0 && width <= 1000 ? width : kWidth;
}

bool LocaleIsUtf8() {
  for (const char* const name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* const value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    std::string locale(value);
    std::ranges::transform(locale, locale.begin(),
                           [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
    return locale.find("utf-8") != std::string::npos || locale.find("utf8") != std::string::npos;
  }
  return false;
}

bool Coloured(When when) {
  if (when != When::kAuto) return when == When::kAlways;
  const char* none = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool dumb = terminal == nullptr || std::strcmp(terminal, "dumb") == 0;
  return isatty(STDOUT_FILENO) != 0 && (none == nullptr || *none == '\0') && !dumb;
}

/// errno of the write that failed, 0 if none did.
int Write(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(file, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

TextStyle StyleOfOutput(const Options& options) {
  return {.color = Coloured(options.color) ? Color::kAlways : Color::kNever,
          .width = WidthOfOutput(),
          .utf8 = LocaleIsUtf8(),
          .whole = options.analysis.whole};
}

TextStyle StyleOfFile(const Options& options) {
  return {.color = options.color == When::kAlways ? Color::kAlways : Color::kNever,
          .width = kWidth,
          .utf8 = true,
          .whole = options.analysis.whole};
}

bool ErrorIsTerminal() { return isatty(STDERR_FILENO) != 0; }
bool OutputIsTerminal() { return isatty(STDOUT_FILENO) != 0; }
bool InputIsTerminal() { return isatty(STDIN_FILENO) != 0; }

std::optional<Error> WriteOut(std::string_view text) {
  const int error = Write(STDOUT_FILENO, text);
  if (error == 0 || error == EPIPE) return std::nullopt;
  return Error{std::strerror(error), "the verdict was not written in full", "standard output"};
}

void WriteErr(std::string_view text) { Write(STDERR_FILENO, text); }

}  // namespace inquest
