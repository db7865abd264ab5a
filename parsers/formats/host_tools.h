// What the readers of tools' outputs share: the shell's prompt in front of a command, and the events of one host.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/event_sink.h"

namespace inquest {

/// `root@node07:~# ibstat`, `[ubuntu@node07 ~]$ ip -s link`: where it was typed, and what. Views into the text.
struct Prompt {
  std::string_view host, command;
};
std::optional<Prompt> ReadPrompt(std::string_view text);

/// The number that is the whole of a text.
std::optional<std::int64_t> WholeNumber(std::string_view text);
std::optional<double> WholeDecimal(std::string_view text);

// A pasted terminal names its host in the prompt, for what follows it. A log that shows states without end must not
// cost memory without end: what comes after kMostStates is read and not kept.
class HostStates {
 public:
  /// Whether the line is a prompt.
  bool ConsumePrompt(const Record& record);
  void Add(const Record& record, What what, EventSink& out);

 private:
  static constexpr int kMostStates = 4096;
  std::string host_;
  int kept_ = 0;
};

}  // namespace inquest
