// What parsers give to whoever builds a timeline.
#pragma once

#include <cstddef>

#include "core/call_batch.h"
#include "core/call_trace.h"
#include "core/event.h"

namespace inquest {

/// Takes what parsers find. Called from one thread, in the order of the inputs.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void Add(Event event) = 0;
  /// Calls [begin, end) of a batch whose line 0 stands at `base`. All slices of a batch come in order.
  virtual void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) = 0;
  /// A whole dump; `origin` is who wrote it, as its name and folder say. Its entries are its lines, from 1. Most want
  /// none.
  virtual void AddTrace(const CallTrace& /*trace*/, const Origin& /*origin*/, const SourcePos& /*where*/) {}
};

}  // namespace inquest
