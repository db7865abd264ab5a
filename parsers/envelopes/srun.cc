// `  3: ` (srun -l), `P1 3: ` (its heterogeneous jobs, where the number is no rank of the job).
#include <algorithm>

#include "parsers/envelopes/front.h"

namespace inquest {
namespace {

using std::string_view;

/// `[dense/HorovodAllreduce_0, ...`, `[name]`: Horovod lists tensors by rank, in the shape of srun's label.
bool StartsList(string_view text) {
  if (text.size() < 2 || text[0] != '[' || !IsLetter(text[1])) return false;
  const std::size_t end = text.find_first_of(",] :");
  return end != kNowhere && (text[end] == ',' || (text[end] == ']' && end + 1 == text.size()));
}

/// `  3: ` (srun -l), `P1 3: ` (its heterogeneous jobs, where the number is no rank of the job).
bool PeelTaskLabel(Front& front) {
  const std::size_t begin = front.text.find_first_not_of(' ');
  // Behind another tag, a number is what the process itself printed.
  if (begin == kNowhere || begin > 6 || front.origin.rank || front.origin.local_rank) return false;
  string_view rest = front.text.substr(begin);
  const bool component = rest[0] == 'P' && rest.size() > 1 && IsDigit(rest[1]);
  if (component) {
    const std::size_t digits = CountDigits(rest.substr(1));
    if (rest.substr(1 + digits, 1) != " ") return false;
    rest.remove_prefix(digits + 2);
  }
  const std::size_t digits = CountDigits(rest);
  const auto task = digits <= 6 ? Number<std::int32_t>(rest.substr(0, digits)) : std::nullopt;
  // HPE's MPT puts no blank behind it.
  const string_view behind = rest.substr(std::min(digits + 1, rest.size()));
  const bool of_mpt = behind.starts_with("MPT") || behind.starts_with("\tProcess ID: ");
  if (!task || rest.substr(digits, 1) != ":" || (rest.size() > digits + 1 && rest[digits + 1] != ' ' && !of_mpt))
    return false;
  const string_view label = front.text.substr(begin, front.text.find(':', begin) + 1 - begin);
  rest = rest.substr(std::min(digits + (of_mpt ? 1 : 2), rest.size()));
  // A Rust backtrace numbers its frames in the same shape.
  if (rest.substr(0, rest.find(' ')).find("::") != kNowhere) return false;
  if (StartsList(rest)) return false;
  // `ip link` numbers its interfaces in it: `2: eth0: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500`.
  if (const std::size_t flags = rest.find(": <"); flags < 40 && rest.find("> mtu ", flags) != kNowhere) return false;
  if (!component) front.origin.rank = Known<GlobalRank>{{*task}, Basis::kEnvelope, kSrunTask};
  front.AddWriter(label);
  front.text = rest;
  return true;
}

}  // namespace

extern const Envelope kSrun{.peel = &PeelTaskLabel};

}  // namespace inquest
