// `trainer/0 [default1]:` (TorchX, NeMo run), only before another tag.
#include <algorithm>

#include "parsers/envelopes/front.h"

namespace inquest {
namespace {

using std::string_view;

bool PeelReplica(Front& front) {
  const std::size_t slash = front.text.find('/');
  if (!IsLetter(front.text[0]) || slash == kNowhere || slash > 64 ||
      !std::all_of(front.text.begin(), front.text.begin() + static_cast<std::ptrdiff_t>(slash), IsHostChar))
    return false;
  const std::size_t digits = CountDigits(front.text.substr(slash + 1)), end = slash + 1 + digits;
  if (digits == 0 || front.text.substr(end, 2) != " [") return false;
  const Front before = front;
  front.AddWriter(front.text.substr(0, end));
  front.text.remove_prefix(end + 1);
  if (PeelRankTag(front) || PeelRoleTag(front)) return true;
  front = before;
  return false;
}

}  // namespace

extern const Envelope kTorchx{.peel = &PeelReplica};

}  // namespace inquest
