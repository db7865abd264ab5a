// From the inputs, read a second time, to a plan of the last calls of every communicator.
#include "replay/sequence_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <set>

#include "replay/members.h"
#include "replay/ops.h"
#include "replay/settings.h"
#include "replay/words.h"
#include "timeline/trace_ledger.h"

namespace inquest {
namespace {

constexpr std::size_t kMostKept = 1 << 21;  ///< calls of all ranks, before the last are chosen

using std::string;

/// What calls are numbered by: a communicator's collectives, or what one of its ranks sends to another.
struct Counter {
  std::uint32_t communicator = 0;
  int root = -1, peer = -1;
  auto operator<=>(const Counter&) const = default;
};
Counter CounterOf(const ReadCall& call) {
  const bool pair = call.call.operation == Operation::kSendRecv;
  return {call.communicator, pair ? call.call.root : -1, pair ? call.call.peer : -1};
}

/// What of a key's calls there is: of each caller that can make them, its first and last number.
struct Range {
  std::int64_t first_everywhere = std::numeric_limits<std::int64_t>::min();  ///< all that made any have those from here
  std::int64_t last = std::numeric_limits<std::int64_t>::min();
  std::int64_t last_everywhere = std::numeric_limits<std::int64_t>::max();  ///< of the one furthest back
  std::int64_t begin = 0;
};

JobPlace PlaceOf(const ProcessRow& process) {
  JobPlace place{.rank = std::nullopt,
                 .host = process.host.value_or(""),
                 .bus_id = process.bus_id.value_or(""),
                 .device = process.cuda_dev,
                 .at = std::nullopt};
  if (process.rank) place.rank = process.rank->value.value;
  return place;
}

/// What of a call is on the wire of NCCL's own types.
std::optional<Call> CallOf(const CallDescriptor& what, int rank, std::vector<string>& notes) {
  const ReplayOp* op = FindOp(what.op);
  if (op == nullptr || what.count == 0) return std::nullopt;  // NCCL does nothing for no elements
  Call call{.operation = op->operation, .count = what.count};
  if (what.datatype >= 0 && static_cast<std::size_t>(what.datatype) < kDatatypes.size()) {
    call.datatype = static_cast<Datatype>(what.datatype);
  } else {
    notes.emplace_back("a datatype is none that is known; float32 is assumed");
  }
  if (op->needs_redop) {
    const bool built_in = what.redop >= 0 && static_cast<std::size_t>(what.redop) < kRedOps.size();
    if (built_in)
      call.redop = static_cast<RedOp>(what.redop);
    else
      notes.emplace_back("the job's own reduction is replayed as a sum");
  }
  if (op->needs_peer) {
    const bool sends = FindOp(what.op)->operation == Operation::kSendRecv && what.op.starts_with("Send");
    call.root = sends ? rank : what.root;
    call.peer = sends ? what.root : rank;
  } else if (op->needs_root) {
    call.root = what.root;
  }
  return call;
}

template <class T>
std::uint32_t IndexIn(std::vector<T>& list, const T& value) {
  const auto place = static_cast<std::size_t>(std::ranges::find(list, value) - list.begin());
  if (place == list.size()) list.push_back(value);
  return static_cast<std::uint32_t>(place);
}

}  // namespace

Result<ChosenCalls> LastOf(const ReadCalls& read, const SequenceAsked& asked) {
  std::map<Counter, Range> ranges;
  std::map<std::pair<std::uint32_t, Counter>, std::pair<std::int64_t, std::int64_t>> of_caller;
  for (std::uint32_t caller = 0; caller < read.calls.size(); ++caller)
    for (const ReadCall& call : read.calls[caller]) {
      const auto [known, is_new] = of_caller.try_emplace({caller, CounterOf(call)}, call.number, call.number);
      known->second.first = std::min(known->second.first, call.number);
      known->second.second = std::max(known->second.second, call.number);
    }
  for (const auto& [who, numbers] : of_caller) {
    Range& range = ranges[who.second];
    range.first_everywhere = std::max(range.first_everywhere, numbers.first);
    range.last = std::max(range.last, numbers.second);
  }
  for (auto& [key, range] : ranges) {
    const auto& members = read.communicators[key.communicator].members;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      if (!members[rank] || (key.root >= 0 && static_cast<int>(rank) != key.root && static_cast<int>(rank) != key.peer))
        continue;
      const auto own = of_caller.find({*members[rank], key});
      range.last_everywhere =
          std::min(range.last_everywhere, own == of_caller.end() ? range.first_everywhere : own->second.second);
    }
    range.begin = std::max(range.first_everywhere, std::min(range.last - asked.last + 1, range.last_everywhere));
  }

