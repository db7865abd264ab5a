// Traces of PyTorch's profiler: the collective calls that a rank made while it was watched.
#include "parsers/profiler_trace.h"

#include <simdjson.h>

#include <algorithm>
#include <charconv>
#include <optional>

namespace inquest {
namespace {

using std::string_view;
namespace json = simdjson;

/// Longer than any event that Kineto writes; one with a stack of Python frames in it is none of ours.
constexpr std::size_t kLongestObject = std::size_t{4} << 20;
constexpr std::int64_t kLatestNs = std::int64_t{4'100'000'000} * 1'000'000'000;  // 2099
constexpr std::size_t kMostCalls = std::size_t{1} << 22;

std::optional<std::int64_t> NumberAt(const json::dom::element& object, const char* key) {
  std::int64_t number = 0;
  if (object[key].get(number) == json::SUCCESS) return number;
  double real = 0;
  if (object[key].get(real) == json::SUCCESS && real > -9e18 && real < 9e18) return static_cast<std::int64_t>(real);
  return std::nullopt;
}

/// Microseconds under a key, in nanoseconds; 0: none that a clock shows.
std::int64_t NanosecondsAt(const json::dom::element& object, const char* key) {
  double us = 0;
  if (object[key].get(us) != json::SUCCESS) us = static_cast<double>(NumberAt(object, key).value_or(0));
  if (!(us > 0 && us < static_cast<double>(kLatestNs) / 1000)) return 0;
  const auto whole = static_cast<std::int64_t>(us);
  return whole * 1000 + static_cast<std::int64_t>((us - static_cast<double>(whole)) * 1000);
}

string_view TextAt(const json::dom::element& object, const char* key) {
  string_view text;
  return object[key].get(text) == json::SUCCESS ? text : string_view();
}

/// `[0, 1, 2]`; a long list ends in `...`: then the steps between its first go on to the size of the group.
std::vector<int> RanksIn(string_view text, std::int64_t size) {
  std::vector<int> out;
  for (std::size_t at = 0; at < text.size();) {
    int rank = 0;
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
    if (error == std::errc() && IsRank(rank)) {
      out.push_back(rank);
      at = static_cast<std::size_t>(end - text.data());
    } else {
      ++at;
    }
  }
  const bool cut = text.find("...") != string_view::npos;
  if (cut && out.size() > 1 && IsRank(size))
    for (const int step = out[1] - out[0]; static_cast<std::int64_t>(out.size()) < size && IsRank(out.back() + step);)
      out.push_back(out.back() + step);
  return cut && static_cast<std::int64_t>(out.size()) != size ? std::vector<int>() : out;
}

}  // namespace

struct ProfilerTraceReader::Parsed {
  json::dom::parser parser;
  std::optional<json::dom::element> Read(string_view text) {
    json::dom::element out;
    if (parser.parse(text.data(), text.size()).get(out) != json::SUCCESS) return std::nullopt;
    return out;
  }
};

bool IsProfilerTrace(string_view head) {
  constexpr std::size_t kLookedAt = 64 * 1024;
  head = head.substr(0, kLookedAt);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == string_view::npos || head[first] != '{') return false;
  const auto has = [&](string_view key) { return head.find(key) != string_view::npos; };
  return (has("\"schemaVersion\"") || has("\"distributedInfo\"")) &&
         (has("\"traceEvents\"") || has("\"deviceProperties\"")) && !has("\"profiling_name\"");
}

ProfilerTraceReader::ProfilerTraceReader() : parsed_(std::make_unique<Parsed>()) {
  out_.recorder = "profiler-trace";
  out_.sites.emplace_back();
}
ProfilerTraceReader::~ProfilerTraceReader() = default;

void ProfilerTraceReader::Feed(string_view bytes) {
  std::size_t from = 0;  // of what is captured and not in object_ yet
  const auto keep = [&](std::size_t to) {
    if (!capturing_) return;
    if (object_.size() + (to - from) > kLongestObject)
      cut_ = true;
    else
      object_.append(bytes, from, to - from);
  };
  for (std::size_t i = 0; i < bytes.size() && !done_; ++i) {
    const char c = bytes[i];
    if (in_string_) {
      if (!escaped_ && c != '"' && c != '\\') {
        // Most of a trace is strings.
        std::size_t next = i + 1;
        while (next < bytes.size() && bytes[next] != '"' && bytes[next] != '\\') ++next;
        if (depth_ == 1 && key_.size() < 64) key_.append(bytes, i, std::min<std::size_t>(next - i, 64));
        i = next - 1;
        continue;
      }
      if (escaped_)
        escaped_ = false;
      else if (c == '\\')
        escaped_ = true;
      else
        in_string_ = false;
      continue;
    }
    switch (c) {
      case '"':
        in_string_ = true;
        if (depth_ == 1) key_.clear();  // of a value, too: its own key no longer matters
        break;
      case '{':
      case '[':
        ++depth_;
        // Values of the outermost object that are objects, and events.
        if (c == '{' && !capturing_ && (depth_ == 2 || (depth_ == 3 && key_ == "traceEvents"))) {
          capturing_ = true;
          cut_ = false;
          object_.clear();
          from = i;
          capture_depth_ = depth_;
        }
        break;
      case '}':
      case ']':
        if (depth_ == 0) break;
        if (capturing_ && depth_ == capture_depth_) {
          keep(i + 1);
          if (!cut_) Take(object_);
          capturing_ = false;
        }
        if (--depth_ == 0) done_ = true;
        break;
      default:
        if (depth_ == 1 && c >= '0' && c <= '9' && key_ == "baseTimeNanoseconds" && base_ns_ < kLatestNs / 10)
          base_ns_ = base_ns_ * 10 + (c - '0');
        break;
    }
  }
  keep(bytes.size());
}

void ProfilerTraceReader::Take(string_view object) {
  if (key_ == "distributedInfo") return TakeInfo(object);
  if (key_ == "traceEvents" && object.find("\"Collective name\"") != string_view::npos) TakeCall(object);
}

void ProfilerTraceReader::TakeInfo(string_view object) {
  const auto info = parsed_->Read(object);
  if (!info) return;
  const auto rank = NumberAt(*info, "rank"), size = NumberAt(*info, "world_size");
  if (rank && IsRank(*rank))
    out_.rank = Known<GlobalRank>{GlobalRank{static_cast<std::int32_t>(*rank)}, Basis::kObserved, {}};
  if (size && IsRank(*size)) out_.world_size = static_cast<int>(*size);
  out_.nccl_version = std::string(TextAt(*info, "nccl_version"));
}

std::uint32_t ProfilerTraceReader::GroupOf(string_view name, string_view desc, string_view ranks, std::int64_t size) {
  const auto [it, is_new] =
      groups_.try_emplace({std::string(name), std::string(ranks)}, static_cast<std::uint32_t>(out_.groups.size()));
  if (is_new) {
    out_.groups.emplace_back();
    out_.groups.back().name = std::string(name);
    out_.groups.back().desc = std::string(desc);
    out_.groups.back().ranks = RanksIn(ranks, size);
    numbers_.push_back(0);
  }
  return it->second;
}

void ProfilerTraceReader::TakeCall(string_view object) {
  const auto event = parsed_->Read(object);
  json::dom::element args;
  if (!event || (*event)["args"].get(args) != json::SUCCESS) return;
  ++out_.entries;
  const auto id = NumberAt(args, "External id");
  if (TextAt(*event, "name") != "record_param_comms") {
    if (!id || kernels_.size() >= kMostCalls) return;
    const std::int64_t begin = NanosecondsAt(*event, "ts");
    kernels_[*id] = {begin, begin > 0 ? begin + NanosecondsAt(*event, "dur") : 0};
    return;
  }
  // `wait` is no call, and neither is what makes a group.
  const string_view op = TextAt(args, "Collective name");
  if (op.empty() || op == "wait" || op == "init" || out_.calls.size() >= kMostCalls) return;
  CallTrace::Call call;
  call.group = GroupOf(TextAt(args, "Process Group Name"), TextAt(args, "Process Group Description"),
                       TextAt(args, "Process Group Ranks"), NumberAt(args, "Group size").value_or(0));
  CallForm form;
  form.op = std::string(op);
  if (const auto elements = NumberAt(args, "In msg nelems")) form.inputs = {{*elements}};
  if (const auto elements = NumberAt(args, "Out msg nelems")) form.outputs = {{*elements}};
  form.dtypes = std::string(TextAt(args, "dtype"));
  const auto [number, is_new] = forms_.try_emplace(form, static_cast<std::uint32_t>(out_.forms.size()));
  if (is_new) out_.forms.push_back(std::move(form));
  call.form = number->second;
  call.place = static_cast<std::uint32_t>(std::min<std::uint64_t>(out_.entries, ~std::uint32_t{0}));
  call.pairwise = op == "send" || op == "recv";
  if (call.pairwise) {
    call.to = op == "send" ? CallTrace::Peer::kTo : CallTrace::Peer::kFrom;
    const auto peer = NumberAt(args, op == "send" ? "Dst Rank" : "Src Rank");
    if (peer && IsRank(*peer))
      call.peer = static_cast<std::int32_t>(*peer);
    else
      call.to = CallTrace::Peer::kNone;
  }
  if (const auto seq = NumberAt(args, "Seq"); seq && *seq >= 0) {
    call.seq = *seq;
  } else {
    call.seq = ++numbers_[call.group];
    out_.groups[call.group].mixed = true;
  }
  call.created_ns = NanosecondsAt(*event, "ts");
  out_.calls.push_back(call);
  ids_.push_back(id.value_or(-1));
}

CallTrace ProfilerTraceReader::Finish() {
  // A profiler that saw no kernel knows of none when it ended.
  for (std::size_t i = 0; i < out_.calls.size(); ++i) {
    const auto kernel = kernels_.find(ids_[i]);
    if (kernels_.empty() || kernel != kernels_.end()) out_.calls[i].state = CallTrace::State::kCompleted;
    if (kernel == kernels_.end()) continue;
    out_.calls[i].started_ns = kernel->second.begin_ns;
    out_.calls[i].ended_ns = kernel->second.end_ns;
  }
  constexpr std::int64_t kYear2000 = 946684800000000000;
  for (CallTrace::Call& call : out_.calls)
    for (std::int64_t* const ns : {&call.created_ns, &call.started_ns, &call.ended_ns})
      if (*ns < kYear2000) *ns = *ns > 0 && base_ns_ > 0 ? *ns + base_ns_ : 0;
  std::ranges::stable_sort(out_.calls, {}, &CallTrace::Call::created_ns);
  if (!done_) out_.problem = "cut: its JSON does not end";
  return std::move(out_);
}

}  // namespace inquest
