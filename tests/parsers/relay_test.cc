// Parcels: what was told comes out in the order in which it was told, and what it refers to lives as long.
#include "parsers/relay.h"

#include <fmt/format.h>

#include <deque>

#include "tests/catch.h"

namespace inquest {
namespace relay_test {

Event At(std::uint64_t line) {
  Event event;
  event.where.line = line;
  return event;
}

/// Writes down all that it is told, one word each.
class Words final : public EventSink {
 public:
  void Add(Event event) override { said.push_back(fmt::format("event {}", event.where.line)); }
  void AddCalls(const CallBatch& batch, std::size_t begin, std::size_t end, const SourcePos& base) override {
    said.push_back(fmt::format("calls {}-{} of {} at {}", begin, end, batch.calls.size(), base.line));
  }
  void AddTrace(const CallTrace& trace, const Origin& origin, const SourcePos& where) override {
    said.push_back(fmt::format("trace {} {} {}", trace.recorder, origin.writer, where.line));
  }
  std::vector<std::string> said;
};

TEST_CASE("relay: events, calls and traces go on in their order", "[relay]") {
  std::deque<Parcel> parcels;
  Words expected, told;
  Relay relay(
      told, [] { return false; }, [&](Parcel parcel) { parcels.push_back(std::move(parcel)); });
  const auto tell = [&](EventSink& sink, const CallBatch& batch, const CallTrace& trace) {
    for (std::uint64_t line = 1; line <= 1000; ++line) {
      if (line % 300 == 7) sink.AddCalls(batch, line, line + 2, {.line = line});
      sink.Add(At(line));
    }
    Origin origin;
    origin.writer = "writer";
    sink.AddTrace(trace, origin, {.line = 1001});
  };
  const auto batch = std::make_shared<CallBatch>();
  batch->calls.resize(5);
  CallTrace trace;
  trace.recorder = "profiler";
  tell(expected, *batch, trace);
  tell(relay, *batch, trace);
  relay.Flush(batch);
  REQUIRE(parcels.size() > 2);
  Words words;
  for (Parcel& parcel : parcels) parcel.GiveTo(words);
  CHECK(words.said == expected.said);
  CHECK(told.said.empty());
}

TEST_CASE("relay: the sink is told at once where it may be, never in front of what was packed", "[relay]") {
  std::deque<Parcel> parcels;
  Words words;
  bool may_tell = true;
  Relay relay(
      words, [&] { return may_tell; }, [&](Parcel parcel) { parcels.push_back(std::move(parcel)); });
  relay.Add(At(1));
  CHECK(words.said == std::vector<std::string>{"event 1"});
  may_tell = false;
  relay.Add(At(2));
  may_tell = true;
  relay.Add(At(3));
  CHECK(words.said.size() == 1);
  relay.Flush(nullptr);
  REQUIRE(parcels.size() == 1);
  parcels.front().GiveTo(words);
  relay.Add(At(4));
  CHECK(words.said == std::vector<std::string>{"event 1", "event 2", "event 3", "event 4"});
}

TEST_CASE("relay: who owns what was told is held until the last of it is taken", "[relay]") {
  std::deque<Parcel> parcels;
  Words told;
  Relay relay(
      told, [] { return false; }, [&](Parcel parcel) { parcels.push_back(std::move(parcel)); });
  auto batch = std::make_shared<CallBatch>();
  const std::weak_ptr<CallBatch> seen = batch;
  relay.AddCalls(*batch, 0, 0, {});
  // As many events as end a parcel exactly: the owner goes along although nothing else is left to tell.
  for (std::uint64_t line = 1; parcels.empty(); ++line) relay.Add(At(line));
  relay.Flush(std::move(batch));
  REQUIRE(parcels.size() == 2);
  Words words;
  parcels[0].GiveTo(words);
  CHECK_FALSE(seen.expired());
  parcels[1].GiveTo(words);
  CHECK(seen.expired());
  // What refers to nothing holds nobody.
  auto other = std::make_shared<CallBatch>();
  const std::weak_ptr<CallBatch> unused = other;
  relay.Add(At(1));
  relay.Flush(std::move(other));
  CHECK(unused.expired());
  relay.Flush(nullptr);
  CHECK(parcels.size() == 3);
}

}  // namespace relay_test
}  // namespace inquest
