// What a host says of a replay that failed: the kernel's log of that time alone, counters that rose, and no NCCL, no
// question.
#include "cli/replay_witnesses.h"

#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "tests/catch.h"

namespace inquest {
namespace replay_witnesses_test {

TEST_CASE("witnesses: of the kernel's log what came since the run began", "[unit][replay]") {
  std::string path = (std::filesystem::temp_directory_path() / "inquest-kmsg-XXXXXX").string();
  const OwnedFd file(::mkstemp(path.data()));
  REQUIRE(file.is_open());
  const auto say = [&](std::string_view line) { std::ofstream(path, std::ios::app) << line << "\n"; };
  say("4,338,1140900,-;NVRM: Xid (PCI:0000:3b:00): 31, pid=77, an old one");
  HostWitness witness(path.c_str());
  say("4,339,5140900,-;NVRM: Xid (PCI:0000:4e:00): 48, pid=78, of a run before");
  witness.Begin();
  say("4,340,9140900,-;NVRM: Xid (PCI:0000:4e:00): 79, pid=2113, GPU has fallen off the bus.");
  CHECK(witness.Ask()["kernel.txt"] ==
        "4,340,9140900,-;NVRM: Xid (PCI:0000:4e:00): 79, pid=2113, GPU has fallen off the bus.\n");
  CHECK_FALSE(witness.Ask().contains("kernel.txt"));
  std::filesystem::remove(path);
  HostWitness blind(path.c_str());
  const auto texts = blind.Ask();
  REQUIRE(texts.contains(HostWitness::kNotHad));
  CHECK(texts.at(HostWitness::kNotHad).find("The kernel's log could not be had: No such file or directory.\n") !=
        std::string::npos);
}

TEST_CASE("witnesses: ranks that are not NCCL's are asked nothing", "[unit][replay]") {
  HostWitness witness("/nowhere");
  CHECK(witness.Look({{.rank = 0, .pid = 1, .env = {{"NCCL_RAS_ADDR", "127.0.0.1:1"}}}}).empty());
}

TEST_CASE("witnesses: counters of links that rose", "[unit][replay]") {
  const LinkCounters before = ReadLinkCounters(
      "GPU 0: NVIDIA A100-SXM4-80GB (UUID: GPU-1)\n\t Link 0: Replay Errors: 0\n\t Link 0: CRC Errors: 3\n\t Link 1: "
      "CRC Errors: N/A\n"
      "GPU 1: NVIDIA A100-SXM4-80GB (UUID: GPU-2)\r\n\t Link 0: CRC Errors: 9\r\n");
  CHECK(before == LinkCounters{{"GPU 0 link 0 CRC Errors", 3},
                               {"GPU 0 link 0 Replay Errors", 0},
                               {"GPU 1 link 0 CRC Errors", 9}});
  LinkCounters after = before;
  CHECK(RisenCounters(before, after).empty());
  after["GPU 0 link 0 CRC Errors"] = 20;
  after["GPU 1 link 0 CRC Errors"] = 4;    // reset in between
  after["GPU 2 link 0 CRC Errors"] = 100;  // was not there before
  CHECK(RisenCounters(before, after) == std::vector<std::string>{"GPU 0 link 0 CRC Errors rose by 17"});
  LinkCounters many, more;
  for (int link = 10; link < 22; ++link)
    many["GPU 0 link " + std::to_string(link) + " CRC Errors"] = 1,
                                                more["GPU 0 link " + std::to_string(link) + " CRC Errors"] = 2;
  CHECK(RisenCounters(many, more).size() == 9);
  CHECK(RisenCounters(many, more).back() == "4 more rose");
  CHECK(ReadLinkCounters("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n").empty());
}

}  // namespace replay_witnesses_test
}  // namespace inquest
