// dcgm.cc: results of DCGM's diagnostic, `dcgmi diag -r 3`, as a table and as JSON (-j).
// Format:  tests by category, each with an overall result and, where GPUs differ, theirs (dcgmi/Diag.cpp)
//            | GPU Memory                | Fail - GPU: 3                                  |        up to DCGM 3
//            | memory                    | Fail                                           |        DCGM 4
//            |                           | GPU3: Fail                                     |
//            | Warning: GPU3             | ... text in pieces of 45 bytes                 |
//            | Error                     | ... likewise: why the diagnostic came to no test, or a test failed
//            {"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [{"name": "memory", "results":
//            [{"entity_group": "GPU", "entity_id": 3, "status": "Fail", "warnings": [{"warning": "..."}]}]}]}]}}
// Clock:   none.        Not read: passed and skipped tests, info texts, entities that are no GPUs.
#include <simdjson.h>

#include <string>
#include <vector>

#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/messages.h"

namespace inquest {
namespace {

constexpr int kMostDiagGpus = 4096;
constexpr std::size_t kMostHeld = 64;

std::string Trimmed(std::string_view text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\n')) text.remove_suffix(1);
  return std::string(text);
}

// ---- the table -------------------------------------------------------------------------------------------------

struct DiagRow {
  std::string name, result;
};
std::optional<DiagRow> ReadRow(std::string_view text) {
  static const Pattern kRow(R"(^\| (.{25}) \| (.{46,}?) ?\|$)");
  const auto match = kRow.Search(text);
  if (!match) return std::nullopt;
  std::string result(match->text(2));  // a piece of a text may begin with the space between two words
  while (result.ends_with(' ')) result.pop_back();
  return DiagRow{Trimmed(match->text(1)), std::move(result)};
}

bool IsRule(std::string_view text) {
  return text.starts_with("|-----  ") || text.starts_with("+-----  ") || text.starts_with("+====") ||
         text.starts_with("+----");
}

// A result is held until the rows of warnings below it have said why.
class DcgmTableParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    if (IsRule(record.text)) {
      Flush(out);
      open_ = true;
      return true;
    }
    const auto row = open_ ? ReadRow(record.text) : std::nullopt;
    if (!row) {
      Flush(out);
      open_ = false;
      return false;
    }
    if (row->name == "Error")
      AddError(record, *row);
    else if (row->name.starts_with("Warning") || (row->name.empty() && in_warning_ && !IsOfGpu(row->result)))
      AddWarning(*row);
    else if (row->name.empty())
      AddGpu(record, row->result);
    else if (!row->name.starts_with("Info"))
      Begin(record, *row, out);
    return true;
  }

  bool Expects(std::string_view text) const override { return open_ && (IsRule(text) || ReadRow(text)); }

  void Finish(EventSink& out) override { Flush(out); }

 private:
  static bool IsOfGpu(const std::string& result) {
    static const Pattern kGpu(R"(^(?:[A-Za-z]+\d+: )?(?:Pass|Fail|Warn|Skip|Not Run)(?: - (?:All|GPUs?: ?[\d, ]+))?$)");
    return kGpu.Matches(result);
  }

  void Begin(const Record& record, const DiagRow& row, EventSink& out) {
    Flush(out);
    in_warning_ = false;
    test_ = row.name;
    AddResult(record, row.result);
  }

  /// `Fail`, `Fail - All`, `Warn - GPUs: 3, 5`.
  void AddResult(const Record& record, const std::string& result) {
    static const Pattern kResult(R"(^(Fail|Warn)(?: - (All|GPUs?: ?([\d, ]+)))?$)");
    const auto match = kResult.Search(result);
    if (!match) return;
    GpuDiag diag{.failed = match->text(1) == "Fail", .test = test_, .gpu = {}, .detail = {}};
    if (!match->has(3)) return held_.push_back(EventFrom(record, std::move(diag)));
    for (const int gpu : ReadNumbers<int>(match->text(3))) {
      if (gpu < 0 || gpu > kMostDiagGpus || held_.size() > kMostHeld) continue;
      diag.gpu = gpu;
      held_.push_back(EventFrom(record, diag));
    }
  }

  /// The overall result of DCGM 4 gives way to those of the GPUs below it.
  void AddGpu(const Record& record, const std::string& result) {
    static const Pattern kGpu(R"(^GPU(\d{1,4}): (Fail|Warn)$)");
    in_warning_ = false;
    const auto match = kGpu.Search(result);
    if (!match) return AddResult(record, result);
    std::erase_if(held_, [](const Event& event) { return !std::get<GpuDiag>(event.what).gpu; });
    if (held_.size() > kMostHeld) return;
    held_.push_back(EventFrom(record, GpuDiag{.failed = match->text(2) == "Fail",
                                              .test = test_,
                                              .gpu = static_cast<int>(*match->number(1)),
                                              .detail = {}}));
  }

  /// Says why the test above it failed, or why the diagnostic came to no test.
  void AddError(const Record& record, const DiagRow& row) {
    static const Pattern kGpu(R"(^GPU (\d{1,4}) )");
    if (held_.empty()) {
      const auto gpu = kGpu.Search(row.result);
      held_.push_back(
          EventFrom(record, GpuDiag{.failed = true,
                                    .test = row.name,
                                    .gpu = gpu ? std::optional(static_cast<int>(*gpu->number(1))) : std::nullopt,
                                    .detail = {}}));
    }
    warned_.reset();
    AddWarning(DiagRow{"", row.result});
  }

