// `[3] ` (mpiexec -l of MPICH and Intel), where a traceback, what a dying program prints, or Horovod's list of
// missing ranks shows that no list or counter is meant.
#include <array>

#include "core/ascii.h"
#include "parsers/envelopes/front.h"
#include "parsers/message_head.h"

namespace inquest {
namespace {

using std::string_view;

/// `Missing ranks:`, `0: [broadcast.bias, ...`: Horovod's list of who has not submitted what.
bool IsOfHorovodsList(string_view text) {
  const std::size_t digits = CountDigits(text);
  const string_view behind = text.substr(digits);
  return text == "Missing ranks:" ||
         (digits > 0 && behind.starts_with(": [") && behind.size() > 3 && IsLetter(behind[3]));
}

bool PeelNumber(Front& front) {
  const std::size_t digits = CountDigits(front.text.substr(1));
  const auto rank = digits <= 6 ? Number<std::int32_t>(front.text.substr(1, digits)) : std::nullopt;
  if (!rank || front.text.substr(1 + digits, 2) != "] " || front.origin.rank || front.origin.local_rank) return false;
  const string_view rest = front.text.substr(digits + 3);
  static constexpr std::array<string_view, 11> kHeads = {
      "Traceback (most", "  File \"",         "Segmentation fault", "Program received signal SIG",
      "forrtl: ",        "terminate called ", "  what():  ",        "*** Process received signal ***",
      "Abort(",          "*** Error in `",    "*** stack smashing"};
  if (!StartsWithAny(rest, kHeads) && !IsExceptionHead(rest) && !IsOfHorovodsList(rest)) return false;
  front.origin.rank =
      Known<GlobalRank>{{*rank}, Basis::kDerived, "number in brackets at the head of a traceback's lines"};
  front.AddWriter(front.text.substr(0, digits + 2));
  front.text = rest;
  return true;
}

}  // namespace

extern const Envelope kMpiexec{.first = '[', .peel = &PeelNumber};

}  // namespace inquest
