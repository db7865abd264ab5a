// Scans one block: calls folded, the rest sieved, the few lines that matter copied out.
#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <unordered_map>

#include "parsers/block.h"
#include "parsers/calls.h"
#include "parsers/structure.h"

namespace inquest {
namespace {

constexpr std::size_t kContextBefore = 4;  ///< plain lines kept before a kept one: what was printed last
constexpr std::size_t kContextAfter = 3;   ///< and what came next: a program that went on caught its exception
constexpr std::size_t kTail = 12;          ///< lines kept at the end of every block, for the same reason
constexpr std::size_t kLastOnly = 8;       ///< hits kept of a rule that floods
constexpr std::size_t kSpansInPlace = 8;

/// What the first look at a line said.
enum class Class : std::uint8_t { kPlain, kFolded, kNcclKnown, kNcclKept, kTorn };

bool StartsWith(std::string_view text, std::string_view head) { return text.substr(0, head.size()) == head; }

/// NCCL INFO messages that say who is who, or where a call failed. The others are known and say nothing.
bool WorthKeeping(std::string_view message) {
  static constexpr std::string_view kHeads[] = {"comm 0x", "ncclComm", "NCCL version", "NCCL_", "[Rank ", "CommRevoke", "Init timings", "NET/IB : Using", "NET/Socket : Using", "Bootstrap : Using", "Bootstrap: Using"};
  for (const std::string_view head : kHeads)
    if (StartsWith(message, head)) return head != "Init timings";
  return message.substr(0, 80).find(" -> ") != std::string_view::npos;
}

/// `NET/IB/2(1)/GDRDMA` -> `NET/IB/GDRDMA`: the transport without its device.
std::string NormaliseVia(std::string_view via) {
  std::string out;
  while (!via.empty()) {
    const std::size_t slash = std::min(via.find('/'), via.size());
    const std::string_view part = via.substr(0, slash);
    if (!part.empty() && !(part[0] >= '0' && part[0] <= '9')) {
      if (!out.empty()) out += '/';
      out += part;
    }
    via.remove_prefix(std::min(slash + 1, via.size()));
  }
  return out;
}

/// `Channel 01/0 : 3[3] -> 8[0] via ...` is printed by the sender; a `[receive]` line is not.
void NoteSender(std::string_view message, CallBatch::Process& process) {
  const std::size_t at = message.find(" : ");
  if (at == std::string_view::npos || message.find("[receive]") != std::string_view::npos) return;
  const std::string_view rest = message.substr(at + 3, 16);
  int rank = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
  if (error != std::errc() || end == rest.data() + rest.size() || *end != '[') return;
  // Ranks of several communicators differ; the first stands for the job's own, which is built first.
  if (!process.sender) process.sender = GroupRank{rank};
}

struct Piece {
  std::uint32_t begin = 0, end = 0, next = 0;  ///< text [begin, end), the following piece starts at next
  std::uint32_t line = 0;
};

}  // namespace

struct BlockScanner::State {
  explicit State(const Sieve& s) : sieve(s), scanner(s.MakeScanner()) {}

  const Sieve& sieve;
  std::unique_ptr<Sieve::Scanner> scanner;
  Structure structure;
  CallFolder calls;
  std::vector<Piece> pieces;
  std::vector<Class> classes;
  std::vector<std::uint32_t> rest_pieces;  ///< those that were not folded, in order
  std::vector<bool> odd;
  std::vector<Sieve::Hit> hits;
  std::string rest;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> rest_places;  ///< offset in rest -> offset in block
  struct LastOnly { std::array<std::uint32_t, kLastOnly> pieces{}; std::size_t count = 0; };
  std::unordered_map<std::uint32_t, LastOnly> last_only;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> wanted;  ///< piece, hit id

