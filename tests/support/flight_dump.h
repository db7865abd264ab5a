// Dumps of PyTorch's Flight Recorder, written as its own pickler writes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace inquest {

/// An entry of a dump; the keys of version 2.4. What a version does not have is left out of it.
struct DumpEntry {
  std::uint64_t record = 0;
  std::string group = "0", desc = "default_pg";
  std::int64_t seq = 0, p2p_seq = 0, op_id = 0;
  std::string name = "nccl:all_reduce";
  std::int64_t created_ns = 1933040000000000000;
  std::vector<std::vector<std::int64_t>> inputs = {{1048576}}, outputs = {{1048576}};
  std::string dtype = "Float";
  std::string state = "completed";
  bool started = false;  ///< the recorder was told when it started
  bool retired = true, is_p2p = false;
  std::int64_t timeout_ms = 600000;
  std::string function = "train_step", file = "/workspace/train.py";
  int line = 88;
  int nested = 0;  ///< modules around it, each of three frames
};

struct DumpGroup {
  std::string name, desc;
  std::vector<int> ranks;
};

/// How far a group came: the numbers of its last collectives; -1: none.
struct DumpProgress {
  std::int64_t enqueued = -1, completed = -1;
};

struct FlightDump {
  std::string version = "2.4";  ///< one of 1.1, 1.4, 1.5, 2.1, 2.3, 2.4, 2.7, 2.10
  std::vector<DumpGroup> groups;
  std::vector<DumpEntry> entries;
  std::vector<DumpProgress> progress;  ///< of each group, as counted before the ring lost entries; empty: as they say
  bool frames = true;
};

std::vector<DumpProgress> ProgressOf(const FlightDump& dump);

/// Protocol 2, in the opcodes of torch/csrc/jit/serialization/pickler.cpp: texts are kept in the memo by value, the
/// dictionaries of frames because entries share them.
std::string PickleOf(const FlightDump& dump);
/// What dump_json of the same writes: no frames, 0 for a time that is not known.
std::string JsonOf(const FlightDump& dump);

}  // namespace inquest
