// Peels what launchers and collectors put in front of a line. By hand: no expression, no allocation for a bare line.
#include "parsers/envelope.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <span>

#include "core/host_name.h"
#include "parsers/docker_line.h"
#include "parsers/escapes.h"
#include "parsers/formats/journal_line.h"
#include "parsers/restored_log.h"

namespace inquest {
namespace {

using std::string_view;

constexpr std::size_t kNone = string_view::npos;
constexpr int kMaxDepth = 8;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsUpper(char c) { return c >= 'A' && c <= 'Z'; }
bool IsLower(char c) { return c >= 'a' && c <= 'z'; }
bool IsLetter(char c) { return IsUpper(c) || IsLower(c); }
bool IsHostChar(char c) { return IsLetter(c) || IsDigit(c) || c == '.' || c == '_' || c == '-'; }

std::size_t CountDigits(string_view text) {
  return static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), IsDigit) - text.begin());
}

template <class T>
std::optional<T> Number(string_view digits) {
  T value{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

bool StartsWithAny(string_view text, std::span<const string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](string_view word) { return text.starts_with(word); });
}

// ---- bytes that must be rewritten before anything can be peeled ------------------------------------------------

std::string WithoutColour(string_view text) {
  std::string out;
  out.reserve(text.size());
  AppendWithoutEscapes(text, EscapeSpelling::kByte, out);
  return out;
}

// ---- the time at the head of a message -------------------------------------------------------------------------

constexpr std::array<string_view, 9> kLevels = {"INFO",     "WARNING", "WARN",   "ERROR", "DEBUG",
                                                "CRITICAL", "FATAL",   "NOTICE", "TRACE"};

/// Size of a level word that stands alone at the front; 0 if there is none.
std::size_t LevelSize(string_view text) {
  for (string_view level : kLevels) {
    if (text.starts_with(level) && (text.size() == level.size() || !IsLetter(text[level.size()]))) return level.size();
  }
  return 0;
}

std::optional<Timestamp> TimeOf(const std::optional<ParsedTime>& parsed) {
  return parsed ? std::optional(parsed->time) : std::nullopt;
}

bool IsSeverity(char c) { return string_view("IWEFDCV").find(c) != kNone; }

/// `[E219 04:05:06.1 ` from behind its bracket.
std::optional<Timestamp> C10Time(string_view text) {
  return text.size() > 4 && IsSeverity(text[0]) && IsDigit(text[1]) ? TimeOf(ParseC10Time(text.substr(1)))
                                                                    : std::nullopt;
}

std::optional<Timestamp> BracketTime(string_view text) {
  if (const auto time = C10Time(text)) return time;
  if (const auto time = TimeOf(ParseTime(text))) return time;
  const std::size_t level = LevelSize(text);
  if (level == 0 || text.substr(level, 1) != "|") return std::nullopt;
  if (const auto time = TimeOf(ParseTime(text.substr(level + 1)))) return time;  // [INFO|2031-04-05 06:07:08]
  const std::size_t close = text.find("] ");  // [INFO|trainer.py:2078] 2031-04-05 ...
  return close != kNone ? TimeOf(ParseTime(text.substr(close + 2))) : std::nullopt;
}

/// The time that a message's own writer put at its head, or at its c10 head behind a progress bar.
std::optional<Timestamp> OwnTime(string_view text) {
  if (text.empty()) return std::nullopt;
  if (text[0] == '[') {
    if (const auto time = BracketTime(text.substr(1))) return time;
  } else if (IsSeverity(text[0]) && CountDigits(text.substr(1)) == 4) {
    if (const auto time = TimeOf(ParseGlogTime(text.substr(1)))) return time;
  } else if (const std::size_t level = LevelSize(text)) {
    const std::size_t begin = text.find_first_not_of(" :", level);
    if (const auto time = begin != kNone ? TimeOf(ParseTime(text.substr(begin))) : std::nullopt) return time;
  } else if (const auto time = TimeOf(ParseTime(text)); time && time->date != Timestamp::Date::kNone) {
    return time;  // a bare clock at the head is as likely a duration
  }
  for (std::size_t at = text.find('['); at != kNone; at = text.find('[', at + 1)) {
    if (const auto time = C10Time(text.substr(at + 1))) return time;
  }
  return std::nullopt;
}

// ---- shapes ----------------------------------------------------------------------------------------------------

