// When lines that count from boot were written: kernel logs without dates, aligned to the dates of others.
#include "timeline/clocks.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <span>

#include "timeline/identity.h"

namespace inquest {
namespace {

// A line of plain dmesg says how long the host had been up. It gets a date if the moment of the boot is found, by, in
// order:
//  1. Copies: a message that stands once in this log and once, dated, in any log of the same host: a bug report holds
//  both.
//  2. Lines of the same host that print both clocks, as rsyslog and the journal do: if they agree on one boot.
//  3. A process's end that both logs saw: its parent or launcher dated it seconds after the kernel ended it.
// Pairs that differ by more than the clocks can drift are of two boots, and prove nothing. Where nothing is found,
// lines keep their order inside the log, and the order to other hosts stays unknown.

using std::chrono::microseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Moment = std::chrono::sys_time<nanoseconds>;

/// The kernel's clock and the wall's part by this much in one boot, by steps and drift.
constexpr nanoseconds kDrift = seconds(120);
/// How late a launcher notices a child's end.
constexpr nanoseconds kNoticed = seconds(30);

constexpr std::string_view kByCopies = "lines that a log of the host prints with a date";
constexpr std::string_view kByBothClocks = "lines of the host that print both clocks";
constexpr std::string_view kByEnds = "a process's end that another log dates";
constexpr std::string_view kUnknown = "unknown: counts from boot, and nothing dates the boot";

/// A boot's moment as one pair of clocks gives it.
struct Boot {
  Moment at;
  Timestamp like;  ///< the date that it came from: zone and resolution
};

bool CountsFromBoot(const Event& event) {
  return UptimeOf(event.what).has_value() && (!event.at || event.at->date == Timestamp::Date::kNone);
}
bool HasBoth(const Event& event) {
  return UptimeOf(event.what).has_value() && event.at && event.at->date != Timestamp::Date::kNone;
}

/// What a message says, whatever stands in front of it. Empty: too common to be told from another.
std::string Meaning(const Event& event) {
  if (const auto* xid = std::get_if<XidReported>(&event.what))
    return fmt::format("xid|{}|{}|{}|{}", xid->xid, xid->bus_id, xid->pid ? std::to_string(*xid->pid) : "",
                       xid->detail);
  if (const auto* sxid = std::get_if<SxidReported>(&event.what))
    return fmt::format("sxid|{}|{}|{}", sxid->sxid, sxid->device, sxid->detail);
  if (const auto* fault = std::get_if<DriverFault>(&event.what))
    return fmt::format("driver|{}|{}", fault->bus_id, fault->detail);
  if (const auto* kill = std::get_if<KernelKill>(&event.what))
    return fmt::format("kill|{}|{}", kill->pid, kill->process);
  if (const auto* crash = std::get_if<KernelFault>(&event.what)) return fmt::format("crash|{}", crash->pid);
  if (const auto* stuck = std::get_if<TaskStuck>(&event.what); stuck != nullptr && stuck->pid)
    return fmt::format("stuck|{}|{}", *stuck->pid, stuck->seconds.value_or(0));
  if (const auto* pcie = std::get_if<PcieError>(&event.what))
    return fmt::format("pcie|{}|{}", pcie->bus_id, pcie->detail);
  if (const auto* notice = std::get_if<KernelNotice>(&event.what))
    return fmt::format("notice|{}|{}|{}", Name(notice->subsystem), Name(notice->what), notice->device);
  return {};
}

using ByMeaning = std::map<std::string, std::vector<const Event*>>;

/// The dated logs that may be of the host: its own, and those of which no host is known.
bool MayBeOf(const Event& event, const std::string& host) {
  return host.empty() || WriterHost(event).empty() || WriterHost(event) == host;
}

/// What dates a log, of all logs.
struct Dated {
  const Timeline& timeline;
  ByMeaning copies;                                                  ///< the kernel's lines
  std::map<std::uint32_t, std::vector<const Event*>> both_of_input;  ///< lines with both clocks
  std::map<std::string, std::vector<const Event*>> both_of_host;
  std::vector<const Event*> ends;
};

Dated DatedOf(const Timeline& timeline) {
  Dated dated{timeline, {}, {}, {}, {}};
  for (const Event& event : timeline.events) {
    if (std::holds_alternative<ProcessExit>(event.what)) dated.ends.push_back(&event);
    if (IsOfKernel(event.what) && event.at && event.at->date != Timestamp::Date::kNone)
      dated.copies[Meaning(event)].push_back(&event);
    if (!HasBoth(event)) continue;
    dated.both_of_input[event.where.input].push_back(&event);
    dated.both_of_host[WriterHost(event)].push_back(&event);
  }
  return dated;
}

std::vector<Boot> ByCopies(const Dated& dated, std::span<const Event* const> log) {
  ByMeaning here;
  for (const Event* event : log) here[Meaning(*event)].push_back(event);
  const std::string host = WriterHost(*log.front());
  std::vector<Boot> out;
  for (const auto& [meaning, events] : here) {
    const auto copies = dated.copies.find(meaning);
    if (meaning.empty() || events.size() != 1 || copies == dated.copies.end()) continue;
    std::vector<const Event*> copy;
    std::copy_if(copies->second.begin(), copies->second.end(), std::back_inserter(copy),
                 [&](const Event* event) { return MayBeOf(*event, host); });
    if (copy.size() == 1) out.push_back({copy.front()->at->at - *UptimeOf(events.front()->what), *copy.front()->at});
  }
  return out;
}

std::vector<Boot> ByBothClocks(const Dated& dated, std::span<const Event* const> log) {
  const std::string host = WriterHost(*log.front());
  const std::uint32_t input = log.front()->where.input;
  std::vector<Boot> out;
  const auto add = [&](const Event& event) { out.push_back({event.at->at - *UptimeOf(event.what), *event.at}); };
  if (const auto of_input = dated.both_of_input.find(input); of_input != dated.both_of_input.end())
    for (const Event* event : of_input->second) add(*event);
  if (const auto of_host = dated.both_of_host.find(host); !host.empty() && of_host != dated.both_of_host.end())
    for (const Event* event : of_host->second)
      if (event->where.input != input) add(*event);
  return out;
}

std::vector<Boot> ByEnds(const Dated& dated, std::span<const Event* const> log) {
  std::vector<Boot> out;
  for (const Event* event : log) {
    const bool kill = std::holds_alternative<KernelKill>(event->what);
    if (!kill && !std::holds_alternative<KernelFault>(event->what)) continue;
    const auto rank = dated.timeline.RankOf(*event);
    if (!rank) continue;
    const std::int64_t pid = kill ? std::get<KernelKill>(event->what).pid : std::get<KernelFault>(event->what).pid;
    for (const Event* const ended : dated.ends) {
      const Event& end = *ended;
      const auto* exit = std::get_if<ProcessExit>(&end.what);
      if (!exit->signal || (*exit->signal == 9) != kill || !end.at || end.at->date == Timestamp::Date::kNone) continue;
      const bool same_process = exit->pid == pid && (WriterHost(end).empty() || WriterHost(*event).empty() ||
                                                     WriterHost(end) == WriterHost(*event));
      if (!same_process && exit->rank != rank->value) continue;
      Timestamp like = *end.at;
      like.resolution = std::max(like.resolution, kNoticed);
      out.push_back({end.at->at - *UptimeOf(event->what), like});
      break;
    }
  }
  return out;
}

/// The boot in the middle of those found; nullopt where there is none, or they are of two boots.
std::optional<Boot> Agreed(std::vector<Boot> boots) {
  if (boots.empty()) return std::nullopt;
  std::sort(boots.begin(), boots.end(), [](const Boot& a, const Boot& b) { return a.at < b.at; });
  const bool alike = std::all_of(boots.begin(), boots.end(), [&](const Boot& boot) {
    return boot.like.date == boots.front().like.date && boot.like.zone_known == boots.front().like.zone_known;
  });
  const nanoseconds spread = boots.back().at - boots.front().at;
  if (!alike || spread > kDrift) return std::nullopt;
  Boot middle = boots[boots.size() / 2];
  middle.like.resolution = std::max({middle.like.resolution, spread, nanoseconds(seconds(1))});
  return middle;
}

}  // namespace

void AlignClocks(Timeline& timeline) {
  std::map<std::uint32_t, std::vector<Event*>> logs;
  for (Event& event : timeline.events)
    if (CountsFromBoot(event) && event.where.input < timeline.inputs.size()) logs[event.where.input].push_back(&event);
  struct Way {
    std::string_view rule;
    std::vector<Boot> (*find)(const Dated&, std::span<const Event* const>);
  };
  static constexpr Way kWays[] = {{kByCopies, &ByCopies}, {kByBothClocks, &ByBothClocks}, {kByEnds, &ByEnds}};
  const Dated known = DatedOf(timeline);
  // Found for all logs before any is dated: what one log lends another must be printed, not derived.
  std::map<std::uint32_t, std::pair<Boot, std::string_view>> boots;
  for (const auto& [input, events] : logs) {
    timeline.inputs[input].clock = kUnknown;
    const std::vector<const Event*> log(events.begin(), events.end());
    for (const Way& way : kWays)
      if (const auto boot = Agreed(way.find(known, log));
          boot && boots.emplace(input, std::pair(*boot, way.rule)).second)
        break;
  }
  std::map<SourcePos, Timestamp> dated;
  for (const auto& [input, boot] : boots) {
    timeline.inputs[input].clock = boot.second;
    for (Event* event : logs[input]) {
      Timestamp at = boot.first.like;
      at.at = boot.first.at + *UptimeOf(event->what);
      dated.emplace(event->where, at);
    }
  }
  // What a rule wanted of such a line is an event of its own, at the same place.
  for (Event& event : timeline.events)
    if (const auto line = dated.find(event.where); line != dated.end()) event.at = line->second;
}

}  // namespace inquest
