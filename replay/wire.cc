// Messages as JSON. Bytes that are no text (addresses, ids) travel as hexadecimal digits.
#include "replay/wire.h"

#include <unistd.h>

#include <array>

#include "replay/ops.h"
#include "replay/wire_json.h"

namespace inquest {
namespace {

using wire::Enumerator;
using wire::Json;
using wire::Malformed;
using wire::Milliseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

unsigned Digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a') + 10;
  throw Malformed();
}

std::string Bytes(const std::string& hex) {
  if (hex.size() % 2 != 0) throw Malformed();
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(Digit(hex[i]) * 16 + Digit(hex[i + 1]));
  return bytes;
}

template <class Duration>
Json Ticks(Duration duration) { return duration.count(); }

Json ToJson(const Step& step) { return {step.phase, step.iteration}; }
Step StepOf(const Json& json) { return {Enumerator<Phase>(json.at(0), kPhases.size()), json.at(1).get<int>()}; }

Json ToJson(const Call& call) {
  return {{"op", call.operation}, {"count", call.count}, {"dtype", call.datatype}, {"redop", call.redop},
          {"root", call.root},    {"peer", call.peer},   {"splits", call.splits},  {"in_place", call.in_place}};
}
Call CallOf(const Json& json) {
  return {.operation = Enumerator<Operation>(json.at("op"), ReplayOps().size()),
          .count = json.at("count").get<std::uint64_t>(),
          .datatype = Enumerator<Datatype>(json.at("dtype"), kDatatypes.size()),
          .redop = Enumerator<RedOp>(json.at("redop"), kRedOps.size()),
          .root = json.at("root").get<int>(),
          .peer = json.at("peer").get<int>(),
          .splits = json.at("splits").get<std::vector<std::uint64_t>>(),
          .in_place = json.at("in_place").get<bool>()};
}

Json ToJson(const Fault& fault) {
  return {{"rank", fault.rank}, {"kind", fault.kind}, {"before", ToJson(fault.before)}, {"delay", Ticks(fault.delay)},
          {"call", fault.call ? ToJson(*fault.call) : Json()}};
}
Fault FaultOf(const Json& json) {
  Fault fault{.rank = json.at("rank").get<int>(),
              .kind = Enumerator<Fault::Kind>(json.at("kind"), static_cast<std::size_t>(Fault::Kind::kAbortHangs) + 1),
              .before = StepOf(json.at("before")),
              .delay = Milliseconds(json.at("delay"))};
  if (!json.at("call").is_null()) fault.call = CallOf(json.at("call"));
  return fault;
}

Json ToJson(const std::optional<WrongData>& data) {
  if (!data) return nullptr;
  return {{"elements", data->elements}, {"first", data->first}, {"wanted", data->wanted}, {"got", data->got}};
}
std::optional<WrongData> WrongDataOf(const Json& json) {
  if (json.is_null()) return std::nullopt;
  return WrongData{json.at("elements").get<std::uint64_t>(), json.at("first").get<std::uint64_t>(),
                   json.at("wanted").get<std::string>(), json.at("got").get<std::string>()};
}

// ---- one pair of functions a message ---------------------------------------------------------------------------------

Json Body(const StartWork& m) {
  Json faults = Json::array();
  for (const Fault& fault : m.faults) faults.push_back(ToJson(fault));
  return {{"engine", m.engine}, {"rank", m.setup.rank}, {"nranks", m.setup.nranks}, {"call", ToJson(m.setup.call)},
          {"options", m.setup.options}, {"patience", Ticks(m.setup.patience)}, {"iterations", m.iterations},
          {"warm_up", m.warm_up}, {"heartbeat", Ticks(m.heartbeat)}, {"faults", faults}};
}
void Read(const Json& json, StartWork& m) {
  m.engine = json.at("engine").get<std::string>();
  m.setup = {.rank = json.at("rank").get<int>(), .nranks = json.at("nranks").get<int>(), .call = CallOf(json.at("call")),
             .options = json.at("options").get<std::map<std::string, std::string>>(), .patience = Milliseconds(json.at("patience"))};
  m.iterations = json.at("iterations").get<int>();
  m.warm_up = json.at("warm_up").get<bool>();
  m.heartbeat = Milliseconds(json.at("heartbeat"));
  for (const Json& fault : json.at("faults")) m.faults.push_back(FaultOf(fault));
}

Json Body(const StoreValue& m) { return {{"key", HexDigits(m.key)}, {"bytes", HexDigits(m.bytes)}}; }
void Read(const Json& json, StoreValue& m) {
  m = {Bytes(json.at("key").get<std::string>()), Bytes(json.at("bytes").get<std::string>())};
}

Json Body(const Proceed& m) { return {{"iteration", m.iteration}}; }
void Read(const Json& json, Proceed& m) { m.iteration = json.at("iteration").get<int>(); }

Json Body(const AbortWork& m) { return {{"grace", Ticks(m.grace)}}; }
void Read(const Json& json, AbortWork& m) { m.grace = Milliseconds(json.at("grace")); }

Json Body(const Leave&) { return Json::object(); }
void Read(const Json&, Leave&) {}

Json Body(const Hello& m) { return {{"wire", m.wire}, {"pid", m.pid}, {"host", m.host}}; }
void Read(const Json& json, Hello& m) {
  m = {json.at("wire").get<int>(), json.at("pid").get<std::int64_t>(), json.at("host").get<std::string>()};
}

Json Body(const Began& m) { return {{"step", ToJson(m.step)}}; }
void Read(const Json& json, Began& m) { m.step = StepOf(json.at("step")); }

Json Body(const Reached& m) { return {{"step", ToJson(m.step)}, {"took", m.took ? Ticks(*m.took) : Json()}}; }
void Read(const Json& json, Reached& m) {
  m.step = StepOf(json.at("step"));
  if (!json.at("took").is_null()) m.took = nanoseconds(json.at("took").get<nanoseconds::rep>());
}

Json Body(const Heartbeat& m) {
  return {{"step", ToJson(m.step)}, {"async_error", m.view.async_error}, {"warning", m.view.last_warning},
          {"sent", m.view.bytes_sent}, {"received", m.view.bytes_received}};
}
void Read(const Json& json, Heartbeat& m) {
  m.step = StepOf(json.at("step"));
  m.view = {json.at("async_error").get<std::string>(), json.at("warning").get<std::string>(), json.at("sent").get<std::uint64_t>(),
            json.at("received").get<std::uint64_t>()};
}

Json Body(const Descriptor& m) { return {{"iteration", m.iteration}, {"call", ToJson(m.call)}, {"alignment", m.alignment}}; }
void Read(const Json& json, Descriptor& m) {
  m = {json.at("iteration").get<int>(), CallOf(json.at("call")), json.at("alignment").get<std::uint64_t>()};
}

Json Body(const StoreSet& m) { return {{"key", HexDigits(m.key)}, {"bytes", HexDigits(m.bytes)}}; }
void Read(const Json& json, StoreSet& m) {
  m = {Bytes(json.at("key").get<std::string>()), Bytes(json.at("bytes").get<std::string>())};
}

Json Body(const StoreGet& m) { return {{"key", HexDigits(m.key)}}; }
void Read(const Json& json, StoreGet& m) { m.key = Bytes(json.at("key").get<std::string>()); }

Json Body(const WorkFailed& m) { return {{"step", ToJson(m.step)}, {"error", m.error}, {"wrong_data", ToJson(m.wrong_data)}}; }
void Read(const Json& json, WorkFailed& m) {
  m = {StepOf(json.at("step")), json.at("error").get<std::string>(), WrongDataOf(json.at("wrong_data"))};
}

Json Body(const Described& m) { return {{"lines", m.lines}}; }
void Read(const Json& json, Described& m) { m.lines = json.at("lines").get<std::vector<std::string>>(); }

}  // namespace

std::string HexDigits(std::string_view bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  text.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += {kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return text;
}

std::string OwnHostName() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

std::string Encode(const ToWorker& message) { return wire::EncodeAny(message, [](const auto& m) { return Body(m); }); }
std::string Encode(const ToSupervisor& message) { return wire::EncodeAny(message, [](const auto& m) { return Body(m); }); }
std::optional<ToWorker> DecodeToWorker(std::string_view packet) { return wire::DecodeAny<ToWorker>(packet, [](const Json& json, auto& m) { Read(json, m); }); }
std::optional<ToSupervisor> DecodeToSupervisor(std::string_view packet) { return wire::DecodeAny<ToSupervisor>(packet, [](const Json& json, auto& m) { Read(json, m); }); }

}  // namespace inquest