/// `torch.cuda.OutOfMemoryError: ...`, `KeyboardInterrupt`.
bool IsExceptionHead(string_view text) {
  static constexpr std::array<string_view, 6> kEndings = {"Error", "Exception", "Interrupt", "Exit", "Warning", "Pool"};
  const string_view name = text.substr(0, text.find_first_of(": "));
  return IsLetter(name.empty() ? ' ' : name[0]) && std::all_of(name.begin(), name.end(), IsHostChar) &&
         std::any_of(kEndings.begin(), kEndings.end(), [&](string_view ending) { return name.ends_with(ending); });
}

/// What tools print about a host, as pdsh and clush hand it on: behind the host's name, lines in any order of hosts.
bool LooksLikeState(string_view text) {
  static constexpr std::array<string_view, 18> kHeads = {"CA '",
                                                         "hca_id:\t",
                                                         "Infiniband device '",
                                                         "link mlx",
                                                         "link ib",
                                                         "link roce",
                                                         "link bnxt",
                                                         "link rdma",
                                                         "max locked memory ",
                                                         "open files  ",
                                                         "max user processes ",
                                                         "Max locked memory ",
                                                         "Max open files ",
                                                         "Max processes ",
                                                         "Filesystem  ",
                                                         "tmpfs  ",
                                                         "shm  ",
                                                         "BOOT_IMAGE="};
  static constexpr std::array<string_view, 18> kIndented = {
      "CA type: ",    "Port ",   "State: ",       "Physical state: ", "Rate: ",        "SM lid: ",
      "Link layer: ", "port:\t", "state:\t",      "phys_state:\t",    "link_layer:\t", "sm_lid:\t",
      "active_",      "GID[",    "phys state:\t", "sm lid:\t",        "rate:\t",       "default gid:\t"};
  if (text.starts_with('\t')) {
    text.remove_prefix(std::min(text.find_first_not_of('\t'), text.size()));
    return StartsWithAny(text, kIndented);
  }
  if (StartsWithAny(text, kHeads)) return true;
  return !text.empty() && IsDigit(text[0]) && text.find(": <") < 40 && text.find("> mtu ") != kNone;  // ip link
}

/// A line as some program of the job prints it, and not the value of a `name: value` pair.
bool LooksLikeLog(string_view text) {
  static constexpr std::array<string_view, 14> kHeads = {"Traceback (",
                                                         "During handling of",
                                                         "The above exception",
                                                         "terminate called",
                                                         "frame #",
                                                         "Fatal Python error",
                                                         "Exception raised from",
                                                         "srun: ",
                                                         "slurmstepd: ",
                                                         "NCCL version ",
                                                         "Segmentation fault",
                                                         "Process ",
                                                         "Killed",
                                                         "Epoch"};
  if (StartsWithAny(text, kHeads) || IsExceptionHead(text) || LevelSize(text) > 0) return true;
  if (text.find(" NCCL INFO ") != kNone || text.find(" NCCL WARN ") != kNone || OwnTime(text)) return true;
  const std::size_t inner = text.find_first_not_of(' ');
  if (inner != kNone && inner > 0) return inner % 2 == 0 && text.find(' ', inner) != kNone;  // a traceback's lines
  return text[0] == '[' && text.find("] ") != kNone;
}

/// `[dense/HorovodAllreduce_0, ...`, `[name]`: Horovod lists tensors by rank, in the shape of srun's label.
bool StartsList(string_view text) {
  if (text.size() < 2 || text[0] != '[' || !IsLetter(text[1])) return false;
  const std::size_t end = text.find_first_of(",] :");
  return end != kNone && (text[end] == ',' || (text[end] == ']' && end + 1 == text.size()));
}

/// A name that a compute node may have: nearly all carry a digit or a dash, and pdsh cuts them at the first dot. What
/// has dots is a Python module's logger.
bool IsHostName(string_view name) {
  if (name.starts_with("rank") && CountDigits(name.substr(4)) == name.size() - 4) return false;
  if (name.empty() || name.size() > 64 || !(IsLower(name[0]) || IsDigit(name[0])) || CountDigits(name) == name.size())
    return false;
  const bool plain =
      std::all_of(name.begin(), name.end(), [](char c) { return IsLetter(c) || IsDigit(c) || c == '-'; });
  return plain && std::any_of(name.begin(), name.end(), [](char c) { return IsDigit(c) || c == '-'; });
}

// ---- the loop --------------------------------------------------------------------------------------------------

class Peeler {
 public:
  explicit Peeler(string_view text) : text_(text) {}

