// Peels what launchers and collectors put in front of a line. By hand: no expression, no allocation for a bare line.
#include "parsers/envelope.h"

#include <vector>

#include "parsers/docker_line.h"
#include "parsers/envelopes/front.h"
#include "parsers/escapes.h"
#include "parsers/formats/journal_line.h"
#include "parsers/message_head.h"
#include "parsers/restored_log.h"

namespace inquest {

// Declared here alone, as formats are in formats.cc.
extern const Envelope kRankTag, kMpirun, kKubectl, kTorchrun, kMpiexec, kDetermined, kRay, kDmesg, kProgressBar,
    kMpirunTime, kSyslog, kCollectorTime, kSrun, kTorchx, kCompose, kStreamName, kPdsh;

std::span<const Envelope* const> Envelopes() {
  static const Envelope* const kEnvelopes[] = {
      &kRankTag, &kMpirun, &kKubectl,     &kTorchrun,   &kMpiexec, &kDetermined,
      &kRay,     &kDmesg,  &kProgressBar, &kMpirunTime, &kSyslog,  &kCollectorTime,
      &kSrun,    &kTorchx, &kCompose,     &kStreamName, &kPdsh,
  };
  return kEnvelopes;
}

namespace {

constexpr int kMaxDepth = 8;

std::string WithoutColour(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  AppendWithoutEscapes(text, EscapeSpelling::kByte, out);
  return out;
}

/// The envelopes that a text may begin with.
const std::vector<const Envelope*>& Candidates(char first) {
  static const auto kOf = [](char begin) {
    std::vector<const Envelope*> out;
    std::ranges::copy_if(Envelopes(), std::back_inserter(out),
                         [&](const Envelope* each) { return each->first == begin; });
    return out;
  };
  static const std::vector<const Envelope*> kBracketed = kOf('['), kParenthesised = kOf('('), kOthers = kOf(0);
  return first == '[' ? kBracketed : first == '(' ? kParenthesised : kOthers;
}

constexpr std::size_t kLongestTags = 120;

/// `... 35.55s/it][rank3]:[E916 19:29:24.1 `: who printed the message is what matters, not who drew the bar.
void FindRankInside(Front& front) {
  for (std::size_t at = front.text.find("[rank"); at != kNowhere && !front.own_rank;
       at = front.text.find("[rank", at + 1)) {
    Front inside{front.text.substr(at)};
    if (!PeelRankTag(inside) || inside.text.size() < 3) continue;
    const bool c10 =
        inside.text[0] == '[' && std::string_view("EWIF").find(inside.text[1]) != kNowhere && !IsLetter(inside.text[2]);
    // Behind what nobody knows, but that a launcher set in front: `worker-1 [stderr] [rank3]: `.
    const bool behind_a_tag = at > 1 && front.text[at - 1] == ' ' && front.text[at - 2] == ']' && at < kLongestTags;
    // Behind the rule of a list or a box that somebody set the lines into: `    | [rank0]: `.
    const bool behind_a_rule = at > 0 && at < kLongestTags && front.text.find_first_not_of(" \t|") == at;
    if (!c10 && !behind_a_tag && !behind_a_rule && !inside.text.starts_with("Traceback (most recent")) continue;
    front.origin.rank = inside.origin.rank;
    front.own_rank = true;
  }
}

void PeelAll(Front& front) {
  const auto peel_one = [&] {
    return std::ranges::any_of(Candidates(front.text[0]), [&](const Envelope* each) { return each->peel(front); });
  };
  for (int depth = 0; depth < kMaxDepth && !front.text.empty() && peel_one(); ++depth) {
  }
  FindRankInside(front);
}

/// The writer's own time says when it happened, the collector's when it was read; but a time without year or date is
/// worth less than a collector's whole one.
std::optional<Timestamp> TimeOf(const Front& front) {
  const auto own = OwnTime(front.text);
  return own && (!front.at || own->date == Timestamp::Date::kFull) ? own : front.at;
}

/// What a whole log's restoration put in front of a line: writer, time and host between form feeds.
RestoredHead TakeRestoredHead(std::string_view& line) {
  RestoredHead head;
  const std::size_t end = line.starts_with(kRestoredHead) ? line.substr(0, 512).find(kRestoredHead, 1) : kNowhere;
  if (end == kNowhere) return head;
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

/// Without the marks by which a thread sets a line, or the name that it begins with, apart: `**RuntimeError**: ...`, a
/// whole line between back ticks. Empty where there are none.
std::string WithoutMarkup(std::string_view line) {
  constexpr std::string_view kMarkup = "*`_";
  constexpr std::size_t kMostMarks = 4;
  const std::size_t size = std::min(line.find_first_not_of(kMarkup), line.size());
  if (size > kMostMarks || size == line.size() || line[0] == '_' || line[size] == ' ') return {};
  const std::string close(line.rend() - static_cast<std::ptrdiff_t>(size), line.rend());
  const std::string_view rest = line.substr(size);
  const std::string_view inside = rest.substr(0, rest.find(close));
  if (inside.size() == rest.size()) return {};
  const std::string_view behind = rest.substr(inside.size() + close.size());
  const bool apart = behind.starts_with(": ") || behind.find_first_not_of(' ') == kNowhere;
  return apart ? std::string(inside).append(behind) : std::string();
}

}  // namespace

bool StartsWithTag(std::string_view text) {
  if (text[0] != '[' && !IsDigit(text[0])) return false;
  Front ahead{text};
  return PeelRankTag(ahead) || PeelMpirunTag(ahead) || PeelRoleTag(ahead);
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
  if (line.find('\x1b') != kNowhere) {
    scratch = WithoutColour(line);
    line = scratch;
  }
  if (line.starts_with('*') || line.starts_with('`'))
    if (std::string bare = WithoutMarkup(line); !bare.empty()) {
      scratch = std::move(bare);
      line = scratch;
    }
  Front front(line);
  if (docker_at) front.SetTime(*docker_at);
  if (journal && journal->at) front.SetTime(*journal->at);
  if (const auto at = head.time.empty() ? std::nullopt : TimeOf(ParseTime(head.time))) front.SetTime(*at);
  if (!head.writer.empty()) front.AddWriter(head.writer);
  PeelAll(front);
  // Where a launcher's label, and not the rank itself, says which rank wrote the line, who collected it stands beside
  // the launcher, on whatever host.
  const bool relayed = front.origin.rank && !front.own_rank;
  if (journal && !journal->host.empty()) front.origin.host = Known<std::string>{journal->host, Basis::kEnvelope, {}};
  if (!head.host.empty() && !relayed) front.SetHost(head.host);
  if (journal && journal->pid) front.origin.pid = journal->pid;
  ReadOwnWords(front.text, front.origin);
  Peeled peeled{.text = front.text, .origin = std::move(front.origin), .at = TimeOf(front)};
  if (!front.bar.empty())
    peeled.bar =
        std::make_unique<const Peeled>(Peeled{.text = front.bar, .origin = std::move(front.bar_origin), .at = {}});
  return peeled;
}

}  // namespace inquest
