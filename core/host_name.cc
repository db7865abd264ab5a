// What logs call a host: a name, whole or cut at its first dot, or an address, which nothing cuts.
#include "core/host_name.h"

#include <arpa/inet.h>

#include <algorithm>

#include "core/ascii.h"

namespace inquest {

bool HostName::is_ipv4() const {
  int parts = 0;
  for (std::size_t at = 0; at <= text_.size(); ++parts) {
    const std::size_t end = std::min(text_.find('.', at), text_.size());
    const std::string_view part = text_.substr(at, end - at);
    if (part.empty() || part.size() > 3 || !std::all_of(part.begin(), part.end(), IsDigit) ||
        (part.size() == 3 && part > "255"))
      return false;
    at = end + 1;
  }
  return parts == 4;
}

bool HostName::is_address() const {
  if (is_ipv4()) return true;
  if (text_.find(':') == std::string_view::npos) return false;
  const std::string address(text_.substr(0, text_.find('%')));
  in6_addr parsed{};
  return ::inet_pton(AF_INET6, address.c_str(), &parsed) == 1;
}

std::string HostName::Short() const { return std::string(is_address() ? text_ : text_.substr(0, text_.find('.'))); }

std::string HostName::Kind() const {
  if (is_address()) return "";
  std::string kind = Short();
  std::erase_if(kind, IsDigit);
  return kind;
}

}  // namespace inquest
