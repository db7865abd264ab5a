// Sequences: who meets whom in which step, what they do not agree on, and what each rank is told.
#include "replay/sequence.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "replay/ops.h"

namespace inquest {
namespace {

constexpr int kOfAll = -1;

/// `0-3, 5`, of numbers in order.
std::string Fold(const std::vector<int>& ranks) {
  std::string text;
  for (std::size_t first = 0, next = 0; first < ranks.size(); first = next) {
    for (next = first + 1; next < ranks.size() && ranks[next] == ranks[next - 1] + 1;) ++next;
    text += fmt::format("{}{}", text.empty() ? "" : ", ", ranks[first]);
    if (next > first + 1) text += fmt::format("{}{}", next > first + 2 ? "-" : ", ", ranks[next - 1]);
  }
  return text;
}
std::string Ranks(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() == 1 ? "" : "s", Fold(ranks));
}

/// What has to be equal on all parties, in the terms of one of them.
Call Shared(const Call& call) {
  Call shared = call;
  shared.in_place = false;
  shared.splits = {};
  return shared;
}

struct Party {
  int rank = 0;
  const SequenceStep* step = nullptr;
};
using Met = std::map<Meeting, std::vector<Party>>;

Met AllMeetings(const Sequence& sequence) {
  Met met;
  for (std::size_t rank = 0; rank < sequence.steps.size(); ++rank)
    for (const SequenceStep& step : sequence.steps[rank])
      met[MeetingOf(sequence, step)].push_back({static_cast<int>(rank), &step});
  return met;
}

std::string Asked(const Call& call) {
  if (call.operation == Operation::kBarrier) return "";
  const std::string all = Describe(call);
  const std::string head = fmt::format("{} of ", Name(call.operation));
  return all.starts_with(head) ? all.substr(head.size()) : all;
}

/// About what a rank's orders take as text; a packet of wire.h has 128 KiB, for other things as well.
constexpr std::size_t kMostOrderBytes = 100'000;
std::size_t OrderBytes(const Sequence& sequence, int rank) {
  constexpr std::size_t kOfStep = 24, kOfCall = 128, kOfCommunicator = 80, kOfRank = 5, kOfSplit = 16;
  std::size_t bytes = 0;
  for (const SequenceCommunicator& communicator : sequence.communicators)
    if (std::ranges::find(communicator.ranks, rank) != communicator.ranks.end())
      bytes += kOfCommunicator + communicator.name.size() + kOfRank * communicator.ranks.size();
  std::set<std::uint32_t> calls;
  for (const SequenceStep& step : sequence.steps[static_cast<std::size_t>(rank)]) {
    bytes += kOfStep;
    if (calls.insert(step.call).second) bytes += kOfCall + kOfSplit * sequence.calls[step.call].splits.size();
  }
  return bytes;
}

}  // namespace

std::size_t Sequence::size() const {
  std::size_t all = 0;
  for (const auto& of_rank : steps) all += of_rank.size();
  return all;
}

Meeting MeetingOf(const Sequence& sequence, const SequenceStep& step) {
  const Call& call = sequence.calls[step.call];
  const bool pair = call.operation == Operation::kSendRecv;
  return {step.communicator, pair ? call.root : kOfAll, pair ? call.peer : kOfAll, step.number};
}

std::vector<int> PartiesOf(const Sequence& sequence, const SequenceStep& step) {
  const std::vector<int>& ranks = sequence.communicators[step.communicator].ranks;
  const Call& call = sequence.calls[step.call];
  if (call.operation != Operation::kSendRecv) return ranks;
  std::vector<int> two = {ranks[static_cast<std::size_t>(call.root)], ranks[static_cast<std::size_t>(call.peer)]};
  if (two[0] == two[1]) two.pop_back();
  return two;
}

std::string InWords(const Sequence& sequence, const SequenceStep& step) {
  const SequenceCommunicator& communicator = sequence.communicators[step.communicator];
  const Call& call = sequence.calls[step.call];
  if (call.operation == Operation::kSendRecv)
    return fmt::format("send from rank {} to rank {} #{} of {}",
                       communicator.ranks[static_cast<std::size_t>(call.root)],
                       communicator.ranks[static_cast<std::size_t>(call.peer)], step.called, communicator.name);
  return fmt::format("{} #{} of {}", Name(call.operation), step.called, communicator.name);
}

std::string InWordsWhole(const Sequence& sequence, const SequenceStep& step) {
  const std::string asked = Asked(sequence.calls[step.call]);
  return InWords(sequence, step) + (asked.empty() ? "" : fmt::format(" ({})", asked));
}

