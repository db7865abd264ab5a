// `stderr: ` or `stdout: `: a parent that hands on what its child prints (accelerate's test command and its like).
#include "parsers/envelopes/front.h"

namespace inquest {
namespace {

bool PeelStream(Front& front) {
  constexpr std::string_view kOut = "stdout: ", kErr = "stderr: ";
  if (!front.text.starts_with(kOut) && !front.text.starts_with(kErr)) return false;
  front.text.remove_prefix(kOut.size());
  return true;
}

}  // namespace

extern const Envelope kStreamName{.peel = &PeelStream};

}  // namespace inquest