  void AddWarning(const DiagRow& row) {
    static const Pattern kGpu(R"(^Warning: GPU(\d{1,4})$)");
    in_warning_ = true;
    if (!row.name.empty()) {
      const auto gpu = kGpu.Search(row.name);
      warned_ = gpu ? std::optional(static_cast<int>(*gpu->number(1))) : std::nullopt;
    }
    for (Event& event : held_) {
      auto& diag = std::get<GpuDiag>(event.what);
      if ((!warned_ || !diag.gpu || warned_ == diag.gpu) && diag.detail.size() < kCitedBytes) diag.detail += row.result;
    }
  }

  void Flush(EventSink& out) {
    for (Event& event : held_) out.Add(std::move(event));
    held_.clear();
  }

  std::vector<Event> held_;
  std::string test_;
  bool open_ = false, in_warning_ = false;
  std::optional<int> warned_;  // the GPU that a warning speaks of
};

// ---- JSON ------------------------------------------------------------------------------------------------------

using Json = simdjson::dom::element;

std::string_view TextOf(const Json& json, const char* key) {
  std::string_view text;
  return json[key].get(text) == simdjson::SUCCESS ? text : std::string_view();
}

/// `"entity_id": 3` of DCGM 4; `"gpu_id": "3"`, `"gpu_ids": "3"` or a list before, where a list is of all GPUs.
std::vector<int> GpusOf(const Json& result) {
  std::int64_t number = 0;
  if (result["entity_id"].get(number) == simdjson::SUCCESS) {
    const std::string_view group = TextOf(result, "entity_group");
    return (group.empty() || group == "GPU") && number >= 0 && number < kMostDiagGpus
               ? std::vector<int>{static_cast<int>(number)}
               : std::vector<int>();
  }
  for (const char* key : {"gpu_id", "gpu_ids"}) {
    if (result[key].get(number) == simdjson::SUCCESS && number >= 0 && number < kMostDiagGpus)
      return {static_cast<int>(number)};
    if (const std::string_view list = TextOf(result, key); !list.empty()) return ReadNumbers<int>(list);
  }
  return {};
}

/// One text, a list of texts, or a list of objects that hold one.
std::string WarningOf(const Json& result) {
  Json warnings;
  if (result["warnings"].get(warnings) != simdjson::SUCCESS) return {};
  std::string_view text;
  if (warnings.get(text) == simdjson::SUCCESS) return Trimmed(text);
  simdjson::dom::array list;
  if (warnings.get(list) != simdjson::SUCCESS) return {};
  for (const Json warning : list) {
    if (warning.get(text) == simdjson::SUCCESS) return Trimmed(text);
    if (text = TextOf(warning, "warning"); !text.empty()) return Trimmed(text);
  }
  return {};
}

class DcgmJsonParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    if (record.text.find("\"test_categories\"") == std::string_view::npos) return false;
    simdjson::dom::parser parser;
    const simdjson::padded_string padded(record.text);
    Json root, diagnostic;
    if (parser.parse(padded).get(root) != simdjson::SUCCESS) return false;
    if (root["DCGM Diagnostic"].get(diagnostic) != simdjson::SUCCESS &&
        root["DCGM GPU Diagnostic"].get(diagnostic) != simdjson::SUCCESS)
      return false;
    simdjson::dom::array categories, tests, results;
    if (diagnostic["test_categories"].get(categories) != simdjson::SUCCESS) return true;
    for (const Json category : categories) {
      if (category["tests"].get(tests) != simdjson::SUCCESS) continue;
      for (const Json test : tests) {
        if (test["results"].get(results) != simdjson::SUCCESS) continue;
        for (const Json result : results) AddResult(record, std::string(TextOf(test, "name")), result, out);
      }
    }
    return true;
  }

  static void AddResult(const Record& record, const std::string& test, const Json& result, EventSink& out) {
    const std::string_view status = TextOf(result, "status");
    const bool failed = status == "Fail" || status == "FAIL" || status == "fail";
    if (!failed && status != "Warn" && status != "WARN" && status != "warn") return;
    GpuDiag diag{.failed = failed, .test = test, .gpu = {}, .detail = WarningOf(result)};
    Record cited = record;  // cited is the result, not the document around it
    std::vector<int> gpus = GpusOf(result);
    if (gpus.size() > 64) gpus.resize(64);
    for (std::size_t i = 0; i < std::max<std::size_t>(gpus.size(), 1); ++i) {
      if (!gpus.empty()) diag.gpu = gpus[i];
      const std::string text = "dcgmi diag: " + test + (diag.gpu ? ", GPU " + std::to_string(*diag.gpu) : "") + ": " +
                               std::string(status) + (diag.detail.empty() ? "" : ": " + diag.detail);
      cited.text = text;
      out.Add(EventFrom(cited, diag));
    }
  }
};

constexpr std::string_view kTableMarks[] = {"|-----  Metadata  ---", "|-----  Deployment  ---", "+-----  Hardware  ---",
                                            "+-----  Integration  ---", "+-----  Stress  ---"};
constexpr std::string_view kDcgmJsonMarks[] = {"\"test_categories\""};

}  // namespace

extern const Format kDcgmTable{.name = "dcgm-diag",
                               .framing = Framing::kLines,
                               .component = Component::kSmi,
                               .marks = kTableMarks,
                               .follow = 48,
                               .make = &Make<DcgmTableParser>};
extern const Format kDcgmJson{.name = "dcgm-diag-json",
                              .framing = Framing::kDocument,
                              .component = Component::kSmi,
                              .marks = kDcgmJsonMarks,
                              .make = &Make<DcgmJsonParser>};

}  // namespace inquest
