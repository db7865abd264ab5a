// The names of bases, components and event kinds, and how a record becomes an event.
#include "core/event.h"

#include "core/names.h"

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
  static constexpr std::string_view kNames[] = {"assumed", "derived", "file name", "envelope", "observed", "given"};
  return NameIn<Basis::kGiven>(kNames, basis);
}

std::string_view Name(JobStopped::By by) {
  static constexpr std::string_view kNames[] = {"agent-signal", "slurm", "keyboard"};
  return NameIn<JobStopped::By::kKeyboard>(kNames, by);
}

std::string_view Name(CommEnd::How how) {
  static constexpr std::string_view kNames[] = {"destroy", "abort", "revoke"};
  return NameIn<CommEnd::How::kRevoke>(kNames, how);
}

std::string_view Name(WorkTimedOut::How how) {
  static constexpr std::string_view kNames[] = {"watchdog", "blocking-wait", "async-error", "quoted"};
  return NameIn<WorkTimedOut::How::kQuoted>(kNames, how);
}

std::string_view Name(DesyncLine::State state) {
  static constexpr std::string_view kNames[] = {"never-joined", "not-finished", "not-joined",
                                                "finished",     "started",      "timed-out"};
  return NameIn<DesyncLine::State::kTimedOut>(kNames, state);
}

std::string_view Name(SxidReported::Severity severity) {
  static constexpr std::string_view kNames[] = {"", "correctable", "non-fatal", "fatal"};
  return NameIn<SxidReported::Severity::kFatal>(kNames, severity);
}

std::string_view Name(DriverFault::How how) {
  static constexpr std::string_view kNames[] = {"fallen-off-bus", "init-failed", "firmware-stuck", "api-mismatch"};
  return NameIn<DriverFault::How::kApiMismatch>(kNames, how);
}

std::string_view Name(TaskStuck::How how) {
  static constexpr std::string_view kNames[] = {"blocked", "soft-lockup", "hard-lockup", "rcu-stall"};
  return NameIn<TaskStuck::How::kRcuStall>(kNames, how);
}

std::string_view Name(PcieError::Severity severity) {
  static constexpr std::string_view kNames[] = {"corrected", "non-fatal", "fatal", "contained", "link-down", "link-up"};
  return NameIn<PcieError::Severity::kLinkUp>(kNames, severity);
}

std::string_view Name(NetworkUsed::Use use) {
  static constexpr std::string_view kNames[] = {"bootstrap", "socket", "rdma", "chosen"};
  return NameIn<NetworkUsed::Use::kChosen>(kNames, use);
}

std::string_view Name(LinkPort::State state) {
  static constexpr std::string_view kNames[] = {"", "down", "init", "active"};
  return NameIn<LinkPort::State::kActive>(kNames, state);
}

std::string_view Name(HostLimit::Of of) {
  static constexpr std::string_view kNames[] = {"locked-memory", "open-files", "processes"};
  return NameIn<HostLimit::Of::kProcesses>(kNames, of);
}

std::string_view Name(HostFact::Of of) {
  static constexpr std::string_view kNames[] = {"kernel", "command-line", "iommu"};
  return NameIn<HostFact::Of::kIommu>(kNames, of);
}

std::string_view Name(RankProgress::State state) {
  static constexpr std::string_view kNames[] = {"launched", "completed",   "not-reported", "unresponsive",
                                                "dead",     "async-error", "init-error"};
  return NameIn<RankProgress::State::kInitError>(kNames, state);
}

std::string_view Name(RankProgress::Source source) {
  static constexpr std::string_view kNames[] = {"ras", "inspector"};
  return NameIn<RankProgress::Source::kInspector>(kNames, source);
}

std::string_view Name(Component component) {
  static constexpr std::string_view kNames[] = {"any", "nccl", "c10", "elastic", "kernel", "smi"};
  return NameIn<Component::kSmi>(kNames, component);
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
