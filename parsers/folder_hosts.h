// Names of hosts in the paths of inputs: support bundles have a folder for each host.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "parsers/scan.h"

namespace inquest {

/// How such a host is known.
inline constexpr std::string_view kByFolder = "folder of the file", kByOption = "given by --host";

/// The host of `.../inquest-bundle/<host>/dmesg.txt`, as `inquest collect` writes it. Files that its user added, and
/// dumps of a shared home folder, are of whoever wrote them, often of all hosts, and have none.
std::optional<std::string> BundleHost(std::string_view path);

/// The host that the user gave a path: what names it most closely, the last of two alike.
std::optional<std::string> HostGiven(std::string_view path, const std::vector<GivenHost>& given);

/// The host of each path, by the folder that the file is in or under: an address, a sosreport, a folder of `nodes/`; or
/// one of two or more beside each other that look like hosts and hold what is of one host only (a kernel log,
/// nvidia-smi) or are called `node07`, `dgx-12` and the like. In the order of `paths`; any order gives the same hosts.
std::vector<std::optional<std::string>> FolderHosts(const std::vector<std::string>& paths);

}  // namespace inquest
