// `inquest collect`: gathers on a node what inquest reads, into one compressed tar. Nothing is sent anywhere.
#include "collect/collect.h"

#include <sys/stat.h>
#include <unistd.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <map>
#include <optional>
#include <set>

#include "collect/bundle_writer.h"
#include "collect/child.h"
#include "collect/environment.h"
#include "collect/files.h"
#include "collect/running.h"
#include "collect/table.h"

namespace inquest {
namespace {

constexpr std::size_t kOutputBytes = 32 << 20;         ///< of one program
constexpr std::uint64_t kFileBytes = 4ULL << 30;       ///< of one file, from its start
constexpr std::uint64_t kAllFilesBytes = 16ULL << 30;  ///< of all files together
constexpr std::chrono::seconds kAnswer{10};            ///< for a file system to answer in
constexpr std::chrono::seconds kStacks{60};
constexpr const char* kInterrupted = "left out: interrupted";

struct Gathered {
  CollectedItem item;
  std::string content;
};

std::string Hostname() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown-host";
  std::string host(name.data());
  const auto odd = [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.'; };
  std::replace_if(host.begin(), host.end(), odd, '-');
  if (host.front() == '.') host.front() = '-';
  return host;
}

/// What the ending of a program says against what it printed.
std::string Shortcoming(const CollectedItem& item) {
  if (item.timed_out) return fmt::format("stopped after {:.0f} s", item.seconds);
  if (item.cut) return fmt::format("cut after {} MiB", kOutputBytes >> 20);
  if (item.signal) return fmt::format("killed by signal {}", *item.signal);
  if (item.exit_code.value_or(0) != 0) return fmt::format("exit status {}", *item.exit_code);
  return "";
}

std::vector<std::string> SplitAtNul(std::string_view text) {
  std::vector<std::string> out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\0', at), text.size());
    out.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return out;
}

/// The innermost number of `NSpid:	41234	17`.
std::int64_t OwnPid(std::string_view status, std::int64_t pid) {
  const std::size_t at = status.find("\nNSpid:");
  if (at == std::string_view::npos) return pid;
  const std::string_view line = status.substr(at + 1, status.find('\n', at + 1) - at - 1);
  const std::string last(line.substr(line.find_last_of("\t ") + 1));
  return last.empty() || last.find_first_not_of("0123456789") != std::string::npos || last.size() > 10
             ? pid
             : std::stoll(last);
}

std::string MaskedEnvironment(const std::vector<std::string>& environment) {
  const std::vector<std::string_view> entries(environment.begin(), environment.end());
  return PublicEnvironment(entries);
}

/// One run of the command: every step adds to the bundle and to the manifest.
class Collection {
 public:
  Collection(BundleWriter& writer, Manifest manifest, const CollectRequest& request)
      : writer_(writer),
        manifest_(std::move(manifest)),
        folder_("inquest-bundle/" + manifest_.hostname + "/"),
        time_limit_(request.time_limit),
        interrupted_(request.interrupted) {}

  void Rows() {
    const auto rows = CollectTable();
    for (std::size_t i = 0; i < rows.size();) {
      std::size_t end = i + 1;
      while (end < rows.size() && rows[end].name == rows[i].name) ++end;
      Keep(std::string(rows[i].name), FirstGood(rows.subspan(i, end - i)));
      i = end;
    }
  }

  void Environment(const std::vector<std::string>& environment) {
    Gathered got;
    got.content = MaskedEnvironment(environment);
    got.item.source = "the environment of inquest collect";
    got.item.kept = true;
    Keep("environment.txt", std::move(got));
  }

  void RunningRanks(bool stacks) {
    for (const std::int64_t pid : ProcessesOnGpus()) {
      const std::string proc = fmt::format("/proc/{}", pid), folder = fmt::format("ranks/{}/", pid);
      Keep(folder + "limits.txt", ReadTail(proc + "/limits"));
      const std::string status = ReadTail(proc + "/status").content;
      Gathered got = Run({"cat", proc + "/environ"}, kAnswer);
      const RunningRank rank{pid, OwnPid(status, pid), SplitAtNul(got.content)};
      got.item.command.clear();
      got.item.source = proc + "/environ";
      got.content = got.item.problem.empty() ? MaskedEnvironment(rank.environment) : "";
      Keep(folder + "environment.txt", std::move(got));
      struct stat owner {};
      if (::stat(proc.c_str(), &owner) == 0) FilesOf(rank, proc, folder, owner.st_uid);
      if (!stacks) continue;
      Keep(folder + "py-spy.txt", Try({"py-spy", "dump", "--pid", std::to_string(pid)}, kStacks));
      Keep(folder + "gdb.txt",
           Try({"gdb", "-p", std::to_string(pid), "-batch", "-ex", "thread apply all bt"}, kStacks));
    }
  }

