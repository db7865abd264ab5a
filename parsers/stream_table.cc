// The writers of one input, each with the parsers that it has met: a table in one piece, since a flood asks it once a
// line.
#include "parsers/stream_table.h"

#include <algorithm>

namespace inquest {
namespace {

constexpr std::size_t kMostStreams = 1 << 16, kFewestPlaces = 16;

}  // namespace

Parser& Stream::Get(const Format* format) {
  auto& parser = parsers[format];
  if (!parser) parser = format->make();
  return *parser;
}

bool Stream::InSection(std::uint64_t line) const {
  return std::any_of(sections.begin(), sections.end(), [&](const auto& section) { return line <= section.second; });
}

/// Where the key stands, or would.
StreamTable::Place& StreamTable::PlaceOf(std::string_view key, std::size_t hash) {
  std::size_t i = hash & (places_.size() - 1);
  while (places_[i].stream != nullptr && (places_[i].hash != hash || places_[i].stream->key != key))
    i = (i + 1) & (places_.size() - 1);
  return places_[i];
}

Stream* StreamTable::Find(std::string_view key) {
  return places_.empty() ? nullptr : PlaceOf(key, std::hash<std::string_view>()(key)).stream;
}

Stream& StreamTable::At(std::string_view key) {
  if ((streams_.size() + 1) * 2 > places_.size()) Grow();
  const std::size_t hash = std::hash<std::string_view>()(key);
  Place& place = PlaceOf(key, hash);
  if (place.stream != nullptr) return *place.stream;
  if (streams_.size() >= kMostStreams && !key.empty()) return At({});
  Stream& stream = streams_.emplace_back();
  stream.key = key;
  place = {hash, &stream};
  return stream;
}

std::vector<Stream*> StreamTable::InOrder() {
  std::vector<Stream*> out;
  for (Stream& stream : streams_) out.push_back(&stream);
  std::ranges::sort(out, {}, &Stream::key);
  return out;
}

void StreamTable::Clear() {
  streams_.clear();
  places_.clear();
}

void StreamTable::Grow() {
  std::vector<Place> old(std::max(kFewestPlaces, places_.size() * 2));
  old.swap(places_);
  for (const Place& place : old)
    if (place.stream != nullptr) PlaceOf(place.stream->key, place.hash) = place;
}

}  // namespace inquest
