// Lines as a container's process wrote them, of what its runtime wrapped and cut, while they are read.
// Format:  CRI's `2031-04-05T06:07:08.1Z stderr P text` (containerd, CRI-O, podman's k8s-file; tags may follow the
// letter,
//          each behind a colon): `F` ends a line, `P` goes on in the next line of the stream. containerd cuts at 16
//          KiB, conmon wherever a read of 8 KiB ended. Docker's json-file (docker_line.h), which becomes CRI.
// Not read: the timestamps of parts behind the first; journald's CONTAINER_PARTIAL_MESSAGE.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsers/byte_source.h"

namespace inquest {

/// Whether an input that begins so holds lines of a container runtime.
bool IsContainerLog(std::string_view head);

struct ContainerLine;

/// What of an input is not in the text that it became.
struct Removed {
  /// Lines of the input that went into others: `count` of them stand in front of line `line` of the text, from 0.
  struct Lines {
    std::uint64_t line = 0, count = 0;
  };
  std::vector<Lines> lines;                ///< by line
  std::uint64_t claimed = 0, damaged = 0;  ///< bytes: of envelopes; of a line behind kLineCap
};

// A line that is not whole yet keeps its place, and what follows waits behind it: at most until kWindow bytes of the
// input have gone by, or it is longer than kLineCap. The first gives it up: what comes then is a line of its own. The
// second is what happens to any line so long: the rest is damaged; but where a progress bar overwrote itself in it, the
// line ends there. All of that is counted in bytes of the input, so that it does not matter how they arrive.
class ContainerReader {
 public:
  /// `head`: the first bytes of the input; `ended`: there are no others.
  ContainerReader(std::string head, bool ended, ReadBytes read);
  /// At most `room` bytes of text; fewer: it has ended.
  std::size_t Fill(char* to, std::size_t room);
  /// What was removed since the last call, perhaps in front of text that Fill() has yet to give.
  Removed TakeRemoved();

 private:
  /// A line that is not whole yet, and the whole ones behind it.
  struct Open {
    std::size_t stream = 0;
    std::uint64_t began = 0;  ///< in the input
    std::string line, after;
  };
  bool Advance();
  std::string_view raw() const { return std::string_view(raw_).substr(at_, end_ - at_); }
  void Took(std::size_t bytes);
  void TakeLine(std::string_view line, bool terminated);
  void TakeLong(std::string_view part);
  void Keep(std::string_view text) { (open_.empty() ? text_ : open_.back().after) += text; }
  void Begin(const ContainerLine& part, std::string_view before, bool terminated);
  void GoOn(std::size_t index, const ContainerLine& part, std::string_view line, bool terminated);
  void Drop(bool terminated);
  void Close(std::size_t index);
  void Expire();
  /// npos: no line of that stream is open.
  std::size_t OpenOf(std::size_t stream) const;

  ReadBytes read_;
  bool ended_;
  std::string raw_;  ///< [at_, end_) of it is read and not taken
  std::size_t at_ = 0, end_ = 0;
  std::uint64_t taken_ = 0;     ///< bytes of the input
  bool in_long_ = false;        ///< the next byte is of a line whose head was kept as it is
  std::vector<Open> open_;      ///< in the order of their places
  std::vector<bool> too_long_;  ///< by stream: what goes on is the rest of a line that was longer than the cap
  std::string text_;            ///< made, and not given from given_ on
  std::size_t given_ = 0;
  std::uint64_t lines_ = 0;  ///< of the text, begun
  Removed removed_;
  std::string head_memory_, text_memory_;  ///< of the line that is taken
};

}  // namespace inquest
