// nvidia_links.cc: how GPUs are linked: `nvidia-smi topo -m` and `-p2p`, `nvlink -s` and `-e`, and the list of `-L`.
// Format:  a matrix below a row of names, tabs or spaces between; or a GPU's head and a line a link below it
//            	GPU0	GPU1	NIC0	CPU Affinity	NUMA Affinity
//            GPU0	 X 	NV18	PIX	0-55,112-167	0
//            GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-0f1e2d3c-...)
//            	 Link 3: <inactive>
//            	 Link 0: Replay Errors: 0        Links 0-5: No errors
// Clock:   none.
// Not read: NICs, affinities, the legend, throughput counters (nvlink -gt), remote ends (nvlink -p).
#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/nvidia_gpu.h"

namespace inquest {
namespace {

using std::string_view;

constexpr std::size_t kMostPeers = 64;

/// 3 of `GPU3`.
std::optional<int> GpuOf(string_view word) {
  int index = 0;
  if (!word.starts_with("GPU") || word.size() < 4 || word.size() > 6) return std::nullopt;
  const auto [end, error] = std::from_chars(word.data() + 3, word.data() + word.size(), index);
  return error == std::errc() && end == word.data() + word.size() ? std::optional(index) : std::nullopt;
}

bool IsCell(string_view word) {
  static constexpr string_view kCells[] = {"X",  "SYS", "NODE", "PHB", "PXB", "PIX", "OK",
                                           "NS", "CNS", "GNS",  "TNS", "DR",  "U",   "N/A"};
  if (std::find(std::begin(kCells), std::end(kCells), word) != std::end(kCells)) return true;
  return word.starts_with("NV") && word.size() > 2 && word.size() < 5 && word[2] >= '0' && word[2] <= '9';
}

class NvidiaLinksParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    const string_view line = record.text.substr(0, 4096);
    return ConsumeHead(line, record, out) || ConsumeLink(line, record) || ConsumeMatrix(line, record, out);
  }
  void Finish(EventSink& out) override { EndGpu(out); }

 private:
  void EndGpu(EventSink& out) {
    if (!report_.open()) return;
    if (active_ + inactive_ > 0) {
      report_.gpu().nvlinks_active = active_;
      report_.gpu().nvlinks_inactive = inactive_;
    }
    report_.Flush(out);
    active_ = inactive_ = 0;
  }

  bool ConsumeHead(string_view line, const Record& record, EventSink& out) {
    static const Pattern kHead(R"(^\s*GPU (\d{1,3}): (.{1,80}) \(UUID: (GPU-[0-9a-f-]{1,40})\)\s*$)");
    const auto match = line.find("(UUID: GPU-") == string_view::npos ? std::nullopt : kHead.Search(line);
    if (!match) return false;
    EndGpu(out);
    report_.Begin(record, out);
    report_.gpu().id.index = static_cast<int>(match->number(1).value_or(0));
    report_.gpu().name = match->text(2);
    report_.gpu().id.uuid = match->text(3);
    report_.Describe("name", match->text(2), record, out);
    report_.Describe("uuid", match->text(3), record, out);
    return true;
  }

  bool ConsumeLink(string_view line, const Record& record) {
    static const Pattern kLink(
        R"(^\s*Links? (\d{1,3})(?:-\d{1,3})?: (?:([\d.]+) GB/s|(<inactive>)|([A-Z][\w ]{1,40}): (\d{1,18})|No errors)\s*$)");
    if (!report_.open() || line.find("Link") == string_view::npos) return false;
    const auto match = kLink.Search(line);
    if (!match) return false;
    active_ += match->has(2) ? 1 : 0;
    inactive_ += match->has(3) ? 1 : 0;
    if (match->has(3)) report_.Add("nvlink.state", fmt::format("Link {} inactive", match->text(1)), record);
    if (match->number(5).value_or(0) > 0)
      report_.Add("nvlink.errors", fmt::format("Link {}: {} {}", match->text(1), match->text(4), match->text(5)),
                  record);
    return true;
  }

  bool ConsumeMatrix(string_view line, const Record& record, EventSink& out) {
    const auto words = Words(line, kMostPeers + 1);
    const auto first = words.empty() ? std::nullopt : GpuOf(words[0]);
    if (!first) return false;
    if (words.size() > 1 && GpuOf(words[1])) {
      EndGpu(out);
      columns_.clear();
      for (const string_view word : words) {
        const auto index = GpuOf(word);
        if (!index) break;
        columns_.push_back(*index);
      }
      return true;
    }
    if (columns_.empty() || words.size() <= columns_.size()) return false;
    GpuTopologyRow row{.index = *first, .peers = {}};
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      if (!IsCell(words[i + 1])) return false;
      if (columns_[i] != *first) row.peers.emplace_back(columns_[i], std::string(words[i + 1]));
    }
    out.Add(EventFrom(record, std::move(row)));
    return true;
  }

  GpuReport report_;
  int active_ = 0, inactive_ = 0;
  std::vector<int> columns_;
};

constexpr string_view kNvidiaLinksMarks[] = {
    "GPU0\tGPU1",  "GPU0    GPU1", "GPU0   GPU1",      "GPU0  GPU1",         "GPU0 GPU1",
    "(UUID: GPU-", "<inactive>",   " Replay Errors: ", " Recovery Errors: ", " CRC Errors: "};

}  // namespace

extern const Format kNvidiaLinks{.name = "nvidia-smi-links",
                                 .framing = Framing::kLines,
                                 .component = Component::kSmi,
                                 .marks = kNvidiaLinksMarks,
                                 .follow = 40,
                                 .make = &Make<NvidiaLinksParser>};

}  // namespace inquest
