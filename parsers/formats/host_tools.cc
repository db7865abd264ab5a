// What the readers of tools' outputs share: the shell's prompt in front of a command, and the events of one host.
#include "parsers/formats/host_tools.h"

#include <charconv>

#include "core/host_name.h"
#include "core/pattern.h"

namespace inquest {
namespace {

template <class T>
std::optional<T> Whole(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<Prompt> ReadPrompt(std::string_view text) {
  static const Pattern kPrompt(
      R"(^\s*(?:\([\w.-]{1,32}\) ?)?\[?[\w.-]{1,32}@([A-Za-z0-9][\w.-]{0,62})[: ][^#$]{0,120}?\]?[#$]\s*(\S.*)$)");
  const auto match = kPrompt.Search(text.substr(0, 512));
  if (!match) return std::nullopt;
  return Prompt{match->text(1), match->text(2)};
}

std::optional<std::int64_t> WholeNumber(std::string_view text) { return Whole<std::int64_t>(text); }
std::optional<double> WholeDecimal(std::string_view text) { return Whole<double>(text); }

bool HostStates::ConsumePrompt(const Record& record) {
  const auto prompt = ReadPrompt(record.text);
  if (!prompt) return false;
  host_ = HostName(prompt->host).Short();
  return true;
}

void HostStates::Add(const Record& record, What what, EventSink& out) {
  if (kept_ == kMostStates) return;
  ++kept_;
  Event event = EventFrom(record, std::move(what));
  if (!event.origin.host && !host_.empty()) event.origin.host = Known<std::string>{host_, Basis::kEnvelope, {}};
  out.Add(std::move(event));
}

}  // namespace inquest
