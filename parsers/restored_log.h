// A log as it was printed, of what went through other hands since (restoration.h), while it is read.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "parsers/byte_source.h"
#include "parsers/container_log.h"
#include "parsers/restoration.h"

namespace inquest {

/// In front of a line, between two form feeds, what its heads said: number of the writer, time and host, tabs between
/// them.
inline constexpr char kRestoredHead = '\f';

class RestoredReader {
 public:
  /// `head`: the first bytes of the input; `ended`: there are no others.
  RestoredReader(Restoration restoration, std::string head, bool ended, ReadBytes read);
  /// At most `room` bytes of text; fewer: it has ended.
  std::size_t Fill(char* to, std::size_t room);
  /// What was removed since the last call, perhaps in front of text that Fill() has yet to give.
  Removed TakeRemoved();
  bool drops_lines() const { return restoration_.drops_lines(); }

 private:
  bool Advance();
  void TakeLine(std::string_view line, bool terminated);
  void Emit(RestoredLine line, bool terminated);
  void Flush();
  std::string HeadOf(const RestoredHead& head);

  Restoration restoration_;
  ReadBytes read_;
  bool ended_;
  std::string raw_;  ///< [at_, end) of it is read and not taken
  std::size_t at_ = 0;
  bool in_long_ = false;  ///< the next byte is of a line that is longer than the cap, and that is left as it is
  bool open_ = false;     ///< `line_` may go on
  bool open_terminated_ = false;
  RestoredLine line_;
  std::string last_;                            ///< the physical line that `line_` ends in
  std::map<std::string, std::size_t> writers_;  ///< their numbers: a head must be no longer than what it stands for
  std::string text_;                            ///< made, and not given from given_ on
  std::size_t given_ = 0;
  std::uint64_t lines_ = 0;                        ///< of the text, begun
  std::uint64_t taken_ = 0, made_ = 0, told_ = 0;  ///< bytes of the input and of the text; those told to be removed
  Removed removed_;
};

}  // namespace inquest
