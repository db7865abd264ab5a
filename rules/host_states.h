// What detectors ask when they hold the state of a host against a failure of the job.
#pragma once

#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "rules/evidence.h"

namespace inquest {

/// The host of the job that a state is of. Empty text: the job names no host and neither does the state. nullopt: it is
/// of another host, or it may be of any of several.
std::optional<std::string> JobHostOf(const Timeline& timeline, const std::set<std::string>& hosts, const Event& event);

/// The first line on which a signature for one of these causes held with more than a hint.
std::optional<EventIndex> FirstLineFor(const Evidence& evidence, std::initializer_list<std::string_view> causes);
/// The first line on which one of these rules held.
std::optional<EventIndex> FirstLineOf(const Evidence& evidence, std::initializer_list<std::string_view> rules);

/// The job did not end well, by something else than a state: a time-out, an exception, a bad exit, a line that names a
/// cause.
bool SawFailure(const Evidence& evidence);

/// The host as a culprit; nobody where it has no name.
std::vector<Culprit> BlameHost(const std::string& host, std::string why);

/// ` on node07`, or nothing.
std::string OnHost(const std::string& host);

/// Whether a name stands in a text with nothing around it that would make it a longer one.
bool StandsIn(std::string_view text, std::string_view name);

/// No two ranks of the job are on one host, and NCCL names no path that begins or ends on another device's bus: what
/// moves between ranks moves over the network. False also where that is not known.
bool OnlyBetweenHosts(const Timeline& timeline);

}  // namespace inquest
