// Builds the timeline from events, as they come.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/event_sink.h"
#include "timeline/kept_events.h"
#include "timeline/timeline.h"

namespace inquest {

/// Takes events in input order; memory follows what is kept of them, not the length of the log.
class TimelineBuilder final : public EventSink {
 public:
  explicit TimelineBuilder(Devices devices = Devices::kArgued);
  ~TimelineBuilder() override;
  void Add(Event event) override;
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) override;
  void AddTrace(const CallTrace& trace, const Origin& origin, const SourcePos& where) override;
  /// Resolves identities, aligns clocks, matches collectives. The builder is spent afterwards.
  Timeline Build(std::vector<InputSummary> inputs);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Finds the events of communicators' births: where an event stands is known only when all are sorted; until then a
/// birth is known by its line.
void PlaceBirths(Timeline& timeline);

}  // namespace inquest
