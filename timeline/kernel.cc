// Whose lines a kernel log's are: its host, and the process that a line of it speaks of.
#include "timeline/kernel.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <span>

#include "core/host_name.h"

namespace inquest {
namespace {

// How a kernel log finds its place in the job.
//  1. Host: what --host says; else what the lines print; else what other lines of the same file print; else a host of
//  the job in the name of the
//     file or of a folder above it; else the one host on which the log's pids and PCI addresses are the job's; else a
//     name in the file's name; else the job's only host, if there is one kernel log.
//  2. Process: by host and PCI address, which the kernel and NCCL's Init lines both print; among several, by pid. A
//  line
//     without an address: by host and pid. Where the kernel's host is a node and the job's are pods, by address alone
//     if one process of the whole job has it. A pid beside an address only helps: it is of whoever called the driver,
//     and in a container the job counts pids of its own.

constexpr std::string_view kBySameFile = "host of other lines of the file";
constexpr std::string_view kByFileName = "host in the name of the file";
constexpr std::string_view kByAddresses = "the only host on which the log's pids and PCI addresses are the job's";
constexpr std::string_view kByJobsOnlyHost = "the job's only host";
constexpr std::string_view kByOnlyHost = "the job's only host, and the only kernel log";

/// What a line speaks of.
struct About {
  std::string bus_id;
  std::optional<std::int64_t> pid;
};

std::optional<About> AboutOf(const What& what) {
  if (const auto* xid = std::get_if<XidReported>(&what)) return About{xid->bus_id, xid->pid};
  if (const auto* fault = std::get_if<DriverFault>(&what)) return About{fault->bus_id, std::nullopt};
  if (const auto* error = std::get_if<PcieError>(&what)) return About{error->bus_id, std::nullopt};
  if (const auto* kill = std::get_if<KernelKill>(&what); kill != nullptr && kill->pid != 0) return About{{}, kill->pid};
  if (const auto* crash = std::get_if<KernelFault>(&what)) return About{{}, crash->pid};
  if (const auto* stuck = std::get_if<TaskStuck>(&what)) return About{{}, stuck->pid};
  return std::nullopt;
}

bool HostFits(const ProcessRow& row, const std::optional<std::string>& host) {
  return !row.host || !host || *row.host == *host || HostName(*row.host).Short() == HostName(*host).Short();
}

/// The only one of the rows, or the last of several that are the same rank. A launcher's word of a pid, without host or
/// rank, is of the process that has both.
std::optional<std::uint32_t> Only(const Timeline& timeline, std::vector<std::uint32_t> rows) {
  const auto known = [&](std::uint32_t row) { return timeline.processes[row].rank && timeline.processes[row].host; };
  if (std::any_of(rows.begin(), rows.end(), known)) std::erase_if(rows, [&](std::uint32_t row) { return !known(row); });
  if (rows.empty()) return std::nullopt;
  const auto same = [&](std::uint32_t row) {
    return timeline.processes[row].rank && timeline.processes[rows.back()].rank &&
           timeline.processes[row].rank->value == timeline.processes[rows.back()].rank->value;
  };
  return rows.size() == 1 || std::all_of(rows.begin(), rows.end(), same) ? std::optional(rows.back()) : std::nullopt;
}

/// Processes by what a line of the kernel may know of them.
struct Index {
  std::multimap<std::int64_t, std::uint32_t> by_pid;
  std::multimap<std::string, std::uint32_t> by_device;  ///< without its function
};

Index IndexOf(const Timeline& timeline) {
  Index index;
  for (std::uint32_t i = 0; i < timeline.processes.size(); ++i) {
    if (timeline.processes[i].pid) index.by_pid.emplace(*timeline.processes[i].pid, i);
    if (timeline.processes[i].bus_id) index.by_device.emplace(WithoutFunction(*timeline.processes[i].bus_id), i);
  }
  return index;
}

std::optional<std::uint32_t> FindProcess(const Timeline& timeline, const Index& index, const About& about,
                                         const std::optional<std::string>& host) {
  std::vector<std::uint32_t> by_device, by_pid, by_both;
  const auto each = [&](const auto& rows, const auto& key, auto take) {
    const auto [begin, end] = rows.equal_range(key);
    for (auto it = begin; it != end; ++it)
      if (HostFits(timeline.processes[it->second], host)) take(it->second, timeline.processes[it->second]);
  };
  if (!about.bus_id.empty())
    each(index.by_device, WithoutFunction(about.bus_id), [&](std::uint32_t i, const ProcessRow& row) {
      by_device.push_back(i);
      if (about.pid && row.pid == about.pid) by_both.push_back(i);
    });
  if (about.pid)
    each(index.by_pid, *about.pid, [&](std::uint32_t i, const ProcessRow& row) {
      if (about.bus_id.empty() || !row.bus_id) by_pid.push_back(i);
    });
  if (!by_both.empty()) return Only(timeline, by_both);
  if (!by_device.empty()) return Only(timeline, by_device);
  return Only(timeline, by_pid);
}

/// The events of one input.
template <class Events>
auto EventsOf(Events& events, std::uint32_t input) {
  const auto begin = std::lower_bound(events.begin(), events.end(), input,
                                      [](const Event& event, std::uint32_t in) { return event.where.input < in; });
  const auto end = std::upper_bound(begin, events.end(), input,
                                    [](std::uint32_t in, const Event& event) { return in < event.where.input; });
  return std::span(begin, end);
}

// ---- hosts of files --------------------------------------------------------------------------------------------

bool IsWordChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; }

/// Whether a name stands in a text with nothing that would make it a longer name around it.
bool Stands(const std::string& text, const std::string& name) {
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !IsWordChar(text[at - 1])) && (end == text.size() || !IsWordChar(text[end]))) return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> JobHostIn(std::string path, const std::set<std::string>& hosts) {
  while (!path.empty()) {
    const std::size_t slash = path.find_last_of("/:");
    const std::string part = slash == std::string::npos ? path : path.substr(slash + 1);
    const std::string* best = nullptr;
    for (const std::string& host : hosts)
      if (Stands(part, HostName(host).Short()) && (best == nullptr || host.size() > best->size())) best = &host;
    if (best != nullptr) return *best;
    path.resize(slash == std::string::npos ? 0 : slash);
  }
  return std::nullopt;
}