  std::string_view Text(std::string_view block, const Piece& piece) const { return block.substr(piece.begin, piece.end - piece.begin); }
  void CutPieces(std::string_view block);
  void Classify(std::string_view block, BlockYield& yield, bool cut_head);
  void FoldVia(std::string_view line, std::size_t bracket, std::string_view message, std::uint32_t piece, BlockYield& yield);
  void SieveRest(std::string_view block);
  void CollectWanted();
  void Keep(std::string_view block, BlockYield& yield, bool cut_head);
};

// A '\r' ends a piece (progress bars overwrite themselves), "\r\n" ends it once.
void BlockScanner::State::CutPieces(std::string_view block) {
  pieces.clear();
  std::uint32_t begin = 0, line = 0;
  for (std::size_t i = 0; i < structure.ends.size(); ++i) {
    const std::uint32_t end = structure.ends[i];
    std::uint32_t next = end + 1;
    bool newline = block[end] == '\n';
    if (!newline && next < block.size() && block[next] == '\n') {
      ++next;
      ++i;
      newline = true;
    }
    pieces.push_back({begin, end, next, line});
    begin = next;
    if (newline) ++line;
  }
  if (begin < block.size()) {
    const auto size = static_cast<std::uint32_t>(block.size());
    pieces.push_back({begin, size, size, line});
  }
  odd.assign(structure.odd.empty() ? 0 : pieces.size(), false);
  std::size_t at = 0;
  for (const std::uint32_t offset : structure.odd) {
    while (pieces[at].next <= offset) ++at;
    odd[at] = true;
  }
}

void BlockScanner::State::FoldVia(std::string_view line, std::size_t bracket, std::string_view message, std::uint32_t piece,
                                  BlockYield& yield) {
  const std::size_t via_at = message.find(" via ");
  if (via_at == std::string_view::npos) return;
  const auto process = calls.ProcessOf(line, bracket, piece);
  if (!process) return;
  NoteSender(message, calls.batch().processes[*process]);
  const std::string via = NormaliseVia(message.substr(via_at + 5));
  for (auto it = yield.vias.rbegin(); it != yield.vias.rend(); ++it)
    if (it->process == *process && it->via == via) {
      ++it->count;
      return;
    }
  yield.vias.push_back({*process, via, 1, pieces[piece].line, std::string(line.substr(0, kCitedBytes))});
}

void BlockScanner::State::Classify(std::string_view block, BlockYield& yield, bool cut_head) {
  classes.assign(pieces.size(), Class::kPlain);
  rest_pieces.clear();
  std::size_t guess = 0;
  for (std::uint32_t i = 0; i < pieces.size(); ++i) {
    const std::string_view line = Text(block, pieces[i]);
    const std::size_t bracket = line.size() < 24 || (cut_head && i == 0) ? std::string_view::npos : FindNcclInfo(line, guess);
    if (bracket == std::string_view::npos) {
      rest_pieces.push_back(i);
      continue;
    }
    guess = bracket;
    const std::string_view message = line.substr(bracket + 12);
    switch (calls.Add(line, bracket, pieces[i].line, i)) {
      case CallLine::kCall:
        classes[i] = Class::kFolded;
        yield.tally.claimed += pieces[i].next - pieces[i].begin;
        continue;
      case CallLine::kTorn:
        classes[i] = Class::kTorn;
        rest_pieces.push_back(i);
        continue;
      case CallLine::kNotACall: break;
    }
    if (StartsWith(message, "Channel ") || StartsWith(message, "Ring ") || StartsWith(message, "Trees") || StartsWith(message, "Tree ")) {
      FoldVia(line, bracket, message, i, yield);
      classes[i] = Class::kFolded;
      yield.tally.claimed += pieces[i].next - pieces[i].begin;
    } else {
      rest_pieces.push_back(i);
      classes[i] = WorthKeeping(message) ? Class::kNcclKept : Class::kNcclKnown;
    }
  }
}

// Contiguous runs are sieved in place; many short ones are first copied together, since each scan has a price.
void BlockScanner::State::SieveRest(std::string_view block) {
  hits.clear();
  rest_places.clear();
  std::vector<std::pair<std::uint32_t, std::uint32_t>> spans;
  for (const std::uint32_t i : rest_pieces) {
    if (classes[i] == Class::kTorn) continue;
    if (!spans.empty() && spans.back().second == pieces[i].begin)
      spans.back().second = pieces[i].next;
    else
      spans.emplace_back(pieces[i].begin, pieces[i].next);
  }
  if (spans.size() <= kSpansInPlace) {
    for (const auto& [begin, end] : spans) {
      const std::size_t first = hits.size();
      scanner->Scan(block.substr(begin, end - begin), hits);
      for (std::size_t i = first; i < hits.size(); ++i) hits[i].end += begin;
    }
  } else {
    rest.clear();
    for (const auto& [begin, end] : spans) {
      rest_places.emplace_back(static_cast<std::uint32_t>(rest.size()), begin);
      rest.append(block.substr(begin, end - begin));
    }
    scanner->Scan(rest, hits);
    for (Sieve::Hit& hit : hits) {
      const std::uint32_t last = hit.end == 0 ? 0 : hit.end - 1;
      const auto it = std::upper_bound(rest_places.begin(), rest_places.end(), std::pair(last, ~0u)) - 1;
      hit.end = it->second + (hit.end - it->first);
    }
  }
  std::sort(hits.begin(), hits.end(), [](const Sieve::Hit& a, const Sieve::Hit& b) { return a.end != b.end ? a.end < b.end : a.id < b.id; });
}

void BlockScanner::State::CollectWanted() {
  wanted.clear();
  last_only.clear();
  std::uint32_t piece = 0;
  for (const Sieve::Hit& hit : hits) {
    const std::uint32_t last = hit.end == 0 ? 0 : hit.end - 1;
    while (piece + 1 < pieces.size() && pieces[piece].next <= last) ++piece;
    // Lines that NCCL prints by the thousand are kept for a rule's sake, not for their mark.
    if (classes[piece] == Class::kNcclKnown && hit.id >= sieve.first_mark_id()) continue;
    if (hit.id < sieve.first_mark_id() && sieve.keep_last_only(hit.id)) {
      LastOnly& last_hits = last_only[hit.id];
      if (last_hits.count > 0 && last_hits.pieces[(last_hits.count - 1) % kLastOnly] == piece) continue;
      last_hits.pieces[last_hits.count++ % kLastOnly] = piece;
      continue;
    }
    wanted.emplace_back(piece, hit.id);
  }
  for (const auto& [id, last_hits] : last_only)
    for (std::size_t i = 0; i < std::min(last_hits.count, kLastOnly); ++i) wanted.emplace_back(last_hits.pieces[i], id);
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
}

void BlockScanner::State::Keep(std::string_view block, BlockYield& yield, bool cut_head) {
  constexpr std::uint8_t kNo = 0, kContext = 1, kYes = 2;
  std::vector<std::uint8_t> keep(pieces.size(), kNo);
  for (const auto& [piece, id] : wanted) keep[piece] = kYes;
  for (const std::uint32_t i : rest_pieces)
    if (classes[i] == Class::kNcclKept) keep[i] = kYes;
  const auto context = [&](std::size_t i) {
    if (keep[i] == kNo && pieces[i].begin != pieces[i].end && (classes[i] == Class::kPlain || classes[i] == Class::kNcclKnown)) keep[i] = kContext;
  };
  for (const std::uint32_t i : rest_pieces)
    if (keep[i] == kYes && (i == 0 || keep[i - 1] != kYes))
      for (std::size_t back = 1; back <= kContextBefore && back <= i; ++back) context(i - back);
  for (const std::uint32_t i : rest_pieces)
    if (keep[i] == kYes && classes[i] == Class::kPlain && (i + 1 == pieces.size() || keep[i + 1] != kYes))
      for (std::size_t ahead = 1; ahead <= kContextAfter && i + ahead < pieces.size(); ++ahead) context(i + ahead);
  // Of a progress bar's pieces the last one says it all.
  std::size_t tail = 0;
  for (std::size_t i = pieces.size(); i-- > 0 && tail < kTail;) {
    if (i + 1 < pieces.size() && pieces[i + 1].line == pieces[i].line) continue;
    context(i);
    ++tail;
  }

  std::size_t next_wanted = 0;
  for (const std::uint32_t i : rest_pieces) {
    const Piece& piece = pieces[i];
    const std::uint64_t bytes = piece.next - piece.begin;
    const bool headless = cut_head && i == 0;
    const bool damaged = headless || (!odd.empty() && odd[i]) || classes[i] == Class::kTorn || piece.end - piece.begin > kLineCap;
    if (keep[i] == kNo || headless) {
      while (next_wanted < wanted.size() && wanted[next_wanted].first == i) ++next_wanted;
      (damaged ? yield.tally.damaged : classes[i] == Class::kPlain ? yield.tally.plain : yield.tally.claimed) += bytes;
      continue;
    }
    const std::string_view text = Text(block, piece).substr(0, kLineCap);
    KeptLine kept;
    kept.line = piece.line;
    kept.offset = piece.begin;
    kept.bytes = static_cast<std::uint32_t>(bytes);
    kept.text = static_cast<std::uint32_t>(yield.arena.size());
    kept.size = static_cast<std::uint32_t>(text.size());
    yield.arena += text;
    kept.hits = static_cast<std::uint32_t>(yield.hits.size());
    for (; next_wanted < wanted.size() && wanted[next_wanted].first == i; ++next_wanted) yield.hits.push_back(wanted[next_wanted].second);
    kept.hit_count = static_cast<std::uint32_t>(yield.hits.size()) - kept.hits;
    kept.context = keep[i] == kContext;
    kept.damaged = damaged;
    kept.nccl = classes[i] == Class::kNcclKept || classes[i] == Class::kNcclKnown;
    yield.kept.push_back(kept);
  }
}

BlockScanner::BlockScanner(const Sieve& sieve) : state_(std::make_unique<State>(sieve)) {}
BlockScanner::~BlockScanner() = default;

BlockYield BlockScanner::Scan(std::string_view block, bool cut_head) {
  State& s = *state_;
  BlockYield yield;
  FindStructure(block, s.structure);
  s.CutPieces(block);
  s.calls.Begin();
  s.Classify(block, yield, cut_head);
  s.SieveRest(block);
  s.CollectWanted();
  s.Keep(block, yield, cut_head);

  const std::vector<std::uint32_t> last_pieces = s.calls.last_pieces();
  yield.calls = s.calls.Take();
  for (std::size_t i = 0; i < yield.calls.processes.size(); ++i) {
    const Piece& piece = s.pieces[last_pieces[i]];
    yield.calls.processes[i].last_line = piece.line;
    yield.calls.processes[i].last_text = std::string(s.Text(block, piece).substr(0, kCitedBytes));
  }
  yield.tally.bytes = block.size();
  yield.tally.lines = s.pieces.empty() ? 0 : s.pieces.back().line + (s.pieces.back().next > s.pieces.back().end && block.back() == '\n' ? 1 : 0);
  return yield;
}

void Tally::Add(const Tally& other) {
  bytes += other.bytes;
  lines += other.lines;
  claimed += other.claimed;
  plain += other.plain;
  damaged += other.damaged;
}

}  // namespace inquest
