// Scans one block: bulk formats folded, the rest sieved, the few lines that matter copied out.
#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <unordered_map>

#include "parsers/block.h"
#include "parsers/envelope.h"
#include "parsers/escapes.h"
#include "parsers/fold.h"
#include "parsers/formats.h"
#include "parsers/structure.h"

namespace inquest {
namespace {

constexpr std::size_t kLastOnly = 8;  ///< hits kept of a rule that floods
constexpr std::size_t kSpansInPlace = 8;
constexpr std::size_t kLongestLineHead = 256;  ///< what may stand in front of a fold's mark
constexpr std::size_t kLookedAtOnce = 16;
constexpr std::size_t kFewestFound = 256,
                      kMostFound = 64 * 1024;  ///< bytes that are cut before known lines are tried again

/// Why a line is kept.
enum class Reason : std::uint8_t { kNone, kSection, kContext, kOwn };

/// Whose mark it is; nullptr: a rule's hit.
const Format* FormatOf(const Sieve& sieve, std::uint32_t id) {
  const auto& formats = Marks().formats;
  const std::uint32_t mark = id - sieve.first_mark_id();
  return id >= sieve.first_mark_id() && mark < formats.size() ? formats[mark] : nullptr;
}

/// Lines behind a mark's that its format wants to see.
std::uint32_t FollowOf(const Sieve& sieve, std::uint32_t id) {
  const Format* const format = FormatOf(sieve, id);
  return format != nullptr ? format->follow : 0;
}

/// The format whose line it is unread, as Format::silent says; nullptr: none.
const Format* SilentFormat(const Sieve& sieve, const BlockYield& yield, const KeptLine& line) {
  if (line.context || line.section || line.bulk || line.hit_count == 0) return nullptr;
  const std::span<const std::uint32_t> hits(yield.hits.data() + line.hits, line.hit_count);
  const Format* const format = FormatOf(sieve, hits.front());
  if (format == nullptr || format->silent.empty()) return nullptr;
  const std::string_view text = yield.TextOf(line);
  const bool silent =
      std::ranges::any_of(format->silent, [&](std::string_view head) { return text.starts_with(head); }) &&
      std::ranges::all_of(hits, [&](std::uint32_t id) { return FormatOf(sieve, id) == format; }) &&
      text.find("[rank") == std::string_view::npos;  // where another wrote into the line
  return silent ? format : nullptr;
}

}  // namespace

// Most pieces of a log are plain and stay so. They are never visited one by one: what is done for a piece is done for
// those of the bulk format, that the sieve hit, that are damaged, or that stand near one of them.
struct BlockScanner::State {
  State(const Sieve& s, Code code, CallTimes call_times)
      : sieve(s),
        times(call_times),
        scanner(s.MakeScanner()),
        fold(*BulkFormat().fold),
        pieces(fold.mark, code),
        folder(fold.make(code)) {}

  const Sieve& sieve;
  CallTimes times;
  std::unique_ptr<Sieve::Scanner> scanner;
  const Folding& fold;
  Structure pieces;
  std::unique_ptr<Folder> folder;
  std::vector<LineClass> classes;                              ///< by piece
  std::vector<std::uint32_t> known_ends;                       ///< of lines that were folded by the run
  std::vector<std::uint32_t> unfolded;                         ///< pieces of the bulk format that were not folded
  std::vector<std::pair<std::uint32_t, std::uint32_t>> spans;  ///< of the block, [begin, end): what the sieve is to see
  std::uint32_t unsieved = 0;                                  ///< behind the last of these
  std::vector<Sieve::Hit> hits;
  std::string rest;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> rest_places;  ///< offset in rest -> offset in block
  struct LastOnly {
    std::array<std::uint32_t, kLastOnly> pieces{};
    std::size_t count = 0;
  };
  std::unordered_map<std::uint32_t, LastOnly> last_only;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> wanted;  ///< piece, hit id
  std::vector<Reason> reasons;                                  ///< by piece
  std::vector<std::uint32_t> keep;                              ///< pieces that have a reason
  std::vector<std::uint32_t> samples;                           ///< pieces, in order
  std::string without_escapes;                                  ///< the block, where it had some, and kPadding bytes