namespace {

/// `dmesg.txt` of `dmesg.txt.bz2`: how a file was packed says nothing of where it is from.
std::string WithoutPacking(std::string name) {
  static constexpr std::string_view kPackings[] = {".gz",     ".xz",     ".zst",  ".bz2",  ".lz4",  ".lz",  ".lzo",
                                                   ".lzma",   ".br",     ".Z",    ".7z",   ".zip",  ".tar", ".tgz",
                                                   ".txz",    ".tbz",    ".tbz2", ".tzst", ".tlz4", ".md5", ".sha1",
                                                   ".sha256", ".sha512", ".utf8", ".utf16"};
  for (bool packed = true; packed;) {
    packed = false;
    for (const std::string_view packing : kPackings)
      if (name.ends_with(packing)) {
        name.resize(name.size() - packing.size());
        packed = true;
      }
  }
  return name;
}

/// `dmesg-node07.txt`, `gpu3_kern.log`: what is left of the name without the words that any kernel log may have.
std::optional<std::string> OtherHostIn(const std::string& path) {
  static const std::set<std::string> kWords = {
      "dmesg", "kern", "kernel", "journal", "journalctl", "syslog",   "messages", "console", "serial",  "sol",
      "log",   "txt",  "json",   "out",     "gz",         "xz",       "zst",      "boot",    "xid",     "nvrm",
      "rank",  "job",  "run",    "case",    "test",       "ibstat",   "ibstatus", "ibv",     "devinfo", "rdma",
      "link",  "show", "gids",   "ip",      "addr",       "ifconfig", "ethtool",  "eth",     "ens",     "ib",
      "mlx",   "bond", "ulimit", "limits",  "df",         "shm",      "uname",    "cmdline", "proc",    "lspci",
      "acs",   "env",  "nccl",   "conf",    "nvidia",     "bug",      "report",   "smi",     "p"};
  const std::string name = WithoutPacking(path.substr(path.find_last_of("/:") + 1));
  std::vector<std::string> left;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find_first_of("._", at), name.size());
    std::string word = name.substr(at, end - at);
    for (std::string part; !word.empty();) {  // `dmesg-node07`: words that are joined by a dash to a host's name
      const std::size_t dash = word.find('-');
      part = word.substr(0, dash);
      std::string stem = part;
      while (!stem.empty() && std::isdigit(static_cast<unsigned char>(stem.back())) != 0) stem.pop_back();
      if (!stem.empty() && kWords.count(stem) == 0) break;
      word = dash == std::string::npos ? std::string() : word.substr(dash + 1);
    }
    if (!word.empty()) left.push_back(word);
    at = end + 1;
  }
  const auto is_host = [](const std::string& word) {
    return word.size() >= 3 && std::islower(static_cast<unsigned char>(word[0])) != 0 &&
           std::isdigit(static_cast<unsigned char>(word.back())) != 0;
  };
  return left.size() == 1 && is_host(left.front()) ? std::optional(left.front()) : std::nullopt;
}

