// The names of bases, components and event kinds, and how a record becomes an event.
#include "core/event.h"

#include <array>
#include <iterator>

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

std::string_view Name(CommEnd::How how) {
  static constexpr std::string_view kNames[] = {"destroy", "abort", "revoke"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(CommEnd::How::kRevoke) + 1);
  return kNames[static_cast<std::size_t>(how)];
}

std::string_view Name(WorkTimedOut::How how) {
  static constexpr std::string_view kNames[] = {"watchdog", "blocking-wait", "async-error", "quoted"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(WorkTimedOut::How::kQuoted) + 1);
  return kNames[static_cast<std::size_t>(how)];
}

std::string_view Name(DesyncLine::State state) {
  static constexpr std::string_view kNames[] = {"never-joined", "not-finished", "not-joined",
                                                "finished",     "started",      "timed-out"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(DesyncLine::State::kTimedOut) + 1);
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view Name(SxidReported::Severity severity) {
  static constexpr std::string_view kNames[] = {"", "correctable", "non-fatal", "fatal"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(SxidReported::Severity::kFatal) + 1);
  return kNames[static_cast<std::size_t>(severity)];
}

std::string_view Name(DriverFault::How how) {
  static constexpr std::string_view kNames[] = {"fallen-off-bus", "init-failed", "firmware-stuck", "api-mismatch"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(DriverFault::How::kApiMismatch) + 1);
  return kNames[static_cast<std::size_t>(how)];
}

std::string_view Name(TaskStuck::How how) {
  static constexpr std::string_view kNames[] = {"blocked", "soft-lockup", "hard-lockup", "rcu-stall"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(TaskStuck::How::kRcuStall) + 1);
  return kNames[static_cast<std::size_t>(how)];
}

std::string_view Name(PcieError::Severity severity) {
  static constexpr std::string_view kNames[] = {"corrected", "non-fatal", "fatal", "contained", "link-down", "link-up"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(PcieError::Severity::kLinkUp) + 1);
  return kNames[static_cast<std::size_t>(severity)];
}

std::string_view Name(NetworkUsed::Use use) {
  static constexpr std::string_view kNames[] = {"bootstrap", "socket", "rdma", "chosen"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(NetworkUsed::Use::kChosen) + 1);
  return kNames[static_cast<std::size_t>(use)];
}

std::string_view Name(LinkPort::State state) {
  static constexpr std::string_view kNames[] = {"", "down", "init", "active"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(LinkPort::State::kActive) + 1);
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view Name(HostLimit::Of of) {
  static constexpr std::string_view kNames[] = {"locked-memory", "open-files", "processes"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(HostLimit::Of::kProcesses) + 1);
  return kNames[static_cast<std::size_t>(of)];
}

std::string_view Name(HostFact::Of of) {
  static constexpr std::string_view kNames[] = {"kernel", "command-line", "iommu"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(HostFact::Of::kIommu) + 1);
  return kNames[static_cast<std::size_t>(of)];
}

std::string_view Name(RankProgress::State state) {
  static constexpr std::string_view kNames[] = {"launched", "completed",   "not-reported", "unresponsive",
                                                "dead",     "async-error", "init-error"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(RankProgress::State::kInitError) + 1);
  return kNames[static_cast<std::size_t>(state)];
}

std::string_view Name(RankProgress::Source source) {
  static constexpr std::string_view kNames[] = {"ras", "inspector"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(RankProgress::Source::kInspector) + 1);
  return kNames[static_cast<std::size_t>(source)];
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
