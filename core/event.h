// What the logs say happened: events, who wrote them and where they stand.
#ifndef INQUEST_CORE_EVENT_H  // no pragma: compilers know files by their times, and this one may come precompiled out
                              // of a cache
#define INQUEST_CORE_EVENT_H

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/activity.h"
#include "core/ids.h"
#include "core/kernel_part.h"
#include "core/rank_set.h"
#include "core/reporter.h"
#include "core/time.h"

namespace inquest {

/// Where a line stands. `line` counts '\n' from 1; a progress bar's '\r' pieces share a line. `offset` in bytes. Both
/// are of the text that the input became.
struct SourcePos {
  std::uint32_t input = 0;
  std::uint64_t line = 0;
  std::uint64_t offset = 0;
  std::uint64_t parts = 0;  ///< lines of the input in front of it that `line` does not count: they went into others
  std::uint64_t InputLine() const { return line + parts; }
  auto operator<=>(const SourcePos&) const = default;
};

/// The rule of a rank that is srun's task number: a rank where srun starts one task a GPU, a node where it starts
/// agents.
inline constexpr std::string_view kSrunTask = "task number of srun -l";

/// Who wrote a line. Absent knowledge stays absent.
struct Origin {
  std::optional<Known<GlobalRank>> rank;
  std::optional<LocalRank> local_rank;
  std::optional<Known<std::string>> host;
  std::optional<std::int64_t> pid;
  std::optional<int> cuda_dev;  ///< index inside CUDA_VISIBLE_DEVICES, as printed
  std::string writer;           ///< the launcher's own tag, e.g. `[default3]`, `RayTrainWorker`; may be empty
};

/// One framed line, or a whole document. Views die when Consume returns.
struct Record {
  std::string_view text;  ///< without envelope, terminator and colour codes
  Origin origin;
  std::optional<Timestamp> at;
  SourcePos where;
};

/// A field by which one event of a kind differs from the next: equal in all of them, two events say the same again.
template <class T>
struct KeyField {
  const T& value;
};
template <class T>
constexpr KeyField<T> Key(const T& value) {
  return {value};
}

/// Every kind lists all its fields here, in their order: `f` is given their names, as they stand, and their values.
/// What an event takes of memory, when it is a repeat, and how it is printed follow from that; core/event_fields.h
/// reads it. The build refuses a list that lacks a field.
#define INQUEST_FIELDS(...)              \
  template <class F>                     \
  constexpr auto Fields(F&& f) const {   \
    return f(#__VA_ARGS__, __VA_ARGS__); \
  }

/// Which program's own prefix a line carries.
enum class Component : std::uint8_t { kAny, kNccl, kC10, kElastic, kKernel, kSmi };
std::string_view Name(Component component);

// ---- what: NCCL ------------------------------------------------------------------------------------------------

/// `NCCL version 2.21.5+cuda12.4`.
struct NcclVersion {
  static constexpr std::string_view kKind = "nccl-version";
  std::string version;  ///< "2.21.5"
  std::string cuda;     ///< "12.4", may be empty
  INQUEST_FIELDS(version, cuda)
};

/// Init START or COMPLETE of a communicator, its split or shrink children included.
struct CommInit {
  static constexpr std::string_view kKind = "comm-init";
  bool complete = false;
  std::string api;  ///< `ncclCommInitRank`, `ncclCommSplit`, ...; empty where not printed
  std::uint64_t comm = 0;
  GroupRank rank;
  int nranks = 0;
  std::optional<int> cuda_dev, nvml_dev;
  std::optional<std::string> bus_id;  ///< normalised `0000:5d:00.0`
  std::optional<std::uint64_t> comm_id;
  std::optional<std::uint64_t> parent;
  std::optional<int> color, key, split_count;
  INQUEST_FIELDS(Key(complete), api, Key(comm), rank, nranks, cuda_dev, nvml_dev, bus_id, comm_id, parent, color, key,
                 split_count)
};

/// Destroy, Abort, Revoke or Finalize of a communicator.
struct CommEnd {
  static constexpr std::string_view kKind = "comm-end";
  enum class How : std::uint8_t { kDestroy, kAbort, kRevoke };
  How how = How::kDestroy;
  bool complete = false;
  std::uint64_t comm = 0;
  std::optional<GroupRank> rank;
  INQUEST_FIELDS(how, complete, comm, rank)
};
std::string_view Name(CommEnd::How how);

/// How two ranks of a communicator are connected; folded per block: `count` lines said the same.
struct ChannelsVia {
  static constexpr std::string_view kKind = "channels-via";
  std::string
      via;  ///< `P2P/IPC`, `P2P/CUMEM`, `SHM/direct/direct`, `NET/IB/0/GDRDMA` cut at the device: `NET/IB/GDRDMA`
  std::uint64_t count = 0;
  INQUEST_FIELDS(Key(via), count)
};

/// A NCCL WARN line.
struct NcclWarn {
  static constexpr std::string_view kKind = "nccl-warn";
  std::string site;  ///< `transport/net_ib.cc:95`
  std::string text;
  INQUEST_FIELDS(Key(site), text)
};

/// `init.cc:1358 -> 6 [Async thread]`.
struct NcclReturn {
  static constexpr std::string_view kKind = "nccl-return";
  std::string site;
  int result = 0;
  INQUEST_FIELDS(Key(site), Key(result))
};

/// `NCCL_X set by environment to Y`, or an `export NCCL_X=Y` seen.
struct EnvironmentSet {
  static constexpr std::string_view kKind = "environment";
  std::string name, value;
  INQUEST_FIELDS(Key(name), value)
};

// ---- what: PyTorch ---------------------------------------------------------------------------------------------

/// The fields of WorkNCCL(...) as printed; absent fields were not printed.
struct WorkFields {
  std::optional<SeqId> seq;
  std::string op;
  std::optional<std::int64_t> numel_in, numel_out;
  std::optional<std::vector<std::int64_t>> shape;
  std::optional<std::int64_t> timeout_ms;
  INQUEST_FIELDS(Key(seq), op, numel_in, numel_out, shape, timeout_ms)
};

/// The watchdog, or a blocking wait, gave up on one operation.
struct WorkTimedOut {
  static constexpr std::string_view kKind = "work-timed-out";
  enum class How : std::uint8_t { kWatchdog, kBlockingWait, kAsyncError, kQuoted };
  How how = How::kWatchdog;  ///< kQuoted: repeated inside another message (`what():`, "terminated with exception")
  std::optional<GroupRank> group_rank;  ///< of `[Rank r]`: local to the group, can be stale
  WorkFields work;
  std::optional<std::int64_t> ran_ms;
  INQUEST_FIELDS(how, Key(group_rank), Key(work), ran_ms)
};
std::string_view Name(WorkTimedOut::How how);

/// Where a rank's process group stood: work at fault, last enqueued, last completed. -1 (as printed): none ever.
struct GroupStatus {
  static constexpr std::string_view kKind = "group-status";
  std::string pg_id, pg_guid, pg_desc;  ///< each may be empty
  std::optional<GroupRank> group_rank;
  std::optional<std::int64_t> failed_work, last_enqueued, last_completed;
  INQUEST_FIELDS(Key(pg_id), Key(pg_guid), pg_desc, group_rank, failed_work, last_enqueued, last_completed)
};

/// "Received a dump signal ... from rank N", "First PG on this rank to signal dumping" (from absent).
struct DumpSignal {
  static constexpr std::string_view kKind = "dump-signal";
  std::optional<GlobalRank> from;
  INQUEST_FIELDS(from)
};

/// The heartbeat monitor found the watchdog stuck.
struct HeartbeatLost {
  static constexpr std::string_view kKind = "heartbeat-lost";
  std::optional<std::int64_t> seconds;
  INQUEST_FIELDS(seconds)
};

/// One line of a desync report: ranks that never joined, or finished / joined / started some collective.
struct DesyncLine {
  static constexpr std::string_view kKind = "desync";
  enum class State : std::uint8_t { kNeverJoined, kNotFinished, kNotJoined, kFinished, kStarted, kTimedOut };
  State state = State::kNeverJoined;
  std::vector<int> ranks;  ///< of the group
  std::string op;
  std::optional<SeqId> seq;
  INQUEST_FIELDS(state, ranks, op, seq)
};
std::string_view Name(DesyncLine::State state);

/// One side of a DETAIL fingerprint mismatch.
struct Fingerprint {
  std::optional<SeqId> seq;
  std::string op;
  std::optional<std::vector<std::int64_t>> shape;
  std::string dtype;
  INQUEST_FIELDS(seq, op, shape, dtype)
};
/// TORCH_DISTRIBUTED_DEBUG=DETAIL found two ranks in different collectives.
struct FingerprintMismatch {
  static constexpr std::string_view kKind = "fingerprint-mismatch";
  GroupRank rank_a, rank_b;
  Fingerprint a, b;
  INQUEST_FIELDS(rank_a, rank_b, a, b)
};

/// monitoredBarrier named the ranks that did not come.
struct MonitoredBarrierFailed {
  static constexpr std::string_view kKind = "monitored-barrier";
  std::optional<GroupRank> printer;
  std::vector<int> ranks;
  std::optional<std::int64_t> timeout_ms;
  INQUEST_FIELDS(printer, ranks, timeout_ms)
};

/// How many came to the barrier in the store that every process group begins with, as a rank there counts them.
struct StoreBarrierCount {
  static constexpr std::string_view kKind = "store-barrier-count";
  std::optional<GlobalRank> rank;
  std::int64_t size = 0, came = 0;
  bool gave_up = false;
  INQUEST_FIELDS(rank, size, came, gave_up)
};

/// A rank waited in vain for the ncclUniqueId that another rank publishes.
struct UniqueIdWait {
  static constexpr std::string_view kKind = "unique-id-wait";
  GroupRank waiter, publisher;
  std::string key, error;
  INQUEST_FIELDS(waiter, publisher, key, error)
};

/// A wait for other ranks ran out that names none of them: Gloo's send or receive, a key of the store.
struct WaitGivenUp {
  static constexpr std::string_view kKind = "wait-given-up";
  std::string on;  ///< `Gloo recv`, `store key /default_pg/0//cuda//0`
  std::optional<std::int64_t> timeout_ms;
  INQUEST_FIELDS(on, timeout_ms)
};

/// barrier() guessed its device.
struct GuessedDevice {
  static constexpr std::string_view kKind = "guessed-device";
  std::optional<GroupRank> group_rank;
  int device = 0;
  INQUEST_FIELDS(group_rank, device)
};

/// A rank reports its own device: `Process rank: 0, device: cuda:0`, `LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0,1]`.
struct DeviceReported {
  static constexpr std::string_view kKind = "device-reported";
  std::optional<GlobalRank> rank;
  int device = 0;
  INQUEST_FIELDS(rank, device)
};

/// The job's size, as something printed it (world_size=..., nranks of the default communicator is not this).
struct WorldSize {
  static constexpr std::string_view kKind = "world-size";
  int size = 0;
  INQUEST_FIELDS(size)
};

// ---- what: processes, exceptions, launchers --------------------------------------------------------------------

/// A process ended, as its parent saw it.
struct ProcessExit {
  static constexpr std::string_view kKind = "process-exit";
  std::optional<std::int64_t> pid;
  std::optional<GlobalRank> rank;
  std::optional<LocalRank> local_rank;
  std::optional<std::string> host;
  std::optional<int> exit_code;  ///< as printed where >= 0
  std::optional<int> signal;     ///< 9 for exitcode -9, "Killed", 137
  std::optional<int> task;       ///< srun's, where it may count nodes and not ranks
  bool first_observed = false;   ///< torchelastic's "Root Cause (first observed failure)"
  Reporter reporter = Reporter::kUnknown;
  INQUEST_FIELDS(Key(pid), Key(rank), local_rank, host, exit_code, signal, task, first_observed, reporter)
};

/// Where a process was when a signal ended it: of the native stack that its handler printed, the first frame that is
/// neither the handler's nor the C library's. What was not printed is empty.
struct CrashFrame {
  static constexpr std::string_view kKind = "crash-frame";
  std::string function;  ///< `ncclProxyService`, as printed: perhaps mangled
  std::string library;   ///< `libnccl.so.2`, or the program's name
  std::string file;      ///< of the source
  INQUEST_FIELDS(Key(function), Key(library), Key(file))
};

/// A launcher told a process to stop: a consequence, unless nothing else went wrong.
struct SignalSent {
  static constexpr std::string_view kKind = "signal-sent";
  std::optional<std::int64_t> pid;
  int signal = 15;
  INQUEST_FIELDS(pid, signal)
};

/// The agent, the scheduler or the user stopped the job.
struct JobStopped {
  static constexpr std::string_view kKind = "job-stopped";
  enum class By : std::uint8_t { kAgentSignal, kSlurm, kKeyboard };
  By by = By::kAgentSignal;
  std::string reason;  ///< `TIME LIMIT`, `PREEMPTION`, `SIGTERM`, ...; may be empty
  INQUEST_FIELDS(by, reason)
};
std::string_view Name(JobStopped::By by);

/// An uncaught exception: the end of a traceback.
struct ExceptionRaised {
  static constexpr std::string_view kKind = "exception";
  std::string type;     ///< `torch.OutOfMemoryError`
  std::string message;  ///< first line
  std::string frame;    ///< innermost frame of the user's own code, `train.py:84 in main`; else innermost of all
  std::vector<std::string> stack;  ///< `file:line in function`, outermost first, at most 64
  bool ignored = false;            ///< Python says that it ignored it: of a destructor, or at exit
  bool chained_first = false;      ///< a later traceback of the same chain follows; this one is nearer the cause
  SourcePos begin;                 ///< the line "Traceback (most recent call last):", or the first that is there
  std::string process = {};        ///< multiprocessing's name of the child that died of it, `Process-1`; else empty
  bool headless = false;           ///< that line is not there, or another writer's
  INQUEST_FIELDS(Key(type), message, Key(frame), stack, ignored, chained_first, begin, process, headless)
};

/// A line that a rule asked for, or that stands next to one; `hits` are the ids that the sieve gave it.
struct LogMessage {
  static constexpr std::string_view kKind = "log-message";
  Component component = Component::kAny;
  std::string text;  ///< empty: Event::text holds all of it
  std::vector<std::uint32_t> hits;
  bool sampled = false;  ///< plain, and kept only because every so many bytes one line is
  INQUEST_FIELDS(component, text, Key(hits), sampled)
};

// ---- what: devices ---------------------------------------------------------------------------------------------

// nvidia-smi says the same in a table, in -q, in XML, in CSV and in dmon's columns. Whichever was collected, it becomes
// these: what a form does not print is absent.

/// Which GPU is meant, as far as the line or its section says.
struct GpuId {
  std::optional<int> index;  ///< nvidia-smi's
  std::string bus_id;        ///< normalised `0000:5d:00.0`
  std::string uuid;          ///< `GPU-...`
  INQUEST_FIELDS(Key(index), Key(bus_id), Key(uuid))
};

/// One GPU, as it was when nvidia-smi looked.
struct GpuSnapshot {
  static constexpr std::string_view kKind = "gpu-snapshot";
  static constexpr bool kIsOfHost = true;
  GpuId id;
  std::string name;
  std::optional<int> utilization_percent, temperature_c;
  std::optional<int> pstate;  ///< 0 of P0
  std::optional<double> power_w, power_cap_w;
  std::optional<std::int64_t> memory_used_mib, memory_total_mib;
  bool error = false;  ///< some value reads ERR!, "Unknown Error" or "GPU is lost"; not a power draw alone
  std::string driver, cuda;
  bool mig = false;
  std::optional<bool> persistence;
  std::optional<int> pcie_gen, pcie_gen_max, pcie_width, pcie_width_max;
  std::optional<int> nvlinks_active, nvlinks_inactive;
  std::string fabric_state;          ///< `Completed`, `In Progress`, ...
  std::optional<int> attached_gpus;  ///< as counted by nvidia-smi on this host
  std::optional<Timestamp> taken;    ///< by the host's clock: later than what it shows began
  INQUEST_FIELDS(Key(id), name, utilization_percent, temperature_c, pstate, power_w, power_cap_w, memory_used_mib,
                 memory_total_mib, error, driver, cuda, mig, persistence, pcie_gen, pcie_gen_max, pcie_width,
                 pcie_width_max, nvlinks_active, nvlinks_inactive, fabric_state, attached_gpus, taken)
};

/// A line that says of a GPU what a GPU that is well does not have.
struct GpuCondition {
  static constexpr std::string_view kKind = "gpu-condition";
  static constexpr bool kIsOfHost = true;
  GpuId id;
  std::string property;  ///< by its name in --query-gpu: `remapped_rows.pending`; `nvlink.state`, `nvlink.errors`,
                         ///< `violations.thermal` have none
  std::string value;     ///< as printed; `8 of 16` for a width
  INQUEST_FIELDS(Key(id), Key(property), value)
};

/// A line that says what a GPU, its driver or its host is, or what one of its counters stood at, whether it is well or
/// not. Nothing is argued from it: it is for whoever has to name the part.
struct DeviceDescribed {
  static constexpr std::string_view kKind = "device-described";
  static constexpr bool kIsOfHost = true;
  static constexpr bool kIsForTheRecord = true;
  GpuId id;              ///< empty: the host, or what all its GPUs share
  std::string property;  ///< by its name in --query-gpu where it has one: `serial`, `vbios_version`; `machine`
  std::string value;     ///< as printed
  INQUEST_FIELDS(Key(id), Key(property), Key(value))
};

/// One process on a GPU. The pid is the host's.
struct GpuProcess {
  static constexpr std::string_view kKind = "gpu-process";
  static constexpr bool kIsOfHost = true;
  GpuId id;
  std::int64_t pid = 0;
  std::string type, name;
  std::optional<std::int64_t> memory_mib;
  INQUEST_FIELDS(Key(id), Key(pid), type, name, memory_mib)
};

/// A GPU's row of `topo -m` or `topo -p2p`: how it reaches each of the others.
struct GpuTopologyRow {
  static constexpr std::string_view kKind = "gpu-topology";
  static constexpr bool kIsOfHost = true;
  int index = 0;
  std::vector<std::pair<int, std::string>> peers;  ///< index, `NV18`, `SYS`, `OK`, `CNS`, ...; without itself
  INQUEST_FIELDS(Key(index), peers)
};

// ---- what: the kernel ------------------------------------------------------------------------------------------
// The writer of these is the kernel: pids, hosts and addresses inside are what the line speaks of, not who printed it.
// `uptime` counts from boot, where the line is stamped so; it orders and spaces lines of one boot of one host.

/// A numbered error that the NVIDIA driver reports against a PCI address.
struct XidReported {
  static constexpr std::string_view kKind = "xid";
  int xid = 0;
  std::string bus_id;  ///< normalised `0000:5d:00.0`; empty where the line is cut before it
  std::optional<std::int64_t>
      pid;              ///< the host's; of the channel's owner, or of whoever called the driver: may be innocent
  std::string process;  ///< at most 15 bytes; empty where not printed
  std::string detail;
  std::optional<int> caused_by;  ///< "caused by previous Xid 149"
  std::string uuid;              ///< `GPU-...`, where the driver named the GPU before
  std::optional<std::chrono::microseconds> uptime;
  INQUEST_FIELDS(Key(xid), Key(bus_id), pid, process, detail, caused_by, uuid, uptime)
};

/// A numbered error of an NVSwitch. Its three or four lines are one event.
struct SxidReported {
  static constexpr std::string_view kKind = "sxid";
  enum class Severity : std::uint8_t { kNotPrinted, kCorrectable, kNonFatal, kFatal };
  int sxid = 0;
  std::string device;  ///< `nvswitch3`
  std::string bus_id;
  Severity severity = Severity::kNotPrinted;
  std::optional<int> link;
  std::string detail;
  std::optional<std::chrono::microseconds> uptime;
  INQUEST_FIELDS(Key(sxid), Key(device), bus_id, severity, link, detail, uptime)
};
std::string_view Name(SxidReported::Severity severity);

/// The NVIDIA driver says of a device, without a number: lost, will not start, not of the driver's version.
struct DriverFault {
  static constexpr std::string_view kKind = "driver-fault";
  enum class How : std::uint8_t { kFallenOffBus, kInitFailed, kFirmwareStuck, kApiMismatch };
  How how = How::kFallenOffBus;
  std::string bus_id;  ///< empty where the line names none
  std::string detail;
  std::optional<std::chrono::microseconds> uptime;
  INQUEST_FIELDS(how, bus_id, detail, uptime)
};
std::string_view Name(DriverFault::How how);

/// The OOM killer's victim, or, with pid 0, that it was called: `process` is then who asked for memory.
struct KernelKill {
  static constexpr std::string_view kKind = "kernel-kill";
  std::int64_t pid = 0;  ///< the host's
  std::string process;
  bool cgroup = false;  ///< the limit of a cgroup was hit, not the host's memory
  std::string cgroup_path;
  std::optional<std::chrono::microseconds> uptime;
  INQUEST_FIELDS(Key(pid), process, cgroup, cgroup_path, uptime)
};

/// How a process ends whose page the memory lost: by SIGBUS.
inline constexpr std::string_view kHardwareMemory = "hardware memory error";

/// A process crashed on a CPU exception.
struct KernelFault {
  static constexpr std::string_view kKind = "kernel-fault";
  std::string how;       ///< `segfault`, `general protection`, `trap invalid opcode`, ..., kHardwareMemory
  std::int64_t pid = 0;  ///< of the thread, on the host
  std::string process;   ///< the thread's name
  std::string library;   ///< where it happened; empty: not in a mapped file
  std::optional<std::chrono::microseconds> uptime;
  INQUEST_FIELDS(how, Key(pid), process, library, uptime)
};

/// A task blocked for long, or a CPU that did not schedule.
struct TaskStuck {
  static constexpr std::string_view kKind = "task-stuck";
  enum class How : std::uint8_t { kBlocked, kSoftLockup, kHardLockup, kRcuStall };
  How how = How::kBlocked;
  std::optional<std::int64_t> pid;
  std::string process;
  std::optional<int> seconds;
  KernelPart waits_on = KernelPart::kNone;  ///< by its stack
  bool stack = false;                       ///< a stack was printed
  std::optional<std::chrono::microseconds> uptime;
  INQUEST_FIELDS(how, pid, process, seconds, waits_on, stack, uptime)
};
std::string_view Name(TaskStuck::How how);

/// A PCI Express error or a link of a slot that went down.
struct PcieError {
  static constexpr std::string_view kKind = "pcie-error";
  enum class Severity : std::uint8_t { kCorrected, kNonFatal, kFatal, kContained, kLinkDown, kLinkUp };
  Severity severity = Severity::kCorrected;
  std::string bus_id;      ///< who reports the error: device or port
  std::string reporter;    ///< the driver bound to it, `pcieport`, `nvidia`
  std::string detail;      ///< `Surprise Down Error`, `Data Link Layer`, `Slot(7)`; several joined by `, `
  bool recovered = false;  ///< the port says that its device came back
  std::optional<std::chrono::microseconds> uptime;
  INQUEST_FIELDS(Key(severity), Key(bus_id), reporter, detail, recovered, uptime)
};
std::string_view Name(PcieError::Severity severity);

/// Any other trouble of the host's: network cards, file systems, memory, IOMMU, heat, fabric manager.
struct KernelNotice {
  static constexpr std::string_view kKind = "kernel-notice";
  KernelPart subsystem = KernelPart::kNone;
  KernelNews what = KernelNews::kError;
  std::string device;  ///< as printed: PCI address, interface, server; may be empty
  std::optional<std::chrono::microseconds> uptime;
  INQUEST_FIELDS(Key(subsystem), Key(what), Key(device), uptime)
};

/// A line of the kernel's on a device that is a part of another event, or of none. Nothing is argued from it: it is for
/// whoever has to show all that was logged.
struct KernelDetail {
  static constexpr std::string_view kKind = "kernel-detail";
  static constexpr bool kIsForTheRecord = true;
  KernelPart subsystem = KernelPart::kNone;
  std::optional<std::chrono::microseconds> uptime;
  INQUEST_FIELDS(Key(subsystem), uptime)
};

// ---- what: the host and its network ----------------------------------------------------------------------------
// A state, as some tool showed it when it was run: before the failure, after it, on another day. The host is the
// origin's.

/// What NCCL chose to talk over.
struct NetworkUsed {
  static constexpr std::string_view kKind = "network-used";
  enum class Use : std::uint8_t { kBootstrap, kSocket, kRdma, kChosen };
  Use use = Use::kBootstrap;
  std::vector<std::string> devices;  ///< `mlx5_0:1` for kRdma; for kChosen what carries: `IB`, `Socket`, `AWS
                                     ///< Libfabric`; else `eth0`
  std::string address;               ///< of the interface that bootstraps; without port, may be empty
  INQUEST_FIELDS(Key(use), devices, address)
};
std::string_view Name(NetworkUsed::Use use);

/// A port of an RDMA device, or a network interface.
struct LinkPort {
  static constexpr std::string_view kKind = "link-port";
  static constexpr bool kIsOfHost = true;
  enum class State : std::uint8_t { kNotPrinted, kDown, kInit, kActive };
  std::string device;                ///< `mlx5_0`, `eth0`
  int port = 0;                      ///< from 1; 0: a network interface
  State state = State::kNotPrinted;  ///< kInit: the link is there, and no subnet manager has configured it
  std::string phys_state;            ///< as printed
  std::optional<double> rate_gbps;
  std::optional<int> mtu, sm_lid;
  std::string link_layer;  ///< `InfiniBand`, `Ethernet`; empty: not printed
  std::string netdev;      ///< the interface of an RDMA port
  INQUEST_FIELDS(Key(device), Key(port), state, phys_state, rate_gbps, mtu, sm_lid, link_layer, netdev)
};
std::string_view Name(LinkPort::State state);

/// An address of an interface, or an entry of a port's GID table.
struct PortAddress {
  static constexpr std::string_view kKind = "port-address";
  static constexpr bool kIsOfHost = true;
  std::string device;
  int port = 0;              ///< as in LinkPort
  std::optional<int> index;  ///< of the GID
  std::string address;
  int roce_version = 0;  ///< 0: not printed, or InfiniBand
  INQUEST_FIELDS(Key(device), Key(port), Key(index), Key(address), roce_version)
};

/// A limit on what a process may use.
struct HostLimit {
  static constexpr std::string_view kKind = "host-limit";
  static constexpr bool kIsOfHost = true;
  enum class Of : std::uint8_t { kLockedMemory, kOpenFiles, kProcesses };
  Of of = Of::kLockedMemory;
  bool unlimited = false;
  std::int64_t value = 0;  ///< bytes of memory, else a count; the soft one of two
  INQUEST_FIELDS(Key(of), unlimited, value)
};
std::string_view Name(HostLimit::Of of);

/// How large /dev/shm is.
struct ShmSize {
  static constexpr std::string_view kKind = "shm-size";
  static constexpr bool kIsOfHost = true;
  std::int64_t total_bytes = 0;
  std::optional<std::int64_t> free_bytes;
  INQUEST_FIELDS(total_bytes, free_bytes)
};

/// What else a host says of itself.
struct HostFact {
  static constexpr std::string_view kKind = "host-fact";
  static constexpr bool kIsOfHost = true;
  enum class Of : std::uint8_t { kKernel, kCommandLine, kIommu };
  Of of = Of::kKernel;
  std::string value;  ///< `5.4.0-150-generic`; the kernel's command line; `Translated`, `Passthrough`
  INQUEST_FIELDS(Key(of), value)
};
std::string_view Name(HostFact::Of of);

/// Access control of a PCI bridge: whether it sends traffic between the devices below it up to the root.
struct PcieAcs {
  static constexpr std::string_view kKind = "pcie-acs";
  static constexpr bool kIsOfHost = true;
  std::string bus_id;  ///< empty: the line stands without its device
  bool on = false;
  INQUEST_FIELDS(Key(bus_id), on)
};

/// The link of a GPU or network card as it runs and as it could.
struct PcieLink {
  static constexpr std::string_view kKind = "pcie-link";
  static constexpr bool kIsOfHost = true;
  std::string bus_id, name;
  double speed_gt = 0, capable_speed_gt = 0;  ///< 0: not printed
  int width = 0, capable_width = 0;
  INQUEST_FIELDS(Key(bus_id), name, speed_gt, capable_speed_gt, width, capable_width)
};

/// What `inquest collect` could not get whole on a node. Says what was not seen, and nothing about the job.
struct NotCollected {
  static constexpr std::string_view kKind = "not-collected";
  std::string name;  ///< of the file in the bundle
  std::string reason;
  INQUEST_FIELDS(name, reason)
};

// ---- what: witnesses that look at the job from outside ---------------------------------------------------------

/// A call that had not ended when a rank's own recorder was dumped; of a rank that has none, its last one.
struct CallRecorded {
  static constexpr std::string_view kKind = "call-recorded";
  std::string pg_name, pg_desc;
  WorkFields work;        ///< its operation in the watchdog's words
  bool pairwise = false;  ///< a send, a receive, or several of them as one
  bool ended = false;
  bool gave_up = false;  ///< the watchdog had
  INQUEST_FIELDS(Key(pg_name), pg_desc, Key(work), Key(pairwise), ended, gave_up)
};

/// What a process was at when somebody looked (py-spy or gdb on a rank that hangs, faulthandler when asked), or when it
/// raised an exception whose own line is missing. Pid and host are the process'.
struct StackSeen {
  static constexpr std::string_view kKind = "stack";
  std::string tool;  ///< `py-spy`, `gdb`, `faulthandler`, `traceback`
  Activity at = Activity::kNone;
  std::string frame;  ///< the frame that tells: `save (train.py:84)`; else the innermost
  std::string thread;
  bool raised = false;  ///< an exception was raised there
  INQUEST_FIELDS(tool, at, frame, thread, raised)
};

/// How far a rank of a communicator had come, as an outsider counted: NCCL's RAS, or its Inspector.
struct RankProgress {
  static constexpr std::string_view kKind = "rank-progress";
  enum class State : std::uint8_t {
    kLaunched,
    kCompleted,
    kNotReported,
    kUnresponsive,
    kDead,
    kAsyncError,
    kInitError
  };
  enum class Source : std::uint8_t { kRas, kInspector };
  State state = State::kLaunched;
  Source source = Source::kRas;
  std::string comm;               ///< its hash as printed; empty: of the process, not of a communicator
  std::optional<GroupRank> rank;  ///< absent: `ranks` of them, which the source does not number
  int ranks = 1;
  int nranks = 0;  ///< of the communicator; 0: not printed
  std::string op;  ///< `AllReduce`; empty: all kinds counted together
  std::optional<std::int64_t> count;
  std::optional<int> gpu;
  std::optional<std::int64_t> pid;
  std::string node;  ///< as the source names it: RAS knows addresses, not names
  RankSet in_job;    ///< the same ranks by their numbers in the job's communicator; empty: not known
  INQUEST_FIELDS(Key(state), Key(source), Key(comm), Key(rank), Key(ranks), nranks, Key(op), count, gpu, pid, node,
                 in_job)
};
std::string_view Name(RankProgress::State state);
std::string_view Name(RankProgress::Source source);

/// A test of a GPU by DCGM's diagnostic. Passed and skipped tests are not events.
struct GpuDiag {
  static constexpr std::string_view kKind = "gpu-diag";
  bool failed = false;     ///< else it warned
  std::string test;        ///< `Memory`, `PCIe`, `NVLink`, ... as printed
  std::optional<int> gpu;  ///< NVML's index
  std::string detail;
  INQUEST_FIELDS(failed, Key(test), Key(gpu), detail)
};

using WhatKinds =
    std::variant<LogMessage, NcclVersion, CommInit, CommEnd, ChannelsVia, NcclWarn, NcclReturn, EnvironmentSet,
                 WorkTimedOut, GroupStatus, DumpSignal, HeartbeatLost, DesyncLine, FingerprintMismatch,
                 MonitoredBarrierFailed, StoreBarrierCount, UniqueIdWait, WaitGivenUp, GuessedDevice, DeviceReported,
                 WorldSize, ProcessExit, CrashFrame, SignalSent, JobStopped, ExceptionRaised, GpuSnapshot, GpuCondition,
                 DeviceDescribed, GpuProcess, GpuTopologyRow, XidReported, SxidReported, DriverFault, KernelKill,
                 KernelFault, TaskStuck, PcieError, KernelNotice, KernelDetail, NetworkUsed, LinkPort, PortAddress,
                 HostLimit, ShmSize, HostFact, PcieAcs, PcieLink, NotCollected, CallRecorded, StackSeen, RankProgress,
                 GpuDiag>;

/// What happened: one of the kinds above. Its copies and its end are defined in event.cc, once: every unit that moves
/// an event would else instantiate them over all kinds.
struct What : WhatKinds {
  using WhatKinds::variant;
  What();
  What(const What&);
  What(What&&) noexcept;
  What& operator=(const What&);
  What& operator=(What&&) noexcept;
  ~What();
};

/// One thing that a record says happened.
struct Event {
  std::optional<Timestamp> at;
  Origin origin;
  SourcePos where;
  std::string text;  ///< the line as cited: without envelope, at most kCitedBytes
  What what;

  Event();
  Event(const Event&);
  Event(Event&&) noexcept;
  Event& operator=(const Event&);
  Event& operator=(Event&&) noexcept;
  ~Event();
};
inline constexpr std::size_t kCitedBytes = 1024;

/// All that is held of what the line says: the message, where it is longer than what is cited.
inline std::string_view MessageOf(const Event& event) {
  const auto* message = std::get_if<LogMessage>(&event.what);
  return message == nullptr || message->text.empty() ? std::string_view(event.text) : std::string_view(message->text);
}
std::string_view KindOf(const What& what);
/// Whether the kernel, or a daemon of the host's, said it; a line that only a rule asked for counts by its component.
bool IsOfKernel(const What& what);
/// Whether it is a host's state as a tool showed it (kIsOfHost). What a job's process says of itself, as its
/// environment, is not.
bool IsOfHost(const What& what);
/// Whether nothing is argued from it (kIsForTheRecord): a timeline holds it only where the record of devices was asked
/// for.
bool IsForTheRecord(const What& what);
/// Since boot, where the kernel's line says it.
std::optional<std::chrono::microseconds> UptimeOf(const What& what);

/// An event at a record's place, by its writer.
Event EventFrom(const Record& record, What what);

}  // namespace inquest

#endif  // INQUEST_CORE_EVENT_H
