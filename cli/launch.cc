// The variables are those that the launchers document; what is taken of each is in the rule that the plan shows.
#include "cli/launch.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace inquest {
namespace {

constexpr std::size_t kMostHosts = 65536;
constexpr int kMostProcesses = 65536;

template <class Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// Names of one launcher's variables. Empty: it has none for that.
struct Launcher {
  std::string_view name;
  const char *index, *count, *local_index, *local_count;
};
constexpr Launcher kTorchrun{"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"};
constexpr Launcher kOpenMpi{"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                            "OMPI_COMM_WORLD_LOCAL_SIZE"};
constexpr Launcher kPmi{"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"};

class Finder {
 public:
  Finder(const LaunchFlags& flags, const Lookup& environment) : flags_(flags), environment_(environment) {}

  Result<Launch> Find() {
    const auto failed = [&]() -> std::optional<Error> {
      if (flags_.nodes) return FromFlags();
      if (flags_.node) return Error{"--node-rank needs --nnodes", "", ""};
      for (const Launcher& launcher : {kTorchrun, kOpenMpi, kPmi}) {
        if (!Has(launcher.index) || !Has(launcher.count)) continue;
        // Slurm speaks PMI as well, and says more in its own variables; hydra, which it may have started, has more too.
        if (launcher.name == kPmi.name && !Has(kPmi.local_count) && Has("SLURM_STEP_NODELIST")) continue;
        return From(launcher);
      }
      return FromSlurm();
    }();
    if (failed) return *failed;
    if (launch_.count == 1) return std::move(launch_);
    if (const auto error = FindMaster()) return *error;
    return std::move(launch_);
  }

 private:
  bool Has(const char* name) const { return environment_(name).has_value(); }
  std::string Value(const char* name) const { return environment_(name).value_or(""); }

  /// A number that is there, and whole.
  Result<int> Number(const char* name) const {
    const auto number = NumberOf<int>(Value(name));
    if (!number || *number < 0 || *number > kMostProcesses)
      return Error{fmt::format("{} is '{}'", name, Value(name)),
                   "a whole number is wanted; --nnodes 1 runs on this host alone", "environment"};
    return *number;
  }

  std::optional<Error> FromFlags() {
    if (*flags_.nodes < 1 || *flags_.nodes > static_cast<std::uint64_t>(kMostProcesses))
      return Error{"--nnodes must be 1 or more", "", ""};
    launch_.count = static_cast<int>(*flags_.nodes);
    launch_.basis = Basis::kGiven;
    launch_.rule = "--nnodes";
    if (launch_.count == 1) return std::nullopt;
    if (!flags_.node)
      return Error{"--nnodes needs --node-rank", "0 on the node that reports, 1, 2, ... on the others", ""};
    if (*flags_.node >= *flags_.nodes)
      return Error{fmt::format("--node-rank {} is none of {} nodes", *flags_.node, *flags_.nodes),
                   "nodes are counted from 0", ""};
    launch_.index = static_cast<int>(*flags_.node);
    return std::nullopt;
  }

  std::optional<Error> Take(std::string_view launcher, const char* index_name, const char* count_name) {
    const Result<int> index = Number(index_name), count = Number(count_name);
    if (!index) return index.error();
    if (!count) return count.error();
    if (*count < 1 || *index >= *count)
      return Error{fmt::format("{} {} is none of {} {}", index_name, *index, count_name, *count),
                   "--nnodes 1 runs on this host alone", "environment"};
    launch_.index = *index;
    launch_.count = *count;
    launch_.basis = Basis::kObserved;
    launch_.rule =
        fmt::format("{} {} of {} {} in the environment of {}", index_name, *index, count_name, *count, launcher);
    return std::nullopt;
  }

  std::optional<Error> From(const Launcher& launcher) {
    if (const auto error = Take(launcher.name, launcher.index, launcher.count)) return error;
    const auto local_count = NumberOf<int>(Value(launcher.local_count));
    all_here_ = local_count == launch_.count;
    if (local_count.value_or(1) > 1) launch_.local_rank = NumberOf<int>(Value(launcher.local_index)).value_or(0);
    is_torchrun_ = launcher.name == kTorchrun.name;
    return std::nullopt;
  }

  /// A step alone has one process a task: in a batch script, or a shell of salloc, SLURM_NTASKS says what could be
  /// started.
  std::optional<Error> FromSlurm() {
    if (!Has("SLURM_PROCID") || !Has("SLURM_NTASKS")) return std::nullopt;
    if (!Has("SLURM_STEP_NODELIST")) {
      if (NumberOf<int>(Value("SLURM_NTASKS")).value_or(1) > 1 || NumberOf<int>(Value("SLURM_NNODES")).value_or(1) > 1)
        launch_.note = "runs on this host alone: it is in a batch script of Slurm, and srun starts it on every node";
      return std::nullopt;
    }
    if (const auto error =
            Take("srun", "SLURM_PROCID", Has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS"))
      return error;
    const auto hosts = ExpandHostList(Value("SLURM_STEP_NODELIST"));
    if (!hosts || hosts->empty())
      return Error{fmt::format("SLURM_STEP_NODELIST is '{}'", Value("SLURM_STEP_NODELIST")),
                   "name the first node with --master HOST:PORT", "environment"};
    all_here_ = hosts->size() == 1;
    slurm_master_ = hosts->front();
    if (hosts->size() == static_cast<std::size_t>(launch_.count)) launch_.hosts = *hosts;
    if (static_cast<int>(hosts->size()) < launch_.count)
      launch_.local_rank = NumberOf<int>(Value("SLURM_LOCALID")).value_or(0);
    return std::nullopt;
  }

  std::optional<Error> FindMaster() {
    std::optional<std::uint16_t> port;
    if (Has("MASTER_PORT") && launch_.basis != Basis::kGiven) {
      port = NumberOf<std::uint16_t>(Value("MASTER_PORT"));
      if (!port) return Error{fmt::format("MASTER_PORT is '{}'", Value("MASTER_PORT")), "", "environment"};
      // torchrun's own store listens at MASTER_PORT then, for as long as its processes live.
      if (is_torchrun_ && Value("TORCHELASTIC_USE_AGENT_STORE") == "True") port = static_cast<std::uint16_t>(*port + 1);
    }
    if (flags_.master) {
      launch_.master = flags_.master->host;
      port = flags_.master->port;
    } else if (Has("MASTER_ADDR")) {
      launch_.master = Value("MASTER_ADDR");
    } else if (!slurm_master_.empty()) {
      launch_.master = slurm_master_;
    } else if (all_here_) {
      launch_.master = "127.0.0.1";
    } else {
      return Error{
          fmt::format("{}, but nothing says where the first of them is",
                      launch_.basis == Basis::kGiven ? fmt::format("there are {} nodes", launch_.count) : launch_.rule),
          "name it on every node with --master HOST:PORT, or MASTER_ADDR and MASTER_PORT; --nnodes 1 runs on this host "
          "alone",
          ""};
    }
    launch_.port = port.value_or(kDefaultMasterPort);
    return std::nullopt;
  }

  const LaunchFlags& flags_;
  const Lookup& environment_;
  Launch launch_;
  bool all_here_ = false, is_torchrun_ = false;
  std::string slurm_master_;
};

/// Appends what a bracket stands for; false: it is none.
bool ExpandBracket(std::string_view prefix, std::string_view inside, std::vector<std::string>& hosts) {
  while (true) {
    const std::size_t comma = std::min(inside.find(','), inside.size());
    const std::string_view range = inside.substr(0, comma);
    const std::size_t dash = std::min(range.find('-'), range.size());
    const std::string_view from = range.substr(0, dash), to = dash == range.size() ? from : range.substr(dash + 1);
    const auto first = NumberOf<std::uint32_t>(from), last = NumberOf<std::uint32_t>(to);
    if (!first || !last || *first > *last || *last - *first >= kMostHosts ||
        hosts.size() + (*last - *first) >= kMostHosts || from.size() > 10)
      return false;
    for (std::uint64_t number = *first; number <= *last; ++number)
      hosts.push_back(fmt::format("{}{:0{}}", prefix, number, from.size()));
    if (comma == inside.size()) return true;
    inside.remove_prefix(comma + 1);
  }
}

/// One host or bracketed group: `rack[1-2]node[01-03]-ib`, each bracket multiplied with the others.
bool ExpandGroup(std::string_view group, std::vector<std::string>& hosts) {
  std::vector<std::string> prefixes = {""};
  while (!group.empty()) {
    const std::size_t open = std::min(group.find('['), group.size());
    for (std::string& prefix : prefixes) prefix += group.substr(0, open);
    if (open == group.size()) break;
    const std::size_t close = group.find(']', open);
    if (close == std::string_view::npos) return false;
    std::vector<std::string> longer;
    for (const std::string& prefix : prefixes) {
      if (!ExpandBracket(prefix, group.substr(open + 1, close - open - 1), longer)) return false;
    }
    prefixes = std::move(longer);
    group.remove_prefix(close + 1);
  }
  if (hosts.size() + prefixes.size() > kMostHosts) return false;
  for (std::string& prefix : prefixes) {
    if (prefix.empty() || prefix.find(']') != std::string::npos) return false;
    hosts.push_back(std::move(prefix));
  }
  return true;
}

}  // namespace

std::optional<std::vector<std::string>> ExpandHostList(std::string_view list) {
  std::vector<std::string> hosts;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i < list.size() && list[i] == '[') ++depth;
    if (i < list.size() && list[i] == ']') --depth;
    if (depth < 0 || depth > 1) return std::nullopt;
    if (i < list.size() && (list[i] != ',' || depth > 0)) continue;
    if (!ExpandGroup(list.substr(begin, i - begin), hosts)) return std::nullopt;
    begin = i + 1;
  }
  if (depth != 0 || hosts.empty()) return std::nullopt;
  return hosts;
}

std::optional<HostAndPort> ParseHostAndPort(std::string_view text) {
  HostAndPort parsed;
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    parsed.host = text.substr(1, close - 1);
    port = text.substr(close + 1);
    if (!port.empty() && port[0] != ':') return std::nullopt;
    if (!port.empty()) port.remove_prefix(1);
    if (port.empty() && text.back() == ':') return std::nullopt;
  } else {
    const std::size_t colon =
        std::count(text.begin(), text.end(), ':') == 1 ? text.find(':') : text.size();  // more: an IPv6 address alone
    parsed.host = text.substr(0, colon);
    if (colon != text.size()) {
      port = text.substr(colon + 1);
      if (port.empty()) return std::nullopt;
    }
  }
  if (parsed.host.empty()) return std::nullopt;
  if (port.empty()) return parsed;
  parsed.port = NumberOf<std::uint16_t>(port);
  return parsed.port ? std::optional(parsed) : std::nullopt;
}

