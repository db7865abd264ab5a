// Names of hosts in the paths of inputs: support bundles have a folder for each host.
#include "parsers/folder_hosts.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace inquest {
namespace {

using std::string_view;

constexpr string_view kBundle = "inquest-bundle/", kAddedFiles = "files/";

/// Starts of names of what a node has once. A job's own logs prove nothing: `run-1/` and `run-2/` have those as well.
constexpr std::array<string_view, 12> kOfOneHost = {"dmesg",  "kern.log", "kern-",      "kernel",     "syslog", "messages",
                                                    "journal", "ibstat",   "nvidia-smi", "nvidia_smi", "uname",  "nvidia-bug-report"};
constexpr std::array<string_view, 24> kNotHosts = {"rank",   "attempt", "run",     "job",   "step",  "task",  "case",       "trial",
                                                   "epoch",  "restart", "default", "none",  "log",   "logs",  "checkpoint", "output",
                                                   "outputs", "tmp",    "data",    "stdout", "stderr", "part", "day",       "test"};

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

string_view BaseName(string_view path) { return path.substr(path.find_last_of("/:") + 1); }
/// Where the last part of a folder's path begins.
std::size_t PartAt(string_view folder) { return folder.find_last_of("/:") + 1; }

bool IsOfOneHost(string_view path) {
  const string_view name = BaseName(path);
  return std::any_of(kOfOneHost.begin(), kOfOneHost.end(), [&](string_view start) { return name.starts_with(start); });
}

bool LooksLikeHost(string_view name) {
  constexpr std::size_t kLongest = 253;
  if (name.size() < 2 || name.size() > kLongest || (!IsLetter(name.front()) && !IsDigit(name.front()))) return false;
  const auto is_host_char = [](char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '.'; };
  if (!std::all_of(name.begin(), name.end(), is_host_char) || std::none_of(name.begin(), name.end(), IsLetter)) return false;
  const string_view stem = name.substr(0, static_cast<std::size_t>(std::find_if_not(name.begin(), name.end(), IsLetter) - name.begin()));
  return std::find(kNotHosts.begin(), kNotHosts.end(), stem) == kNotHosts.end();
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

/// NCCL and the launchers print host names up to the first dot.
std::string ShortName(string_view name) { return std::string(name.substr(0, name.find('.'))); }

/// Folders that hold a file of one host and look like hosts, by the folder around them.
std::map<std::string, std::set<std::string>> FoldersOfHosts(const std::vector<std::string>& paths) {
  std::map<std::string, std::set<std::string>> around;
  for (const std::string& path : paths) {
    const std::size_t end = path.rfind('/');
    if (end == std::string::npos || !IsOfOneHost(path)) continue;
    const std::string folder = path.substr(0, end);
    const std::string name = folder.substr(PartAt(folder));
    if (LooksLikeHost(name)) around[folder.substr(0, PartAt(folder))].insert(name);
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
  if (end == string_view::npos || inside.substr(end + 1).starts_with(kAddedFiles)) return std::nullopt;
  return end > 0 ? std::optional(ShortName(inside.substr(0, end))) : std::nullopt;
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
      const auto around = shapes.find(folder.substr(0, PartAt(folder)));
      if (around == shapes.end()) continue;
      const std::string name = folder.substr(PartAt(folder));
      if (LooksLikeHost(name) && around->second.contains(Shape(name))) return ShortName(name);
    }
    return std::nullopt;
  };
  std::vector<std::optional<std::string>> hosts;
  for (const std::string& path : paths) hosts.push_back(host_of(path));
  return hosts;
}

}  // namespace inquest
