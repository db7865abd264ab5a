// Fuzz target: any bytes as lines that each format is offered, marked or not. Views that an event keeps must not
// outlive them.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/event_fields.h"
#include "core/result.h"
#include "parsers/parser.h"

namespace inquest {
namespace {

/// Reads all of what it is given, so that a bad view is seen.
class Reader final : public EventSink {
 public:
  void Add(Event event) override {
    INQUEST_CHECK(SizeOf(event) > 0 && (KeyOf(event.what) | 1) != 0 && event.text.size() <= kCitedBytes);
  }
  void AddCalls(const CallBatch&, std::size_t, std::size_t, const SourcePos&) override {}
};

void Run(std::string_view text) {
  std::vector<std::unique_ptr<Parser>> parsers;
  for (const Format* format : Formats())
    if (format->framing == Framing::kLines) parsers.push_back(format->make());
  Reader reader;
  for (std::uint64_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find_first_of("\n\r");
    const std::string line(text.substr(0, end));  // with an end of its own, so that reading past it is seen
    for (const auto& parser : parsers) {
      (void)parser->Expects(line);
      parser->Consume(Record{.text = line, .origin = {}, .at = {}, .where = {.line = number}}, reader);
    }
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  for (const auto& parser : parsers) parser->Finish(reader);
}

}  // namespace
}  // namespace inquest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  inquest::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
