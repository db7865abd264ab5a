// Kernel logs: heads of every collector, Xids and SXids in every driver's wording, kills, crashes, PCIe, other devices.
#include <fmt/format.h>

#include "parsers/formats/kernel.h"
#include "tests/catch.h"
#include "tests/support/rows.h"

namespace inquest {

extern const Format kKernelLog;
namespace kernel_log_test {

std::string Show(const XidReported& xid) {
  std::string out = fmt::format("xid {} {}", xid.xid, xid.bus_id);
  if (xid.pid) out += fmt::format(" pid={}", *xid.pid);
  if (!xid.process.empty()) out += " name=" + xid.process;
  if (xid.caused_by) out += fmt::format(" by={}", *xid.caused_by);
  if (!xid.uuid.empty()) out += " " + xid.uuid;
  return out + (xid.detail.empty() ? "" : ": " + xid.detail);
}
std::string Show(const SxidReported& sxid) {
  static constexpr const char* kSeverities[] = {"?", "correctable", "non-fatal", "fatal"};
  std::string out = fmt::format("sxid {} {} {} {}", sxid.sxid, sxid.device, sxid.bus_id,
                                kSeverities[static_cast<int>(sxid.severity)]);
  if (sxid.link) out += fmt::format(" link={}", *sxid.link);
  return out + ": " + sxid.detail;
}
std::string Show(const DriverFault& fault) {
  return fmt::format("driver {} {}", static_cast<int>(fault.how), fault.bus_id);
}
std::string Show(const KernelKill& kill) {
  return fmt::format("kill {} {}{}", kill.pid, kill.process, kill.cgroup ? " cgroup " + kill.cgroup_path : "");
}
std::string Show(const KernelFault& fault) {
  return fmt::format("{} {} {} in {}", fault.how, fault.pid, fault.process, fault.library);
}
std::string Show(const TaskStuck& stuck) {
  return fmt::format("stuck {} {} {} {}{}{}", static_cast<int>(stuck.how), stuck.pid.value_or(-1), stuck.process,
                     stuck.seconds.value_or(-1), stuck.stack ? " stack" : "",
                     stuck.waits_on == KernelPart::kNone ? "" : " on " + std::string(Name(stuck.waits_on)));
}
std::string Show(const PcieError& error) {
  return fmt::format("pcie {} {} {}: {}", static_cast<int>(error.severity), error.reporter, error.bus_id, error.detail);
}
std::string Show(const KernelNotice& notice) {
  return fmt::format("{} {} {}", Name(notice.subsystem), Name(notice.what), notice.device);
}
template <class T>
std::string Show(const T&) {
  return std::string(T::kKind);
}

std::string ShowAll(std::string_view text) {
  return ShowEvents(kKernelLog, text, [](const auto& what) { return Show(what); });
}

template <std::size_t N>
void Check(const Row (&rows)[N]) {
  CheckRows(rows, ShowAll);
}

TEST_CASE("kernel heads: stamps, dates and hosts of every collector", "[parsers]") {
  struct HeadRow {
    const char* head;
    std::int64_t uptime_us;  ///< -1: none
    const char* at;          ///< empty: none
    const char* host;
  };
  static const HeadRow kRows[] = {
      {"", -1, "", ""},
      {"[12345.678901] ", 12345678901, "", ""},
      {"[    3.104501] ", 3104501, "", ""},
      {"[5781741.548779] ", 5781741548779, "", ""},
      {"[ 1234.5] ", 1234500000, "", ""},
      {"[    3.104501 <    0.000012>] ", 3104501, "", ""},
      {"[12345.678901] [    T41234] ", 12345678901, "", ""},
      {"[12345.678901][    C3] ", 12345678901, "", ""},
      {"<6>[  201.650687] ", 201650687, "", ""},
      {"4,123456,987654321,-;", 987654321, "", ""},
      {"4,123456,987654321,-,caller=T123;", 987654321, "", ""},
      {"kern  :warn  : [12345.678901] ", 12345678901, "", ""},
      {"[Sat Apr  5 06:07:08 2031] ", -1, "2031-04-05T06:07:08", ""},
      {"2031-04-05T06:07:08,123456+00:00 ", -1, "2031-04-05T06:07:08.123456Z", ""},
      {"kern  :err   : 2031-04-05T06:07:08,123456+02:00 ", -1, "2031-04-05T04:07:08.123456Z", ""},
      {"kern:     err: [2031-04-05T06:07:08.123456789Z]: ", -1, "2031-04-05T06:07:08.123456789Z", ""},
      {"[2031-04-05T06:07:08.123456+00:00] ", -1, "2031-04-05T06:07:08.123456Z", ""},
      {"[六 4月  5 06:07:08 2031] ", -1, "2031-04-05T06:07:08", ""},
      {"Apr 05 06:07:08 kernel: ", -1, "04-05T06:07:08", ""},
      {"Apr 05 06:07:08 node017 kernel: ", -1, "04-05T06:07:08", "node017"},
      {"Apr  5 06:07:08 node017 kernel: [12345.678901] ", 12345678901, "04-05T06:07:08", "node017"},
      {"Apr 05 06:07:08.123456 node017.example.org kernel: ", -1, "04-05T06:07:08.123456", "node017.example.org"},
      {"2031-04-05T06:07:08+00:00 node017 kernel: ", -1, "2031-04-05T06:07:08Z", "node017"},
      {"2031-04-05T06:07:08+0000 node017 kernel: ", -1, "2031-04-05T06:07:08Z", "node017"},
      {"2031-04-05T06:07:08.123456+00:00 node017 kernel: [12345.678901] ", 12345678901, "2031-04-05T06:07:08.123456Z",
       "node017"},
      {"[    3.104501] node017 kernel: ", 3104501, "", "node017"},
      {"1932904028.123456 node017 kernel: ", -1, "2031-04-02T13:47:08.123456Z", "node017"},
      {"/var/log/syslog:Apr  5 06:07:08 node017 kernel: [ 1234.5] ", 1234500000, "04-05T06:07:08", "node017"},
      {"> [12345.678901] ", 12345678901, "", ""},
      {"node017 login: [12345.678901] ", 12345678901, "", ""},
      {"2031-04-05T06:07:08.123456Z [12345.678901] ", 12345678901, "2031-04-05T06:07:08.123456Z", ""},
      {"2031-04-05T06:07:08.123456789Z stdout F <4>[12345.678901] ", 12345678901, "2031-04-05T06:07:08.123456789Z", ""},
      {"2031-04-05T06:07:09.123456Z Apr 05 06:07:08 node017 kernel: ", -1, "2031-04-05T06:07:09.123456Z", "node017"},
      {"[  +0.000012] ", -1, "", ""},
      {"kernel: ", -1, "", ""},
  };
  for (const HeadRow& row : kRows) {
    CAPTURE(row.head);
    const auto events =
        ParseLines(kKernelLog, std::string(row.head) + "NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\n");
    REQUIRE(events.size() == 1);
    const auto* xid = std::get_if<XidReported>(&events[0].what);
    REQUIRE(xid != nullptr);
    CHECK(xid->bus_id == "0000:3b:00.0");
    CHECK((xid->uptime ? xid->uptime->count() : -1) == row.uptime_us);
    CHECK((events[0].at ? FormatTime(*events[0].at) : "") == row.at);
    CHECK((events[0].origin.host ? events[0].origin.host->value : "") == row.host);
    CHECK_FALSE(events[0].origin.pid);
  }
}

TEST_CASE("hardware errors that the firmware reports: device by device", "[parsers]") {
  const std::string head = "[ 10.5] {2}[Hardware Error]: ";
  const auto error = [&](const char* severity, const char* section) {
    return head + "event severity: " + severity + "\n" + head + " Error 0, type: " + severity + "\n" + head +
           "  section_type: " + section + "\n" + head + "  device_id: 0000:3b:00.0\n" + head + "  slot: 0\n" + head +
           "  vendor_id: 0x10de, device_id: 0x2330\n" + head + "  class_code: 030200\n";
  };
  CHECK(ShowAll(error("fatal", "PCIe error")) == "pcie 2 nvidia 0000:3b:00.0: reported by the firmware");
  CHECK(ShowAll(error("recoverable", "PCIe error")) == "pcie 1 nvidia 0000:3b:00.0: reported by the firmware");
  CHECK(ShowAll(error("corrected", "PCIe error")) == "pcie 0 nvidia 0000:3b:00.0: reported by the firmware");
  CHECK(ShowAll(error("fatal", "memory error")).empty());
}

TEST_CASE("kernel messages inside JSON and export blocks", "[parsers]") {
  const auto journal = ParseLines(
      kKernelLog,
      R"({"__REALTIME_TIMESTAMP":"1932904028000000","_HOSTNAME":"node017","_TRANSPORT":"kernel","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"NVRM: Xid (PCI:0000:3b:00): 43, pid=41, name=python3, Ch 00000008"})");
  REQUIRE(journal.size() == 1);
  CHECK(Show(std::get<XidReported>(journal[0].what)) == "xid 43 0000:3b:00.0 pid=41 name=python3: Ch 00000008");
  REQUIRE(journal[0].origin.host);
  CHECK(journal[0].origin.host->value == "node017");
  REQUIRE(journal[0].at);
  CHECK(FormatTime(*journal[0].at) == "2031-04-02T13:47:08.000000Z");

