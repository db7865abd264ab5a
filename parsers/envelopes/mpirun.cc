// `[1,3]<stdout>:` (mpirun, both spellings), with and without its time stamps.
#include <algorithm>

#include "parsers/envelopes/front.h"

namespace inquest {

using std::string_view;

/// `[1,3]<stdout>:`, `[1,3]<stdout>: `, `[3]<stderr>: `, `[1,3][node017:41234]<stderr>: `.
bool PeelMpirunTag(Front& front) {
  const std::size_t close = front.text.find(']');
  if (close > 24 || !IsDigit(front.text[1])) return false;
  const string_view ids = front.text.substr(1, close - 1);
  const std::size_t comma = ids.find(',');
  const auto rank = Number<std::int32_t>(comma == kNowhere ? ids : ids.substr(comma + 1));
  string_view rest = front.text.substr(close + 1), host, pid;
  if (const std::size_t end = rest.find(']'); rest.starts_with('[') && end != kNowhere) {
    const std::size_t colon = rest.find(':');
    if (colon < end) {
      host = rest.substr(1, colon - 1);
      pid = rest.substr(colon + 1, end - colon - 1);
    }
    rest.remove_prefix(end + 1);
  }
  const std::size_t tag = rest.find(">:");
  if (!rank || !rest.starts_with("<std") || tag == kNowhere || tag > 8) return false;
  if (!front.origin.rank) front.origin.rank = Known<GlobalRank>{{*rank}, Basis::kEnvelope, {}};
  if (!host.empty()) front.SetHost(host);
  if (const auto number = Number<std::int64_t>(pid); number && !front.origin.pid) front.origin.pid = number;
  front.AddWriter(front.text.substr(0, close + 1));
  front.text = rest.substr(tag + 2);
  // OMPI 5 puts a blank, OMPI 4 none; Python indents by an even number, so an odd run holds the separator.
  if (std::min(front.text.find_first_not_of(' '), front.text.size()) % 2 == 1) front.text.remove_prefix(1);
  return true;
}

namespace {

/// A time of so many bytes, if the tag stands behind it.
bool PeelTimed(Front& front, const Timestamp& time, std::size_t size) {
  const string_view before = front.text;
  front.text.remove_prefix(size);
  if (!PeelMpirunTag(front)) {
    front.text = before;
    return false;
  }
  front.SetTime(time);
  return true;
}

/// The tag, or `[Sat Apr  5 06:07:08 2031]` and the tag.
bool PeelBracketed(Front& front) {
  if (PeelMpirunTag(front)) return true;
  const auto parsed = ParseTime(front.text.substr(1));
  return parsed && front.text.substr(1 + parsed->size, 2) == "][" && PeelTimed(front, parsed->time, 2 + parsed->size);
}

bool PeelUnbracketed(Front& front) {
  const auto& parsed = front.Dated();
  return parsed && front.text.substr(parsed->size, 1) == "[" && PeelTimed(front, parsed->time, parsed->size);
}

}  // namespace

extern const Envelope kMpirun{.first = '[', .peel = &PeelBracketed};

extern const Envelope kMpirunTime{.peel = &PeelUnbracketed};

}  // namespace inquest
