// What one thread finds, kept in order until another takes it: so finding events and taking them go on at once.
#include "parsers/relay.h"

namespace inquest {
namespace {

constexpr std::size_t kParcelEvents = 128;

}  // namespace

void Parcel::Add(Event event) {
  if (events_.empty()) events_.reserve(kParcelEvents);
  events_.push_back(std::move(event));
}

void Parcel::AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) {
  others_.push_back({events_.size(), Calls{batch, begin, end, base}});
}

void Parcel::AddTrace(const CallTrace& trace, const Origin& origin, const SourcePos& where) {
  others_.push_back({events_.size(), Trace{trace, origin, where}});
}

void Parcel::Hold(std::shared_ptr<const void> owner) { owners_.push_back(std::move(owner)); }

void Parcel::GiveTo(EventSink& sink) {
  std::size_t told = 0;
  for (const Other& other : others_) {
    while (told < other.events) sink.Add(std::move(events_[told++]));
    if (const auto* calls = std::get_if<Calls>(&other.what)) {
      sink.AddCalls(calls->batch, calls->begin, calls->end, calls->base);
    } else {
      const Trace& trace = std::get<Trace>(other.what);
      sink.AddTrace(trace.trace, trace.origin, trace.where);
    }
  }
  while (told < events_.size()) sink.Add(std::move(events_[told++]));
  events_.clear();
  others_.clear();
  owners_.clear();
}

void Relay::Add(Event event) {
  if (Tells()) return sink_.Add(std::move(event));
  parcel_.Add(std::move(event));
  if (parcel_.events() >= kParcelEvents) PassOn();
}

void Relay::AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) {
  if (Tells()) return sink_.AddCalls(batch, begin, end, base);
  parcel_.AddCalls(batch, begin, end, base);
  refers_ = true;
}

void Relay::AddTrace(const CallTrace& trace, const Origin& origin, const SourcePos& where) {
  if (Tells()) return sink_.AddTrace(trace, origin, where);
  parcel_.AddTrace(trace, origin, where);
  refers_ = true;
}

void Relay::Flush(std::shared_ptr<const void> owner) {
  if (parcel_.empty() && !refers_) return;
  if (std::exchange(refers_, false)) parcel_.Hold(std::move(owner));
  PassOn();
}

}  // namespace inquest
