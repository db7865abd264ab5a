// What of an environment may leave the node.
#include "collect/environment.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <vector>

namespace inquest {
namespace {

using std::string_view;

constexpr std::string_view kMasked = "<masked>";
constexpr std::array<string_view, 16> kPrefixes = {
    "NCCL_", "TORCH_", "TORCHELASTIC_", "PYTORCH_",         "CUDA_", "NVIDIA_",   "SLURM_", "MASTER_",
    "FI_",   "UCX_",   "GLOO_",         "OMPI_COMM_WORLD_", "PMI_",  "PMIX_RANK", "RDMAV_", "NVSHMEM_"};
constexpr std::array<string_view, 11> kNames = {
    "WORLD_SIZE", "RANK",   "LOCAL_RANK", "LOCAL_WORLD_SIZE", "GROUP_RANK",        "NODE_RANK",
    "ROLE_RANK",  "NNODES", "HOSTNAME",   "OMP_NUM_THREADS",  "PYTHONFAULTHANDLER"};
constexpr std::array<string_view, 11> kSecretWords = {"TOKEN", "SECRET", "PASSW", "PASSPHRASE", "KEY", "CREDENTIAL",
                                                      "AUTH",  "COOKIE", "JWT",   "PRIVATE",    "_SIG"};
/// A name may end so; elsewhere these are parts of other words.
constexpr std::array<string_view, 8> kSecretEnds = {"PASS", "PW", "PWD", "CRED", "CREDS", "PIN", "PSK", "OTP"};
/// How services begin the tokens that they issue.
constexpr std::array<string_view, 18> kTokens = {"ghp_",  "gho_",  "ghs_",  "github_pat_", "glpat-", "hf_",
                                                 "sk-",   "xoxb-", "xoxp-", "AKIA",        "ASIA",   "AIza",
                                                 "ya29.", "npm_",  "pypi-", "nvapi-",      "eyJ",    "-----BEGIN"};

bool IsPublic(string_view name) {
  const auto begins = [&](string_view prefix) { return name.starts_with(prefix); };
  return std::any_of(kPrefixes.begin(), kPrefixes.end(), begins) ||
         std::find(kNames.begin(), kNames.end(), name) != kNames.end();
}

std::string Upper(string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

bool NamesSecret(string_view name) {
  const std::string upper = Upper(name);
  return std::any_of(kSecretWords.begin(), kSecretWords.end(),
                     [&](string_view word) { return upper.find(word) != std::string::npos; }) ||
         std::any_of(kSecretEnds.begin(), kSecretEnds.end(), [&](string_view end) { return upper.ends_with(end); });
}

/// What stands behind it is a secret: `Bearer`, `Basic`, `--password`, `-p`, `token:`.
bool Announces(string_view piece, char next) {
  const std::string upper = Upper(piece);
  if (upper == "BEARER" || upper == "BASIC" || piece == "-p") return true;
  return NamesSecret(piece) && (piece.starts_with('-') || next == '=' || next == ':');
}

/// `-pS3cret`, as mysql and sshpass take it. Which other option it may be is not asked.
bool IsPasswordFlag(string_view piece) { return piece.size() > 2 && piece.starts_with("-p"); }

/// Long, in one piece, and of no language: base64 or hex.
bool IsRandomPart(string_view piece) {
  constexpr std::size_t kLong = 32;
  if (piece.size() < kLong) return false;
  std::size_t digits = 0, upper = 0, lower = 0, beyond_hex = 0;
  for (const char c : piece) {
    const auto u = static_cast<unsigned char>(c);
    digits += std::isdigit(u) != 0;
    upper += std::isupper(u) != 0;
    lower += std::islower(u) != 0;
    beyond_hex += std::isxdigit(u) == 0;
  }
  const bool hex = beyond_hex == 0 && digits > 0 && upper + lower > 0;
  return hex || (digits >= 3 && upper >= 3 && lower >= 3);
}

/// UUIDs and names have parts, each short.
bool IsRandom(string_view piece) {
  constexpr string_view kJoints = "-_.";
  for (std::size_t at = 0; at < piece.size(); at = std::min(piece.find_first_of(kJoints, at), piece.size()) + 1)
    if (IsRandomPart(piece.substr(at, piece.find_first_of(kJoints, at) - at))) return true;
  return false;
}

/// `http://user:password@proxy`.
bool HasPassword(string_view value) {
  const std::size_t scheme = value.find("://");
  return scheme != string_view::npos &&
         value.substr(0, value.find_first_of("/?#", scheme + 3)).find('@', scheme) != string_view::npos;
}

/// By its own look, whatever its name is: a token, something random, an address with a password or a signed query.
bool LooksSecret(string_view value) {
  constexpr string_view kBreaks = " \t,;:/?&=@'\"()[]{}|";
  if (HasPassword(value)) return true;
  bool announced = false;
  for (std::size_t at = 0; at < value.size();) {
    const std::size_t end = std::min(value.find_first_of(kBreaks, at), value.size());
    const string_view piece = value.substr(at, end - at);
    const auto begins = [&](string_view token) { return piece.starts_with(token) && piece.size() >= token.size() + 8; };
    if (IsRandom(piece) || IsPasswordFlag(piece) || std::any_of(kTokens.begin(), kTokens.end(), begins)) return true;
    if (!piece.empty()) {
      if (announced) return true;
      announced = Announces(piece, end < value.size() ? value[end] : '\0');
    }
    if (end < value.size() && value[end] == '=' && NamesSecret(piece)) return true;
    at = end + 1;
  }
  return false;
}

/// A line stays a line.
std::string OneLine(string_view value) {
  std::string line;
  for (const char c : value) line += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
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
      text += fmt::format("{}={}\n", OneLine(name),
                          NamesSecret(name) || LooksSecret(value) ? std::string(kMasked) : OneLine(value));
    else
      ++others;
  }
  return text + fmt::format("# {} other variables were left out\n", others);
}

std::string MaskSecrets(string_view text) {
  constexpr string_view kSpace = " \t\r\n";
  constexpr string_view kAround = "=:'\"";
  std::string masked;
  bool announced = false;  // by the word before, of the same line
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find_first_of(kSpace, at), text.size());
    const string_view word = text.substr(at, end - at);
    const std::size_t equals = word.find('=');
    const bool secret = LooksSecret(word) || (announced && !word.empty());
    if (!word.empty()) {
      const string_view rest = word.substr(0, word.find_last_not_of(kAround) + 1);
      announced =
          Announces(rest.substr(rest.find_last_of(kAround) + 1), rest.size() < word.size() ? word[rest.size()] : '\0');
    }
    if (end < text.size() && text[end] == '\n') announced = false;
    if (!secret)
      masked += word;
    else
      masked.append(equals == string_view::npos ? string_view() : word.substr(0, equals + 1)).append(kMasked);
    if (end < text.size()) masked += text[end];
    at = end + 1;
  }
  return masked;
}

std::string MaskPath(string_view path) {
  std::string masked;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    const string_view part = path.substr(at, end - at);
    masked += LooksSecret(part) ? kMasked : part;
    if (end < path.size()) masked += '/';
    at = end + 1;
  }
  return masked;
}

}  // namespace inquest
