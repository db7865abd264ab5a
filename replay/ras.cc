// Protocol: lines; read in src/ras/client_support.cc of NCCL, 2.24 to 2.30
//   CLIENT PROTOCOL 2   -> SERVER PROTOCOL 2
//   TIMEOUT 1           -> OK
//   SET FORMAT json     -> OK, or `ERROR: Unknown command` before 2.28.7, which then goes on with text
//   VERBOSE STATUS      -> the report, then the connection's end
// NCCL takes several commands of one packet, so all are sent at once and every answer is one stream.
#include "replay/ras.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string_view>

#include "replay/spawn.h"

namespace inquest {
namespace {

using std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kQuestion = "CLIENT PROTOCOL 2\nTIMEOUT 1\nSET FORMAT json\nVERBOSE STATUS\n";
constexpr std::string_view kGreeting = "SERVER PROTOCOL ";
constexpr std::size_t kLongestAnswer = 4U << 20U, kLinesBefore = 3;

/// One connection and what came over it.
struct Conversation {
  int key = 0;
  OwnedFd socket;
  std::size_t sent = 0;
  std::string received;
  std::string error;
  bool is_over = false;

  void End(std::string why) {
    error = std::move(why);
    is_over = true;
    socket.Close();
  }
};

struct FreeAddresses {
  void operator()(addrinfo* found) const { ::freeaddrinfo(found); }
};

/// Numbers, and the one name that is looked up without a network.
std::unique_ptr<addrinfo, FreeAddresses> Resolve(const std::string& address) {
  const std::size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon + 1 == address.size()) return nullptr;
  std::string host = address.substr(0, colon);
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV | (host == "localhost" ? 0 : AI_NUMERICHOST);
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), address.c_str() + colon + 1, &hints, &found) != 0) return nullptr;
  return std::unique_ptr<addrinfo, FreeAddresses>(found);
}

/// One for each address that the name stands for.
void Dial(int key, const std::string& address, std::vector<Conversation>& conversations) {
  const auto found = Resolve(address);
  if (!found) {
    conversations.emplace_back().key = key;
    return conversations.back().End(fmt::format("{} is no address of this host", address));
  }
  for (const addrinfo* one = found.get(); one != nullptr; one = one->ai_next) {
    Conversation& conversation = conversations.emplace_back();
    conversation.key = key;
    conversation.socket = OwnedFd(::socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!conversation.socket.is_open() ||
        (::connect(conversation.socket.get(), one->ai_addr, one->ai_addrlen) != 0 && errno != EINPROGRESS))
      conversation.End(fmt::format("{}: {}", address, std::strerror(errno)));
  }
}

void Speak(Conversation& conversation) {
  const std::string_view rest = kQuestion.substr(conversation.sent);
  const ssize_t put = ::send(conversation.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (put >= 0)
    conversation.sent += static_cast<std::size_t>(put);
  else if (errno != EAGAIN && errno != EINTR)
    conversation.End(std::strerror(errno));
}

void Hear(Conversation& conversation, std::string& buffer) {
  while (!conversation.is_over) {
    const ssize_t got = ::recv(conversation.socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return conversation.End(got == 0 ? "" : std::strerror(errno));
    const std::size_t room = kLongestAnswer - conversation.received.size();
    conversation.received.append(buffer.data(), std::min(room, static_cast<std::size_t>(got)));
    if (static_cast<std::size_t>(got) > room)
      return conversation.End(fmt::format("longer than {} MiB", kLongestAnswer >> 20U));
    const std::string_view head = std::string_view(conversation.received).substr(0, kGreeting.size());
    if (head != kGreeting.substr(0, head.size())) return conversation.End("what listens there is not NCCL's RAS");
  }
}

RasAnswer AnswerOf(Conversation& conversation) {
  RasAnswer answer{.text = "", .is_json = false, .error = std::move(conversation.error)};
  if (!conversation.received.starts_with(kGreeting)) {
    if (answer.error.empty()) answer.error = "it closed the connection without a word";
    return answer;
  }
  std::size_t at = 0;
  for (std::size_t line = 0; line < kLinesBefore; ++line) {
    const std::size_t end = conversation.received.find('\n', at);
    if (end == std::string::npos) {
      if (answer.error.empty()) answer.error = "it closed the connection before its report";
      return answer;
    }
    if (line + 1 == kLinesBefore) answer.is_json = std::string_view(conversation.received).substr(at, end - at) == "OK";
    at = end + 1;
  }
  answer.text = conversation.received.substr(at);
  if (answer.text.empty() && answer.error.empty()) answer.error = "it closed the connection before its report";
  return answer;
}

}  // namespace

std::map<int, RasAnswer> AskRas(const std::map<int, std::string>& addresses, milliseconds limit) {
  const Clock::time_point last = Clock::now() + limit;
  std::vector<Conversation> conversations;
  for (const auto& [key, address] : addresses) Dial(key, address, conversations);
  std::string buffer(64 * 1024, '\0');
  while (true) {
    std::vector<pollfd> ready;
    std::vector<Conversation*> owners;
    for (Conversation& one : conversations) {
      if (one.is_over) continue;
      ready.push_back({one.socket.get(), static_cast<short>(POLLIN | (one.sent < kQuestion.size() ? POLLOUT : 0)), 0});
      owners.push_back(&one);
    }
    const auto left = std::chrono::ceil<milliseconds>(last - Clock::now());
    if (ready.empty() || left <= milliseconds(0)) break;
    if (::poll(ready.data(), ready.size(), static_cast<int>(left.count())) < 0 && errno != EINTR) break;
    for (std::size_t i = 0; i < ready.size(); ++i) {
      if ((ready[i].revents & POLLOUT) != 0) Speak(*owners[i]);
      if (!owners[i]->is_over && (ready[i].revents & ~POLLOUT) != 0) Hear(*owners[i], buffer);
    }
  }
  std::map<int, RasAnswer> answers;
  for (Conversation& one : conversations) {
    if (!one.is_over)
      one.End(fmt::format("no {} within {:.1f} s", one.received.empty() ? "answer" : "end of its answer",
                          std::chrono::duration<double>(limit).count()));
    RasAnswer answer = AnswerOf(one);
    const auto [kept, is_first] = answers.try_emplace(one.key, answer);
    if (!is_first && kept->second.text.size() < answer.text.size()) kept->second = std::move(answer);
  }
  return answers;
}

std::vector<int> FreePorts(std::size_t count) {
  constexpr int kLowest = 10'000;
  int highest = 32'768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> highest;
  if (highest <= kLowest || highest > 65'536) highest = 32'768;
  std::vector<int> ports;
  // From a place of its own for each process, so that two replays of one host do not look at the same ports at the same
  // time.
  const int span = highest - kLowest, first = static_cast<int>(::getpid() * 61 % span);
  for (int i = 0; i < span && ports.size() < count; ++i) {
    const int port = kLowest + (first + i) % span;
    const OwnedFd probe(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (probe.is_open() && ::bind(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0)
      ports.push_back(port);
  }
  return ports;
}

}  // namespace inquest
