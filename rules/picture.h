// A verdict as a picture: a lane for every process and host, what each was at and what befell it, and what followed
// from what. Ranks that behave alike share a lane.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "rules/verdict.h"
#include "timeline/timeline.h"

namespace inquest {

// How moments come to their places. A line that prints a time stands at it, if it prints as much of the date as most
// do. One that prints none stands with the last line in front of it in its file that does, or else with the next behind
// it. A file that prints no times at all is spread over the whole width by the places of its lines: its order to other
// files is not known, and the picture says so. Where no file prints any, all are spread so, and order stands for time.

/// A place on the axis.
struct Moment {
  enum class How : std::uint8_t { kPrinted, kNear, kAhead, kComputed, kPlace };
  EventIndex event = 0;  ///< the line that tells of it
  std::int64_t ns = 0;   ///< since the epoch; without a clock, the place in its file in billionths
  How how = How::kPrinted;
};
std::string_view Name(Moment::How how);

enum class Stage : std::uint8_t { kStarting, kLoading, kComputing, kSaving, kInCollective, kWaiting, kErrored };
std::string_view Name(Stage stage);

/// Something that lasted. Later ones of a lane lie over earlier ones.
struct Stretch {
  Stage stage = Stage::kStarting;
  std::string what;                              ///< `checkpoint`, `ALLREDUCE #4410`
  std::uint32_t begin = 0;                       ///< into Picture::moments
  std::uint32_t end = 0;                         ///< the last that is known of it
  bool open = false;                             ///< nothing says that it ended
  std::uint64_t times = 1;                       ///< lines that told of it
  std::optional<std::uint32_t> collective = {};  ///< of a wait: into Timeline::collectives
};

/// Something that befell somebody.
struct PictureMark {
  enum class Kind : std::uint8_t {
    kDevice,  ///< an Xid, or what else the driver or a bus says of a GPU
    kMemory,  ///< no memory left, of a GPU or of the host
    kTimeOut,
    kException,
    kExit,  ///< also by a signal
    kStopped,
    kComplaint,
    kNotice,  ///< trouble of a host, or a state that a finding cites
    kEnded
  };
  Kind kind = Kind::kNotice;
  std::string what;  ///< `Xid 79`, `exit 1`, `torch.OutOfMemoryError`
  std::uint32_t moment = 0;
  bool cause = false;  ///< the verdict cites it as the first cause
};
std::string_view Name(PictureMark::Kind kind);

struct Lane {
  enum class Of : std::uint8_t { kRank, kProcess, kWriter, kHost, kDevice };
  Of of = Of::kRank;
  std::optional<GlobalRank> rank;
  std::optional<std::string> host;
  std::optional<std::int64_t> pid;
  std::string name;  ///< of a process without rank: its launcher's tag or its input; of a device: its address
  bool culprit = false;
  std::string why;                           ///< of a culprit
  std::optional<std::uint32_t> first, last;  ///< when it was heard; nullopt: never
  std::vector<Stretch> stretches;            ///< at most kMostOfALane, the first and the last
  std::vector<PictureMark> marks;            ///< in order; as many
  std::uint64_t left_out = 0;                ///< marks and stretches
  LifeEnd::How how = LifeEnd::How::kUnknown;
  std::string said_by;
  std::optional<std::uint32_t> ended;  ///< when
};

/// Lanes of one kind to which the same befell; culprits only with culprits.
struct LaneFold {
  std::vector<std::uint32_t> lanes;  ///< into Picture::lanes; ranks ascending; at least one
};

/// What followed from what, from the first cause to the symptoms.
struct PictureLink {
  std::uint32_t from = 0, to = 0;  ///< into Picture::moments
  std::string why;                 ///< the claim of what followed
};

struct Picture {
  bool clock = false;  ///< moments stand by time, not by the place in a file
  Timestamp::Date date = Timestamp::Date::kNone;
  bool zone_known = false;
  bool mostly_timed = false;                 ///< by time is how to show it first
  std::vector<std::uint32_t> without_clock;  ///< inputs whose lines have no time though others' do
  std::vector<Moment> moments;               ///< in order
  std::vector<Lane> lanes;
  std::vector<LaneFold> folds;  ///< culprits first, then the rarer before the more
  std::vector<PictureLink> links;
};
inline constexpr std::size_t kMostOfALane = 48;

Picture DrawPicture(const Timeline& timeline, const Verdict& verdict);

/// The same in brief.
Sketch SketchOf(const Picture& picture);

/// What an event is as a mark; its moment is not filled.
PictureMark MarkBy(const Event& event);
/// Those to whom the same befell, in the same order, share a fold.
std::vector<LaneFold> FoldLanes(const std::vector<Lane>& lanes);

/// `ranks 0-27, 29-63`, `pid 41 on node07`, `GPU 0000:4e:00.0 on node07`: those whom a fold holds.
std::string Who(const Picture& picture, const LaneFold& fold);

/// `ALLREDUCE #4410`
std::string InWords(const WorkFields& work);

}  // namespace inquest
