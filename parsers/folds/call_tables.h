// What is remembered of calls, so that those which come again are only compared.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "parsers/folds/call_bytes.h"
#include "parsers/folds/calls.h"

namespace inquest {

inline constexpr std::uint32_t kNever = 0;  ///< no block's stamp

// Of words that differ where anything does, mostly; what they do not tell apart is compared. The highest bits depend on
// all.
inline constexpr std::uint64_t kFactors[] = {0x9e3779b97f4a7c15, 0xa0761d6478bd642f, 0x8ebc6af09c88c6e3,
                                             0x589965cc75374cc3};
inline std::uint32_t HighBits(std::uint64_t mixed) { return static_cast<std::uint32_t>(mixed >> 32); }

/// Its name, the last digits of the count, datatype, op and root, and the size.
inline std::uint32_t HashOfHead(std::string_view text) {
  const char* end = text.data() + text.size();
  return HighBits((Load64(text.data()) + text.size()) * kFactors[0] + Load64(end - 31) * kFactors[1] +
                  Load64(end - 16) * kFactors[2] + Load64(end - 8) * kFactors[3]);
}

struct alignas(64) CallFolder::Writer {
  std::string host;
  std::int64_t pid = 0;
  std::uint32_t process = 0, stamp = kNever;  ///< its number in the batch of that stamp
  std::uint32_t last_piece = 0;
};
struct CallFolder::Thread {
  std::uint32_t writer = 0, size = 0;  ///< of its prefix; 0: its calls are not remembered
};
struct alignas(64) CallFolder::Head {
  std::uint32_t descriptor = 0;
  std::uint32_t number = 0, stamp = kNever;  ///< of the descriptor, in the batch of that stamp
  std::uint8_t size = 0, digits_at = 0, digits = 0;
  alignas(64) char text[kMostHead] = {};  ///< 0 where calls differ
};
struct alignas(64) CallFolder::Speaker {
  std::uint32_t writer = 0, comm = 0;
  std::uint32_t number = 0, stamp = kNever;  ///< of the communicator, in the batch of that stamp
  std::uint32_t last_piece = 0;
  std::uint8_t prefix_size = 0, size = 0;
  alignas(64) char text[kMostTail] = {};
  char prefix[kMostPrefix] = {};
};
struct CallFolder::Comm {
  CallBatch::Comm what;                      ///< its process is a writer of this folder
  std::uint32_t number = 0, stamp = kNever;  ///< in the batch of that stamp
};
struct CallFolder::Descriptor {
  CallDescriptor what;
  std::uint32_t number = 0, stamp = kNever;  ///< in the batch of that stamp
};

}  // namespace inquest
