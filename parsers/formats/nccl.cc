// nccl.cc: what NCCL logs of its communicators, its environment, its warnings and the way errors travel up.
// Format:  one line a message; printed by src/debug.cc, versions 2.3 to 2.30
//            node017:41234:41777 [3] NCCL INFO ncclCommInitRank comm 0x55d0 rank 3 nranks 16 ... - Init COMPLETE
//            [2031-04-05 06:07:08] node017:41234:41777 [3] misc/socket.cc:484 NCCL WARN ...
//            NCCL version 2.21.5+cuda12.4                           (rank 0 alone, no prefix)
// Clock:   local, 1 s, and by default on WARN lines of 2.26 and later only; else the envelope's.
// Not read: operations, channels, trees and rings (the block scanner folds them), tuning, timings, RAS, Inspector.
#include "parsers/formats/nccl.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "core/ascii.h"
#include "parsers/formats.h"

namespace inquest {
namespace {

using std::string_view;

/// A whole number and nothing else.
template <class T>
std::optional<T> Number(string_view text, int base = 10) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// `0x55d0c2a41e70`; `(nil)` is no pointer.
std::optional<std::uint64_t> Pointer(string_view text) {
  return text.starts_with("0x") ? Number<std::uint64_t>(text.substr(2), 16) : std::nullopt;
}

/// Takes the next word, up to a blank, off the front of `text`.
string_view NextWord(string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const string_view word = text.substr(0, text.find(' '));
  text.remove_prefix(word.size());
  return word;
}

bool Take(string_view& text, string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// `init.cc:1358`, and with TRACE `function:line`.
bool IsSite(string_view word) {
  const std::size_t colon = word.rfind(':');
  return colon != kNowhere && colon > 0 && Number<int>(word.substr(colon + 1)) && !IsDigit(word[0]);
}

// ---- prefix ----------------------------------------------------------------------------------------------------

struct LevelMark {
  std::size_t begin = 0, end = 0;  ///< of ` NCCL INFO ` in the text
  NcclPrefix::Level level = NcclPrefix::Level::kInfo;
};

std::optional<LevelMark> FindLevel(string_view text) {
  static constexpr std::array<std::pair<string_view, NcclPrefix::Level>, 5> kLevels = {
      {{"INFO", NcclPrefix::Level::kInfo},
       {"WARN", NcclPrefix::Level::kWarn},
       {"TRACE", NcclPrefix::Level::kTrace},
       {"CALL", NcclPrefix::Level::kCall},
       {"ABORT", NcclPrefix::Level::kAbort}}};
  constexpr string_view kTag = " NCCL ";
  for (std::size_t at = text.find(kTag); at != kNowhere; at = text.find(kTag, at + 1)) {
    const string_view rest = text.substr(at + kTag.size());
    for (const auto& [word, level] : kLevels) {
      if (!rest.starts_with(word) || (rest.size() > word.size() && rest[word.size()] != ' ')) continue;
      return LevelMark{at, std::min(at + kTag.size() + word.size() + 1, text.size()), level};
    }
  }
  return std::nullopt;
}

/// `node017:41234:41777`.
struct Process {
  string_view host;
  std::int64_t pid = 0, tid = 0;
};
std::optional<Process> ReadProcess(string_view word) {
  const std::size_t last = word.rfind(':');
  const std::size_t first = last == kNowhere || last == 0 ? kNowhere : word.rfind(':', last - 1);
  if (first == kNowhere || first == 0) return std::nullopt;
  const string_view host = word.substr(0, first);
  const auto pid = Number<std::int64_t>(word.substr(first + 1, last - first - 1));
  const auto tid = Number<std::int64_t>(word.substr(last + 1));
  const auto in_host = [](char c) { return IsLetter(c) || IsDigit(c) || c == '-' || c == '_' || c == '.'; };
  if (!pid || !tid || !std::all_of(host.begin(), host.end(), in_host)) return std::nullopt;
  return Process{host, *pid, *tid};
}

/// ` [3]`, and behind it a site where the level has one.
struct Place {
  std::optional<int> cuda_dev;
  string_view site;
};
std::optional<Place> ReadPlace(string_view rest, NcclPrefix::Level level) {
  using Level = NcclPrefix::Level;
  if (level == Level::kCall) return rest.empty() ? std::optional(Place{}) : std::nullopt;
  const string_view device = NextWord(rest);
  if (device.size() < 3 || device.front() != '[' || device.back() != ']') return std::nullopt;
  const auto cuda_dev = Number<int>(device.substr(1, device.size() - 2));
  if (level == Level::kTrace) NextWord(rest);  // milliseconds since NCCL began
  const string_view site = NextWord(rest);
  const bool rest_is_function = rest.empty() || (rest.starts_with(" (") && rest.ends_with(')'));  // from 2.30 on
  const bool whole = site.empty() ? level == Level::kInfo : IsSite(site) && rest_is_function;
  if (!cuda_dev || !whole) return std::nullopt;
  return Place{*cuda_dev >= 0 ? cuda_dev : std::nullopt, site};
}

// ---- messages --------------------------------------------------------------------------------------------------

/// The `name value` pairs of a communicator's life line, from `comm` to the dash.
struct CommFields {
  std::optional<std::uint64_t> comm, comm_id, parent;
  std::optional<int> rank, nranks, cuda_dev, nvml_dev, color, key, split_count;
  std::optional<std::string> bus_id;

  bool Set(string_view name, string_view value);
};

/// False where a value is not whole. Names that a later version may add are let pass.
bool CommFields::Set(string_view name, string_view value) {
  const auto number = [&](std::optional<int>& field) { return (field = Number<int>(value)).has_value(); };
  if (name == "rank") return number(rank);
  if (name == "nranks" || name == "nRanks") return number(nranks);
  if (name == "cudaDev") return number(cuda_dev);
  if (name == "nvmlDev") return number(nvml_dev);
  if (name == "splitCount" || name == "childCount") return number(split_count);
  if (name == "color") return number(color);
  if (name == "key") return number(key);
  if (name == "comm") return (comm = Pointer(value)).has_value();
  if (name == "busId") return (bus_id = ParseBusId(value)).has_value();
  if (name == "parent") return (parent = Pointer(value)) || value == "(nil)";
  if (name == "commId") return (comm_id = Pointer(value)).has_value();
  return std::all_of(name.begin(), name.end(), IsLetter) && Number<std::uint64_t>(value, 16);
}

std::optional<CommFields> ReadFields(string_view text) {
  CommFields fields;
  while (true) {
    const string_view name = NextWord(text);
    if (name.empty()) break;
    if (!fields.Set(name, NextWord(text))) return std::nullopt;
  }
  // A split child has no id of its own before 2.29; NCCL prints none, or 0.
  if (fields.comm_id == std::uint64_t{0}) fields.comm_id.reset();
  if (!fields.comm || !fields.rank || *fields.rank < 0) return std::nullopt;
  return fields;
}

std::optional<What> InitEvent(string_view api, const CommFields& fields, bool complete) {
  if (!fields.nranks || *fields.nranks <= *fields.rank) return std::nullopt;
  return CommInit{.complete = complete,
                  .api = std::string(api),
                  .comm = *fields.comm,
                  .rank = GroupRank{*fields.rank},
                  .nranks = *fields.nranks,
                  .cuda_dev = fields.cuda_dev,
                  .nvml_dev = fields.nvml_dev,
                  .bus_id = fields.bus_id,
                  .comm_id = fields.comm_id,
                  .parent = fields.parent,
                  .color = fields.color,
                  .key = fields.key,
                  .split_count = fields.split_count};
}

/// How a life line ends, behind its dash.
struct Ending {
  string_view text;
  std::optional<CommEnd::How> how;  ///< absent: it is the beginning
  bool complete = false;
};
constexpr std::array<Ending, 9> kEndings = {{{"Init START", std::nullopt, false},
                                             {"Init COMPLETE", std::nullopt, true},
                                             {"COMPLETE", std::nullopt, true},
                                             {"Destroy START", CommEnd::How::kDestroy, false},
                                             {"Destroy COMPLETE", CommEnd::How::kDestroy, true},
                                             {"Abort START", CommEnd::How::kAbort, false},
                                             {"Abort COMPLETE", CommEnd::How::kAbort, true},
                                             {"Revoke START", CommEnd::How::kRevoke, false},
                                             {"Revoke COMPLETE", CommEnd::How::kRevoke, true}}};

/// `[Rank 3] ncclCommInitRank comm 0x55d0 rank 3 nranks 16 ... - Init START`. From 2.23 on the START of a split lacks
/// the blank before its dash.
std::optional<What> ReadLife(string_view message) {
  if (const std::size_t close = message.find("] "); message.starts_with("[Rank ") && close != kNowhere)
    message.remove_prefix(close + 2);
  string_view api;
  if (message.starts_with("ncclComm")) api = NextWord(message);
  const std::size_t comm = message.find_first_not_of(' '), dash = message.rfind("- ");
  if (comm == kNowhere || dash == kNowhere || !message.substr(comm).starts_with("comm ")) return std::nullopt;
  string_view tail = message.substr(dash + 2);
  while (tail.ends_with(' ') || tail.ends_with('\t')) tail.remove_suffix(1);
  if (const std::size_t result = tail.find(", result "); result != kNowhere && Number<int>(tail.substr(result + 9)))
    tail = tail.substr(0, result);
  const auto* ending =
      std::find_if(kEndings.begin(), kEndings.end(), [&](const Ending& each) { return each.text == tail; });
  if (ending == kEndings.end()) return std::nullopt;
  const auto fields = ReadFields(message.substr(0, dash));
  if (!fields) return std::nullopt;
  if (!ending->how) return InitEvent(api, *fields, ending->complete);
  return CommEnd{
      .how = *ending->how, .complete = ending->complete, .comm = *fields->comm, .rank = GroupRank{*fields->rank}};
}

/// `CommRevokeAsync START comm 0x55d0 rank 3 ...`, `CommRevokeAsync END comm 0x55d0 result 0`.
std::optional<What> ReadRevoke(string_view message) {
  if (!Take(message, "CommRevokeAsync ")) return std::nullopt;
  const string_view stage = NextWord(message);
  if ((stage != "START" && stage != "END") || NextWord(message) != "comm") return std::nullopt;
  const auto comm = Pointer(NextWord(message));
  const bool has_rank = NextWord(message) == "rank";
  const auto rank = Number<int>(NextWord(message));
  if (!comm || !rank) return std::nullopt;
  return CommEnd{.how = CommEnd::How::kRevoke,
                 .complete = stage == "END",
                 .comm = *comm,
                 .rank = has_rank ? std::optional(GroupRank{*rank}) : std::nullopt};
}

/// What is left of `text` behind numbers with `dots` dots between them; nothing where it does not start so.
std::optional<string_view> BehindNumbers(string_view text, int dots) {
  for (int part = 0; part <= dots; ++part) {
    const std::size_t digits =
        static_cast<std::size_t>(std::find_if_not(text.begin(), text.end(), IsDigit) - text.begin());
    text.remove_prefix(digits);
    if (digits == 0 || (part < dots && !Take(text, "."))) return std::nullopt;
  }
  return text;
}

/// `NCCL version 2.21.5+cuda12.4`, and RAS' `NCCL version 2.27.7 compiled with CUDA 12.9`.
std::optional<What> ReadVersion(string_view text) {
  if (!Take(text, "NCCL version ")) return std::nullopt;
  const string_view word = NextWord(text);
  const std::size_t plus = word.find("+cuda");
  const string_view version = word.substr(0, plus);
  string_view cuda = plus == kNowhere ? string_view() : word.substr(plus + 5);
  if (Take(text, " compiled with CUDA ")) cuda = NextWord(text);
  // Behind a version letters may follow, as in 2.4.2rc1.
  const auto suffix = BehindNumbers(version, 2), behind_cuda = BehindNumbers(cuda, 1);
  if (!suffix || suffix->find_first_of(".:[") != kNowhere || !(cuda.empty() || behind_cuda == "")) return std::nullopt;
  return NcclVersion{std::string(version), std::string(cuda)};
}

/// `init.cc:1358 -> 6 [Async thread]`, `net.cc:32 (ncclNetInit) -> 2 (Connection refused)`.
std::optional<What> ReadReturn(string_view message) {
  const std::size_t arrow = message.find(" -> ");
  string_view head = message.substr(0, arrow);
  const string_view site = NextWord(head);
  if (arrow == kNowhere || !IsSite(site) || !(head.empty() || (head.starts_with(" (") && head.ends_with(')'))))
    return std::nullopt;
  string_view tail = message.substr(arrow + 4);
  const auto result = Number<int>(NextWord(tail));
  if (!result || !(tail.empty() || tail == " " || tail.starts_with(" (") || tail.starts_with(" [")))
    return std::nullopt;
  return NcclReturn{std::string(site), *result};
}

/// `NCCL_IB_HCA set by environment to mlx5_0.`: most versions end it with a full stop of their own.
std::optional<What> ReadEnvironment(string_view message) {
  if (!message.starts_with("NCCL_")) return std::nullopt;
  const string_view name = NextWord(message);
  if (!Take(message, " set by environment to ") && !Take(message, " set to ")) return std::nullopt;
  if (message.ends_with('.')) message.remove_suffix(1);
  return EnvironmentSet{std::string(name), std::string(message)};
}

/// What a line says, if it is one that matters and whole.
std::optional<What> ReadMessage(const NcclPrefix& prefix) {
  // Another process wrote into this line: what stands here is neither's text.
  if (FindLevel(prefix.message)) return std::nullopt;
  if (prefix.level == NcclPrefix::Level::kWarn || prefix.level == NcclPrefix::Level::kAbort) {
    if (prefix.message.empty()) return std::nullopt;
    return NcclWarn{std::string(prefix.site), std::string(prefix.message)};
  }
  if (prefix.level != NcclPrefix::Level::kInfo) return std::nullopt;
  if (auto what = ReadLife(prefix.message)) return what;
  if (auto what = ReadReturn(prefix.message)) return what;
  if (auto what = ReadEnvironment(prefix.message)) return what;
  if (auto what = ReadVersion(prefix.message)) return what;
  if (auto what = ReadNetwork(prefix.message)) return what;
  return ReadRevoke(prefix.message);
}

class NcclParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    const auto prefix = ParseNcclPrefix(record.text);
    auto what = prefix ? ReadMessage(*prefix) : ReadVersion(record.text);
    if (!what) return prefix.has_value();
    Event event = EventFrom(record, std::move(*what));
    if (prefix) {
      // NCCL's own name for the host joins with every other NCCL line; an envelope may call it by an address.
      if (prefix->host != "unknown")
        event.origin.host = Known<std::string>{std::string(prefix->host), Basis::kObserved, {}};
      event.origin.pid = prefix->pid;
      event.origin.cuda_dev = prefix->cuda_dev;
      if (!event.at) event.at = prefix->at;
    }
    out.Add(std::move(event));
    return true;
  }
};

constexpr string_view kNcclMarks[] = {" NCCL INFO",  " NCCL WARN", " NCCL ABORT",
                                      " NCCL TRACE", " NCCL CALL", "NCCL version "};

}  // namespace