std::string Describe(const Sequence& sequence) {
  const std::size_t communicators = sequence.communicators.size(), size = sequence.size();
  return fmt::format("{}{}{} call{} on {} communicator{}", sequence.rule, sequence.rule.empty() ? "" : ": ", size,
                     size == 1 ? "" : "s", communicators, communicators == 1 ? "" : "s");
}

std::vector<Disagreement> DisagreementsOf(const Sequence& sequence) {
  const Met met = AllMeetings(sequence);
  std::vector<Disagreement> found;
  std::map<Meeting, bool> told;
  for (const auto& of_rank : sequence.steps) {
    for (const SequenceStep& step : of_rank) {
      const Meeting meeting = MeetingOf(sequence, step);
      if (!told.emplace(meeting, true).second) continue;
      const std::vector<Party>& parties = met.at(meeting);
      std::vector<std::pair<Call, std::vector<int>>> sides;
      for (const Party& party : parties) {
        const Call call = Shared(sequence.calls[party.step->call]);
        const auto side = std::ranges::find(sides, call, &std::pair<Call, std::vector<int>>::first);
        if (side == sides.end())
          sides.push_back({call, {party.rank}});
        else
          side->second.push_back(party.rank);
      }
      std::ranges::stable_sort(sides, std::greater(), [](const auto& side) { return side.second.size(); });
      if (sides.size() > 1) {
        Disagreement differ{meeting, "", {}, false};
        std::string list;
        for (std::size_t side = 0; side < sides.size(); ++side) {
          list +=
              fmt::format("{}{} {}", list.empty() ? "" : ", ", Ranks(sides[side].second), Describe(sides[side].first));
          if (side > 0) differ.ranks.insert(differ.ranks.end(), sides[side].second.begin(), sides[side].second.end());
        }
        const SequenceCommunicator& communicator = sequence.communicators[step.communicator];
        differ.sentence =
            fmt::format("Call #{} of {} is not the same on all ranks: {}.", step.called, communicator.name, list);
        found.push_back(std::move(differ));
      }
      Disagreement lack{meeting, "", {}, true};
      for (const int rank : PartiesOf(sequence, step))
        if (std::ranges::find(parties, rank, &Party::rank) == parties.end()) lack.ranks.push_back(rank);
      std::ranges::sort(lack.ranks);
      if (lack.ranks.empty()) continue;
      std::vector<int> there;
      for (const Party& party : parties) there.push_back(party.rank);
      std::string what = InWords(sequence, step);
      what[0] = static_cast<char>(what[0] >= 'a' && what[0] <= 'z' ? what[0] - 'a' + 'A' : what[0]);
      lack.sentence = fmt::format("{} is made by {} and not by {}.", what, Ranks(there), Ranks(lack.ranks));
      found.push_back(std::move(lack));
    }
  }
  return found;
}

void Complete(Sequence& sequence) {
  const Met met = AllMeetings(sequence);
  for (auto& of_rank : sequence.steps)
    for (SequenceStep& step : of_rank) {
      const std::vector<Party>& parties = met.at(MeetingOf(sequence, step));
      const Call& first = sequence.calls[parties.front().step->call];
      step.checked =
          parties.size() == PartiesOf(sequence, step).size() && std::ranges::all_of(parties, [&](const Party& party) {
            return Shared(sequence.calls[party.step->call]) == Shared(first) &&
                   sequence.calls[party.step->call].splits == first.splits;
          });
    }
  for (SequenceCommunicator& communicator : sequence.communicators) communicator.span = 1;
  for (const auto& of_rank : sequence.steps)
    for (const SequenceStep& step : of_rank) {
      std::uint32_t& span = sequence.communicators[step.communicator].span;
      span = std::max(span, step.number + 1);
    }
}

