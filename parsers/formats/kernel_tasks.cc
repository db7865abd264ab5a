// kernel_tasks.cc: what a kernel log says of processes: killed for memory, crashed, stuck, and on what they wait.
// Format:  the OOM killer's summary, kill and reaper lines are one event; a stuck task's stack tells what it waits on
//            Memory cgroup out of memory: Killed process 41234 (python3) total-vm:...kB, ...
//            python3[41234]: segfault at 7f1c40000000 ip 00007f1c3ac69996 sp ... error 4 in
//            libnccl.so.2[7f1c3ac00000+d3d3000] Memory failure: 0x1a2b3c: Sending SIGBUS to python3:41234 due to
//            hardware memory corruption INFO: task python3:41234 blocked for more than 122 seconds.
//             nfs_wait_bit_killable+0x1a/0x60 [nfs]
// Clock:   the head's.        Not read: registers, the OOM killer's tables, frames that say nothing of a device.
#include <fmt/format.h>

#include <array>
#include <utility>

#include "core/ascii.h"
#include "core/pattern.h"
#include "parsers/formats/kernel.h"

namespace inquest {

bool OomReader::Add(const Record& record, const KernelHead& head, KernelKill kill, EventSink& out) {
  kill.uptime = head.uptime;
  if (kill.cgroup_path.empty()) kill.cgroup_path = std::exchange(cgroup_path_, {});
  kill.cgroup = kill.cgroup || !kill.cgroup_path.empty();
  if (kill.pid != last_) out.Add(KernelEvent(record, head, kill));
  last_ = kill.pid;
  return true;
}

bool OomReader::Consume(const Record& record, const KernelHead& head, EventSink& out) {
  static const Pattern kSummary(
      R"(oom-kill:constraint=(CONSTRAINT_\w+),.*task_memcg=([^,]*),task=(.{1,15}?),pid=(\d{1,9}))");
  static const Pattern kKill(R"(Kill(?:ed)? process (\d{1,9}) \((.{0,15}?)\))");
  static const Pattern kReaped(R"(oom_reaper: reaped process (\d{1,9}) \((.{0,15}?)\))");
  static const Pattern kGroup(
      R"(Task in (/[^ ]{0,300}) killed as a result of limit of /|Tasks in (/[^ ]{0,300}) are going to be killed due to memory\.oom\.group)");
  if (const auto summary = kSummary.Search(head.message)) {
    const bool cgroup = summary->text(1) == "CONSTRAINT_MEMCG";
    return Add(record, head,
               {.pid = *summary->number(4),
                .process = std::string(summary->text(3)),
                .cgroup = cgroup,
                .cgroup_path = cgroup ? std::string(summary->text(2)) : std::string(),
                .uptime = {}},
               out);
  }
  if (Contains(head.message, "oom-kill:constraint=")) {  // cut in front of the victim
    const bool cgroup = Contains(head.message, "CONSTRAINT_MEMCG");
    out.Add(KernelEvent(
        record, head, KernelKill{.pid = 0, .process = {}, .cgroup = cgroup, .cgroup_path = {}, .uptime = head.uptime}));
    return true;
  }
  if (const auto group = kGroup.Search(head.message)) {
    cgroup_path_ = std::string(group->text(1).empty() ? group->text(2) : group->text(1));
    return true;
  }
  auto match = kKill.Search(head.message);
  if (!match) match = kReaped.Search(head.message);
  if (!match) {
    static const Pattern kOpening(R"(^(.{1,15}) invoked oom-killer: )");
    const auto opening = kOpening.Search(head.message);
    if (!opening) return Contains(head.message, "invoked oom-killer");
    out.Add(KernelEvent(record, head,
                        KernelKill{.pid = 0,
                                   .process = std::string(opening->text(1)),
                                   .cgroup = false,
                                   .cgroup_path = {},
                                   .uptime = head.uptime}));
    last_ = 0;
    return true;
  }
  return Add(record, head,
             {.pid = *match->number(1),
              .process = std::string(match->text(2)),
              .cgroup = Contains(head.message, "Memory cgroup"),
              .cgroup_path = {},
              .uptime = {}},
             out);
}

std::optional<KernelFault> ReadKernelFault(const KernelHead& head) {
  static const Pattern kFault(
      R"(([^\s\[\]:][^\[\]]{0,15})\[(\d{1,9})\]:? (segfault|general protection|trap [a-z0-9 ]{3,24}?)(?: fault)? (?:at |ip:))");
  static const Pattern kLibrary(R"( in ([^\[\s][^\[]{0,200})\[)");
  static const Pattern kMemory(
      R"((?:Sending SIGBUS to|Killing) (.{1,15}):(\d{1,9}) due to hardware memory corruption|MCE: Killing (.{1,15}):(\d{1,9}) due to hardware memory corruption)");
  if (const auto memory = kMemory.Search(head.message)) {
    const std::size_t at = memory->text(1).empty() ? 3 : 1;
    return KernelFault{.how = std::string(kHardwareMemory),
                       .pid = *memory->number(at + 1),
                       .process = std::string(memory->text(at)),
                       .library = {},
                       .uptime = head.uptime};
  }
  const auto match = kFault.Search(head.message);
  if (!match) return std::nullopt;
  std::string_view process = match->text(1);
  if (process.starts_with("traps: ")) process.remove_prefix(7);
  KernelFault fault{.how = std::string(match->text(3)),
                    .pid = *match->number(2),
                    .process = std::string(process),
                    .library = {},
                    .uptime = head.uptime};
  if (const auto library = kLibrary.Search(head.message)) fault.library = std::string(library->text(1));
  return fault;
}

// ---- stuck tasks -----------------------------------------------------------------------------------------------

namespace {

std::optional<TaskStuck> ReadStuck(const KernelHead& head) {
  static const Pattern kBlocked(
      R"(INFO: task (.{1,32}):(\d{1,9}) (?:<[^>]*> )?blocked .{0,24}for more than (\d{1,9}) seconds)");
  static const Pattern kSoft(R"(soft lockup - CPU#\d+ stuck for (\d{1,9})s! \[(.{1,32}):(\d{1,9})\])");
  static const Pattern kState(R"(^task:(.{1,15}?) +state:D stack: *\d+ +pid: *(\d{1,9}) )");
  TaskStuck stuck;
  stuck.uptime = head.uptime;
  if (const auto blocked = kBlocked.Search(head.message)) {
    stuck.process = std::string(blocked->text(1));
    stuck.pid = blocked->number(2);
    stuck.seconds = static_cast<int>(*blocked->number(3));
  } else if (const auto soft = kSoft.Search(head.message)) {
    stuck.how = TaskStuck::How::kSoftLockup;
    stuck.seconds = static_cast<int>(*soft->number(1));
    stuck.process = std::string(soft->text(2));
    stuck.pid = soft->number(3);
  } else if (const auto waiting = kState.Search(head.message)) {
    stuck.process = std::string(waiting->text(1));
    stuck.pid = waiting->number(2);
  } else if (Contains(head.message, "hard LOCKUP on cpu")) {
    stuck.how = TaskStuck::How::kHardLockup;
  } else if (Contains(head.message, "self-detected stall on CPU") ||
             Contains(head.message, "detected stalls on CPUs/tasks")) {
    stuck.how = TaskStuck::How::kRcuStall;
  } else {
    return std::nullopt;
  }
  return stuck;
}

/// The part of the kernel that a frame is in: by its module, else by the head of its name. None: it says
/// nothing.
KernelPart PartOf(std::string_view frame) {
  struct Part {
    std::string_view mark;
    KernelPart part;
  };
  static constexpr std::array<Part, 32> kParts = {{
      {"[nvidia_uvm]", KernelPart::kNvidia},
      {"[nvidia]", KernelPart::kNvidia},
      {"[nvidia_modeset]", KernelPart::kNvidia},
      {"[nfs]", KernelPart::kNfs},
      {"[nfsv3]", KernelPart::kNfs},
      {"[nfsv4]", KernelPart::kNfs},
      {"[sunrpc]", KernelPart::kNfs},
      {"[lustre]", KernelPart::kLustre},
      {"[ptlrpc]", KernelPart::kLustre},
      {"[osc]", KernelPart::kLustre},
      {"[mdc]", KernelPart::kLustre},
      {"[ldlm]", KernelPart::kLustre},
      {"[ceph]", KernelPart::kCeph},
      {"[libceph]", KernelPart::kCeph},
      {"[fuse]", KernelPart::kFuse},
      {"[beegfs]", KernelPart::kBeegfs},
      {"[mmfs26]", KernelPart::kGpfs},
      {"[mmfslinux]", KernelPart::kGpfs},
      {"[cifs]", KernelPart::kCifs},
      {"[ext4]", KernelPart::kExt4},
      {"[jbd2]", KernelPart::kExt4},
      {"[xfs]", KernelPart::kXfs},
      {"[nvme", KernelPart::kNvme},
      {" nfs_", KernelPart::kNfs},
      {" rpc_wait_bit", KernelPart::kNfs},
      {" fuse_", KernelPart::kFuse},
      {" ceph_", KernelPart::kCeph},
      {" ext4_", KernelPart::kExt4},
      {" jbd2_", KernelPart::kExt4},
      {" xfs_", KernelPart::kXfs},
      {" nvme_", KernelPart::kNvme},
      {" io_schedule+0x", KernelPart::kBlock},
  }};
  for (const Part& part : kParts)
    if (Contains(frame, part.mark)) return part.part;
  return KernelPart::kNone;
}

}  // namespace

bool StuckReader::Consume(const Record& record, const KernelHead& head, EventSink& out) {
  constexpr std::uint64_t kLongestReport = 120;  // lines, of other CPUs and tasks between
  static const Pattern kFrame(R"(^(?:\[<[0-9a-f]+>\] )?(?:\? )?[\w.]+\+0x[0-9a-f]+/0x[0-9a-f]+)");
  if (auto stuck = ReadStuck(head)) {
    if (held_ && !stuck->seconds && stuck->pid && std::get<TaskStuck>(held_->what).pid == stuck->pid)
      return true;  // the second line of one report
    Finish(out);
    held_ = KernelEvent(record, head, std::move(*stuck));
    return true;
  }
  const bool begins = head.message.starts_with("Call Trace:") || head.message.starts_with("Call trace:");
  if (!begins && !kFrame.Search(head.message)) return false;
  if (!held_ || record.where.line > held_->where.line + kLongestReport) return true;
  auto& stuck = std::get<TaskStuck>(held_->what);
  if (begins && std::exchange(stuck.stack, true)) {  // of another report
    Finish(out);
    return true;
  }
  stuck.stack = true;
  const KernelPart part = PartOf(fmt::format(" {}", head.message));
  // The first frame that names a device or a file system is the one nearest to what is waited for; io_schedule is under
  // any.
  if (part != KernelPart::kNone && (stuck.waits_on == KernelPart::kNone || stuck.waits_on == KernelPart::kBlock))
    stuck.waits_on = part;
  return true;
}

void StuckReader::Finish(EventSink& out) {
  if (held_) out.Add(std::move(*held_));
  held_.reset();
}

}  // namespace inquest
