// Bad states of hosts beside every case of the corpus: they explain nothing that they do not fit.
#include <algorithm>
#include <filesystem>
#include <set>

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace host_states_property_test {

namespace fs = std::filesystem;

constexpr std::string_view kStates = R"(CA 'mlx5_8'
	Port 1:
		State: Down
		Physical state: Polling
		Rate: 10
		Link layer: InfiniBand
max locked memory           (kbytes, -l) 64
open files                          (-n) 1024
max user processes                  (-u) 4096
Filesystem      Size  Used Avail Use% Mounted on
shm              64M     0   64M   0% /dev/shm
BOOT_IMAGE=/vmlinuz root=/dev/sda2 ro intel_iommu=on
1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000
2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 qdisc mq state UP
3: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN group default
18:00.0 PCI bridge: Broadcom / LSI PEX89144 (rev b0)
		ACSCtl:	SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-
)";

using Blamed = std::set<std::pair<int, std::string>>;

Blamed BlamedBy(const Verdict& verdict) {
  Blamed blamed;
  for (const Culprit& culprit : verdict.culprits)
    blamed.emplace(culprit.rank ? culprit.rank->value : -1, culprit.host.value_or(""));
  return blamed;
}

TEST_CASE("Bad states beside any job change neither its cause nor its culprits", "[property]") {
  const JobFolder states({{"states.txt", std::string(kStates)}});
  for (const auto& entry : fs::directory_iterator(INQUEST_SOURCE_DIR "/corpus")) {
    std::vector<std::string> files;
    for (const auto& file : fs::recursive_directory_iterator(entry.path()))
      if (file.is_regular_file() && file.path().filename() != "case.json") files.push_back(file.path().string());
    std::sort(files.begin(), files.end());
    const Verdict before = AnalyzePaths(files).verdict;
    files.push_back(states.Files().front());
    const Verdict after = AnalyzePaths(files).verdict;
    CAPTURE(entry.path().filename().string());
    // A stall over peer-to-peer that nothing explains is what access control at a bridge does explain.
    if (before.cause == "unknown" && after.rule == "peer-traffic-redirected") continue;
    CHECK(after.cause == before.cause);
    CHECK(BlamedBy(after) == BlamedBy(before));
    if (before.cause == "healthy")
      CHECK(std::none_of(after.findings.begin(), after.findings.end(),
                         [&](const Finding& f) { return !f.cause.empty() && FindFinding(before, f.rule) == nullptr; }));
  }
}

}  // namespace host_states_property_test
}  // namespace inquest
