// What stands at the head of a message because its own writer printed it: a time, a level, who is speaking.
#include "parsers/message_head.h"

#include <algorithm>
#include <array>

#include "parsers/envelopes/front.h"

namespace inquest {
namespace {

using std::string_view;

constexpr std::array<string_view, 9> kLevels = {"INFO",     "WARNING", "WARN",   "ERROR", "DEBUG",
                                                "CRITICAL", "FATAL",   "NOTICE", "TRACE"};

/// Size of a level word that stands alone at the front; 0 if there is none.
std::size_t LevelSize(string_view text) {
  if (text.empty() || !IsUpper(text[0])) return 0;
  for (string_view level : kLevels) {
    if (text.starts_with(level) && (text.size() == level.size() || !IsLetter(text[level.size()]))) return level.size();
  }
  return 0;
}

bool IsSeverity(char c) { return string_view("IWEFDCV").find(c) != kNowhere; }

/// `[E219 04:05:06.1 ` from behind its bracket.
std::optional<Timestamp> C10Time(string_view text) {
  return text.size() > 4 && IsSeverity(text[0]) && IsDigit(text[1]) ? TimeOf(ParseC10Time(text.substr(1)))
                                                                    : std::nullopt;
}

std::optional<Timestamp> TimeBehind(string_view text, string_view separators) {
  const std::size_t begin = text.find_first_not_of(separators);
  return begin != kNowhere ? TimeOf(ParseTime(text.substr(begin))) : std::nullopt;
}

std::optional<Timestamp> BracketTime(string_view text) {
  if (const auto time = C10Time(text)) return time;
  if (const auto time = TimeOf(ParseTime(text))) return time;
  const std::size_t level = LevelSize(text);
  if (level == 0) return std::nullopt;
  if (text.substr(level, 1) != "|") return TimeBehind(text.substr(level), " ]:");  // [INFO] 2031-04-05 06:07:08
  if (const auto time = TimeOf(ParseTime(text.substr(level + 1)))) return time;    // [INFO|2031-04-05 06:07:08]
  const std::size_t close = text.find("] ");  // [INFO|trainer.py:2078] 2031-04-05 ...
  return close != kNowhere ? TimeOf(ParseTime(text.substr(close + 2))) : std::nullopt;
}

/// `[2031-02-25 08:45:12 TP3] `, `[2031-02-25 08:45:12 TP3 EP3] `: SGLang's, whose only dimension that is. Where
/// attention is data-parallel, `DP1 TP4`, the replicas share one count; those that are engines of their own begin anew.
std::optional<Known<GlobalRank>> SglangRank(string_view text) {
  constexpr std::size_t kTime = sizeof("[2031-02-25 08:45:12") - 1;
  if (text.size() < kTime + 6 || !text.starts_with("[2")) return std::nullopt;
  string_view rest = text.substr(kTime);
  const auto take = [&](string_view name) -> std::optional<std::int32_t> {
    if (!rest.starts_with(name)) return std::nullopt;
    const std::size_t digits = CountDigits(rest.substr(name.size()));
    const auto number = Number<std::int32_t>(rest.substr(name.size(), digits));
    rest.remove_prefix(name.size() + digits);
    return number;
  };
  const auto replica = take(" DP");
  const auto rank = take(" TP");
  if (!rank || *rank < replica.value_or(0) || (!rest.starts_with("] ") && !rest.starts_with(" EP")))
    return std::nullopt;
  return Known<GlobalRank>{GlobalRank{*rank}, Basis::kDerived,
                           "tensor-parallel rank at the head of the line, in a job without others"};
}

/// `[04/05/2031-06:07:08] [TRT-LLM] [RANK 2] [E] ...`: other tags in brackets stand in front. Behind a c10 head stands
/// the rank of a group.
string_view WithoutTagsBeforeRank(string_view text) {
  constexpr std::size_t kMostTags = 3, kLongestTag = 48;
  string_view rest = text;
  for (std::size_t tags = 0; tags < kMostTags && rest.starts_with('['); ++tags) {
    const std::size_t end = rest.substr(0, kLongestTag).find("] [");
    if (end == kNowhere || rest.substr(0, end).find(".cpp:") != kNowhere) return text;
    rest.remove_prefix(end + 2);
    const string_view word = rest.substr(1, 5);
    if (word == "RANK " || word == "Rank " || word == "rank " || word == "rank=") return rest;
  }
  return text;
}

// Programs put their own `rank 3: `, `[rank 3] `, `Rank 3/8: `, `rank:  3 | ` in front; it stays in the text.
std::optional<Known<GlobalRank>> OwnRank(string_view text) {
  text = WithoutTagsBeforeRank(text);
  std::size_t at = text.starts_with("[") ? 1 : 0;
  const bool bracket = at == 1;
  if (const auto rank = SglangRank(text)) return rank;
  if (!text.substr(at).starts_with("rank") && !text.substr(at).starts_with("Rank") &&
      !text.substr(at).starts_with("RANK"))
    return std::nullopt;
  at += 4;
  if (at < text.size() && (text[at] == ' ' || text[at] == '=' || text[at] == '_' || text[at] == ':')) ++at;
  if (text[at - 1] == ':')
    for (int blanks = 0; blanks < 3 && text.substr(at).starts_with(' '); ++blanks) ++at;
  int rank = 0;
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
  if (error != std::errc() || rank < 0 || end == text.data() + text.size()) return std::nullopt;
  const string_view behind = text.substr(static_cast<std::size_t>(end - text.data()));
  const bool closed =
      bracket ? *end == ']' || *end == '/' : *end == ':' || *end == '/' || *end == ']' || behind.starts_with(" | ");
  if (!closed) return std::nullopt;
  return Known<GlobalRank>{GlobalRank{rank}, Basis::kDerived, "the program's own words at the head of the line"};
}

/// UCX heads its lines with `[host:pid:thread]`, behind a time in seconds; the tag stays in the text.
void ReadUcxTag(string_view text, Origin& origin) {
  if (text.starts_with('[') && text.size() > 12 && CountDigits(text.substr(1)) == 10 && text[11] == '.') {
    const std::size_t close = text.find("] [");
    if (close == kNowhere || close > 24) return;
    text.remove_prefix(close + 2);
  }
  const std::size_t colon = text.substr(0, 68).find(':');
  if (!text.starts_with('[') || colon == kNowhere) return;
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

/// torch_npu, `[ERROR] 2031-04-05-06:07:08 (PID:927000, Device:3, RankID:3) ERR02200 ...`, whose rank is -1 in a job of
/// one; and CANN, `EI0006: [PID: 927000] ...`.
void ReadAscendTag(string_view text, Origin& origin) {
  constexpr string_view kOwn = "[ERROR] ", kPid = "(PID:", kRank = ", RankID:", kCann = "[PID: ";
  if (text.starts_with(kOwn)) {
    const string_view head = text.substr(0, 96);
    const std::size_t pid = head.find(kPid), rank = head.find(kRank);
    if (pid == kNowhere || rank == kNowhere || rank < pid) return;
    const auto number = [&](std::size_t at) { return text.substr(at, CountDigits(text.substr(at))); };
    if (const auto own = Number<std::int64_t>(number(pid + kPid.size())); own && !origin.pid) origin.pid = own;
    if (const auto own = Number<std::int32_t>(number(rank + kRank.size())); own && !origin.rank)
      origin.rank = Known<GlobalRank>{GlobalRank{*own}, Basis::kEnvelope, {}};
    return;
  }
  const std::size_t at = text.starts_with('E') && text.size() > 8 && text[6] == ':' ? 8 : 0;
  if (origin.pid || !text.substr(at).starts_with(kCann)) return;
  text.remove_prefix(at + kCann.size());
  const std::size_t digits = CountDigits(text);
  if (text.substr(digits).starts_with("] ")) origin.pid = Number<std::int64_t>(text.substr(0, digits));
}

}  // namespace

std::optional<Timestamp> OwnTime(std::string_view text) {
  if (text.empty()) return std::nullopt;
  if (text[0] == '[') {
    if (const auto time = BracketTime(text.substr(1))) return time;
  } else if (IsSeverity(text[0]) && CountDigits(text.substr(1)) == 4) {
    if (const auto time = TimeOf(ParseGlogTime(text.substr(1)))) return time;
  } else if (const std::size_t level = LevelSize(text)) {
    if (const auto time = TimeBehind(text.substr(level), " :")) return time;
  } else if (const auto time = TimeOf(ParseTime(text)); time && time->date != Timestamp::Date::kNone) {
    return time;  // a bare clock at the head is as likely a duration
  }
  for (std::size_t at = text.find('['); at != kNowhere; at = text.find('[', at + 1)) {
    if (const auto time = C10Time(text.substr(at + 1))) return time;
  }
  return std::nullopt;
}

bool IsExceptionHead(std::string_view text) {
  static constexpr std::array<string_view, 6> kEndings = {"Error", "Exception", "Interrupt", "Exit", "Warning", "Pool"};
  const string_view name = text.substr(0, text.find_first_of(": "));
  return IsLetter(name.empty() ? ' ' : name[0]) && std::all_of(name.begin(), name.end(), IsHostChar) &&
         std::any_of(kEndings.begin(), kEndings.end(), [&](string_view ending) { return name.ends_with(ending); });
}

bool LooksLikeLog(std::string_view text) {
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
  if (text.find(" NCCL INFO ") != kNowhere || text.find(" NCCL WARN ") != kNowhere || OwnTime(text)) return true;
  const std::size_t inner = text.find_first_not_of(' ');
  if (inner != kNowhere && inner > 0)
    return inner % 2 == 0 && text.find(' ', inner) != kNowhere;  // a traceback's lines
  return text[0] == '[' && text.find("] ") != kNowhere;
}

bool ContinuesLogging(std::string_view rest) {
  return rest.starts_with("- ") || rest.starts_with("| ") || LevelSize(rest) > 0 ||
         (rest.starts_with('[') && LevelSize(rest.substr(1)) > 0);
}

void ReadOwnWords(std::string_view text, Origin& origin) {
  if (!origin.rank) origin.rank = OwnRank(text);
  if (!origin.host) ReadUcxTag(text, origin);
  ReadAscendTag(text, origin);
}

}  // namespace inquest
