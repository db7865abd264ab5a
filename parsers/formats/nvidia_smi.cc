// nvidia_smi.cc: the table that `nvidia-smi` prints: its GPUs and the processes on them.
// Format:  boxes of `|` and `-`, in three widths (drivers to 530, 535 and 545, from 550) and with the labels of 610;
//          cells are read by their words, never by columns
//            |   3  NVIDIA H100 80GB HBM3          On  |   00000000:5D:00.0 Off |                    0 |
//            | N/A   59C    P0            629W /  700W |   19818MiB /  81559MiB |    100%      Default |
//            |    0   N/A  N/A           41234      C   /usr/bin/python3                      2566MiB |
// Clock:   none; the date above the table holds no mark.
// Not read: MIG instances, fans, compute modes.
#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "core/ascii.h"
#include "parsers/formats.h"
#include "parsers/formats/nccl.h"
#include "parsers/formats/nvidia_gpu.h"

namespace inquest {
namespace {

using std::string_view;

template <class T>
std::optional<T> Number(string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// `59C`, `100%`, `629W`, `19818MiB`: the number, if the unit is there.
template <class T>
std::optional<T> NumberWith(string_view text, string_view unit) {
  if (!text.ends_with(unit)) return std::nullopt;
  return Number<T>(text.substr(0, text.size() - unit.size()));
}

/// What stands between the bars of a row; empty if it is no whole row.
std::vector<string_view> CellsOfRow(string_view line) {
  line = Trim(line);
  std::vector<string_view> cells;
  if (line.size() < 3 || line.front() != '|' || line.back() != '|') return cells;
  line.remove_prefix(1);
  while (!line.empty()) {
    const std::size_t bar = line.find('|');
    cells.push_back(Trim(line.substr(0, bar)));
    line.remove_prefix(bar + 1);
  }
  return cells;
}

/// The word behind `label`, or nothing where nvidia-smi could not tell.
std::string WordBehind(string_view text, string_view label) {
  const std::size_t at = text.find(label);
  if (at == kNowhere) return {};
  const auto words = Words(text.substr(at + label.size(), 64));
  return words.empty() || words[0][0] < '0' || words[0][0] > '9' ? std::string() : std::string(words[0]);
}

/// Row one: `3  NVIDIA H100 80GB HBM3   On | 00000000:5D:00.0 Off | 0`.
std::optional<GpuSnapshot> ReadNameRow(const std::vector<string_view>& cells) {
  static constexpr std::array<string_view, 4> kPersistence = {"On", "Off", "N/A", "ERR!"};
  if (cells.size() != 3) return std::nullopt;
  const auto name = Words(cells[0]), bus = Words(cells[1]);
  if (name.size() < 3 || bus.empty() ||
      std::find(kPersistence.begin(), kPersistence.end(), name.back()) == kPersistence.end())
    return std::nullopt;
  const auto index = Number<int>(name[0]);
  const auto bus_id = bus[0].find(':') != kNowhere ? ParseBusId(bus[0]) : std::nullopt;
  if (!index || *index < 0 || !bus_id) return std::nullopt;
  GpuSnapshot gpu;
  gpu.id.index = *index;
  gpu.name = Trim(cells[0].substr(name[0].size(), cells[0].size() - name[0].size() - name.back().size()));
  gpu.id.bus_id = *bus_id;
  if (name.back() == "On" || name.back() == "Off") gpu.persistence = name.back() == "On";
  gpu.error = std::any_of(cells.begin(), cells.end(), IsBrokenValue);
  return gpu;
}

/// The same GPU with its row two, `N/A 59C P0 629W / 700W | 19818MiB / 81559MiB | 100% Default`, if that is what it is.
std::optional<GpuSnapshot> WithUsage(GpuSnapshot gpu, const std::vector<string_view>& cells) {
  if (cells.size() != 3) return std::nullopt;
  const auto left = Words(cells[0]), memory = Words(cells[1]), right = Words(cells[2]);
  const auto slash = std::find(left.begin(), left.end(), "/");
  if (slash == left.begin() || slash == left.end() || slash + 1 == left.end() || right.empty()) return std::nullopt;
  for (auto word = left.begin(); word != slash; ++word) {
    if (const auto celsius = NumberWith<int>(*word, "C")) gpu.temperature_c = celsius;
    if (word->size() < 4 && word->front() == 'P') gpu.pstate = Number<int>(word->substr(1));
  }
  gpu.power_w = NumberWith<double>(*(slash - 1), "W");
  gpu.power_cap_w = NumberWith<double>(*(slash + 1), "W");
  if (memory.size() == 3 && memory[1] == "/") {
    gpu.memory_used_mib = NumberWith<std::int64_t>(memory[0], "MiB");
    gpu.memory_total_mib = NumberWith<std::int64_t>(memory[2], "MiB");
  }
  gpu.utilization_percent = NumberWith<int>(right[0], "%");
  // A power draw alone fails now and then on a GPU that is well.
  const bool draw_alone = *(slash - 1) == "ERR!" && gpu.power_cap_w && !IsBrokenValue(cells[1]) &&
                          !IsBrokenValue(cells[2]) && std::none_of(left.begin(), slash - 1, IsBrokenValue);
  gpu.error = gpu.error || (!draw_alone && std::any_of(cells.begin(), cells.end(), IsBrokenValue));
  return gpu;
}

/// `0   N/A  N/A   41234      C   /usr/bin/python3   2566MiB`; before driver 450 without the two ids of MIG.
std::optional<GpuProcess> ReadProcessRow(const std::vector<string_view>& cells) {
  static constexpr std::array<string_view, 5> kTypes = {"C", "G", "C+G", "M+C", "M+C+G"};
  const auto is_type = [](string_view word) { return std::find(kTypes.begin(), kTypes.end(), word) != kTypes.end(); };
  if (cells.size() != 1) return std::nullopt;
  const auto words = Words(cells[0]);
  const std::size_t type = words.size() > 6 && is_type(words[4]) ? 4 : 2;
  if (words.size() < type + 3 || !is_type(words[type])) return std::nullopt;
  const auto index = Number<int>(words[0]);
  const auto pid = Number<std::int64_t>(words[type - 1]);
  const auto memory = NumberWith<std::int64_t>(words.back(), "MiB");
  if (!index || *index < 0 || !pid || *pid < 0 || !(memory || words.back() == "N/A")) return std::nullopt;
  const char* const begin = words[type + 1].data();
  const string_view name = Trim(string_view(begin, static_cast<std::size_t>(words.back().data() - begin)));
  return GpuProcess{.id = {.index = *index, .bus_id = {}, .uuid = {}},
                    .pid = *pid,
                    .type = std::string(words[type]),
                    .name = std::string(name),
                    .memory_mib = memory};
}

class NvidiaSmiParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    const string_view line = Trim(record.text);
    if (!line.starts_with('|')) return false;
    if (line.starts_with("| NVIDIA-SMI ")) return Begin(line, record, out);
    if (line.find(" Disp.A ") != kNowhere && line.find("Bus-Id") != kNowhere) return Enter(Section::kGpus, out);
    if (line.starts_with("| Processes:")) return Enter(Section::kProcesses, out);
    if (line.starts_with("| MIG devices:")) return Enter(Section::kMig, out);
    const auto cells = CellsOfRow(line);
    switch (section_) {
      case Section::kGpus:
        return ConsumeGpu(record, cells, out);
      case Section::kProcesses:
        return ConsumeProcess(record, cells, out);
      case Section::kNone:
      case Section::kMig:
        return false;
    }
    return false;
  }
  void Finish(EventSink& out) override { report_.Flush(out); }

