// What detectors ask when they hold the state of a host against a failure of the job.
#include "rules/host_states.h"

#include <algorithm>

#include "core/ascii.h"
#include "core/host_name.h"

namespace inquest {
namespace {

template <class Fits>
std::optional<EventIndex> FirstMatch(const Evidence& evidence, Fits fits) {
  for (const LineMatch& match : evidence.matches)
    if (fits(evidence.book.rules[match.rule])) return match.event;
  return std::nullopt;
}

template <class T>
bool IsIn(const T& list, std::string_view what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

}  // namespace

std::optional<std::string> JobHostOf(const Timeline& timeline, const std::set<std::string>& hosts, const Event& event) {
  const auto host = timeline.HostOf(event);
  if (hosts.empty()) return host.value_or(std::string());
  if (!host) return hosts.size() == 1 ? std::optional(*hosts.begin()) : std::nullopt;
  const std::string name = HostName(*host).Short();
  if (hosts.contains(name)) return name;
  if (const auto longer = hosts.lower_bound(name + "."); longer != hosts.end() && HostName(*longer).Short() == name)
    return *longer;
  // A pod's only node calls itself by another name.
  return hosts.size() == 1 && HostName(*hosts.begin()).Kind() != HostName(*host).Kind() ? std::optional(*hosts.begin())
                                                                                        : std::nullopt;
}

std::optional<EventIndex> FirstLineFor(const Evidence& evidence, std::initializer_list<std::string_view> causes) {
  return FirstMatch(evidence, [&](const Rule& rule) {
    return rule.kind == Rule::Kind::kSignature && rule.strength != Strength::kHint && IsIn(causes, rule.cause);
  });
}

std::optional<EventIndex> FirstLineOf(const Evidence& evidence, std::initializer_list<std::string_view> rules) {
  return FirstMatch(evidence, [&](const Rule& rule) { return IsIn(rules, rule.id); });
}

bool SawFailure(const Evidence& evidence) {
  return evidence.course.failed() ||
         FirstMatch(evidence, [](const Rule& rule) { return rule.kind == Rule::Kind::kSymptom; }).has_value();
}

std::vector<Culprit> BlameHost(const std::string& host, std::string why) {
  if (host.empty()) return {};
  Culprit culprit;
  culprit.host = host;
  culprit.why = std::move(why);
  return {culprit};
}

std::string OnHost(const std::string& host) { return host.empty() ? std::string() : " on " + host; }

bool StandsIn(std::string_view text, std::string_view name) {
  for (std::size_t at = text.find(name); !name.empty() && at != std::string_view::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !IsWordChar(text[at - 1])) && (end == text.size() || !IsWordChar(text[end]))) return true;
  }
  return false;
}

bool OnlyBetweenHosts(const Timeline& timeline) {
  std::set<int> ranks;
  std::set<std::string> hosts;
  for (const ProcessRow& process : timeline.processes) {
    if (!process.rank) continue;
    if (!process.host) return false;
    ranks.insert(process.rank->value.value);
    hosts.insert(*process.host);
  }
  if (hosts.size() < 2 || ranks.size() != hosts.size()) return false;
  const auto known = static_cast<int>(ranks.size());
  int size = timeline.world_size ? timeline.world_size->value : known;
  for (const CommunicatorRow& row : timeline.communicators) size = std::max(size, row.nranks);
  return size == known && std::ranges::none_of(timeline.events, [](const Event& event) {
           const auto* via = std::get_if<ChannelsVia>(&event.what);
           return via != nullptr && (!via->via.starts_with("NET/") || via->via.ends_with("/GDRDMA"));
         });
}

}  // namespace inquest
