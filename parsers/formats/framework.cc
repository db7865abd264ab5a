// framework.cc: what training programs say of themselves: which rank uses which device, and how many there are.
// Format:  one line a fact, but for the lists of Accelerate, torchrun's launch config and nccl-tests
//            Process rank: 0, device: cuda:0, n_gpu: 1              (Transformers, LLaMA-Factory)
//            LOCAL_RANK: 0 - CUDA_VISIBLE_DEVICES: [0,1]            (Lightning)
//            #  Rank  0 Group  0 Pid  4711 on node017 device  0 [0x06] NVIDIA A100      (nccl-tests)
//            | num_processes         | 4                            (llm.c)
// Clock:   none.        Not read: the size of any group but the whole job; WORLD_SIZE, which counts pods in some jobs.
#include <algorithm>
#include <string>

#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/messages.h"

namespace inquest {
namespace {

std::optional<int> SizeOf(const Pattern::Match& match, std::size_t group) {
  constexpr std::int64_t kLargest = 1 << 24;
  const auto size = match.number(group);
  if (!size || *size < 1 || *size > kLargest) return std::nullopt;
  return static_cast<int>(*size);
}

std::optional<int> DeviceOf(const Pattern::Match& match, std::size_t group) {
  const auto device = match.number(group);
  if (!device || *device > 0xffff) return std::nullopt;
  return static_cast<int>(*device);
}

void SetRank(Event& event, std::optional<GlobalRank> rank) {
  if (rank) event.origin.rank = Known<GlobalRank>{*rank, Basis::kObserved, {}};
}

bool IsGroupWord(std::string_view word) {
  static constexpr std::string_view kGroups[] = {"tp",       "pp",   "dp",      "cp",      "ep",     "sp",    "tensor",
                                                 "pipeline", "data", "model",   "context", "expert", "group", "local",
                                                 "node",     "role", "replica", "shard",   "mesh"};
  return word.find("parallel") != std::string_view::npos ||
         std::find(std::begin(kGroups), std::end(kGroups), word) != std::end(kGroups);
}

// `data_parallel_world_size` and its like are sizes of groups.
bool NamesGroup(std::string_view words) {
  while (!words.empty()) {
    const std::size_t end = std::min(words.find_first_of(" _-"), words.size());
    if (IsGroupWord(words.substr(0, end))) return true;
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return false;
}

/// `(rank/world-size) 0/2`, `(rank: 0/2)`.
const Pattern& OfRank() {
  static const Pattern kOfRank(R"(\((?:rank/world[-_ ]?size\)|rank:) (\d+)/(\d+)\b)");
  return kOfRank;
}

std::optional<int> ReadWorldSize(std::string_view text) {
  static const Pattern kSize(
      R"((?:^|[^\w-])((?:\w+[ _-]){0,3})world[_ ]size["']?\s*(?:=|:|\.{3,}|\|)\s*(\d+)(?:[^\w.]|\.\s|\.?$))");
  static const Pattern kMember(R"(GLOBAL_RANK: \d+, MEMBER: \d+/(\d+))");
  static const Pattern kRegistered(R"(processes registered\. Starting with (\d+) processes)");
  static const Pattern kCount(R"((?:^\| num_processes\s+\|\s*|Number of processes: |^Num processes: )(\d+)\b)");
  if (const auto match = kSize.Search(text); match && !NamesGroup(match->text(1))) return SizeOf(*match, 2);
  if (const auto match = OfRank().Search(text)) return SizeOf(*match, 2);
  for (const Pattern* pattern : {&kMember, &kRegistered, &kCount}) {
    if (const auto match = pattern->Search(text)) return SizeOf(*match, 1);
  }
  return std::nullopt;
}

// Who prints it: `GLOBAL_RANK: 1`, or vLLM's `rank=8 local_rank=0` beside the size.
bool AddWorldSize(const Record& record, EventSink& out) {
  static const Pattern kLightning(R"(GLOBAL_RANK: (\d+))");
  static const Pattern kBeside(R"(\brank=(\d+) local_rank=(\d+))");
  const auto size = ReadWorldSize(record.text);
  if (!size) return false;
  Event event = EventFrom(record, WorldSize{*size});
  if (const auto match = kLightning.Search(record.text)) SetRank(event, RankOf<GlobalRank>(*match, 1));
  if (const auto match = OfRank().Search(record.text)) SetRank(event, RankOf<GlobalRank>(*match, 1));
  if (const auto match = kBeside.Search(record.text)) {
    SetRank(event, RankOf<GlobalRank>(*match, 1));
    event.origin.local_rank = RankOf<LocalRank>(*match, 2);
  }
  out.Add(std::move(event));
  return true;
}

// A rank of -1, as Transformers prints without a launcher, is none.
bool AddDevice(const Record& record, EventSink& out) {
  static const Pattern kProcess(R"(Process rank: (-?\d+), (?:world size: \d+, )?device: cuda:(\d+)\b)");
  static const Pattern kInit(R"(\| distributed init \(rank (\d+)\): \S+, gpu (\d+)\b)");
  static const Pattern kLightning(R"(LOCAL_RANK: (\d+) - CUDA_VISIBLE_DEVICES: \[)");
  auto match = kProcess.Search(record.text);
  if (!match) match = kInit.Search(record.text);
  if (match) {
    const auto device = DeviceOf(*match, 2);
    if (!device) return false;
    const auto rank = RankOf<GlobalRank>(*match, 1);
    Event event = EventFrom(record, DeviceReported{rank, *device});
    SetRank(event, rank);
    out.Add(std::move(event));
    return true;
  }
  match = kLightning.Search(record.text);
  if (!match) return false;
  const auto local = RankOf<LocalRank>(*match, 1);
  if (!local) return false;
  // The list holds physical devices; the process's own ordinal is its place in it.
  Event event = EventFrom(record, DeviceReported{{}, local->value});
  event.origin.local_rank = local;
  out.Add(std::move(event));
  return true;
}

class FrameworkParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    const bool device = AddDevice(record, out);
    const bool size = AddWorldSize(record, out);
    return device || size || ConsumeNcclTests(record, out) || ConsumeAccelerate(record, out) ||
           ConsumeLaunchConfig(record, out);
  }

 private:
  // One process prints the row of every rank, then the head of its results.
  bool ConsumeNcclTests(const Record& record, EventSink& out) {
    static const Pattern kRow(R"(^#\s+Rank\s+(\d+)(?: Group\s+\d+)? Pid\s+(\d+) on\s+(\S+) device\s+(\d+) \[)");
    static const Pattern kResults(R"(^#\s+out-of-place\s+in-place)");
    if (kResults.Matches(record.text)) {
      if (tested_ranks_ > 0) out.Add(EventFrom(record, WorldSize{tested_ranks_}));
      tested_ranks_ = 0;
      return true;
    }
    const auto row = kRow.Search(record.text);
    if (!row) return record.text.starts_with("# nThread ");
    const auto rank = RankOf<GlobalRank>(*row, 1);
    const auto device = DeviceOf(*row, 4);
    if (!rank || !device) return true;
    tested_ranks_ = std::max(tested_ranks_, rank->value + 1);
    Event event = EventFrom(record, DeviceReported{rank, *device});
    SetRank(event, rank);
    event.origin.pid = row->number(2);
    event.origin.host = Known<std::string>{std::string(row->text(3)), Basis::kObserved, {}};
    out.Add(std::move(event));
    return true;
  }

  // PartialState as Accelerate prints it: Num processes, Process index, Local process index, Device.
  bool ConsumeAccelerate(const Record& record, EventSink& out) {
    static const Pattern kIndex(R"(^Process index: (\d+))");
    static const Pattern kLocal(R"(^Local process index: \d+)");
    static const Pattern kDevice(R"(^Device: cuda:(\d+))");
    if (const auto match = kIndex.Search(record.text)) {
      process_index_ = RankOf<GlobalRank>(*match, 1);
      return true;
    }
    if (const auto match = kDevice.Search(record.text); match && process_index_ && DeviceOf(*match, 1)) {
      Event event = EventFrom(record, DeviceReported{process_index_, *DeviceOf(*match, 1)});
      SetRank(event, process_index_);
      out.Add(std::move(event));
      process_index_.reset();
      return true;
    }
    return kLocal.Matches(record.text);
  }

  // `min_nodes : 2`, `max_nodes : 2`, `nproc_per_node : 8`: a size only where the number of nodes is fixed.
  bool ConsumeLaunchConfig(const Record& record, EventSink& out) {
    static const Pattern kField(R"(^\s*(min_nodes|max_nodes|nproc_per_node)\s+: (\d{1,6})\s*$)");
    const auto field = kField.Search(record.text);
    if (!field) return false;
    const auto number = field->number(2);
    if (field->text(1) == "min_nodes") min_nodes_ = number;
    if (field->text(1) == "max_nodes") max_nodes_ = number;
    if (field->text(1) != "nproc_per_node" || !number || !min_nodes_ || min_nodes_ != max_nodes_) return true;
    const std::int64_t size = *min_nodes_ * *number;
    if (size > 0 && size < (1 << 24)) out.Add(EventFrom(record, WorldSize{static_cast<int>(size)}));
    min_nodes_.reset();
    return true;
  }

  int tested_ranks_ = 0;
  std::optional<GlobalRank> process_index_;
  std::optional<std::int64_t> min_nodes_, max_nodes_;
};

constexpr std::string_view kFrameworkMarks[] = {
    "Process rank: ",
    "| distributed init (rank ",
    "CUDA_VISIBLE_DEVICES: [",
    "GLOBAL_RANK: ",
    "world_size",
    "world size",
    "world-size) ",
    "world_size) ",
    "(rank: ",
    "processes registered. Starting with",
    "| num_processes ",
    "Number of processes: ",
    "Num processes: ",
    "Process index: ",
    "Local process index: ",
    "Device: cuda:",
    "# nThread ",
    "#  Rank ",
    "#   Rank ",
    "out-of-place",
    "min_nodes ",
    "max_nodes ",
    "nproc_per_node ",
};

}  // namespace

extern const Format kFramework{.name = "framework",
                               .framing = Framing::kLines,
                               .component = Component::kAny,
                               .marks = kFrameworkMarks,
                               .make = &Make<FrameworkParser>};

}  // namespace inquest
