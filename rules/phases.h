// What a rank was at: its stack, or the last phase that its lines tell.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/rank_set.h"
#include "rules/evidence.h"

namespace inquest {

/// What somebody was at when last heard of.
struct Doing {
  Activity at = Activity::kNone;
  EventIndex event = 0;
  std::optional<int> percent;
  std::optional<std::int64_t> elapsed_s;  ///< that its bar shows
  std::string why;                        ///< `its last line: ...`, `its stack: ...`
};

/// Work that a rank is at for longer than a moment; training is where everybody is.
bool IsDelay(const Doing& doing);

/// It waits for other ranks, as its stack shows.
bool IsWait(const Doing& doing);

/// The work was begun before such a wait was, or not much later: it lasted as long.
bool Spans(const Doing& doing, std::optional<std::int64_t> wait_ms);

/// Who was at work that takes long while others waited.
struct AtWork {
  std::optional<Doing> doing;
  std::vector<int> ranks;
  bool named = false;  ///< by lines that say whose they are
};
/// What everybody was at: sorted once, asked many times.
class Doings {
 public:
  explicit Doings(const Evidence& evidence);
  ~Doings();
  Doings(const Doings&) = delete;
  Doings& operator=(const Doings&) = delete;
  /// Where somebody looked at its stack, that; else the last phase of its lines. With `rank` absent, of lines that name
  /// no rank.
  std::optional<Doing> Last(std::optional<int> rank) const;
  /// By their own lines; where those tell nothing: the work of lines that name no rank, and no ranks, since whom such
  /// lines speak of is the caller's to say.
  AtWork Of(const RankSet& ranks) const;

 private:
  struct ByRank;
  const Evidence& evidence_;
  std::unique_ptr<const ByRank> by_rank_;
};

/// `checkpoint, 40 %`.
std::string InWords(const Doing& doing);

}  // namespace inquest
