// What every match of an expression must contain, so that lines without it need not be searched.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace inquest {

/// Literals, folded (see rarity.h) and of kShortestLiteral bytes or more: every match of `expression` within one line
/// contains one of them at least. Of several such sets, the one that is cheapest to look for. Empty where none is
/// known: the expression has no such set, or it uses syntax that is not understood here.
std::vector<std::string> CoverOf(std::string_view expression);

/// Drops what need not be looked for because another literal of the set stands inside it. Sorted, each once.
std::vector<std::string> WithoutImplied(std::vector<std::string> literals);

}  // namespace inquest
