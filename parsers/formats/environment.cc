// environment.cc: variables that decide how ranks meet and talk, from `env`, `printenv`, shell traces and
// /etc/nccl.conf. Format:  lines that are nothing but assignments, perhaps with a command behind them
//            NCCL_SOCKET_IFNAME=eth0                 export NCCL_IB_HCA=mlx5          declare -x NCCL_DEBUG="INFO"
//            + MASTER_ADDR=node01 MASTER_PORT=29500 WORLD_SIZE=16 torchrun ...        (set -x)
// Clock:   none.        Not read: variables in other text (advice names them, too), values that a shell has yet to put
// in.
#include <algorithm>

#include "core/ascii.h"
#include "parsers/formats.h"
#include "parsers/formats/host_tools.h"

namespace inquest {
namespace {

using std::string_view;

constexpr string_view kJob[] = {"MASTER_ADDR", "MASTER_PORT", "WORLD_SIZE", "CUDA_VISIBLE_DEVICES",
                                "GLOO_SOCKET_IFNAME"};

bool IsName(string_view name) {
  return !name.empty() && name.size() <= 64 && std::all_of(name.begin(), name.end(), IsWordChar);
}

string_view Unquoted(string_view value) {
  const bool quoted =
      value.size() >= 2 && (value.front() == '"' || value.front() == '\'') && value.front() == value.back();
  return quoted ? value.substr(1, value.size() - 2) : value;
}

string_view NextSetting(string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
  const string_view word = text.substr(0, text.find_first_of(" \t"));
  text.remove_prefix(word.size());
  return word;
}

class EnvironmentParser final : public Parser {
 public:
  bool Consume(const Record& record, EventSink& out) override {
    if (states_.ConsumePrompt(record)) return true;
    static constexpr string_view kBefore[] = {"+", "++", "+++", "export", "declare", "-x", "env", "setenv"};
    string_view rest = record.text.substr(0, 4096);
    bool ours = false;
    for (string_view word = NextSetting(rest); !word.empty(); word = NextSetting(rest)) {
      if (!ours && std::find(std::begin(kBefore), std::end(kBefore), word) != std::end(kBefore)) continue;
      const std::size_t equals = word.find('=');
      const string_view name = word.substr(0, equals);
      if (equals == string_view::npos || !IsName(name)) break;
      const string_view value = Unquoted(word.substr(equals + 1));
      const bool wanted =
          name.starts_with("NCCL_") || std::find(std::begin(kJob), std::end(kJob), name) != std::end(kJob);
      if (!wanted || value.size() > 256 || value.find_first_of("$`\"'") != string_view::npos) continue;
      states_.Add(record, EnvironmentSet{std::string(name), std::string(value)}, out);
      ours = true;
    }
    return ours;
  }

 private:
  HostStates states_;
};

constexpr string_view kEnvironmentMarks[] = {"NCCL_SOCKET_IFNAME=",
                                             "NCCL_SOCKET_FAMILY=",
                                             "NCCL_OOB_NET_IFNAME=",
                                             "NCCL_IB_HCA=",
                                             "NCCL_IB_DISABLE=",
                                             "NCCL_IB_GID_INDEX=",
                                             "NCCL_IB_ROCE_VERSION_NUM=",
                                             "NCCL_P2P_DISABLE=",
                                             "NCCL_P2P_LEVEL=",
                                             "NCCL_SHM_DISABLE=",
                                             "NCCL_NET=",
                                             "NCCL_NET_PLUGIN=",
                                             "NCCL_NET_GDR_LEVEL=",
                                             "NCCL_CROSS_NIC=",
                                             "NCCL_ALGO=",
                                             "NCCL_PROTO=",
                                             "NCCL_BUFFSIZE=",
                                             "NCCL_NTHREADS=",
                                             "NCCL_MIN_NCHANNELS=",
                                             "NCCL_MAX_NCHANNELS=",
                                             "NCCL_MIN_CTAS=",
                                             "NCCL_MAX_CTAS=",
                                             "NCCL_NVLS_ENABLE=",
                                             "NCCL_COLLNET_ENABLE=",
                                             "NCCL_CUMEM_ENABLE=",
                                             "NCCL_COMM_ID=",
                                             "NCCL_HOSTID=",
                                             "NCCL_TOPO_FILE=",
                                             "NCCL_GRAPH_FILE=",
                                             "NCCL_LL_THRESHOLD=",
                                             "NCCL_P2P_NET_CHUNKSIZE=",
                                             "NCCL_IB_PKEY=",
                                             "MASTER_ADDR=",
                                             "MASTER_PORT=",
                                             "WORLD_SIZE=",
                                             "CUDA_VISIBLE_DEVICES=",
                                             "GLOO_SOCKET_IFNAME=",
                                             "$ env",
                                             "# env",
                                             "$ printenv",
                                             "# printenv",
                                             "/etc/nccl.conf"};

}  // namespace

extern const Format kEnvironment{.name = "environment",
                                 .framing = Framing::kLines,
                                 .component = Component::kAny,
                                 .marks = kEnvironmentMarks,
                                 .make = &Make<EnvironmentParser>};

}  // namespace inquest
