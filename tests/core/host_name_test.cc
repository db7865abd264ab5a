// Names of hosts and addresses: what is cut, and what is not.
#include "core/host_name.h"

#include "tests/catch.h"

namespace inquest {
namespace host_name_test {

TEST_CASE("a host's name is cut at its first dot, an address nowhere", "[host_name]") {
  struct Row {
    const char* text;
    bool is_address;
    const char* short_name;
    const char* kind;
  };
  const Row rows[] = {
      {"node07", false, "node07", "node"},
      {"node07.cluster.local", false, "node07", "node"},
      {"10.244.1.7", true, "10.244.1.7", ""},
      {"10.244.1.7.example.org", false, "10", ""},
      {"10.244.1.256", false, "10", ""},
      {"ip-10-0-0-7.ec2.internal", false, "ip-10-0-0-7", "ip----"},
      {"fd00::7", true, "fd00::7", ""},
      {"fe80::1%eth0", true, "fe80::1%eth0", ""},
      {"::ffff:10.0.0.7", true, "::ffff:10.0.0.7", ""},
      {"cafe.example.org", false, "cafe", "cafe"},
      {"", false, "", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(HostName(row.text).is_address() == row.is_address);
    CHECK(HostName(row.text).Short() == row.short_name);
    CHECK(HostName(row.text).Kind() == row.kind);
  }
}

}  // namespace host_name_test
}  // namespace inquest
