// What parsers give to whoever builds a timeline.
#pragma once

#include <cstddef>

#include "core/call_batch.h"
#include "core/event.h"

namespace inquest {

/// Takes what parsers find. Called from one thread, in the order of the inputs.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void Add(Event event) = 0;
  /// Calls [begin, end) of a batch whose line 0 stands at `base`. All slices of a batch come in order.
  virtual void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) = 0;
};

}  // namespace inquest
