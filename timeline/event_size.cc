// What an event takes of memory.
#include "timeline/event_size.h"

#include <type_traits>

namespace inquest {
namespace {

constexpr std::size_t kAllocation = 16;  ///< what an allocation costs beside its bytes

std::size_t Heap(const std::string& text) { return text.capacity() <= std::string().capacity() ? 0 : text.capacity() + kAllocation; }
template <class T>
  requires std::is_trivially_copyable_v<T>
std::size_t Heap(const T&) {
  return 0;
}
template <class T>
std::size_t Heap(const std::optional<T>& value);
template <class A, class B>
std::size_t Heap(const std::pair<A, B>& pair) {
  return Heap(pair.first) + Heap(pair.second);
}
template <class T>
std::size_t Heap(const std::vector<T>& values) {
  std::size_t bytes = values.capacity() == 0 ? 0 : values.capacity() * sizeof(T) + kAllocation;
  if constexpr (!std::is_trivially_copyable_v<T>)
    for (const T& value : values) bytes += Heap(value);
  return bytes;
}
template <class T>
std::size_t Heap(const std::optional<T>& value) {
  return value ? Heap(*value) : 0;
}
template <class... T>
  requires(sizeof...(T) > 1)
std::size_t Heap(const T&... values) {
  return (Heap(values) + ...);
}

// One line for each kind that holds more than numbers; the compiler names a new one that lacks it.
std::size_t Heap(const NcclVersion& x) { return Heap(x.version, x.cuda); }
std::size_t Heap(const CommInit& x) { return Heap(x.api, x.bus_id); }
std::size_t Heap(const ChannelsVia& x) { return Heap(x.via); }
std::size_t Heap(const NcclWarn& x) { return Heap(x.site, x.text); }
std::size_t Heap(const NcclReturn& x) { return Heap(x.site); }
std::size_t Heap(const EnvironmentSet& x) { return Heap(x.name, x.value); }
std::size_t Heap(const WorkTimedOut& x) { return Heap(x.work.op, x.work.shape); }
std::size_t Heap(const GroupStatus& x) { return Heap(x.pg_id, x.pg_guid, x.pg_desc); }
std::size_t Heap(const DesyncLine& x) { return Heap(x.ranks, x.op); }
std::size_t Heap(const FingerprintMismatch& x) { return Heap(x.a.op, x.a.shape, x.a.dtype, x.b.op, x.b.shape, x.b.dtype); }
std::size_t Heap(const MonitoredBarrierFailed& x) { return Heap(x.ranks); }
std::size_t Heap(const UniqueIdWait& x) { return Heap(x.key, x.error); }
std::size_t Heap(const WaitGivenUp& x) { return Heap(x.on); }
std::size_t Heap(const ProcessExit& x) { return Heap(x.host, x.reporter); }
std::size_t Heap(const JobStopped& x) { return Heap(x.by, x.reason); }
std::size_t Heap(const ExceptionRaised& x) { return Heap(x.type, x.message, x.frame, x.stack); }
std::size_t Heap(const LogMessage& x) { return Heap(x.text, x.hits); }
std::size_t Heap(const GpuId& x) { return Heap(x.bus_id, x.uuid); }
std::size_t Heap(const GpuSnapshot& x) { return Heap(x.id) + Heap(x.name, x.driver, x.cuda, x.fabric_state); }
std::size_t Heap(const GpuCondition& x) { return Heap(x.id) + Heap(x.property, x.value); }
std::size_t Heap(const GpuProcess& x) { return Heap(x.id) + Heap(x.type, x.name); }
std::size_t Heap(const GpuTopologyRow& x) { return Heap(x.peers); }
std::size_t Heap(const XidReported& x) { return Heap(x.bus_id, x.process, x.detail, x.uuid); }
std::size_t Heap(const SxidReported& x) { return Heap(x.device, x.bus_id, x.detail); }
std::size_t Heap(const DriverFault& x) { return Heap(x.bus_id, x.detail); }
std::size_t Heap(const KernelKill& x) { return Heap(x.process, x.cgroup_path); }
std::size_t Heap(const KernelFault& x) { return Heap(x.how, x.process, x.library); }
std::size_t Heap(const TaskStuck& x) { return Heap(x.process, x.waits_on); }
std::size_t Heap(const PcieError& x) { return Heap(x.bus_id, x.reporter, x.detail); }
std::size_t Heap(const KernelNotice& x) { return Heap(x.subsystem, x.what, x.device); }
std::size_t Heap(const NetworkUsed& x) { return Heap(x.devices, x.address); }
std::size_t Heap(const LinkPort& x) { return Heap(x.device, x.phys_state, x.link_layer, x.netdev); }
std::size_t Heap(const PortAddress& x) { return Heap(x.device, x.address); }
std::size_t Heap(const HostFact& x) { return Heap(x.value); }
std::size_t Heap(const PcieAcs& x) { return Heap(x.bus_id); }
std::size_t Heap(const PcieLink& x) { return Heap(x.bus_id, x.name); }
std::size_t Heap(const NotCollected& x) { return Heap(x.name, x.reason); }
std::size_t Heap(const StackSeen& x) { return Heap(x.tool, x.at, x.frame, x.thread); }
std::size_t Heap(const RankProgress& x) { return Heap(x.source, x.comm, x.op, x.node); }
std::size_t Heap(const GpuDiag& x) { return Heap(x.test, x.detail); }

}  // namespace

std::size_t SizeOf(const Event& event) {
  const std::size_t host = event.origin.host ? Heap(event.origin.host->value) : 0;
  return sizeof(Event) + host + Heap(event.origin.writer, event.text) + std::visit([](const auto& what) { return Heap(what); }, event.what);
}

}  // namespace inquest
