// The rules and the sieve's database that embedded_rules.S carries.
#include "rules/rule_book.h"

extern "C" {
extern const char inquest_rules_begin[];
extern const char inquest_rules_end[];
extern const char inquest_sieve_begin[];
extern const char inquest_sieve_end[];
}

namespace inquest {

std::string_view EmbeddedRules() { return {inquest_rules_begin, inquest_rules_end}; }
std::string_view EmbeddedSieve() { return {inquest_sieve_begin, inquest_sieve_end}; }

}  // namespace inquest
