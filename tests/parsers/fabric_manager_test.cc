// The fabric manager's log: errors of switches, with their number.
#include "tests/catch.h"
#include "tests/support/collect.h"

namespace inquest {

extern const Format kFabricManager;
namespace fabric_manager_test {

TEST_CASE("fabric manager: errors of switches", "[fabric-manager]") {
  const std::string text =
      "[Apr 05 2031 06:07:08] [INFO] [tid 841] Successfully configured all the available NVSwitches to route GPU "
      "NVLink traffic.\n"
      "[Apr 05 2031 06:07:09] [ERROR] [tid 841] detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus "
      "id 00000000:86:00.0 physical id 3 port 61\n"
      "[Apr 05 2031 06:07:10] [ERROR] [tid 841] detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id "
      "00000000:86:00.0 physical id 3 port 33\n";
  const Parsed parsed = ParseText(kFabricManager, text);
  CHECK(parsed.claimed == std::vector<std::uint64_t>{1, 2, 3});
  const auto sxids = Only<SxidReported>(parsed.events);
  REQUIRE(sxids.size() == 2);
  CHECK(sxids[0].sxid == 12028);
  CHECK(sxids[0].severity == SxidReported::Severity::kNonFatal);
  CHECK(sxids[1].sxid == 20034);
  CHECK(sxids[1].severity == SxidReported::Severity::kFatal);
  CHECK(sxids[1].bus_id == "0000:86:00.0");
  CHECK(sxids[1].link == 33);
  REQUIRE(parsed.events[1].at);
  CHECK(FormatTime(*parsed.events[1].at) == "2031-04-05T06:07:10");
  CHECK(ParseText(kFabricManager, "[mms] [error] [tid 3114800 moved\n").claimed.empty());
}

}  // namespace fabric_manager_test
}  // namespace inquest