  // journald read this line 90 s after the kernel stamped it.
  const auto late = ParseLines(
      kKernelLog,
      R"({"__REALTIME_TIMESTAMP":"1932904028000000","__MONOTONIC_TIMESTAMP":"590000000","_SOURCE_MONOTONIC_TIMESTAMP":"500000000","_HOSTNAME":"node017","_TRANSPORT":"kernel","SYSLOG_IDENTIFIER":"kernel","MESSAGE":"NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus."})");
  REQUIRE(late.size() == 1);
  CHECK(FormatTime(*late[0].at) == "2031-04-02T13:45:38.000000Z");
  CHECK(std::get<XidReported>(late[0].what).uptime == std::chrono::seconds(500));

  // journalctl's way with a message that is not plain text
  const auto bytes = ParseLines(
      kKernelLog,
      R"({"__REALTIME_TIMESTAMP":"1932904028000000","_HOSTNAME":"node017","_TRANSPORT":"kernel","SYSLOG_IDENTIFIER":"kernel","MESSAGE":[27,91,49,109,78,86,82,77,58,32,88,105,100,32,40,80,67,73,58,48,48,48,48,58,51,98,58,48,48,41,58,32,55,57,44,32,116,101,120,116]})");
  REQUIRE(bytes.size() == 1);
  CHECK(Show(std::get<XidReported>(bytes[0].what)) == "xid 79 0000:3b:00.0: text");

