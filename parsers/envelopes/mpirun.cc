// `[1,3]<stdout>:` (mpirun, both spellings), with and without its time stamps.
#include <algorithm>

#include "parsers/envelopes/front.h"

namespace inquest {

using std::string_view;

/// `[1,3]<stdout>:`, `[1,3]<stdout>: `, `[3]<stderr>: `, `[1,3][node017:41234]<stderr>: `; PRRTE's with the name of its
/// own job, `[prterun-node017-41200@1,3]<stderr>: `; SageMaker's, `[1,mpirank:3,algo-2]<stderr>:`.
bool PeelMpirunTag(Front& front) {
  constexpr std::size_t kLongest = 96;
  const std::size_t close = front.text.find(']');
  if (close > kLongest) return false;
  string_view ids = front.text.substr(1, close - 1), host, pid;
  if (const std::size_t at = ids.find('@'); at != kNowhere && ids.starts_with("prterun-")) ids.remove_prefix(at + 1);
  if (ids.empty() || !IsDigit(ids[0])) return false;
  if (const std::size_t comma = ids.find(','); comma != kNowhere) ids.remove_prefix(comma + 1);
  constexpr string_view kSageMaker = "mpirank:";
  if (const std::size_t comma = ids.find(','); ids.starts_with(kSageMaker) && comma != kNowhere) {
    host = ids.substr(comma + 1);
    ids = ids.substr(kSageMaker.size(), comma - kSageMaker.size());
  }
  const auto rank = Number<std::int32_t>(ids);
  string_view rest = front.text.substr(close + 1);
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
