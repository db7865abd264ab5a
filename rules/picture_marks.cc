// What an event is as a mark of a picture.
#include <fmt/format.h>

#include <array>

#include "rules/picture.h"

namespace inquest {
namespace {

using Kind = PictureMark::Kind;

struct TellMark {
  PictureMark operator()(const XidReported& xid) const { return {Kind::kDevice, fmt::format("Xid {}", xid.xid)}; }
  PictureMark operator()(const SxidReported& sxid) const { return {Kind::kDevice, fmt::format("SXid {}", sxid.sxid)}; }
  PictureMark operator()(const DriverFault& fault) const {
    static constexpr std::array<const char*, 4> kHow = {"fell off the bus", "did not start", "firmware stuck",
                                                        "driver versions differ"};
    return {Kind::kDevice, kHow[static_cast<std::size_t>(fault.how)]};
  }
  PictureMark operator()(const PcieError& error) const {
    return {Kind::kDevice, error.detail.empty() ? "PCIe error" : "PCIe: " + error.detail};
  }
  PictureMark operator()(const KernelKill&) const { return {Kind::kMemory, "OOM kill"}; }
  PictureMark operator()(const KernelFault& fault) const { return {Kind::kExit, fault.how}; }
  PictureMark operator()(const TaskStuck& stuck) const {
    return {Kind::kNotice, stuck.waits_on == KernelPart::kNone ? std::string("task stuck")
                                                               : fmt::format("task stuck on {}", Name(stuck.waits_on))};
  }
  PictureMark operator()(const KernelNotice& notice) const {
    return {Kind::kNotice, fmt::format("{} {}", Name(notice.subsystem), Name(notice.what))};
  }
  PictureMark operator()(const ExceptionRaised& raised) const {
    return {raised.type.find("OutOfMemory") != std::string::npos ? Kind::kMemory : Kind::kException, raised.type};
  }
  PictureMark operator()(const WorkTimedOut& out) const { return {Kind::kTimeOut, InWords(out.work) + " timed out"}; }
  PictureMark operator()(const HeartbeatLost&) const { return {Kind::kTimeOut, "heartbeat lost"}; }
  PictureMark operator()(const WaitGivenUp& wait) const { return {Kind::kTimeOut, "gave up on " + wait.on}; }
  PictureMark operator()(const MonitoredBarrierFailed&) const { return {Kind::kTimeOut, "barrier failed"}; }
  PictureMark operator()(const ProcessExit& exit) const {
    if (exit.signal) return {Kind::kExit, fmt::format("signal {}", *exit.signal)};
    return {exit.exit_code == 0 ? Kind::kEnded : Kind::kExit,
            exit.exit_code ? fmt::format("exit {}", *exit.exit_code) : "ended badly"};
  }
  PictureMark operator()(const SignalSent& sent) const {
    return {Kind::kStopped, fmt::format("sent signal {}", sent.signal)};
  }
  PictureMark operator()(const JobStopped& stopped) const {
    return {Kind::kStopped,
            fmt::format("stopped by {}{}{}", Name(stopped.by), stopped.reason.empty() ? "" : ": ", stopped.reason)};
  }
  PictureMark operator()(const NcclWarn&) const { return {Kind::kComplaint, "NCCL WARN"}; }
  PictureMark operator()(const LogMessage&) const { return {Kind::kComplaint, "complaint"}; }
  PictureMark operator()(const CallRecorded& call) const {
    return {Kind::kNotice, (call.ended ? "last call: " : "in ") + InWords(call.work)};
  }
  PictureMark operator()(const CommInit&) const { return {Kind::kNotice, "communicator set up"}; }
  template <class Other>
  PictureMark operator()(const Other&) const {
    return {Kind::kNotice, std::string(Other::kKind)};
  }
};

}  // namespace

PictureMark MarkBy(const Event& event) { return std::visit(TellMark(), static_cast<const WhatKinds&>(event.what)); }

std::string_view Name(PictureMark::Kind kind) {
  switch (kind) {
    case Kind::kDevice:
      return "device";
    case Kind::kMemory:
      return "memory";
    case Kind::kTimeOut:
      return "time-out";
    case Kind::kException:
      return "exception";
    case Kind::kExit:
      return "exit";
    case Kind::kStopped:
      return "stopped";
    case Kind::kComplaint:
      return "complaint";
    case Kind::kNotice:
      return "notice";
    case Kind::kEnded:
      return "ended";
  }
  return "notice";
}

std::string InWords(const WorkFields& work) {
  return (work.op.empty() ? "an operation" : work.op) + (work.seq ? fmt::format(" #{}", work.seq->value) : "");
}

}  // namespace inquest
