// The one in-order consumer: feeds kept lines to parsers, hands events and calls on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/call_trace.h"
#include "parsers/block.h"
#include "parsers/parser.h"
#include "parsers/scan.h"
#include "parsers/stream_table.h"

namespace inquest {

/// Where JSON or XML begins: at once, or behind a few words of the tool that printed it. npos: nowhere.
std::size_t BeginOfDocument(std::string_view text);

/// Consumes the yields of an input's blocks in order. One per run.
class Assembler {
 public:
  Assembler(std::uint32_t first_mark_id, const std::vector<GivenHost>& hosts, EventSink& sink);
  ~Assembler();
  /// A new input begins; `path` is given back in its InputRead, and so is `form`.
  void Begin(std::uint32_t input, const std::string& path, const InputForm* form);
  /// The whole input as one document. True: a document format took it.
  bool OfferDocument(std::string_view text);
  /// Calls go on as they stand in `yield`, of which the rest is used up.
  void Consume(BlockYield& yield);
  /// What was read of a dump of so many bytes. Its entries are its lines.
  void Take(const CallTrace& trace, std::uint64_t bytes);
  /// The input ended: unfinished messages are finished.
  InputRead End();

 private:
  void TakeRemoved(const Removed& removed);
  struct Parts {
    std::uint64_t count = 0, end = 0;
  };  ///< up to a line of the text, and the line from which on there are more
  Parts PartsAt(std::uint64_t line) const;
  /// The kept line of this number.
  void ConsumeLine(BlockYield& yield, std::size_t number, const SourcePos& where);
  Stream* SectionOf(const Record& record);
  bool Offer(Stream& stream, const Record& record, const BlockYield& yield, const KeptLine& line);
  Stream& StreamOf(const Origin& origin);
  Stream& BareStream();
  void AddKind(const Format* format);

  std::uint32_t first_mark_id_;
  const std::vector<GivenHost>& hosts_;
  EventSink& sink_;
  InputRead read_;
  std::uint32_t input_ = 0;
  std::uint64_t lines_ = 0, bytes_ = 0;      ///< of the text
  std::uint64_t parts_ = 0;                  ///< of SourcePos, up to the block
  std::vector<Removed::Lines> parts_ahead_;  ///< how many there are from each line on
  StreamTable streams_;
  std::string key_;                              ///< of the stream that is looked for
  std::vector<const Format*> kinds_;             ///< those that took something, each once
  Stream* bare_ = nullptr;                       ///< of lines that do not say who wrote them
  Stream* opened_ = nullptr;                     ///< whose section began last
  std::uint64_t section_end_ = 0;                ///< the last line that any section reaches
  std::optional<Known<GlobalRank>> file_rank_;   ///< of `rank3.log`
  std::optional<LocalRank> file_local_rank_;     ///< of `attempt_0/3/stderr.log`
  std::optional<Known<std::string>> file_host_;  ///< of `inquest-bundle/node07/`
};

}  // namespace inquest
