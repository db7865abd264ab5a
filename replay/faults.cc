// RANK:KIND[@PHASE[#ITERATION]][=VALUE], joined by ';'.
#include "replay/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>

#include "replay/ops.h"

namespace inquest {
namespace {

using Kind = Fault::Kind;

struct KindRow {
  std::string_view name;
  Kind kind;
};
constexpr KindRow kKinds[] = {
    {"hang", Kind::kHang},          {"delay", Kind::kDelay},     {"stop", Kind::kStop},
    {"kill", Kind::kKill},          {"exit", Kind::kExit},       {"count", Kind::kAlter},
    {"op", Kind::kAlter},           {"root", Kind::kAlter},      {"dtype", Kind::kAlter},
    {"redop", Kind::kAlter},        {"corrupt", Kind::kCorrupt}, {"abort-hangs", Kind::kAbortHangs},
    {"unchecked", Kind::kUnchecked}};

template <class Number>
std::optional<Number> NumberOf(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

/// Takes what stands before `mark` off the text; all of it where there is none.
std::string_view TakeUntil(std::string_view& text, char mark) {
  const std::size_t at = std::min(text.find(mark), text.size());
  const std::string_view head = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return head;
}

std::optional<Call> Altered(Call call, std::string_view field, std::string_view value) {
  if (field == "count") {
    const auto count = NumberOf<std::uint64_t>(value);
    if (!count) return std::nullopt;
    call.count = *count;
  } else if (field == "root") {
    const auto root = NumberOf<int>(value);
    if (!root) return std::nullopt;
    call.root = *root;
  } else if (field == "dtype") {
    const auto datatype = FindDatatype(value);
    if (!datatype) return std::nullopt;
    call.datatype = *datatype;
  } else if (field == "redop") {
    const auto redop = FindRedOp(value);
    if (!redop) return std::nullopt;
    call.redop = *redop;
  } else {
    const ReplayOp* op = FindOp(value);
    if (op == nullptr) return std::nullopt;
    call.operation = op->operation;
  }
  return call;
}

std::optional<Fault> FaultOf(std::string_view text, const Plan& plan) {
  const auto rank = NumberOf<int>(TakeUntil(text, ':'));
  std::string_view value = text;
  std::string_view where = TakeUntil(value, '=');
  const std::string_view name = TakeUntil(where, '@');
  const auto kind = std::ranges::find(kKinds, name, &KindRow::name);
  if (!rank || *rank < 0 || *rank >= plan.ranks.value || kind == std::end(kKinds)) return std::nullopt;
  Fault fault{.rank = *rank, .kind = kind->kind};
  if (!where.empty()) {
    const auto phase = std::ranges::find(kPhases, TakeUntil(where, '#'));
    const auto iteration = where.empty() ? 1 : NumberOf<int>(where).value_or(0);
    if (phase == kPhases.end() || iteration < 1) return std::nullopt;
    fault.before.phase = static_cast<Phase>(phase - kPhases.begin());
    fault.before.iteration = IsRepeated(fault.before.phase) ? iteration : 0;
  }
  if (fault.kind == Kind::kDelay) {
    const auto delay = NumberOf<std::uint32_t>(value);
    if (!delay) return std::nullopt;
    fault.delay = std::chrono::milliseconds(*delay);
  }
  if (fault.kind == Kind::kAlter) {
    fault.call = Altered(CallOf(plan), name, value);
    if (!fault.call) return std::nullopt;
  }
  return fault;
}

}  // namespace

Result<std::vector<Fault>> ParseFaults(std::string_view text, const Plan& plan) {
  std::vector<Fault> faults;
  while (!text.empty()) {
    const std::string_view one = TakeUntil(text, ';');
    const auto fault = FaultOf(one, plan);
    if (!fault)
      return Error{fmt::format("bad fault '{}'", one), "RANK:KIND[@PHASE[#ITERATION]][=VALUE], see docs/replay.md", ""};
    faults.push_back(*fault);
  }
  return faults;
}

}  // namespace inquest