  void Dumps(const std::vector<std::string>& environment) {
    for (const std::string& path : RecentDumps(DumpFolders(environment)))
      if (!interrupted_() && IsNew(path))
        Copy("dumps/" + NameInBundle(MaskPath(path.substr(path.rfind('/') + 1))), path, ::geteuid());
  }

  void Files(const std::vector<NamedFile>& files) {
    std::map<std::string, bool> answers;  // by folder: one that hangs would cost its time for each file
    for (const NamedFile& file : files) {
      const std::string name = "files/" + NameInBundle(file.path);
      if (!file.problem.empty()) {
        Lack(name, file.path, file.problem);
        continue;
      }
      const auto [folder, is_new] = answers.try_emplace(file.path.substr(0, file.path.rfind('/') + 1), false);
      if (is_new)
        folder->second =
            !RunChild({"head", "-c", "1", file.path}, {.time = kAnswer, .output_bytes = 1, .interrupted = interrupted_})
                 .timed_out;
      if (interrupted_())
        Lack(name, file.path, kInterrupted);
      else if (!folder->second)
        Lack(name, file.path, "its file system did not answer");
      else if (IsNew(file.path))
        Copy(name, file.path, std::nullopt);
    }
  }

  Result<std::uint64_t> Finish() {
    if (const auto error = writer_.Add(folder_ + "manifest.json", RenderManifest(manifest_))) return *error;
    return writer_.Finish();
  }
  std::vector<CollectedItem> TakeItems() { return std::move(manifest_.items); }

 private:
  Gathered Run(std::vector<std::string> command, std::chrono::milliseconds limit) {
    Gathered got;
    if (interrupted_()) {
      got.item.command = std::move(command);
      got.item.problem = kInterrupted;
      return got;
    }
    ChildEnd end = RunChild(command, {.time = limit, .output_bytes = kOutputBytes, .interrupted = interrupted_});
    got.content = std::move(end.output);
    got.item.command = std::move(command);
    got.item.problem = std::move(end.missing);
    got.item.kept = got.item.problem.empty();
    got.item.exit_code = end.exit_code;
    got.item.signal = end.signal;
    got.item.timed_out = end.timed_out;
    got.item.cut = end.cut;
    got.item.seconds = static_cast<double>(end.took.count()) / 1000;
    if (got.item.kept) got.item.problem = end.interrupted ? "stopped: interrupted" : Shortcoming(got.item);
    return got;
  }

  /// Its end, read by a child: no file system that hangs shall hang us.
  Gathered ReadTail(const std::string& path) {
    Gathered got;
    if (::access(path.c_str(), R_OK) == 0)
      got = Run({"tail", "-c", std::to_string(kOutputBytes / 4), path}, kAnswer);
    else
      got.item.problem = std::strerror(errno);
    got.item.command.clear();
    got.item.source = path;
    return got;
  }

  bool Answers(const std::string& path) {
    return RunChild({"head", "-c", "1", path}, {.time = kAnswer, .output_bytes = 1, .interrupted = interrupted_})
               .exit_code == 0;
  }

  /// The first row that ends well, else the last that ran at all.
  Gathered FirstGood(std::span<const CollectRow> rows) {
    std::optional<Gathered> best;
    for (const CollectRow& row : rows) {
      Gathered got = row.command.empty() ? ReadTail(std::string(row.file))
                                         : Try({row.command.begin(), row.command.end()}, row.limit);
      const bool good = got.item.problem.empty() || got.item.cut;
      if (row.secrets == Secrets::kMask) got.content = MaskSecrets(got.content);
      const bool ran = got.item.kept;
      if (!good && row.on_failure == OnFailure::kDrop) got.item.kept = false;
      if (good || !best || ran) best = std::move(got);
      if (good) break;
    }
    return std::move(*best);
  }