std::optional<NcclPrefix> ParseNcclPrefix(std::string_view text) {
  const auto level = FindLevel(text);
  if (!level) return std::nullopt;
  std::optional<Timestamp> at;
  string_view head = text.substr(0, level->begin);
  if (head.starts_with('[')) {
    if (const auto parsed = ParseTime(head.substr(1))) at = parsed->time;
    const std::size_t close = head.find("] ");
    if (close == kNowhere) return std::nullopt;
    head.remove_prefix(close + 2);
  } else if (const auto parsed = ParseTime(head)) {
    at = parsed->time;
    head.remove_prefix(parsed->size);
  }
  const auto process = ReadProcess(NextWord(head));
  const auto place = process ? ReadPlace(head, level->level) : std::nullopt;
  if (!place) return std::nullopt;
  const string_view message = text.substr(level->end);
  return NcclPrefix{.host = process->host,
                    .pid = process->pid,
                    .tid = process->tid,
                    .cuda_dev = place->cuda_dev,
                    .at = at,
                    .level = level->level,
                    .site = place->site,
                    .message = message.substr(0, message.find('\0'))};
}

bool ReadNcclOrigin(std::string_view text, Origin& origin) {
  if (text.substr(0, 256).find(" NCCL ") == kNowhere) return false;
  const auto prefix = ParseNcclPrefix(text);
  if (!prefix) return false;
  origin.host = Known<std::string>{std::string(prefix->host), Basis::kObserved, {}};
  origin.pid = prefix->pid;
  if (prefix->cuda_dev) origin.cuda_dev = prefix->cuda_dev;
  return true;
}

