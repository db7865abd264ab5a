// What one thread finds, kept in order until another takes it: so finding events and taking them go on at once.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "core/event_sink.h"

namespace inquest {

/// Some of what a sink is to be told, in order.
class Parcel {
 public:
  void Add(Event event);
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base);
  void AddTrace(const CallTrace& trace, const Origin& origin, const SourcePos& where);
  /// `owner` holds batches or traces that were added: it lives as long as the parcel does.
  void Hold(std::shared_ptr<const void> owner);
  bool empty() const { return events_.empty() && others_.empty(); }
  std::size_t events() const { return events_.size(); }
  /// Tells it all, and is empty afterwards.
  void GiveTo(EventSink& sink);

 private:
  struct Calls {
    const CallBatch& batch;
    std::size_t begin = 0, end = 0;
    SourcePos base;
  };
  struct Trace {
    const CallTrace& trace;
    Origin origin;
    SourcePos where;
  };
  struct Other {
    std::size_t events = 0;  ///< that come before it
    std::variant<Calls, Trace> what;
  };
  std::vector<Event> events_;
  std::vector<Other> others_;
  std::vector<std::shared_ptr<const void>> owners_;
};

/// Tells a sink what it is told, at once where `may_tell` says so; else in parcels of some hundred events, which it
/// hands to `pass`.
class Relay final : public EventSink {
 public:
  using MayTell = std::function<bool()>;  ///< asked where no parcel is begun; until it says no, the sink is the relay's
  using Pass = std::function<void(Parcel)>;
  Relay(EventSink& sink, MayTell may_tell, Pass pass)
      : sink_(sink), may_tell_(std::move(may_tell)), pass_(std::move(pass)) {}
  void Add(Event event) override;
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) override;
  void AddTrace(const CallTrace& trace, const Origin& origin, const SourcePos& where) override;
  /// What was told so far goes on; `owner` held what it refers to.
  void Flush(std::shared_ptr<const void> owner);

 private:
  bool Tells() const { return parcel_.empty() && may_tell_(); }
  void PassOn() { pass_(std::exchange(parcel_, {})); }

  EventSink& sink_;
  MayTell may_tell_;
  Pass pass_;
  Parcel parcel_;
  bool refers_ = false;  ///< since the last Flush() something was packed that an owner holds
};

}  // namespace inquest
