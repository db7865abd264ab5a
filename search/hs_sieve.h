// Finds the lines that rules or formats ask for, in one pass over a block. With packed_sieve.h the only door to libhs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "search/sieve.h"

namespace inquest {

/// What a sieve is to look for; its views are looked at while it is made, and no longer.
struct Sought {
  struct Expression {
    std::string name;  ///< the same in two sets: the one may replace the other
    std::string_view text;
    std::string_view where;       ///< its file, for errors
    bool in_sieve = true;         ///< else it only has its number
    bool keep_last_only = false;  ///< Sieve::keep_last_only
  };
  std::vector<Expression> expressions;      ///< a hit's id is the place here
  std::span<const std::string_view> marks;  ///< literals; their ids follow those of the expressions
};

Result<std::unique_ptr<Sieve>> CompileSieve(const Sought& sought);

/// The same as bytes for embedding, and back: the bytes, which begin at a multiple of 64, must live as long as the
/// sieve. Falls back to compiling where the bytes were made for another libhs.
Result<std::string> PackSieve(const Sought& sought);
Result<std::unique_ptr<Sieve>> LoadSieve(std::string_view bytes, const Sought& sought);

/// The sieve of `sought`, which has the expressions of `base` but for some that are replaced, and others: only what
/// `bytes`, the sieve of `base`, does not look for is compiled.
Result<std::unique_ptr<Sieve>> ExtendSieve(std::string_view bytes, const Sought& base, const Sought& sought);

}  // namespace inquest