  void PeelAll() {
    for (int depth = 0; depth < kMaxDepth && !text_.empty() && PeelOne(); ++depth) {
    }
    FindRankInside();
  }
  /// Whether a launcher's label, and not the rank itself, says which rank wrote the line: then who collected the line
  /// stands beside the launcher, on whatever host.
  bool relayed() const { return origin_.rank && !own_rank_; }
  string_view bar() const { return bar_; }
  Origin TakeBarOrigin() { return std::move(bar_origin_); }
  void SetEnvelopeTime(const Timestamp& time) {
    if (!envelope_at_) envelope_at_ = time;
  }
  void AddWriter(string_view tag) {
    if (origin_.writer.find(tag) != std::string::npos) return;  // torchrun repeats its tag
    if (!origin_.writer.empty()) origin_.writer += ' ';
    origin_.writer += tag;
  }
  Peeled Take() &&;

 private:
  bool PeelOne() {
    switch (text_[0]) {
      case '[':
        return PeelRankTag() || PeelMpirunTag() || PeelPodTag() || PeelRoleTag() || PeelMpirunTime() || PeelNumber() ||
               PeelDetermined();
      case '(':
        return PeelRay();
      default:
        return PeelFacility() || PeelBar() || PeelTime() || PeelTaskLabel() || PeelReplica() || PeelCompose() ||
               PeelHost();
    }
  }

  /// ` 45%|####      | 45/100 [00:12<00:15,  3.61it/s]`, where a line of somebody else stands behind it.
  bool PeelBar() {
    const std::size_t percent = text_.substr(0, 96).find("%|");
    if (percent == kNone || percent == 0 || !IsDigit(text_[percent - 1])) return false;
    const std::size_t bar = text_.find("| ", percent + 2), open = bar == kNone ? kNone : text_.find(" [", bar);
    const std::size_t close = open == kNone ? kNone : text_.find(']', open);
    if (close == kNone || close > 512 || close + 1 == text_.size() ||
        !IsDigit(text_[std::min(bar + 2, text_.size() - 1)]))
      return false;
    const string_view rest = text_.substr(close + 1);
    if (!LooksLikeLog(rest) && !StartsWithTag(rest)) return false;
    bar_ = text_.substr(0, close + 1);
    bar_origin_ = origin_;
    text_ = rest;
    return true;
  }

  /// `kern  :err   : ` (dmesg -x).
  bool PeelFacility() {
    static constexpr std::array<string_view, 6> kFacilities = {
        "kern  :", "user  :", "daemon:", "syslog:", "auth  :", "local"};
    static constexpr std::array<string_view, 8> kPriorities = {
        "emerg :", "alert :", "crit  :", "err   :", "warn  :", "notice:", "info  :", "debug :"};
    constexpr std::size_t kWidth = 7;
    if (text_.size() <= kWidth || !StartsWithAny(text_, kFacilities) || text_[kWidth - 1] != ':') return false;
    if (!StartsWithAny(text_.substr(kWidth), kPriorities)) return false;
    text_.remove_prefix(std::min(text_.find_first_not_of(' ', 2 * kWidth), text_.size()));
    return true;
  }

  /// `[rank3]:` is printed by the process itself, so it beats what a launcher counts.
  bool PeelRankTag() {
    if (!text_.starts_with("[rank")) return false;
    const std::size_t digits = CountDigits(text_.substr(5));
    const auto rank = Number<std::int32_t>(text_.substr(5, digits));
    if (!rank || text_.substr(5 + digits, 2) != "]:") return false;
    if (!own_rank_) origin_.rank = Known<GlobalRank>{{*rank}, Basis::kEnvelope, {}};
    own_rank_ = true;
    text_.remove_prefix(5 + digits + 2);
    if (text_.starts_with(' ')) text_.remove_prefix(1);
    return true;
  }

  /// `[default3]:`: a role's name and a local rank.
  bool PeelRoleTag() {
    // Loops print themselves in the same shape.
    static constexpr std::array<string_view, 6> kCounters = {"epoch", "step", "iter", "batch", "layer", "stage"};
    const std::size_t close = text_.find("]:");
    if (close > 48 || !IsLetter(text_[1])) return false;
    string_view role = text_.substr(1, close - 1);
    const std::size_t digits =
        static_cast<std::size_t>(std::find_if_not(role.rbegin(), role.rend(), IsDigit) - role.rbegin());
    const auto local_rank = Number<std::int32_t>(role.substr(role.size() - digits));
    role.remove_suffix(digits);
    if (!local_rank || digits > 3 || !std::all_of(role.begin(), role.end(), IsHostChar) ||
        StartsWithAny(role, kCounters))
      return false;
    if (!origin_.local_rank) origin_.local_rank = LocalRank{*local_rank};
    AddWriter(text_.substr(0, close + 1));
    // torchrun's own launcher starts one task a node: its number is the node's.
    if (!own_rank_) origin_.rank.reset();
    text_.remove_prefix(close + 2);
    return true;
  }

