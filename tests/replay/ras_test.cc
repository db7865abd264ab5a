// The client of NCCL's RAS, against servers that answer in every way but the right one, and in that.
#include "replay/ras.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <set>
#include <thread>

#include "replay/spawn.h"
#include "tests/catch.h"

namespace inquest {
namespace ras_test {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

void Say(int socket, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::send(socket, text.data(), text.size(), MSG_NOSIGNAL);
    if (put <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(put));
  }
}

/// Takes one connection, reads what is asked, and does what the test says.
class Server {
 public:
  explicit Server(std::function<void(int socket, const std::string& asked)> answer)
      : listener_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    REQUIRE(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size) == 0);
    REQUIRE(::listen(listener_.get(), 4) == 0);
    REQUIRE(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, answer = std::move(answer)] {
      const OwnedFd socket(::accept(listener_.get(), nullptr, nullptr));
      if (!socket.is_open()) return;
      std::string asked(4096, '\0');
      asked.resize(static_cast<std::size_t>(std::max<ssize_t>(::recv(socket.get(), asked.data(), asked.size(), 0), 0)));
      answer(socket.get(), asked);
    });
  }
  ~Server() {
    ::shutdown(listener_.get(), SHUT_RDWR);
    thread_.join();
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  OwnedFd listener_;
  int port_ = 0;
  std::thread thread_;
};

RasAnswer Ask(const Server& server, std::chrono::milliseconds limit = 2000ms) {
  return AskRas({{7, server.address()}}, limit).at(7);
}

TEST_CASE("ras: JSON where NCCL has it, text where it has not", "[unit][replay]") {
  Server fresh([](int socket, const std::string& asked) {
    if (asked == "CLIENT PROTOCOL 2\nTIMEOUT 1\nSET FORMAT json\nVERBOSE STATUS\n")
      Say(socket, "SERVER PROTOCOL 2\nOK\nOK\n{\"communicators\": []}\n");
  });
  const RasAnswer json = Ask(fresh);
  CHECK(json.error == "");
  CHECK(json.is_json);
  CHECK(json.text == "{\"communicators\": []}\n");
  Server old([](int socket, const std::string&) {
    Say(socket,
        "SERVER PROTOCOL 2\nOK\nERROR: Unknown command SET FORMAT json\nNCCL version 2.24.3 compiled with CUDA 12.8\n");
  });
  const RasAnswer text = Ask(old);
  CHECK(text.error == "");
  CHECK_FALSE(text.is_json);
  CHECK(text.text == "NCCL version 2.24.3 compiled with CUDA 12.8\n");
}

TEST_CASE("ras: an answer in pieces is one, and one that does not end in time is kept and said", "[unit][replay]") {
  Server slow([](int socket, const std::string&) {
    for (const char letter : std::string_view("SERVER PROTOCOL 2\nOK\nOK\n{}")) {
      Say(socket, {&letter, 1});
      std::this_thread::sleep_for(5ms);
    }
  });
  CHECK(Ask(slow).text == "{}");
  Server late([](int socket, const std::string&) {
    Say(socket, "SERVER PROTOCOL 2\nOK\nERROR: Unknown command\nJob summary\n");
    std::this_thread::sleep_for(600ms);
  });
  const RasAnswer answer = Ask(late, 200ms);
  CHECK(answer.text == "Job summary\n");
  CHECK(answer.error == "no end of its answer within 0.2 s");
}

TEST_CASE("ras: a server that never answers, closes, or is none costs no more than the limit", "[unit][replay]") {
  Server silent([](int, const std::string&) { std::this_thread::sleep_for(700ms); });
  Server closes([](int, const std::string&) {});
  Server garbage([](int socket, const std::string&) {
    Say(socket, "HTTP/1.1 400 Bad Request\r\n\r\n");
    std::this_thread::sleep_for(700ms);
  });
  Server stops([](int socket, const std::string&) { Say(socket, "SERVER PROTOCOL 2\nOK\n"); });
  const auto begin = Clock::now();
  const auto answers = AskRas({{0, silent.address()},
                               {1, closes.address()},
                               {2, garbage.address()},
                               {3, "127.0.0.1:1"},
                               {4, "example.org:28028"},
                               {5, "nonsense"},
                               {6, stops.address()}},
                              300ms);
  CHECK(Clock::now() - begin < 2s);
  const char* errors[] = {"no answer within 0.3 s",  "without a word",          "not NCCL's RAS",   "refused",
                          "no address of this host", "no address of this host", "before its report"};
  REQUIRE(answers.size() == std::size(errors));
  for (const auto& [key, answer] : answers) {
    CAPTURE(key, answer.error);
    CHECK(answer.text.empty());
    CHECK(answer.error.find(errors[key]) != std::string::npos);
  }
}

TEST_CASE("ras: an endless answer is cut", "[unit][replay]") {
  Server endless([](int socket, const std::string&) {
    Say(socket, "SERVER PROTOCOL 2\nOK\nOK\n");
    const std::string line(1 << 20, 'x');
    for (int i = 0; i < 8; ++i) Say(socket, line);
  });
  const RasAnswer answer = Ask(endless, 20s);
  CHECK(answer.error == "longer than 4 MiB");
  CHECK(answer.text.size() < (4U << 20U));
  CHECK(answer.text.size() > (3U << 20U));
}

TEST_CASE("ras: free ports are free, and differ", "[unit][replay]") {
  const std::vector<int> ports = FreePorts(64);
  REQUIRE(ports.size() == 64);
  CHECK(std::set<int>(ports.begin(), ports.end()).size() == 64);
  const Server taken([](int, const std::string&) {});
  for (const int port : ports) CHECK(taken.address() != "127.0.0.1:" + std::to_string(port));
}

}  // namespace ras_test
}  // namespace inquest
