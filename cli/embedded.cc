// The rules, the sieve's database and the schemas that embedded_rules.S carries.
#include "cli/schemas.h"
#include "rules/rule_book.h"

extern "C" {
extern const char inquest_rules_begin[];
extern const char inquest_rules_end[];
extern const char inquest_sieve_begin[];
extern const char inquest_sieve_end[];
extern const char inquest_verdict_schema_begin[];
extern const char inquest_verdict_schema_end[];
extern const char inquest_events_schema_begin[];
extern const char inquest_events_schema_end[];
extern const char inquest_triage_schema_begin[];
extern const char inquest_triage_schema_end[];
extern const char inquest_evidence_schema_begin[];
extern const char inquest_evidence_schema_end[];
extern const char inquest_replay_schema_begin[];
extern const char inquest_replay_schema_end[];
}

namespace inquest {

std::string_view EmbeddedRules() { return {inquest_rules_begin, inquest_rules_end}; }
std::string_view EmbeddedSieve() { return {inquest_sieve_begin, inquest_sieve_end}; }
std::span<const std::pair<std::string_view, std::string_view>> Schemas() {
  static const std::pair<std::string_view, std::string_view> kSchemas[] = {
      {"verdict", {inquest_verdict_schema_begin, inquest_verdict_schema_end}},
      {"events", {inquest_events_schema_begin, inquest_events_schema_end}},
      {"triage", {inquest_triage_schema_begin, inquest_triage_schema_end}},
      {"evidence", {inquest_evidence_schema_begin, inquest_evidence_schema_end}},
      {"replay", {inquest_replay_schema_begin, inquest_replay_schema_end}}};
  return kSchemas;
}

}  // namespace inquest