  /// `[1,3]<stdout>:`, `[1,3]<stdout>: `, `[3]<stderr>: `, `[1,3][node017:41234]<stderr>: `.
  bool PeelMpirunTag() {
    const std::size_t close = text_.find(']');
    if (close > 24 || !IsDigit(text_[1])) return false;
    const string_view ids = text_.substr(1, close - 1);
    const std::size_t comma = ids.find(',');
    const auto rank = Number<std::int32_t>(comma == kNone ? ids : ids.substr(comma + 1));
    string_view rest = text_.substr(close + 1), host, pid;
    if (const std::size_t end = rest.find(']'); rest.starts_with('[') && end != kNone) {
      const std::size_t colon = rest.find(':');
      if (colon < end) {
        host = rest.substr(1, colon - 1);
        pid = rest.substr(colon + 1, end - colon - 1);
      }
      rest.remove_prefix(end + 1);
    }
    const std::size_t tag = rest.find(">:");
    if (!rank || !rest.starts_with("<std") || tag == kNone || tag > 8) return false;
    if (!origin_.rank) origin_.rank = Known<GlobalRank>{{*rank}, Basis::kEnvelope, {}};
    if (!host.empty()) SetHost(host);
    if (const auto number = Number<std::int64_t>(pid); number && !origin_.pid) origin_.pid = number;
    AddWriter(text_.substr(0, close + 1));
    text_ = rest.substr(tag + 2);
    // OMPI 5 puts a blank, OMPI 4 none; Python indents by an even number, so an odd run holds the separator.
    if (std::min(text_.find_first_not_of(' '), text_.size()) % 2 == 1) text_.remove_prefix(1);
    return true;
  }

  /// `[Sat Apr  5 06:07:08 2031]` before mpirun's tag.
  bool PeelMpirunTime() {
    const auto parsed = ParseTime(text_.substr(1));
    if (!parsed || text_.substr(1 + parsed->size, 2) != "][") return false;
    return PeelTimeIf(parsed, 2 + parsed->size, [&] { return PeelMpirunTag(); });
  }

  /// `[pod/worker-1/pytorch] ` (kubectl logs --prefix).
  bool PeelPodTag() {
    if (!text_.starts_with("[pod/")) return false;
    const std::size_t slash = text_.find('/', 5), close = text_.find("] ");
    if (slash == kNone || close == kNone || slash > close || close > 256) return false;
    SetHost(text_.substr(5, slash - 5));
    AddWriter(text_.substr(0, close + 1));
    text_.remove_prefix(close + 2);
    return true;
  }

  /// `[3] ` (mpiexec -l of MPICH and Intel), where a traceback shows that no list or counter is meant.
  bool PeelNumber() {
    const std::size_t digits = CountDigits(text_.substr(1));
    const auto rank = digits <= 6 ? Number<std::int32_t>(text_.substr(1, digits)) : std::nullopt;
    if (!rank || text_.substr(1 + digits, 2) != "] " || origin_.rank || origin_.local_rank) return false;
    const string_view rest = text_.substr(digits + 3);
    if (!rest.starts_with("Traceback (most") && !rest.starts_with("  File \"") && !IsExceptionHead(rest)) return false;
    origin_.rank = Known<GlobalRank>{{*rank}, Basis::kDerived, "number in brackets at the head of a traceback's lines"};
    AddWriter(text_.substr(0, digits + 2));
    text_ = rest;
    return true;
  }

  /// `[2031-04-05T06:07:08.419846Z] fa88a9df [rank=5] || ` (Determined AI: time, container, rank).
  bool PeelDetermined() {
    const auto parsed = ParseTime(text_.substr(1));
    if (!parsed || text_.substr(1 + parsed->size, 2) != "] ") return false;
    string_view rest = text_.substr(3 + parsed->size);
    const std::size_t bars = rest.substr(0, 64).find("|| ");
    if (bars == kNone) return false;
    const string_view tag = rest.substr(0, bars);
    if (const std::size_t at = tag.find("[rank="); at != kNone) {
      const auto rank = Number<std::int32_t>(tag.substr(at + 6, CountDigits(tag.substr(at + 6))));
      if (rank && !own_rank_) origin_.rank = Known<GlobalRank>{{*rank}, Basis::kEnvelope, {}};
    }
    AddWriter(tag);
    SetEnvelopeTime(parsed->time);
    text_ = rest.substr(bars + 3);
    return true;
  }

