// A line of `journalctl -o json`: one entry of the journal, an object of strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/time.h"

namespace inquest {

struct JournalLine {
  std::string text;  ///< as -o short prints it behind the host: `kernel: message`, `nv-fabricmanager[411]: message`; as
                     ///< syslog with a stamp where the kernel's is there
  std::string host;  ///< may be empty
  std::optional<Timestamp> at;      ///< when the kernel stamped it, else when journald read it
  std::optional<std::int64_t> pid;  ///< of an interpreter, whose tag says nothing and is left out of `text`
};
/// nullopt where the line is no whole entry with a message.
std::optional<JournalLine> ReadJournalLine(std::string_view line);

}  // namespace inquest
