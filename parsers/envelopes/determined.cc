// `[2031-04-05T06:07:08.419846Z] fa88a9df [rank=5] || ` (Determined AI: time, container, rank).
#include "parsers/envelopes/front.h"

namespace inquest {
namespace {

using std::string_view;

bool PeelDetermined(Front& front) {
  const auto parsed = ParseTime(front.text.substr(1));
  if (!parsed || front.text.substr(1 + parsed->size, 2) != "] ") return false;
  string_view rest = front.text.substr(3 + parsed->size);
  const std::size_t bars = rest.substr(0, 64).find("|| ");
  if (bars == kNowhere) return false;
  const string_view tag = rest.substr(0, bars);
  if (const std::size_t at = tag.find("[rank="); at != kNowhere) {
    const auto rank = Number<std::int32_t>(tag.substr(at + 6, CountDigits(tag.substr(at + 6))));
    if (rank && !front.own_rank) front.origin.rank = Known<GlobalRank>{{*rank}, Basis::kEnvelope, {}};
  }
  front.AddWriter(tag);
  front.SetTime(parsed->time);
  front.text = rest.substr(bars + 3);
  return true;
}

}  // namespace

extern const Envelope kDetermined{.first = '[', .peel = &PeelDetermined};

}  // namespace inquest