  Gathered Try(std::vector<std::string> command, std::chrono::seconds limit) {
    constexpr int kStrikes = 2;
    int& strikes = strikes_[command.front()];
    if (strikes < kStrikes) {
      Gathered got = Run(std::move(command), time_limit_.value_or(limit));
      const bool killed = got.item.exit_code || got.item.signal;
      if (got.item.timed_out) strikes += killed ? 1 : kStrikes;
      return got;
    }
    Gathered got;
    got.item.command = std::move(command);
    got.item.problem = "left out: earlier calls of the program did not end";
    return got;
  }

  /// What NCCL and the Flight Recorder of a running rank write. As root we would read any file that the rank's user
  /// made such a path point at; it must be the user's own.
  void FilesOf(const RunningRank& rank, const std::string& proc, const std::string& folder, std::uint32_t owner) {
    for (const std::string& named : FilesNamedBy(rank, manifest_.hostname)) {
      const std::string path = named.starts_with('/') ? proc + "/root" + named : proc + "/cwd/" + named;
      if (Answers(path) && IsNew(path))
        Copy(folder + NameInBundle(MaskPath(named.substr(named.rfind('/') + 1))), path, owner);
    }
  }

  bool IsNew(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) != 0 || copied_.emplace(status.st_dev, status.st_ino).second;
  }

  /// `owner` is given for a file that an environment named, and not the user: what it is called may be a secret.
  void Copy(const std::string& name, const std::string& path, std::optional<std::uint32_t> owner) {
    CollectedItem item;
    item.name = name;
    item.source = owner ? MaskPath(path) : path;
    const auto copied = room_ == 0
                            ? Result<BundleWriter::Copied>(Error{"left out: the bundle is large enough", "", path})
                            : writer_.AddFile(folder_ + name, path, {std::min(room_, kFileBytes), owner});
    item.kept = copied.has_value();
    if (copied) {
      item.bytes = copied->bytes;
      item.cut = copied->cut;
      room_ -= copied->bytes;
      if (item.cut) item.problem = fmt::format("cut after {} MiB", copied->bytes >> 20);
    } else {
      item.problem = copied.error().message;
    }
    manifest_.items.push_back(std::move(item));
  }

  void Lack(const std::string& name, const std::string& path, const std::string& problem) {
    CollectedItem item;
    item.name = name;
    item.source = path;
    item.problem = problem;
    manifest_.items.push_back(std::move(item));
  }

  void Keep(std::string name, Gathered got) {
    got.item.name = std::move(name);
    got.item.bytes = got.item.kept ? got.content.size() : 0;
    if (got.item.kept) writer_.Add(folder_ + got.item.name, got.content);
    manifest_.items.push_back(std::move(got.item));
  }

  BundleWriter& writer_;
  Manifest manifest_;
  std::string folder_;
  std::optional<std::chrono::seconds> time_limit_;
  std::function<bool()> interrupted_;
  std::map<std::string, int> strikes_;                        ///< by program
  std::set<std::pair<std::uint64_t, std::uint64_t>> copied_;  ///< device and inode
  std::uint64_t room_ = kAllFilesBytes;
};

}  // namespace

Result<Collected> Collect(const CollectRequest& request) {
  const auto files = FilesToCopy(request.paths);
  if (!files) return files.error();
  const std::time_t now = std::time(nullptr);
  Manifest manifest{.hostname = Hostname(),
                    .time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now)),
                    .tool_version = request.tool_version,
                    .items = {}};
  Collected collected;
  collected.output = !request.output.empty()
                         ? request.output
                         : fmt::format("inquest-{}-{:%Y%m%dT%H%M%SZ}.tar.zst", manifest.hostname, fmt::gmtime(now));
  auto writer = BundleWriter::Open(collected.output);
  if (!writer) return writer.error();
  Collection collection(**writer, std::move(manifest), request);
  collection.Rows();
  collection.Environment(request.environment);
  collection.RunningRanks(request.stacks);
  collection.Files(*files);
  collection.Dumps(request.environment);
  const auto bytes = collection.Finish();
  if (!bytes) return bytes.error();
  collected.bytes = *bytes;
  collected.items = collection.TakeItems();
  return collected;
}

}  // namespace inquest