  /// `(RayTrainWorker pid=41234, ip=10.3.0.17) `, `(EngineCore_DP0 pid=311) `.
  bool PeelRay() {
    const std::size_t at = text_.substr(0, 128).find("pid=");
    if (at == kNone || (text_[at - 1] != ' ' && at != 1)) return false;
    const std::size_t digits = CountDigits(text_.substr(at + 4));
    const auto pid = Number<std::int64_t>(text_.substr(at + 4, digits));
    string_view rest = text_.substr(at + 4 + digits), ip;
    if (rest.starts_with(", ip=")) {
      ip = rest.substr(5, rest.find(')') == kNone ? 0 : rest.find(')') - 5);
      rest.remove_prefix(5 + ip.size());
    }
    if (!pid || !rest.starts_with(')')) return false;
    if (!origin_.pid) origin_.pid = pid;
    if (!ip.empty()) SetHost(ip);
    if (at > 1) AddWriter(text_.substr(1, at - 2));
    if (!origin_.rank) origin_.rank = RankOfWorker(text_.substr(1, at - 1));
    text_ = rest.substr(1);
    if (text_.starts_with(' ')) text_.remove_prefix(1);
    return true;
  }

  /// vLLM names its workers `VllmWorker rank=1 `, later `Worker_TP1 `, with the other dimensions only where there are
  /// any.
  static std::optional<Known<GlobalRank>> RankOfWorker(string_view name) {
    const bool rank = name.starts_with("VllmWorker rank=");
    if (!rank && !name.starts_with("Worker_TP")) return std::nullopt;
    name.remove_prefix(name.find_first_of("=P") + 1);
    const std::size_t digits = CountDigits(name);
    const auto number = Number<std::int32_t>(name.substr(0, digits));
    if (!number || (name.substr(digits) != " " && !name.substr(digits).starts_with("_EP"))) return std::nullopt;
    return Known<GlobalRank>{GlobalRank{*number}, Basis::kEnvelope, {}};
  }

  /// `  3: ` (srun -l), `P1 3: ` (its heterogeneous jobs, where the number is no rank of the job).
  bool PeelTaskLabel() {
    const std::size_t begin = text_.find_first_not_of(' ');
    // Behind another tag, a number is what the process itself printed.
    if (begin == kNone || begin > 6 || origin_.rank || origin_.local_rank) return false;
    string_view rest = text_.substr(begin);
    const bool component = rest[0] == 'P' && rest.size() > 1 && IsDigit(rest[1]);
    if (component) {
      const std::size_t digits = CountDigits(rest.substr(1));
      if (rest.substr(1 + digits, 1) != " ") return false;
      rest.remove_prefix(digits + 2);
    }
    const std::size_t digits = CountDigits(rest);
    const auto task = digits <= 6 ? Number<std::int32_t>(rest.substr(0, digits)) : std::nullopt;
    if (!task || rest.substr(digits, 1) != ":" || (rest.size() > digits + 1 && rest[digits + 1] != ' ')) return false;
    const string_view label = text_.substr(begin, text_.find(':', begin) + 1 - begin);
    rest = rest.substr(std::min(digits + 2, rest.size()));
    // A Rust backtrace numbers its frames in the same shape.
    if (rest.substr(0, rest.find(' ')).find("::") != kNone) return false;
    if (StartsList(rest)) return false;
    // `ip link` numbers its interfaces in it: `2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500`.
    if (const std::size_t flags = rest.find(": <"); flags < 40 && rest.find("> mtu ", flags) != kNone) return false;
    if (!component) origin_.rank = Known<GlobalRank>{{*task}, Basis::kEnvelope, kSrunTask};
    AddWriter(label);
    text_ = rest;
    return true;
  }

  /// `trainer/0 [default1]:` (TorchX, NeMo run), only before another tag.
  bool PeelReplica() {
    const std::size_t slash = text_.find('/');
    if (!IsLetter(text_[0]) || slash == kNone || slash > 64 ||
        !std::all_of(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(slash), IsHostChar))
      return false;
    const std::size_t digits = CountDigits(text_.substr(slash + 1)), end = slash + 1 + digits;
    if (digits == 0 || text_.substr(end, 2) != " [") return false;
    const Peeler before = *this;
    AddWriter(text_.substr(0, end));
    text_.remove_prefix(end + 1);
    if (PeelRankTag() || PeelRoleTag()) return true;
    *this = before;
    return false;
  }

