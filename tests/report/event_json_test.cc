// What was read in a line, as the JSON report prints it.
#include "report/event_json.h"

#include <nlohmann/json.hpp>

#include "tests/catch.h"

namespace inquest {
namespace event_json_test {

using nlohmann::json;

json Printed(const What& what) { return json::parse(EventInJson(what).text()); }

template <class Kind>
What Made(void (*fill)(Kind&)) {
  Kind kind;
  fill(kind);
  return kind;
}

TEST_CASE("event JSON: the fields that the line gives, by their names", "[json]") {
  const struct {
    What what;
    json printed;
  } rows[] = {
      {Made<XidReported>([](XidReported& xid) {
         xid.xid = 79;
         xid.bus_id = "0000:4e:00.0";
         xid.pid = 2113;
         xid.uptime = std::chrono::milliseconds(64889500);
       }),
       {{"kind", "xid"}, {"xid", 79}, {"bus_id", "0000:4e:00.0"}, {"pid", 2113}, {"uptime", 64889.5}}},
      {Made<ProcessExit>([](ProcessExit& exit) {
         exit.rank = GlobalRank{3};
         exit.exit_code = 1;
         exit.reporter = Reporter::kSrun;
       }),
       {{"kind", "process-exit"}, {"rank", 3}, {"exit_code", 1}, {"first_observed", false}, {"reporter", "srun"}}},
      {Made<PcieError>([](PcieError& error) {
         error.severity = PcieError::Severity::kLinkDown;
         error.bus_id = "0000:00:02.0";
       }),
       {{"kind", "pcie-error"}, {"severity", "link-down"}, {"bus_id", "0000:00:02.0"}, {"recovered", false}}},
      {Made<KernelNotice>([](KernelNotice& notice) {
         notice.subsystem = KernelPart::kMlx5;
         notice.what = KernelNews::kLinkDown;
         notice.device = "0000:9b:00.0 ens3";
       }),
       {{"kind", "kernel-notice"}, {"subsystem", "mlx5"}, {"what", "link-down"}, {"device", "0000:9b:00.0 ens3"}}},
      {Made<StackSeen>([](StackSeen& stack) {
         stack.tool = "py-spy";
         stack.at = Activity::kCheckpoint;
         stack.frame = "save (train.py:84)";
       }),
       {{"kind", "stack"},
        {"tool", "py-spy"},
        {"at", "checkpoint"},
        {"frame", "save (train.py:84)"},
        {"raised", false}}},
      {LogMessage(), nullptr},
  };
  for (const auto& row : rows) CHECK(Printed(row.what) == row.printed);
}

TEST_CASE("event JSON: what is no exact number for every reader is a text", "[json]") {
  CommInit init;
  init.comm = (std::uint64_t{1} << 53) + 1;
  init.comm_id = std::uint64_t{1} << 53;
  const json printed = Printed(init);
  CHECK(printed["comm"] == "9007199254740993");
  CHECK(printed["comm_id"] == 9007199254740992);
}

template <class... Kinds>
void CheckEach(std::type_identity<std::variant<Kinds...>>) {
  const auto check = [](const What& what) {
    CAPTURE(KindOf(what));
    const json printed = Printed(what);
    if (std::holds_alternative<LogMessage>(what))
      CHECK(printed.is_null());
    else
      CHECK(printed["kind"] == std::string(KindOf(what)));
  };
  (check(What(Kinds())), ...);
}

TEST_CASE("event JSON: every kind is printed by its list of fields", "[json]") {
  CheckEach(std::type_identity<WhatKinds>());
}

}  // namespace event_json_test
}  // namespace inquest
