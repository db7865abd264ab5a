// What the NVIDIA driver itself says that a GPU needs: Xid 154, from driver 570 on.
#pragma once

#include <string_view>
#include <vector>

#include "rules/rule_book.h"

namespace inquest {

/// Its number. It sums up another Xid of the same GPU.
inline constexpr int kRecoveryAction = 154;

/// The needs that `GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)` asks for. Empty: none, or
/// in words that are not known.
std::vector<ErrorCode::Need> RecoveryAsked(std::string_view line);

}  // namespace inquest
