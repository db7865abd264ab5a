// What of an environment may leave the node.
#include "cli/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace inquest {
namespace {

using std::string_view;

constexpr std::array<string_view, 14> kPrefixes = {"NCCL_", "TORCH_", "TORCHELASTIC_", "PYTORCH_", "CUDA_", "NVIDIA_", "SLURM_",
                                                   "MASTER_", "OMPI_COMM_WORLD_", "PMI_", "PMIX_RANK", "GLOO_", "UCX_", "FI_"};
constexpr std::array<string_view, 10> kNames = {"WORLD_SIZE", "RANK",      "LOCAL_RANK", "LOCAL_WORLD_SIZE",    "GROUP_RANK",
                                                "NODE_RANK",  "ROLE_RANK", "NNODES",     "OMP_NUM_THREADS", "PYTHONFAULTHANDLER"};
constexpr std::array<string_view, 10> kSecretWords = {"TOKEN", "SECRET", "PASSW", "PASSPHRASE", "KEY", "CREDENTIAL", "AUTH", "COOKIE", "JWT", "PRIVATE"};

bool IsPublic(string_view name) {
  const auto begins = [&](string_view prefix) { return name.starts_with(prefix); };
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), begins) || std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

/// By the name, or a value with a password in an address: `http://user:password@proxy`.
bool IsSecret(string_view name, string_view value) {
  std::string upper(name);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  const auto holds = [&](string_view word) { return upper.find(word) != std::string::npos; };
  const std::size_t scheme = value.find("://");
  const bool has_password = scheme != string_view::npos && value.find('@', scheme) != string_view::npos;
  return has_password || std::any_of(kSecretWords.begin(), kSecretWords.end(), holds);
}

/// A line stays a line.
std::string OneLine(string_view value) {
  std::string line;
  for (const char c : value) line += c == '\n' || c == '\r' ? ' ' : c;
  return line;
}

}  // namespace

std::string PublicEnvironment(std::span<const string_view> entries) {
  std::vector<string_view> sorted(entries.begin(), entries.end());
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  std::size_t others = 0;
  for (const string_view entry : sorted) {
    const string_view name = entry.substr(0, entry.find('='));
    const string_view value = name.size() < entry.size() ? entry.substr(name.size() + 1) : string_view();
    if (IsPublic(name))
      text += fmt::format("{}={}\n", name, IsSecret(name, value) ? "<masked>" : OneLine(value));
    else
      ++others;
  }
  return text + fmt::format("# {} other variables were left out\n", others);
}

}  // namespace inquest