  std::set<std::uint32_t> used;
  std::set<std::uint32_t> callers;
  for (std::uint32_t caller = 0; caller < read.calls.size(); ++caller)
    for (const ReadCall& call : read.calls[caller])
      if (call.number >= ranges[CounterOf(call)].begin) used.insert(call.communicator);
  for (const std::uint32_t communicator : used) {
    std::vector<int> missing;
    const auto& members = read.communicators[communicator].members;
    for (std::size_t rank = 0; rank < members.size(); ++rank) {
      if (members[rank])
        callers.insert(*members[rank]);
      else
        missing.push_back(static_cast<int>(rank));
    }
    if (!missing.empty())
      return Error{fmt::format("nothing shows the calls of {} of {}, which has {} ranks", Ranks(missing),
                               read.communicators[communicator].name, members.size()),
                   "give the logs or dumps of all ranks", ""};
  }
  if (callers.size() > static_cast<std::size_t>(kMostRanks))
    return Error{fmt::format("{} ranks are more than a replay can start", callers.size()), "", ""};

  // Ranks of the replay in the order of the job's.
  std::vector<std::uint32_t> order(callers.begin(), callers.end());
  std::ranges::stable_sort(order, {}, [&](std::uint32_t caller) {
    const JobPlace& place = read.callers[caller];
    return std::tuple(!place.rank, place.rank.value_or(0), place.host, place.device.value_or(0));
  });
  std::map<std::uint32_t, int> rank_of;
  for (std::size_t rank = 0; rank < order.size(); ++rank) rank_of[order[rank]] = static_cast<int>(rank);

  Sequence sequence;
  sequence.rule =
      fmt::format("the last {} of every communicator", asked.last == 1 ? "call" : fmt::format("{} calls", asked.last));
  std::map<std::uint32_t, std::uint32_t> communicators;
  bool by_kind = false;
  for (const std::uint32_t communicator : used) {
    const ReadCommunicator& from = read.communicators[communicator];
    SequenceCommunicator to{.name = from.name, .ranks = {}};
    to.id = static_cast<std::uint32_t>(sequence.communicators.size());
    for (const auto& member : from.members) to.ranks.push_back(rank_of.at(*member));
    communicators[communicator] = to.id;
    sequence.communicators.push_back(std::move(to));
    by_kind = by_kind || from.by_kind;
  }
  const bool told = std::ranges::all_of(read.calls, [](const std::vector<ReadCall>& calls) {
    return std::ranges::all_of(calls, [](const ReadCall& call) { return call.stream.has_value(); });
  });
  std::map<Call, std::uint32_t, bool (*)(const Call&, const Call&)> calls([](const Call& a, const Call& b) {
    const auto fields = [](const Call& c) {
      return std::tie(c.operation, c.count, c.datatype, c.redop, c.root, c.peer, c.splits, c.in_place);
    };
    return fields(a) < fields(b);
  });
  // What shares a number is told apart by its place among those; together they count from 0.
  std::map<Counter, std::map<std::pair<std::int64_t, std::int64_t>, std::uint32_t>> number_of;
  for (const std::vector<ReadCall>& made : read.calls)
    for (const ReadCall& call : made)
      if (call.number >= ranges[CounterOf(call)].begin) number_of[CounterOf(call)][{call.number, call.part}] = 0;
  for (auto& [counter, numbers] : number_of) {
    std::uint32_t next = 0;
    for (auto& [number, index] : numbers) index = next++;
  }
  for (const std::uint32_t caller : order) {
    std::vector<SequenceStep>& steps = sequence.steps.emplace_back();
    std::vector<std::uint64_t> streams, batches = {0};
    for (const ReadCall& call : read.calls[caller]) {
      const Range& range = ranges[CounterOf(call)];
      if (call.number < range.begin) continue;
      const auto [place, is_new] = calls.emplace(call.call, static_cast<std::uint32_t>(sequence.calls.size()));
      if (is_new) sequence.calls.push_back(call.call);
      const std::uint32_t communicator = communicators.at(call.communicator);
      std::uint64_t stream = 0;
      if (asked.streams == SequenceAsked::Streams::kOwn || by_kind)
        stream = communicator;
      else if (asked.streams == SequenceAsked::Streams::kAsLogged && told)
        stream = *call.stream;
      steps.push_back(
          {.communicator = communicator,
           .call = place->second,
           .stream = IndexIn(streams, stream),
           .batch = IndexIn(batches, call.batch),
           .number = number_of.at(CounterOf(call)).at({call.number, call.part}),
           .called = read.communicators[call.communicator].counts && call.call.operation != Operation::kSendRecv
                         ? call.number
                         : call.number - range.begin + 1,
           .checked = false,
           .at = call.at});
    }
  }
  if (sequence.size() == 0) return Error{"no calls are left of which all ranks are known", "", ""};
  Complete(sequence);
  return ChosenCalls{std::move(sequence), std::move(order)};
}

