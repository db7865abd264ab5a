// `[3] ` (mpiexec -l of MPICH and Intel), where a traceback, or what a dying program prints, shows that no list or
// counter is meant.
#include <array>

#include "parsers/envelopes/front.h"
#include "parsers/message_head.h"

namespace inquest {
namespace {

using std::string_view;

bool PeelNumber(Front& front) {
  const std::size_t digits = CountDigits(front.text.substr(1));
  const auto rank = digits <= 6 ? Number<std::int32_t>(front.text.substr(1, digits)) : std::nullopt;
  if (!rank || front.text.substr(1 + digits, 2) != "] " || front.origin.rank || front.origin.local_rank) return false;
  const string_view rest = front.text.substr(digits + 3);
  static constexpr std::array<string_view, 11> kHeads = {
      "Traceback (most", "  File \"",         "Segmentation fault", "Program received signal SIG",
      "forrtl: ",        "terminate called ", "  what():  ",        "*** Process received signal ***",
      "Abort(",          "*** Error in `",    "*** stack smashing"};
  if (!StartsWithAny(rest, kHeads) && !IsExceptionHead(rest)) return false;
  front.origin.rank =
      Known<GlobalRank>{{*rank}, Basis::kDerived, "number in brackets at the head of a traceback's lines"};
  front.AddWriter(front.text.substr(0, digits + 2));
  front.text = rest;
  return true;
}

}  // namespace

extern const Envelope kMpiexec{.first = '[', .peel = &PeelNumber};

}  // namespace inquest