  std::uint32_t Size(std::uint32_t piece) const { return pieces.next(piece) - pieces.begin(piece); }
  void Classify(std::string_view block, BlockYield& yield, bool cut_head);
  std::size_t FoldKnown(std::string_view block, BlockYield& yield);
  void LeaveOut(std::size_t first, std::size_t last);
  void SieveRest(std::string_view block);
  void CollectWanted();
  void ChooseKept(bool goes_on);
  void Sample(std::string_view raw, std::uint64_t offset);
  std::vector<std::uint32_t> Damaged(std::uint32_t block_size, bool cut_head) const;
  void Keep(std::uint32_t block_size, BlockYield& yield, bool cut_head);
  void PeelKept(BlockYield& yield) const;
  void ReadTimes(CallBatch& batch) const;
};

/// Folds lines from where the pieces end, as long as they were seen before; returns how many were.
std::size_t BlockScanner::State::FoldKnown(std::string_view block, BlockYield& yield) {
  const std::size_t first = pieces.size();
  known_ends.clear();
  folder->TakeKnown(block, pieces.at(), pieces.lines(), static_cast<std::uint32_t>(first), known_ends);
  if (known_ends.empty()) return 0;
  pieces.TakeLines(known_ends);
  classes.resize(pieces.size(), LineClass::kFolded);
  yield.tally.claimed += pieces.at() - pieces.begin(first);
  LeaveOut(first, pieces.size() - 1);
  return known_ends.size();
}

/// The sieve is not to see these pieces.
void BlockScanner::State::LeaveOut(std::size_t first, std::size_t last) {
  if (pieces.begin(first) != unsieved) spans.emplace_back(unsieved, pieces.begin(first));
  unsieved = pieces.next(last);
}

void BlockScanner::State::Classify(std::string_view block, BlockYield& yield, bool cut_head) {
  classes.clear();
  unfolded.clear();
  spans.clear();
  unsieved = 0;
  // Several lines at once, filled in place: copying what was just written stalls.
  std::array<Folder::Line, kLookedAtOnce> lines;
  std::size_t looked_at = 0;
  const auto take_looked_at = [&] {
    const std::span taken(lines.data(), looked_at);
    folder->Take(taken);
    for (const Folder::Line& line : taken) {
      classes[line.piece] = line.what;
      if (line.what == LineClass::kFolded)
        yield.tally.claimed += Size(line.piece);
      else
        unfolded.push_back(line.piece);
      if (line.what == LineClass::kFolded || line.what == LineClass::kTorn) LeaveOut(line.piece, line.piece);
    }
    looked_at = 0;
  };
  std::uint32_t first_piece = cut_head ? 1 : 0;
  pieces.Begin(block);
  // Among lines that were seen before there are few others; among others, few that were.
  for (std::size_t stretch = kFewestFound; !pieces.done(); stretch = std::min(2 * stretch, kMostFound)) {
    if (pieces.size() >= first_piece && FoldKnown(block, yield) >= kLookedAtOnce) stretch = kFewestFound;
    pieces.Find(stretch);
    classes.resize(pieces.size(), LineClass::kPlain);
    for (const Structure::Found& found : pieces.found()) {
      const std::string_view text = pieces.text(found.piece);
      const std::uint32_t at = found.offset - pieces.begin(found.piece);
      // In front of the mark stand launchers' tags, not more; the first of a line counts.
      if (found.piece < first_piece || at >= kLongestLineHead || text.size() < fold.shortest ||
          !text.substr(at).starts_with(fold.mark))
        continue;
      first_piece = found.piece + 1;
      Folder::Line& line = lines[looked_at++];
      line.text = text;
      line.mark = at;
      line.number = pieces.line(found.piece);
      line.piece = found.piece;
      if (looked_at == lines.size()) take_looked_at();
    }
    take_looked_at();
  }
  if (unsieved != block.size()) spans.emplace_back(unsieved, static_cast<std::uint32_t>(block.size()));
}

// Contiguous runs are sieved in place; many short ones are first copied together, since each scan has a price.
void BlockScanner::State::SieveRest(std::string_view block) {
  hits.clear();
  rest_places.clear();
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
  std::sort(hits.begin(), hits.end(),
            [](const Sieve::Hit& a, const Sieve::Hit& b) { return a.end != b.end ? a.end < b.end : a.id < b.id; });
}

void BlockScanner::State::CollectWanted() {
  wanted.clear();
  last_only.clear();
  std::uint32_t piece = 0;
  for (const Sieve::Hit& hit : hits) {
    const std::uint32_t last = hit.end == 0 ? 0 : hit.end - 1;
    if (pieces.next(piece) <= last)
      piece = static_cast<std::uint32_t>(std::min(pieces.PieceAt(last), pieces.size() - 1));
    // Lines that are printed by the thousand are kept for a rule's sake, not for their mark.
    if (classes[piece] == LineClass::kKnown && hit.id >= sieve.first_mark_id()) continue;
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

void BlockScanner::State::ChooseKept(bool goes_on) {
  reasons.assign(pieces.size(), Reason::kNone);
  keep.clear();
  const auto give = [&](std::uint32_t i, Reason reason) {
    if (reasons[i] == Reason::kNone) keep.push_back(i);
    reasons[i] = reason;
  };
  for (const auto& [piece, id] : wanted) give(piece, Reason::kOwn);
  for (const std::uint32_t i : unfolded)
    if (classes[i] == LineClass::kKept) give(i, Reason::kOwn);
  const auto may_be_context = [&](std::size_t i) {
    return (classes[i] == LineClass::kPlain || classes[i] == LineClass::kKnown) && !pieces.text(i).empty();
  };
  const auto context = [&](std::size_t i) {
    if (may_be_context(i) && reasons[i] == Reason::kNone) give(static_cast<std::uint32_t>(i), Reason::kContext);
  };
  std::size_t over = 0;  // behind the sections before, which began no later: a line may hold a hundred thousand
  const auto section = [&](std::size_t first, std::uint32_t end_line) {
    for (over = std::max(first, over); over < pieces.size() && pieces.line(over) < end_line; ++over) {
      const std::size_t i = over;
      if (classes[i] == LineClass::kPlain && reasons[i] == Reason::kNone && !pieces.text(i).empty())
        give(static_cast<std::uint32_t>(i), Reason::kSection);
    }
  };
  // Which of the lines near an end of the block stand near a telling one of the next, or at the input's end, knows who
  // reads the blocks in order. Of a progress bar's pieces the last one says it all.
  const auto is_last_of_line = [&](std::size_t i) {
    return i + 1 == pieces.size() || pieces.line(i + 1) != pieces.line(i);
  };
  const auto near = [&](std::size_t i, std::uint32_t line) { return is_last_of_line(i) || pieces.line(i) == line; };
  const std::size_t own = keep.size();
  for (std::size_t k = 0; k < own; ++k) {
    const std::uint32_t line = pieces.line(keep[k]);
    std::size_t left = kContextBefore;
    for (std::size_t i = keep[k];
         left > 0 && i-- > 0 && reasons[i] != Reason::kOwn && pieces.line(i) + kContextReach >= line;)
      if (near(i, line) && may_be_context(i)) context(i), --left;
    left = kContextAfter;
    for (std::size_t i = keep[k] + 1;
         left > 0 && i < pieces.size() && reasons[i] != Reason::kOwn && pieces.line(i) <= line + kContextAfter; ++i)
      if (near(i, line)) context(i), --left;
  }
  std::size_t left = goes_on ? kContextAfter : kHeadLines;
  for (std::size_t i = 0; left > 0 && i < pieces.size(); ++i)
    if (is_last_of_line(i)) context(i), --left;
  left = kTailLines;
  for (std::size_t i = pieces.size(); left > 0 && i-- > 0;)
    if (is_last_of_line(i)) context(i), --left;
  for (const std::uint32_t i : samples) context(i);
  // A section may have begun in the block before: who reads the blocks in order knows.
  if (goes_on) section(0, kMostFollow);
  for (const auto& [piece, id] : wanted)
    if (const std::uint32_t follow = FollowOf(sieve, id); follow > 0)
      section(piece + 1, pieces.line(piece) + 1 + follow);
  std::sort(keep.begin(), keep.end());
}

/// The first place not before this one at which a line is sampled: closer together where a log of a few thousand lines
/// would have none.
std::uint64_t NextSample(std::uint64_t at) {
  constexpr std::uint64_t kFine = 8 * 1024, kFineUntil = 1024 * 1024;
  const std::uint64_t every = at <= kFineUntil ? kFine : kSampleBytes;
  return (at + every - 1) / every * every;
}

/// `raw`: the block before escapes were taken out of it, which leaves its lines as many as they were.
void BlockScanner::State::Sample(std::string_view raw, std::uint64_t offset) {
  samples.clear();
  const auto ends_line = [&](std::size_t i) { return i + 1 == pieces.size() || pieces.line(i + 1) != pieces.line(i); };
  for (std::size_t i = 0; i < pieces.size() && offset + pieces.begin(i) < kSampledWhole; ++i)
    if (ends_line(i)) samples.push_back(static_cast<std::uint32_t>(i));
  std::uint32_t line = 0;
  std::size_t counted = 0;
  for (std::uint64_t at = NextSample(std::max<std::uint64_t>(1, offset)); at < offset + raw.size() && pieces.size() > 0;
       at = NextSample(at + 1)) {
    const auto here = static_cast<std::size_t>(at - offset);
    std::size_t piece = 0;
    if (without_escapes.empty()) {
      piece = pieces.PieceAt(static_cast<std::uint32_t>(here));
    } else {
      line += static_cast<std::uint32_t>(std::count(raw.begin() + static_cast<std::ptrdiff_t>(counted),
                                                    raw.begin() + static_cast<std::ptrdiff_t>(here), '\n'));
      counted = here;
      piece = pieces.FirstOfLine(line);
    }
    piece = std::min(piece, pieces.size() - 1);
    samples.push_back(static_cast<std::uint32_t>(pieces.FirstOfLine(pieces.line(piece) + 1) - 1));
  }
  std::ranges::sort(samples);  // those of the whole head and those of a distance meet there
  samples.erase(std::unique(samples.begin(), samples.end()), samples.end());
}

/// Damaged pieces, in order. What was folded is whole where it matters.
std::vector<std::uint32_t> BlockScanner::State::Damaged(std::uint32_t block_size, bool cut_head) const {
  std::vector<std::uint32_t> out = pieces.odd();
  if (cut_head && pieces.size() > 0) out.push_back(0);
  for (const std::uint32_t i : unfolded)
    if (classes[i] == LineClass::kTorn) out.push_back(i);
  // A piece longer than the cap reaches over a multiple of it.
  for (std::size_t at = kLineCap; at < block_size; at += kLineCap) {
    const std::size_t i = std::min(pieces.PieceAt(static_cast<std::uint32_t>(at)), pieces.size() - 1);
    if (pieces.text(i).size() > kLineCap) out.push_back(static_cast<std::uint32_t>(i));
  }
  std::erase_if(out, [this](std::uint32_t i) { return classes[i] == LineClass::kFolded; });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

void BlockScanner::State::Keep(std::uint32_t block_size, BlockYield& yield, bool cut_head) {
  const std::vector<std::uint32_t> damaged = Damaged(block_size, cut_head);
  const auto is_damaged = [&](std::uint32_t i) { return std::binary_search(damaged.begin(), damaged.end(), i); };
  std::uint64_t kept_bytes = 0;
  auto next_wanted = wanted.begin();
  for (const std::uint32_t i : keep) {
    const auto first_wanted = std::find_if(next_wanted, wanted.end(), [i](const auto& hit) { return hit.first >= i; });
    next_wanted = std::find_if(first_wanted, wanted.end(), [i](const auto& hit) { return hit.first > i; });
    if (cut_head && i == 0) {
      reasons[0] = Reason::kNone;
      continue;
    }
    const std::string_view text = pieces.text(i).substr(0, kLineCap);
    KeptLine kept;
    kept.line = pieces.line(i);
    kept.offset = pieces.begin(i);
    kept.bytes = Size(i);
    kept.text = static_cast<std::uint32_t>(yield.arena.size());
    kept.size = static_cast<std::uint32_t>(text.size());
    yield.arena.insert(yield.arena.end(), text.begin(), text.end());
    kept.hits = static_cast<std::uint32_t>(yield.hits.size());
    for (auto hit = first_wanted; hit != next_wanted; ++hit) yield.hits.push_back(hit->second);
    kept.hit_count = static_cast<std::uint32_t>(yield.hits.size()) - kept.hits;
    kept.context = reasons[i] == Reason::kContext;
    kept.sampled = kept.context && std::ranges::binary_search(samples, i);
    kept.section = reasons[i] == Reason::kSection;
    kept.damaged = is_damaged(i);
    kept.bulk = classes[i] == LineClass::kKept || classes[i] == LineClass::kKnown;
    yield.kept.push_back(kept);
    kept_bytes += kept.bytes;
  }
  for (const std::uint32_t i : damaged)
    if (reasons[i] == Reason::kNone) yield.tally.damaged += Size(i);
  for (const std::uint32_t i : unfolded)
    if (reasons[i] == Reason::kNone && classes[i] != LineClass::kTorn && !is_damaged(i)) yield.tally.claimed += Size(i);
  yield.tally.plain = block_size - kept_bytes - yield.tally.damaged - yield.tally.claimed;
}

/// Who wrote a line asks for no order among lines, and in a flood is a good part of the work.
void BlockScanner::State::PeelKept(BlockYield& yield) const {
  yield.peeled.reserve(yield.kept.size());
  for (KeptLine& line : yield.kept) {
    line.silent = SilentFormat(sieve, yield, line);
    if (line.silent != nullptr) {
      yield.peeled.emplace_back();
      continue;
    }
    std::string& rewritten = yield.rewritten.emplace_back();
    Peeled& peeled = yield.peeled.emplace_back(Peel(yield.TextOf(line), rewritten));
    if (rewritten.empty()) yield.rewritten.pop_back();
    if (fold.read_origin(peeled.text, peeled.origin) || !line.bulk) continue;
    const std::string_view own = fold.without_foreign_head(peeled.text);
    if (own.size() != peeled.text.size()) fold.read_origin(own, peeled.origin);
    peeled.text = own;
  }
}

void BlockScanner::State::ReadTimes(CallBatch& batch) const {
  batch.times.reserve(batch.calls.size());
  std::string scratch;
  std::size_t piece = 0;
  for (const CallBatch::Call& call : batch.calls) {
    const auto is_ahead = [&] {
      const std::uint32_t line = pieces.line(piece);
      return line < call.line || (line == call.line && classes[piece] != LineClass::kFolded);
    };
    while (piece < pieces.size() && is_ahead()) ++piece;
    const bool found = piece < pieces.size() && pieces.line(piece) == call.line;
    batch.times.push_back(found ? Peel(pieces.text(piece).substr(0, kCitedBytes), scratch).at : std::nullopt);
    if (found) ++piece;
  }
}

BlockScanner::BlockScanner(const Sieve& sieve, Code code, CallTimes times)
    : state_(std::make_unique<State>(sieve, code, times)) {}
BlockScanner::~BlockScanner() = default;

BlockYield BlockScanner::Scan(std::string_view block, bool cut_head, std::uint64_t offset) {
  State& s = *state_;
  BlockYield yield;
  const std::string_view raw = block;
  s.without_escapes.clear();
  const auto classify = [&] {
    s.folder->Begin();
    s.Classify(block, yield, cut_head);
  };
  classify();
  // Who looks for line ends sees ESC as well, so that a block without one pays nothing. One that has some is read
  // again.
  if (s.pieces.escaped()) {
    AppendLinesWithoutEscapes(block, s.without_escapes);
    yield = {};
    yield.removed.claimed = block.size() - s.without_escapes.size();
    s.without_escapes.resize(s.without_escapes.size() + kPadding);
    block = std::string_view(s.without_escapes).substr(0, s.without_escapes.size() - kPadding);
    classify();
  }
  s.SieveRest(block);
  s.CollectWanted();
  s.Sample(raw, offset);
  s.ChooseKept(offset > 0);
  s.Keep(static_cast<std::uint32_t>(block.size()), yield, cut_head);
  s.PeelKept(yield);

  yield.folded = s.folder->End(s.pieces);
  if (s.times == CallTimes::kRead) s.ReadTimes(yield.folded.calls);
  yield.tally.bytes = block.size();
  yield.tally.lines = s.pieces.lines();
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
