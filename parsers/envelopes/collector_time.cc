// `2031-04-05T06:07:08.1Z ` (kubectl --timestamps), `2031-04-05T06:07:08.1Z stdout F ` (CRI). A logging module's time
// stays with its message; it has no `T` and no zone.
#include <algorithm>

#include "parsers/envelopes/front.h"
#include "parsers/message_head.h"

namespace inquest {
namespace {

using std::string_view;

bool PeelTime(Front& front) {
  const auto& parsed = front.Dated();
  if (!parsed) return false;
  string_view rest = front.text.substr(parsed->size);
  if (rest.starts_with(": ")) rest.remove_prefix(1);
  // A month's name heads syslog and mpirun, which have envelopes of their own, and nvidia-smi.
  if (!rest.starts_with(' ') || !IsDigit(front.text[0]) || parsed->time.date != Timestamp::Date::kFull) return false;
  rest.remove_prefix(1);
  if (rest.starts_with("stdout ") || rest.starts_with("stderr ")) {  // CRI
    const string_view tags = rest.substr(7, rest.find(' ', 7) == kNowhere ? kNowhere : rest.find(' ', 7) - 7);
    const bool known = tags.starts_with('F') || tags.starts_with('P');
    if (known && (tags.size() == 1 || tags[1] == ':')) rest.remove_prefix(std::min(7 + tags.size() + 1, rest.size()));
  } else if (ContinuesLogging(rest) && !(front.text[10] == 'T' && parsed->time.zone_known)) {
    return false;
  }
  front.SetTime(parsed->time);
  front.text = rest;
  return true;
}

}  // namespace

extern const Envelope kCollectorTime{.peel = &PeelTime};

}  // namespace inquest