std::optional<std::chrono::milliseconds> DurationOf(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  if (error != std::errc() || !(number > 0) || number > 1e6 || (unit != "" && unit != "s" && unit != "ms"))
    return std::nullopt;
  return std::chrono::milliseconds(
      static_cast<std::chrono::milliseconds::rep>(std::max(1.0, unit == "ms" ? number : number * 1000)));
}

Result<std::vector<HostShare>> ParseHostShares(std::string_view text) {
  std::vector<HostShare> shares;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view entry = text.substr(begin, end - begin);
    const std::size_t colon = std::min(entry.find(':'), entry.size());
    HostShare share{.host = std::string(entry.substr(0, colon)), .ranks = {}};
    if (colon != entry.size()) {
      share.ranks = NumberOf<int>(entry.substr(colon + 1));
      if (!share.ranks || *share.ranks < 1 || *share.ranks > kMostProcesses) share.host.clear();
    }
    // A word of ssh's command line, perhaps of a remote shell's too.
    const bool plain = share.host.find_first_not_of(
                           "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._@-") == std::string::npos;
    if (share.host.empty() || share.host[0] == '-' || !plain)
      return Error{fmt::format("'{}' in --hosts is no host", entry), "HOST or HOST:RANKS, separated by commas", ""};
    shares.push_back(std::move(share));
    begin = end + 1;
  }
  const auto counted = std::ranges::count_if(shares, [](const HostShare& share) { return share.ranks.has_value(); });
  if (counted != 0 && counted != static_cast<std::ptrdiff_t>(shares.size()))
    return Error{"--hosts gives some hosts a number of ranks, and others none", "", ""};
  return shares;
}

Result<Launch> FindLaunch(const LaunchFlags& flags, const Lookup& environment) {
  return Finder(flags, environment).Find();
}

}  // namespace inquest