/// The host on which most of the lines are of the job's processes; nullopt where two are alike, or none.
std::optional<std::string> HostByAddresses(const Timeline& timeline, const Index& index, std::uint32_t input) {
  std::map<std::string, std::size_t> votes;
  for (const Event& event : EventsOf(timeline.events, input)) {
    const auto about = AboutOf(event.what);
    if (!about || !about->pid) continue;
    const auto [begin, end] = index.by_pid.equal_range(*about->pid);
    for (auto it = begin; it != end; ++it)
      if (const ProcessRow& row = timeline.processes[it->second];
          row.host && (about->bus_id.empty() || !row.bus_id || SameDevice(about->bus_id, *row.bus_id)))
        ++votes[*row.host];
  }
  const auto fewer = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto best = std::max_element(votes.begin(), votes.end(), fewer);
  const bool alone = best != votes.end() && std::count_if(votes.begin(), votes.end(), [&](const auto& vote) {
                                              return vote.second == best->second;
                                            }) == 1;
  return alone ? std::optional(best->first) : std::nullopt;
}

/// Hosts that the input prints in its lines of one kind.
template <class Is>
std::set<std::string> PrintedHosts(const Timeline& timeline, std::uint32_t input, Is is) {
  std::set<std::string> printed;
  for (const Event& event : EventsOf(timeline.events, input))
    if (is(event) && event.origin.host) printed.insert(event.origin.host->value);
  return printed;
}

bool IsKernelLine(const Event& event) { return IsOfKernel(event.what); }

/// The state of a host, or an environment, that no process of the job printed: of the host on which the tool was run.
bool IsHostState(const Event& event) {
  return (IsOfHost(event.what) || std::holds_alternative<EnvironmentSet>(event.what)) && !event.origin.pid &&
         !event.origin.rank;
}

// A host's state: by its own lines (uname, a prompt), by the kernel's lines beside it (nvidia-bug-report holds both),
// then as for a kernel log.
std::optional<Known<std::string>> HostOfStates(const Timeline& timeline, std::uint32_t input,
                                               const std::set<std::string>& hosts) {
  std::set<std::string> printed = PrintedHosts(timeline, input, IsHostState);
  if (printed.empty()) printed = PrintedHosts(timeline, input, IsKernelLine);
  if (printed.size() == 1) return Known<std::string>{*printed.begin(), Basis::kDerived, kBySameFile};
  if (!printed.empty()) return std::nullopt;
  const std::string path = input < timeline.inputs.size() ? timeline.inputs[input].path : std::string();
  if (auto host = JobHostIn(path, hosts)) return Known<std::string>{*host, Basis::kFileName, kByFileName};
  if (auto host = OtherHostIn(path)) return Known<std::string>{*host, Basis::kFileName, kByFileName};
  if (hosts.size() == 1) return Known<std::string>{*hosts.begin(), Basis::kAssumed, kByJobsOnlyHost};
  return std::nullopt;
}

