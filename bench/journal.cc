// A node's journal as `journalctl -o json` prints it: an object a line, nearly all of it of no interest.
#include "bench/journal.h"

namespace inquest::bench {

/// All of an entry but its message, which follows and is to be closed by `"}`.
void Journal::Entry(std::string_view unit, std::string_view tag, std::uint64_t pid, LogWriter& log) {
  const std::uint64_t passed = 1 + random_.Below(4000);
  micros_ += passed;
  boot_micros_ += passed;
  log.Text("{\"__CURSOR\":\"s=5ae2f0c1b3d94c5f8a7e6d5c4b3a2910;i=")
      .Hex(cursor_++)
      .Text(";b=0f1e2d3c4b5a69788796a5b4c3d2e1f0;m=")
      .Hex(boot_micros_);
  log.Text(";t=").Hex(micros_).Text(";x=").Hex(random_.Next()).Text("\",\"__REALTIME_TIMESTAMP\":\"").Decimal(micros_);
  log.Text("\",\"__MONOTONIC_TIMESTAMP\":\"")
      .Decimal(boot_micros_)
      .Text("\",\"_BOOT_ID\":\"0f1e2d3c4b5a69788796a5b4c3d2e1f0\",\"_MACHINE_ID\":\"");
  log.Text("9c8b7a6f5e4d3c2b1a09f8e7d6c5b4a3\",\"_HOSTNAME\":\"node")
      .Decimal(static_cast<std::uint64_t>(host_), 3)
      .Text("\",\"PRIORITY\":\"6\",");
  if (tag == "kernel") {
    log.Text("\"_TRANSPORT\":\"kernel\",\"SYSLOG_FACILITY\":\"0\",\"_SOURCE_MONOTONIC_TIMESTAMP\":\"")
        .Decimal(boot_micros_ - 40);
  } else {
    log.Text(
        "\"_TRANSPORT\":\"stdout\",\"_UID\":\"0\",\"_GID\":\"0\",\"_CAP_EFFECTIVE\":\"1ffffffffff\",\"_SYSTEMD_SLICE\":"
        "\"system.slice\",\"_SYSTEMD_UNIT\":\"");
    log.Text(unit)
        .Text("\",\"_SYSTEMD_CGROUP\":\"/system.slice/")
        .Text(unit)
        .Text("\",\"_COMM\":\"")
        .Text(tag)
        .Text("\",\"_PID\":\"")
        .Decimal(pid);
  }
  log.Text("\",\"SYSLOG_IDENTIFIER\":\"").Text(tag).Text("\",\"MESSAGE\":\"");
}

void Journal::Write(LogWriter& log) {
  switch (random_.Below(8)) {
    case 0:
    case 1:
      Entry("kubelet.service", "kubelet", 2211, log);
      log.Text("I0218 08:00:00.")
          .Decimal(random_.Below(1000000), 6)
          .Text("    2211 prober.go:107] \\\"Probe succeeded\\\" pod=\\\"jobs/train-");
      log.Decimal(random_.Below(64)).Text("\\\" latency=\\\"").Decimal(random_.Below(900)).Text("ms\\\"");
      break;
    case 2:
    case 3:
      Entry("containerd.service", "containerd", 1987, log);
      log.Text("time=\\\"2031-02-18T08:00:00Z\\\" level=info msg=\\\"StartContainer for \\\\\\\"")
          .Hex(random_.Next())
          .Hex(random_.Next())
          .Text("\\\\\\\" returns successfully\\\"");
      break;
    case 4:
      Entry("", "kernel", 0, log);
      log.Text("audit: type=1400 audit(")
          .Decimal(micros_ / 1000000)
          .Text(".")
          .Decimal(random_.Below(1000), 3)
          .Text(":")
          .Decimal(cursor_);
      log.Text("): apparmor=\\\"ALLOWED\\\" operation=\\\"open\\\" pid=")
          .Decimal(random_.Below(4194304))
          .Text(" comm=\\\"runc\\\"");
      break;
    case 5:
      Entry("", "kernel", 0, log);
      log.Text("cali").Hex(random_.Below(1u << 31)).Text(": entered promiscuous mode");
      break;
    case 6:
      Entry("ssh.service", "sshd", 100000 + random_.Below(900000), log);
      log.Text("Accepted publickey for ops from 10.1.")
          .Decimal(random_.Below(256))
          .Text(".")
          .Decimal(random_.Below(256))
          .Text(" port ")
          .Decimal(1024 + random_.Below(60000));
      break;
    default:
      Entry("train.service", "python3", 41234, log);
      log.Text("step ")
          .Decimal(cursor_)
          .Text(" loss ")
          .Fixed(20000 + random_.Below(9000), 4)
          .Text(" tokens/s ")
          .Decimal(300000 + random_.Below(9000));
  }
  log.Text("\"}\n");
}

void Journal::WriteEnd(const Job& job, LogWriter& log) {
  Entry("", "kernel", 0, log);
  log.Text("NVRM: Xid (PCI:0000:")
      .Hex(static_cast<std::uint64_t>(0x19 + 0x11 * job.LocalRank(job.culprit)))
      .Text(":00): 79, pid=")
      .Decimal(job.Pid(job.culprit));
  log.Text(", name=python3, GPU has fallen off the bus.\"}\n");
  Entry("init.scope", "systemd", 1, log);
  log.Text("train.service: Main process exited, code=exited, status=1/FAILURE\"}\n");
}

}  // namespace inquest::bench
