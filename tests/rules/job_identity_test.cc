// Which job it is: ids by lines, names of files and pods; when it ran; none where nothing or too much is said.
#include <fmt/format.h>

#include "core/time.h"
#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace job_identity_test {

const std::string kOom = "[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n";

std::string InWords(const JobTold& job) {
  return job.id ? fmt::format("{} {} ({})", job.system, job.id->value, Name(job.id->basis)) : "none";
}

TEST_CASE("identity: ids by lines", "[identity]") {
  struct Row {
    std::string text, id, name;
  };
  const Row rows[] = {
      {"slurmstepd: error: *** JOB 88123 ON node07 CANCELLED AT 2031-04-05T06:07:08 DUE TO TIME LIMIT ***\n",
       "slurm 88123 (observed)", ""},
      {"slurmstepd: error: *** STEP 88123.0 ON node07 CANCELLED AT 2031-04-05T06:07:08 ***\n", "slurm 88123 (observed)",
       ""},
      {"SLURM_JOB_ID=88123\nSLURM_JOB_NAME=train\n", "slurm 88123 (observed)", "train"},
      {"slurmstepd: error: Detected 1 oom_kill event in StepId=88123.0. Some of the step tasks have been OOM Killed.\n",
       "slurm 88123 (observed)", ""},
      {"Submitted batch job 88124\n", "none", ""},
      {"Job <123> is submitted to queue <gpu>.\n", "lsf 123 (observed)", ""},
      {"Subject: Job 123: <train> in cluster <uni> Exited\n", "lsf 123 (observed)", "train"},
      {"Job <7> was submitted from host <login1> by user <ann> in cluster <uni> at Sat Apr  5 06:00:00 2031\n", "none",
       "7"},
      {"PBS Job Id: 123.pbs01\n", "pbs 123.pbs01 (observed)", ""},
      {"PBS_JOBID=123\nJob ID: 123.pbs01\nJob Name:  train\n", "pbs 123.pbs01 (observed)", "train"},
      {"PBS_JOBID=123.pbs01\nPBS_JOBID=123.pbs02\n", "none", ""},
      {"[pod/train-0/pytorch] step 1\n", "kubernetes train-0 (envelope)", ""},
      {"[pod/llm-worker-0/pytorch] step 1\n[pod/llm-worker-1/pytorch] step 1\n", "kubernetes llm-worker (derived)", ""},
      {"[pod/llm-master-0/pytorch] step 1\n[pod/llm-worker-1/pytorch] step 1\n", "kubernetes llm (derived)", ""},
      {"[pod/llm-0/pytorch] step 1\n[pod/other-0/pytorch] step 1\n", "none", ""},
      {"  run_id           : llama-7b\n", "torchelastic llama-7b (observed)", ""},
      {"  run_id           : none\n", "none", ""},
      {"Job 'raysubmit_Xq3bT5wYc1kLm9ZP' submitted successfully\n", "ray raysubmit_Xq3bT5wYc1kLm9ZP (observed)", ""},
      {"Job 'raysubmit_Xq3bT5wYc1kLm9ZP' failed\nJob 'raysubmit_Yq3bT5wYc1kLm9ZP' failed\n", "none", ""},
      {"", "none", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    const Verdict verdict = JudgeText(row.text + "step 1 loss 1.1\nstep 2 loss 1.0\n" + kOom).verdict;
    CHECK(InWords(verdict.job) == row.id);
    CHECK(verdict.job.name == row.name);
  }
}

TEST_CASE("identity: a job without a trace of itself keeps its sieve", "[identity]") {
  std::string text = "Job <123> is submitted to queue <gpu>.\n";
  for (int i = 0; i < 20'000; ++i) text += fmt::format("step {} loss 1.{}\n", i, i);
  CHECK(InWords(JudgeText(text + kOom).verdict.job) == "lsf 123 (observed)");
}

TEST_CASE("identity: ids by names of files", "[identity]") {
  struct Row {
    std::vector<std::string> names;
    std::string id;
  };
  const Row rows[] = {
      {{"slurm-123.out"}, "slurm 123 (file name)"},
      {{"slurm-88123.out", "slurm-88123.err"}, "slurm 88123 (file name)"},
      {{"slurm-88123_4.out"}, "slurm 88123_4 (file name)"},
      {{"slurm-2031-04-05.out"}, "none"},
      {{"slurm-1_0.out", "slurm-1_1.out"}, "none"},
      {{"train.o88123", "train.e88123"}, "batch 88123 (file name)"},
      {{"train.o88123.4"}, "batch 88123.4 (file name)"},
      {{"train.e88123-4"}, "batch 88123.4 (file name)"},
      {{"88123[4].pbs01.OU", "88123[4].pbs01.ER"}, "pbs 88123[4] (file name)"},
      {{"88123.pbs01.OU"}, "pbs 88123 (file name)"},
      {{"88123.OU"}, "none"},
      {{"weights.o12"}, "none"},
      {{"train-88123.out", "train-88123.err"}, "batch 88123 (file name)"},
      {{"llama_7b_88123_4.out"}, "batch 88123.4 (file name)"},
      {{"gpt2-88123.out"}, "batch 88123 (file name)"},
      {{"88123.out"}, "batch 88123 (file name)"},
      {{"train-20310405.out"}, "none"},
      {{"train-2031-04-05-12345.out"}, "none"},
      {{"train-00088123.out"}, "none"},
      {{"rank-1023.out"}, "none"},
      {{"train88123.out"}, "none"},
      {{"train-88123.out", "train-88124.out"}, "none"},
      {{"train-88123.log"}, "none"},
      {{"job-driver-raysubmit_Xq3bT5wYc1kLm9ZP.log"}, "ray raysubmit_Xq3bT5wYc1kLm9ZP (file name)"},
      {{"job.log"}, "none"},
      {{"pods/ml_train-0_8c2f/pytorch/0.log"}, "kubernetes train-0 (file name)"},
      {{"containers/train-0_ml_pytorch-4f1c.log"}, "kubernetes train-0 (file name)"},
  };
  for (const Row& row : rows) {
    std::vector<SynthFile> files;
    for (const std::string& name : row.names) files.push_back({name, "step 1 loss 1.1\n" + kOom});
    const JobFolder folder(files);
    CAPTURE(row.names.front());
    CHECK(InWords(AnalyzePaths(folder.Files()).verdict.job) == row.id);
  }
  // Slurm's own words tell whose number it is.
  const JobFolder named({{"train-88123.out", "srun: error: node07: task 1: Exited with exit code 1\n" + kOom}});
  CHECK(InWords(AnalyzePaths(named.Files()).verdict.job) == "slurm 88123 (file name)");
  // A line knows better than a name, which a copy may have.
  const JobFolder folder({{"slurm-1.out", "SLURM_JOB_ID=88123\nstep 1 loss 1.1\n" + kOom}});
  CHECK(InWords(AnalyzePaths(folder.Files()).verdict.job) == "slurm 88123 (observed)");
}

TEST_CASE("identity: two ids are two jobs, and none", "[identity]") {
  const Verdict verdict =
      JudgeText("Job <123> is submitted to queue <gpu>.\nJob <124> is submitted to queue <gpu>.\n" + kOom).verdict;
  CHECK(InWords(verdict.job) == "none");
  REQUIRE(verdict.warnings.size() == 1);
  CHECK(verdict.warnings[0].find("job 123 (text:1) and of job 124 (text:2)") != std::string::npos);
}

TEST_CASE("identity: of several starts, the one that is judged", "[identity]") {
  const JobFolder folder({{"slurm-88123.out", "2031-04-05T06:00:00Z step 1 loss 1.1\n" + kOom},
                          {"slurm-88124.out", "2031-04-05T07:00:00Z step 1 loss 1.1\n" + kOom}});
  const Verdict verdict = AnalyzePaths(folder.Files()).verdict;
  REQUIRE(verdict.attempts.size() == 2);
  CHECK(InWords(verdict.job) == "slurm 88124 (file name)");
  REQUIRE(verdict.job.start);
  CHECK(FormatTime(*verdict.job.start) == "2031-04-05T07:00:00Z");
}

TEST_CASE("identity: first and last dated line, of one clock", "[identity]") {
  const auto span = [](const std::string& text) {
    const JobTold job = JudgeText(text).verdict.job;
    return job.start ? FormatTime(*job.start) + " " + FormatTime(*job.end) : "none";
  };
  CHECK(span("2031-04-05T06:00:00Z step 1 loss 1.1\nno time\n2031-04-05T06:00:09Z step 2 loss 1.1\n" + kOom) ==
        "2031-04-05T06:00:00Z 2031-04-05T06:00:09Z");
  CHECK(span("2031-04-05 06:00:00 step 1 loss 1.1\n" + kOom) == "2031-04-05T06:00:00 2031-04-05T06:00:00");
  CHECK(span("2031-04-05T06:00:00Z step 1 loss 1.1\n2031-04-05 08:00:00 step 2 loss 1.1\n" + kOom) == "none");
  CHECK(span("06:00:00 step 1 loss 1.1\n" + kOom) == "none");
}

}  // namespace job_identity_test
}  // namespace inquest
