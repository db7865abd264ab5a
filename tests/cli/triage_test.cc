// Many jobs at once: which files are of which job, and what the table and the documents say of them.
#include <nlohmann/json.hpp>

#include "cli/triage_folders.h"
#include "report/triage.h"
#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace triage_test {

using Names = std::vector<std::string>;

Names JobsIn(const std::vector<std::string>& files) {
  std::vector<SynthFile> written;
  for (const std::string& name : files) written.push_back({name, "x\n"});
  const JobFolder folder(written);
  const auto jobs = FindJobs({folder.path()});
  REQUIRE(jobs);
  Names out;
  for (const JobInputs& job : *jobs) {
    std::string row = job.name == folder.path() ? "." : job.name;
    if (job.paths.size() > 1) row += " " + std::to_string(job.paths.size());
    out.push_back(row);
  }
  return out;
}

TEST_CASE("triage: which files are of which job", "[triage]") {
  CHECK(JobsIn({"a/rank0.log", "a/deep/rank1.log", "b/job.log"}) == Names{"a", "b"});
  CHECK(JobsIn({"rank0.log", "rank1.log", "dmesg.txt"}) == Names{"."});
  CHECK(JobsIn({"slurm-1.out", "slurm-2.out"}) == Names{"slurm-1.out", "slurm-2.out"});
  CHECK(JobsIn({"slurm-1.out", "slurm-1.err", "slurm-2.out"}) == Names{"slurm-1.out 2", "slurm-2.out"});
  CHECK(JobsIn({"slurm-1_0.out", "slurm-1_1.out"}) == Names{"slurm-1_0.out", "slurm-1_1.out"});
  CHECK(JobsIn({"train.o1234", "train.e1234", "train.o1235"}) == Names{"train.o1234 2", "train.o1235"});
  CHECK(JobsIn({"slurm-1.out", "dmesg.txt"}) == Names{"."});
  CHECK(JobsIn({"a/job.log", "b.log", "c.out", "c.err"}) == Names{"a", "b.log", "c.out 2"});
  CHECK(JobsIn({"a/slurm-1.out", "a/slurm-2.out", ".git/x"}) == Names{"a"});
  CHECK_FALSE(FindJobs({"/nowhere/at/all"}));
}

TriagedJob Judged(const std::string& name, const std::string& text) {
  ::inquest::Judged judged = JudgeText(text);
  return {.name = name,
          .paths = {name},
          .problem = {},
          .verdict = WithoutProof(std::move(judged.verdict)),
          .hosts = judged.timeline.hosts,
          .when = {}};
}

std::string OutOfMemory(int rank) {
  return "node07:41:41 [0] NCCL INFO comm 0x1 rank " + std::to_string(rank) +
         " nranks 8 cudaDev 0 busId 4e000 - Init COMPLETE\n[rank" + std::to_string(rank) +
         "]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";
}

std::vector<TriagedJob> Jobs() {
  std::vector<TriagedJob> jobs = {Judged("a\x1b[31m\n::x", OutOfMemory(1)), Judged("b", OutOfMemory(3)),
                                  Judged("c", "step 1 loss 1.1\n")};
  jobs.push_back({.name = "d", .paths = {"d"}, .problem = "it is empty", .verdict = {}, .hosts = {}, .when = {}});
  return jobs;
}

TEST_CASE("triage: the table groups jobs by fingerprint and by host", "[triage]") {
  const std::vector<TriagedJob> jobs = Jobs();
  const std::string text = RenderTriage(jobs, {});
  CAPTURE(text);
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  CHECK(has("2 jobs, same fingerprint " + jobs[1].verdict.fingerprint + ": cuda-oom: "));
  CHECK(has("node07 is the culprit of 2 jobs\n"));
  CHECK(has("d was not read:\n  it is empty\n"));
  CHECK(has("\n4 jobs: 2 failed, 0 healthy, 1 undecided, 1 not read\n"));
  CHECK_FALSE(has("\x1b"));
  CHECK_FALSE(has("\n::x"));
}

TEST_CASE("triage: a document, and a line a job", "[triage]") {
  const std::vector<TriagedJob> jobs = Jobs();
  std::string text, lines;
  RenderTriageJson(jobs, "1", [&](std::string_view piece) { text += piece; });
  RenderTriageLines(jobs, "1", [&](std::string_view piece) { lines += piece; });
  const auto document = nlohmann::json::parse(text);
  CHECK(document["counts"]["failed"] == 2);
  CHECK(document["hosts"][0]["jobs"].size() == 2);
  CHECK(document["fingerprints"][0]["jobs"].size() == 2);
  CHECK(document["jobs"][3]["outcome"] == "unread");
  CHECK(document["jobs"][3]["cause"] == nullptr);
  CHECK(std::count(lines.begin(), lines.end(), '\n') == 4);
  for (std::size_t i = 0, at = 0; i < 4; ++i) {
    const std::size_t end = lines.find('\n', at);
    auto line = nlohmann::json::parse(lines.substr(at, end - at));
    line.erase("schema");
    line.erase("version");
    CHECK(line == document["jobs"][i]);
    at = end + 1;
  }
}

}  // namespace triage_test
}  // namespace inquest
