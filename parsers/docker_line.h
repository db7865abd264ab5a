// An entry of docker's json-file logger, one a line.
// Format:  `{"log":"text\n","stream":"stderr","attrs":{...},"time":"2031-04-05T06:07:08.1Z"}`; printed by moby
//          daemon/logger/jsonfilelog. What does not end in `\n` is the first part of a line that is longer than 16 KiB.
// Clock:   the daemon's, UTC.        Not read: attrs.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace inquest {

/// Its views are of the line, or of the scratch space where the text had to be rewritten.
struct DockerLine {
  std::string_view text;          ///< without its terminator
  std::string_view stream, time;  ///< as printed; empty where there is none
  bool whole = false;             ///< all of an entry is there, and its text is one line
  bool partial = false;           ///< the text goes on in the next entry of the stream
};
/// nullopt: another line. One that is cut anywhere gives what it has.
std::optional<DockerLine> ReadDockerLine(std::string_view line, std::string& scratch);

}  // namespace inquest
