// Fuzz target: any bytes as dumps of a recorder, of three ranks: read, matched, and followed to where their waits lead.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/result.h"
#include "parsers/flight_recorder.h"
#include "timeline/trace_ledger.h"
#include "timeline/wait_graph.h"

namespace inquest {
namespace {

void Check(const CallTrace& trace) {
  INQUEST_CHECK(trace.calls.size() <= trace.entries && !trace.sites.empty());
  for (const CallTrace::Call& call : trace.calls) {
    INQUEST_CHECK(call.group < trace.groups.size() && call.form < trace.forms.size() && call.site < trace.sites.size());
    INQUEST_CHECK(call.seq >= 0 && call.place > 0);
  }
}

void Run(std::string_view bytes) {
  if (!IsFlightDump(bytes)) return;
  const CallTrace whole = ReadFlightDump(bytes), part = ReadFlightDump(bytes.substr(0, bytes.size() / 4 * 3));
  if (!whole.sites.empty()) Check(whole);
  TraceLedger ledger;
  std::uint32_t input = 0;
  for (const int rank : {0, 1}) ledger.Add(whole, GlobalRank{rank}, {.input = input++, .line = 1});
  ledger.Add(part, GlobalRank{2}, {.input = input++, .line = 1});
  for (const int rank : {0, 1, 2})
    for (const Event& event : ledger.EventsOf(GlobalRank{rank}, {})) INQUEST_CHECK(event.text.size() <= kCitedBytes);
  LeftOut left_out;
  const Recorded recorded = ledger.Take(left_out);
  const WaitGraph graph = WaitsOf(recorded);
  for (const WaitRoot& root : graph.roots)
    for (const std::uint32_t node : root.nodes) INQUEST_CHECK(node < graph.nodes.size());
  // Two that recorded the same called the same.
  for (const RecordedGroup& group : recorded.groups)
    if (group.divergence)
      for (const auto& side : group.divergence->sides) INQUEST_CHECK(side.ranks.contains(0) == side.ranks.contains(1));
}

}  // namespace
}  // namespace inquest

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  inquest::Run({reinterpret_cast<const char*>(data), size});
  return 0;
}
