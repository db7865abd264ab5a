// What the reports for people say in the same words: sizes, whom the verdict blames, whether to start again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rules/verdict.h"

namespace inquest {

/// `95 %`.
std::string Percent(double confidence);
/// What a claim says before it explains itself: up to its first semicolon.
std::string FirstClause(const std::string& claim);
/// `4.2 MiB`.
std::string Size(std::uint64_t bytes);

/// Culprits that share a line: ranks of one host, or processes on one device, for one reason.
struct Suspects {
  const Culprit* first = nullptr;
  std::vector<int> ranks;
  std::vector<std::int64_t> pids;
  std::size_t count = 0;
};
std::vector<Suspects> FoldCulprits(const std::vector<Culprit>& culprits);
/// `rank 28 on node07 (pid 2113, GPU 4, 0000:4e:00.0)`, `ranks 0-7 on node07`, `pids 41, 42, GPU 0`.
std::string Who(const Suspects& suspects);

/// Whether to start the job again; empty: there is nothing to say.
std::string_view RetryInWords(const Verdict& verdict);

/// What stands in front of a command: where it is typed, and as whom; or what it is, if nothing to type.
std::string PromptOf(const Remedy& remedy);

/// Running the collective alone, as one more thing to do; nullopt where `command` is empty or it says nothing.
std::optional<Remedy> ReplayRemedy(const Verdict& verdict, const std::string& command);

}  // namespace inquest
