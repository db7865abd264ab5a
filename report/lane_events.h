// What a lane of the picture shows, as rows for programs: the same states and marks that the page and the terminal
// draw.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/json_value.h"
#include "report/report.h"
#include "rules/picture.h"

namespace inquest {

/// A state, a mark, or the end of one lane. Moments index Picture::moments.
struct LaneEvent {
  enum class Kind : std::uint8_t { kState, kMark, kEnd };
  Kind kind = Kind::kState;
  std::string_view state;  ///< name of the stage, of the mark's kind, or how it ended
  std::string what;        ///< `ALLREDUCE #4410`, `Xid 79`, whose word the end is
  std::uint32_t begin = 0;
  std::optional<std::uint32_t> end;  ///< of a state: the last that is known of it
  bool open = false;                 ///< of a state: nothing says that it ended
  std::uint64_t times = 1;
  bool cause = false;
};

struct LaneEvents {
  std::vector<LaneEvent> rows;  ///< by their begin
  std::uint64_t left_out = 0;
};
/// At most `most` of them: what the verdict cites as the cause, then the first and the last.
LaneEvents EventsOf(const Lane& lane, std::optional<std::size_t> most);

/// Events as members of objects.
class EventRows {
 public:
  /// Both outlive it.
  EventRows(const Timeline& timeline, const Picture& picture);
  void Add(const LaneEvent& event, JsonValue& row) const;
  /// From when seconds count, with as much of the date as lines print; null: they do not.
  JsonValue Zero() const;

 private:
  bool IsTimed(const Moment& moment) const;
  JsonValue TimeOf(std::uint32_t moment) const;
  JsonValue SecondsOf(std::uint32_t moment) const;
  /// What it followed from, by the picture's links.
  JsonValue FollowsOf(const LaneEvent& event) const;

  const Timeline& timeline_;
  const Picture& picture_;
  std::optional<std::int64_t> zero_;  ///< of the first moment that stands by time
};

}  // namespace inquest
