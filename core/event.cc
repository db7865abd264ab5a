// The names of bases, components and event kinds, and how a record becomes an event.
#include "core/event.h"

#include <array>

namespace inquest {
namespace {

/// The longest start of `text` that fits and does not end inside a UTF-8 character.
std::string_view Cited(std::string_view text) {
  if (text.size() <= kCitedBytes) return text;
  const auto continues = [&](std::size_t at) { return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80; };
  std::size_t size = kCitedBytes;
  while (size > kCitedBytes - 3 && continues(size)) --size;
  // Four continuation bytes in a row are no character: cut anywhere.
  return text.substr(0, continues(size) ? kCitedBytes : size);
}

}  // namespace

std::string_view Name(Basis basis) {
  static constexpr std::array<std::string_view, 6> kNames = {"assumed",  "derived",  "file name",
                                                             "envelope", "observed", "given"};
  return kNames[static_cast<std::size_t>(basis)];
}

std::string_view Name(JobStopped::By by) {
  static constexpr std::array<std::string_view, 3> kNames = {"agent-signal", "slurm", "keyboard"};
  return kNames[static_cast<std::size_t>(by)];
}

std::string_view Name(Component component) {
  static constexpr std::array<std::string_view, 6> kNames = {"any", "nccl", "c10", "elastic", "kernel", "smi"};
  return kNames[static_cast<std::size_t>(component)];
}

std::string_view KindOf(const What& what) {
  return std::visit([](const auto& value) { return std::decay_t<decltype(value)>::kKind; }, what);
}

bool IsOfKernel(const What& what) {
  if (const auto* message = std::get_if<LogMessage>(&what)) return message->component == Component::kKernel;
  return std::visit(
      [](const auto& value) {
        return requires { value.uptime; };
      },
      what);
}

bool IsOfHost(const What& what) {
  return std::visit(
      [](const auto& value) {
        return requires { std::decay_t<decltype(value)>::kIsOfHost; };
      },
      what);
}

bool IsForTheRecord(const What& what) {
  return std::visit(
      [](const auto& value) {
        return requires { std::decay_t<decltype(value)>::kIsForTheRecord; };
      },
      what);
}

std::optional<std::chrono::microseconds> UptimeOf(const What& what) {
  return std::visit(
      [](const auto& value) -> std::optional<std::chrono::microseconds> {
        if constexpr (requires { value.uptime; }) return value.uptime;
        return std::nullopt;
      },
      what);
}

Event EventFrom(const Record& record, What what) {
  Event event;
  event.at = record.at;
  event.origin = record.origin;
  event.where = record.where;
  event.text = Cited(record.text);
  event.what = std::move(what);
  return event;
}

What::What() = default;
What::What(const What&) = default;
What::What(What&&) noexcept = default;
What& What::operator=(const What&) = default;
What& What::operator=(What&&) noexcept = default;
What::~What() = default;

Event::Event() = default;
Event::Event(const Event&) = default;
Event::Event(Event&&) noexcept = default;
Event& Event::operator=(const Event&) = default;
Event& Event::operator=(Event&&) noexcept = default;
Event::~Event() = default;

}  // namespace inquest
