// What a bundle says of itself: manifest.json.
#include "collect/manifest.h"

#include <nlohmann/json.hpp>

namespace inquest {
namespace {

using Json = nlohmann::ordered_json;

template <class T>
Json OrNull(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}
Json OrNull(const std::string& text) { return text.empty() ? Json() : Json(text); }

Json ToJson(const CollectedItem& item) {
  return Json{{"name", item.name},
              {"command", item.command.empty() ? Json() : Json(item.command)},
              {"source", OrNull(item.source)},
              {"problem", OrNull(item.problem)},
              {"kept", item.kept},
              {"exit_code", OrNull(item.exit_code)},
              {"signal", OrNull(item.signal)},
              {"timed_out", item.timed_out},
              {"cut", item.cut},
              {"seconds", item.seconds},
              {"bytes", item.bytes}};
}

}  // namespace

std::string RenderManifest(const Manifest& manifest) {
  Json items = Json::array();
  for (const CollectedItem& item : manifest.items) items.push_back(ToJson(item));
  const Json document{{"schema", "inquest-bundle-1"},
                      {"tool", {{"name", "inquest"}, {"version", manifest.tool_version}}},
                      {"hostname", manifest.hostname},
                      {"time", manifest.time},
                      {"items", std::move(items)}};
  return document.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

}  // namespace inquest
