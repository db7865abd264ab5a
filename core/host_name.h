// What logs call a host: a name, whole or cut at its first dot, or an address, which nothing cuts.
#pragma once

#include <string>
#include <string_view>

namespace inquest {

/// A view of a host's name as something printed it; must not outlive the text.
class HostName {
 public:
  explicit HostName(std::string_view text) : text_(text) {}

  /// `10.244.1.7`, `fd00::7`, `fe80::1%eth0`.
  bool is_address() const;
  bool is_ipv4() const;
  /// Up to the first dot, as NCCL and the launchers print it; an address whole. Empty where the text is.
  std::string Short() const;
  /// What is left of it without digits: `node07` and `node12` are names of one kind, a pod's and its node's are not.
  /// Addresses are all of one kind.
  std::string Kind() const;

 private:
  std::string_view text_;
};

}  // namespace inquest
