// What is still to be collected, and of whom.
#include "rules/collect.h"

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace collect_test {

using List = std::vector<std::string>;

const std::string kTwoHosts =
    "node01:41201:41301 [0] NCCL INFO ncclCommInitRank comm 0x5581 rank 0 nranks 3 cudaDev 0 nvmlDev 0 busId 9a000 "
    "commId 0xd828 - Init COMPLETE\n"
    "node02:41202:41302 [0] NCCL INFO ncclCommInitRank comm 0x5582 rank 1 nranks 3 cudaDev 0 nvmlDev 0 busId 9a000 "
    "commId 0xd828 - Init COMPLETE\n";
const std::string kKernel =
    "2031-04-05T06:07:08.123456+00:00 node01 kernel: [ 1234.567890] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  "
    "550.54.15\n";

List Still(const Timeline& timeline, List wanted, std::vector<Culprit> culprits = {}) {
  return StillToCollect(timeline, culprits, std::move(wanted));
}

TEST_CASE("collect: never what was given, and of whom it is missing", "[collect-next]") {
  const JobFolder folder({{"job.log", kTwoHosts}, {"node01/kern.log", kKernel}});
  const Timeline timeline = AnalyzePaths(folder.Files()).timeline;
  REQUIRE(timeline.world_size);
  CHECK(Still(timeline, {"kernel log of every host (journalctl -k or dmesg -T)"}) ==
        List{"kernel log of every host (journalctl -k or dmesg -T): of node02 nothing was given"});
  CHECK(Still(timeline, {"NCCL_DEBUG=INFO of all ranks"}) ==
        List{"NCCL_DEBUG=INFO of all ranks: of rank 2 nothing was given"});
  CHECK(Still(timeline, {"stdout and stderr of every rank", "nvidia-smi -q of every host"}) ==
        List{"stdout and stderr of every rank: of rank 2 nothing was given", "nvidia-smi -q of every host"});
  // The culprit's host has given its own; the other's is still missing.
  Culprit here, there;
  here.host = "node01";
  there.host = "node02";
  CHECK(Still(timeline, {"the kernel log of its host"}, {here}).empty());
  CHECK(Still(timeline, {"the kernel log of its host"}, {there}) == List{"the kernel log of its host: node02"});
}

TEST_CASE("collect: whom an item means", "[collect-next]") {
  const Timeline timeline = JudgeText(kTwoHosts).timeline;
  Culprit culprit;
  culprit.rank = GlobalRank{2};
  CHECK(Still(timeline, {"py-spy dump of the absent rank while it hangs"}, {culprit}) ==
        List{"py-spy dump of the absent rank while it hangs: rank 2"});
  culprit.pid = 41203;
  culprit.host = "node03";
  CHECK(Still(timeline, {"py-spy dump --pid <pid of that rank> while it hangs"}, {culprit}) ==
        List{"py-spy dump --pid 41203 while it hangs on node03"});
  CHECK(Still(timeline, {"stdout and stderr of the absent rank"}, {culprit}) ==
        List{"stdout and stderr of the absent rank: rank 2 (pid 41203 on node03)"});
  CHECK(Still(timeline, {"df -h, df -i and quota -s"}, {culprit}) == List{"df -h, df -i and quota -s"});
}

}  // namespace collect_test
}  // namespace inquest