Sequence SubsetOf(const Sequence& sequence, const std::vector<int>& ranks) {
  Sequence subset{.communicators = {}, .calls = {}, .steps = {}, .rule = sequence.rule};
  std::map<std::uint32_t, std::uint32_t> communicators;
  std::vector<std::vector<std::optional<int>>> places(sequence.communicators.size());  // new ones, by the old
  for (std::uint32_t i = 0; i < sequence.communicators.size(); ++i) {
    SequenceCommunicator kept = sequence.communicators[i];
    kept.ranks.clear();
    for (const int rank : sequence.communicators[i].ranks) {
      const auto found = std::ranges::find(ranks, rank);
      places[i].push_back(found == ranks.end() ? std::nullopt : std::optional(static_cast<int>(kept.ranks.size())));
      if (found != ranks.end()) kept.ranks.push_back(static_cast<int>(found - ranks.begin()));
    }
    if (kept.ranks.size() < 2) continue;
    kept.id = communicators[i] = static_cast<std::uint32_t>(subset.communicators.size());
    subset.communicators.push_back(std::move(kept));
  }
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> calls;  // by old call and communicator
  for (const int rank : ranks) {
    std::vector<SequenceStep>& steps = subset.steps.emplace_back();
    for (SequenceStep step : sequence.steps[static_cast<std::size_t>(rank)]) {
      const auto communicator = communicators.find(step.communicator);
      if (communicator == communicators.end()) continue;
      const auto place = [&](int old) { return places[step.communicator][static_cast<std::size_t>(old)]; };
      Call call = sequence.calls[step.call];
      if (call.operation == Operation::kSendRecv) {
        if (!place(call.root) || !place(call.peer)) continue;
        call.peer = *place(call.peer);
        call.root = *place(call.root);
      } else {
        call.root = RowOf(call.operation).needs_root ? place(call.root).value_or(0) : 0;
      }
      if (!call.splits.empty()) {
        std::vector<std::uint64_t> splits;
        for (std::size_t old = 0; old < call.splits.size(); ++old)
          if (place(static_cast<int>(old))) splits.push_back(call.splits[old]);
        call.splits = std::move(splits);
      }
      const auto [known, is_new] =
          calls.emplace(std::pair(step.call, step.communicator), static_cast<std::uint32_t>(subset.calls.size()));
      if (is_new) subset.calls.push_back(std::move(call));
      step.call = known->second;
      step.communicator = communicator->second;
      steps.push_back(std::move(step));
    }
  }
  Complete(subset);
  return subset;
}

SequenceWork WorkOf(const Sequence& sequence, int rank) {
  SequenceWork work{.communicators = {}, .calls = {}, .steps = sequence.steps[static_cast<std::size_t>(rank)]};
  std::map<std::uint32_t, std::uint32_t> communicators, calls;
  for (std::uint32_t i = 0; i < sequence.communicators.size(); ++i) {
    const SequenceCommunicator& communicator = sequence.communicators[i];
    if (std::ranges::find(communicator.ranks, rank) == communicator.ranks.end()) continue;
    communicators[i] = static_cast<std::uint32_t>(work.communicators.size());
    work.communicators.push_back(communicator);
  }
  for (SequenceStep& step : work.steps) {
    const auto [known, is_new] = calls.emplace(step.call, static_cast<std::uint32_t>(work.calls.size()));
    if (is_new) work.calls.push_back(sequence.calls[step.call]);
    step.call = known->second;
    step.communicator = communicators.at(step.communicator);
    step.at.reset();
  }
  return work;
}

std::string WhyInvalid(const Sequence& sequence) {
  if (sequence.size() == 0) return "there is no call to run";
  constexpr std::size_t kMost = 1 << 20;
  if (sequence.size() > kMost) return fmt::format("{} calls are more than a replay can hold", sequence.size());
  for (std::size_t rank = 0; rank < sequence.steps.size(); ++rank) {
    if (OrderBytes(sequence, static_cast<int>(rank)) > kMostOrderBytes)
      return fmt::format("rank {} would make {} calls, and its orders would be too long", rank,
                         sequence.steps[rank].size());
    for (const SequenceStep& step : sequence.steps[rank]) {
      const auto nranks = static_cast<int>(sequence.communicators[step.communicator].ranks.size());
      if (const std::string why = WhyInvalid(sequence.calls[step.call], nranks); !why.empty())
        return fmt::format("rank {}, {}: {}", rank, InWords(sequence, step), why);
    }
  }
  return "";
}

std::string WhyInvalid(const SequenceWork& work, int rank) {
  for (const SequenceCommunicator& communicator : work.communicators)
    if (std::ranges::count(communicator.ranks, rank) != 1)
      return fmt::format("rank {} has no place in {}", rank, communicator.name);
  for (const SequenceStep& step : work.steps)
    if (const std::string why =
            WhyInvalid(work.calls[step.call], static_cast<int>(work.communicators[step.communicator].ranks.size()));
        !why.empty())
      return why;
  return "";
}

std::vector<std::vector<std::uint32_t>> ByStream(const std::vector<SequenceStep>& steps) {
  std::vector<std::vector<std::uint32_t>> streams;
  for (std::uint32_t i = 0; i < steps.size(); ++i) {
    if (steps[i].stream >= streams.size()) streams.resize(steps[i].stream + 1);
    streams[steps[i].stream].push_back(i);
  }
  return streams;
}

}  // namespace inquest
