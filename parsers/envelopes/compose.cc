// `trainer-1  | ` (docker compose; version 1 wrote `project_trainer_1   | `), in a column of its own.
#include <algorithm>

#include "parsers/envelopes/front.h"

namespace inquest {
namespace {

using std::string_view;

bool PeelCompose(Front& front) {
  if (!IsLetter(front.text[0])) return false;
  const std::size_t size =
      static_cast<std::size_t>(std::find_if_not(front.text.begin(), front.text.end(), IsHostChar) - front.text.begin());
  const std::size_t bar = front.text.find_first_not_of(' ', size);
  const string_view name = front.text.substr(0, size);
  const std::size_t number = name.find_last_not_of("0123456789");
  if (bar == kNowhere || bar < size + 2 || bar > 128 || front.text[bar] != '|' ||
      front.text.substr(bar + 1, 1).find_first_not_of(' ') != kNowhere)
    return false;
  if (number == kNowhere || number + 1 == size || (name[number] != '-' && name[number] != '_')) return false;
  front.AddWriter(name);
  front.text.remove_prefix(std::min(bar + 2, front.text.size()));
  return true;
}

}  // namespace

extern const Envelope kCompose{.peel = &PeelCompose};

}  // namespace inquest
