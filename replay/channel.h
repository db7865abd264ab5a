// A connection between coordinator and agent: proof of the job token, then framed messages that cannot be forged,
// repeated or reordered.
//
// Handshake, C the coordinator and A the agent; all lengths are fixed:
//   C -> A   "inquest replay 1", nonce of C (32 bytes)
//   A -> C   "inquest replay 1", nonce of A, HMAC-SHA256(token, "agent proof" nonces)
//   C -> A   HMAC-SHA256(token, "coordinator proof" nonces)
// Frame: length of the payload (4 bytes, big endian), payload, HMAC-SHA256(key, number of the frame (8 bytes) length
// payload); each direction has a key of its own, HMAC-SHA256(token, its name nonces). Nothing is encrypted.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "replay/spawn.h"

namespace inquest {

inline constexpr std::size_t kFrameBytes = 4U << 20U;    ///< of a payload, at most
inline constexpr std::size_t kUnsentBytes = 64U << 20U;  ///< a peer that lets more than this pile up is cut off

enum class Side : std::uint8_t { kCoordinator, kAgent };

/// Makes frames, numbered from 0.
class FrameWriter {
 public:
  explicit FrameWriter(std::string key) : key_(std::move(key)) {}
  std::string Frame(std::string_view payload);

 private:
  std::string key_;
  std::uint64_t number_ = 0;
};

/// Takes frames apart, whatever pieces they come in. Holds no more than one frame and a read.
class FrameReader {
 public:
  explicit FrameReader(std::string key) : key_(std::move(key)) {}
  void Add(std::string_view bytes) { bytes_.append(bytes); }
  /// The next payload; nullopt: not whole yet, or broken.
  std::optional<std::string> Next();
  bool is_broken() const { return broken_; }

 private:
  std::string key_, bytes_;
  std::uint64_t number_ = 0;
  bool broken_ = false;
};

/// One side's part of the handshake, over bytes.
class Handshake {
 public:
  enum class State : std::uint8_t {
    kGoing,
    kDone,
    kStranger,
    kRefused
  };  ///< kStranger: no inquest of this version; kRefused: another token
  Handshake(Side side, std::string token, std::string nonce);
  /// Takes what it needs from the front of `bytes`; what it answers is appended to `answer`.
  State Take(std::string& bytes, std::string& answer);
  /// To be sent at once; empty for the agent.
  std::string Opening() const;
  /// Whether the agent's proof is on its way.
  bool has_proved() const { return proved_; }
  std::string KeyFrom(Side side) const;

 private:
  std::string Mac(std::string_view what) const;
  Side side_;
  std::string token_, own_nonce_, nonces_;
  bool proved_ = false;
};

/// Owns the socket; never blocks.
class Channel {
 public:
  enum class State : std::uint8_t { kGreeting, kOpen, kClosed };
  Channel(OwnedFd socket, Side side, std::string token);
  int fd() const { return socket_.get(); }
  State state() const { return state_; }
  /// Why it is closed: `the connection was closed`, `the tokens differ`.
  const std::string& why_closed() const { return why_; }
  bool refused() const { return refused_; }
  bool has_unsent() const { return !unsent_.empty(); }
  std::size_t unsent() const { return unsent_.size(); }
  /// Reads and writes what it can; the payloads that arrived whole. Nothing before kOpen.
  std::vector<std::string> Work();
  void Send(std::string_view payload);
  void Close(std::string why);
  /// Writes what is left, for at most so long.
  void Drain(std::chrono::milliseconds limit);

 private:
  void Flush();
  void Greet(std::string& bytes);
  OwnedFd socket_;
  State state_ = State::kGreeting;
  Handshake handshake_;
  std::optional<FrameWriter> writer_;
  std::optional<FrameReader> reader_;
  std::string greeting_, unsent_, why_;
  bool refused_ = false;
};

/// No delay, and the kernel asks an idle peer for a sign of life: one that is cut off is given up within about four
/// seconds.
void TuneSocket(int fd);

}  // namespace inquest
