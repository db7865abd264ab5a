// In the form of NCCL 2.28.9's JSON.
#include "tests/replay/nccl/fake_ras.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <thread>

namespace {

std::string Report(const std::string& folder, int nranks) {
  std::string ranks;
  for (int rank = 0; rank < nranks; ++rank) {
    int calls = 0;
    while (std::filesystem::exists(folder + "/call-" + std::to_string(calls) + "." + std::to_string(rank))) ++calls;
    ranks += std::string(rank == 0 ? "" : ",\n") + "        {\"rank\": " + std::to_string(rank) +
             ", \"host\": \"127.0.0.1\", \"pid\": " + std::to_string(7000 + rank) +
             ", \"cuda_dev\": 0, \"nvml_dev\": " + std::to_string(rank) +
             ",\n          \"status\": {\"init_state\": 0, \"async_error\": 0, \"finalize_called\": false, "
             "\"destroy_flag\": false, \"abort_flag\": false},\n"
             "          \"collective_counts\": {\"Broadcast\": 0, \"Reduce\": 0, \"AllGather\": 0, \"ReduceScatter\": "
             "0, \"AllReduce\": " +
             std::to_string(calls) + "}}";
  }
  return "{\n  \"nccl_version\": \"2.28.9+cuda13.0\",\n  \"cuda_runtime_version\": 13000,\n  \"cuda_driver_version\": "
         "13000,\n  \"timestamp\": \"2031-06-11 22:36:40\",\n"
         "  \"communicators_count\": 1,\n  \"communicators\": [\n    {\"hash\": \"0x5c1e77d0a94b8f32\", "
         "\"secondary_hash\": \"0x1:0x1\", \"size\": " +
         std::to_string(nranks) + ", \"ranks_count\": " + std::to_string(nranks) +
         ", \"missing_ranks_count\": 0,\n      \"ranks\": [\n" + ranks + "\n      ]}\n  ]\n}\n";
}

}  // namespace

void ServeRas(const std::string& address, const std::string& folder, int nranks) {
  static int listener = -1;
  if (listener >= 0) return;
  listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int yes = 1;
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
  ::setsockopt(listener, SOL_SOCKET, SO_REUSEPORT, &yes, sizeof(yes));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  place.sin_port = htons(static_cast<std::uint16_t>(std::atoi(address.c_str() + address.rfind(':') + 1)));
  if (::bind(listener, reinterpret_cast<sockaddr*>(&place), sizeof(place)) != 0 || ::listen(listener, 16) != 0) return;
  std::thread([folder, nranks] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    while (true) {
      const int socket = ::accept(listener, nullptr, nullptr);
      if (socket < 0) return;
      char asked[1024];
      if (::recv(socket, asked, sizeof(asked), 0) > 0) {
        const std::string answer = "SERVER PROTOCOL 2\nOK\nOK\n" + Report(folder, nranks);
        (void)::send(socket, answer.data(), answer.size(), MSG_NOSIGNAL);
      }
      ::close(socket);
    }
  }).detach();
}