SequenceReader::SequenceReader(const Timeline& timeline, const SequenceAsked& asked)
    : timeline_(timeline), asked_(asked) {
  for (const CommunicatorRow& row : timeline.communicators) {
    rows_.emplace(row.number, &row);
    std::uint64_t most = 0, fewest = std::numeric_limits<std::uint64_t>::max();
    for (const CommunicatorRow::Member& member : row.members) {
      most = std::max(most, member.calls);
      fewest = std::min(fewest, member.calls);
    }
    const auto last = static_cast<std::uint64_t>(asked.last);
    first_[row.number] = std::min(most - std::min(most, last), fewest - std::min<std::uint64_t>(fewest, 1));
  }
}

void SequenceReader::Add(Event event) { callers_.Add(event); }

void SequenceReader::AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) {
  callers_.AddCalls(batch, begin, end, base, [&](const CallLedger::Numbered& numbered) {
    const CallBatch::Call& call = batch.calls[numbered.call];
    const CallBatch::Comm& comm = batch.comms[call.comm];
    const CallBatch::Process& writer = batch.processes[comm.process];
    SourcePos where = base;
    where.line = base.line + call.line;
    if (where.input >= timeline_.inputs.size() || !timeline_.Holds(where)) return;
    const auto process =
        timeline_.process_by_pid->find(std::pair<std::string_view, std::int64_t>(writer.host, writer.pid));
    if (process == timeline_.process_by_pid->end()) return;
    const CallDescriptor& what = batch.descriptors[call.descriptor];
    auto& op_counts = op_counts_[numbered.communicator];
    if (op_counts.size() < 2) op_counts.insert(call.op_count);
    std::optional<std::uint64_t> number = numbered.number;
    if (number) {
      const auto first = first_.find(numbered.communicator);
      if (first == first_.end() || *number < first->second) return;
    } else {
      number = pairs_[process->second][{numbered.communicator, what.op, what.root}]++;
    }
    std::vector<Logged>& of_process = logged_[process->second];
    of_process.push_back({.communicator = numbered.communicator,
                          .number = number,
                          .what = what,
                          .stream = comm.stream,
                          .op_count = call.op_count,
                          .where = where});
    if (of_process.size() >= std::max<std::size_t>(prune_at_[process->second], 4096)) Prune(process->second);
  });
}