 private:
  enum class Section : std::uint8_t { kNone, kGpus, kMig, kProcesses };

  bool Begin(string_view line, const Record& record, EventSink& out) {
    driver_ = WordBehind(line, line.find("KMD Version: ") != kNowhere ? "KMD Version: " : "Driver Version: ");
    cuda_ = WordBehind(line, line.find("CUDA UMD Version: ") != kNowhere ? "CUDA UMD Version: " : "CUDA Version: ");
    Enter(Section::kNone, out);
    report_.Describe("driver_version", driver_, record, out);
    report_.Describe("cuda_version", cuda_, record, out);
    return true;
  }
  bool Enter(Section section, EventSink& out) {
    report_.Flush(out);
    section_ = section;
    return true;
  }

  bool ConsumeGpu(const Record& record, const std::vector<string_view>& cells, EventSink& out) {
    if (auto gpu = ReadNameRow(cells)) {
      report_.Begin(record, out);
      gpu->driver = driver_;
      gpu->cuda = cuda_;
      // A name that the table cut is not the product's.
      if (!IsBrokenValue(gpu->name) && !gpu->name.ends_with("...")) report_.Describe("name", gpu->name, record, out);
      report_.gpu() = std::move(*gpu);
      if (Number<std::int64_t>(cells[2]).value_or(0) > 0)
        report_.Add("ecc.errors.uncorrected.volatile.total", std::string(cells[2]), record);
      has_usage_ = false;
      return true;
    }
    if (!report_.open()) return false;
    GpuSnapshot& gpu = report_.gpu();
    const bool was_broken = gpu.error;
    if (auto used = has_usage_ ? std::nullopt : WithUsage(gpu, cells)) {
      gpu = std::move(*used);
      has_usage_ = true;
    } else if (has_usage_ && cells.size() == 3 && cells[0].empty() && cells[1].empty()) {
      gpu.mig = cells[2] == "Enabled";
      gpu.error = gpu.error || IsBrokenValue(cells[2]);
    } else {
      return false;
    }
    // The row to cite is the first one that shows the fault.
    if (gpu.error && !was_broken) report_.Cite(record);
    return true;
  }

  bool ConsumeProcess(const Record& record, const std::vector<string_view>& cells, EventSink& out) {
    if (cells.size() == 1 && cells[0] == "No running processes found") return true;
    auto process = ReadProcessRow(cells);
    if (!process) return false;
    out.Add(EventFrom(record, std::move(*process)));
    return true;
  }

  Section section_ = Section::kNone;
  std::string driver_, cuda_;
  GpuReport report_;
  bool has_usage_ = false;
};

// A GPU's first row ends in its `Off |` or `On |` behind the function number; the others in a unit, a mode or a fault.
constexpr string_view kNvidiaSmiMarks[] = {"| NVIDIA-SMI ",
                                           " Disp.A ",
                                           "| Processes:",
                                           "| MIG devices:",
                                           ".0 Off |",
                                           ".0  On |",
                                           ".0 N/A |",
                                           "MiB |",
                                           "Default |",
                                           "Process |",
                                           "Prohibited |",
                                           "Enabled |",
                                           "ERR! |",
                                           "ERR!|",
                                           "Unknown Error",
                                           "GPU is lost",
                                           "No running processes found",
                                           " N/A |"};

}  // namespace

extern const Format kNvidiaSmi{.name = "nvidia-smi",
                               .framing = Framing::kLines,
                               .component = Component::kSmi,
                               .marks = kNvidiaSmiMarks,
                               .make = &Make<NvidiaSmiParser>};

}  // namespace inquest