  /// `trainer-1  | ` (docker compose; version 1 wrote `project_trainer_1   | `), in a column of its own.
  bool PeelCompose() {
    if (!IsLetter(text_[0])) return false;
    const std::size_t size =
        static_cast<std::size_t>(std::find_if_not(text_.begin(), text_.end(), IsHostChar) - text_.begin());
    const std::size_t bar = text_.find_first_not_of(' ', size);
    const string_view name = text_.substr(0, size);
    const std::size_t number = name.find_last_not_of("0123456789");
    if (bar == kNone || bar < size + 2 || bar > 128 || text_[bar] != '|' ||
        text_.substr(bar + 1, 1).find_first_not_of(' ') != kNone)
      return false;
    if (number == kNone || number + 1 == size || (name[number] != '-' && name[number] != '_')) return false;
    AddWriter(name);
    text_.remove_prefix(std::min(bar + 2, text_.size()));
    return true;
  }

  /// `node017: ` (pdsh).
  bool PeelHost() {
    const std::size_t colon = text_.substr(0, 68).find(": ");
    if (colon == kNone || colon + 2 == text_.size()) return false;
    const string_view name = text_.substr(0, colon), rest = text_.substr(colon + 2);
    if (!HostName(name).is_ipv4() &&
        !(IsHostName(name) && (LooksLikeLog(rest) || StartsWithTag(rest) || LooksLikeState(rest))))
      return false;
    SetHost(name);
    text_ = rest;
    return true;
  }

  bool PeelTime();
  template <class Then>
  bool PeelTimeIf(const std::optional<ParsedTime>& parsed, std::size_t size, Then then);
  bool PeelSyslog(const ParsedTime& parsed);
  static bool StartsWithTag(string_view rest) {
    if (rest[0] != '[' && !IsDigit(rest[0])) return false;
    Peeler ahead(rest);
    return ahead.PeelRankTag() || ahead.PeelMpirunTag() || ahead.PeelRoleTag();
  }

  /// `... 35.55s/it][rank3]:[E916 19:29:24.1 `: who printed the message is what matters, not who drew the bar.
  void FindRankInside() {
    for (std::size_t at = text_.find("[rank"); at != kNone && !own_rank_; at = text_.find("[rank", at + 1)) {
      Peeler inside(text_.substr(at));
      if (!inside.PeelRankTag() || inside.text_.size() < 3) continue;
      const bool c10 =
          inside.text_[0] == '[' && string_view("EWIF").find(inside.text_[1]) != kNone && !IsLetter(inside.text_[2]);
      if (!c10 && !inside.text_.starts_with("Traceback (most recent")) continue;
      origin_.rank = inside.origin_.rank;
      own_rank_ = true;
    }
  }

  void SetHost(string_view host) {
    if (!origin_.host) origin_.host = Known<std::string>{std::string(host), Basis::kEnvelope, {}};
  }
  string_view text_;
  Origin origin_, bar_origin_;
  string_view bar_;
  std::optional<Timestamp> envelope_at_;
  bool own_rank_ = false;
};

/// Peels a time if what follows it is an envelope too.
template <class Then>
bool Peeler::PeelTimeIf(const std::optional<ParsedTime>& parsed, std::size_t size, Then then) {
  const string_view before = text_;
  text_.remove_prefix(size);
  if (!then()) {
    text_ = before;
    return false;
  }
  SetEnvelopeTime(parsed->time);
  return true;
}

/// `<time> node017 python[41234]: `, `<time> node017 kernel: `. A daemon's tag stays, it says what the line is; an
/// interpreter's says nothing.
bool Peeler::PeelSyslog(const ParsedTime& parsed) {
  const string_view rest = text_.substr(parsed.size);
  const std::size_t host = rest.find(' ', 1), colon = host == kNone ? kNone : rest.find(": ", host);
  if (!rest.starts_with(' ') || colon == kNone || colon > 128) return false;
  const string_view name = rest.substr(1, host - 1), tag = rest.substr(host + 1, colon - host - 1);
  const string_view program = tag.substr(0, tag.find('['));
  const bool has_pid = program.size() < tag.size() && tag.back() == ']';
  if (name.empty() || program.empty() || std::all_of(program.begin(), program.end(), IsDigit) ||
      !std::all_of(name.begin(), name.end(), IsHostChar) || !std::all_of(program.begin(), program.end(), IsHostChar))
    return false;
  // Behind a date in digits, two words and a colon may be anything.
  if (!has_pid && program != "kernel" && (IsDigit(text_[0]) || program.size() < tag.size())) return false;
  SetHost(name);
  const bool interpreter = has_pid && (program.starts_with("python") || program.starts_with("torchrun"));
  if (interpreter && !origin_.pid)
    origin_.pid = Number<std::int64_t>(tag.substr(program.size() + 1, tag.size() - program.size() - 2));
  if (has_pid) AddWriter(program);
  text_ = rest.substr(interpreter ? colon + 2 : host + 1);
  SetEnvelopeTime(parsed.time);
  return true;
}