/// Of sends and receives only the last are wanted, and which they are is known once all are read.
void SequenceReader::Prune(std::uint32_t process) {
  std::vector<Logged>& calls = logged_[process];
  // Their receivers may be further behind.
  const std::uint64_t slack = 2 * static_cast<std::uint64_t>(asked_.last) + 64;
  std::erase_if(calls, [&](const Logged& call) {
    const ReplayOp* op = FindOp(call.what.op);
    if (op == nullptr || !op->needs_peer) return false;
    return *call.number + slack < pairs_[process][{call.communicator, call.what.op, call.what.root}];
  });
  prune_at_[process] = std::max<std::size_t>(4096, 2 * calls.size());
  too_many_ = too_many_ || calls.size() > kMostKept;
}

void SequenceReader::AddTrace(const CallTrace& trace, const Origin& origin, const SourcePos& where) {
  const auto& rank = trace.rank ? trace.rank : origin.rank;
  if (!rank || !IsRank(rank->value.value) || !timeline_.Holds(where)) return;
  traces_.try_emplace(rank->value.value, Recorded{trace, where});
}

ReadCalls SequenceReader::OfLines() {
  ReadCalls read;
  std::map<std::uint32_t, std::uint32_t> caller_of;
  std::map<std::uint64_t, std::uint32_t> communicator_of;
  std::map<std::pair<std::uint64_t, std::uint32_t>, int> rank_in;  // by communicator and process
  const auto caller = [&](std::uint32_t process) {
    const auto [known, is_new] = caller_of.emplace(process, static_cast<std::uint32_t>(read.callers.size()));
    if (is_new) {
      read.callers.push_back(PlaceOf(timeline_.processes[process]));
      read.calls.emplace_back();
    }
    return known->second;
  };
  bool unseen = false, ended = false;
  const auto all_ended = [](const CommunicatorRow& row) {
    return std::ranges::all_of(row.members, [](const auto& member) { return member.ended || member.aborted; });
  };
  const bool any_alive = std::ranges::any_of(timeline_.communicators, [&](const CommunicatorRow& row) {
    return row.nranks != 1 && !row.members.empty() && !all_ended(row) &&
           std::ranges::any_of(row.members, [](const auto& member) { return member.calls > 0; });
  });
  for (const CommunicatorRow& row : timeline_.communicators) {
    const std::size_t nranks = row.nranks > 0 ? static_cast<std::size_t>(row.nranks) : row.members.size();
    if (nranks < 2 || nranks > static_cast<std::size_t>(kMostRanks) || row.members.empty()) continue;
    if (any_alive && all_ended(row)) {
      ended = true;
      continue;
    }
    ReadCommunicator communicator{.name = row.comm_id ? fmt::format("comm {:#x}", row.comm_id->value)
                                                      : fmt::format("communicator {}", row.number),
                                  .members = std::vector<std::optional<std::uint32_t>>(nranks),
                                  .counts = true};
    std::vector<std::uint32_t> without;
    for (const CommunicatorRow::Member& member : row.members) {
      if (!member.rank || static_cast<std::size_t>(member.rank->value) >= nranks) {
        without.push_back(member.process);
        continue;
      }
      communicator.members[static_cast<std::size_t>(member.rank->value)] = caller(member.process);
      rank_in[{row.number, member.process}] = member.rank->value;
    }
    // Where no Init line says it, ranks count as in the job, if all are there.
    if (without.size() == nranks) {
      std::ranges::stable_sort(without, {}, [&](std::uint32_t process) {
        const auto& rank = timeline_.processes[process].rank;
        return rank ? rank->value.value : std::numeric_limits<int>::max();
      });
      for (std::size_t rank = 0; rank < nranks; ++rank) {
        communicator.members[rank] = caller(without[rank]);
        rank_in[{row.number, without[rank]}] = static_cast<int>(rank);
      }
    }
    unseen = unseen || !row.whole_history;
    communicator_of[row.number] = static_cast<std::uint32_t>(read.communicators.size());
    read.communicators.push_back(std::move(communicator));
  }
  std::uint64_t batch = 0;
  bool paired = false;
  std::vector<string> notes;
  for (const auto& [process, calls] : logged_) {
    const Logged* before = nullptr;
    for (const Logged& call : calls) {
      const auto communicator = communicator_of.find(call.communicator);
      const auto rank = rank_in.find({call.communicator, process});
      if (communicator == communicator_of.end() || rank == rank_in.end()) continue;
      const auto made = CallOf(call.what, rank->second, notes);
      if (!made) continue;
      const int nranks = static_cast<int>(read.communicators[communicator->second].members.size());
      if (!WhyInvalid(*made, nranks).empty()) continue;
      std::vector<ReadCall>& out = read.calls[caller(process)];
      const bool pair = made->operation == Operation::kSendRecv;
      out.push_back({.communicator = communicator->second,
                     .number = static_cast<std::int64_t>(*call.number),
                     .call = *made,
                     .stream = call.stream,
                     .batch = 0,
                     .at = LineAt(timeline_, call.where).value_or(SourceLine{})});
      // opCount counts what was launched, so that calls of one group have one; where it never counts, it says nothing.
      const bool counts = op_counts_[call.communicator].size() > 1;
      const bool same = before != nullptr && before->communicator == call.communicator &&
                        before->op_count == call.op_count && before->stream == call.stream &&
                        (counts || (pair && FindOp(before->what.op)->needs_peer));
      if (same && out.size() > 1) {
        if (out[out.size() - 2].batch == 0) out[out.size() - 2].batch = ++batch;
        out.back().batch = out[out.size() - 2].batch;
        paired = paired || !counts;
      }
      before = &call;
    }
  }
  std::ranges::sort(notes);
  notes.erase(std::unique(notes.begin(), notes.end()), notes.end());
  read.notes = std::move(notes);
  if (unseen)
    read.notes.emplace_back(
        "of a communicator the birth was not seen: its calls are counted from the first line of each rank (assumed)");
  if (ended) read.notes.emplace_back("communicators that had ended are left out");
  if (paired)
    read.notes.emplace_back("sends and receives in a row are one group call (assumed: opCount does not tell)");
  return read;
}

