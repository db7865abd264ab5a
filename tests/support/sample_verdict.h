// A small job and its verdict, built by hand: 64 ranks, of which rank 28 never came to an all-reduce.
#pragma once

#include <chrono>
#include <numeric>
#include <string>

#include "rules/verdict.h"
#include "timeline/timeline.h"

namespace inquest {

struct Sample {
  Timeline timeline;
  Verdict verdict;
};

inline Timestamp SampleTime(int hour, int minute, int second) {
  using namespace std::chrono;
  return {.at = sys_days(year(2031) / 4 / 5) + hours(hour) + minutes(minute) + seconds(second),
          .date = Timestamp::Date::kFull,
          .zone_known = true};
}

inline void AddEvent(Sample& sample, std::uint32_t input, std::uint64_t line, int rank, const std::string& text) {
  Event event;
  event.at = SampleTime(12, 11, 5);
  event.origin.rank = Known<GlobalRank>{GlobalRank{rank}, Basis::kEnvelope};
  event.where = {.input = input, .line = line, .offset = line * 100};
  event.text = text;
  event.what = LogMessage{.component = Component::kAny, .text = text, .hits = {}};
  sample.timeline.events.push_back(std::move(event));
}

inline Citation CiteEvent(const Sample& sample, EventIndex index, LineRole role) {
  const Event& event = sample.timeline.events[index];
  return {.event = index,
          .role = role,
          .where = event.where,
          .at = event.at,
          .rank = event.origin.rank->value,
          .text = event.text};
}

inline Sample MakeSample() {
  Sample sample;
  Timeline& t = sample.timeline;
  t.inputs = {
      {.path = "job.log",
       .bytes = 4096,
       .lines = 40,
       .claimed = 3000,
       .plain = 1096,
       .damaged = 0,
       .kinds = {"nccl", "watchdog"}},
      {.path = "node07-kern.log", .bytes = 900, .lines = 9, .claimed = 500, .plain = 390, .damaged = 10, .kinds = {}}};
  t.hosts = {"node00", "node07"};
  AddEvent(sample, 1, 212, 28, "NVRM: Xid (PCI:0000:4e:00): 79, pid=2113, GPU has fallen off the bus.");
  AddEvent(sample, 0, 31, 3,
           "[rank3]:[E405 12:11:05.123456789 ProcessGroupNCCL.cpp:616] [Rank 3] Watchdog caught collective operation "
           "timeout: WorkNCCL(SeqNum=4410, OpType=ALLREDUCE, NumelIn=253440000, NumelOut=253440000, "
           "Timeout(ms)=600000) ran for 600043 milliseconds before timing out.");
  for (int rank = 0; rank < 64; ++rank) {
    t.processes.push_back({.host = rank == 28 ? "node07" : "node00",
                           .pid = 2000 + rank,
                           .rank = Known<GlobalRank>{GlobalRank{rank}, Basis::kObserved},
                           .local_rank = LocalRank{rank % 8},
                           .cuda_dev = rank % 8,
                           .nvml_dev = {},
                           .bus_id = {}});
    t.ranks.push_back({.rank = GlobalRank{rank},
                       .process = static_cast<std::uint32_t>(rank),
                       .host = {},
                       .first_event = {},
                       .last_event = {},
                       .last_collective = rank == 28 ? "ALLREDUCE #4409" : "ALLREDUCE #4410 (timed out)",
                       .final_state = rank == 28 ? "" : "timed out"});
  }
  t.ranks[3].first_event = t.ranks[3].last_event = 1;
  t.world_size = Known<int>{64, Basis::kObserved};
  t.versions["nccl"] = {"2.21.5"};

  Verdict& v = sample.verdict;
  v.outcome = Outcome::kFailed;
  v.cause = "gpu-fault";
  v.title = "GPU hardware fault";
  v.summary =
      "GPU 0000:4e:00 of node07 fell off the bus at 12:01:01. Rank 28 on it never entered ALLREDUCE #4410, in which "
      "the other 63 ranks timed out.";
  v.confidence = 0.93;
  v.rule = "gpu-off-bus";
  v.culprits = {{.rank = GlobalRank{28},
                 .host = "node07",
                 .pid = 2028,
                 .gpu_index = 4,
                 .bus_id = "0000:4e:00.0",
                 .why = "its GPU fell off the bus"}};
  CollectiveRef collective;
  collective.op = "ALLREDUCE";
  collective.seq = 4410;
  collective.numel_in = collective.numel_out = 253440000;
  collective.timeout_ms = 600000;
  for (int rank = 0; rank < 64; ++rank) (rank == 28 ? collective.ranks_absent : collective.ranks_waiting).Add(rank);
  collective.waiting_since = SampleTime(12, 1, 5);
  v.collective = collective;
  v.evidence = {CiteEvent(sample, 0, LineRole::kCause), CiteEvent(sample, 1, LineRole::kSymptom)};
  Remedy& remedy = v.remedies.emplace_back();
  remedy.text = "Drain the node, run the job elsewhere, then reset the GPU.";
  remedy.command = "nvidia-smi --gpu-reset -i 0000:4e:00.0";
  remedy.kind = Remedy::Kind::kShell;
  remedy.run_on = Remedy::Where::kHost;
  remedy.root = remedy.destructive = true;
  remedy.hosts = {"node07"};
  v.collect_next = {"nvidia-smi -q of the host"};
  v.retry = Retry::kElsewhere;
  v.alternatives = {{.cause = "pcie-fault", .confidence = 0.2, .rule = "aer", .why = "a bad riser looks the same"}};
  Finding finding;
  finding.rule = "gpu-off-bus";
  finding.cause = "gpu-fault";
  finding.strength = Strength::kDecisive;
  finding.confidence = 0.93;
  finding.claim = "A GPU fell off the bus.";
  finding.citations = v.evidence;
  v.findings = {finding};
  return sample;
}

/// Everything that a log could write to harm a terminal, a shell or a browser.
inline std::string HostileText() {
  return std::string("a\x1b[31mred\x1b[0m \x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\ \x1b]0;title\a\x9b nul") +
         '\0' +
         " over\xe2\x80\xaeride c1\xc2\x9b"
         "2J bad\xff utf </script><script>alert(1)</script> $(rm -rf /) `id` \"quoted\" \\ tab\tend\r\nnext";
}

/// The same verdict with hostile text at every place that a log reaches.
inline Sample MakeHostileSample() {
  Sample sample = MakeSample();
  const std::string hostile = HostileText();
  sample.timeline.inputs[0].path = "dir/" + hostile + ".log";
  sample.timeline.hosts = {hostile};
  sample.timeline.versions["nccl"] = {hostile};
  for (Event& event : sample.timeline.events) event.text = hostile;
  sample.timeline.ranks[28].final_state = "raised " + hostile;
  sample.timeline.ranks[28].last_collective = hostile;
  Verdict& v = sample.verdict;
  v.summary += " " + hostile;
  v.culprits[0].host = hostile;
  v.culprits[0].why = hostile;
  v.culprits[0].bus_id = hostile;
  v.collective->op = hostile;
  v.collective->dtype = hostile;
  v.collective->process_group = hostile;
  for (Citation& citation : v.evidence) citation.text = hostile;
  v.alternatives[0].why = hostile;
  v.findings[0].claim = hostile;
  return sample;
}

}  // namespace inquest
