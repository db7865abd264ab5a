// `[pod/worker-1/pytorch] ` (kubectl logs --prefix).
#include "parsers/envelopes/front.h"

namespace inquest {
namespace {

using std::string_view;

bool PeelPodTag(Front& front) {
  if (!front.text.starts_with("[pod/")) return false;
  const std::size_t slash = front.text.find('/', 5), close = front.text.find("] ");
  if (slash == kNowhere || close == kNowhere || slash > close || close > 256) return false;
  front.SetHost(front.text.substr(5, slash - 5));
  front.AddWriter(front.text.substr(0, close + 1));
  front.text.remove_prefix(close + 2);
  return true;
}

}  // namespace

extern const Envelope kKubectl{.first = '[', .peel = &PeelPodTag};

}  // namespace inquest