namespace {

/// A recorder's call on a group of that many ranks; nullopt: nothing that can be made.
std::optional<Call> CallOf(const CallForm& form, const CallTrace::Call& recorded, int own, int nranks) {
  const ReplayOp* op = FindOp(form.op);
  if (op == nullptr) return std::nullopt;
  Call call{.operation = op->operation};
  const std::int64_t in = Elements(form.inputs), out = Elements(form.outputs);
  std::int64_t count = in;
  if (op->operation == Operation::kReduceScatter || op->operation == Operation::kScatter) count = out;
  if (op->operation == Operation::kAllToAll) count = in / nranks;
  if (op->operation == Operation::kSendRecv) count = recorded.to == CallTrace::Peer::kFrom ? std::max(in, out) : in;
  if (op->operation == Operation::kBarrier) count = 1;
  if (count <= 0) return std::nullopt;
  call.count = static_cast<std::uint64_t>(count);
  const std::string_view first = std::string_view(form.dtypes).substr(0, form.dtypes.find_first_of(" ,"));
  call.datatype = FindDatatype(first).value_or(Datatype::kFloat32);
  if (op->needs_peer) {
    if (recorded.to == CallTrace::Peer::kNone) return std::nullopt;
    const bool sends = recorded.to == CallTrace::Peer::kTo;
    call.root = sends ? own : recorded.peer;
    call.peer = sends ? recorded.peer : own;
  }
  return WhyInvalid(call, nranks).empty() ? std::optional(call) : std::nullopt;
}

}  // namespace

