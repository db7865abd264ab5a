// kernel_log.cc: what the Linux kernel, the NVIDIA driver and the NVSwitch driver say in a host's kernel log.
// Format:  one line a report behind a head of kernel_head.cc, but for SXids and what kernel_tasks.cc reads
//            NVRM: Xid (PCI:0000:3b:00): 31, pid=41234, name=python3, Ch 00000008, intr 00000000. MMU Fault: ...
//            NVRM: Xid (PCI:0000:3b:00 GPU-I:01): 13, pid='<unknown>', name=<unknown>, Graphics Exception: ...
//            NVRM: Xid (0000:02:00): 79, GPU has fallen off the bus.              (before about 440: no pid, no name)
//            nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault Up
// Clock:   since boot (no date: hosts do not compare), or the date that dmesg -T, syslog or the journal put there.
// Not read: registers, the RPC history behind Xid 119.
#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "core/ascii.h"
#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/kernel.h"

namespace inquest {
namespace {

/// Without what a JSON line has behind the message, and blanks.
std::string Detail(std::string_view text) {
  const std::size_t end = text.find("\"}");
  text = text.substr(0, end);
  while (!text.empty() && std::string_view(" \t\",").find(text.back()) != std::string_view::npos) text.remove_suffix(1);
  return std::string(text);
}

// ---- the NVIDIA driver -----------------------------------------------------------------------------------------

/// `pid=41234, name=python3, ` in front of the body; both quoted, unknown or absent by release.
void ReadProcess(std::string_view& body, XidReported& xid) {
  static const Pattern kPid(R"(^pid=(?:'?(\d+)'?|[^,]{0,16})(?:, |$))");
  static const Pattern kName(R"(^name=(<unknown>|.{1,15}?)(?:, |$))");
  if (const auto pid = kPid.Search(body)) {
    xid.pid = pid->number(1);
    body.remove_prefix(pid->text(0).size());
  }
  if (const auto name = kName.Search(body)) {
    if (name->text(1) != "<unknown>") xid.process = std::string(name->text(1));
    body.remove_prefix(name->text(0).size());
  }
}

std::optional<XidReported> ReadXid(const KernelHead& head) {
  static const Pattern kXid(
      R"((?:^|[^S])Xid \((?:PCI:)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}(?:\.\d)?)[^)]{0,40}\): (\d{1,4})\b,? ?(.*)$)");
  static const Pattern kCaused(R"( ?caused by previous Xid (\d{1,4}))");
  // Who hands a log on may have masked the address: `(PCI:...)`, `(PCI:xxxx:xx:xx)`, `(PCI:<removed>)`.
  static const Pattern kMasked(R"((?:^|[^S])Xid \((?:PCI:)?([0-9A-Za-z.:*#<>_\[\]? -]{0,40})\): (\d{1,4})\b,? ?(.*)$)");
  auto match = kXid.Search(head.message);
  const bool masked = !match;
  if (masked) match = kMasked.Search(head.message);
  if (!match) return std::nullopt;
  XidReported xid;
  if (!masked) xid.bus_id = KernelBusId(match->text(1));
  xid.xid = static_cast<int>(*match->number(2));
  xid.uptime = head.uptime;
  std::string_view body = match->text(3);
  ReadProcess(body, xid);
  if (const auto caused = kCaused.Search(body)) xid.caused_by = static_cast<int>(*caused->number(1));
  xid.detail = Detail(body);
  return xid;
}

std::optional<DriverFault> ReadDriverFault(const KernelHead& head) {
  static const Pattern kDevice(
      R"(NVRM: GPU (?:at PCI:)?([0-9A-Fa-f:.]+): (GPU has fallen off the bus|RmInitAdapter failed!.*|rm_init_adapter failed.*))");
  static const Pattern kNoDevice(
      R"(NVRM: (RmInitAdapter failed!.*|fallen off the bus and is not responding.*|_kgspBootGspRm: unexpected WPR2 already up.*|API mismatch: .*))");
  DriverFault fault;
  fault.uptime = head.uptime;
  if (const auto device = kDevice.Search(head.message)) {
    fault.bus_id = KernelBusId(device->text(1));
    fault.detail = Detail(device->text(2));
  } else if (const auto other = kNoDevice.Search(head.message)) {
    fault.detail = Detail(other->text(1));
  } else {
    return std::nullopt;
  }
  if (Contains(fault.detail, "WPR2")) fault.how = DriverFault::How::kFirmwareStuck;
  if (Contains(fault.detail, "dapter failed") || Contains(fault.detail, "_adapter failed"))
    fault.how = DriverFault::How::kInitFailed;
  if (Contains(fault.detail, "API mismatch")) fault.how = DriverFault::How::kApiMismatch;
  return fault;
}

/// The first of an SXid's lines; the others repeat its number with a severity in digits and with registers.
std::optional<SxidReported> ReadSxid(const KernelHead& head) {
  static const Pattern kSxid(
      R"((nvswitch\d+): SXid \(PCI:([0-9A-Fa-f:.]+)\): (\d{4,6}), (?:(Fatal|Non-fatal|Correctable), )?(?:Link (\d+) )?(.*)$)");
  const auto match = kSxid.Search(head.message);
  if (!match || match->text(6).starts_with("Severity ") || match->text(6).starts_with("Data {")) return std::nullopt;
  using Severity = SxidReported::Severity;
  SxidReported sxid;
  sxid.device = std::string(match->text(1));
  sxid.bus_id = KernelBusId(match->text(2));
  sxid.sxid = static_cast<int>(*match->number(3));
  const std::string_view severity = match->text(4);
  if (!severity.empty())
    sxid.severity = severity == "Fatal"       ? Severity::kFatal
                    : severity == "Non-fatal" ? Severity::kNonFatal
                                              : Severity::kCorrectable;
  if (const auto link = match->number(5)) sxid.link = static_cast<int>(*link);
  sxid.detail = Detail(match->text(6));
  sxid.uptime = head.uptime;
  return sxid;
}

// ---- the parser ------------------------------------------------------------------------------------------------

// Stamps and hosts that stand on lines of their own: journalctl -o export and json-pretty, dmesg -J.
class Fields {
 public:
  /// Whether the line was such a field. An export's host may follow its message: the event waits for it.
  bool Consume(const Record& record, EventSink& out) {
    static const Pattern kHost(R"(^[ \t]*"?_HOSTNAME"?(?:=| : ")([A-Za-z0-9][\w.-]*))");
    static const Pattern kReal(R"(^[ \t]*"?__REALTIME_TIMESTAMP"?(?:=| : ")(\d{1,17}))");
    static const Pattern kUptime(R"(^[ \t]*"time": +(\d{1,10}\.\d{6}),?$)");
    if (const auto host = kHost.Search(record.text)) {
      host_ = std::string(host->text(1));
      Flush(out);
      return true;
    }
    if (const auto real = kReal.Search(record.text)) {
      Flush(out);
      at_ =
          Timestamp{.at = std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::microseconds(*real->number(1))),
                    .zone_known = true,
                    .resolution = std::chrono::microseconds(1)};
      return true;
    }
    const auto uptime = kUptime.Search(record.text);
    if (!uptime) return false;
    stamp_ = fmt::format("[{}]", uptime->text(1));
    return true;
  }
  void Complete(KernelHead& head) {
    if (!head.uptime && !stamp_.empty()) head.uptime = ReadKernelHead(stamp_).uptime;
    stamp_.clear();
    if (!head.at && at_) head.at = at_;
    if (head.host.empty()) head.host = host_;
  }
  void Hold(Event event, EventSink& out) {
    if (host_.empty())
      held_.push_back(std::move(event));
    else
      out.Add(std::move(event));
  }
  void Flush(EventSink& out) {
    for (Event& event : held_) {
      if (!host_.empty() && !event.origin.host) event.origin.host = Known<std::string>{host_, Basis::kEnvelope, {}};
      out.Add(std::move(event));
    }
    held_.clear();
  }

 private:
  std::string host_, stamp_;
  std::optional<Timestamp> at_;
  std::vector<Event> held_;
};

class KernelLogParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    if (fields_.Consume(record, out)) return true;
    if (!wrapped_) return Read(record, out);
    const Wrapped first = *std::exchange(wrapped_, std::nullopt);
    static const Pattern kRest(R"(^[ \t]*(\d{1,4}, .*))");
    const auto rest = kRest.Search(record.text);
    if (!rest) return Read(record, out);
    const std::string text = first.text + " " + std::string(rest->text(1));
    return Read({text, first.origin, first.at, first.where}, out);
  }
  bool Expects(std::string_view) const override { return wrapped_.has_value(); }

  void Finish(EventSink& out) override {
    stuck_.Finish(out);
    pcie_.Finish(out);
    cper_.Finish(out);
    fields_.Flush(out);
  }

 private:
  /// A line that a terminal broke behind the address.
  struct Wrapped {
    std::string text;
    Origin origin;
    std::optional<Timestamp> at;
    SourcePos where;
  };

  bool Read(const Record& record, EventSink& out) {
    KernelHead head = ReadKernelHead(record.text);
    fields_.Complete(head);
    if (cper_.Consume(record, head, out)) return AddDetail(KernelPart::kMachineCheck, record, head, out);
    if (stuck_.Consume(record, head, out) || oom_.Consume(record, head, out)) return true;
    if (pcie_.Consume(record, head, out)) return AddDetail(KernelPart::kPcie, record, head, out);
    if (DescribeDevices(record, head, out)) return true;
    if (auto what = Read(head)) {
      Emit(KernelEvent(record, head, std::move(*what)), head, out);
      return true;
    }
    if (head.message.ends_with("):") && Contains(head.message, "NVRM: Xid ("))
      wrapped_ = {std::string(record.text), record.origin, record.at, record.where};
    if (Contains(head.message, "SXid (PCI:")) return AddDetail(KernelPart::kNvswitch, record, head, out);
    if (Contains(head.message, "NVRM: ") || Contains(head.message, "NVRM nv"))
      return AddDetail(KernelPart::kNvidia, record, head, out);
    if (Contains(head.message, "mlx5_core ")) AddDetail(KernelPart::kMlx5, record, head, out);
    if (Contains(head.message, "[Hardware Error]: ")) AddDetail(KernelPart::kMachineCheck, record, head, out);
    return false;
  }

  bool AddDetail(KernelPart subsystem, const Record& record, const KernelHead& head, EventSink& out) {
    Emit(KernelEvent(record, head, KernelDetail{.subsystem = subsystem, .uptime = head.uptime}), head, out);
    return true;
  }
  void Emit(Event event, const KernelHead& head, EventSink& out) {
    if (head.exported)
      fields_.Hold(std::move(event), out);
    else
      out.Add(std::move(event));
  }

  /// What the log says of the parts: whether the line says nothing else.
  bool DescribeDevices(const Record& record, const KernelHead& head, EventSink& out) {
    static const Pattern kNamed(R"(NVRM: GPU at PCI:([0-9A-Fa-f:.]+): (GPU-[0-9a-f-]+))");
    static const Pattern kSerial(R"(NVRM: GPU Board Serial Number: (\S{1,64}))");
    static const Pattern kMachine(R"(^DMI: (.{1,200}, BIOS .{1,100}))");
    static const Pattern kFirmware(R"(mlx5_core ([0-9a-f:.]+): .*firmware version: (\S{1,64}))");
    const auto describe = [&](GpuId id, std::string_view property, std::string_view value) {
      DeviceDescribed what{.id = std::move(id), .property = std::string(property), .value = Detail(value)};
      Emit(KernelEvent(record, head, std::move(what)), head, out);
      return true;
    };
    if (const auto named = kNamed.Search(head.message)) {
      named_ = {.index = {}, .bus_id = KernelBusId(named->text(1)), .uuid = std::string(named->text(2))};
      constexpr std::size_t kMostUuids = 256;
      if (uuids_.size() < kMostUuids) uuids_[named_.bus_id] = named_.uuid;
      describe(named_, "uuid", named_.uuid);
      return AddDetail(KernelPart::kNvidia, record, head, out);
    }
    if (const auto serial = kSerial.Search(head.message)) {
      if (!named_.bus_id.empty()) describe(named_, "serial", serial->text(1));
      return AddDetail(KernelPart::kNvidia, record, head, out);
    }
    if (!Contains(head.message, "NVRM: GPU ")) named_ = {};  // the two stand together, where nobody writes between
    if (const auto machine = kMachine.Search(head.message)) return describe({}, "machine", machine->text(1));
    if (const auto firmware = kFirmware.Search(head.message))
      describe({.index = {}, .bus_id = KernelBusId(firmware->text(1)), .uuid = {}}, "hca_firmware_version",
               firmware->text(2));
    return false;
  }

  std::optional<What> Read(const KernelHead& head) {
    if (auto xid = ReadXid(head)) {
      xid->uuid = uuids_[xid->bus_id];
      return *xid;
    }
    if (auto sxid = ReadSxid(head)) return *sxid;
    if (Contains(head.message, "SXid (PCI:")) return std::nullopt;
    if (Contains(head.message, "NVRM: ")) return ReadDriver(head);
    if (auto fault = ReadKernelFault(head)) return *fault;
    // The end of a line whose head another writer tore off.
    if (Contains(head.message, "GPU has fallen off the bus."))
      return DriverFault{.bus_id = {}, .detail = Detail(head.message), .uptime = head.uptime};
    auto notice = ReadKernelNotice(head.message);
    if (!notice) return std::nullopt;
    notice->uptime = head.uptime;
    return *notice;
  }

  /// Lines of the driver's that are no Xid. One that says an Xid 79 again is an event of its own: it stands alone at
  /// times.
  std::optional<What> ReadDriver(const KernelHead& head) {
    static const Pattern kProbed(R"(NVRM: The NVIDIA GPU ([0-9A-Fa-f:.]+))");
    static const Pattern kLoading(R"(NVRM: loading NVIDIA .*Kernel Module.*?  (\d+\.[\d.]+))");
    if (const auto probed = kProbed.Search(head.message)) {
      probed_ = KernelBusId(probed->text(1));
      return std::nullopt;
    }
    if (const auto loading = kLoading.Search(head.message))
      return KernelNotice{.subsystem = KernelPart::kNvidia,
                          .what = KernelNews::kDriverLoaded,
                          .device = std::string(loading->text(1)),
                          .uptime = head.uptime};
    auto fault = ReadDriverFault(head);
    if (!fault) return std::nullopt;
    if (fault->detail.starts_with("fallen off")) fault->bus_id = probed_;
    return *fault;
  }

  Fields fields_;
  OomReader oom_;
  StuckReader stuck_;
  PcieReader pcie_;
  CperReader cper_;
  std::map<std::string, std::string> uuids_;  ///< by bus id
  GpuId named_;                               ///< of the line before: whose board's serial number comes next
  std::string probed_;                        ///< the GPU of a message of three lines
  std::optional<Wrapped> wrapped_;
};

