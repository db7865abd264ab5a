// The fields of what supervisor and worker say, one list a message for both directions. For the .cc files that speak on
// a wire.
#pragma once

#include "replay/ops.h"
#include "replay/wire.h"

namespace inquest {

// Enumerators that may come; what the other side numbers higher is refused.
inline std::size_t CountOf(Phase) { return kPhases.size(); }
inline std::size_t CountOf(Operation) { return ReplayOps().size(); }
inline std::size_t CountOf(Datatype) { return kDatatypes.size(); }
inline std::size_t CountOf(RedOp) { return kRedOps.size(); }
inline std::size_t CountOf(Fault::Kind) { return static_cast<std::size_t>(Fault::Kind::kAbortHangs) + 1; }

template <class Archive>
void Fields(Archive& archive, Step& step) {
  archive("phase", step.phase);
  archive("iteration", step.iteration);
}
template <class Archive>
void Fields(Archive& archive, Call& call) {
  archive("op", call.operation);
  archive("count", call.count);
  archive("dtype", call.datatype);
  archive("redop", call.redop);
  archive("root", call.root);
  archive("peer", call.peer);
  archive("splits", call.splits);
  archive("in_place", call.in_place);
}
template <class Archive>
void Fields(Archive& archive, Fault& fault) {
  archive("rank", fault.rank);
  archive("kind", fault.kind);
  archive("before", fault.before);
  archive("delay", fault.delay);
  archive("call", fault.call);
}
template <class Archive>
void Fields(Archive& archive, WrongData& data) {
  archive("elements", data.elements);
  archive("first", data.first);
  archive("wanted", data.wanted);
  archive("got", data.got);
  archive("step", data.step);
}
template <class Archive>
void Fields(Archive& archive, SequenceCommunicator& communicator) {
  archive("name", communicator.name);
  archive("ranks", communicator.ranks);
  archive("id", communicator.id);
  archive("span", communicator.span);
}
/// A step is six numbers in a row: a packet has to hold thousands.
template <class Archive>
void Fields(Archive& archive, SequenceWork& work) {
  archive("communicators", work.communicators);
  archive("calls", work.calls);
  std::vector<std::uint32_t> numbers;
  for (const SequenceStep& step : work.steps)
    numbers.insert(numbers.end(), {step.communicator, step.call, step.stream, step.batch, step.number,
                                   static_cast<std::uint32_t>(step.checked)});
  archive("steps", numbers);
  if (!Archive::kReads) return;
  constexpr std::size_t kEach = 6;
  archive.Demand(numbers.size() % kEach == 0);
  work.steps.clear();
  for (std::size_t i = 0; i < numbers.size(); i += kEach) {
    archive.Demand(numbers[i] < work.communicators.size() && numbers[i + 1] < work.calls.size() &&
                   numbers[i + 2] < numbers.size());
    work.steps.push_back({.communicator = numbers[i],
                          .call = numbers[i + 1],
                          .stream = numbers[i + 2],
                          .batch = numbers[i + 3],
                          .number = numbers[i + 4],
                          .checked = numbers[i + 5] != 0});
  }
}
template <class Archive>
void Fields(Archive& archive, StreamProgress& progress) {
  archive("begun", progress.begun);
  archive("completed", progress.completed);
}
template <class Archive>
void Fields(Archive& archive, SessionSetup& setup) {
  archive("rank", setup.rank);
  archive("nranks", setup.nranks);
  archive("call", setup.call);
  archive("sequence", setup.sequence);
  archive("options", setup.options);
  archive("patience", setup.patience);
}
template <class Archive>
void Fields(Archive& archive, EngineProbe& probe) {
  archive("version", probe.version);
  archive("tests", probe.tests);
  archive("nccl", probe.nccl);
  archive("gpus", probe.gpus);
}

// ---- to the worker ------------------------------------------------------------------------------------------------
template <class Archive>
void Fields(Archive& archive, StartWork& m) {
  archive("engine", m.engine);
  archive("setup", m.setup);
  archive("iterations", m.iterations);
  archive("warm_up", m.warm_up);
  archive("heartbeat", m.heartbeat);
  archive("faults", m.faults);
}
template <class Archive>
void Fields(Archive& archive, StoreValue& m) {
  archive.Bytes("key", m.key);
  archive.Bytes("bytes", m.bytes);
}
template <class Archive>
void Fields(Archive& archive, Proceed& m) {
  archive("iteration", m.iteration);
}
template <class Archive>
void Fields(Archive& archive, AbortWork& m) {
  archive("grace", m.grace);
}
template <class Archive>
void Fields(Archive&, Leave&) {}

// ---- to the supervisor --------------------------------------------------------------------------------------------
template <class Archive>
void Fields(Archive& archive, Hello& m) {
  archive("wire", m.wire);
  archive("host", m.host);
}
template <class Archive>
void Fields(Archive& archive, Began& m) {
  archive("step", m.step);
}
template <class Archive>
void Fields(Archive& archive, Reached& m) {
  archive("step", m.step);
  archive("took", m.took);
}
template <class Archive>
void Fields(Archive& archive, Heartbeat& m) {
  archive("async_error", m.async_error);
  archive("progress", m.progress);
}
template <class Archive>
void Fields(Archive& archive, Descriptor& m) {
  archive("iteration", m.iteration);
  archive("call", m.call);
}
template <class Archive>
void Fields(Archive& archive, StoreSet& m) {
  archive.Bytes("key", m.key);
  archive.Bytes("bytes", m.bytes);
}
template <class Archive>
void Fields(Archive& archive, StoreGet& m) {
  archive.Bytes("key", m.key);
}
template <class Archive>
void Fields(Archive& archive, WorkFailed& m) {
  archive("step", m.step);
  archive("error", m.error);
  archive("wrong_data", m.wrong_data);
}
template <class Archive>
void Fields(Archive& archive, Described& m) {
  archive("lines", m.lines);
  archive("verifies", m.verifies);
}
template <class Archive>
void Fields(Archive& archive, ProbeAnswer& m) {
  archive("found", m.found);
  archive("missing", m.missing);
  archive("hint", m.hint);
}

}  // namespace inquest