// Of INFO lines only: an exception quotes warnings.
std::string_view WithoutForeignHead(std::string_view text) {
  constexpr std::size_t kLongestHead = 256;
  const auto level = FindLevel(text.substr(0, kLongestHead));
  if (!level || level->level != NcclPrefix::Level::kInfo || ParseNcclPrefix(text)) return text;
  for (std::size_t at = text.find_first_of(" \t:|"); at < level->begin; at = text.find_first_of(" \t:|", at + 1))
    if (text.substr(at + 1, 1) != " " && ParseNcclPrefix(text.substr(at + 1))) return text.substr(at + 1);
  return text;
}

std::optional<std::string> ParseBusId(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == kNowhere) {
    const auto packed = Number<std::uint64_t>(text, 16);
    if (!packed) return std::nullopt;
    return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", *packed >> 20, *packed >> 12 & 0xFF, *packed >> 4 & 0xFF,
                       *packed & 0xF);
  }
  const string_view rest = text.substr(colon + 1);
  const auto domain = Number<std::uint32_t>(text.substr(0, colon), 16);
  if (rest.size() != 7 || rest[2] != ':' || rest[5] != '.') return std::nullopt;
  const auto bus = Number<std::uint32_t>(rest.substr(0, 2), 16), device = Number<std::uint32_t>(rest.substr(3, 2), 16);
  const auto function = Number<std::uint32_t>(rest.substr(6), 16);
  if (!domain || !bus || !device || !function) return std::nullopt;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", *domain, *bus, *device, *function);
}

extern const Format kNccl{.name = "nccl",
                          .framing = Framing::kLines,
                          .component = Component::kNccl,
                          .marks = kNcclMarks,
                          .fold = &kNcclFold,
                          .make = &Make<NcclParser>};

}  // namespace inquest
