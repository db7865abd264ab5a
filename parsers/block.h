// What scanning one block of an input yields: a plain value, the same on any thread or machine.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/code.h"
#include "core/input_form.h"
#include "parsers/container_log.h"
#include "parsers/envelope.h"
#include "parsers/fold.h"
#include "search/sieve.h"

namespace inquest {

struct Format;

/// Where the bytes of an input went; `claimed + plain + damaged` is every byte read.
struct Tally {
  std::uint64_t bytes = 0, lines = 0;
  std::uint64_t claimed = 0, plain = 0, damaged = 0;
  void Add(const Tally& other);
};

/// A line that is worth a second look.
struct KeptLine {
  std::uint32_t line = 0;                 ///< in the block, from 0
  std::uint32_t offset = 0;               ///< in the block
  std::uint32_t bytes = 0;                ///< with its terminator; not in the tally's claimed, plain or damaged yet
  std::uint32_t text = 0, size = 0;       ///< in BlockYield::arena
  std::uint32_t hits = 0, hit_count = 0;  ///< in BlockYield::hits
  const Format* silent = nullptr;         ///< whose line it is unread, as Format::silent says; it is not peeled then
  bool context = false;                   ///< kept only because it stands near another one, or near an end of the block
  bool sampled = false;                   ///< kept because every so many bytes of an input one line is
  bool section = false;                   ///< kept only because it may belong to a section that began above it
  bool bulk = false;                      ///< of the format that folds
  bool damaged = false;                   ///< control bytes, or longer than the cap and cut
};

/// One block: what was folded, the lines kept, every byte accounted for. The tally's claimed, plain and
/// damaged leave out the kept lines: who consumes those decides.
struct BlockYield {
  Tally tally;
  Folded folded;
  std::vector<KeptLine> kept;         ///< by line
  std::vector<Peeled> peeled;         ///< of each kept line, who wrote it, a head of the bulk format's own included
  std::vector<std::uint32_t> hits;    ///< sieve ids
  std::vector<char> arena;            ///< where the texts of kept lines are
  std::deque<std::string> rewritten;  ///< and those of peeled lines that had to be rewritten
  Removed removed;                    ///< of the block's input
  const InputForm* form = nullptr;    ///< of an input that is in one block, and of which no line counts: what it is
  std::string_view TextOf(const KeptLine& line) const { return {arena.data() + line.text, line.size}; }
};

/// Bytes of the longest line that is read whole; the rest of a longer one is counted as damaged.
inline constexpr std::size_t kLineCap = 256 * 1024;

/// Bytes of the longest document (a JSON dump, say) that is read as one; a longer one is read line by line.
inline constexpr std::size_t kDocumentCap = 64 * 1024 * 1024;

/// Of every so many bytes of an input, the line that holds the first is kept, so that work that complains of nothing is
/// seen.
inline constexpr std::uint64_t kSampleBytes = 256 * 1024;

/// Of so many bytes at an input's begin every line is kept so: in a small log the last words of each writer are seen,
/// however many lines of others stand around them.
inline constexpr std::uint64_t kSampledWhole = 64 * 1024;

/// Plain lines in front of a telling one, not further than so many lines away and none of them empty, and behind it,
/// that are kept with it: what was printed last, and whether the program went on. As many lines as kTailLines at the
/// end of an input are kept for the same reason, and kHeadLines at its begin: by them a program that is started again
/// is known.
inline constexpr std::size_t kContextBefore = 6, kContextReach = 16, kContextAfter = 8, kTailLines = 24, kHeadLines = 8;

/// Readable bytes that must follow a block: wide loads look past its end.
inline constexpr std::size_t kPadding = 64;

/// Whether the time that each folded call's line prints is read: what folding spares is then done after all.
enum class CallTimes : std::uint8_t { kLeft, kRead };

/// Scans blocks; one per thread.
class BlockScanner {
 public:
  explicit BlockScanner(const Sieve& sieve, Code code = BestCode(), CallTimes times = CallTimes::kLeft);
  ~BlockScanner();
  /// `block` holds whole lines (the input's last may lack its terminator) and is followed by kPadding readable bytes.
  /// `cut_head`: the block starts inside a line that was longer than the cap; its bytes up to the first terminator are
  /// damaged. `offset`: bytes of the input in front.
  BlockYield Scan(std::string_view block, bool cut_head, std::uint64_t offset = 0);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace inquest
