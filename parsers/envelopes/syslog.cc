// `Apr  5 06:07:08 node017 python[41234]: ` (syslog, journalctl), `<time> node017 kernel: `. A daemon's tag stays, it
// says what the line is; an interpreter's says nothing.
#include <algorithm>

#include "parsers/envelopes/front.h"

namespace inquest {
namespace {

using std::string_view;

bool PeelSyslog(Front& front) {
  const auto& parsed = front.Dated();
  if (!parsed) return false;
  const string_view rest = front.text.substr(parsed->size);
  const std::size_t host = rest.find(' ', 1), colon = host == kNowhere ? kNowhere : rest.find(": ", host);
  if (!rest.starts_with(' ') || colon == kNowhere || colon > 128) return false;
  const string_view name = rest.substr(1, host - 1), tag = rest.substr(host + 1, colon - host - 1);
  const string_view program = tag.substr(0, tag.find('['));
  const bool has_pid = program.size() < tag.size() && tag.back() == ']';
  if (name.empty() || program.empty() || std::all_of(program.begin(), program.end(), IsDigit) ||
      !std::all_of(name.begin(), name.end(), IsHostChar) || !std::all_of(program.begin(), program.end(), IsHostChar))
    return false;
  // Behind a date in digits, two words and a colon may be anything.
  if (!has_pid && program != "kernel" && (IsDigit(front.text[0]) || program.size() < tag.size())) return false;
  front.SetHost(name);
  const bool interpreter = has_pid && (program.starts_with("python") || program.starts_with("torchrun"));
  if (interpreter && !front.origin.pid)
    front.origin.pid = Number<std::int64_t>(tag.substr(program.size() + 1, tag.size() - program.size() - 2));
  if (has_pid) front.AddWriter(program);
  front.SetTime(parsed->time);
  front.text = rest.substr(interpreter ? colon + 2 : host + 1);
  return true;
}

}  // namespace

extern const Envelope kSyslog{.peel = &PeelSyslog};

}  // namespace inquest
