// What the user probably meant.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

namespace inquest {

/// The candidate with the fewest edits, if they are few for the length of `word`; ties by order.
std::optional<std::string_view> Nearest(std::string_view word, const std::vector<std::string_view>& candidates);

}  // namespace inquest
