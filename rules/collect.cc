// What to collect next.
#include "rules/collect.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "rules/host_states.h"
#include "rules/relation.h"

namespace inquest {
namespace {

using Words = std::initializer_list<std::string_view>;

bool HoldsAny(std::string_view text, Words words) {
  return std::any_of(words.begin(), words.end(),
                     [&](std::string_view word) { return text.find(word) != std::string_view::npos; });
}

/// What shows that something was given of a host: a format that was seen in an input of it.
struct OfHosts {
  Words words;    ///< of an item that asks for it
  Words formats;  ///< names of formats
};
const OfHosts kOfHosts[] = {
    {{"kernel log", "dmesg", "journalctl -k"}, {"kernel-log"}},
    {{"nvidia-smi -q"}, {"nvidia-smi-q"}},
    {{"nvidia-smi topo"}, {"nvidia-smi-links"}},
    {{"fabric manager log"}, {"fabric-manager"}},
    {{"ibstat", "ibv_devinfo"}, {"rdma-ports"}},
    {{"lspci -vvv", "lspci -vv "}, {"lspci"}},
    {{"ulimit -a"}, {"host-limits"}},
    {{"ip -br addr"}, {"interfaces"}},
};

/// Who has given what.
class Given {
 public:
  explicit Given(const Timeline& timeline) : hosts_(timeline.JobHosts()) {
    std::map<std::uint32_t, std::set<std::string>> by_input;
    for (const Event& event : timeline.events) {
      if (const auto host = JobHostOf(timeline, hosts_, event)) by_input[event.where.input].insert(*host);
      const auto rank = timeline.RankOf(event);
      if (!rank) continue;
      if (!IsOfKernel(event.what) && !IsOfHost(event.what)) heard_.Add(rank->value.value);
      if (std::holds_alternative<CommInit>(event.what)) with_info_.Add(rank->value.value);
      if (std::holds_alternative<StackSeen>(event.what)) with_stack_.Add(rank->value.value);
    }
    for (std::uint32_t i = 0; i < timeline.inputs.size(); ++i)
      for (const std::string& kind : timeline.inputs[i].kinds)
        for (const std::string& host : by_input[i]) of_host_[kind].insert(host);
    if (timeline.world_size) all_ = RankSet::Below(timeline.world_size->value);
  }

  /// The hosts of the job of which nothing in these formats was given; nullopt: nothing of any.
  std::optional<std::set<std::string>> HostsWithout(Words formats) const {
    std::set<std::string> with, without;
    for (const std::string_view format : formats)
      if (const auto hosts = of_host_.find(std::string(format)); hosts != of_host_.end())
        with.insert(hosts->second.begin(), hosts->second.end());
    if (with.empty()) return std::nullopt;
    std::ranges::copy_if(hosts_, std::inserter(without, without.end()),
                         [&](const std::string& host) { return !with.contains(host); });
    return without;
  }
  /// The same of ranks; nullopt: it is not known how many there are, or nothing was given of any.
  std::optional<RankSet> RanksWithout(const RankSet& with) const {
    return all_.empty() || with.empty() ? std::nullopt : std::optional(all_.Without(with));
  }
  const RankSet& heard() const { return heard_; }
  const RankSet& with_info() const { return with_info_; }
  const RankSet& with_stack() const { return with_stack_; }

 private:
  const std::set<std::string>& hosts_;
  std::map<std::string, std::set<std::string>, std::less<>> of_host_;
  RankSet heard_, with_info_, with_stack_, all_;
};

/// `rank 3 (pid 41203 on node07)`, `node07`; empty: nobody is known.
std::string Name(const Culprit& culprit) {
  std::string place = culprit.pid ? fmt::format("pid {}", *culprit.pid) : "";
  if (culprit.host) place += (place.empty() ? "" : " ") + ("on " + *culprit.host);
  if (!culprit.rank) return culprit.host.value_or("");
  return fmt::format("rank {}{}", culprit.rank->value, place.empty() ? "" : " (" + place + ")");
}

/// The few whom an item means that speaks of "the rank", "its host".
std::string Whom(const std::vector<Culprit>& culprits, bool of_host) {
  constexpr std::size_t kMost = 4;
  std::vector<std::string> names;
  for (const Culprit& culprit : culprits) {
    const std::string name = of_host ? culprit.host.value_or("") : culprit.rank ? Name(culprit) : "";
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  if (names.empty() || names.size() > kMost) return "";
  return fmt::format("{}", fmt::join(names, ", "));
}

const Words kTheRank = {"absent rank",         "late rank",    "building rank", "rank that failed first",
                        "rank that is behind", "of that rank", "of the rank",   "of its process",
                        "rank that is missing"};
const Words kTheHost = {"its host", "the host", "that host", "of the peer"};
constexpr std::string_view kPid = "<pid of that rank>";

/// nullopt: all of it was given.
std::optional<std::string> Refined(const Given& given, const std::vector<Culprit>& culprits, std::string item) {
  const bool every = HoldsAny(item, {"every ", "all ", "each "});
  for (const OfHosts& kind : kOfHosts) {
    if (!HoldsAny(item, kind.words)) continue;
    const auto without = given.HostsWithout(kind.formats);
    if (!without) break;
    if (!every) {
      // Of the culprit's host, where it is known; else of whichever there is.
      const auto lacks = [&](const Culprit& culprit) { return culprit.host && without->contains(*culprit.host); };
      if (std::ranges::none_of(culprits, lacks)) return std::nullopt;
      break;
    }
    if (without->empty()) return std::nullopt;
    return fmt::format("{}: of {} nothing was given", item, fmt::join(*without, ", "));
  }
  if (every && HoldsAny(item, {"rank", "process"})) {
    const bool info = HoldsAny(item, {"NCCL_DEBUG=INFO"}) && !HoldsAny(item, {"SUBSYS", "flight"}),
               stacks = HoldsAny(item, {"py-spy"}), output = HoldsAny(item, {"stdout and stderr"});
    if (info || stacks || output)
      if (const auto without = given.RanksWithout(info     ? given.with_info()
                                                  : stacks ? given.with_stack()
                                                           : given.heard())) {
        if (without->empty()) return std::nullopt;
        return fmt::format("{}: of {} nothing was given", item, RanksWithin(*without));
      }
    return item;
  }
  if (const std::size_t at = item.find(kPid); at != std::string::npos) {
    if (culprits.size() == 1 && culprits.front().pid)
      return item.replace(at, kPid.size(), std::to_string(*culprits.front().pid)) +
             (culprits.front().host ? " on " + *culprits.front().host : "");
    return item;
  }
  const bool of_rank = HoldsAny(item, kTheRank), of_host = !of_rank && HoldsAny(item, kTheHost);
  if (const std::string whom = of_rank || of_host ? Whom(culprits, of_host) : ""; !whom.empty()) item += ": " + whom;
  return item;
}

}  // namespace

std::vector<std::string> StillToCollect(const Timeline& timeline, const std::vector<Culprit>& culprits,
                                        std::vector<std::string> wanted) {
  const Given given(timeline);
  std::vector<std::string> out;
  for (std::string& item : wanted)
    if (auto refined = Refined(given, culprits, std::move(item));
        refined && std::ranges::find(out, *refined) == out.end())
      out.push_back(*std::move(refined));
  return out;
}

}  // namespace inquest
