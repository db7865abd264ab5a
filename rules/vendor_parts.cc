// The hosts and GPUs that a record of devices speaks of, whatever each of its lines calls them.
#include "rules/vendor_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/host_name.h"
#include "core/pattern.h"
#include "rules/vendor_case.h"

namespace inquest {
namespace {

constexpr std::string_view kFirmwareOfAdapter = "hca_firmware_version";

std::string KeyOfUuid(const std::string& uuid) { return "uuid " + uuid; }
std::string KeyOfNumber(int number) { return fmt::format("~number {:04}", number); }

/// The only one.
std::optional<std::string> OnlyOf(const auto& rows, const auto& key) {
  const auto row = rows.find(key);
  return row != rows.end() && row->second.size() == 1 ? std::optional(*row->second.begin()) : std::nullopt;
}

}  // namespace

std::string Lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

bool SameHost(const std::string& a, const std::string& b) {
  return a == b || (!a.empty() && !b.empty() && HostName(a).Short() == HostName(b).Short());
}

std::string HostOfLine(const Event& event) { return event.origin.host ? event.origin.host->value : std::string(); }

std::string AddressIn(std::string_view text) {
  static const Pattern kAddress(R"(^(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})(?:\.([0-7]))?$)");
  const auto match = kAddress.Search(text);
  if (!match) return {};
  std::uint32_t domain = 0;
  std::from_chars(match->text(1).data(), match->text(1).data() + match->text(1).size(), domain, 16);
  return fmt::format("{:04x}:{}:{}.{}", domain, Lower(match->text(2)), Lower(match->text(3)),
                     match->text(4).empty() ? "0" : match->text(4));
}

std::optional<GpuId> GpuOfLine(const What& what) {
  const auto some = [](const GpuId& id) {
    return id.index || !id.bus_id.empty() || !id.uuid.empty() ? std::optional(id) : std::nullopt;
  };
  if (const auto* described = std::get_if<DeviceDescribed>(&what))
    return described->property == kFirmwareOfAdapter ? std::nullopt : some(described->id);
  if (const auto* seen = std::get_if<GpuSnapshot>(&what)) return some(seen->id);
  if (const auto* condition = std::get_if<GpuCondition>(&what)) return some(condition->id);
  if (const auto* xid = std::get_if<XidReported>(&what)) return some({{}, xid->bus_id, xid->uuid});
  if (const auto* fault = std::get_if<DriverFault>(&what)) return some({{}, fault->bus_id, {}});
  if (const auto* diag = std::get_if<GpuDiag>(&what)) return some({diag->gpu, {}, {}});
  return std::nullopt;
}

PartRoster::PartRoster(const Timeline& devices) {
  for (const std::string& host : devices.hosts) gpus_[host];
  for (const Event& event : devices.events) {
    if (!IsOfKernel(event.what) && !IsOfHost(event.what) && !std::holds_alternative<GpuDiag>(event.what)) continue;
    if (std::holds_alternative<LogMessage>(event.what)) continue;
    gpus_[HostOfLine(event)];
    if (const auto id = GpuOfLine(event.what)) Learn(HostOfLine(event), *id, event.where.input);
  }
  for (const Event& event : devices.events) {
    const auto id = GpuOfLine(event.what);
    if (!id) continue;
    const std::string host = HostOfLine(event);
    Add(host, *id, event.where.input);
    const auto* described = std::get_if<DeviceDescribed>(&event.what);
    if (described == nullptr || described->property != "serial") continue;
    if (const std::string key = KeyOf(host, *id, event.where.input); !key.empty())
      gpus_[host][key].serials.insert(described->value);
  }
  for (const ProcessRow& row : devices.processes)
    if (row.host && row.bus_id) Add(*row.host, {{}, *row.bus_id, {}}, 0);
}

void PartRoster::Learn(const std::string& host, const GpuId& id, std::uint32_t input) {
  Names& names = names_[host];
  if (!id.uuid.empty() && !id.bus_id.empty()) names.bus_of_uuid[id.uuid].insert(WithoutFunction(id.bus_id));
  if (!id.index || (id.bus_id.empty() && id.uuid.empty())) return;
  const std::string key = id.bus_id.empty() ? KeyOfUuid(id.uuid) : WithoutFunction(id.bus_id);
  names.of_number[{input, *id.index}].insert(key);
  names.of_number_anywhere[*id.index].insert(key);
}

std::string PartRoster::KeyOf(const std::string& host, const GpuId& id, std::uint32_t input) const {
  if (!id.bus_id.empty()) return WithoutFunction(id.bus_id);
  const auto found = names_.find(host);
  const auto by_uuid = [&](const std::string& uuid) {
    const auto bus = found == names_.end() ? std::nullopt : OnlyOf(found->second.bus_of_uuid, uuid);
    return bus.value_or(KeyOfUuid(uuid));
  };
  if (!id.uuid.empty()) return by_uuid(id.uuid);
  if (!id.index) return {};
  if (found == names_.end()) return KeyOfNumber(*id.index);
  // Several keys of one number may be one GPU: its UUID in one form, its address in another.
  const auto one = [&](const std::set<std::string>& keys) -> std::optional<std::string> {
    std::set<std::string> resolved;
    for (const std::string& key : keys) resolved.insert(key.starts_with("uuid ") ? by_uuid(key.substr(5)) : key);
    return resolved.size() == 1 ? std::optional(*resolved.begin()) : std::nullopt;
  };
  if (const auto row = found->second.of_number.find({input, *id.index}); row != found->second.of_number.end())
    if (const auto key = one(row->second)) return *key;
  if (const auto row = found->second.of_number_anywhere.find(*id.index); row != found->second.of_number_anywhere.end())
    if (const auto key = one(row->second)) return *key;
  return KeyOfNumber(*id.index);
}

void PartRoster::Add(const std::string& host, const GpuId& id, std::uint32_t input) {
  const std::string key = KeyOf(host, id, input);
  if (key.empty()) return;
  Gpu& gpu = gpus_[host][key];
  if (!id.bus_id.empty() && gpu.id.bus_id.empty()) gpu.id.bus_id = id.bus_id;
  if (!id.uuid.empty()) gpu.uuids.insert(id.uuid);
  gpu.id.uuid = gpu.uuids.size() == 1 ? *gpu.uuids.begin() : std::string();
  if (id.index && !gpu.id.index) gpu.id.index = id.index;
}

std::vector<std::string> PartRoster::Hosts() const {
  std::vector<std::string> hosts;
  for (const auto& [host, gpus] : gpus_) hosts.push_back(host);
  return hosts;
}

const std::map<std::string, PartRoster::Gpu>& PartRoster::GpusOf(const std::string& host) const {
  static const std::map<std::string, Gpu> kNone;
  const auto found = gpus_.find(host);
  return found == gpus_.end() ? kNone : found->second;
}

// ---- which part is meant ----------------------------------------------------------------------------------------

namespace {

/// The host as the inputs name it.
std::optional<std::string> HostNamed(const PartRoster& roster, const std::string& asked) {
  if (asked.empty()) return std::nullopt;
  if (roster.Knows(asked)) return asked;
  for (const std::string& host : roster.Hosts())
    if (!host.empty() && SameHost(host, asked)) return host;
  return std::nullopt;
}

std::string Listed(const std::vector<std::string>& names, std::size_t most = 40) {
  const std::vector<std::string> some(names.begin(),
                                      names.begin() + static_cast<std::ptrdiff_t>(std::min(most, names.size())));
  return fmt::format("{}{}", fmt::join(some, ", "),
                     names.size() > most ? fmt::format(" and {} more", names.size() - most) : "");
}

Error UnknownPart(const PartRoster& roster, std::string_view asked) {
  std::vector<std::string> hosts = roster.Hosts();
  const bool nameless = std::erase(hosts, std::string()) > 0;
  std::string hint = hosts.empty() ? "no line names a host; --host NAME says whose the inputs are"
                                   : "hosts that the inputs know: " + Listed(hosts);
  if (nameless && !hosts.empty()) hint += "; of some lines no host is known: --host PATH=NAME says whose a file is";
  return {fmt::format("the inputs know no host or GPU '{}'", asked), std::move(hint), ""};
}

std::string Called(const std::string& host, const PartRoster::Gpu& gpu) {
  const std::string id = !gpu.id.bus_id.empty() ? gpu.id.bus_id : gpu.id.uuid;
  return host.empty() ? id : host + ":" + id;
}

/// The only GPU of all hosts, or of one, that fits.
template <class Fits>
std::optional<Result<CasePart>> OnlyGpu(const PartRoster& roster, std::string_view asked,
                                        const std::optional<std::string>& on, Fits fits) {
  std::vector<CasePart> parts;
  std::vector<std::string> names;
  for (const std::string& host : roster.Hosts()) {
    if (on && host != *on) continue;
    for (const auto& [key, gpu] : roster.GpusOf(host))
      if (fits(gpu)) {
        parts.push_back({host, gpu.id});
        names.push_back(Called(host, gpu));
      }
  }
  if (parts.size() == 1) return Result<CasePart>(std::move(parts.front()));
  if (parts.empty()) return std::nullopt;
  return Result<CasePart>(
      Error{fmt::format("'{}' may be any of several GPUs", asked), "name one of " + Listed(names), ""});
}

Error UnknownGpu(const PartRoster& roster, const std::string& host, std::string_view asked) {
  std::vector<std::string> names;
  for (const auto& [key, gpu] : roster.GpusOf(host)) names.push_back(Called(host, gpu));
  return {fmt::format("no line speaks of a GPU '{}'", asked),
          names.empty() ? fmt::format("no line names a GPU of {}", host)
                        : "GPUs that the inputs know there: " + Listed(names),
          ""};
}

}  // namespace

Result<CasePart> FindPart(const Timeline& devices, std::string_view asked_view) {
  const PartRoster roster(devices);
  const std::string asked(asked_view);
  if (const auto host = HostNamed(roster, asked)) return CasePart{*host, std::nullopt};
  const std::string lower = Lower(asked);
  const auto of_uuid = [&](const PartRoster::Gpu& gpu) {
    return std::ranges::any_of(gpu.uuids, [&](const std::string& uuid) { return Lower(uuid) == lower; });
  };
  const auto of_serial = [&](const PartRoster::Gpu& gpu) { return gpu.serials.contains(asked); };
  if (auto part = OnlyGpu(roster, asked, std::nullopt, of_uuid)) return *std::move(part);
  if (auto part = OnlyGpu(roster, asked, std::nullopt, of_serial)) return *std::move(part);
  const auto at = [](const std::string& address) {
    return [&address](const PartRoster::Gpu& gpu) { return SameDevice(gpu.id.bus_id, address); };
  };
  if (const std::string address = AddressIn(asked); !address.empty())
    if (auto part = OnlyGpu(roster, asked, std::nullopt, at(address))) return *std::move(part);
  // A host's name may hold colons, as an address does: the first of them behind which a GPU stands.
  for (std::size_t colon = asked.find(':'); colon != std::string::npos; colon = asked.find(':', colon + 1)) {
    const auto host = HostNamed(roster, asked.substr(0, colon));
    if (!host) continue;
    const std::string rest = asked.substr(colon + 1);
    const std::string address = AddressIn(rest);
    int number = -1;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    const bool is_number = error == std::errc() && end == rest.data() + rest.size();
    const std::string lower_rest = Lower(rest);
    auto part = OnlyGpu(roster, asked, host, [&](const PartRoster::Gpu& gpu) {
      if (!address.empty()) return SameDevice(gpu.id.bus_id, address);
      if (is_number && gpu.id.index == number) return true;
      return gpu.serials.contains(rest) ||
             std::ranges::any_of(gpu.uuids, [&](const std::string& uuid) { return Lower(uuid) == lower_rest; });
    });
    return part ? *std::move(part) : Result<CasePart>(UnknownGpu(roster, *host, rest));
  }
  return UnknownPart(roster, asked);
}

}  // namespace inquest