constexpr std::string_view kKernelLogMarks[] = {
    "NVRM: ",
    "NVRM nv",
    "Xid (PCI:",
    "GPU has fallen off the bus.",
    // processes
    "oom-kill:constraint=",
    " invoked oom-killer",
    "ut of memory: Kill",
    "Killed process ",
    "oom_reaper: reaped process",
    "killed as a result of limit of /",
    "]: segfault at ",
    "general protection ip:",
    "general protection fault ip:",
    "] trap ",
    " blocked for more than ",
    "soft lockup - CPU#",
    "hard LOCKUP on cpu",
    "self-detected stall on CPU",
    "detected stalls on CPUs/tasks",
    "are going to be killed due to memory.oom.group",
    "due to hardware memory corruption",
    // stacks of stuck tasks: frames of a file system or a device
    "Call Trace:",
    "Call trace:",
    " state:D stack:",
    "[nvidia]",
    "[nvidia_uvm]",
    "[nvidia_modeset]",
    "[nfs]",
    "[nfsv3]",
    "[nfsv4]",
    "[sunrpc]",
    "[lustre]",
    "[ptlrpc]",
    "[osc]",
    "[mdc]",
    "[ldlm]",
    "[ceph]",
    "[libceph]",
    "[fuse]",
    "[beegfs]",
    "[mmfs26]",
    "[mmfslinux]",
    "[cifs]",
    "[ext4]",
    "[jbd2]",
    "[xfs]",
    " nfs_",
    " rpc_wait_bit",
    " fuse_",
    " ext4_",
    " jbd2_",
    " xfs_",
    " nvme_",
    " io_schedule+0x",
    // PCI Express
    " AER: ",
    "PCIe Bus Error: severity=",
    "DPC: containment event",
    "DPC containment event",
    "pciehp: Slot(",
    ": Slot(",
    "] SDES",
    "] Surprise Down Error",
    "] CmpltTO",
    "] Completion Timeout",
    "] MalfTLP",
    "] Replay Timer Timeout",
    "] BadTLP",
    "] BadDLLP",
    "] RxErr",
    "] Rollover",
    "] DLP ",
    "available PCIe bandwidth, limited by ",
    "retraining non-functional downstream link",
    ": retraining failed",
    // network
    "mlx5_core ",
    " Link ACTIVE",
    " Link DOWN",
    ": link status definitely ",
    "NETDEV WATCHDOG: ",
    "irdma ",
    "efa 0000:",
    "infiniband ",
    // storage
    "nfs: server ",
    "lockd: server ",
    "Lustre: ",
    "LustreError: ",
    "EXT4-fs ",
    "XFS (",
    "nvme nvme",
    "I/O error, dev ",
    // memory, IOMMU, heat, boot
    "[Hardware Error]: ",
    "Machine check events logged",
    "EDAC MC",
    "Memory failure: 0x",
    "DMAR: [",
    "DMAR: DRHD",
    "AMD-Vi: Event logged",
    "arm-smmu-v3 ",
    " temperature above threshold",
    " temperature is above threshold",
    "critical temperature reached",
    "Kernel panic - not syncing",
    "Linux version ",
    "DMI: ",
    "error status/mask=",
    "TLP Header: ",
    // daemons
    "nv-fabricmanager[",
    "nvidia-fabricmanager.service",
    "nvidia-peermem ",
    "nv_peer_mem",
    // a message of journalctl -o json that is an array of bytes; -o export, json-pretty; dmesg -J
    "\"MESSAGE\":[",
    "__REALTIME_TIMESTAMP=",
    "_HOSTNAME=",
    "\"__REALTIME_TIMESTAMP\" : ",
    "\"_HOSTNAME\" : ",
    "\"time\":  ",
};

}  // namespace

extern const Format kKernelLog{.name = "kernel-log",
                               .framing = Framing::kLines,
                               .component = Component::kKernel,
                               .marks = kKernelLogMarks,
                               .follow = 1,
                               .make = &Make<KernelLogParser>};

}  // namespace inquest
