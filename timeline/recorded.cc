// What the ranks' own recorders kept of their calls, in words.
#include "timeline/recorded.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace inquest {

const RecordedMember* RecordedGroup::Find(GlobalRank rank) const {
  const auto it = std::ranges::lower_bound(members, rank, {}, &RecordedMember::rank);
  return it == members.end() || it->rank != rank ? nullptr : &*it;
}

RankSet RecordedGroup::Members() const {
  if (!ranks.empty()) return RankSet::Of(ranks);
  RankSet out;
  for (const RecordedMember& member : members) out.Add(member.rank.value);
  return out;
}

std::string RecordedGroup::InWords() const {
  if (desc.empty() || desc == name || source != Source::kRecorders) return name;
  return fmt::format("{} ({})", name, desc);
}

RankSet Recorded::Given() const {
  RankSet out;
  for (const RecordedRank& rank : ranks)
    if (!rank.counted) out.Add(rank.rank.value);
  return out;
}

const RecordedRank* Recorded::Find(GlobalRank rank) const {
  const auto it = std::ranges::lower_bound(ranks, rank, {}, &RecordedRank::rank);
  return it == ranks.end() || it->rank != rank ? nullptr : &*it;
}

// By the middle of the ranks each: a host whose clock is off by minutes moves neither.
std::optional<std::chrono::nanoseconds> Recorded::LongestWait() const {
  std::vector<std::int64_t> latest, waiting_since;
  for (const RecordedRank& rank : ranks) {
    if (rank.latest_ns > 0) latest.push_back(rank.latest_ns);
    if (!rank.open.empty() && rank.open.front().created_ns > 0) waiting_since.push_back(rank.open.front().created_ns);
  }
  if (waiting_since.empty()) return std::nullopt;
  const auto middle = [](std::vector<std::int64_t>& times) {
    const auto at = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
    std::ranges::nth_element(times, at);
    return *at;
  };
  return std::chrono::nanoseconds(std::max<std::int64_t>(middle(latest) - middle(waiting_since), 0));
}

bool Recorded::Hung() const {
  constexpr std::chrono::minutes kNoStepTakesSoLong{2};
  return gave_up || LongestWait().value_or(std::chrono::nanoseconds(0)) > kNoStepTakesSoLong;
}

std::string InWords(const CallForm& form) {
  const std::int64_t in = Elements(form.inputs), out = Elements(form.outputs);
  std::string text = form.op;
  if (!form.inputs.empty() || !form.outputs.empty()) {
    text += fmt::format(" of {}", form.inputs.empty() ? out : in);
    if (!form.inputs.empty() && !form.outputs.empty() && in != out) text += fmt::format(" into {}", out);
  }
  if (!form.dtypes.empty()) text += fmt::format(" x {}", form.dtypes);
  return text;
}

std::string LineOf(const Recorded& recorded, const RecordedCall& call) {
  std::string out = fmt::format("{} #{} of group {}: {}", InWords(recorded.forms[call.form]), call.seq,
                                recorded.groups[call.group].InWords(), Name(call.state));
  if (call.peer) out += fmt::format(", {} rank {}", call.to == CallTrace::Peer::kTo ? "to" : "from", call.peer->value);
  if (call.gave_up) out += ", given up";
  if (!call.site.empty()) out += "; " + call.site;
  return out;
}

// OpType as the watchdog prints it (torch/csrc/distributed/c10d/Work.cpp), beside the titles under which the same calls
// are recorded (ProcessGroupNCCL.cpp).
std::string WorkName(const std::string& op) {
  struct Names {
    std::string_view recorded, printed;
  };
  static constexpr std::array kNames = {
      Names{"all_reduce", "ALLREDUCE"},
      Names{"all_reduce_barrier", "ALLREDUCE"},
      Names{"all_reduce_sparse", "ALLREDUCE"},
      Names{"allreduce_coalesced", "ALLREDUCE_COALESCED"},
      Names{"all_gather", "ALLGATHER"},
      Names{"_all_gather_base", "_ALLGATHER_BASE"},
      Names{"all_gather_into_tensor_coalesced", "COALESCED"},
      Names{"reduce_scatter_tensor_coalesced", "COALESCED"},
      Names{"all_to_all", "ALLTOALL_BASE"},
      Names{"_broadcast_oop", "BROADCAST"},
      Names{"_reduce_oop", "REDUCE"},
  };
  for (const Names& names : kNames)
    if (names.recorded == op) return std::string(names.printed);
  std::string out = op.substr(0, op.find('('));
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return out;
}

}  // namespace inquest
