// Of cgroups both versions: a limit and a count of kills for each, in the folders of /proc/PID/cgroup and above them.
#include "replay/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <map>

#include "replay/judgement.h"
#include "replay/ops.h"
#include "replay/plan.h"

namespace inquest {
namespace {

/// What a worker takes beside its buffers.
constexpr std::uint64_t kOfAWorker = 24U << 20U;
/// A limit above that is none.
constexpr std::uint64_t kNoLimit = std::uint64_t{1} << 60U;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// The number behind a name at the begin of a line; of a file with a number alone, that.
std::optional<std::uint64_t> NumberIn(const std::string& text, std::string_view name) {
  std::size_t at = 0;
  if (!name.empty()) {
    for (at = 0; text.compare(at, name.size(), name) != 0;) {
      at = text.find('\n', at);
      if (at == std::string::npos) return std::nullopt;
      ++at;
    }
    at = text.find_first_not_of(" \t:", at + name.size());
    if (at == std::string::npos) return std::nullopt;
  }
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

struct Names {
  std::string_view limit, used, kills, inactive;
};
constexpr Names kFirst{"memory.limit_in_bytes", "memory.usage_in_bytes", "memory.oom_control", "total_inactive_file"},
    kSecond{"memory.max", "memory.current", "memory.events", "inactive_file"};

struct Group {
  std::string folder;
  const Names* names;
};

/// The memory cgroup of a process and those above it, as far as they can be seen from here.
std::vector<Group> GroupsOf(pid_t pid, const std::string& top) {
  const std::string list = ReadAll(fmt::format("{}/proc/{}/cgroup", top, pid));
  std::vector<Group> groups;
  const auto add = [&](std::string_view mount, std::string path, const Names& names) {
    const std::string root = fmt::format("{}{}", top, mount);
    for (; !path.empty(); path.erase(path.rfind('/'))) {
      const std::string folder = fmt::format("{}{}", root, path == "/" ? "" : path);
      if (std::ifstream(fmt::format("{}/{}", folder, names.used)).good()) groups.push_back({folder, &names});
    }
    if (std::ifstream(fmt::format("{}/{}", root, names.used)).good()) groups.push_back({root, &names});
  };
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t end = std::min(list.find('\n', at), list.size());
    const std::string line = list.substr(at, end - at);
    const std::size_t colon = line.find(':'), second = line.find(':', colon + 1);
    at = end + 1;
    if (colon == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(colon + 1, second - colon - 1), path = line.substr(second + 1);
    if (controllers == "memory") add("/sys/fs/cgroup/memory", path, kFirst);
    if (controllers.empty()) add("/sys/fs/cgroup", path, kSecond);
  }
  return groups;
}

OomKills Counted(const std::string& file) {
  return {.file = file,
          .cgroup = file.empty() ? std::nullopt : NumberIn(ReadAll(file), "oom_kill "),
          .host = NumberIn(ReadAll("/proc/vmstat"), "oom_kill ").value_or(0)};
}

/// Why an order is none that a coordinator of ours gives; empty: it may be one.
std::string WhyUnfit(const SessionSetup& setup) {
  if (setup.nranks > kMostRanks) return fmt::format("{} ranks are more than a replay can start", setup.nranks);
  if (setup.rank < 0 || setup.rank >= setup.nranks)
    return fmt::format("rank {} is none of {} ranks", setup.rank, setup.nranks);
  return setup.sequence ? WhyInvalid(*setup.sequence, setup.rank) : WhyInvalid(setup.call, setup.nranks);
}

/// As Gloo's engine takes them: what goes in and what comes out, and where it works. The order is fit, so that no
/// product is too large.
std::uint64_t BuffersOf(const Call& call, int rank, int nranks) {
  const ReplayOp& op = RowOf(call.operation);
  const std::uint64_t size = BytesOf(call.datatype);
  const std::uint64_t in = op.elements_in(call, rank, nranks) * size;
  const std::uint64_t out = op.elements_out(call, rank, nranks) * size;
  if (op.operation == Operation::kReduceScatter) return 2 * in;
  if (op.operation == Operation::kReduce) return 2 * in;
  return call.in_place ? std::max(in, out) : in + out;
}

/// Of a sequence, each stream has those of one step, or of one group call, at a time.
double BuffersOf(const StartWork& work) {
  const SessionSetup& setup = work.setup;
  if (!setup.sequence) return static_cast<double>(BuffersOf(setup.call, setup.rank, setup.nranks));
  std::map<std::pair<std::uint32_t, std::uint32_t>, double> batches;  // by stream and group call
  std::map<std::uint32_t, double> streams;
  for (const SequenceStep& step : setup.sequence->steps) {
    const SequenceCommunicator& communicator = setup.sequence->communicators[step.communicator];
    const auto bytes = static_cast<double>(BuffersOf(setup.sequence->calls[step.call], communicator.PlaceOf(setup.rank),
                                                     static_cast<int>(communicator.ranks.size())));
    double& together = batches[{step.stream, step.batch}];
    together = step.batch == 0 ? bytes : together + bytes;
    streams[step.stream] = std::max(streams[step.stream], together);
  }
  double all = 0;
  for (const auto& [stream, bytes] : streams) all += bytes;
  return all;
}

}  // namespace

std::optional<MemoryRoom> RoomForRanks(const std::string& top) {
  std::optional<MemoryRoom> room;
  if (const auto available = NumberIn(ReadAll(top + "/proc/meminfo"), "MemAvailable"))
    room = MemoryRoom{*available * 1024, "this host"};
  for (const Group& group : GroupsOf(::getpid(), top)) {
    const auto limit = NumberIn(ReadAll(fmt::format("{}/{}", group.folder, group.names->limit)), "");
    const auto used = NumberIn(ReadAll(fmt::format("{}/{}", group.folder, group.names->used)), "");
    if (!limit || !used || *limit >= kNoLimit) continue;
    // What files have there goes when memory is short.
    const std::uint64_t files = NumberIn(ReadAll(group.folder + "/memory.stat"), group.names->inactive).value_or(0);
    const std::uint64_t taken = *used - std::min(files, *used);
    const std::uint64_t left = *limit - std::min(taken, *limit);
    if (!room || left < room->bytes) room = MemoryRoom{left, fmt::format("its cgroup (limit {})", SizeText(*limit))};
  }
  return room;
}

std::string WhyTooLarge(const std::vector<StartWork>& ranks, const std::optional<MemoryRoom>& room, int on_host) {
  for (const StartWork& work : ranks)
    if (std::string why = WhyUnfit(work.setup); !why.empty()) return why;
  if (!room || ranks.empty() || ranks.front().engine != "gloo") return "";
  double buffers = 0;  // no product of it overflows
  for (const StartWork& work : ranks) buffers += BuffersOf(work);
  // Those of other nodes are taken for ranks like these.
  const std::uint64_t all = std::max<std::uint64_t>(ranks.size(), static_cast<std::uint64_t>(std::max(on_host, 0)));
  buffers = buffers / static_cast<double>(ranks.size()) * static_cast<double>(all);
  const std::uint64_t workers = kOfAWorker * all;
  const double wanted = buffers + static_cast<double>(workers);
  if (wanted <= static_cast<double>(room->bytes)) return "";
  constexpr double kMostShown = 1e19;
  std::string text =
      fmt::format("the {} ranks need {} of memory, and {} has {} left", all,
                  SizeText(static_cast<std::uint64_t>(std::min(wanted, kMostShown))), room->of, SizeText(room->bytes));
  if (room->bytes <= workers || buffers == 0)
    return text + fmt::format("; at most --ranks {}", room->bytes / kOfAWorker);
  if (ranks.front().setup.sequence) return text;
  // Others take and give memory meanwhile.
  constexpr double kOfTheRoom = 0.9;
  const double part = kOfTheRoom * static_cast<double>(room->bytes - workers) / buffers;
  const auto count = static_cast<std::uint64_t>(static_cast<double>(ranks.front().setup.call.count) * part);
  return text + fmt::format("; with as many ranks at most --count {}", count);
}

OomKills OomKillsAround(pid_t pid, const std::string& top) {
  // Only that of the process itself: a limit above it counts there too.
  const std::vector<Group> groups = GroupsOf(pid, top);
  return Counted(groups.empty() ? "" : fmt::format("{}/{}", groups.front().folder, groups.front().names->kills));
}

std::string WhyOom(const OomKills& before) {
  const OomKills now = Counted(before.file);
  if (now.cgroup && before.cgroup)
    return *now.cgroup > *before.cgroup ? "the kernel's OOM killer was at work in its cgroup, whose memory is used up"
                                        : "";
  // Any cgroup's limit counts there, and for which process it was nobody says.
  return now.host > before.host ? "the kernel's OOM killer was at work on a process of this host" : "";
}

}  // namespace inquest
