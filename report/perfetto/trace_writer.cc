// A trace of Perfetto's, written packet by packet.
#include "report/perfetto/trace_writer.h"

#include <limits>
#include <type_traits>
#include <protozero/pbf_builder.hpp>

#include "report/terminal.h"

namespace inquest {
namespace {

using protozero::pbf_builder;
using Tag = protozero::pbf_tag_type;

// protos/perfetto/trace: trace.proto, trace_packet.proto, clock_snapshot.proto, track_event/*.proto,
// interned_data/interned_data.proto.
enum class Trace : Tag { kPacket = 1 };
enum class Packet : Tag {
  kClockSnapshot = 6,
  kTimestamp = 8,
  kSequence = 10,
  kTrackEvent = 11,
  kInterned = 12,
  kSequenceFlags = 13,
  kTrackDescriptor = 60,
};
enum class ClockSnapshot : Tag { kClocks = 1 };
enum class Clock : Tag { kId = 1, kTimestamp = 2 };
enum class TrackField : Tag {
  kUuid = 1,
  kName = 2,
  kProcess = 3,
  kThread = 4,
  kParent = 5,
  kOrderRank = 12,
  kDescription = 14,
  kProcessOrdering = 19,
  kThreadOrdering = 20,
};
enum class ProcessField : Tag { kPid = 1, kName = 6 };
enum class ThreadField : Tag { kPid = 1, kTid = 2, kName = 5 };
enum class EventField : Tag {
  kCategoryNumbers = 3,
  kAnnotations = 4,
  kType = 9,
  kNameNumber = 10,
  kTrack = 11,
  kCategories = 22,
  kName = 23,
  kFlows = 47,
};
enum class Annotation : Tag {
  kNameNumber = 1,
  kBool = 2,
  kUint = 3,
  kInt = 4,
  kDouble = 5,
  kText = 6,
  kName = 10,
  kTextNumber = 17,
};
enum class Interned : Tag { kCategories = 1, kNames = 2, kNotes = 3, kTexts = 29 };
enum class InternedText : Tag { kNumber = 1, kText = 2 };

constexpr std::uint32_t kSequence = 1;
constexpr std::uint32_t kStateCleared = 1, kNeedsState = 2;
constexpr std::uint32_t kRealTime = 1, kBootTime = 6;
constexpr std::int32_t kInOrder = 1;  ///< of processes and threads: by their ranks
constexpr std::size_t kMostTexts = 1 << 14, kLongestTold = 200, kHeld = 64 * 1024;
constexpr int kTraceColumns = 400;

protozero::data_view View(std::string_view text) { return {text.data(), text.size()}; }

/// Valid UTF-8 without a control, whatever it was.
std::string Visible(std::string_view text) { return Cut(Reveal(text), kTraceColumns); }

}  // namespace

TraceWriter::TraceWriter(const Sink& sink, std::int64_t zero) : sink_(sink), zero_(zero) {
  names_.field = static_cast<Tag>(Interned::kNames);
  categories_.field = static_cast<Tag>(Interned::kCategories);
  notes_.field = static_cast<Tag>(Interned::kNotes);
  texts_.field = static_cast<Tag>(Interned::kTexts);
  {
    // By its first bytes the trace is known again; no NUL stands in front of the mark.
    pbf_builder<Packet> packet(packet_);
    packet.add_uint32(Packet::kSequence, kSequence);
    packet.add_uint32(Packet::kSequenceFlags, kStateCleared);
    pbf_builder<TrackField> root(packet, Packet::kTrackDescriptor);
    root.add_string(TrackField::kDescription, View(kTraceMark));
    root.add_uint64(TrackField::kUuid, 0);
    root.add_enum(TrackField::kProcessOrdering, kInOrder);
    root.add_enum(TrackField::kThreadOrdering, kInOrder);
  }
  PutPacket();
}

std::uint64_t TraceWriter::At(std::int64_t ns) const {
  return ns <= zero_ ? 0 : static_cast<std::uint64_t>(ns) - static_cast<std::uint64_t>(zero_);
}

void TraceWriter::SetRealTime(std::int64_t ns) {
  {
    pbf_builder<Packet> packet(packet_);
    packet.add_uint64(Packet::kTimestamp, At(ns));
    packet.add_uint32(Packet::kSequence, kSequence);
    pbf_builder<ClockSnapshot> snapshot(packet, Packet::kClockSnapshot);
    for (const std::uint32_t id : {kBootTime, kRealTime}) {
      pbf_builder<Clock> clock(snapshot, ClockSnapshot::kClocks);
      clock.add_uint32(Clock::kId, id);
      clock.add_uint64(Clock::kTimestamp, At(ns));
    }
  }
  PutPacket();
}

TraceTrack TraceWriter::NewProcess(std::string_view name, std::string_view about) {
  const TraceTrack track{++tracks_};
  const auto number = static_cast<std::int32_t>(processes_.size() + 1);
  processes_.emplace(track.value, number);
  {
    pbf_builder<Packet> packet(packet_);
    packet.add_uint32(Packet::kSequence, kSequence);
    pbf_builder<TrackField> out(packet, Packet::kTrackDescriptor);
    out.add_uint64(TrackField::kUuid, track.value);
    out.add_int32(TrackField::kOrderRank, number);
    if (!about.empty()) out.add_string(TrackField::kDescription, View(about));
    pbf_builder<ProcessField> process(out, TrackField::kProcess);
    process.add_int32(ProcessField::kPid, number);
    process.add_string(ProcessField::kName, Visible(name));
  }
  PutPacket();
  return track;
}

TraceTrack TraceWriter::NewThread(TraceTrack process, std::int32_t number, std::string_view name) {
  const TraceTrack track{++tracks_};
  {
    pbf_builder<Packet> packet(packet_);
    packet.add_uint32(Packet::kSequence, kSequence);
    pbf_builder<TrackField> out(packet, Packet::kTrackDescriptor);
    out.add_uint64(TrackField::kUuid, track.value);
    out.add_int32(TrackField::kOrderRank, number);
    pbf_builder<ThreadField> thread(out, TrackField::kThread);
    thread.add_int32(ThreadField::kPid, processes_[process.value]);
    thread.add_int64(ThreadField::kTid, number);
    thread.add_string(ThreadField::kName, Visible(name));
  }
  PutPacket();
  return track;
}

TraceTrack TraceWriter::NewTrack(TraceTrack parent, std::string_view name) {
  const TraceTrack track{++tracks_};
  {
    pbf_builder<Packet> packet(packet_);
    packet.add_uint32(Packet::kSequence, kSequence);
    pbf_builder<TrackField> out(packet, Packet::kTrackDescriptor);
    out.add_uint64(TrackField::kUuid, track.value);
    out.add_uint64(TrackField::kParent, parent.value);
    out.add_string(TrackField::kName, Visible(name));
  }
  PutPacket();
  return track;
}

void TraceWriter::Begin(TraceTrack track, std::int64_t ns, const TraceEvent& event) {
  PutEvent(Kind::kBegin, track, ns, &event);
}
void TraceWriter::End(TraceTrack track, std::int64_t ns) { PutEvent(Kind::kEnd, track, ns, nullptr); }
void TraceWriter::Instant(TraceTrack track, std::int64_t ns, const TraceEvent& event) {
  PutEvent(Kind::kInstant, track, ns, &event);
}

std::optional<std::uint64_t> TraceWriter::NumberOf(Table& table, std::string_view text) {
  if (const auto known = table.numbers.find(text); known != table.numbers.end()) return known->second;
  if (table.numbers.size() >= kMostTexts || text.size() > kLongestTold) return std::nullopt;
  const std::uint64_t number = table.numbers.size() + 1;
  table.numbers.emplace(text, number);
  pbf_builder<Interned> interned(interned_);
  pbf_builder<InternedText> entry(interned, static_cast<Interned>(table.field));
  entry.add_uint64(InternedText::kNumber, number);
  entry.add_string(InternedText::kText, Visible(text));
  return number;
}

void TraceWriter::PutEvent(Kind kind, TraceTrack track, std::int64_t ns, const TraceEvent* event) {
  pbf_builder<Packet> packet(packet_);
  packet.add_uint64(Packet::kTimestamp, At(ns));
  packet.add_uint32(Packet::kSequence, kSequence);
  packet.add_uint32(Packet::kSequenceFlags, kNeedsState);
  {
    pbf_builder<EventField> out(packet, Packet::kTrackEvent);
    out.add_enum(EventField::kType, static_cast<std::int32_t>(kind));
    out.add_uint64(EventField::kTrack, track.value);
    if (event != nullptr) {
      if (const auto number = NumberOf(categories_, event->category))
        out.add_uint64(EventField::kCategoryNumbers, *number);
      else
        out.add_string(EventField::kCategories, Visible(event->category));
      if (const auto number = NumberOf(names_, event->name))
        out.add_uint64(EventField::kNameNumber, *number);
      else
        out.add_string(EventField::kName, Visible(event->name));
      if (event->flow) out.add_fixed64(EventField::kFlows, *event->flow);
      for (const TraceNote& note : event->notes) {
        pbf_builder<Annotation> to(out, EventField::kAnnotations);
        if (const auto number = NumberOf(notes_, note.name))
          to.add_uint64(Annotation::kNameNumber, *number);
        else
          to.add_string(Annotation::kName, Visible(note.name));
        std::visit(
            [&](const auto& value) {
              using Value = std::decay_t<decltype(value)>;
              if constexpr (std::is_same_v<Value, bool>) {
                to.add_bool(Annotation::kBool, value);
              } else if constexpr (std::is_same_v<Value, std::int64_t>) {
                to.add_int64(Annotation::kInt, value);
              } else if constexpr (std::is_same_v<Value, std::uint64_t>) {
                to.add_uint64(Annotation::kUint, value);
              } else if constexpr (std::is_same_v<Value, double>) {
                to.add_double(Annotation::kDouble, value);
              } else {
                if (const auto number = NumberOf(texts_, value))
                  to.add_uint64(Annotation::kTextNumber, *number);
                else
                  to.add_string(Annotation::kText, Visible(value));
              }
            },
            note.value);
      }
    }
  }
  if (!interned_.empty()) packet.add_message(Packet::kInterned, interned_);
  interned_.clear();
  PutPacket();
}

void TraceWriter::PutPacket() {
  pbf_builder<Trace>(held_).add_message(Trace::kPacket, packet_);
  packet_.clear();
  if (held_.size() >= kHeld) Flush();
}

void TraceWriter::Flush() {
  if (!held_.empty()) sink_(held_);
  held_.clear();
}

}  // namespace inquest
