// Asks NCCL's RAS for its account of a running job, in its own text protocol (2.24 and later).
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

namespace inquest {

/// Of one address.
struct RasAnswer {
  std::string text;      ///< the report; empty: none came
  bool is_json = false;  ///< NCCL 2.28.7 and later; else text
  std::string error;     ///< why there is none, or why it ends early; empty: it is whole
};

/// All at once, `limit` in all. `addresses`: `127.0.0.1:28028`, `[::1]:28028`, `localhost:28028`; another host's name
/// is refused, since looking it up may take longer than we have. By the same keys.
std::map<int, RasAnswer> AskRas(const std::map<int, std::string>& addresses, std::chrono::milliseconds limit);

/// Ports of 127.0.0.1 that nobody listens on, below those that the kernel hands out by itself, so that they stay free
/// while ranks open sockets. Fewer where there are not as many.
std::vector<int> FreePorts(std::size_t count);

}  // namespace inquest