ReadCalls SequenceReader::OfRecorders() const {
  ReadCalls read;
  std::map<int, std::uint32_t> caller_of;
  for (const auto& [rank, recorded] : traces_) {
    caller_of[rank] = static_cast<std::uint32_t>(read.callers.size());
    const RankRow* row = timeline_.FindRank(GlobalRank{rank});
    JobPlace place = row != nullptr && row->process ? PlaceOf(timeline_.processes[*row->process]) : JobPlace{};
    place.rank = rank;
    read.callers.push_back(std::move(place));
    read.calls.emplace_back();
  }
  std::map<string, std::uint32_t> communicator_of;
  std::uint64_t batch = 0;
  bool rooted = false, reduced = false, skipped = false;
  for (const auto& [rank, recorded] : traces_) {
    const CallTrace& trace = recorded.trace;
    const std::uint32_t caller = caller_of.at(rank);
    std::vector<std::optional<std::uint32_t>> of_group(trace.groups.size());
    std::vector<int> own(trace.groups.size(), -1);
    for (std::size_t i = 0; i < trace.groups.size(); ++i) {
      const CallTrace::Group& group = trace.groups[i];
      std::vector<int> ranks = group.ranks;
      if (ranks.empty())  // those whose recorders hold anything of it
        for (const RecordedGroup& known : timeline_.recorded->groups)
          if (known.source == RecordedGroup::Source::kRecorders && known.name == group.name)
            for (const int member : known.Members()) ranks.push_back(member);
      const auto place = std::ranges::find(ranks, rank);
      if (ranks.size() < 2 || ranks.size() > static_cast<std::size_t>(kMostRanks) || place == ranks.end()) continue;
      own[i] = static_cast<int>(place - ranks.begin());
      const auto [known, is_new] = communicator_of.emplace(GroupKey(group.name, group.ranks),
                                                           static_cast<std::uint32_t>(read.communicators.size()));
      if (is_new) {
        ReadCommunicator communicator{
            .name = fmt::format("group {}",
                                group.desc.empty() ? group.name : fmt::format("{} ({})", group.name, group.desc)),
            .members = {},
            .counts = !group.mixed};
        for (const int member : ranks) {
          const auto there = caller_of.find(member);
          communicator.members.push_back(there == caller_of.end() ? std::nullopt : std::optional(there->second));
        }
        read.communicators.push_back(std::move(communicator));
      }
      of_group[i] = known->second;
    }
    // Numbers that ranks do not share are counted from the last that is known to be over on both sides.
    const std::vector<bool> open = OpenCalls(trace);
    std::map<std::tuple<std::uint32_t, int, int>, std::int64_t> over, seen;
    const auto own_key = [&](const CallTrace::Call& call, const Call& made) {
      return std::tuple(call.group, made.operation == Operation::kSendRecv ? made.root : -1,
                        made.operation == Operation::kSendRecv ? made.peer : -1);
    };
    std::vector<std::optional<Call>> made(trace.calls.size());
    for (std::size_t i = 0; i < trace.calls.size(); ++i) {
      const CallTrace::Call& call = trace.calls[i];
      if (call.coalesced || !of_group[call.group]) continue;
      const auto nranks = static_cast<int>(read.communicators[*of_group[call.group]].members.size());
      made[i] = CallOf(trace.forms[call.form], call, own[call.group], nranks);
      if (!made[i]) {
        skipped = true;
        continue;
      }
      rooted = rooted || (RowOf(made[i]->operation).needs_root && !RowOf(made[i]->operation).needs_peer);
      reduced = reduced || RowOf(made[i]->operation).needs_redop;
      if (!open[i]) ++over[own_key(call, *made[i])];
    }
    std::set<std::uint32_t> first_block;
    std::vector<std::pair<std::uint32_t, std::uint64_t>> oldest;  // blocks in front of all else of their communicator
    const auto is_first = [](const std::vector<ReadCall>& calls, std::size_t begin) {
      return std::none_of(calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(begin),
                          [&](const ReadCall& call) { return call.communicator == calls[begin].communicator; });
    };
    std::size_t block = 0;  // where what is launched as one begins
    for (std::size_t i = 0; i < trace.calls.size(); ++i) {
      const CallTrace::Call& call = trace.calls[i];
      std::vector<ReadCall>& out = read.calls[caller];
      if (i > 0 && (trace.calls[i - 1].group != call.group || trace.calls[i - 1].seq != call.seq ||
                    trace.calls[i - 1].coalesced))
        block = out.size();
      if (call.coalesced) {
        ++batch;
        std::map<Counter, std::int64_t> parts;
        for (std::size_t of_block = block; of_block < out.size(); ++of_block) {
          out[of_block].batch = batch;
          if (out[of_block].call.operation != Operation::kSendRecv)
            out[of_block].part = parts[CounterOf(out[of_block])]++;
        }
        // The oldest may have lost its first parts.
        if (call.group < of_group.size() && block < out.size() && first_block.insert(call.group).second &&
            is_first(out, block))
          oldest.emplace_back(*of_group[call.group], batch);
        continue;
      }
      if (!made[i]) continue;
      const auto key = own_key(call, *made[i]);
      const bool shared =
          made[i]->operation != Operation::kSendRecv && !trace.groups[call.group].mixed && !call.pairwise;
      const std::int64_t number = shared ? call.seq : seen[key] - over[key];
      ++seen[key];
      SourcePos where = recorded.where;
      where.line = call.place;
      SourceLine at;
      if (where.input < timeline_.inputs.size()) at = {timeline_.inputs[where.input].path, call.place};
      out.push_back({.communicator = *of_group[call.group],
                     .number = number,
                     .call = *made[i],
                     .stream = std::nullopt,
                     .batch = 0,
                     .at = std::move(at)});
    }
    for (const auto& cut : oldest) {
      std::vector<ReadCall>& made_here = read.calls[caller];
      const bool has_more = std::ranges::any_of(
          made_here, [&](const ReadCall& one) { return one.communicator == cut.first && one.batch != cut.second; });
      if (has_more) std::erase_if(made_here, [&](const ReadCall& one) { return one.batch == cut.second; });
    }
  }
  // Parts that are not even are not recorded.
  std::map<std::tuple<std::uint32_t, std::int64_t, std::int64_t>, std::uint64_t> least;
  bool uneven = false;
  const auto key_of = [](const ReadCall& call) { return std::tuple(call.communicator, call.number, call.part); };
  for (const std::vector<ReadCall>& calls : read.calls)
    for (const ReadCall& call : calls) {
      if (call.call.operation != Operation::kAllToAll) continue;
      const auto [known, is_new] = least.emplace(key_of(call), call.call.count);
      uneven = uneven || known->second != call.call.count;
      known->second = std::min(known->second, call.call.count);
    }
  for (std::vector<ReadCall>& calls : read.calls)
    for (ReadCall& call : calls)
      if (call.call.operation == Operation::kAllToAll) call.call.count = least.at(key_of(call));
  if (uneven) read.notes.emplace_back("recorders keep no splits: an uneven all-to-all has even parts (assumed)");
  if (rooted) read.notes.emplace_back("recorders keep no root: rank 0 of the group is assumed");
  if (reduced) read.notes.emplace_back("recorders keep no reduction: sums are assumed");
  if (skipped)
    read.notes.emplace_back("entries of which no call can be made (no elements, other operations) are left out");
  return read;
}

