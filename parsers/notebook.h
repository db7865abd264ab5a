// What the code cells of a Jupyter notebook printed, as lines, while it is read.
// Format:  nbformat 4: `cells[].outputs[]` with `text` (a stream), `traceback` (an error), `data["text/plain"]` (a
// result);
//          nbformat 3: the same below `worksheets[]`. A text is a string, or a list of them, most often one a line.
// Not read: source, markdown, pictures, HTML, what widgets show. execution_count: a notebook is one session, in the
// order of
//          its cells.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "parsers/byte_source.h"
#include "parsers/container_log.h"

namespace inquest {

/// Whether an input that begins so is a notebook: an object with `nbformat`, or with cells that have a `cell_type`.
bool IsNotebook(std::string_view head);

// Read byte by byte and not by simdjson: a notebook with its pictures is longer than what we hold, one that was torn
// while it was saved is no JSON, and a line that is cited must be one of the file. What is printed in one line of the
// file is one line of the text, in which a carriage return stands for a line feed, as where a progress bar overwrote
// itself. From what is no JSON on, a half merge say, the file is given as it is.
class NotebookReader {
 public:
  /// `head`: the first bytes of the input; `ended`: there are no others.
  NotebookReader(std::string head, bool ended, ReadBytes read);
  /// At most `room` bytes of text; fewer: it has ended.
  std::size_t Fill(char* to, std::size_t room);
  /// What was removed since the last call, perhaps in front of text that Fill() has yet to give.
  Removed TakeRemoved();
  /// Why it is not whole, once it has ended; empty: it is.
  std::string_view problem() const {
    return broken_            ? "no JSON from some line on, which is read as it is"
           : !ended_ || done_ ? ""
                              : "cut: its JSON does not end";
  }

 private:
  friend bool IsNotebook(std::string_view head);
  enum class Place : std::uint8_t { kOther, kNotebook, kSheets, kCells, kCell, kOutputs, kOutput, kData, kText };
  enum class Token : std::uint8_t { kNone, kKey, kText, kErrorName, kErrorValue, kSkipped };
  struct Level {
    Place place = Place::kOther;
    bool object = false;
  };

  void Take(std::string_view bytes);
  std::size_t TakeOutside(std::string_view bytes);
  std::size_t TakeString(std::string_view bytes);
  bool TakeEscape(char byte);
  void BeginString();
  void EndString();
  void Open(bool object);
  void Close(bool object);
  Place Inner() const;
  void EndLine();
  void NoteRemoved(std::uint64_t lines);
  void BeginText();
  void Put(std::string_view text);
  void PutCode(std::uint32_t code);
  void PutBreaks();
  void Settle(bool tell);
  void Finish();

  ReadBytes read_;
  bool ended_;
  std::string raw_;  ///< read, and not taken
  std::vector<Level> levels_;
  bool key_next_ = false;  ///< a string that comes is a key
  bool done_ = false, broken_ = false;
  bool known_ = false;  ///< it is a notebook for sure
  Token token_ = Token::kNone;
  std::string key_;           ///< the last one of the object
  std::string escape_;        ///< begun, and not whole
  std::uint32_t high_ = 0;    ///< the first half of a pair
  std::uint64_t breaks_ = 0;  ///< line feeds of the text that nothing followed yet
  bool returned_ = false;     ///< a carriage return was put last
  bool open_ = false;         ///< the line of the file has a text
  bool told_ = false;         ///< the output has one
  std::string error_name_, error_value_;
  bool error_ = false;             ///< both are there; told where no traceback comes
  std::uint64_t error_lines_ = 0;  ///< line ends since
  std::string text_;               ///< made, and not given from given_ on
  std::size_t given_ = 0;
  std::uint64_t lines_ = 0;  ///< of the text, begun
  std::uint64_t taken_ = 0, made_ = 0, removed_bytes_ = 0;
  Removed removed_;
};

}  // namespace inquest
