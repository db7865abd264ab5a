// Reads /proc/PID.
#include "replay/proc.h"

#include <unistd.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace inquest {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostThreads = 256, kMostFileBytes = 16 * 1024;

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::string text(kMostFileBytes, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

/// The value of `Name:\tvalue` in a status file.
std::string Field(const std::string& status, std::string_view name) {
  const std::size_t at = status.find(fmt::format("\n{}:\t", name));
  if (at == std::string::npos) return "";
  const std::size_t begin = at + name.size() + 3;
  return status.substr(begin, status.find('\n', begin) - begin);
}

std::string StatusOf(pid_t pid) { return ReadText(fmt::format("/proc/{}/status", pid)); }

template <class Number>
Number FieldAs(std::string_view text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

template <class Visit>
void ForEachEntry(const std::string& folder, Visit visit) {
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error))
    visit(entry->path());
}

}  // namespace

std::string StateText(pid_t pid) { return Field(StatusOf(pid), "State"); }
char StateOf(pid_t pid) {
  const std::string text = StateText(pid);
  return text.empty() ? '\0' : text[0];
}
pid_t TracerOf(pid_t pid) { return FieldAs<pid_t>(Field(StatusOf(pid), "TracerPid")); }

bool IsFrozen(pid_t pid) {
  const std::string cgroups = ReadText(fmt::format("/proc/{}/cgroup", pid));
  const auto path_behind = [&](std::string_view head) -> std::string {
    const std::size_t at = cgroups.find(head);
    return at == std::string::npos ? "" : cgroups.substr(at + head.size(), cgroups.find('\n', at) - at - head.size());
  };
  const std::string unified = path_behind("0::"), old = path_behind(":freezer:");
  // Where both versions of cgroups are mounted, version 2 stands in a folder of its own.
  for (const std::string_view root : {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"})
    if (!unified.empty() &&
        ReadText(fmt::format("{}{}/cgroup.events", root, unified)).find("frozen 1") != std::string::npos)
      return true;
  if (!old.empty() && ReadText(fmt::format("/sys/fs/cgroup/freezer{}/freezer.state", old)) == "FROZEN") return true;
  // Where the files of cgroups cannot be seen (a container, a network namespace) the kernel says where it sleeps:
  // behind a signal nothing else does, but what is stopped, which is another state.
  const std::string sleeps_in = ReadText(fmt::format("/proc/{}/wchan", pid));
  return sleeps_in == "__refrigerator" ||
         ((sleeps_in == "get_signal" || sleeps_in == "do_freezer_trap") && StateOf(pid) == 'S');
}

std::vector<ThreadState> ThreadsOf(pid_t pid) {
  std::vector<ThreadState> threads;
  ForEachEntry(fmt::format("/proc/{}/task", pid), [&](const fs::path& path) {
    if (threads.size() == kMostThreads) return;
    const std::string folder = path.string();
    ThreadState thread{.tid = FieldAs<std::int64_t>(path.filename().string()),
                       .name = ReadText(folder + "/comm"),
                       .state = Field(ReadText(folder + "/status"), "State"),
                       .wchan = ReadText(folder + "/wchan"),
                       .syscall = ReadText(folder + "/syscall"),
                       .stack = ReadText(folder + "/stack")};
    if (thread.wchan == "0") thread.wchan.clear();
    threads.push_back(std::move(thread));
  });
  std::ranges::sort(threads, {}, &ThreadState::tid);
  return threads;
}

std::vector<std::uint64_t> SocketsOf(pid_t pid) {
  std::vector<std::uint64_t> inodes;
  ForEachEntry(fmt::format("/proc/{}/fd", pid), [&](const fs::path& path) {
    std::error_code error;
    const std::string target = fs::read_symlink(path, error).string();
    constexpr std::string_view kPrefix = "socket:[";
    if (!error && target.starts_with(kPrefix))
      inodes.push_back(FieldAs<std::uint64_t>(std::string_view(target).substr(kPrefix.size())));
  });
  return inodes;
}

}  // namespace inquest
