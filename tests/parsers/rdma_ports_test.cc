// Ports of RDMA devices, in the words of each tool that shows them.
#include "tests/catch.h"
#include "tests/support/collect.h"

namespace inquest {

extern const Format kRdmaPorts;
namespace rdma_ports_test {

using State = LinkPort::State;

constexpr std::string_view kIbstat = R"(CA 'mlx5_0'
	CA type: MT4129
	Port 1:
		State: Active
		Physical state: LinkUp
		Rate: 400
		Base lid: 17
		SM lid: 1
		Link layer: InfiniBand
CA 'mlx5_1'
	Port 1:
		State: Initializing
		Physical state: LinkUp
		Rate: 200
		SM lid: 0
		Link layer: InfiniBand
)";

TEST_CASE("ibstat: a port is what stands below its device, cited by its state") {
  const auto events = ParseLines(kRdmaPorts, kIbstat);
  const auto ports = Only<LinkPort>(events);
  REQUIRE(ports.size() == 2);
  CHECK(ports[0].device == "mlx5_0");
  CHECK(ports[0].port == 1);
  CHECK(ports[0].state == State::kActive);
  CHECK(ports[0].phys_state == "LinkUp");
  CHECK(ports[0].rate_gbps == 400);
  CHECK(ports[0].sm_lid == 1);
  CHECK(ports[0].link_layer == "InfiniBand");
  CHECK(ports[1].device == "mlx5_1");
  CHECK(ports[1].state == State::kInit);
  CHECK(ports[1].sm_lid == 0);
  CHECK(events[1].where.line == 12);
}

TEST_CASE("ibstatus, ibv_devinfo and rdma link show the same as ibstat") {
  struct Row {
    std::string_view text;
    std::string device;
    State state;
  };
  const Row rows[] = {
      {"Infiniband device 'mlx5_3' port 1 status:\n\tdefault gid:\t fe80:0000:0000:0000:a088:c203:00d1:1030\n\tbase "
       "lid:\t 0x11\n\tsm lid:\t\t 0x1\n\tstate:\t\t 1: DOWN\n\tphys state:\t 2: Polling\n\trate:\t\t 10 Gb/sec (4X "
       "SDR)\n\tlink_layer:\t InfiniBand\n",
       "mlx5_3", State::kDown},
      {"Infiniband device 'mlx5_3' port 1 status:\n\tstate:\t\t 4: ACTIVE\n", "mlx5_3", State::kActive},
      {"hca_id:\tmlx5_bond_0\n\ttransport:\t\t\tInfiniBand (0)\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_DOWN "
       "(1)\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t1024 (3)\n\t\t\tlink_layer:\t\tEthernet\n",
       "mlx5_bond_0", State::kDown},
      {"hca_id: mlx5_4\n        port:   1\n                        state:                  PORT_ARMED (3)\n", "mlx5_4",
       State::kInit},
      {"link mlx5_0/1 state DOWN physical_state DISABLED netdev ens1f0np0 \n", "mlx5_0", State::kDown},
      {"link mlx5_5/1 subnet_prefix fe80:0000:0000:0000 lid 13 sm_lid 1 lmc 0 state ACTIVE physical_state LINK_UP \n",
       "mlx5_5", State::kActive},
      {"1/1: mlx5_0/1: subnet_prefix fe80:0000:0000:0000 lid 13399 sm_lid 49151 lmc 0 state INIT physical_state "
       "LINK_UP\n",
       "mlx5_0", State::kInit},
      {"root@node07:~# ibstat\nCA 'hfi1_0'\n\tPort 1:\n\t\tState: Down\n", "hfi1_0", State::kDown},
      {"CA: 'mlx5_2'\nState: Active\nPhysical state: LinkUp\n", "mlx5_2", State::kActive},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const auto ports = Only<LinkPort>(ParseLines(kRdmaPorts, row.text));
    REQUIRE(ports.size() == 1);
    CHECK(ports[0].device == row.device);
    CHECK(ports[0].port == 1);
    CHECK(ports[0].state == row.state);
  }
  CHECK(Only<LinkPort>(ParseLines(kRdmaPorts, rows[4].text))[0].netdev == "ens1f0np0");
  CHECK(Only<LinkPort>(ParseLines(kRdmaPorts, rows[5].text))[0].sm_lid == 1);
  CHECK(ParseLines(kRdmaPorts, rows[7].text)[0].origin.host->value == "node07");
}

TEST_CASE("GID tables: show_gids and ibv_devinfo -v") {
  const auto shown = Only<PortAddress>(
      ParseLines(kRdmaPorts,
                 "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV\n"
                 "mlx5_0\t1\t0\tfe80:0000:0000:0000:a088:c2ff:fed1:1000\t\t\tv1\tens1f0np0\n"
                 "mlx5_0\t1\t3\t0000:0000:0000:0000:0000:ffff:0a2c:010b\t10.44.1.11  \tv2\tens1f0np0\n"));
  REQUIRE(shown.size() == 2);
  CHECK(shown[0].index == 0);
  CHECK(shown[0].roce_version == 1);
  CHECK(shown[1].index == 3);
  CHECK(shown[1].roce_version == 2);
  const auto listed = Only<PortAddress>(
      ParseLines(kRdmaPorts, "hca_id:\tmlx5_0\n\t\tport:\t1\n\t\t\tGID[  2]:\t\tfe80::a088:c2ff:fed1:1000, RoCE v2\n"));
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].device == "mlx5_0");
  CHECK(listed[0].index == 2);
  CHECK(listed[0].roce_version == 2);
}

TEST_CASE("Lines that look like a port's belong to nobody without a device") {
  const std::string_view texts[] = {"State: Active\n", "\tRate: 0.001\n", "learning    Rate: 3e-4\n",
                                    "link_layer: Ethernet\n", "step 3 state: 4: ACTIVE learning\n"};
  for (const std::string_view text : texts) {
    CAPTURE(text);
    CHECK(ParseText(kRdmaPorts, text).claimed.empty());
  }
}

}  // namespace rdma_ports_test
}  // namespace inquest