std::optional<Known<std::string>> HostOfInput(const Timeline& timeline, const Index& index, std::uint32_t input,
                                              const std::set<std::string>& hosts, bool only_log) {
  const std::set<std::string> printed = PrintedHosts(timeline, input, IsKernelLine);
  if (printed.size() == 1) return Known<std::string>{*printed.begin(), Basis::kDerived, kBySameFile};
  if (!printed.empty()) return std::nullopt;
  const std::string path = input < timeline.inputs.size() ? timeline.inputs[input].path : std::string();
  if (auto host = JobHostIn(path, hosts)) return Known<std::string>{*host, Basis::kFileName, kByFileName};
  if (auto host = HostByAddresses(timeline, index, input))
    return Known<std::string>{*host, Basis::kDerived, kByAddresses};
  if (const auto stated = PrintedHosts(timeline, input, IsHostState); stated.size() == 1)
    return Known<std::string>{*stated.begin(), Basis::kDerived, kBySameFile};
  if (auto host = OtherHostIn(path)) return Known<std::string>{*host, Basis::kFileName, kByFileName};
  if (hosts.size() == 1 && only_log) return Known<std::string>{*hosts.begin(), Basis::kAssumed, kByOnlyHost};
  return std::nullopt;
}

/// Gives the events of one kind in one input the input's host, in the spelling of the job.
template <class Is>
void GiveHost(Timeline& timeline, std::uint32_t input, const std::set<std::string>& hosts,
              const std::optional<Known<std::string>>& host, Is is) {
  const auto& given = input < timeline.inputs.size() ? timeline.inputs[input].host : std::nullopt;
  const bool by_user = given && given->basis == Basis::kGiven;
  for (Event& event : EventsOf(timeline.events, input)) {
    if (!is(event)) continue;
    if (by_user)
      event.origin.host = given;
    else if (!event.origin.host)
      event.origin.host = host;
    // The journal prints a whole name, NCCL one that is cut at the first dot.
    if (event.origin.host && hosts.count(event.origin.host->value) == 0)
      if (const std::string name = HostName(event.origin.host->value).Short(); hosts.count(name) != 0)
        event.origin.host->value = name;
  }
}

void NameHosts(Timeline& timeline, const Index& index) {
  const std::set<std::string>& hosts = timeline.ProcessHosts();
  std::set<std::uint32_t> states;
  for (const Event& event : timeline.events)
    if (IsHostState(event)) states.insert(event.where.input);
  std::set<std::uint32_t> logs;
  for (const Event& event : timeline.events)
    if (IsOfKernel(event.what) && !std::holds_alternative<LogMessage>(event.what)) logs.insert(event.where.input);
  for (const std::uint32_t input : logs) {
    const auto host = HostOfInput(timeline, index, input, hosts, logs.size() == 1);
    GiveHost(timeline, input, hosts, host, IsKernelLine);
  }
  for (const std::uint32_t input : states)
    GiveHost(timeline, input, hosts, HostOfStates(timeline, input, hosts), IsHostState);
}

/// The host to look on: none where the kernel names it in a way that the job does not, as a node below its pods.
std::optional<std::string> HostToSearch(const Event& event, const std::set<std::string>& hosts,
                                        const std::set<std::string>& kinds) {
  if (!event.origin.host) return std::nullopt;
  const std::string& host = event.origin.host->value;
  const bool named_alike = hosts.empty() || hosts.count(host) != 0 || kinds.contains(HostName(host).Kind());
  return named_alike ? std::optional(host) : std::nullopt;
}

}  // namespace

void JoinKernel(Timeline& timeline) {
  const Index index = IndexOf(timeline);
  NameHosts(timeline, index);
  const std::set<std::string>& hosts = timeline.ProcessHosts();
  std::set<std::string> kinds;
  for (const std::string& host : hosts) kinds.insert(HostName(host).Kind());
  for (const Event& event : timeline.events) {
    const auto about = AboutOf(event.what);
    if (!about || (about->bus_id.empty() && !about->pid)) continue;
    if (const auto process = FindProcess(timeline, index, *about, HostToSearch(event, hosts, kinds)))
      timeline.process_by_kernel_line.emplace(event.where, *process);
  }
}

}  // namespace inquest
