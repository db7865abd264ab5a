// What of an environment may leave the node.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace inquest {

/// `NAME=value` lines, sorted: variables of the job's own libraries and launcher, with what could be a secret masked.
/// All others are only counted.
std::string PublicEnvironment(std::span<const std::string_view> entries);

}  // namespace inquest