/// Whether what follows a time is what a logging module puts there.
bool ContinuesLogging(string_view rest) {
  return rest.starts_with("- ") || rest.starts_with("| ") || LevelSize(rest) > 0 ||
         (rest.starts_with('[') && LevelSize(rest.substr(1)) > 0);
}

/// A collector's time. A logging module's stays with its message; it has no `T` and no zone.
bool Peeler::PeelTime() {
  const auto parsed = ParseTime(text_);
  if (!parsed || parsed->time.date == Timestamp::Date::kNone) return false;
  string_view rest = text_.substr(parsed->size);
  if (rest.starts_with("[")) return PeelTimeIf(parsed, parsed->size, [&] { return PeelMpirunTag(); });
  if (PeelSyslog(*parsed)) return true;
  if (rest.starts_with(": ")) rest.remove_prefix(1);
  // A month's name heads syslog, mpirun and nvidia-smi: all but the last are dealt with above.
  if (!rest.starts_with(' ') || !IsDigit(text_[0]) || parsed->time.date != Timestamp::Date::kFull) return false;
  rest.remove_prefix(1);
  if (rest.starts_with("stdout ") || rest.starts_with("stderr ")) {  // CRI
    const string_view tags = rest.substr(7, rest.find(' ', 7) == kNone ? kNone : rest.find(' ', 7) - 7);
    const bool known = tags.starts_with('F') || tags.starts_with('P');
    if (known && (tags.size() == 1 || tags[1] == ':')) rest.remove_prefix(std::min(7 + tags.size() + 1, rest.size()));
  } else if (ContinuesLogging(rest) && !(text_[10] == 'T' && parsed->time.zone_known)) {
    return false;
  }
  SetEnvelopeTime(parsed->time);
  text_ = rest;
  return true;
}

/// The writer's own time says when it happened, the collector's when it was read; but a time without year or date is
/// worth less than a collector's whole one.
Peeled Peeler::Take() && {
  Peeled peeled{.text = text_, .origin = std::move(origin_), .at = envelope_at_};
  const auto own = OwnTime(text_);
  if (own && (!envelope_at_ || own->date == Timestamp::Date::kFull)) peeled.at = own;
  return peeled;
}

}  // namespace

/// `[2031-02-25 08:45:12 TP3] `, `[2031-02-25 08:45:12 TP3 EP3] `: SGLang's, whose only dimension that is.
static std::optional<Known<GlobalRank>> SglangRank(std::string_view text) {
  constexpr std::size_t kTime = sizeof("[2031-02-25 08:45:12 ") - 1;
  if (text.size() < kTime + 4 || !text.starts_with("[2") || text.substr(kTime - 1, 3) != " TP") return std::nullopt;
  const std::size_t digits = CountDigits(text.substr(kTime + 2));
  const std::string_view rest = text.substr(kTime + 2 + digits);
  const auto rank = Number<std::int32_t>(text.substr(kTime + 2, digits));
  if (!rank || (!rest.starts_with("] ") && !rest.starts_with(" EP"))) return std::nullopt;
  return Known<GlobalRank>{GlobalRank{*rank}, Basis::kDerived,
                           "tensor-parallel rank at the head of the line, in a job without others"};
}

// Programs put their own `rank 3: `, `[rank 3] `, `Rank 3/8: ` in front; it stays in the text.
static std::optional<Known<GlobalRank>> OwnWords(std::string_view text) {
  std::size_t at = text.starts_with("[") ? 1 : 0;
  const bool bracket = at == 1;
  if (const auto rank = SglangRank(text)) return rank;
  if (!text.substr(at).starts_with("rank") && !text.substr(at).starts_with("Rank") &&
      !text.substr(at).starts_with("RANK"))
    return std::nullopt;
  at += 4;
  if (at < text.size() && (text[at] == ' ' || text[at] == '=' || text[at] == '_' || text[at] == ':')) ++at;
  int rank = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
  if (error != std::errc() || rank < 0 || end == text.data() + text.size()) return std::nullopt;
  const bool closed = bracket ? *end == ']' || *end == '/' : *end == ':' || *end == '/' || *end == ']';
  if (!closed) return std::nullopt;
  return Known<GlobalRank>{GlobalRank{rank}, Basis::kDerived, "the program's own words at the head of the line"};
}

