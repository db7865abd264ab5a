// `[rank3]:` (c10's C++ log), `[rank3]: ` (Python's excepthook): printed by the process itself, so that it beats what a
// launcher counts.
#include "parsers/envelopes/front.h"

namespace inquest {

bool PeelRankTag(Front& front) {
  if (!front.text.starts_with("[rank")) return false;
  const std::size_t digits = CountDigits(front.text.substr(5));
  const auto rank = Number<std::int32_t>(front.text.substr(5, digits));
  if (!rank || front.text.substr(5 + digits, 2) != "]:") return false;
  if (!front.own_rank) front.origin.rank = Known<GlobalRank>{{*rank}, Basis::kEnvelope, {}};
  front.own_rank = true;
  front.text.remove_prefix(5 + digits + 2);
  if (front.text.starts_with(' ')) front.text.remove_prefix(1);
  return true;
}

extern const Envelope kRankTag{.first = '[', .peel = &PeelRankTag};

}  // namespace inquest
