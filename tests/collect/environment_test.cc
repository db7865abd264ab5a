// What of an environment leaves the node, and what is masked.
#include "collect/environment.h"

#include "tests/catch.h"

using namespace inquest;

TEST_CASE("of an environment only the job's own settings leave, and no secrets", "[unit][collect]") {
  struct Row {
    std::string_view entry, kept;  ///< empty: counted alone
  };
  const Row rows[] = {
      {"NCCL_SOCKET_IFNAME=eth0,^lo", "NCCL_SOCKET_IFNAME=eth0,^lo"},
      {"CUDA_VISIBLE_DEVICES=GPU-5d3c1a4e-93b1-4c2e-8f0a-1b2c3d4e5f60,1",
       "CUDA_VISIBLE_DEVICES=GPU-5d3c1a4e-93b1-4c2e-8f0a-1b2c3d4e5f60,1"},
      {"TORCHELASTIC_RUN_ID=9b2f1f0e-7c1d-4a47-b2ab-0c6d2f3e4a5b",
       "TORCHELASTIC_RUN_ID=9b2f1f0e-7c1d-4a47-b2ab-0c6d2f3e4a5b"},
      {"SLURM_JOB_NODELIST=node[0001-0128,0200-0312]", "SLURM_JOB_NODELIST=node[0001-0128,0200-0312]"},
      {"SLURM_TASKS_PER_NODE=8(x00000000000000000000000000000000000128)",
       "SLURM_TASKS_PER_NODE=8(x00000000000000000000000000000000000128)"},
      {"NCCL_TOPO_FILE=/opt/Microsoft/NDv5-Topology/ndv5-topo-With-A-Very-Long-Name-2031.xml",
       "NCCL_TOPO_FILE=/opt/Microsoft/NDv5-Topology/ndv5-topo-With-A-Very-Long-Name-2031.xml"},
      {"RANK=3", "RANK=3"},
      {"NCCL_EMPTY=", "NCCL_EMPTY="},
      {"NCCL_NO_EQUALS", "NCCL_NO_EQUALS="},
      {"SLURM_JWT=eyJhbGciOiJIUzI1NiJ9", "SLURM_JWT=<masked>"},
      {"NCCL_API_Key=x", "NCCL_API_Key=<masked>"},
      {"NCCL_NET_PLUGIN=hf_abcdefghijklmnop", "NCCL_NET_PLUGIN=<masked>"},
      {"TORCH_X=0123456789abcdef0123456789abcdef01234567", "TORCH_X=<masked>"},
      {"TORCH_X=a8Jk2lQp0ZxV7mNb3Tt5Rr1Ss9Ww4Ee6Yy", "TORCH_X=<masked>"},
      {"TORCH_URL=https://me:pass@host/x", "TORCH_URL=<masked>"},
      {"TORCH_URL=https://host/x?sig=abc&api_key=1", "TORCH_URL=<masked>"},
      {"TORCH_URL=https://host/me@x", "TORCH_URL=https://host/me@x"},
      {"SLURM_DB_PASS=x", "SLURM_DB_PASS=<masked>"},
      {"TORCH_MAIL_PW=x", "TORCH_MAIL_PW=<masked>"},
      {"UCX_SITE_PWD=x", "UCX_SITE_PWD=<masked>"},
      {"NCCL_CLOUD_CRED=x", "NCCL_CLOUD_CRED=<masked>"},
      {"NCCL_card_pin=1234", "NCCL_card_pin=<masked>"},
      {"NCCL_X_PASSIVE=1", "NCCL_X_PASSIVE=1"},
      {"TORCH_X=curl -H 'Authorization: Bearer abc' https://host/x", "TORCH_X=<masked>"},
      {"NCCL_DEBUG_FILE=/logs/bearer x1/nccl.%h.%p", "NCCL_DEBUG_FILE=<masked>"},
      {"NCCL_DEBUG_FILE=/logs/api_token=x1/nccl.%h.%p", "NCCL_DEBUG_FILE=<masked>"},
      {"NCCL_DEBUG_FILE=/logs/my-project-p2/nccl.%h.%p", "NCCL_DEBUG_FILE=/logs/my-project-p2/nccl.%h.%p"},
      {"SLURM_X=mysql -u me -pS3cret db", "SLURM_X=<masked>"},
      {"SLURM_X=sshpass -p S3cret ssh host", "SLURM_X=<masked>"},
      {"SLURM_X=tool --password S3cret", "SLURM_X=<masked>"},
      {"SLURM_X=tool --db-pw=S3cret", "SLURM_X=<masked>"},
      {"SLURM_X=tool --verbose -q", "SLURM_X=tool --verbose -q"},
      {"NCCL_X=a\nLD_PRELOAD=b", "NCCL_X=a LD_PRELOAD=b"},
      {"AWS_SECRET_ACCESS_KEY=x", ""},
      {"HOME=/root", ""},
      {"", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.entry);
    const std::string_view entries[] = {row.entry};
    const std::string text = PublicEnvironment(entries);
    CHECK(text == (row.kept.empty() ? "# 1 other variables were left out\n"
                                    : std::string(row.kept) + "\n# 0 other variables were left out\n"));
  }
}

TEST_CASE("words that look like secrets are masked in a text", "[unit][collect]") {
  CHECK(MaskSecrets("BOOT_IMAGE=/vmlinuz-6.1.0 root=UUID=5d3c1a4e-93b1-4c2e-8f0a-1b2c3d4e5f60 iommu=pt\n") ==
        "BOOT_IMAGE=/vmlinuz-6.1.0 root=UUID=5d3c1a4e-93b1-4c2e-8f0a-1b2c3d4e5f60 iommu=pt\n");
  CHECK(MaskSecrets("quiet ds=nocloud;s=http://u:p@seed/ token=abc ghp_0123456789ab x\n") ==
        "quiet ds=<masked> token=<masked> <masked> x\n");
  CHECK(MaskSecrets("") == "");
  CHECK(MaskSecrets("Authorization: Bearer abc\nnext -p S3 db -pS4 a --db-pwd: S5 b\n") ==
        "Authorization: <masked> <masked>\nnext -p <masked> db <masked> a --db-pwd: <masked> b\n");
  CHECK(MaskSecrets("NCCL_DEBUG_FILE=/logs/token=S6/x\nNCCL_DEBUG_FILE = /logs/nccl.log\nbearer\nof news") ==
        "NCCL_DEBUG_FILE=<masked>\nNCCL_DEBUG_FILE = /logs/nccl.log\nbearer\nof news");
}

TEST_CASE("a path that an environment names keeps no secret in its parts", "[unit][collect]") {
  CHECK(MaskPath("/proc/7/root/logs/api_token=S6/nccl.node07.11.log") ==
        "/proc/7/root/logs/<masked>/nccl.node07.11.log");
  CHECK(MaskPath("/logs/0123456789abcdef0123456789abcdef01234567.log") == "/logs/<masked>");
  CHECK(MaskPath("/logs/nccl.log/") == "/logs/nccl.log/");
  CHECK(MaskPath("") == "");
}