  const auto dmesg = ParseLines(
      kKernelLog,
      "{\n   \"dmesg\": [\n      {\n         \"pri\": 3,\n         \"time\":    12345.678901,\n"
      "         \"msg\": \"NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.\"\n      }\n   ]\n}\n");
  REQUIRE(dmesg.size() == 1);
  const auto& xid = std::get<XidReported>(dmesg[0].what);
  CHECK(xid.detail == "GPU has fallen off the bus.");
  CHECK(xid.uptime == std::chrono::microseconds(12345678901));

  const auto exported =
      ParseLines(kKernelLog,
                 "__CURSOR=s=1\n__REALTIME_TIMESTAMP=1932904028000000\nMESSAGE=NVRM: Xid (PCI:0000:3b:00): 62, 0000\n"
                 "_HOSTNAME=node017\n\n__REALTIME_TIMESTAMP=1932904029000000\nMESSAGE=NVRM: Xid (PCI:0000:3b:00): 79, "
                 "GPU has fallen off the bus.\n_HOSTNAME=node017\n");
  REQUIRE(exported.size() == 2);
  for (const Event& event : exported) {
    REQUIRE(event.origin.host);
    CHECK(event.origin.host->value == "node017");
  }
  CHECK(FormatTime(*exported[0].at) == "2031-04-02T13:47:08.000000Z");
  CHECK(FormatTime(*exported[1].at) == "2031-04-02T13:47:09.000000Z");
}

TEST_CASE("Xid lines of every driver", "[parsers]") {
  static const Row kRows[] = {
      {"NVRM: Xid (PCI:0000:3b:00): 31, pid=41234, name=python3, Ch 00000008, intr 00000000. MMU Fault: ENGINE "
       "GRAPHICS",
       "xid 31 0000:3b:00.0 pid=41234 name=python3: Ch 00000008, intr 00000000. MMU Fault: ENGINE GRAPHICS"},
      {"NVRM: Xid (PCI:0000:3b:00): 31, pid=41234, name=python3, channel 0x00000008, intr 00000000. MMU Fault",
       "xid 31 0000:3b:00.0 pid=41234 name=python3: channel 0x00000008, intr 00000000. MMU Fault"},
      {"NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
       "xid 79 0000:3b:00.0: GPU has fallen off the bus."},
      {"NVRM: Xid (PCI:0000:3b:00): 74, pid=<n/a>, name=<unknown>, NVLink: fatal error detected on link 2",
       "xid 74 0000:3b:00.0: NVLink: fatal error detected on link 2"},
      {"NVRM: Xid (PCI:0000:3b:00): 13, pid=41234, Graphics SM Warp Exception on (GPC 0, TPC 1, SM 0): Out Of Range "
       "Address",
       "xid 13 0000:3b:00.0 pid=41234: Graphics SM Warp Exception on (GPC 0, TPC 1, SM 0): Out Of Range Address"},
      {"NVRM: Xid (PCI:0000:3b:00 GPU-I:01): 13, pid='<unknown>', name=<unknown>, Graphics Exception: ESR "
       "0x505730=0x1010009",
       "xid 13 0000:3b:00.0: Graphics Exception: ESR 0x505730=0x1010009"},
      {"NVRM: Xid (PCI:0000:02:00): 45, Ch 00000010, engmask 00000101, intr 10000000",
       "xid 45 0000:02:00.0: Ch 00000010, engmask 00000101, intr 10000000"},
      {"NVRM: Xid (0000:02:00): 79, GPU has fallen off the bus.", "xid 79 0000:02:00.0: GPU has fallen off the bus."},
      {"NVRM: Xid (PCI:0000:5d:00): 45, pid=41235, name=ray::WorkerDict, Ch 0000000c caused by previous Xid 149",
       "xid 45 0000:5d:00.0 pid=41235 name=ray::WorkerDict by=149: Ch 0000000c caused by previous Xid 149"},
      {"NVRM: Xid (PCI:0000:3b:00): 154, GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)",
       "xid 154 0000:3b:00.0: GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset Required)"},
      {"NVRM: Xid (PCI:...): 145, RLW_RXPIPE Nonfatal XC0 i0 Link 11 (...)",
       "xid 145 : RLW_RXPIPE Nonfatal XC0 i0 Link 11 (...)"},
      {"NVRM: Xid (PCI:xxxx:xx:xx): 79, pid=41, name=python3, GPU has fallen off the bus.",
       "xid 79  pid=41 name=python3: GPU has fallen off the bus."},
      {"Xid (PCI:0000:3b:00): 31, text of a tracepoint", "xid 31 0000:3b:00.0: text of a tracepoint"},
      {"{\"level\":\"info\",\"details\":{\"message\":\"NVRM: Xid (PCI:0000:b9:00): 71, NVLink: fatal error detected on "
       "link 6\"}}",
       "xid 71 0000:b9:00.0: NVLink: fatal error detected on link 6"},
      {"[12345.678901] NVRM: GPU at PCI:0000:3b:00: GPU-61c0a2ee-7b14-9d02-41aa-cc0177b2e119\n[12345.678902] NVRM: GPU "
       "Board Serial Number: 16501\n"
       "[12345.678903] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
       "[12345.678904] NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.\n[12345.678905] NVRM: GPU 0000:3b:00.0: GPU "
       "serial number is 16501.\n",
       "xid 79 0000:3b:00.0 GPU-61c0a2ee-7b14-9d02-41aa-cc0177b2e119: GPU has fallen off the bus.; driver 0 "
       "0000:3b:00.0"},
      // A terminal broke the line; what follows another line is not its rest.
      {"[Fri May  3 21:29:39 2031] NVRM: Xid (PCI:0000:a1:00):\n 79, pid='<unknown>', name=<unknown>, GPU has fallen "
       "off the bus.\n",
       "xid 79 0000:a1:00.0: GPU has fallen off the bus."},
      {"Apr  5 06:07:08 node017 kernel: NVRM: Xid (PCI:0000:3b:00):\n31, pid=41, name=python3, Ch 00000008, intr "
       "00000000. MMU Fault\n",
       "xid 31 0000:3b:00.0 pid=41 name=python3: Ch 00000008, intr 00000000. MMU Fault"},
      {"NVRM: Xid (PCI:0000:3b:00):\nNVRM: Xid (PCI:0000:5d:00): 43, Ch 00000008\n",
       "xid 43 0000:5d:00.0: Ch 00000008"},
      {"pid='<unknown>', name=<unknown>, GPU has fallen off the bus.", "driver 0 "},
      {"NVRM: Xid (PCI:0000:3b:00): 119, pid=41234, name=nvidia-smi, Timeout after 6s of waiting for RPC response from "
       "GPU4 GSP! Expected function 103 (GSP_RM_ALLOC) (0x2081 0x4).",
       "xid 119 0000:3b:00.0 pid=41234 name=nvidia-smi: Timeout after 6s of waiting for RPC response from GPU4 GSP! "
       "Expected function 103 (GSP_RM_ALLOC) (0x2081 0x4)."},
      {"NVRM: Xid (PCI:0000:3b:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 07 (0x004505c6 0x00000000)",
       "xid 149 0000:3b:00.0: NETIR_LINK_EVT Fatal XC0 i0 Link 07 (0x004505c6 0x00000000)"},
      {"NVRM: Xid (PCI:0000:3b:00): 94, pid=41234, name=a name, with: all, Contained: SM (0x1). RST: No, D-RST: No",
       "xid 94 0000:3b:00.0 pid=41234 name=a name: with: all, Contained: SM (0x1). RST: No, D-RST: No"},
      {"NVRM: Xid (PCI:0000:3b:00):", ""},
      {"NVRM: Xid (PCI:0000:3b", ""},
  };
  Check(kRows);
}

TEST_CASE("the driver's other words, and SXids as one event", "[parsers]") {
  static const Row kRows[] = {
      {"NVRM: GPU 0000:3b:00.0: GPU has fallen off the bus.", "driver 0 0000:3b:00.0"},
      {"NVRM: The NVIDIA GPU 0000:3b:00.0\nNVRM: (PCI ID: 10de:2330) installed in this system has\nNVRM: fallen off "
       "the bus and is not responding to commands.",
       "driver 0 0000:3b:00.0"},
      {"NVRM: GPU 0000:3b:00.0: RmInitAdapter failed! (0x62:0xffff:2477)", "driver 1 0000:3b:00.0"},
      {"NVRM: _kgspBootGspRm: unexpected WPR2 already up, cannot proceed with booting GSP", "driver 2 "},
      {"NVRM: API mismatch: the client has the version 550.54.15, but", "driver 3 "},
      {"NVRM: API mismatch: the client 'nvidia-smi' (pid 41234)", "driver 3 "},
      {"NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build",
       "nvidia driver-loaded 570.86.15"},
      {"NVRM: API mismatch: the client 'python3' (pid 41)\nNVRM: has the version 570.86.15, but this kernel module "
       "has\nNVRM: the version 570.124.06.  Please make sure that this\n"
       "NVRM: kernel module and all NVIDIA driver components\nNVRM: have the same version.\n",
       "driver 3 "},
      {"NVRM: API mismatch: the client has the version 550.54.15, but\nNVRM: this kernel module has the version "
       "550.90.07.  Please\n",
       "driver 3 "},
      {"NVRM: GPU 0000:3b:00.0: rm_init_adapter failed, device minor number 3", "driver 1 0000:3b:00.0"},
      {"NVRM: GPU4 RPC history (CPU -> GSP):", ""},
      {"NVRM: nvCheckOkFailedNoLog: Check failed: Call timed out [NV_ERR_TIMEOUT] (0x00000065) returned from "
       "_kgspRpcRecvPoll(pGpu) @ kernel_gsp.c:2531",
       ""},
      {"nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault Up\n"
       "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Severity 1 Engine instance 30 Sub-engine instance 00\n"
       "nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Data {0x10000000, 0x10000000, 0x00000000}\n",
       "sxid 20034 nvswitch3 0000:05:00.0 fatal link=30: LTSSM Fault Up"},
      {"nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 12028, Non-fatal, Link 32 egress non-posted PRIV error (First)",
       "sxid 12028 nvswitch0 0000:05:00.0 non-fatal link=32: egress non-posted PRIV error (First)"},
      {"nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 22003, Fatal, MINION HALT, instance=1, chiplet=2",
       "sxid 22003 nvswitch0 0000:05:00.0 fatal: MINION HALT, instance=1, chiplet=2"},
      {"nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 26006, SOE Halt", "sxid 26006 nvswitch0 0000:05:00.0 ?: SOE Halt"},
      {"nvidia-nvswitch0: SXid (PCI:0000:05:00.0): 20034, Severity 1 Engine instance 30 Sub-engine instance 00", ""},
  };
  Check(kRows);
}

TEST_CASE("stuck tasks and what their stacks wait on", "[parsers]") {
  const auto report = [](const char* frames) {
    return std::string(
               "[1.0] INFO: task python3:41234 blocked for more than 122 seconds.\n[1.1]       Tainted: P           OE "
               "     6.8.0-60-generic #63-Ubuntu\n"
               "[1.2] \"echo 0 > /proc/sys/kernel/hung_task_timeout_secs\" disables this message.\n"
               "[1.3] task:python3         state:D stack:0     pid:41234 tgid:41234 ppid:41193 flags:0x00000006\n[1.4] "
               "Call Trace:\n[1.4]  <TASK>\n[1.4]  __schedule+0x27c/0x6a0\n") +
           frames + "[1.5]  </TASK>\n";
  };
  struct StackRow {
    const char* frames;
    const char* waits_on;
  };
  static const StackRow kRows[] = {
      {"[1.4]  io_schedule+0x46/0x80\n[1.4]  nfs_wait_bit_killable+0x15/0x80 [nfs]\n[1.4]  "
       "rpc_wait_bit_killable+0x11/0x90 [sunrpc]\n",
       "nfs"},
      {"[1.4]  cl_sync_io_wait+0x1f1/0x3d0 [obdclass]\n[1.4]  osc_io_fsync_end+0x6b/0xa0 [osc]\n[1.4]  "
       "ll_fsync+0x2a1/0x3c0 [lustre]\n",
       "lustre"},
      {"[1.4]  request_wait_answer+0x137/0x210 [fuse]\n", "fuse"},
      {"[1.4]  jbd2_log_wait_commit+0xb4/0x120\n[1.4]  ext4_sync_file+0x1a2/0x390\n", "ext4"},
      {"[1.4]  io_schedule+0x46/0x80\n[1.4]  blk_mq_get_tag+0x11e/0x2b0\n", "block"},
      {"[1.4]  ? nvme_wait_freeze+0x36/0x60 [nvme_core]\n", "nvme"},
      {"[1.4]  os_acquire_rwlock_read+0x35/0x50 [nvidia]\n", "nvidia"},
      {"[1.4]  [<ffffffffa09c376e>] uvm_gpu_retain_by_uuid+0x1e/0x40 [nvidia_uvm]\n", "nvidia"},
      {"[1.4]  ext4_file_splice_read+0x2c/0x48 [ext4]\n", "ext4"},
      {"[1.4]  cgroup_attach_lock+0x2e/0x40\n", ""},
  };
  for (const StackRow& row : kRows) {
    CAPTURE(row.frames);
    const std::string on = row.waits_on;
    CHECK(ShowAll(report(row.frames)) == "stuck 0 41234 python3 122 stack" + (on.empty() ? "" : " on " + on));
  }
  CHECK(ShowAll("INFO: task DataXceiver for:7494 blocked for more than 120 seconds.\nCall trace:\n "
                "__switch_to+0x14c/0x240\n io_schedule+0x24/0xa0\n") ==
        "stuck 0 7494 DataXceiver for 120 stack on block");  // arm64
  // Two reports; frames without one; sysrq's list, which has no first line.
  CHECK(ShowAll(report("[1.4]  nfs_x+0x1/0x2 [nfs]\n") +
                "[2.0] INFO: task jbd2/dm-0-8:711 blocked for more than 120 "
                "seconds.\n[2.1] Call Trace:\n[2.1]  jbd2_y+0x1/0x2 [jbd2]\n") ==
        "stuck 0 41234 python3 122 stack on nfs; stuck 0 711 jbd2/dm-0-8 120 stack on ext4");
  CHECK(ShowAll("[1.4]  nfs_wait_bit_killable+0x15/0x80 [nfs]\n").empty());
  CHECK(ShowAll("[  +0.000049] task:python3.11      state:D stack:    0 pid:15277 ppid: 15257 flags:0x00000002\n[  "
                "+0.000006] Call Trace:\n[  +0.000004]  uvm_ioctl+0x13e0/0x16f0 [nvidia_uvm]\n") ==
        "stuck 0 15277 python3.11 -1 stack on nvidia");
}

TEST_CASE("kills, crashes and stuck tasks", "[parsers]") {
  static const Row kRows[] = {
      {"[1.5] python3 invoked oom-killer: gfp_mask=0x140cca(GFP_HIGHUSER_MOVABLE), order=0, oom_score_adj=0\n"
       "[1.6] "
       "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=job_1,mems_allowed=0-1,oom_memcg=/slurm/"
       "job_1,task_memcg=/slurm/job_1/step_0,task=python3,pid=41234,uid=1000\n"
       "[1.7] Memory cgroup out of memory: Killed process 41234 (python3) total-vm:1kB, anon-rss:1kB\n[1.8] "
       "oom_reaper: reaped process 41234 (python3), now anon-rss:0kB\n",
       "kill 0 python3; kill 41234 python3 cgroup /slurm/job_1/step_0"},
      {"Task in /slurm/job_7 killed as a result of limit of /slurm/job_7\nMemory cgroup out of memory: Kill process "
       "41234 (python3) score 950 or sacrifice child\n"
       "Killed process 41234 (python3) total-vm:1kB, anon-rss:1kB\n",
       "kill 41234 python3 cgroup /slurm/job_7"},
      {"Tasks in /kubepods/pod1 are going to be killed due to memory.oom.group set\nMemory cgroup out of memory: "
       "Killed process 41234 (python3) total-vm:1kB\n"
       "Memory cgroup out of memory: Killed process 41235 (pt_data_worker) total-vm:1kB\n",
       "kill 41234 python3 cgroup /kubepods/pod1; kill 41235 pt_data_worker cgroup "},
      {"pt_data_worker invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
       "kill 0 pt_data_worker"},
      {"Out of memory (oom_kill_allocating_task): Killed process 41234 (a (b) c) total-vm:1kB", "kill 41234 a (b"},
      {"Memory failure: 0x1a2b3c: Sending SIGBUS to python3:41234 due to hardware memory corruption",
       "hardware memory error 41234 python3 in "},
      {"Memory failure: 0x1a2b3c: Killing python3:41234 due to hardware memory corruption",
       "hardware memory error 41234 python3 in "},
      {"MCE 0x1a2b3c: Killing python3:41234 due to hardware memory corruption",
       "hardware memory error 41234 python3 in "},
      {"Out of memory: Kill process 41234 (python3) score 950 or sacrifice child\nKilled process 41234 (python3) "
       "total-vm:1kB, anon-rss:1kB",
       "kill 41234 python3"},
      {"Out of memory: Kill process 41 (python3) score 950 or sacrifice child\nKilled process 42 (pt_data_worker) "
       "total-vm:1kB",
       "kill 41 python3; kill 42 pt_data_worker"},
      {"Out of memory: Killed process 41234 (python3) total-vm:1kB, anon-rss:1kB, UID:1000 pgtables:1kB "
       "oom_score_adj:0",
       "kill 41234 python3"},
      {"python3[41234]: segfault at 7f1c40000000 ip 00007f1c3ac69996 sp 00007f1c12fd7c30 error 4 in "
       "libnccl.so.2[7f1c3ac00000+d3d3000] likely on CPU 12 (core 4, socket 0)",
       "segfault 41234 python3 in libnccl.so.2"},
      {"python3[41234]: segfault at 0 ip 0000000000000000 sp 00007f1c12fd7c30 error 14", "segfault 41234 python3 in "},
      {"traps: python3[41234] general protection fault ip:7f1c3ac69996 sp:7f1c12fd7c30 error:0 in "
       "libc.so.6[7f1c3ac00000+195000]",
       "general protection 41234 python3 in libc.so.6"},
      {"python3[41234] general protection ip:7f1c3ac69996 sp:7f1c12fd7c30 error:0",
       "general protection 41234 python3 in "},
      {"traps: pt_main_thread[41234] trap invalid opcode ip:7f1c3ac69996 sp:7f1c12fd7c30 error:0 in "
       "libfoo.so[7f1c3ac00000+1000]",
       "trap invalid opcode 41234 pt_main_thread in libfoo.so"},
      {"INFO: task python3:41234 blocked for more than 122 seconds.", "stuck 0 41234 python3 122"},
      {"watchdog: BUG: soft lockup - CPU#18 stuck for 27s! [python3:41234]", "stuck 1 41234 python3 27"},
      {"NMI watchdog: Watchdog detected hard LOCKUP on cpu 3", "stuck 2 -1  -1"},
      {"rcu: INFO: rcu_sched self-detected stall on CPU", "stuck 3 -1  -1"},
  };
  Check(kRows);
}

TEST_CASE("PCI Express errors are one event each", "[parsers]") {
  static const Row kRows[] = {
      {"pcieport 0000:3a:01.0: AER: Uncorrected (Fatal) error received: 0000:3b:00.0\n"
       "nvidia 0000:3b:00.0: AER: PCIe Bus Error: severity=Uncorrected (Fatal), type=Transaction Layer, (Receiver ID)\n"
       "nvidia 0000:3b:00.0: AER:   device [10de:2330] error status/mask=00000020/00000000\nnvidia 0000:3b:00.0: AER:  "
       "  [ 5] SDES                   (First)\n",
       "pcie 2 nvidia 0000:3b:00.0: Transaction Layer, SDES"},
      {"pcieport 0000:00:02.0: AER: Corrected error received: id=0010\npcieport 0000:00:02.0: PCIe Bus Error: "
       "severity=Corrected, type=Data Link Layer, id=0010(Transmitter ID)\n"
       "pcieport 0000:00:02.0:    [12] Replay Timer Timeout  \n",
       "pcie 0 pcieport 0000:00:02.0: Data Link Layer, Replay Timer Timeout"},
      {"pcieport 0000:3a:01.0: AER: Multiple Uncorrectable (Non-Fatal) error message received from 0000:3b:00.0",
       "pcie 1  0000:3b:00.0: "},
      {"pcieport 0000:3a:01.0: DPC: containment event, status:0x1f01 source:0x0000", "pcie 3 pcieport 0000:3a:01.0: "},
      {"pcieport 0000:3a:01.0: pciehp: Slot(7): Link Down", "pcie 4 pcieport 0000:3a:01.0: Slot(7): Link Down"},
      {"pcieport 0000:3a:01.0: pciehp: Slot(7): Link Up", "pcie 5 pcieport 0000:3a:01.0: Slot(7): Link Up"},
  };
  Check(kRows);
}

TEST_CASE("other devices of the host", "[parsers]") {
  static const Row kRows[] = {
      {"mlx5_core 0000:3b:00.0 eth2: Link down", "mlx5 link-down 0000:3b:00.0 eth2"},
      {"mlx5_core 0000:3b:00.0: poll_health:825:(pid 0): device's health compromised - reached miss count",
       "mlx5 health 0000:3b:00.0"},
      {"mlx5_core 0000:3b:00.0: Port module event: module 0, Cable unplugged", "mlx5 cable-unplugged 0000:3b:00.0"},
      {"mlx5_core 0000:3b:00.0: Port module event: module 0, Cable plugged", ""},
      {"infiniband mlx5_0: Port: 1 Link DOWN", "infiniband link-down mlx5_0"},
      {"mlx5_0: Port: 1 Link ACTIVE", "infiniband link-up mlx5_0"},
      {"mlx5_core 0000:3b:00.0: Port module event[error]: module 0, Cable error, Bad or shorted cable/module",
       "mlx5 cable-error 0000:3b:00.0"},
      {"mlx5_core 0000:3b:00.0: print_health_info:440:(pid 0): Health issue observed, firmware internal error, "
       "severity(3) ERROR:",
       "mlx5 health 0000:3b:00.0"},
      {"mlx5_core 0000:3b:00.0: wait_func:1150:(pid 4211): ACCESS_REG(0x805) timeout. Will cause a leak of a command "
       "resource",
       "mlx5 time-out 0000:3b:00.0"},
      {"mlx5_core 0000:3b:00.0: mlx5_pcie_event:299:(pid 268269): Detected insufficient power on the PCIe slot (27W).",
       ""},
      {"mlx5_core 0000:3b:00.0: mlx5_cmd_out_err:838:(pid 4): ACCESS_REG(0x805) op_mod(0x1) failed, status bad "
       "resource(0x5), syndrome (0x305684), err(-22)",
       ""},
      {"bond0: (slave eth2): link status definitely down, disabling slave", "bond link-down eth2"},
      {"bond0: (slave eth2): link status definitely up, 200000 Mbps full duplex", "bond link-up eth2"},
      {"NETDEV WATCHDOG: eth2 (mlx5_core): transmit queue 3 timed out 5000 ms", "network time-out eth2"},
      {"irdma 0000:31:00.0: Requesting a reset", "irdma fault 0000:31:00.0"},
      {"efa 0000:00:06.0: Failed to process command GET_FEATURE (opcode 8)", "efa fault 0000:00:06.0"},
      {"nfs: server fs01 not responding, still trying", "nfs stall fs01"},
      {"nfs: server fs01 OK", "nfs recovered fs01"},
      {"lockd: server fs01 not responding, timed out", "nfs stall fs01"},
      {"Lustre: scratch-OST0003-osc: Connection restored to scratch-OST0003 (at 10.3.0.7@o2ib)",
       "lustre recovered scratch-OST0003"},
      {"blk_update_request: I/O error, dev sda, sector 123 op 0x0:(READ) flags 0x0", "block i/o-error sda"},
      {"nvme nvme1: I/O tag 12 (100c) opcode 0x2 (I/O Cmd) QID 3 timeout, aborting req_op:READ(0) size:4096",
       "nvme time-out nvme1"},
      {"thermal thermal_zone0: critical temperature reached (105 C), shutting down", "thermal shutdown thermal_zone0"},
      {"pci 0000:04:00.0: 252.048 Gb/s available PCIe bandwidth, limited by 16.0 GT/s PCIe x16 link at 0000:01:00.0 "
       "(capable of 504.112 Gb/s with 32.0 GT/s PCIe x16 link)",
       "pcie link-degraded 0000:04:00.0"},
      {"mlx5_core 0000:1a:00.0: 252.048 Gb/s available PCIe bandwidth (16.0 GT/s PCIe x16 link)", ""},
      {"pcieport 0000:3a:01.0: broken device, retraining non-functional downstream link at 2.5GT/s",
       "pcie link-degraded 0000:3a:01.0"},
      {"systemd[1]: nvidia-fabricmanager.service: Failed with result 'exit-code'.", "fabric-manager failed "},
      {"LustreError: 11-0: scratch-OST0003-osc: Connection to scratch-OST0003 (at 10.3.0.7@o2ib) was lost; in progress "
       "operations will wait",
       "lustre stall scratch-OST0003"},
      {"EXT4-fs error (device nvme0n1p2): ext4_find_entry:1455: inode #2: comm python3: reading directory lblock 0",
       "ext4 file-system-error nvme0n1p2"},
      {"nvme nvme0: I/O 12 QID 3 timeout, aborting", "nvme time-out nvme0"},
      {"nvme nvme0: controller is down; will reset: CSTS=0xffffffff, PCI_STATUS=0xffff", "nvme controller-down nvme0"},
      {"mce: [Hardware Error]: CPU 3: Machine Check: 0 Bank 7: 8c00004000010090", "machine-check memory-error CPU 3"},
      {"EDAC MC0: 1 UE memory read error on CPU_SrcID#0 (channel:1)", "edac uncorrected MC0"},
      {"DMAR: [DMA Read NO_PASID] Request device [3b:00.0] fault addr 0x7f000000 [fault reason 0x06] PTE Read access "
       "is not set",
       "iommu fault 3b:00.0"},
      {"nvidia 0000:c1:00.0: AMD-Vi: Event logged [IO_PAGE_FAULT domain=0x0022 address=0xd0000000 flags=0x0020]",
       "iommu fault 0000:c1:00.0"},
      {"CPU12: Package temperature is above threshold, cpu clock is throttled (total events = 219)",
       "thermal throttled CPU12"},
      {"nv-fabricmanager[94230]: fabric manager NVIDIA GPU driver interface version 550.127.05 don't match with driver "
       "version 550.120.",
       "fabric-manager said "},
      {"nvidia-peermem nv_get_p2p_free_callback:127 ERROR detected invalid context, skipping further processing",
       "peermem error "},
      {"[    0.000000] Linux version 5.15.0-112-generic (buildd@lcy02) (gcc 11.4.0)", "kernel boot 5.15.0-112-generic"},
  };
  Check(kRows);
}

}  // namespace kernel_log_test
}  // namespace inquest
