// Writes the log of a job that died because one rank stayed away, of any size, as fast as the disk takes it.
//
// What is modelled, by --kind:
//   coll     every rank runs with NCCL_DEBUG=INFO and NCCL_DEBUG_SUBSYS=INIT,COLL. Init lines of all ranks (8 per
//            host) for one communicator of all ranks and one per host; then a sharded training step over and over:
//            all-gather, all-reduce and reduce-scatter of several sizes. Ranks interleave and run up to four operations
//            ahead of the slowest. At the end the culprit stops one operation early; the others' watchdogs time out
//            after ten minutes and abort, and the launcher reports the dead.
//   noise    no NCCL output. Metrics lines of eight training programs, progress bars that end in \r, loggers,
//            warnings, sampled text; hardly two lines alike. Then the same time-outs.
//   mixed    both, half the bytes each.
//   journal  the culprit's node: its journal as JSON, with an Xid 79 at the end.
//   timeout  the densest evidence: nothing but starts and time-outs, as a launcher leaves them that restarts the job
//            until the size is reached.
//   crash-loop  the same with training in between, an exception, and the launcher's report: a service that fails for
//   days. all-new  each line names a host, a process, a device or an operation that no line before it named.
// The same options give the same bytes on every machine. The size is met to within the length of the ending.
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <string>
#include <CLI/CLI.hpp>

#include "bench/chatter.h"
#include "bench/collectives.h"
#include "bench/flood.h"
#include "bench/job.h"
#include "bench/journal.h"

namespace inquest::bench {
namespace {

/// How long the ending of this job is.
std::uint64_t EndingBytes(const Job& job) {
  LogWriter log(-1);
  Job one_host = job;
  one_host.ranks = Job::kPerHost;
  one_host.culprit = 0;
  WriteFailure(one_host, Work{}, log);
  return log.bytes() / (Job::kPerHost - 1) * static_cast<std::uint64_t>(job.ranks);
}

void WriteRestarts(Job job, std::uint64_t bytes, LogWriter& log) {
  do {
    Collectives collectives(job);
    Chatter(job).WriteStart(log);
    collectives.WriteInit(log);
    collectives.WriteRound(log);
    WriteFailure(job, collectives.WriteEnd(log), log);
    ++job.attempt;
  } while (log.good() && log.bytes() < bytes);
}

void WriteJournal(const Job& job, std::uint64_t bytes, LogWriter& log) {
  Journal journal(job);
  while (log.good() && log.bytes() < bytes) journal.Write(log);
  journal.WriteEnd(job, log);
}

void WriteLog(const Job& job, std::string_view kind, std::uint64_t bytes, LogWriter& log) {
  if (kind == "timeout") return WriteRestarts(job, bytes, log);
  if (kind == "crash-loop") return WriteCrashLoop(job, bytes, log);
  if (kind == "all-new") return WriteAllNew(job, bytes, log);
  if (kind == "journal") return WriteJournal(job, bytes, log);
  const std::uint64_t ending = EndingBytes(job), body = bytes > ending ? bytes - ending : 1;
  Collectives collectives(job);
  Chatter chatter(job);
  chatter.WriteStart(log);
  if (kind != "noise") collectives.WriteInit(log);
  std::uint64_t chatter_bytes = 0;
  while (log.good() && log.bytes() < body) {
    if (kind != "noise") collectives.WriteRound(log);
    while (kind != "coll" && log.bytes() < body && (kind == "noise" || chatter_bytes * 2 < log.bytes())) {
      const std::uint64_t before = log.bytes();
      chatter.Write(static_cast<std::uint64_t>(static_cast<double>(before) / static_cast<double>(body) * 1e6), log);
      chatter_bytes += log.bytes() - before;
    }
  }
  const Work work = kind == "noise" ? Work{184467, "ALLREDUCE", 33554432, 33554432} : collectives.WriteEnd(log);
  WriteFailure(job, work, log);
}

int Main(int argc, char** argv) {
  CLI::App app{"Writes the log of a job that died because one rank stayed away."};
  Job job;
  std::string kind = "coll", era = "2.21", path;
  std::uint64_t bytes = 1 << 30;
  app.add_option("--kind", kind, "what fills the log")
      ->check(CLI::IsMember({"coll", "noise", "mixed", "timeout", "journal", "crash-loop", "all-new"}))
      ->capture_default_str();
  app.add_option("--bytes", bytes, "size, such as 1MiB or 16GiB")
      ->transform(CLI::AsSizeValue(false))
      ->capture_default_str();
  app.add_option("--ranks", job.ranks, "8 per host")->check(CLI::Range(2, 65536))->capture_default_str();
  app.add_option("--culprit", job.culprit, "the rank that stops early")->capture_default_str();
  app.add_option("--seed", job.seed)->capture_default_str();
  app.add_option("--nccl", era, "whose spelling")->check(CLI::IsMember({"2.21", "2.27"}))->capture_default_str();
  app.add_option("--out", path, "file; else standard output");
  CLI11_PARSE(app, argc, argv);
  job.era = era == "2.21" ? Era::kNccl221 : Era::kNccl227;
  if (job.culprit < 0 || job.culprit >= job.ranks) {
    std::fprintf(stderr, "--culprit %d: give a rank in 0..%d\n", job.culprit, job.ranks - 1);
    return 1;
  }
  const int descriptor =
      path.empty() ? STDOUT_FILENO : ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor < 0) {
    std::perror(path.c_str());
    return 1;
  }
  LogWriter log(descriptor);
  WriteLog(job, kind, bytes, log);
  log.Flush();
  if (log.good()) return 0;
  std::perror(path.empty() ? "standard output" : path.c_str());
  return 1;
}

}  // namespace
}  // namespace inquest::bench

int main(int argc, char** argv) { return inquest::bench::Main(argc, argv); }
