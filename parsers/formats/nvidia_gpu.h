// What the readers of nvidia-smi's outputs share: its properties by their names, the words of a line, and one GPU's
// values gathered to events.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/event_sink.h"

namespace inquest {

/// What is read of a GPU. Those that no detector asks for are not here.
enum class GpuProperty : std::uint8_t {
  kIndex,
  kUuid,
  kBusId,
  kName,
  kTimestamp,
  kDriver,
  kCuda,
  kAttached,
  kPersistence,
  kMig,
  kPstate,
  kTemperature,
  kPower,
  kPowerCap,
  kMemoryUsed,
  kMemoryTotal,
  kUtilization,
  kPcieGen,
  kPcieGenMax,
  kPcieWidth,
  kPcieWidthMax,
  kFabricState,
  kThrottleMask,
  kCondition,  ///< of no interest unless it says what a GPU that is well does not have
  kDescribed,  ///< for the record alone
};

/// A property as one of nvidia-smi's forms names it.
struct GpuName {
  GpuProperty property = GpuProperty::kCondition;
  std::string_view query;      ///< its name in --query-gpu
  std::string_view described;  ///< by what name it stands in the record; empty: it does not
};
/// `pci.bus_id`, `clocks_throttle_reasons.hw_slowdown`; without the unit.
std::optional<GpuName> GpuNameOfQuery(std::string_view name);
/// The key of a line of -q, below the last line that was a title.
std::optional<GpuName> GpuNameOfText(std::string_view section, std::string_view key);
/// The tag of an element of -x, in its parent.
std::optional<GpuName> GpuNameOfXml(std::string_view parent, std::string_view tag);

/// The number that is the whole of a text, but for a unit: `59 C`, `81559 MiB`, `16x`, `100 %`, `629.45 W`.
std::optional<double> GpuNumber(std::string_view text);
/// `N/A`, `[N/A]`, `[Not Supported]` and their like: nothing was said.
bool IsUnavailable(std::string_view value);
/// The GPU could not be asked: ERR!, "Unknown Error", "GPU is lost", "requires reset".
bool IsBrokenValue(std::string_view value);

/// Without blanks at its ends.
std::string_view Trim(std::string_view text);
/// What stands between blanks, the first `most` of it.
std::vector<std::string_view> Words(std::string_view text, std::size_t most = std::string_view::npos);

// One GPU's values, in whatever order a form prints them. Begin and Flush emit the one before: its conditions, each at
// the line that said it, and its snapshot at the line that began it, or at the first that showed a fault.
class GpuReport {
 public:
  void Begin(const Record& record, EventSink& out);
  void Set(const GpuName& name, std::string_view value, const Record& record);
  /// What the line says for the record, of the GPU that is open, or, where none is, of the host.
  void Describe(std::string_view property, std::string_view value, const Record& record, EventSink& out);
  /// A condition that has no value of its own in the report.
  void Add(std::string_view property, std::string value, const Record& record);
  void Flush(EventSink& out);
  /// Forgets the GPU that was begun.
  void Drop();
  /// The line at which the snapshot stands from now on.
  void Cite(const Record& record) { event_ = EventFrom(record, LogMessage{}); }
  bool open() const { return gpu_.has_value(); }
  GpuSnapshot& gpu() { return *gpu_; }

  /// What stands above the first GPU and holds for all of them.
  std::string driver, cuda;
  std::optional<int> attached;
  std::optional<Timestamp> taken;

 private:
  void SetCondition(std::string_view query, std::string_view value, const Record& record);
  void Hold(std::string_view property, std::string_view value, const Record& record);
  void ComparePcie(const Record& record);

  std::optional<GpuSnapshot> gpu_;
  Event event_;
  std::vector<Event> conditions_, described_;
  std::set<std::string> seen_;  ///< GPUs of this stream; an output that invents them must not cost memory for each
};

}  // namespace inquest
