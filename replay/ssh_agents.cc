// One process a host.
#include "replay/ssh_agents.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>

namespace inquest {
namespace {

constexpr std::size_t kSshOutputBytes = 4096;
constexpr std::chrono::milliseconds kPatience{2000};

/// Its last lines as one.
std::string EndOf(const std::string& output) {
  std::string text = output.size() > 400 ? output.substr(output.size() - 400) : output;
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  for (char& c : text) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return text;
}

}  // namespace

Result<SshAgents> SshAgents::Start(const std::vector<SshCommand>& commands, const std::vector<std::string>& env,
                                   const std::string& token) {
  SshAgents agents;
  for (const SshCommand& command : commands) {
    Result<WorkerProcess> process = SpawnReading(command.words, env);
    if (!process) return Error{process.error().message, "", process.error().where};
    const std::string line = token + "\n";
    (void)::send(process->socket.get(), line.data(), line.size(), MSG_NOSIGNAL);
    agents.started_.push_back({command.host, std::move(*process), ""});
  }
  return agents;
}

void SshAgents::Read(Started& one) {
  std::array<char, 4096> piece;
  while (one.process.output.is_open()) {
    const ssize_t got = ::read(one.process.output.get(), piece.data(), piece.size());
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return one.process.output.Close();
    one.output.append(piece.data(), static_cast<std::size_t>(got));
    if (one.output.size() > kSshOutputBytes) one.output.erase(0, one.output.size() - kSshOutputBytes);
  }
}

std::string SshAgents::WhyHopeless() {
  for (Started& one : started_) {
    Read(one);
    pollfd ended{one.process.pidfd.get(), POLLIN, 0};
    if (::poll(&ended, 1, 0) <= 0) continue;
    Read(one);
    const std::string words = EndOf(one.output);
    return fmt::format("the agent on {} did not start{}{}", one.host, words.empty() ? "" : ": ", words);
  }
  return "";
}

SshAgents::~SshAgents() {
  for (Started& one : started_) one.process.socket.Close();
  const auto last = std::chrono::steady_clock::now() + kPatience;
  for (Started& one : started_) {
    // What it prints must not block its end.
    for (bool ended = false; !ended && std::chrono::steady_clock::now() < last;) {
      Read(one);
      pollfd handle{one.process.pidfd.get(), POLLIN, 0};
      ended = ::poll(&handle, 1, 20) > 0;
    }
    ::kill(-one.process.pid, SIGKILL);
    ::waitpid(one.process.pid, nullptr, 0);
  }
}

}  // namespace inquest
