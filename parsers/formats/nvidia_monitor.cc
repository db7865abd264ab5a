// nvidia_monitor.cc: the columns of `nvidia-smi dmon` and `pmon`.
// Format:  a row of names that begins with #, one of units, then a row a GPU or a process each second; the head returns
// now
//          and then, and -o puts date and time in front
//            # gpu    pwr  gtemp  mtemp     sm    mem    enc    dec    jpg    ofa   mclk   pclk
//            # Idx      W      C      C      %      %      %      %      %      %    MHz    MHz
//                0    631     63     57    100     10      0      0      0      0   2619   1980
//            # gpu         pid   type     sm    mem    enc    dec    jpg    ofa    command
// Clock:   the columns of -o, not read: the last row of a GPU counts.
// Not read: encoders, clocks, PCIe traffic, correctable errors; of pmon the loads.
#include <algorithm>

#include "parsers/formats.h"
#include "parsers/formats/nvidia_gpu.h"

namespace inquest {
namespace {

using std::string_view;

constexpr std::size_t kMostWords = 64;

class NvidiaMonitorParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    const string_view line = record.text.substr(0, 1024);
    const std::size_t first = line.find_first_not_of(" \t");
    if (first == string_view::npos) return false;
    if (line[first] == '#') return ConsumeHead(line.substr(first + 1));
    return !columns_.empty() && ConsumeRow(Words(line, kMostWords), record, out);
  }

 private:
  bool ConsumeHead(string_view line) {
    const auto words = Words(line, kMostWords);
    const auto has = [&](string_view name) { return std::find(words.begin(), words.end(), name) != words.end(); };
    if (has("Idx")) return !columns_.empty();
    const bool ours = has("gpu") && (has("pwr") || has("sm") || has("fb") || has("pclk") || has("pviol") ||
                                     has("dbecc") || has("pid") || has("rxpci"));
    if (ours) columns_.assign(words.begin(), words.end());
    return ours;
  }

  bool ConsumeRow(const std::vector<string_view>& words, const Record& record, EventSink& out) {
    const bool of_process = std::find(columns_.begin(), columns_.end(), "pid") != columns_.end();
    if (of_process ? words.size() < columns_.size() : words.size() != columns_.size()) return false;
    GpuProcess process;
    std::optional<std::int64_t> pid;
    GpuSnapshot gpu;
    bool double_bit = false, too_hot = false;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::string& name = columns_[i];
      const auto number = GpuNumber(words[i]);
      if (name == "type") process.type = words[i];
      if (name == "command") process.name = words[i];
      if (!number || *number < 0 || *number > 1e10) continue;
      const auto whole = static_cast<std::int64_t>(*number);
      if (name == "pid") pid = whole;
      if (*number > 1e9) continue;
      const int value = static_cast<int>(*number);
      if (name == "gpu") gpu.id.index = value;
      if (name == "pwr") gpu.power_w = *number;
      if (name == "gtemp") gpu.temperature_c = value;
      if (name == "sm") gpu.utilization_percent = value;
      if (name == "fb") gpu.memory_used_mib = whole;
      double_bit = double_bit || (name == "dbecc" && value > 0);
      too_hot = too_hot || (name == "tviol" && value > 0);
    }
    if (!gpu.id.index) return false;
    if (of_process) {
      if (!pid) return true;  // a GPU without a process
      process.pid = *pid;
      process.id = gpu.id;
      out.Add(EventFrom(record, std::move(process)));
      return true;
    }
    if (double_bit) out.Add(EventFrom(record, GpuCondition{gpu.id, "ecc.errors.uncorrected.volatile.total", "dbecc"}));
    if (too_hot) out.Add(EventFrom(record, GpuCondition{gpu.id, "violations.thermal", "1"}));
    out.Add(EventFrom(record, std::move(gpu)));
    return true;
  }

  std::vector<std::string> columns_;
};

constexpr string_view kNvidiaMonitorMarks[] = {"# gpu  ",     " gpu    pwr ",      " gpu   pwr ",     " gpu     sm ",
                                               " gpu    sm ", " gpu         pid ", " gpu        pid "};

}  // namespace

extern const Format kNvidiaMonitor{.name = "nvidia-smi-dmon",
                                   .framing = Framing::kLines,
                                   .component = Component::kSmi,
                                   .marks = kNvidiaMonitorMarks,
                                   .follow = kMostFollow,
                                   .make = &Make<NvidiaMonitorParser>};

}  // namespace inquest
