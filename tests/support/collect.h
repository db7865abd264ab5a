// Runs one format over text, as the scanner would: bytes in, events out.
#pragma once

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "parsers/envelope.h"
#include "parsers/parser.h"

namespace inquest {

/// Keeps every event, and the slices of call batches as they came.
class CollectingSink final : public EventSink {
 public:
  struct Slice {
    CallBatch batch;
    std::size_t begin = 0, end = 0;
    SourcePos base;
  };
  void Add(Event event) override { events.push_back(std::move(event)); }
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) override {
    slices.push_back({batch, begin, end, base});
  }

  std::vector<Event> events;
  std::vector<Slice> slices;
};

/// Whether the scanner would offer this line to the format at all.
inline bool HoldsMark(const Format& format, std::string_view line) {
  return std::any_of(format.marks.begin(), format.marks.end(),
                     [&](std::string_view mark) { return line.find(mark) != std::string_view::npos; });
}

/// What one parser made of a text: its events, and the lines (from 1) that it claimed.
struct Parsed {
  std::vector<Event> events;
  std::vector<std::uint64_t> claimed;
};

/// One stream: every line that holds a mark, or follows one and is expected, peeled and offered to one parser, then
/// Finish. A kDocument format gets the whole text as one record. Lines end at '\n' or '\r'; only '\n' counts.
inline Parsed ParseText(const Format& format, std::string_view text) {
  CollectingSink sink;
  Parsed parsed;
  const std::unique_ptr<Parser> parser = format.make();
  if (format.framing == Framing::kDocument) {
    if (parser->Consume(Record{.text = text, .origin = {}, .at = {}, .where = {.line = 1}}, sink))
      parsed.claimed.push_back(1);
  } else {
    SourcePos where{.line = 1};
    std::uint64_t section = 0;
    while (where.offset < text.size()) {
      const std::size_t end = std::min(text.find_first_of("\r\n", where.offset), text.size());
      const std::string_view line = text.substr(where.offset, end - where.offset);
      std::string scratch;
      Peeled peeled = Peel(line, scratch);
      const bool marked = HoldsMark(format, line);
      if (marked || (where.line <= section && parser->Expects(peeled.text))) {
        const Record record{.text = peeled.text, .origin = std::move(peeled.origin), .at = peeled.at, .where = where};
        if (parser->Consume(record, sink)) {
          parsed.claimed.push_back(where.line);
          if (marked) section = where.line + format.follow;
        }
      }
      if (end < text.size() && text[end] == '\n') ++where.line;
      where.offset = end + 1;
    }
  }
  parser->Finish(sink);
  parsed.events = std::move(sink.events);
  return parsed;
}

/// What can be argued from.
inline std::vector<Event> ParseLines(const Format& format, std::string_view text) {
  std::vector<Event> events = ParseText(format, text).events;
  std::erase_if(events, [](const Event& event) { return IsForTheRecord(event.what); });
  return events;
}
/// What is for the record alone.
inline std::vector<Event> ParseForTheRecord(const Format& format, std::string_view text) {
  std::vector<Event> events = ParseText(format, text).events;
  std::erase_if(events, [](const Event& event) { return !IsForTheRecord(event.what); });
  return events;
}

/// The events of one kind, in order.
template <class T>
std::vector<T> Only(const std::vector<Event>& events) {
  std::vector<T> found;
  for (const Event& event : events) {
    if (const T* what = std::get_if<T>(&event.what)) found.push_back(*what);
  }
  return found;
}

}  // namespace inquest
