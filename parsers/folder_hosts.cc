// Names of hosts in the paths of inputs: support bundles have a folder for each host.
#include "parsers/folder_hosts.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "core/ascii.h"
#include "core/host_name.h"

namespace inquest {
namespace {

using std::string_view;

constexpr string_view kBundle = "inquest-bundle/";
/// What others may have written: files that the user named, and dumps in a home folder that all nodes share.
constexpr std::array<string_view, 2> kOfOthers = {"files/", "dumps/"};

/// Starts of names of what a node has once. A job's own logs prove nothing: `run-1/` and `run-2/` have those as well.
constexpr std::array<string_view, 12> kOfOneHost = {"dmesg",      "kern.log",   "kern-",   "kernel",
                                                    "syslog",     "messages",   "journal", "ibstat",
                                                    "nvidia-smi", "nvidia_smi", "uname",   "nvidia-bug-report"};
constexpr std::array<string_view, 24> kNotHosts = {"rank", "attempt", "run",        "job",     "step",    "task",
                                                   "case", "trial",   "epoch",      "restart", "default", "none",
                                                   "log",  "logs",    "checkpoint", "output",  "outputs", "tmp",
                                                   "data", "stdout",  "stderr",     "part",    "day",     "test"};

/// Of folders of devices; `gpu-a1.example.org` is a host all the same.
constexpr std::array<string_view, 4> kDevices = {"gpu", "cuda", "device", "nic"};
/// Of folders that nobody calls so but by the host: `node07`, `dgx-12`. Two of them need no kernel log inside.
constexpr std::array<string_view, 7> kHostStems = {"node", "host", "dgx", "hgx", "compute", "nid", "ip"};
/// Folders around those of hosts, as must-gather has them.
constexpr std::array<string_view, 3> kAroundHosts = {"nodes", "hosts", "hostnames"};
constexpr string_view kSosReport = "sosreport-";

string_view BaseName(string_view path) { return path.substr(path.find_last_of("/:") + 1); }
/// Where the last part of a folder's path begins.
std::size_t PartAt(string_view folder) { return folder.find_last_of("/:") + 1; }

bool IsOfOneHost(string_view path) {
  const string_view name = BaseName(path);
  return std::any_of(kOfOneHost.begin(), kOfOneHost.end(), [&](string_view start) { return name.starts_with(start); });
}

string_view Stem(string_view name) {
  return name.substr(0, static_cast<std::size_t>(std::find_if_not(name.begin(), name.end(), IsLetter) - name.begin()));
}

/// A word and a number: `node07`, `dgx-12`, `ip-10-0-0-7`.
bool IsNumbered(string_view name) {
  const string_view rest = name.substr(Stem(name).size());
  return !rest.empty() && std::all_of(rest.begin(), rest.end(), [](char c) { return IsDigit(c) || c == '-'; }) &&
         IsDigit(rest.back());
}

bool LooksLikeHost(string_view name) {
  constexpr std::size_t kLongest = 253;
  if (name.size() < 2 || name.size() > kLongest || (!IsLetter(name.front()) && !IsDigit(name.front()))) return false;
  const auto is_host_char = [](char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '.'; };
  if (!std::all_of(name.begin(), name.end(), is_host_char) || std::none_of(name.begin(), name.end(), IsLetter))
    return false;
  if (std::find(kNotHosts.begin(), kNotHosts.end(), Stem(name)) != kNotHosts.end()) return false;
  return !IsNumbered(name) || std::find(kDevices.begin(), kDevices.end(), Stem(name)) == kDevices.end();
}

/// `sosreport-node07-0123456-2031-04-05-abcdefg`: the host, the case where one was given, the day and a tag.
std::optional<std::string> HostOfSosReport(string_view name) {
  constexpr std::size_t kDay = 11;  // -2031-04-05
  if (!name.starts_with(kSosReport)) return std::nullopt;
  name.remove_prefix(kSosReport.size());
  const auto is_day = [](string_view text) {
    for (std::size_t i = 0; i < kDay; ++i)
      if (i == 0 || i == 5 || i == 8 ? text[i] != '-' : !IsDigit(text[i])) return false;
    return true;
  };
  std::size_t at = 1;
  while (at + kDay <= name.size() && !is_day(name.substr(at, kDay))) ++at;
  if (at + kDay > name.size()) return std::nullopt;
  string_view host = name.substr(0, at);
  const std::size_t number = host.rfind('-');
  if (number != string_view::npos && number > 0 && host.size() > number + 4 &&
      std::all_of(host.begin() + static_cast<std::ptrdiff_t>(number) + 1, host.end(), IsDigit))
    host = host.substr(0, number);
  return HostName(host).Short();
}

/// `node07` and `node12` have one shape.
std::string Shape(string_view name) {
  std::string shape;
  for (const char c : name) {
    if (!IsDigit(c))
      shape += c;
    else if (shape.empty() || shape.back() != '0')
      shape += '0';
  }
  return shape;
}

/// What a folder's name says by itself, in the folder around it.
std::optional<std::string> HostOfName(string_view name, string_view around) {
  if (HostName(name).is_ipv4()) return std::string(name);  // versions of four parts exist, but name no folder of logs
  if (auto host = HostOfSosReport(name)) return host;
  if (around.ends_with('/')) around.remove_suffix(1);
  const bool among_hosts = std::find(kAroundHosts.begin(), kAroundHosts.end(), BaseName(around)) != kAroundHosts.end();
  return among_hosts && LooksLikeHost(name) ? std::optional(HostName(name).Short()) : std::nullopt;
}

bool IsNamedAsHost(string_view name) {
  return IsNumbered(name) && std::find(kHostStems.begin(), kHostStems.end(), Stem(name)) != kHostStems.end();
}

/// Folders that look like hosts, and hold a file of one host or have a name that nothing else has; by the folder
/// around.
std::map<std::string, std::set<std::string>> FoldersOfHosts(const std::vector<std::string>& paths) {
  std::map<std::string, std::set<std::string>> around;
  const auto add = [&](const std::string& folder) {
    const std::string name = folder.substr(PartAt(folder));
    if (LooksLikeHost(name)) around[folder.substr(0, PartAt(folder))].insert(name);
  };
  for (const std::string& path : paths) {
    const std::size_t last = path.rfind('/');
    if (last != std::string::npos && IsOfOneHost(path)) add(path.substr(0, last));
    for (std::size_t end = last; end != std::string::npos && end > 0; end = path.rfind('/', end - 1))
      if (IsNamedAsHost(string_view(path).substr(0, end).substr(PartAt(string_view(path).substr(0, end)))))
        add(path.substr(0, end));
  }
  std::erase_if(around, [](const auto& entry) { return entry.second.size() < 2; });
  return around;
}

}  // namespace

std::optional<std::string> BundleHost(string_view path) {
  const std::size_t at = path.find(kBundle);
  if (at == string_view::npos || (at > 0 && path[at - 1] != '/' && path[at - 1] != ':')) return std::nullopt;
  const string_view inside = path.substr(at + kBundle.size());
  const std::size_t end = inside.find('/');
  if (end == string_view::npos) return std::nullopt;
  if (std::any_of(kOfOthers.begin(), kOfOthers.end(),
                  [&](string_view folder) { return inside.substr(end + 1).starts_with(folder); }))
    return std::nullopt;
  return end > 0 ? std::optional(HostName(inside.substr(0, end)).Short()) : std::nullopt;
}

std::optional<std::string> HostGiven(string_view path, const std::vector<GivenHost>& given) {
  const GivenHost* nearest = nullptr;
  for (const GivenHost& one : given) {
    string_view folder = one.path;
    while (folder.size() > 1 && folder.ends_with('/')) folder.remove_suffix(1);
    const bool is_in = folder.empty() || path == folder ||
                       (path.starts_with(folder) && (path[folder.size()] == '/' || path[folder.size()] == ':'));
    if (is_in && (nearest == nullptr || one.path.size() >= nearest->path.size())) nearest = &one;
  }
  return nearest != nullptr ? std::optional(HostName(nearest->host).Short()) : std::nullopt;
}

std::vector<std::optional<std::string>> FolderHosts(const std::vector<std::string>& paths) {
  const auto folders = FoldersOfHosts(paths);
  std::map<std::string, std::set<std::string>> shapes;
  for (const auto& [around, names] : folders)
    for (const std::string& name : names) shapes[around].insert(Shape(name));
  // A folder without a kernel log is a host's as well if it is named like those beside it.
  const auto host_of = [&](const std::string& path) -> std::optional<std::string> {
    if (path.find(kBundle) != std::string::npos) return BundleHost(path);
    for (std::size_t end = path.rfind('/'); end != std::string::npos && end > 0; end = path.rfind('/', end - 1)) {
      const std::string folder = path.substr(0, end);
      const std::string name = folder.substr(PartAt(folder)), parent = folder.substr(0, PartAt(folder));
      if (auto host = HostOfName(name, parent)) return host;
      const auto around = shapes.find(parent);
      if (around == shapes.end()) continue;
      if (LooksLikeHost(name) && around->second.contains(Shape(name))) return HostName(name).Short();
    }
    return std::nullopt;
  };
  std::vector<std::optional<std::string>> hosts;
  for (const std::string& path : paths) hosts.push_back(host_of(path));
  return hosts;
}

}  // namespace inquest
