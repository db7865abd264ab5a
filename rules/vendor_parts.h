// The hosts and GPUs that a record of devices speaks of, whatever each of its lines calls them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "timeline/timeline.h"

namespace inquest {

/// Names of one host: whole, or cut at the first dot.
bool SameHost(const std::string& a, const std::string& b);

// Which GPU a line means: by its PCI address; else by its UUID, where one address alone goes with that; else by
// nvidia-smi's number, where one address goes with that in the same input, or on the same host.
class PartRoster {
 public:
  explicit PartRoster(const Timeline& devices);

  /// Sorted; "" stands for the lines of which no host is known.
  std::vector<std::string> Hosts() const;
  bool Knows(const std::string& host) const { return gpus_.contains(host); }
  struct Gpu {
    GpuId id;
    std::set<std::string> serials, uuids;
  };
  /// By key: addresses, then UUIDs, then numbers.
  const std::map<std::string, Gpu>& GpusOf(const std::string& host) const;
  /// Empty: the line means no GPU that could be told.
  std::string KeyOf(const std::string& host, const GpuId& id, std::uint32_t input) const;

 private:
  struct Names {
    std::map<std::string, std::set<std::string>> bus_of_uuid;
    std::map<std::pair<std::uint32_t, int>, std::set<std::string>> of_number;  ///< in an input
    std::map<int, std::set<std::string>> of_number_anywhere;
  };
  void Learn(const std::string& host, const GpuId& id, std::uint32_t input);
  void Add(const std::string& host, const GpuId& id, std::uint32_t input);

  std::map<std::string, Names> names_;
  std::map<std::string, std::map<std::string, Gpu>> gpus_;
};

/// The host of a line of a device; "" where none is known.
std::string HostOfLine(const Event& event);
/// Which GPU a line means, as far as it says; nullopt: none.
std::optional<GpuId> GpuOfLine(const What& what);
std::string Lower(std::string_view text);
/// `0000:4e:00.0` of `00000000:4E:00.0`, `4e:00.0`, `0000:4e:00`; empty: it is no address.
std::string AddressIn(std::string_view text);

}  // namespace inquest
