// ` 45%|####      | 45/100 [00:12<00:15,  3.61it/s]`, where a line of somebody else stands behind it.
#include <algorithm>

#include "parsers/envelopes/front.h"
#include "parsers/message_head.h"

namespace inquest {
namespace {

using std::string_view;

bool PeelBar(Front& front) {
  const std::size_t percent = front.text.substr(0, 96).find("%|");
  if (percent == kNowhere || percent == 0 || !IsDigit(front.text[percent - 1])) return false;
  const std::size_t bar = front.text.find("| ", percent + 2),
                    open = bar == kNowhere ? kNowhere : front.text.find(" [", bar);
  const std::size_t close = open == kNowhere ? kNowhere : front.text.find(']', open);
  if (close == kNowhere || close > 512 || close + 1 == front.text.size() ||
      !IsDigit(front.text[std::min(bar + 2, front.text.size() - 1)]))
    return false;
  const string_view rest = front.text.substr(close + 1);
  // A bar ends in its bracket; what its own writer puts behind stands apart from it.
  const bool touches = string_view(" ,:").find(rest[0]) == kNowhere;
  if (!touches && !LooksLikeLog(rest) && !StartsWithTag(rest)) return false;
  front.bar = front.text.substr(0, close + 1);
  front.bar_origin = front.origin;
  front.text = rest;
  return true;
}

}  // namespace

extern const Envelope kProgressBar{.peel = &PeelBar};

}  // namespace inquest
