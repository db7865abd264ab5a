// Fuzz target: any bytes as a document: of each format that is read whole, and as a verdict that a replay is asked of.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "parsers/parser.h"
#include "replay/infer.h"

namespace inquest {
namespace {

class Nowhere final : public EventSink {
 public:
  void Add(Event) override {}
  void AddCalls(const CallBatch&, std::size_t, std::size_t, const SourcePos&) override {}
};

void Run(std::string_view text) {
  Nowhere sink;
  for (const Format* format : Formats()) {
    if (format->framing != Framing::kDocument) continue;
    const std::unique_ptr<Parser> parser = format->make();
    parser->Consume(Record{.text = text, .origin = {}, .at = {}, .where = {.line = 1}}, sink);
    parser->Finish(sink);
  }
  (void)PlanFromVerdict(text, "fuzz.json");
}

}  // namespace
}  // namespace inquest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  inquest::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
