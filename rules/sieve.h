// Finds the lines that rules or formats ask for, in one pass over a block. With packed_sieve.h the only door to libhs.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/result.h"
#include "parsers/sieve.h"
#include "rules/rule_book.h"

namespace inquest {

/// Compiles all rules but those of kind "training" phase, and the marks. Ids: a rule's number in the book; a mark's is
/// first_mark_id() plus its place in `marks`.
Result<std::unique_ptr<Sieve>> CompileSieve(const RuleBook& book, std::span<const std::string_view> marks);

/// The same as bytes for embedding, and back: the bytes, which begin at a multiple of 64, must live as long as the sieve.
/// Falls back to compiling where the bytes were made for another libhs.
Result<std::string> PackSieve(const RuleBook& book, std::span<const std::string_view> marks);
Result<std::unique_ptr<Sieve>> LoadSieve(std::string_view bytes, const RuleBook& book, std::span<const std::string_view> marks);

/// The sieve of `book`, which holds the rules of `base` but for some that are replaced, and others: only what `bytes`, the
/// sieve of `base`, does not look for is compiled.
Result<std::unique_ptr<Sieve>> ExtendSieve(std::string_view bytes, const RuleBook& base, const RuleBook& book, std::span<const std::string_view> marks);

}  // namespace inquest
