// Which files hold the two streams of one program.
#include "timeline/streams.h"

#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace streams_test {

bool ArePair(const char* one, const char* two) {
  std::vector<InputSummary> inputs(2);
  inputs[0].path = one;
  inputs[1].path = two;
  const auto other = OtherStreams(inputs);
  const bool pair = other[0] == 1 && other[1] == 0;
  CHECK((pair || (other[0] == 0 && other[1] == 1)));
  return pair;
}

const std::string kBars =
    "Epoch 0:  50%|####| 50/100 [00:12<00:12, 4.0it/s]\rEpoch 0: 100%|####| 100/100 [00:25<00:00, 4.0it/s]\n"
    "Epoch 1: 100%|####| 100/100 [00:25<00:00, 4.0it/s]\n";
const std::string kWords = "Loading data from /data/x\nThe model has 12 M parameters\nAll done!\n";

std::string CauseOf(const std::vector<SynthFile>& files) {
  const JobFolder folder(files);
  return AnalyzePaths({folder.path()}).verdict.cause;
}

TEST_CASE("streams: names say which files are one program's", "[streams]") {
  CHECK(ArePair("88123.out", "88123.err"));
  CHECK(ArePair("logs/out/7.txt", "logs/err/7.txt"));
  CHECK(ArePair("train.o88123", "train.e88123"));
  CHECK(ArePair("a/stdout.log", "a/stderr.log"));
  CHECK(ArePair("train.log", "train.err"));
  CHECK(ArePair("job_output_4.txt", "job_error_4.txt"));
  CHECK_FALSE(ArePair("88123.out", "88124.err"));
  CHECK_FALSE(ArePair("a/stdout.log", "b/stderr.log"));
  CHECK_FALSE(ArePair("rank0.log", "rank1.log"));
  CHECK_FALSE(ArePair("layout.txt", "layerr.txt"));
  CHECK_FALSE(ArePair("", "err"));
}

TEST_CASE("streams: what is counted in one is closed in the other", "[streams]") {
  CHECK(CauseOf({{"88123.out", kWords}, {"88123.err", kBars}}) == "healthy");
  CHECK(CauseOf({{"88123.out", kWords}, {"88124.err", kBars}}) == "unknown");  // of two jobs
  CHECK(CauseOf({{"88123.out", kWords}, {"88123.err", kBars + "ERROR: could not open the shard, giving up\n"}}) ==
        "unknown");
  CHECK(CauseOf({{"88123.out", kWords},
                 {"88123.err",
                  kBars + "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nKeyError: 3\n"}}) ==
        "python-exception");
}

}  // namespace streams_test
}  // namespace inquest
