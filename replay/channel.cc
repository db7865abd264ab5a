// Bytes in, payloads out; what arrives is never trusted, and nothing is kept of it before its sender has proved the
// token.
#include "replay/channel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "replay/secret.h"

namespace inquest {
namespace {

constexpr std::string_view kMagic = "inquest replay 1";
constexpr std::size_t kOpeningBytes = kMagic.size() + kDigestBytes, kProofBytes = kOpeningBytes + kDigestBytes;
constexpr std::size_t kLengthBytes = 4;

template <class Number>
std::string BigEndian(Number number) {
  std::string bytes;
  for (int shift = static_cast<int>(sizeof(Number)) * 8 - 8; shift >= 0; shift -= 8)
    bytes += static_cast<char>(number >> shift & 255U);
  return bytes;
}

std::string FrameMac(std::string_view key, std::uint64_t number, std::string_view length_and_payload) {
  std::string text = BigEndian(number);
  text += length_and_payload;
  return Hmac(key, text);
}

}  // namespace

// ---- frames ---------------------------------------------------------------------------------------------------------

std::string FrameWriter::Frame(std::string_view payload) {
  std::string frame = BigEndian(static_cast<std::uint32_t>(payload.size()));
  frame += payload;
  frame += FrameMac(key_, number_++, frame);
  return frame;
}

std::optional<std::string> FrameReader::Next() {
  if (broken_ || bytes_.size() < kLengthBytes) return std::nullopt;
  std::size_t length = 0;
  for (std::size_t i = 0; i < kLengthBytes; ++i) length = length << 8U | static_cast<unsigned char>(bytes_[i]);
  if (length > kFrameBytes) {
    broken_ = true;
    return std::nullopt;
  }
  if (bytes_.size() < kLengthBytes + length + kDigestBytes) return std::nullopt;
  const std::string_view covered = std::string_view(bytes_).substr(0, kLengthBytes + length);
  broken_ =
      !SameBytes(FrameMac(key_, number_++, covered), std::string_view(bytes_).substr(covered.size(), kDigestBytes));
  if (broken_) return std::nullopt;
  std::string payload(covered.substr(kLengthBytes));
  bytes_.erase(0, covered.size() + kDigestBytes);
  return payload;
}

// ---- handshake ------------------------------------------------------------------------------------------------------

Handshake::Handshake(Side side, std::string token, std::string nonce)
    : side_(side), token_(std::move(token)), own_nonce_(std::move(nonce)) {}

std::string Handshake::Mac(std::string_view what) const {
  std::string text(what);
  text += '\0';
  return Hmac(token_, text + nonces_);
}

std::string Handshake::KeyFrom(Side side) const {
  return Mac(side == Side::kCoordinator ? "key from coordinator" : "key from agent");
}

std::string Handshake::Opening() const { return side_ == Side::kCoordinator ? std::string(kMagic) + own_nonce_ : ""; }

Handshake::State Handshake::Take(std::string& bytes, std::string& answer) {
  const std::size_t known = std::min(bytes.size(), kMagic.size());
  if (!proved_ && std::string_view(bytes).substr(0, known) != kMagic.substr(0, known)) return State::kStranger;
  if (side_ == Side::kCoordinator) {
    if (bytes.size() < kProofBytes) return State::kGoing;
    nonces_ = own_nonce_ + bytes.substr(kMagic.size(), kDigestBytes);
    if (!SameBytes(Mac("agent proof"), std::string_view(bytes).substr(kOpeningBytes, kDigestBytes)))
      return State::kRefused;
    bytes.erase(0, kProofBytes);
    answer += Mac("coordinator proof");
    return State::kDone;
  }
  if (!proved_) {
    if (bytes.size() < kOpeningBytes) return State::kGoing;
    nonces_ = bytes.substr(kMagic.size(), kDigestBytes) + own_nonce_;
    bytes.erase(0, kOpeningBytes);
    answer += std::string(kMagic) + own_nonce_ + Mac("agent proof");
    proved_ = true;
  }
  if (bytes.size() < kDigestBytes) return State::kGoing;
  if (!SameBytes(Mac("coordinator proof"), std::string_view(bytes).substr(0, kDigestBytes))) return State::kRefused;
  bytes.erase(0, kDigestBytes);
  return State::kDone;
}

// ---- the connection -------------------------------------------------------------------------------------------------

void TuneSocket(int fd) {
  const auto set = [&](int level, int name, int value) { ::setsockopt(fd, level, name, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 4000);
}

Channel::Channel(OwnedFd socket, Side side, std::string token)
    : socket_(std::move(socket)), handshake_(side, std::move(token), RandomBytes()) {
  TuneSocket(socket_.get());
  unsent_ = handshake_.Opening();
  Flush();
}

void Channel::Close(std::string why) {
  if (state_ == State::kClosed) return;
  state_ = State::kClosed;
  why_ = std::move(why);
  socket_.Close();
}

void Channel::Greet(std::string& bytes) {
  switch (handshake_.Take(bytes, unsent_)) {
    case Handshake::State::kGoing:
      return;
    case Handshake::State::kStranger:
      return Close("the other end is no inquest replay of this version");
    case Handshake::State::kRefused:
      refused_ = true;
      return Close("the job tokens differ");
    case Handshake::State::kDone:
      break;
  }
  const bool coordinates = !handshake_.Opening().empty();
  writer_.emplace(handshake_.KeyFrom(coordinates ? Side::kCoordinator : Side::kAgent));
  reader_.emplace(handshake_.KeyFrom(coordinates ? Side::kAgent : Side::kCoordinator));
  state_ = State::kOpen;
  reader_->Add(bytes);
  bytes.clear();
}

std::vector<std::string> Channel::Work() {
  std::vector<std::string> payloads;
  constexpr std::size_t kMostReads = 64;  // others want their turn too
  std::array<char, 64 * 1024> piece;
  for (std::size_t reads = 0; state_ != State::kClosed && reads < kMostReads; ++reads) {
    // A stranger gets no more memory than a greeting takes.
    const std::size_t room =
        state_ == State::kOpen ? piece.size() : kProofBytes - std::min(greeting_.size(), kProofBytes - 1);
    const ssize_t got = ::recv(socket_.get(), piece.data(), room, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) break;
    if (got <= 0) {
      refused_ = state_ == State::kGreeting && handshake_.has_proved();
      Close(refused_   ? "the coordinator refused the job token"
            : got == 0 ? "its connection was closed"
                       : fmt::format("its connection failed: {}", std::strerror(errno)));
      break;
    }
    const std::string_view bytes(piece.data(), static_cast<std::size_t>(got));
    if (state_ == State::kOpen) {
      reader_->Add(bytes);
    } else {
      greeting_ += bytes;
      Greet(greeting_);
    }
    if (!reader_) continue;
    while (auto payload = reader_->Next()) payloads.push_back(std::move(*payload));
    if (reader_->is_broken()) Close("what came over its connection is not authentic");
  }
  Flush();
  return payloads;
}

void Channel::Send(std::string_view payload) {
  if (state_ != State::kOpen || payload.size() > kFrameBytes) return;
  unsent_ += writer_->Frame(payload);
  Flush();
  if (unsent_.size() > kUnsentBytes) Close("it takes nothing that is sent to it");
}

void Channel::Flush() {
  std::size_t sent = 0;
  while (state_ != State::kClosed && sent < unsent_.size()) {
    const ssize_t took =
        ::send(socket_.get(), unsent_.data() + sent, unsent_.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (took < 0 && errno == EINTR) continue;
    if (took < 0 && errno != EAGAIN) break;  // the next read says why
    if (took < 0) break;
    sent += static_cast<std::size_t>(took);
  }
  unsent_.erase(0, sent);
}

void Channel::Drain(std::chrono::milliseconds limit) {
  const auto last = std::chrono::steady_clock::now() + limit;
  while (state_ != State::kClosed && !unsent_.empty() && std::chrono::steady_clock::now() < last) {
    pollfd ready{socket_.get(), POLLOUT, 0};
    ::poll(&ready, 1, 50);
    Flush();
  }
}

}  // namespace inquest
