// A GPU of the job, or a switch between its GPUs, reported a numbered error in the kernel log.
//
// What holds: an Xid stands on the PCI address of a rank's GPU, or an SXid on a switch of its host, not hours before
// the failure and not after it; the catalogue says what the number means. Why that implies the cause: the driver saw
// the GPU fail, or stop a faulty kernel, before any rank could notice. What looks like it: an Xid on another job's GPU,
// one of yesterday, and those that follow: 43 and 45 when a process dies of anything, 154 that sums another up, NVLink
// and NVSwitch errors when a GPU at the other end fell off the bus.
#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "rules/detectors.h"
#include "rules/recovery.h"
#include "rules/thresholds.h"

namespace inquest {
namespace xid {

constexpr FindingRow kFindings[] = {
    {"xid-of-application", "reported follows",
     "who reported named meaning order waited several action plain evidence drain reset reboot", "", true},
    {"xid-of-driver", "reported follows",
     "who reported named meaning order waited action plain evidence drain reset reboot", "", true},
    {"xid-of-hardware", "reported follows",
     "who reported named meaning order waited action plain evidence drain reset reboot", "", true},
    {"xid-of-nvlink", "reported follows",
     "who reported named meaning order waited action plain evidence drain reset reboot", "", true},
    {"xid-of-firmware", "reported follows",
     "who reported named meaning order waited action plain evidence drain reset reboot", "", true},
    {"sxid-of-switch", "reported follows", "who number meaning order waited action plain evidence drain", "", true},
    {"xid-outside", "outside", "named device where meaning", "", true},
};
using Found = FoundIn<kFindings>;

using Class = ErrorCode::Class;
using Role = ErrorCode::Role;

constexpr std::size_t kCited = 6;

/// One report, by what it means: an Xid 45 that names its cause means that, an NVLink error is one under any number.
struct Seen {
  EventIndex event = 0;
  const ErrorCode* code = nullptr;
  int number = 0;
  std::string bus_id;
  Strength strength = Strength::kHint;
  double confidence = 0;
};

struct Holds {
  Found::Held reported, follows;
};
/// By class.
constexpr Holds kHolds[] = {
    {{"xid-of-application", "reported"}, {"xid-of-application", "follows"}},
    {{"xid-of-driver", "reported"}, {"xid-of-driver", "follows"}},
    {{"xid-of-hardware", "reported"}, {"xid-of-hardware", "follows"}},
    {{"xid-of-nvlink", "reported"}, {"xid-of-nvlink", "follows"}},
    {{"xid-of-firmware", "reported"}, {"xid-of-firmware", "follows"}},
};
constexpr Holds kOfSwitch{{"sxid-of-switch", "reported"}, {"sxid-of-switch", "follows"}};

std::optional<Seen> ReadXid(const RuleBook& book, const XidReported& xid, EventIndex event) {
  Seen seen{
      .event = event, .code = book.FindXid(xid.caused_by.value_or(xid.xid)), .number = xid.xid, .bus_id = xid.bus_id};
  const bool nvlink = xid.detail.find("NVLink: ") != std::string::npos;
  if (nvlink && (seen.code == nullptr || seen.code->origin != Class::kNvlink)) seen.code = book.FindXid(74);
  if (seen.code == nullptr) return std::nullopt;
  seen.strength = StrengthOf(*seen.code);
  seen.confidence = seen.code->confidence;
  const bool nonfatal = seen.code->origin == Class::kNvlink && xid.detail.find("Nonfatal") != std::string::npos;
  if (!nonfatal) return seen;
  seen.strength = Strength::kHint;
  seen.confidence = std::min(seen.confidence, 0.4);
  return seen;
}

std::optional<Seen> ReadSxid(const RuleBook& book, const SxidReported& sxid, EventIndex event) {
  Seen seen{.event = event, .code = book.FindSxid(sxid.sxid), .number = sxid.sxid, .bus_id = sxid.bus_id};
  if (seen.code == nullptr || seen.code->role == Role::kNotice) return std::nullopt;
  const bool fatal = sxid.severity == SxidReported::Severity::kFatal;
  if (!fatal && seen.code->cause == "nvlink-fault") {
    seen.confidence = 0.3;
    return seen;
  }
  // A fatal error of a link that another's fault may have brought down weighs less than one that the switch made
  // itself.
  seen.strength = Strength::kSupporting;
  seen.confidence = seen.code->role == Role::kFollows ? 0.46 : std::clamp(seen.code->confidence, 0.71, 0.79);
  return seen;
}

/// The GPU as a culprit: its rank where it is known, else host and address.
Culprit Blame(const Timeline& timeline, const Seen& seen, const std::string& why) {
  const Event& event = timeline.events[seen.event];
  Culprit culprit;
  const auto rank = timeline.RankOf(event);
  if (rank && std::holds_alternative<XidReported>(event.what)) culprit = BlameRank(timeline, rank->value, why);
  culprit.why = why;
  if (!culprit.host) culprit.host = timeline.HostOf(event);
  if (!seen.bus_id.empty()) culprit.bus_id = seen.bus_id;
  return culprit;
}

/// A GPU whose kernel faulted is slow to leave it: the context switch that times out after the fault follows it.
bool FollowsAFault(const Timeline& timeline, const std::vector<Seen>& faults, const Seen& late) {
  constexpr int kContextSwitchTimeOut = 109;
  if (late.number != kContextSwitchTimeOut) return false;
  const Event& event = timeline.events[late.event];
  return std::any_of(faults.begin(), faults.end(), [&](const Seen& fault) {
    const Event& before = timeline.events[fault.event];
    if (fault.bus_id != late.bus_id || fault.code->role != Role::kCause ||
        timeline.Order(fault.event, late.event) != std::partial_ordering::less)
      return false;
    const auto up = UptimeOf(before.what), down = UptimeOf(event.what);
    if (up && down) return *down - *up <= thresholds::kContextSwitch;
    return !event.at || !before.at || event.at->at - before.at->at <= thresholds::kContextSwitch;
  });
}

bool Together(const Timeline& timeline, EventIndex a, EventIndex b) {
  const Event &x = timeline.events[a], &y = timeline.events[b];
  const auto up = UptimeOf(x.what), down = UptimeOf(y.what);
  if (up && down && x.where.input == y.where.input) return std::chrono::abs(*up - *down) <= thresholds::kOneFault;
  return !x.at || !y.at || x.at->date != y.at->date || std::chrono::abs(x.at->at - y.at->at) <= thresholds::kOneFault;
}

bool Before(const Timeline& timeline, const Seen& a, const Seen& b) {
  if (a.strength != b.strength) return a.strength > b.strength;
  if ((a.code->role == Role::kCause) != (b.code->role == Role::kCause)) return a.code->role == Role::kCause;
  // 149 stands on the GPU whose link went down, 145 on the peers that lost their way to it.
  if (a.code->number != b.code->number && (a.code->number == 149 || b.code->number == 149) &&
      a.code->origin == Class::kNvlink)
    return a.code->number == 149;
  const auto order = timeline.Order(a.event, b.event);
  if (order == std::partial_ordering::less || order == std::partial_ordering::greater)
    return order == std::partial_ordering::less;
  if (a.confidence != b.confidence) return a.confidence > b.confidence;
  return a.event < b.event;
}

/// The first of the reports that weigh most.
const Seen& Leader(const Timeline& timeline, const std::vector<Seen>& reports) {
  const Seen* first = &reports.front();
  for (const Seen& seen : reports)
    if (Before(timeline, seen, *first)) first = &seen;
  return *first;
}

bool IsAbsent(const Timeline& timeline, GlobalRank rank) {
  if (timeline.collectives.empty()) return false;
  const auto& waiters = timeline.collectives.front().waiters;
  return std::none_of(waiters.begin(), waiters.end(), [&](const auto& waiter) { return waiter.rank == rank; });
}

/// One process that faults on several GPUs at once carries a bad address to all of them.
bool OnePidOnSeveral(const Timeline& timeline, const std::vector<Seen>& reports) {
  std::map<std::int64_t, std::set<std::string>> devices;
  for (const Seen& seen : reports)
    if (const auto* xid = std::get_if<XidReported>(&timeline.events[seen.event].what);
        xid != nullptr && xid->pid && seen.code->role == Role::kCause)
      devices[*xid->pid].insert(xid->bus_id);
  return std::any_of(devices.begin(), devices.end(), [](const auto& entry) { return entry.second.size() > 1; });
}

/// A channel that was reset, in a kernel's log without the job's: nothing else can have been first, and a program did
/// it.
bool IsAllThereIs(const Timeline& timeline, const std::vector<Seen>& reports) {
  constexpr int kChannelReset = 43;
  const auto ranked = [](const auto& process) { return process.rank.has_value(); };
  return timeline.collectives.empty() && std::none_of(timeline.processes.begin(), timeline.processes.end(), ranked) &&
         std::all_of(reports.begin(), reports.end(), [](const Seen& seen) { return seen.number == kChannelReset; });
}

std::string Who(const std::vector<Culprit>& culprits, std::string_view one, std::string_view several) {
  std::vector<std::string> names;
  std::vector<int> ranks;
  std::set<std::string> hosts;
  for (const Culprit& culprit : culprits) {
    if (culprit.bus_id) names.push_back(*culprit.bus_id);
    if (culprit.rank) ranks.push_back(culprit.rank->value);
    if (culprit.host) hosts.insert(*culprit.host);
  }
  std::string who(names.size() > 1 ? several : one);
  if (names.size() > 4)
    who = fmt::format("{} {}", names.size(), several);
  else if (!names.empty())
    who += fmt::format(" {}", fmt::join(names, ", "));
  if (!ranks.empty()) who += fmt::format(" of rank{} {}", ranks.size() > 1 ? "s" : "", FoldRanks(ranks));
  if (hosts.size() == 1) who += " on " + *hosts.begin();
  return who;
}

using Need = ErrorCode::Need;

/// What has to be done for the GPU, and which of it the driver itself asks for.
struct Needed {
  std::vector<Need> needs;
  bool told_to_reboot = false;
  bool Any(std::initializer_list<Need> any) const {
    return std::any_of(needs.begin(), needs.end(),
                       [&](Need need) { return std::find(any.begin(), any.end(), need) != any.end(); });
  }
};

/// The row's needs, and what the driver asks for in the Xid 154 of the same GPUs, which sums up what befell them.
Needed NeededAfter(const Evidence& evidence, const Seen& first) {
  Needed out{.needs = first.code->needs};
  const Timeline& timeline = evidence.timeline;
  const auto host = timeline.HostOf(timeline.events[first.event]);
  for (const Event& event : timeline.events) {
    const auto* xid = std::get_if<XidReported>(&event.what);
    if (xid == nullptr || xid->xid != kRecoveryAction || xid->bus_id != first.bus_id || timeline.HostOf(event) != host)
      continue;
    for (const Need need : RecoveryAsked(xid->detail)) {
      out.needs.push_back(need);
      out.told_to_reboot = out.told_to_reboot || need == Need::kRebootNode;
    }
  }
  return out;
}

/// What is needed becomes a step each, in their order: evidence, drain, reset. A GPU that needs a reboot is not reset:
/// after Xid 79 nvidia-smi no longer reaches it.
void SaySteps(const Needed& needed, bool of_switch, Found& found) {
  const bool reboot = needed.Any({Need::kRebootNode, Need::kReturnPart});
  const bool reset = needed.Any({Need::kResetGpu}) && !needed.Any({Need::kRebootNode});
  if (reboot || reset || needed.Any({Need::kDrainNode, Need::kResetSwitch})) {
    found.Say("evidence", "yes");
    found.Say("drain", "yes");
  } else {
    found.Say("plain", "yes");
  }
  if (of_switch) return;
  if (reset) found.Say("reset", "yes");
  if (needed.told_to_reboot) found.Say("reboot", "yes");
}

/// A number stands only where the line has one: a GPU that fell off the bus is reported with and without.
void SayNumber(const Event& event, const Seen& first, bool of_switch, Found& found) {
  if (of_switch) return found.Say("number", std::to_string(first.code->number));
  const auto* xid = std::get_if<XidReported>(&event.what);
  // A link's error whose own number the catalogue lacks is told as one of its kind.
  const bool printed =
      xid != nullptr && (xid->caused_by ? *xid->caused_by : xid->xid) == static_cast<int>(first.code->number);
  const std::string number = fmt::format("Xid {}", printed ? static_cast<int>(first.code->number) : first.number);
  found.Say("reported",
            xid == nullptr ? "fell off the bus, as the driver says without a number" : "reported " + number);
  found.Say("named", xid == nullptr ? "lost, without a number" : number);
}

/// What may have been after the failure, or on another day, is less sure: less so where a rank's own process or the
/// rank that is missing stands behind it. Kernels that fault are daily work on a shared host, and lose their strength
/// too.
void WeighUndated(const Evidence& evidence, Seen& seen) {
  const Timeline& timeline = evidence.timeline;
  const Event& event = timeline.events[seen.event];
  if (!evidence.scope.OrderUnknown(event)) return;
  const auto* xid = std::get_if<XidReported>(&event.what);
  const auto process = timeline.ProcessOf(event);
  const auto rank = timeline.RankOf(event);
  const bool tied = (process && xid != nullptr && xid->pid && timeline.processes[*process].pid == xid->pid) ||
                    (rank && IsAbsent(timeline, rank->value));
  seen.confidence = std::min(seen.confidence, tied ? 0.85 : 0.75);
  if (tied || xid == nullptr || seen.strength != Strength::kDecisive || seen.code->origin != Class::kApplication)
    return;
  seen.strength = Strength::kSupporting;
  seen.confidence = std::min(seen.confidence, 0.6);
}

Found FoundOf(const Evidence& evidence, const std::vector<Seen>& reports, bool of_switch) {
  const Timeline& timeline = evidence.timeline;
  const Seen& first = Leader(timeline, reports);
  const Holds& holds = of_switch ? kOfSwitch : kHolds[static_cast<std::size_t>(first.code->origin)];
  Found found(first.strength == Strength::kHint ? holds.follows : holds.reported);
  found.cause = first.code->cause;
  RowWeight weight{first.strength, std::min(first.confidence + 0.01, 0.98)};
  if (!of_switch && IsAllThereIs(timeline, reports)) weight = {Strength::kSupporting, 0.5};
  found.times = reports.size();
  found.Say("action", first.code->action);
  const Needed needed = NeededAfter(evidence, first);
  SaySteps(needed, of_switch, found);
  if (needed.Any({Need::kResetGpu, Need::kResetSwitch, Need::kRebootNode, Need::kDrainNode, Need::kReturnPart}))
    found.retry = Retry::kElsewhere;
  std::set<std::string> blamed;
  std::set<std::pair<std::string, int>> cited;
  found.citations.push_back(Cite(timeline, first.event, LineRole::kCause));
  cited.insert({first.bus_id, first.number});
  for (const Seen& seen : reports) {
    const bool alike = seen.code->number == first.code->number && seen.strength == first.strength &&
                       Together(timeline, first.event, seen.event);
    const std::string key = timeline.HostOf(timeline.events[seen.event]).value_or("") + seen.bus_id;
    if (alike && blamed.insert(key).second) {
      Culprit culprit = Blame(timeline, seen, "");
      if (culprit.rank || culprit.host || culprit.bus_id) found.culprits.push_back(std::move(culprit));
    }
    if (found.citations.size() < kCited && cited.insert({seen.bus_id, seen.number}).second)
      found.citations.push_back(Cite(timeline, seen.event, alike ? LineRole::kCause : LineRole::kContext));
  }
  found.Say("who", of_switch ? Who(found.culprits, "NVSwitch", "NVSwitches") : Who(found.culprits, "GPU", "GPUs"));
  SayNumber(timeline.events[first.event], first, of_switch, found);
  found.Say("meaning", first.code->meaning);
  if (const Event& event = timeline.events[first.event];
      evidence.scope.OrderUnknown(event) && timeline.inputs.size() > 1)
    found.Say(
        "order",
        event.at
            ? " Its log and the job's may keep the time of different zones: whether it was before the failure is not "
              "known."
            : " Its log counts from boot, and nothing dates the boot: whether it was before the failure is not known.");
  const bool absent = std::any_of(found.culprits.begin(), found.culprits.end(), [&](const Culprit& culprit) {
    return culprit.rank && IsAbsent(timeline, *culprit.rank);
  });
  if (absent && first.strength != Strength::kHint) {
    found.Say("waited", " The others waited for it.");
    weight.confidence = std::min(weight.confidence + 0.02, 0.98);
  }
  if (first.code->origin == Class::kApplication && !of_switch && OnePidOnSeveral(timeline, reports)) {
    found.Say("several", " One process faulted on several GPUs: it is the program, not the cards.");
    weight.confidence = std::max(weight.confidence, 0.9);
  }
  found.weight = weight;
  return found;
}

/// What was seen and is no part of the failure: shown, so that nobody has to wonder whether it was read.
Found Outside(const Evidence& evidence, const Seen& seen, KernelScope::Outside why) {
  static constexpr std::string_view kWhys[] = {"", "stands on a host that is not the job's",
                                               "stands on a GPU that is not the job's", "was long before the failure",
                                               "came after the job had failed"};
  Found found({"xid-outside", "outside"});
  found.cause = seen.code->cause;
  const bool printed = std::holds_alternative<XidReported>(evidence.timeline.events[seen.event].what);
  found.Say("named", printed ? fmt::format("Xid {}", seen.number) : "An error that the driver told without a number");
  found.Say("device", seen.bus_id);
  found.Say("where", std::string(kWhys[static_cast<std::size_t>(why)]));
  found.Say("meaning", seen.code->meaning);
  found.citations.push_back(Cite(evidence.timeline, seen.event, LineRole::kContext));
  found.explained_by = "kernel-scope";  // set aside from the start: no other finding has to explain it
  return found;
}

std::vector<Relation> Run(const Evidence& evidence) {
  const Timeline& timeline = evidence.timeline;
  std::map<std::pair<std::string, Class>, std::vector<Seen>> xids;
  std::map<std::string, std::vector<Seen>> sxids;
  std::optional<Found> outside;
  for (EventIndex i = 0; i < timeline.events.size(); ++i) {
    const Event& event = timeline.events[i];
    const auto* sxid = std::get_if<SxidReported>(&event.what);
    std::optional<Seen> seen;
    if (const auto* xid = std::get_if<XidReported>(&event.what)) seen = ReadXid(evidence.book, *xid, i);
    if (sxid != nullptr) seen = ReadSxid(evidence.book, *sxid, i);
    if (const auto* fault = std::get_if<DriverFault>(&event.what);
        fault != nullptr && fault->how == DriverFault::How::kFallenOffBus)
      seen = ReadXid(evidence.book,
                     XidReported{.xid = 79,
                                 .bus_id = fault->bus_id,
                                 .pid = {},
                                 .process = {},
                                 .detail = {},
                                 .caused_by = {},
                                 .uuid = {},
                                 .uptime = {}},
                     i);
    if (!seen) continue;
    WeighUndated(evidence, *seen);
    const KernelScope::Outside why = evidence.scope.Of(event);
    if (why != KernelScope::Outside::kNo) {
      if (!outside && sxid == nullptr && evidence.scope.failed()) outside = Outside(evidence, *seen, why);
    } else if (sxid != nullptr) {
      sxids[seen->code->cause].push_back(*seen);
    } else {
      xids[{seen->code->cause, seen->code->origin}].push_back(*seen);
    }
  }
  const std::pair<std::string, Class> of_program = {"cuda-kernel-fault", Class::kApplication};
  if (const auto faults = xids.find(of_program); faults != xids.end())
    for (auto it = xids.begin(); it != xids.end();) {
      if (it != faults)
        std::erase_if(it->second, [&](const Seen& seen) { return FollowsAFault(timeline, faults->second, seen); });
      it = it->second.empty() ? xids.erase(it) : std::next(it);
    }
  std::vector<Relation> out;
  for (const auto& [key, reports] : xids) out.push_back(FoundOf(evidence, reports, false));
  for (const auto& [cause, reports] : sxids) out.push_back(FoundOf(evidence, reports, true));
  if (outside && out.empty()) out.push_back(std::move(*outside));
  return out;
}

}  // namespace xid

const Detector kXid{"xid", "A GPU or a switch of the job reported a numbered error in the kernel log.", xid::kFindings,
                    &xid::Run};

}  // namespace inquest
