// Format:  {"schema": "inquest-speeds-1", "tool", "engine", "hosts": by rank,
//           "links": [{"from", "to", "port", "samples": [{"bytes", "median_s", "mad_s", "runs", "gb_s"}]}]}
#include "cli/speed_file.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace inquest {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSchema = "inquest-speeds-1";

/// Thrown in this file alone, as nlohmann's own exceptions are.
struct Malformed {
  std::string what;
};

int RankFrom(const Json& json, std::size_t ranks) {
  const auto rank = json.get<std::int64_t>();
  if (rank < 0 || static_cast<std::size_t>(rank) >= ranks) throw Malformed{fmt::format("rank {} is not there", rank)};
  return static_cast<int>(rank);
}

double TimeFrom(const Json& json) {
  const auto seconds = json.get<double>();
  if (!(seconds >= 0) || !std::isfinite(seconds)) throw Malformed{"a time is negative, or none"};
  return seconds;
}

Speeds SpeedsFrom(const Json& json) {
  if (json.at("schema").get<std::string>() != kSchema) throw Malformed{fmt::format("its schema is not {}", kSchema)};
  Speeds speeds;
  speeds.engine = json.at("engine").get<std::string>();
  speeds.hosts = json.at("hosts").get<std::vector<std::string>>();
  for (const Json& one : json.at("links")) {
    LinkSpeed& link = speeds.links.emplace_back();
    link.from = RankFrom(one.at("from"), speeds.hosts.size());
    link.to = RankFrom(one.at("to"), speeds.hosts.size());
    if (!one.at("port").is_null()) link.port = one.at("port").get<std::string>();
    for (const Json& sample : one.at("samples"))
      link.samples.push_back({.bytes = sample.at("bytes").get<std::uint64_t>(),
                              .median_s = TimeFrom(sample.at("median_s")),
                              .mad_s = TimeFrom(sample.at("mad_s")),
                              .runs = sample.at("runs").get<int>()});
  }
  return speeds;
}

}  // namespace

std::string SpeedsDocument(const Speeds& speeds, std::string_view tool_version) {
  Json links = Json::array();
  for (const LinkSpeed& link : speeds.links) {
    Json samples = Json::array();
    for (const SpeedSample& sample : link.samples)
      samples.push_back({{"bytes", sample.bytes},
                         {"median_s", sample.median_s},
                         {"mad_s", sample.mad_s},
                         {"runs", sample.runs},
                         {"gb_s", GigabytesPerSecond(sample)}});
    links.push_back({{"from", link.from},
                     {"to", link.to},
                     {"port", link.port.empty() ? Json(nullptr) : Json(link.port)},
                     {"samples", samples}});
  }
  const Json document = {{"schema", kSchema},
                         {"tool", {{"name", "inquest"}, {"version", tool_version}}},
                         {"engine", speeds.engine},
                         {"hosts", speeds.hosts},
                         {"links", links}};
  return document.dump(1, ' ', true, Json::error_handler_t::replace) + "\n";
}

Result<Speeds> ReadSpeeds(const std::string& text, const std::string& path) {
  const auto none = [&](const std::string& why) {
    return Error{"this is no baseline: " + why, "inquest replay --save-baseline FILE writes one", path};
  };
  try {
    return SpeedsFrom(Json::parse(text));
  } catch (const Malformed& malformed) {
    return none(malformed.what);
  } catch (const Json::exception& error) {
    return none(error.what());
  }
}

}  // namespace inquest