ReadCalls SequenceReader::OfCounts() const {
  ReadCalls read;
  std::map<int, std::uint32_t> caller_of;
  for (const RecordedGroup& group : timeline_.recorded->groups) {
    const ReplayOp* op = FindOp(group.desc);
    if (group.source == RecordedGroup::Source::kRecorders || op == nullptr || op->needs_peer) continue;
    const RankSet members = group.Members();
    if (members.size() < 2 || members.size() > static_cast<std::size_t>(kMostRanks)) continue;
    ReadCommunicator communicator{.name = fmt::format("comm {} ({})", group.name, group.desc), .members = {}};
    communicator.by_kind = true;
    const auto number = static_cast<std::uint32_t>(read.communicators.size());
    std::int64_t fewest = std::numeric_limits<std::int64_t>::max(), most = 0;
    for (const RecordedMember& member : group.members) {
      fewest = std::min(fewest, member.last);
      most = std::max(most, member.last);
    }
    const std::vector<int> ranks = group.ranks.empty() ? std::vector<int>(members.begin(), members.end()) : group.ranks;
    for (const int rank : ranks) {
      const auto [known, is_new] = caller_of.emplace(rank, static_cast<std::uint32_t>(read.callers.size()));
      if (is_new) {
        const RankRow* row = timeline_.FindRank(GlobalRank{rank});
        JobPlace place = row != nullptr && row->process ? PlaceOf(timeline_.processes[*row->process]) : JobPlace{};
        place.rank = rank;
        read.callers.push_back(std::move(place));
        read.calls.emplace_back();
      }
      communicator.members.push_back(known->second);
      const RecordedMember* member = group.Find(GlobalRank{rank});
      const std::int64_t last = member == nullptr ? 0 : member->last;
      const std::int64_t first = std::max<std::int64_t>(std::min(most - asked_.last + 1, fewest), 1);
      if (most - first > static_cast<std::int64_t>(kMostKept) / static_cast<std::int64_t>(ranks.size())) continue;
      for (std::int64_t call = first; call <= last; ++call)
        read.calls[known->second].push_back({.communicator = number,
                                             .number = call,
                                             .call = {.operation = op->operation, .count = 1},
                                             .stream = std::nullopt,
                                             .batch = 0,
                                             .at = {}});
    }
    read.communicators.push_back(std::move(communicator));
  }
  if (!read.communicators.empty())
    read.notes.emplace_back(
        "counts keep neither sizes nor order: one element of float32 each, operations beside one another (assumed)");
  return read;
}

