// Where a block's lines end and where its bytes are damaged, 32 bytes at a time.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace inquest {

struct Structure {
  std::vector<std::uint32_t> ends;  ///< offsets of '\n' and '\r'
  std::vector<std::uint32_t> odd;   ///< offsets of control bytes that no text has: NUL and its like, not tab, ESC, BS, FF
};

/// Overwrites `structure`, whose capacity is reused from block to block.
void FindStructure(std::string_view block, Structure& structure);

}  // namespace inquest
