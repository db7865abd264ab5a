// Messages between supervisor and worker: there and back, and what is no message.
#include "replay/wire.h"

#include "tests/catch.h"

using namespace inquest;

TEST_CASE("wire: messages arrive as they were sent", "[unit][replay]") {
  StartWork start;
  start.engine = "gloo";
  start.setup.nranks = 3;
  start.setup.call = {.operation = Operation::kAllToAll, .count = 5};
  start.setup.call.splits = {1, 2, 3};
  start.setup.options = {{"interface", "lo"}};
  start.faults = {{.rank = 1, .kind = Fault::Kind::kAlter, .call = Call{.count = 4}}};
  const auto started = DecodeToWorker(Encode(ToWorker(start)));
  REQUIRE(started);
  const auto& got = std::get<StartWork>(*started);
  CHECK(got.setup.call == start.setup.call);
  CHECK(got.setup.options == start.setup.options);
  REQUIRE(got.faults.size() == 1);
  CHECK(got.faults[0].call == start.faults[0].call);

  const std::string bytes("\0\xff\"\n", 4);
  const auto set = DecodeToSupervisor(Encode(ToSupervisor(StoreSet{"key \xc3", bytes})));
  REQUIRE(set);
  CHECK(std::get<StoreSet>(*set).bytes == bytes);
  CHECK(std::get<StoreSet>(*set).key == "key \xc3");

  const auto failed = DecodeToSupervisor(Encode(ToSupervisor(WorkFailed{{Phase::kVerified, 2}, "\xff bad", WrongData{3, 17, "1", "2"}})));
  REQUIRE(failed);
  CHECK(std::get<WorkFailed>(*failed).step == Step{Phase::kVerified, 2});
  CHECK(std::get<WorkFailed>(*failed).wrong_data->first == 17);
}

TEST_CASE("wire: what is no message is refused", "[unit][replay]") {
  for (const char* packet : {"", "{", "[]", "{}", R"({"kind":"nonsense"})", R"({"kind":"reached","step":{"phase":99,"iteration":1},"took":null})",
                             R"({"kind":"reached","step":{"phase":1},"took":null})", R"({"kind":"reached","step":[1,1],"took":null})",
                             R"({"kind":"reached","step":{"phase":1,"iteration":1.5},"took":null})", R"({"kind":"reached","step":{"phase":1,"iteration":1e300},"took":null})",
                             R"({"kind":"reached","step":{"phase":1,"iteration":2147483648},"took":null})", R"({"kind":"reached","step":{"phase":-1,"iteration":1},"took":null})",
                             R"({"kind":"reached","step":{"phase":1,"iteration":1},"took":9223372036854775807})", R"({"kind":"proceed","iteration":true})",
                             R"({"kind":"abort","grace":9223372036854775807})", R"({"kind":"set","key":"zz","bytes":""})",
                             R"({"kind":"get","key":7})", R"({"kind":3})"}) {
    CAPTURE(packet);
    CHECK_FALSE(DecodeToSupervisor(packet));
    CHECK_FALSE(DecodeToWorker(packet));
  }
}
