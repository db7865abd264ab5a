// `kern  :err   : ` (dmesg -x).
#include <algorithm>
#include <array>

#include "parsers/envelopes/front.h"

namespace inquest {
namespace {

using std::string_view;

bool PeelFacility(Front& front) {
  static constexpr std::array<string_view, 6> kFacilities = {
      "kern  :", "user  :", "daemon:", "syslog:", "auth  :", "local"};
  static constexpr std::array<string_view, 8> kPriorities = {
      "emerg :", "alert :", "crit  :", "err   :", "warn  :", "notice:", "info  :", "debug :"};
  constexpr std::size_t kWidth = 7;
  if (front.text.size() <= kWidth || front.text[kWidth - 1] != ':' || !StartsWithAny(front.text, kFacilities))
    return false;
  if (!StartsWithAny(front.text.substr(kWidth), kPriorities)) return false;
  front.text.remove_prefix(std::min(front.text.find_first_not_of(' ', 2 * kWidth), front.text.size()));
  return true;
}

}  // namespace

extern const Envelope kDmesg{.peel = &PeelFacility};

}  // namespace inquest
