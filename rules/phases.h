// What a rank was at: its stack, or the last phase that its lines tell.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "rules/evidence.h"

namespace inquest {

/// What somebody was at when last heard of.
struct Doing {
  std::string kind;  ///< a phase's; of a stack also `collective` and `device-wait`
  EventIndex event = 0;
  std::optional<int> percent;
  std::optional<std::int64_t> elapsed_s;  ///< that its bar shows
  std::string why;   ///< `its last line: ...`, `its stack: ...`
};

/// Work that a rank is at for longer than a moment; training is where everybody is.
bool IsDelay(const Doing& doing);

/// The work was begun before such a wait was, or not much later: it lasted as long.
bool Spans(const Doing& doing, std::optional<std::int64_t> wait_ms);

/// What a rank was at: where somebody looked at its stack, that; else the last phase of its lines. With `rank` absent, of
/// lines that name no rank.
std::optional<Doing> LastDoing(const Evidence& evidence, std::optional<int> rank);

/// Who was at work that takes long while others waited.
struct AtWork {
  std::optional<Doing> doing;
  std::vector<int> ranks;
  bool named = false;  ///< by lines that say whose they are
};
/// What these ranks were at by their own lines. Where those tell nothing: the work of lines that name no rank, and no ranks,
/// since whom such lines speak of is the caller's to say.
AtWork WorkOf(const Evidence& evidence, const std::set<int>& ranks);

/// The cause that such work is, when others waited for it in vain.
std::string_view CauseOf(const Doing& doing);

/// `checkpoint, 40 %`.
std::string InWords(const Doing& doing);

}  // namespace inquest
