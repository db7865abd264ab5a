// Messages between supervisor and worker: there and back, and what is no message.
#include "replay/wire.h"

#include <string>
#include <string_view>

#include "replay/agent_wire.h"

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

  const auto failed = DecodeToSupervisor(
      Encode(ToSupervisor(WorkFailed{{Phase::kVerified, 2}, "\xff bad", WrongData{3, 17, "1", "2"}})));
  REQUIRE(failed);
  CHECK(std::get<WorkFailed>(*failed).step == Step{Phase::kVerified, 2});
  CHECK(std::get<WorkFailed>(*failed).wrong_data->first == 17);
}

TEST_CASE("wire: what is no message is refused", "[unit][replay]") {
  for (const char* packet :
       {"", "{", "[]", "{}", R"({"kind":"nonsense"})",
        R"({"kind":"reached","step":{"phase":99,"iteration":1},"took":null})",
        R"({"kind":"reached","step":{"phase":1},"took":null})", R"({"kind":"reached","step":[1,1],"took":null})",
        R"({"kind":"reached","step":{"phase":1,"iteration":1.5},"took":null})",
        R"({"kind":"reached","step":{"phase":1,"iteration":1e300},"took":null})",
        R"({"kind":"reached","step":{"phase":1,"iteration":2147483648},"took":null})",
        R"({"kind":"reached","step":{"phase":-1,"iteration":1},"took":null})",
        R"({"kind":"reached","step":{"phase":1,"iteration":1},"took":9223372036854775807})",
        R"({"kind":"proceed","iteration":true})", R"({"kind":"abort","grace":9223372036854775807})",
        R"({"kind":"set","key":"zz","bytes":""})", R"({"kind":"get","key":7})", R"({"kind":3})"}) {
    CAPTURE(packet);
    CHECK_FALSE(DecodeToSupervisor(packet));
    CHECK_FALSE(DecodeToWorker(packet));
  }
}

TEST_CASE("wire: a number that is no integer, or that its place cannot hold, is no message", "[unit][replay]") {
  constexpr std::string_view kEnded =
      R"({"kind":"report","run":RUN,"at":AT,"event":"ended","rank":RANK,"exit_code":CODE,"signal":null,"output":"x","why":""})";
  const auto decoded = [&](std::string_view place, std::string_view number) {
    std::string packet(kEnded);
    for (const std::string_view name : {"RUN", "AT", "RANK", "CODE"})
      packet.replace(packet.find(name), name.size(), name == place ? number : "7");
    return DecodeToCoordinator(packet).has_value();
  };
  CHECK(decoded("", ""));
  for (const char* place : {"RUN", "RANK", "CODE"}) {
    CHECK(decoded(place, "2147483647"));
    CHECK(decoded(place, "-2147483648"));
    for (const char* number : {"2147483648", "-2147483649", "9223372036854775808", "18446744073709551616", "1e300",
                               "-1e300", "1.5", "1.0", "true", "\"1\"", "[1]"}) {
      CAPTURE(place, number);
      CHECK_FALSE(decoded(place, number));
    }
  }
  CHECK(decoded("AT", "3153600000000000000"));  // a hundred years of nanoseconds: two of them differ by what fits
  for (const char* number : {"4611686018427387904", "-4611686018427387904", "9223372036854775808",
                             "522222222222222222222222222222222222222222222222222222222222222222222", "-1e19", "0.5"}) {
    CAPTURE(number);
    CHECK_FALSE(decoded("AT", number));
  }
}