Result<Plan> SequenceReader::Finish() {
  if (too_many_)
    return Error{"the ranks of a communicator are too many calls apart", "the analysis of the logs says who lags", ""};
  const auto any = [](const ReadCalls& read) {
    return std::ranges::any_of(read.calls, [](const auto& calls) { return !calls.empty(); });
  };
  ReadCalls read = logged_.empty() ? ReadCalls() : OfLines();
  if (!any(read) && !traces_.empty() && timeline_.recorded_fits) read = OfRecorders();
  if (!any(read)) read = OfCounts();
  if (!any(read))
    return Error{"the logs show no calls to replay: neither NCCL's COLL lines, nor recorders, nor RAS or Inspector",
                 "run the job with NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,COLL, or dump its Flight Recorder; without "
                 "--last the operation that failed is replayed",
                 ""};
  Result<ChosenCalls> chosen = LastOf(read, asked_);
  if (!chosen) return chosen.error();
  Plan plan;
  plan.ranks = {.value = static_cast<int>(chosen->callers.size()),
                .basis = Basis::kObserved,
                .rule = "those of the communicators"};
  plan.notes = std::move(read.notes);
  std::vector<std::optional<std::uint32_t>> processes;
  for (const std::uint32_t caller : chosen->callers) {
    plan.places.push_back({.was = read.callers[caller]});
    const auto& rank = plan.places.back().was.rank;
    const RankRow* row = rank ? timeline_.FindRank(GlobalRank{*rank}) : nullptr;
    processes.push_back(row != nullptr ? row->process : std::nullopt);
  }
  Sequence& sequence = chosen->sequence;
  for (const std::vector<SequenceStep>& steps : sequence.steps)
    if (!plan.ranks.at && !steps.empty() && steps.front().at && !steps.front().at->path.empty())
      plan.ranks.at = steps.front().at;
  for (const Disagreement& one : DisagreementsOf(sequence)) {
    constexpr std::size_t kNamed = 8;
    if (plan.notes.size() >= kNamed) break;
    plan.notes.push_back(one.sentence.substr(0, one.sentence.size() - 1));
  }
  plan.sequence = std::move(sequence);
  return WithSettings(std::move(plan), timeline_, processes);
}

}  // namespace inquest
