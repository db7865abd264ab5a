// A line of a log as a collector exports it: an object a line, with the text under one of its keys.
#include "parsers/exported_line.h"

#include <simdjson.h>
#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "core/time.h"

namespace inquest {
namespace {

using simdjson::dom::element;
using std::string_view;

/// The one object below the line's that holds the entry; the line's own where there is none.
constexpr std::array kAround = {"_source", "jsonPayload", "attributes", "result"};
constexpr std::array kTexts = {"log", "message", "textPayload", "msg", "line", "body"};
constexpr std::array kTimes = {"timestamp", "@timestamp", "time", "ts", "date", "datetime", "_time"};
/// What no program writes of itself.
constexpr std::array kOfCollectors = {"kubernetes",     "stream",       "resource", "labels",   "insertId",
                                      "ingestionTime",  "source_type",  "_index",   "logName",  "agent",
                                      "container_name", "fluentd_tags", "logGroup", "logStream"};
/// Paths of a pod's name, a container's and a node's, best first.
constexpr std::array kPods = {"/kubernetes/pod_name",      "/kubernetes/pod/name", "/labels/pod", "/labels/pod_name",
                              "/resource/labels/pod_name", "/stream/pod",          "/pod",        "/pod_name"};
constexpr std::array kContainers = {"/kubernetes/container_name",
                                    "/kubernetes/container/name",
                                    "/labels/container",
                                    "/resource/labels/container_name",
                                    "/stream/container",
                                    "/container_name",
                                    "/container"};
constexpr std::array kNodes = {"/kubernetes/host",
                               "/kubernetes/pod_node_name",
                               "/kubernetes/node/name",
                               "/kubernetes/node_name",
                               "/labels/node_name",
                               "/labels/node",
                               "/host/name",
                               "/host/hostname",
                               "/host",
                               "/hostname",
                               "/node_name",
                               "/node"};

/// What data sets call their texts.
constexpr std::array kOfData = {"role",     "prompt",    "instruction",   "completion", "response",
                                "question", "answer",    "conversations", "messages",   "chosen",
                                "rejected", "docstring", "context",       "source_code"};

string_view TextOf(const element& json) {
  string_view text;
  return json.get(text) == simdjson::SUCCESS ? text : string_view();
}

template <std::size_t kSize>
std::string FirstText(const element& json, const std::array<const char*, kSize>& paths) {
  for (const char* path : paths) {
    element found;
    if (json.at_pointer(path).get(found) != simdjson::SUCCESS) continue;
    const string_view text = TextOf(found);
    if (!text.empty() && text.size() <= 128 && text.find_first_of(" \t\f\r\n") == string_view::npos)
      return std::string(text);
  }
  return {};
}

/// Seconds, milliseconds, microseconds or nanoseconds since 1970, whichever gives a time of this century.
std::string EpochTime(double number) {
  constexpr double kEarliest = 9.4e8, kLatest = 4.1e9;
  for (const double unit : {1.0, 1e3, 1e6, 1e9}) {
    const double seconds = number / unit;
    if (seconds < kEarliest || seconds > kLatest) continue;
    const auto milliseconds = static_cast<std::int64_t>(seconds * 1e3);
    return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<std::time_t>(milliseconds / 1000)),
                       milliseconds % 1000);
  }
  return {};
}

std::string TimeOf(const element& json) {
  for (const char* key : kTimes) {
    element found;
    if (json[key].get(found) != simdjson::SUCCESS) continue;
    double number = 0;
    if (found.get(number) == simdjson::SUCCESS) return EpochTime(number);
    const auto parsed = ParseTime(TextOf(found));
    if (parsed && parsed->time.date == Timestamp::Date::kFull)
      return std::string(TextOf(found).substr(0, parsed->size));
  }
  return {};
}

bool IsCollectors(const element& json) {
  for (const char* key : kOfCollectors) {
    element found;
    if (json[key].get(found) == simdjson::SUCCESS) return true;
  }
  return false;
}

}  // namespace

struct ExportedLines::State {
  simdjson::dom::parser parser;
};

ExportedLines::ExportedLines() : state_(std::make_unique<State>()) {}
ExportedLines::~ExportedLines() = default;
ExportedLines::ExportedLines(ExportedLines&&) noexcept = default;
ExportedLines& ExportedLines::operator=(ExportedLines&&) noexcept = default;

std::optional<ExportedLines::Line> ExportedLines::Read(string_view line) {
  element root;
  if (!line.starts_with('{') || state_->parser.parse(line.data(), line.size()).get(root) != simdjson::SUCCESS ||
      !root.is_object())
    return std::nullopt;
  element entry = root;
  for (const char* key : kAround)
    if (element inner; root[key].get(inner) == simdjson::SUCCESS && inner.is_object()) entry = inner;
  Line out;
  bool found = false;
  for (const char* key : kTexts) {
    element text;
    if (entry[key].get(text) != simdjson::SUCCESS || !text.is_string()) continue;
    out.text = std::string(TextOf(text));
    found = true;
    break;
  }
  if (!found) return std::nullopt;
  out.head.time = TimeOf(entry);
  if (out.head.time.empty()) out.head.time = TimeOf(root);
  // A program's own records have a time as well; a time and nothing but a text is what is left of an export.
  if (!IsCollectors(root) && !IsCollectors(entry) &&
      (out.head.time.empty() || !root.is_object() || root.get_object().size() > 2))
    return std::nullopt;
  const std::string container =
      FirstText(entry, kContainers).empty() ? FirstText(root, kContainers) : FirstText(entry, kContainers);
  std::string pod = FirstText(entry, kPods);
  if (pod.empty()) pod = FirstText(root, kPods);
  out.head.host = pod;
  if (pod.empty()) out.head.host = FirstText(entry, kNodes);
  if (out.head.host.empty()) out.head.host = FirstText(root, kNodes);
  if (!pod.empty() && !container.empty()) out.head.writer = pod + "/" + container;
  return out;
}

bool ExportedLines::IsData(string_view line) {
  element root;
  if (!line.starts_with('{') || state_->parser.parse(line.data(), line.size()).get(root) != simdjson::SUCCESS ||
      !root.is_object())
    return false;
  const auto has = [&](const char* key) {
    element found;
    return root[key].get(found) == simdjson::SUCCESS;
  };
  if (IsCollectors(root) || std::any_of(kTimes.begin(), kTimes.end(), has) || has("level") || has("severity"))
    return false;
  return std::any_of(kOfData.begin(), kOfData.end(), has);
}

std::optional<std::string> ExportedLines::ReadMember(string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == string_view::npos || begin == 0 || line[begin] != '"') return std::nullopt;
  line.remove_prefix(begin);
  while (line.ends_with(',') || line.ends_with(' ') || line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t key = line.find('"', 1);
  if (key == string_view::npos || !line.ends_with('"')) return std::nullopt;
  const bool is_text =
      std::any_of(kTexts.begin(), kTexts.end(), [&](string_view one) { return line.substr(1, key - 1) == one; });
  element root;
  if (!is_text || state_->parser.parse("{" + std::string(line) + "}").get(root) != simdjson::SUCCESS)
    return std::nullopt;
  const auto fields = root.get_object();
  if (fields.size() != 1) return std::nullopt;
  for (const auto field : fields)
    return field.value.is_string() ? std::optional<std::string>(TextOf(field.value)) : std::nullopt;
  return std::nullopt;
}

}  // namespace inquest
