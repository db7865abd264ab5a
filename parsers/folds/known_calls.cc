// Calls that were seen before, but for opCount and the buffers: found and compared, not parsed.
#include <algorithm>
#include <array>

#include "parsers/folds/call_bytes.h"
#include "parsers/folds/call_tables.h"
#include "parsers/folds/calls.h"

namespace inquest {
namespace {

[[maybe_unused]] constexpr std::size_t kTogether = 32;  ///< calls that are added to a list at once

}  // namespace

[[gnu::always_inline]] inline void CallFolder::LookAt(Line& line) const {
  const char* message = line.text.data() + line.mark + kNcclInfo.size();
  const char* end = line.text.data() + line.text.size();
  line.hash = 0;
  if (end - message < static_cast<std::ptrdiff_t>(2 * kWide) || line.mark < 16) return;
  // Thread and device, the last digits of the communicator, those of the stream.
  line.hash = HighBits(Load64(line.text.data() + line.mark - 8) * kFactors[0] + Load64(end - 42) * kFactors[1] +
                       Load64(end - 8) * kFactors[2]);
}

void CallFolder::Look(Line& line) const {
  LookAt(line);
  speaker_places_.Fetch(line.hash);
}

template <class Code>
[[gnu::always_inline]] inline CallFolder::Head* CallFolder::HeadOf(std::string_view text) {
  if (text.size() - kWide > kMostHead - kWide) return nullptr;
  const std::uint32_t hash = HashOfHead(text);
  for (std::size_t at = head_places_.Begin(hash); const std::uint32_t number = head_places_.Next(at, hash);) {
    Head& head = heads_[number - 1];
    if (head.size == text.size() && Code::SameHead(head.text, text.data(), text.size()) &&
        Code::AreHex(text.data() + head.digits_at, head.digits))
      return &head;
  }
  return nullptr;
}

template <class Code>
[[gnu::always_inline]] inline CallFolder::Speaker* CallFolder::SpeakerOf(const Line& line) {
  const char* prefix_end = line.text.data() + line.mark;
  const char* end = line.text.data() + line.text.size();
  const std::size_t message_size = MessageOf(line).size();
  for (std::size_t at = speaker_places_.Begin(line.hash);
       const std::uint32_t number = speaker_places_.Next(at, line.hash);) {
    Speaker& speaker = speakers_[number - 1];
    const std::size_t prefix_size = speaker.prefix_size;
    if (speaker.size > message_size || prefix_size > line.mark) continue;
    if (!Code::SameTail(speaker.text, end - speaker.size, speaker.size) ||
        !Code::SamePrefix(speaker.prefix, prefix_end - prefix_size, prefix_size))
      continue;
    if (prefix_size == line.mark || !IsHostByte(*(prefix_end - prefix_size - 1))) return &speaker;
  }
  return nullptr;
}

template <class Code>
[[gnu::always_inline]] inline CallFolder::Known CallFolder::Find(const Line& line) {
  if (line.hash == 0) return {};
  Speaker* speaker = SpeakerOf<Code>(line);
  if (speaker == nullptr) return {};
  return {speaker, HeadOf<Code>(MessageOf(line).substr(0, MessageOf(line).size() - speaker->size))};
}

bool CallFolder::IsKnownHead(std::string_view text) { return HeadOf<Portable>(text) != nullptr; }
bool CallFolder::IsKnownSpeaker(const Line& line) { return SpeakerOf<Portable>(line) != nullptr; }

[[gnu::always_inline]] inline void CallFolder::Meet(Speaker& speaker, Head& head, const Line& line) {
  if (speaker.stamp != stamp_) Enter(speaker, line);
  if (head.stamp != stamp_) Enter(head);
  speaker.last_piece = line.piece;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) CallFolder::Known CallFolder::FindAvx2(const Line& line) { return Find<Avx2>(line); }

// What lies between the places that are looked at, HeadOf and SpeakerOf compare: neither a known head nor a known tail
// holds a line's end, what may differ in a head is no control byte, and in front of a thread's prefix stands nothing,
// or what was looked at.
template <class Code>
[[gnu::always_inline]] inline void CallFolder::TakeKnownBy(std::string_view block, std::size_t at, std::uint32_t number,
                                                           std::uint32_t piece, std::vector<std::uint32_t>& ends) {
  std::array<CallBatch::Call, kTogether> calls;
  std::array<std::uint32_t, kTogether> their_ends;
  std::size_t added = 0;
  const char* text = block.data() + at;
  const char* last =
      block.data() + block.size() - std::min(block.size(), kGuessedPrefix + kNcclInfo.size() + kGuessedMessage);
  std::size_t bracket = 0;
  const auto flush = [&] {
    batch_.calls.insert(batch_.calls.end(), calls.begin(), calls.begin() + static_cast<std::ptrdiff_t>(added));
    ends.insert(ends.end(), their_ends.begin(), their_ends.begin() + static_cast<std::ptrdiff_t>(added));
    number += static_cast<std::uint32_t>(added);
    piece += static_cast<std::uint32_t>(added);
    added = 0;
  };
  while (text < last) {
    // Most prefixes are as long as that of the line before.
    const bool guessed = bracket != 0 && IsNcclInfo(text + bracket);
    if (!guessed) bracket = Code::BracketIn(text);
    if (bracket >= kGuessedPrefix || (!guessed && !IsNcclInfo(text + bracket))) break;
    const char* message = text + bracket + kNcclInfo.size();
    const std::size_t size = Code::EndIn(message);
    if (size == kGuessedMessage) break;
    const char* end = message + size;
    Line line;
    line.text = {text, static_cast<std::size_t>(end - text) - (end[-1] == '\r' ? 1 : 0)};
    line.mark = static_cast<std::uint32_t>(bracket);
    LookAt(line);
    if (line.hash == 0) break;
    Speaker* speaker = SpeakerOf<Code>(line);
    if (speaker == nullptr || (guessed && speaker->prefix_size != bracket && Code::BracketIn(text) != bracket)) break;
    Head* head = HeadOf<Code>(MessageOf(line).substr(0, MessageOf(line).size() - speaker->size));
    if (head == nullptr) break;
    line.piece = piece + static_cast<std::uint32_t>(added);
    Meet(*speaker, *head, line);
    calls[added] = {speaker->number, head->number, Code::HexOf(message + head->digits_at, head->digits),
                    number + static_cast<std::uint32_t>(added)};
    their_ends[added] = static_cast<std::uint32_t>(end - block.data());
    text = end + 1;
    if (++added == kTogether) flush();
  }
  flush();
}

__attribute__((target("avx2,bmi"))) void CallFolder::TakeKnownAvx2(std::string_view block, std::size_t at,
                                                                   std::uint32_t number, std::uint32_t piece,
                                                                   std::vector<std::uint32_t>& ends) {
  TakeKnownBy<Avx2>(block, at, number, piece, ends);
}
INQUEST_AVX512 void CallFolder::TakeKnownAvx512(std::string_view block, std::size_t at, std::uint32_t number,
                                                std::uint32_t piece, std::vector<std::uint32_t>& ends) {
  TakeKnownBy<Avx512>(block, at, number, piece, ends);
}
#endif

/// A line that was seen before, but for opCount and the buffers, costs two comparisons and a few digits.
CallLine CallFolder::Add(const Line& line) {
#if defined(__x86_64__)
  const Known known = code_ == Code::kPortable ? Find<Portable>(line) : FindAvx2(line);
#else
  const Known known = Find<Portable>(line);
#endif
  if (known.head == nullptr) return AddSlowly(line);
  Meet(*known.speaker, *known.head, line);
  batch_.calls.push_back({known.speaker->number, known.head->number,
                          Portable::HexOf(MessageOf(line).data() + known.head->digits_at, known.head->digits),
                          line.number});
  return CallLine::kCall;
}

void CallFolder::TakeKnown([[maybe_unused]] std::string_view block, [[maybe_unused]] std::size_t at,
                           [[maybe_unused]] std::uint32_t number, [[maybe_unused]] std::uint32_t piece,
                           [[maybe_unused]] std::vector<std::uint32_t>& ends) {
#if defined(__x86_64__)
  if (code_ == Code::kAvx512) return TakeKnownAvx512(block, at, number, piece, ends);
  if (code_ == Code::kAvx2) TakeKnownAvx2(block, at, number, piece, ends);
#endif
}

}  // namespace inquest
