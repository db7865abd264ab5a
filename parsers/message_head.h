// What stands at the head of a message because its own writer printed it: a time, a level, who is speaking. It stays
// with the message.
#pragma once

#include <optional>
#include <string_view>

#include "core/event.h"

namespace inquest {

/// The time that a message's own writer put at its head, or at its c10 head behind a progress bar.
std::optional<Timestamp> OwnTime(std::string_view text);

/// `torch.cuda.OutOfMemoryError: ...`, `KeyboardInterrupt`.
bool IsExceptionHead(std::string_view text);

/// A line as some program of the job prints it, and not the value of a `name: value` pair.
bool LooksLikeLog(std::string_view text);

/// Whether what follows a time is what a logging module puts there.
bool ContinuesLogging(std::string_view rest);

/// What the program's own words say that no envelope said: `rank 3: `, `[node07:4242:0:4242]`.
void ReadOwnWords(std::string_view text, Origin& origin);

}  // namespace inquest