/// UCX heads its lines with `[host:pid:thread]`, behind a time in seconds; the tag stays in the text.
static void ReadUcxTag(std::string_view text, Origin& origin) {
  if (text.starts_with('[') && text.size() > 12 && CountDigits(text.substr(1)) == 10 && text[11] == '.') {
    const std::size_t close = text.find("] [");
    if (close == kNone || close > 24) return;
    text.remove_prefix(close + 2);
  }
  const std::size_t colon = text.substr(0, 68).find(':');
  if (!text.starts_with('[') || colon == kNone) return;
  const string_view host = text.substr(1, colon - 1);
  const std::size_t digits = CountDigits(text.substr(colon + 1));
  string_view rest = text.substr(colon + 1 + digits);
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  const bool is_host = !host.empty() && IsLetter(host[0]) && std::all_of(host.begin(), host.end(), IsHostChar);
  const auto pid = Number<std::int64_t>(text.substr(colon + 1, digits));
  if (!is_host || digits < 2 || !pid || !rest.starts_with(':') || rest.size() < 3 || !IsDigit(rest[1])) return;
  origin.host = Known<std::string>{std::string(host), Basis::kEnvelope, {}};
  if (!origin.pid) origin.pid = pid;
}

/// What a whole log's restoration put in front of a line: writer, time and host between form feeds.
static RestoredHead TakeRestoredHead(std::string_view& line) {
  RestoredHead head;
  const std::size_t end = line.starts_with(kRestoredHead) ? line.substr(0, 512).find(kRestoredHead, 1) : kNone;
  if (end == kNone) return head;
  std::string* const fields[] = {&head.writer, &head.time, &head.host};
  std::string_view rest = line.substr(1, end - 1);
  for (std::string* const field : fields) {
    const std::size_t tab = std::min(rest.find('\t'), rest.size());
    *field = rest.substr(0, tab);
    rest.remove_prefix(std::min(tab + 1, rest.size()));
  }
  line.remove_prefix(end + 1);
  return head;
}

Peeled Peel(std::string_view line, std::string& scratch) {
  if (line.starts_with("\xef\xbb\xbf")) line.remove_prefix(3);  // what Windows puts in front of UTF-8
  const RestoredHead head = TakeRestoredHead(line);
  std::optional<JournalLine> journal;
  if (line.starts_with("{\"") && (journal = ReadJournalLine(line))) {
    scratch = journal->text;
    line = scratch;
  }
  std::optional<Timestamp> docker_at;
  std::string text;
  if (const auto docker = ReadDockerLine(line, text)) {
    docker_at = TimeOf(ParseTime(docker->time));
    scratch = docker->text;
    line = scratch;
  }
  if (line.find('\x1b') != kNone) {
    scratch = WithoutColour(line);
    line = scratch;
  }
  Peeler peeler(line);
  if (docker_at) peeler.SetEnvelopeTime(*docker_at);
  if (journal && journal->at) peeler.SetEnvelopeTime(*journal->at);
  if (const auto at = head.time.empty() ? std::nullopt : TimeOf(ParseTime(head.time))) peeler.SetEnvelopeTime(*at);
  if (!head.writer.empty()) peeler.AddWriter(head.writer);
  peeler.PeelAll();
  const bool relayed = peeler.relayed();
  const string_view bar = peeler.bar();
  Origin bar_origin = peeler.TakeBarOrigin();
  Peeled peeled = std::move(peeler).Take();
  peeled.bar = bar;
  peeled.bar_origin = std::move(bar_origin);
  if (journal && !journal->host.empty()) peeled.origin.host = Known<std::string>{journal->host, Basis::kEnvelope, {}};
  if (!head.host.empty() && !relayed && !peeled.origin.host)
    peeled.origin.host = Known<std::string>{head.host, Basis::kEnvelope, {}};
  if (journal && journal->pid) peeled.origin.pid = journal->pid;
  if (!peeled.origin.rank) peeled.origin.rank = OwnWords(peeled.text);
  if (!peeled.origin.host) ReadUcxTag(peeled.text, peeled.origin);
  return peeled;
}

}  // namespace inquest
