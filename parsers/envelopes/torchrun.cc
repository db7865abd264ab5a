// `[default3]:` (torchrun --tee): a role's name and a local rank.
#include <algorithm>
#include <array>

#include "parsers/envelopes/front.h"

namespace inquest {

using std::string_view;

bool PeelRoleTag(Front& front) {
  // Loops print themselves in the same shape.
  static constexpr std::array<string_view, 6> kCounters = {"epoch", "step", "iter", "batch", "layer", "stage"};
  const std::size_t close = front.text.find("]:");
  if (close > 48 || !IsLetter(front.text[1])) return false;
  string_view role = front.text.substr(1, close - 1);
  const std::size_t digits =
      static_cast<std::size_t>(std::find_if_not(role.rbegin(), role.rend(), IsDigit) - role.rbegin());
  const auto local_rank = Number<std::int32_t>(role.substr(role.size() - digits));
  role.remove_suffix(digits);
  if (!local_rank || digits > 3 || !std::all_of(role.begin(), role.end(), IsHostChar) || StartsWithAny(role, kCounters))
    return false;
  if (!front.origin.local_rank) front.origin.local_rank = LocalRank{*local_rank};
  front.AddWriter(front.text.substr(0, close + 1));
  // torchrun's own launcher starts one task a node: its number is the node's.
  if (!front.own_rank) front.origin.rank.reset();
  front.text.remove_prefix(close + 2);
  return true;
}

extern const Envelope kTorchrun{.first = '[', .peel = &PeelRoleTag};

}  // namespace inquest
