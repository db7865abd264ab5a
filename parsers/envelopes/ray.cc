// `(RayTrainWorker pid=41234, ip=10.3.0.17) ` (Ray), `(EngineCore_DP0 pid=311) ` (vLLM).
#include <algorithm>

#include "parsers/envelopes/front.h"

namespace inquest {
namespace {

using std::string_view;

/// vLLM names its workers `VllmWorker rank=1 `, later `Worker_TP1 ` or `Worker_PP1 `, with the other dimensions only
/// where there are any.
std::optional<Known<GlobalRank>> RankOfWorker(string_view name) {
  const bool rank = name.starts_with("VllmWorker rank=");
  if (!rank && !name.starts_with("Worker_TP") && !name.starts_with("Worker_PP")) return std::nullopt;
  name.remove_prefix(std::min(name.find_first_of("0123456789"), name.size()));
  const std::size_t digits = CountDigits(name);
  const auto number = Number<std::int32_t>(name.substr(0, digits));
  if (!number || (name.substr(digits) != " " && !name.substr(digits).starts_with("_EP"))) return std::nullopt;
  return Known<GlobalRank>{GlobalRank{*number}, Basis::kEnvelope, {}};
}

/// Ray prints what many of its processes say, or one again and again, once for each five seconds.
string_view WithoutCount(string_view text) {
  constexpr string_view kBegin = " [repeated ", kEnd = "x across cluster]";
  const std::size_t end = text.rfind(kEnd), begin = end == kNowhere ? kNowhere : text.rfind(kBegin, end);
  if (begin == kNowhere) return text;
  const std::size_t digits = begin + kBegin.size();
  if (CountDigits(text.substr(digits)) != end - digits) return text;
  const string_view behind = text.substr(end + kEnd.size());
  return behind.empty() || behind.starts_with(" (Ray deduplicates ") ? text.substr(0, begin) : text;
}

bool PeelRay(Front& front) {
  const std::size_t at = front.text.substr(0, 128).find("pid=");
  if (at == kNowhere || (front.text[at - 1] != ' ' && at != 1)) return false;
  const std::size_t digits = CountDigits(front.text.substr(at + 4));
  const auto pid = Number<std::int64_t>(front.text.substr(at + 4, digits));
  string_view rest = front.text.substr(at + 4 + digits), ip;
  if (rest.starts_with(", ip=")) {
    ip = rest.substr(5, rest.find(')') == kNowhere ? 0 : rest.find(')') - 5);
    rest.remove_prefix(5 + ip.size());
  }
  if (!pid || !rest.starts_with(')')) return false;
  if (!front.origin.pid) front.origin.pid = pid;
  if (!ip.empty()) front.SetHost(ip);
  if (at > 1) front.AddWriter(front.text.substr(1, at - 2));
  if (!front.origin.rank) front.origin.rank = RankOfWorker(front.text.substr(1, at - 1));
  front.text = WithoutCount(rest.substr(1));
  if (front.text.starts_with(' ')) front.text.remove_prefix(1);
  return true;
}

}  // namespace

extern const Envelope kRay{.first = '(', .peel = &PeelRay};

}  // namespace inquest
