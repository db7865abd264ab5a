// A job whose ranks make calls on their groups, run until nothing goes on: what their Flight Recorders then hold.
#pragma once

#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/flight_dump.h"

namespace inquest {

/// One call of one rank. Of a batch, the sends and receives that are launched as one.
struct RecordedStep {
  std::string group = "0";
  std::string op = "all_reduce";
  std::vector<std::vector<std::int64_t>> inputs = {{1048576}}, outputs = {{1048576}};
  std::string dtype = "Float";
  std::string function = "train_step";
  int line = 88;
  int nested = 0;                     ///< modules around it
  int peer = -1;                      ///< global rank, of `send` and `recv`
  std::vector<RecordedStep> batch{};  ///< then op is `coalesced`
};

// Each rank makes its calls in order, and its device runs them in order: a collective ends once all members are at it
// with equal calls, a send once its receive is there. The host goes on until so many calls wait on the device.
class RecordedJob {
 public:
  explicit RecordedJob(int ranks);
  void AddGroup(const std::string& name, const std::string& desc, std::vector<int> ranks);
  /// The call, on all members of its group.
  void All(const RecordedStep& step);
  void On(int rank, const RecordedStep& step);
  /// Entries that each recorder holds, and calls that a host may be ahead of its device.
  void ring(std::size_t entries) { ring_ = entries; }
  void ahead(std::size_t calls) { ahead_ = calls; }
  void version(const std::string& version) { version_ = version; }
  /// As 2.4 wrote them: a block of sends and receives takes a number of the group's collectives.
  void blocks_take_numbers() { blocks_take_numbers_ = true; }
  /// No watchdog gave up yet: the dumps were asked for.
  void running() { gave_up_ = false; }
  std::map<int, FlightDump> Run();

 private:
  struct Device;
  const DumpGroup& GroupOf(const std::string& name) const;
  bool Ends(const std::vector<Device>& devices, int rank) const;

  int ranks_;
  std::vector<DumpGroup> groups_;
  std::vector<std::vector<RecordedStep>> programs_;
  std::size_t ring_ = 2000, ahead_ = 3;
  std::string version_ = "2.4";
  bool gave_up_ = true, blocks_take_numbers_ = false;
};

/// Jobs by the name of what befell them: those of the corpus, and `healthy-N-M`, N ranks of M calls, for measuring.
/// Empty: there is no such job.
std::map<int, FlightDump> RecordedScenario(const std::string& name);
std::vector<std::string> RecordedScenarios();

}  // namespace inquest
