// bundle_manifest.cc: manifest.json of `inquest collect` (collect/manifest.cc): what a node could not give.
// Format:  one JSON object a file; "problem" is null for what is whole
//            {"schema": "inquest-bundle-1", "hostname": "node07", "items": [{"name": "nvidia-smi.txt", "problem":
//            "nvidia-smi is not installed"}]}
// Clock:   none.        Not read: how each item was made, and what was added by hand (files/).
#include <simdjson.h>

#include <string>

#include "core/host_name.h"
#include "parsers/formats.h"

namespace inquest {
namespace {

using Json = simdjson::dom::element;

class BundleManifestParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    if (record.text.find("\"inquest-bundle-") == std::string_view::npos) return false;
    simdjson::dom::parser parser;
    const simdjson::padded_string padded(record.text);
    Json root;
    std::string_view schema, hostname;
    simdjson::dom::array items;
    if (parser.parse(padded).get(root) != simdjson::SUCCESS || root["schema"].get(schema) != simdjson::SUCCESS)
      return false;
    if (!schema.starts_with("inquest-bundle-") || root["items"].get(items) != simdjson::SUCCESS) return false;
    Record of_host = record;
    if (root["hostname"].get(hostname) == simdjson::SUCCESS && !hostname.empty() && !of_host.origin.host)
      of_host.origin.host = Known<std::string>{HostName(hostname).Short(), Basis::kObserved, {}};
    for (const Json item : items) AddLack(item, of_host, out);
    return true;
  }

  static void AddLack(const Json& item, Record record, EventSink& out) {
    std::string_view name, problem;
    if (item["name"].get(name) != simdjson::SUCCESS || item["problem"].get(problem) != simdjson::SUCCESS) return;
    const std::string text = std::string(name) + ": " + std::string(problem);
    record.text = text;
    out.Add(EventFrom(record, NotCollected{std::string(name), std::string(problem)}));
  }
};

constexpr std::string_view kBundleManifestMarks[] = {"\"inquest-bundle-"};

}  // namespace

extern const Format kBundleManifest{.name = "bundle-manifest",
                                    .framing = Framing::kDocument,
                                    .component = Component::kAny,
                                    .marks = kBundleManifestMarks,
                                    .make = &Make<BundleManifestParser>};

}  // namespace inquest
