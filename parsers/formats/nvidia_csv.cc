// nvidia_csv.cc: rows of `nvidia-smi --query-gpu`, --query-compute-apps, --query-remapped-rows and
// --query-retired-pages. Format:  a header of property names with their units, in the order that was asked for, then a
// row a GPU or a process;
//          separated by `, `, never quoted
//            timestamp, index, uuid, pci.bus_id, remapped_rows.pending, memory.used [MiB]
//            2031/04/05 06:07:08.123, 3, GPU-0f1e2d3c-..., 00000000:5D:00.0, No, 19818 MiB
//            pid, process_name, used_gpu_memory [MiB]
// Clock:   the column `timestamp`, local time; it says when one looked.
// Not read: rows without a header (noheader), one column alone, accounted applications, what has ended.
#include <algorithm>

#include "core/ascii.h"
#include "parsers/formats.h"
#include "parsers/formats/nccl.h"
#include "parsers/formats/nvidia_gpu.h"

namespace inquest {
namespace {

using std::string_view;

constexpr std::size_t kMostColumns = 256, kLongestName = 64;

std::vector<string_view> Cells(string_view line) {
  std::vector<string_view> cells;
  for (bool more = true; more && cells.size() <= kMostColumns;) {
    const std::size_t comma = line.find(',');
    more = comma != string_view::npos;
    cells.push_back(Trim(line.substr(0, comma)));
    if (more) line.remove_prefix(comma + 1);
  }
  return cells;
}

bool IsPropertyName(string_view name) {
  const auto fits = [](char c) { return IsWordChar(c) || c == '.'; };
  return !name.empty() && name.size() <= kLongestName && name.front() >= 'a' && name.front() <= 'z' &&
         std::all_of(name.begin(), name.end(), fits);
}

struct Column {
  std::string name;
  std::optional<GpuName> property;
};

/// The columns of a header; empty where the line is none.
std::vector<Column> ReadHeader(string_view line) {
  std::vector<Column> columns;
  const auto cells = Cells(line);
  if (cells.size() < 2 || cells.size() > kMostColumns) return columns;
  for (const string_view cell : cells) {
    const std::size_t unit = cell.find(" [");
    const string_view name = cell.substr(0, unit);
    if (!IsPropertyName(name) || (unit != string_view::npos && !cell.ends_with(']'))) return {};
    columns.push_back({std::string(name), GpuNameOfQuery(name)});
  }
  const auto known = [](const Column& column) {
    return column.property || column.name == "pid" || column.name == "process_name" ||
           column.name.starts_with("retired_pages.");
  };
  return std::count_if(columns.begin(), columns.end(), known) >= 2 ||
                 std::any_of(columns.begin(), columns.end(),
                             [](const Column& c) { return c.name.find('.') != std::string::npos && c.property; })
             ? columns
             : std::vector<Column>();
}

class NvidiaCsvParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    if (auto columns = ReadHeader(record.text); !columns.empty()) {
      columns_ = std::move(columns);
      return true;
    }
    const auto cells = Cells(record.text);
    if (columns_.empty() || cells.size() != columns_.size()) return false;
    if (Has("pid")) return ConsumeProcess(cells, record, out);
    report_.Begin(record, out);
    bool said = false;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      if (!columns_[i].property) continue;
      report_.Set(*columns_[i].property, cells[i], record);
      said = said || Fits(*columns_[i].property, cells[i]);
    }
    if (const auto address = Cell("retired_pages.address", cells), cause = Cell("retired_pages.cause", cells);
        address && !IsUnavailable(*address) && cause == "Double Bit ECC")
      report_.Add("retired_pages.cause", std::string(*cause), record);
    if (!said) report_.Drop();
    report_.Flush(out);
    return said;
  }

 private:
  bool Has(string_view name) const {
    return std::any_of(columns_.begin(), columns_.end(), [&](const Column& column) { return column.name == name; });
  }
  std::optional<string_view> Cell(string_view name, const std::vector<string_view>& cells) const {
    for (std::size_t i = 0; i < cells.size(); ++i)
      if (columns_[i].name == name) return cells[i];
    return std::nullopt;
  }
  /// Whether a cell is of its column's kind: a line of other text has as many commas by chance.
  static bool Fits(const GpuName& name, string_view value) {
    switch (name.property) {
      case GpuProperty::kUuid:
        return value.starts_with("GPU-") || value.starts_with("MIG-");
      case GpuProperty::kBusId:
        return ParseBusId(value).has_value();
      case GpuProperty::kIndex:
      case GpuProperty::kName:
      case GpuProperty::kTimestamp:
        return false;
      case GpuProperty::kCondition:
        return value == "Yes" || value == "No" || value == "Active" || value == "Not Active" || GpuNumber(value) ||
               IsBrokenValue(value);
      case GpuProperty::kDescribed:
        return name.query == "vbios_version" && std::count(value.begin(), value.end(), '.') == 4;
      default:
        return GpuNumber(value) || IsBrokenValue(value) || (value.size() == 2 && value.front() == 'P');
    }
  }

  bool ConsumeProcess(const std::vector<string_view>& cells, const Record& record, EventSink& out) {
    GpuProcess process{.id = {}, .type = "C", .name = {}, .memory_mib = {}};
    bool has_pid = false;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string& name = columns_[i].name;
      const auto number = GpuNumber(cells[i]);
      if (name == "pid" && number && *number >= 0 && *number < 1e10) {
        process.pid = static_cast<std::int64_t>(*number);
        has_pid = true;
      }
      if (name == "process_name" || name == "name") process.name = cells[i];
      if (name == "gpu_uuid") process.id.uuid = cells[i];
      if (name == "gpu_bus_id") process.id.bus_id = ParseBusId(cells[i]).value_or(std::string());
      if ((name == "used_gpu_memory" || name == "used_memory") && number && *number >= 0 && *number < 1e9)
        process.memory_mib = static_cast<std::int64_t>(*number);
      if (name == "max_memory_usage") return true;  // of accounting: processes that are gone
    }
    if (!has_pid) return false;
    out.Add(EventFrom(record, std::move(process)));
    return true;
  }

  std::vector<Column> columns_;
  GpuReport report_;
};

constexpr string_view kNvidiaCsvMarks[] = {"pci.bus_id",
                                           "gpu_bus_id",
                                           "gpu_uuid",
                                           "index, uuid",
                                           "index, name",
                                           "name, uuid",
                                           "utilization.gpu",
                                           "memory.used",
                                           "temperature.gpu",
                                           "ecc.errors.uncorrected",
                                           "remapped_rows.",
                                           "retired_pages.",
                                           "clocks_event_reasons",
                                           "clocks_throttle_reasons",
                                           "pcie.link.",
                                           "power.draw",
                                           "used_gpu_memory",
                                           "used_memory [",
                                           "fabric.state",
                                           "gpu_recovery_action",
                                           "mig.mode.current",
                                           ", GPU-",
                                           ", 00000000:"};

}  // namespace

extern const Format kNvidiaCsv{.name = "nvidia-smi-csv",
                               .framing = Framing::kLines,
                               .component = Component::kSmi,
                               .marks = kNvidiaCsvMarks,
                               .follow = kMostFollow,
                               .make = &Make<NvidiaCsvParser>};

}  // namespace inquest
