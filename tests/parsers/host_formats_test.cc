// What hosts say of themselves: interfaces, limits, /dev/shm, kernel, environment, PCI.
#include "parsers/formats/host_tools.h"
#include "parsers/formats/nccl.h"
#include "tests/catch.h"
#include "tests/support/collect.h"

namespace inquest {

extern const Format kInterfaces, kHostLimits, kEnvironment, kLspci;
namespace host_formats_test {

TEST_CASE("Prompts name the host and the command") {
  struct Row {
    std::string_view text, host, command;
  };
  const Row rows[] = {
      {"root@node07:~# ibstat", "node07", "ibstat"},
      {"[ubuntu@node07 ~]$ ip -s link", "node07", "ip -s link"},
      {"(base) ana@gpu3:/data/run 1$ ulimit -a", "gpu3", "ulimit -a"},
      {"[root@node07.cluster.example run]# df -h /dev/shm", "node07.cluster.example", "df -h /dev/shm"}};
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto prompt = ReadPrompt(row.text);
    REQUIRE(prompt);
    CHECK(prompt->host == row.host);
    CHECK(prompt->command == row.command);
  }
  for (const std::string_view text : {"$ ibstat", "mail to ana@example.org for more", "# df -h"}) {
    CAPTURE(text);
    CHECK_FALSE(ReadPrompt(text));
  }
}

TEST_CASE("Interfaces: ip, ifconfig and ethtool") {
  using State = LinkPort::State;
  struct Row {
    std::string_view text;
    std::string name;
    State state;
    std::optional<int> mtu;
  };
  const Row rows[] = {
      {"2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 9000 qdisc mq state UP mode DEFAULT group default qlen 1000\n",
       "eth0", State::kActive, 9000},
      {"1: lo: <LOOPBACK,UP,LOWER_UP> mtu 65536 qdisc noqueue state UNKNOWN group default qlen 1000\n", "lo",
       State::kActive, 65536},
      {"3: docker0: <NO-CARRIER,BROADCAST,MULTICAST,UP> mtu 1500 qdisc noqueue state DOWN group default\n", "docker0",
       State::kDown, 1500},
      {"4: ib0: <BROADCAST,MULTICAST> mtu 4092 qdisc noop state DOWN group default qlen 256\n", "ib0", State::kDown,
       4092},
      {"7: veth1a@if6: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1450 qdisc noqueue state UP\n", "veth1a", State::kActive,
       1450},
      {"eth1             DOWN           52:54:00:11:22:33 <NO-CARRIER,BROADCAST,MULTICAST,UP>\n", "eth1", State::kDown,
       std::nullopt},
      {"bond0: flags=5187<UP,BROADCAST,RUNNING,MASTER,MULTICAST>  mtu 1500\n", "bond0", State::kActive, 1500},
      {"eth2: flags=4099<UP,BROADCAST,MULTICAST>  mtu 1500\n", "eth2", State::kDown, 1500},
      {"eth0      Link encap:Ethernet  HWaddr 52:54:00:11:22:33\n          UP BROADCAST RUNNING MULTICAST  MTU:1500  "
       "Metric:1\n",
       "eth0", State::kActive, 1500},
      {"Settings for ens1:\n\tSpeed: 100000Mb/s\n\tLink detected: no\n", "ens1", State::kDown, std::nullopt},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto events = ParseLines(kInterfaces, row.text);
    const auto ports = Only<LinkPort>(events);
    REQUIRE(ports.size() == 1);
    CHECK(ports[0].device == row.name);
    CHECK(ports[0].port == 0);
    CHECK(ports[0].state == row.state);
    CHECK(ports[0].mtu == row.mtu);
    CHECK_FALSE(events[0].origin.rank);  // `2: ` is no label of srun
  }
  const auto addresses = Only<PortAddress>(
      ParseLines(kInterfaces,
                 "2: eth0: <UP,LOWER_UP> mtu 1500\n    inet 10.3.0.17/24 brd 10.3.0.255 scope global dynamic eth0\n"
                 "    inet6 fe80::fc:ff:fe00:1/64 scope link\neth9: flags=4163<UP,RUNNING>  mtu 1500\n        inet "
                 "10.4.0.17  netmask 255.255.255.0  broadcast 10.4.0.255\n"));
  REQUIRE(addresses.size() == 3);
  CHECK(addresses[0].address == "10.3.0.17");
  CHECK(addresses[1].address == "fe80::fc:ff:fe00:1");
  CHECK(addresses[2].device == "eth9");
}

TEST_CASE("Limits: bash, zsh, dash and /proc") {
  using Of = HostLimit::Of;
  struct Row {
    std::string_view text;
    Of of;
    bool unlimited;
    std::int64_t value;
  };
  const Row rows[] = {
      {"max locked memory           (kbytes, -l) 64\n", Of::kLockedMemory, false, 65536},
      {"max locked memory       (kbytes, -l) unlimited\n", Of::kLockedMemory, true, 0},
      {"max locked memory (kbytes): 64\n", Of::kLockedMemory, false, 65536},
      {"open files                          (-n) 1024\n", Of::kOpenFiles, false, 1024},
      {"max user processes                  (-u) 4096\n", Of::kProcesses, false, 4096},
      {"-l: locked-in-memory size (kbytes)  8192\n", Of::kLockedMemory, false, 8388608},
      {"locked memory(kbytes) 64\n", Of::kLockedMemory, false, 65536},
      {"-n: file descriptors                1024\n", Of::kOpenFiles, false, 1024},
      {"Max locked memory         65536                unlimited            bytes     \n", Of::kLockedMemory, false,
       65536},
      {"Max open files            1024                 1048576              files     \n", Of::kOpenFiles, false, 1024},
      {"Max processes             unlimited            unlimited            processes \n", Of::kProcesses, true, 0},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto limits = Only<HostLimit>(ParseLines(kHostLimits, row.text));
    REQUIRE(limits.size() == 1);
    CHECK(limits[0].of == row.of);
    CHECK(limits[0].unlimited == row.unlimited);
    CHECK(limits[0].value == row.value);
  }
}

TEST_CASE("The size of /dev/shm: df in all its units, mount") {
  struct Row {
    std::string_view text;
    std::int64_t total;
    std::optional<std::int64_t> free;
  };
  const Row rows[] = {
      {"Filesystem      Size  Used Avail Use% Mounted on\nshm              64M  4.0K   64M   1% /dev/shm\n", 64 << 20,
       64 << 20},
      {"Filesystem      Size  Used Avail Use% Mounted on\nshm              64M   64M     0 100% /dev/shm\n", 64 << 20,
       0},
      {"Filesystem     1K-blocks  Used Available Use% Mounted on\ntmpfs              65536   512     65024   1% "
       "/dev/shm\n",
       64 << 20, 65024 << 10},
      {"Filesystem       1B-blocks  Used   Available Use% Mounted on\ntmpfs             67108864     0    67108864   "
       "0% /dev/shm\n",
       64 << 20, 64 << 20},
      {"Filesystem     1M-blocks  Used Available Use% Mounted on\ntmpfs                 64     0        64   0% "
       "/dev/shm\n",
       64 << 20, 64 << 20},
      {"Filesystem     Type   Size  Used Avail Use% Mounted on\ntmpfs          tmpfs   64M     0   64M   0% /dev/shm\n",
       64 << 20, 64 << 20},
      {"shm on /dev/shm type tmpfs (rw,nosuid,nodev,noexec,relatime,size=65536k)\n", 64 << 20, std::nullopt},
      {"tmpfs /dev/shm tmpfs rw,seclabel,nosuid,nodev,size=65536k 0 0\n", 64 << 20, std::nullopt},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto shm = Only<ShmSize>(ParseLines(kHostLimits, row.text));
    REQUIRE(shm.size() == 1);
    CHECK(shm[0].total_bytes == row.total);
    CHECK(shm[0].free_bytes == row.free);
  }
}

TEST_CASE("Kernel, command line, IOMMU") {
  const auto events =
      ParseLines(kHostLimits,
                 "uname: Linux rowan09 5.15.0-105-generic #115-Ubuntu SMP Mon Apr 15 09:52:04 UTC 2024 x86_64 x86_64 "
                 "x86_64 GNU/Linux\n"
                 "Apr  5 06:07:08 node017 kernel: Linux version 5.4.0-150-generic (buildd@bos03) (gcc version 9.4.0) "
                 "#167-Ubuntu SMP\n"
                 "[    0.000000] Command line: BOOT_IMAGE=/vmlinuz-5.15 root=/dev/sda2 ro intel_iommu=on\n"
                 "[    1.114411] iommu: Default domain type: Translated\n");
  const auto facts = Only<HostFact>(events);
  REQUIRE(facts.size() == 4);
  CHECK(facts[0].value == "5.15.0-105-generic");
  CHECK(events[0].origin.host->value == "rowan09");
  CHECK(facts[1].value == "5.4.0-150-generic");
  CHECK(events[1].origin.host->value == "node017");
  CHECK(facts[2].of == HostFact::Of::kCommandLine);
  CHECK(facts[3].value == "Translated");
  CHECK(ParseLines(kHostLimits, "Command line: python train.py --data-root=/data\n").empty());
}

TEST_CASE("Environment: assignments, and not advice") {
  const auto set = Only<EnvironmentSet>(
      ParseLines(kEnvironment,
                 "NCCL_SOCKET_IFNAME=eth0\nexport NCCL_IB_HCA=\"mlx5_0,mlx5_1\"\ndeclare -x NCCL_ALGO=\"Ring\"\n"
                 "+ MASTER_ADDR=node01 MASTER_PORT=29500 torchrun --nnodes 2 train.py\n"));
  REQUIRE(set.size() == 5);
  CHECK(set[0].value == "eth0");
  CHECK(set[1].name == "NCCL_IB_HCA");
  CHECK(set[1].value == "mlx5_0,mlx5_1");
  CHECK(set[2].value == "Ring");
  CHECK(set[4].name == "MASTER_PORT");
  for (const std::string_view text : {"try NCCL_IB_DISABLE=1 if it hangs\n", "export MASTER_ADDR=$(hostname)\n",
                                      "[INFO] WORLD_SIZE=8\n", "MASTER_ADDR=$HEAD\n"}) {
    CAPTURE(text);
    CHECK(ParseText(kEnvironment, text).events.empty());
  }
}

TEST_CASE("PCI: access control of bridges, links of cards") {
  const auto events =
      ParseLines(kLspci,
                 "18:00.0 PCI bridge: Broadcom / LSI PEX89144 (rev b0) (prog-if 00 [Normal decode])\n"
                 "\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-\n"
                 "0000:3b:00.0 3D controller [0302]: NVIDIA Corporation GH100 [H100 SXM5 80GB] [10de:2330] (rev a1)\n"
                 "\t\tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n"
                 "\t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x8 (downgraded)\n"
                 "\t\tLnkSta2: Current De-emphasis Level: -3.5dB\n");
  const auto access = Only<PcieAcs>(events);
  const auto links = Only<PcieLink>(events);
  REQUIRE(access.size() == 1);
  CHECK(access[0].on);
  CHECK(access[0].bus_id == "0000:18:00.0");
  REQUIRE(links.size() == 1);
  CHECK(links[0].bus_id == "0000:3b:00.0");
  CHECK(links[0].width == 8);
  CHECK(links[0].capable_width == 16);
  CHECK(links[0].capable_speed_gt == 32);
}

TEST_CASE("PCI: access control as grep leaves it") {
  const auto events = ParseLines(
      kLspci,
      "                ACSCtl: SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n"
      "                ACSCtl: SrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-\n");
  const auto access = Only<PcieAcs>(events);
  REQUIRE(access.size() == 1);
  CHECK(access[0].on);
  CHECK(access[0].bus_id.empty());
}

TEST_CASE("NCCL says what it talks over") {
  struct Row {
    std::string_view message;
    NetworkUsed::Use use;
    std::vector<std::string> devices;
    std::string address;
  };
  const Row rows[] = {
      {"Bootstrap : Using eth0:10.3.0.17<0>", NetworkUsed::Use::kBootstrap, {"eth0"}, "10.3.0.17"},
      {"Bootstrap : Using [0]ib0:10.3.0.17<0>", NetworkUsed::Use::kBootstrap, {"ib0"}, "10.3.0.17"},
      {"Bootstrap: Using eth0:fe80::1%eth0<0>", NetworkUsed::Use::kBootstrap, {"eth0"}, "fe80::1"},
      {"NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.3.0.17<0>",
       NetworkUsed::Use::kRdma,
       {"mlx5_0:1", "mlx5_1:1"},
       "10.3.0.17"},
      {"NET/IB : Using [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE} [RO]; OOB eth0:10.3.0.17<0>",
       NetworkUsed::Use::kRdma,
       {"mlx5_0:1", "mlx5_1:1"},
       "10.3.0.17"},
      {"NET : Using interface eth0:10.3.0.17<0>", NetworkUsed::Use::kBootstrap, {"eth0"}, "10.3.0.17"},
      {"Using network AWS Libfabric", NetworkUsed::Use::kChosen, {"AWS Libfabric"}, ""},
      {"NET/Socket : Using [0]eth0:10.3.0.17<0> [1]eth1:10.4.0.17<0>",
       NetworkUsed::Use::kSocket,
       {"eth0", "eth1"},
       "10.3.0.17"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.message);
    const auto used = ReadNetwork(row.message);
    REQUIRE(used);
    CHECK(used->use == row.use);
    CHECK(used->devices == row.devices);
    CHECK(used->address == row.address);
  }
  CHECK_FALSE(ReadNetwork("NET/IB : No device found."));
  CHECK_FALSE(ReadNetwork("NET/IB : Using interface ib0 for sideband communication"));
}

}  // namespace host_formats_test
}  // namespace inquest
