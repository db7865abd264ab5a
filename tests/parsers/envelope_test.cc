// What launchers and collectors put in front of a line, peeled in any nesting.
#include "parsers/envelope.h"

#include "tests/catch.h"

namespace inquest {
namespace envelope_test {

/// A peeled line in one string: `rank=3 local=1 host=h pid=4 at=... |text`, absent parts left out.
std::string Show(std::string_view line) {
  std::string scratch, out;
  const Peeled peeled = Peel(line, scratch);
  const Origin& origin = peeled.origin;
  if (origin.rank) out += "rank=" + std::to_string(origin.rank->value.value) + ' ';
  if (origin.local_rank) out += "local=" + std::to_string(origin.local_rank->value) + ' ';
  if (origin.host) out += "host=" + origin.host->value + ' ';
  if (origin.pid) out += "pid=" + std::to_string(*origin.pid) + ' ';
  if (peeled.at) out += "at=" + FormatTime(*peeled.at) + ' ';
  if (origin.rank) CHECK(origin.rank->basis >= Basis::kDerived);
  if (origin.host) CHECK(origin.host->basis == Basis::kEnvelope);
  return out + '|' + std::string(peeled.text);
}

struct Row {
  const char* line;
  const char* shown;
};

template <std::size_t N>
void Check(const Row (&rows)[N]) {
  for (const Row& row : rows) {
    CAPTURE(row.line);
    CHECK(Show(row.line) == row.shown);
  }
}

TEST_CASE("the tag of UCX says who, and stays", "[envelope]") {
  Check({
      {"[node07:4242:0:4242] ib_log.c:139 x", "host=node07 pid=4242 |[node07:4242:0:4242] ib_log.c:139 x"},
      {"[1932904028.123456] [node07:4242 :0]   ib_log.c:139 x",
       "host=node07 pid=4242 |[1932904028.123456] [node07:4242 :0]   ib_log.c:139 x"},
      {"[12:34:56] x", "at=12:34:56 |[12:34:56] x"},
      {"[2031-04-05T06:07:08:12] x", "|[2031-04-05T06:07:08:12] x"},
      {"[step:100] x", "|[step:100] x"},
  });
}

TEST_CASE("the facility and priority that dmesg -x decodes", "[envelope]") {
  Check({
      {"kern  :err   : NVRM: x", "|NVRM: x"},
      {"daemon:info  : [   12.345678] x", "|[   12.345678] x"},
      {"local0:notice: x", "|x"},
      {"kern  :error: x", "|kern  :error: x"},
      {"kernel: x", "|kernel: x"},
      {"local", "|local"},  // a facility's name and nothing behind it
      {"local0:", "|local0:"},
      {"daemon:", "|daemon:"},
  });
}

TEST_CASE("rank tags", "[envelope]") {
  Check({
      {"plain text", "|plain text"},
      {"", "|"},
      {"[rank3]: Traceback (most recent call last):", "rank=3 |Traceback (most recent call last):"},
      {"[rank3]:   File \"a.py\", line 1, in f", "rank=3 |  File \"a.py\", line 1, in f"},
      {"[rank11]:[E ProcessGroupNCCL.cpp:563] [PG 0 Rank 3] x",
       "rank=11 |[E ProcessGroupNCCL.cpp:563] [PG 0 Rank 3] x"},
      {"[rank3]:", "rank=3 |"},
      {"        | [rank0]: KeyError: 1", "rank=0 |        | [rank0]: KeyError: 1"},
      {"what [rank0]: says", "|what [rank0]: says"},
      {"[rankfile]: x", "|[rankfile]: x"},
      {"[default3]:epoch 1", "local=3 |epoch 1"},
      {"[default3]: iteration 5", "local=3 | iteration 5"},
      {"[trainer_a12]:x", "local=12 |x"},
      {"[default0]:[default0]:x", "local=0 |x"},
      {"[default0]:par[default0]:tial", "local=0 |par[default0]:tial"},
      {"[epoch3]: loss", "|[epoch3]: loss"},
      {"[INFO]: x", "|[INFO]: x"},
      {"[3]: x", "|[3]: x"},
      {"[0]:", "|[0]:"},
      {"[2025-02-23 14:09:34 TP12] Scheduler hit",
       "rank=12 at=2025-02-23T14:09:34 |[2025-02-23 14:09:34 TP12] Scheduler hit"},
  });
}

TEST_CASE("srun's labels", "[envelope]") {
  Check({
      {"3: step 4", "rank=3 |step 4"},
      {"  3: step 4", "rank=3 |step 4"},
      {"12:", "rank=12 |"},
      {"12: ", "rank=12 |"},
      {"0:   File \"a.py\"", "rank=0 |  File \"a.py\""},
      {"P1 3: step", "|step"},
      {"1: [dense/HorovodAllreduce_0, x]", "|1: [dense/HorovodAllreduce_0, x]"},
      {"1: [INFO] step", "rank=1 |[INFO] step"},
      {"12:34", "|12:34"},
      {"1234567: x", "|1234567: x"},
      {"   4: core::panicking::panic at lib.rs", "|   4: core::panicking::panic at lib.rs"},
      {"[rank3]: 7: seven", "rank=3 |7: seven"},
      // The launcher's task holds several ranks: its number is the node's.
      {"2: [default3]:hello", "local=3 |hello"},
      {"2: [default3]:[rank19]:[E219 04:05:06.5 a.cpp:1] x",
       "rank=19 local=3 at=02-19T04:05:06 |[E219 04:05:06.5 a.cpp:1] x"},
  });
  std::string scratch;
  CHECK(Peel("2: [default3]:x", scratch).origin.writer == "2: [default3]");
  CHECK(Peel("[default3]:[default3]:x", scratch).origin.writer == "[default3]");
}

TEST_CASE("mpiexec's numbers, where a traceback shows them", "[envelope]") {
  Check({
      {"[3] Traceback (most recent call last):", "rank=3 |Traceback (most recent call last):"},
      {"[3]   File \"a.py\", line 1, in f", "rank=3 |  File \"a.py\", line 1, in f"},
      {"[3] ValueError: x", "rank=3 |ValueError: x"},
      {"[3] apples", "|[3] apples"},
      {"rank3: Traceback (most recent call last):", "rank=3 |rank3: Traceback (most recent call last):"},
  });
}

TEST_CASE("Determined's heads", "[envelope]") {
  Check({
      {"[2031-04-05T06:07:08.5Z] fa88a9df [rank=5] || ValueError: x",
       "rank=5 at=2031-04-05T06:07:08.5Z |ValueError: x"},
      {"[2031-04-05T06:07:08.5Z] fa88a9df || step", "at=2031-04-05T06:07:08.5Z |step"},
      {"[2031-04-05T06:07:08.5Z] a | b", "at=2031-04-05T06:07:08.5Z |[2031-04-05T06:07:08.5Z] a | b"},
  });
}

TEST_CASE("mpirun's tags", "[envelope]") {
  Check({
      {"[1,3]<stdout>:loss", "rank=3 |loss"},
      {"\xef\xbb\xbf[1,3]<stdout>:loss", "rank=3 |loss"},
      {"[1,3]<stderr>: loss", "rank=3 |loss"},
      {"[1,3]<stderr>:  File \"a.py\"", "rank=3 |  File \"a.py\""},
      {"[1,3]<stderr>:   File \"a.py\"", "rank=3 |  File \"a.py\""},
      {"[1,3]<stdout>:", "rank=3 |"},
      {"[3]<stdout>: loss", "rank=3 |loss"},
      {"[1,3][cn-7:411]<stderr>: loss", "rank=3 host=cn-7 pid=411 |loss"},
      {"Sat Nov  3 21:14:05 2029[1,3]<stdout>:loss", "rank=3 at=2029-11-03T21:14:05 |loss"},
      {"[Sat Nov  3 21:14:05 2029][1,3]<stdout>: loss", "rank=3 at=2029-11-03T21:14:05 |loss"},
      {"2029-11-03T21:14:05.006Z: [1,3]<stdout>:loss", "rank=3 at=2029-11-03T21:14:05.006Z |loss"},
      {"[1,mpirank:10,algo-2]<stdout>:loss", "rank=10 host=algo-2 |loss"},
      {"[prterun-n1-123@1,5]<stderr>: loss", "rank=5 |loss"},
      {"[5] forrtl: severe (174): SIGSEGV, segmentation fault occurred",
       "rank=5 |forrtl: severe (174): SIGSEGV, segmentation fault occurred"},
      {"[5] loss", "|[5] loss"},
      {"[1,3] loss", "|[1,3] loss"},
      {"[1,x]<stdout>:loss", "|[1,x]<stdout>:loss"},
  });
}

TEST_CASE("pdsh's hosts, and what only looks like one", "[envelope]") {
  Check({
      {"10.9.0.4: loss", "host=10.9.0.4 |loss"},
      {"localhost: [rank0]: RuntimeError: x", "rank=0 host=localhost |RuntimeError: x"},
      {"localhost: loss", "host=localhost |loss"},
      {"cn-7: cn-7:41:42 [0] NCCL INFO x", "host=cn-7 |cn-7:41:42 [0] NCCL INFO x"},
      {"worker-1: Traceback (most recent call last):", "host=worker-1 |Traceback (most recent call last):"},
      {"worker-1:   File \"a.py\", line 2", "host=worker-1 |  File \"a.py\", line 2"},
      {"worker-1: [2029-11-03 21:14:05,123] [INFO] x",
       "host=worker-1 at=2029-11-03T21:14:05.123 |[2029-11-03 21:14:05,123] [INFO] x"},
      {"worker-1: [rank3]: RuntimeError: x", "rank=3 host=worker-1 |RuntimeError: x"},
      {"worker-1: ValueError: x", "host=worker-1 |ValueError: x"},
      {"worker-1: \t\tState: Down", "host=worker-1 |\t\tState: Down"},
      {"worker-1: CA 'mlx5_0'", "host=worker-1 |CA 'mlx5_0'"},
      {"worker-1: 2: eth0: <UP,LOWER_UP> mtu 1500", "host=worker-1 |2: eth0: <UP,LOWER_UP> mtu 1500"},
      {"2: eth0: <UP,LOWER_UP> mtu 1500", "|2: eth0: <UP,LOWER_UP> mtu 1500"},
      {"top-1: State: Down", "|top-1: State: Down"},
      {"enp1s0: link becomes ready", "|enp1s0: link becomes ready"},
      {"worker-1: Test NCCL failure a.cu:1", "|worker-1: Test NCCL failure a.cu:1"},
      {"worker-1: 2029-11-03 21:14:05 x y", "host=worker-1 at=2029-11-03T21:14:05 |x y"},
      {"srun: error: cn7: task 3: Killed", "|srun: error: cn7: task 3: Killed"},
      {"RuntimeError: x", "|RuntimeError: x"},
      {"WARNING: x", "|WARNING: x"},
      {"terminate called: x", "|terminate called: x"},
      {"frame #0: x + 0x1", "|frame #0: x + 0x1"},
      {"torch.distributed.DistBackendError: NCCL error in: x", "|torch.distributed.DistBackendError: NCCL error in: x"},
      {"urllib3.connectionpool: WARNING x", "|urllib3.connectionpool: WARNING x"},
      {"fp16: True", "|fp16: True"},
      {"top-1: 76.5", "|top-1: 76.5"},
      {"fp16:            True", "|fp16:            True"},
      {"python3: can't open file 'x'", "|python3: can't open file 'x'"},
      {"subprocess.CalledProcessError: Command died with SIGKILL",
       "|subprocess.CalledProcessError: Command died with SIGKILL"},
      {"10.9.0.4: ", "|10.9.0.4: "},
  });
}

TEST_CASE("collectors", "[envelope]") {
  Check({
      {"2029-11-03T21:14:05.123456789Z stdout F loss", "at=2029-11-03T21:14:05.123456789Z |loss"},
      {"2029-11-03T21:14:05.1Z stderr P lo", "at=2029-11-03T21:14:05.1Z |lo"},
      {"2029-11-03T21:14:05.1+02:00 stderr F ", "at=2029-11-03T19:14:05.1Z |"},
      {"2029-11-03T21:14:05.1Z loss 4", "at=2029-11-03T21:14:05.1Z |loss 4"},
      {"2029-11-03T21:14:05.1Z INFO 11-03 21:14:04 [core.py:1] up",
       "at=2029-11-03T21:14:05.1Z |INFO 11-03 21:14:04 [core.py:1] up"},
      {"2029-11-03T21:14:05.1Z [rank3]:[E1103 21:14:04.5 a.cpp:1] x",
       "rank=3 at=2029-11-03T21:14:05.1Z |[E1103 21:14:04.5 a.cpp:1] x"},
      {"2029-11-03T21:14:05.1Z [2029-11-03 22:14:04,250] [INFO] x",
       "at=2029-11-03T22:14:04.250 |[2029-11-03 22:14:04,250] [INFO] x"},
      {"2029-11-03 21:14:05 [rank3]:[E1103 21:14:05.5 a.cpp:1] x",
       "rank=3 at=2029-11-03T21:14:05 |[E1103 21:14:05.5 a.cpp:1] x"},
      {"2029-11-03 21:14:05 Traceback (most recent call last):",
       "at=2029-11-03T21:14:05 |Traceback (most recent call last):"},
      {"2029-11-03 21:14:05 - INFO - x", "at=2029-11-03T21:14:05 |2029-11-03 21:14:05 - INFO - x"},
      {"2029-11-03 21:14:05.123 | INFO | x", "at=2029-11-03T21:14:05.123 |2029-11-03 21:14:05.123 | INFO | x"},
      {"2029-11-03 21:14:05,123 WARNING x", "at=2029-11-03T21:14:05.123 |2029-11-03 21:14:05,123 WARNING x"},
      {"{\"log\":\"a \\\"b\\\"\\t\\u2588\\ud83d\\ude80\\n\",\"stream\":\"stderr\",\"time\":\"2029-11-03T21:14:05.1Z\"}",
       "at=2029-11-03T21:14:05.1Z |a \"b\"\t█🚀"},
      {"{\"log\":\"[rank3]:[E ProcessGroupNCCL.cpp:1] x\\n\",\"stream\":\"stderr\",\"ti",
       "rank=3 |[E ProcessGroupNCCL.cpp:1] x"},
      {"{\"log\":\"cut he", "|cut he"},
      {"{\"log\":\"cut \\u26", "|cut u26"},
      {"{\"log\":\"no end\",\"time\":\"2029-11-03T21:14:05Z\"}", "at=2029-11-03T21:14:05Z |no end"},
      {"{\"loss\": 1.5}", "|{\"loss\": 1.5}"},
      {"[pod/worker-1/pytorch] [rank3]: x", "rank=3 host=worker-1 |x"},
      {"exp-a/0 [default1]:[rank1]:   File \"a.py\"", "rank=1 local=1 |  File \"a.py\""},
      {"exp-a/0 plain", "|exp-a/0 plain"},
      {"Nov  3 21:14:05 cn7 kernel: NVRM: Xid", "host=cn7 at=11-03T21:14:05 |kernel: NVRM: Xid"},
      {"Nov  3 21:14:05 cn7 python[41]: Traceback (most recent call last):",
       "host=cn7 pid=41 at=11-03T21:14:05 |Traceback (most recent call last):"},
      {"Nov  3 21:14:05 cn7 systemd[1]: Stopped x", "host=cn7 at=11-03T21:14:05 |systemd[1]: Stopped x"},
      {"Nov  3 21:14:05 cn7 abrtd: x", "host=cn7 at=11-03T21:14:05 |abrtd: x"},
      {"2029-11-03T21:14:05Z some logger: x", "at=2029-11-03T21:14:05Z |some logger: x"},
      {"2029-11-03T21:14:05+0000 cn7 kernel: NVRM: Xid", "host=cn7 at=2029-11-03T21:14:05Z |kernel: NVRM: Xid"},
      {"[Sat Nov  3 21:14:05 2029] NVRM: Xid", "at=2029-11-03T21:14:05 |[Sat Nov  3 21:14:05 2029] NVRM: Xid"},
      {"Sat Nov  3 21:14:05 2029       ", "at=2029-11-03T21:14:05 |Sat Nov  3 21:14:05 2029       "},
  });
}

TEST_CASE("the names of a child's streams", "[envelope]") {
  Check({
      {"stderr:   rank      : 1 (local_rank: 1)", "|  rank      : 1 (local_rank: 1)"},
      {"stdout: [rank3]: loss", "rank=3 |loss"},
      {"stderr:loss", "|stderr:loss"},
      {"stdin: loss", "|stdin: loss"},
  });
}

TEST_CASE("docker compose", "[envelope]") {
  Check({
      {"trainer-1  | loss", "|loss"},
      {"job_trainer_12   |   File \"a.py\"", "|  File \"a.py\""},
      {"trainer-1  | 2029-11-03T21:14:05.1Z [rank3]: x", "rank=3 at=2029-11-03T21:14:05.1Z |x"},
      {"\x1b[36mtrainer-1  | \x1b[0mloss", "|loss"},
      {"trainer-1  |", "|"},
      {"trainer-1 | loss", "|trainer-1 | loss"},
      {"trainer  | loss", "|trainer  | loss"},
      {"0  | model | GPT | 1.3 B", "|0  | model | GPT | 1.3 B"},
      {"top-1  |78.1", "|top-1  |78.1"},
  });
  std::string scratch;
  CHECK(Peel("trainer-1  | x", scratch).origin.writer == "trainer-1");
}

TEST_CASE("Ray and vLLM", "[envelope]") {
  Check({
      {"(RayTrainWorker pid=411, ip=10.9.0.4) loss", "host=10.9.0.4 pid=411 |loss"},
      {"(EngineCore_DP0 pid=311) INFO 11-03 21:14:05 [core.py:1] up",
       "pid=311 at=11-03T21:14:05 |INFO 11-03 21:14:05 [core.py:1] up"},
      {"(pid=311) x", "pid=311 |x"},
      {"\x1b[36m(RayTrainWorker pid=411)\x1b[0m loss \x1b[1;31mnan\x1b[0m", "pid=411 |loss nan"},
      {"(VllmWorker rank=1 pid=311) x", "rank=1 pid=311 |x"},
      {"(Worker_TP1 pid=311) x", "rank=1 pid=311 |x"},
      {"(Worker_TP3_EP3 pid=311) x", "rank=3 pid=311 |x"},
      {"(Worker_PP1 pid=311) x", "rank=1 pid=311 |x"},
      {"(Worker_DP1_TP1 pid=311) x", "pid=311 |x"},
      {"[2031-02-25 08:45:12 TP3] x", "rank=3 at=2031-02-25T08:45:12 |[2031-02-25 08:45:12 TP3] x"},
      {"[TRT-LLM] [RANK 2] [E] x", "rank=2 |[TRT-LLM] [RANK 2] [E] x"},
      {"[INFO] [train] [rank=5] x", "rank=5 |[INFO] [train] [rank=5] x"},
      {"[E ProcessGroupNCCL.cpp:828] [Rank 2] x", "|[E ProcessGroupNCCL.cpp:828] [Rank 2] x"},
      {"[2031-02-25 08:45:12 PP1 TP3] x", "at=2031-02-25T08:45:12 |[2031-02-25 08:45:12 PP1 TP3] x"},
      {"[2031-02-25 08:45:12] x", "at=2031-02-25T08:45:12 |[2031-02-25 08:45:12] x"},
      {"(see pid=x) y", "|(see pid=x) y"},
      {"(RayTrainWorker pid=411, ip=10.9", "|(RayTrainWorker pid=411, ip=10.9"},
  });
  std::string scratch;
  CHECK(Peel("(RayTrainWorker pid=411, ip=10.9.0.4) x", scratch).origin.writer == "RayTrainWorker");
}

TEST_CASE("colour codes and terminal titles go", "[envelope]") {
  Check({
      {"\x1b[32mINFO\x1b[0m x", "|INFO x"},
      {"a\x1b]0;title\ab", "|ab"},
      {"a\x1b(Bb", "|ab"},
      {"a\x1b[", "|a"},
      {"a\x1b", "|a"},
  });
}

TEST_CASE("marks by which a thread sets a line apart go", "[envelope]") {
  const struct {
    const char* line;
    const char* text;
  } rows[] = {
      {"**RuntimeError**: bad size", "RuntimeError: bad size"},
      {"`ValueError: bad size`", "ValueError: bad size"},
      {"**`ValueError: bad size`**", "ValueError: bad size"},
      {"**_ValueError_**: bad size", "ValueError: bad size"},
      {"***** Running training *****", "***** Running training *****"},
      {"*** Error in `python': double free or corruption", "*** Error in `python': double free or corruption"},
      {"`torch.foo` is deprecated", "`torch.foo` is deprecated"},
      {"*args and **kwargs", "*args and **kwargs"},
      {"******************", "******************"},
      {"__init__: x", "__init__: x"},
      {"*", "*"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.line);
    std::string scratch;
    CHECK(Peel(row.line, scratch).text == row.text);
  }
}

TEST_CASE("a message behind a progress bar keeps its writer and its time", "[envelope]") {
  Check({
      {"Train:  7%|█▍  | 3/40 [1:02<9:14, 5.5s/it][rank5]:[E1103 21:14:05.5 a.cpp:689] [Rank 5] x",
       "rank=5 at=11-03T21:14:05 |[E1103 21:14:05.5 a.cpp:689] [Rank 5] x"},
      {" 45%|####      | 45/100 [00:12<00:15,  3.61it/s]RuntimeError: x", "|RuntimeError: x"},
      {"[ERROR] 2031-04-05-06:07:08 (PID:41234, Device:3, RankID:11) ERR02200 DIST call hccl api failed.",
       "rank=11 pid=41234 |[ERROR] 2031-04-05-06:07:08 (PID:41234, Device:3, RankID:11) ERR02200 DIST call hccl api "
       "failed."},
      {"[ERROR] 2031-04-05-06:07:08 (PID:41234, Device:0, RankID:-1) ERR00100 PTA call acl api failed.",
       "pid=41234 |[ERROR] 2031-04-05-06:07:08 (PID:41234, Device:0, RankID:-1) ERR00100 PTA call acl api failed."},
      {"EI0006: [PID: 41234] 2031-04-05-06:07:08.444.436 Getting socket times out.",
       "pid=41234 |EI0006: [PID: 41234] 2031-04-05-06:07:08.444.436 Getting socket times out."},
      {" 45%|####      | 45/100 [00:12<00:15,  3.61it/s]10.9.0.4: so it is", "host=10.9.0.4 |so it is"},
      {" 45%|####      | 45/100 [00:12<00:15,  3.61it/s], loss 0.3",
       "| 45%|####      | 45/100 [00:12<00:15,  3.61it/s], loss 0.3"},
      {" 45%|####      | 45/100 [00:12<00:15,  3.61it/s] and so on",
       "| 45%|####      | 45/100 [00:12<00:15,  3.61it/s] and so on"},
      {"eval 6%|▋ [E1103 21:14:05.5 a.cpp:414] x", "at=11-03T21:14:05 |eval 6%|▋ [E1103 21:14:05.5 a.cpp:414] x"},
      {"eval 6%|▋ [rank2]: Traceback (most recent call last):",
       "rank=2 |eval 6%|▋ [rank2]: Traceback (most recent call last):"},
      {"the tag [rank2]: is printed by", "|the tag [rank2]: is printed by"},
  });
}

TEST_CASE("the head of a message gives its time", "[envelope]") {
  Check({
      {"[E219 04:05:06.123456789 file.cpp:1] x", "at=02-19T04:05:06 |[E219 04:05:06.123456789 file.cpp:1] x"},
      {"W0611 15:02:41.221000 140 torch/a.py:7] x", "at=06-11T15:02:41.221 |W0611 15:02:41.221000 140 torch/a.py:7] x"},
      {"[INFO|2029-11-03 21:14:05] a.b:1 >> x", "at=2029-11-03T21:14:05 |[INFO|2029-11-03 21:14:05] a.b:1 >> x"},
      {"[INFO|trainer.py:2] 2029-11-03 21:14:05,120 >> x",
       "at=2029-11-03T21:14:05.120 |[INFO|trainer.py:2] 2029-11-03 21:14:05,120 >> x"},
      {"INFO 08-21 03:10:24 x", "at=08-21T03:10:24 |INFO 08-21 03:10:24 x"},
      {"[2031-04-05 06:07:08] cn7:41:41 [3] a.cc:1 NCCL WARN x",
       "at=2031-04-05T06:07:08 |[2031-04-05 06:07:08] cn7:41:41 [3] a.cc:1 NCCL WARN x"},
      {"21:14:05 left", "|21:14:05 left"},
  });
}

TEST_CASE("a line cut at any byte is peeled without reading past it", "[envelope]") {
  for (const std::string_view whole :
       {"  2: [default3]:[rank19]:[E219 04:05:06.123456789 a.cpp:1] x",
        "2029-11-03T21:14:05.1Z stdout F (Worker pid=4, ip=10.9.0.4) [1,3][cn7:41]<stderr>: x",
        "{\"log\":\"\\u001b[31m\\ud83d\\ude80\\n\",\"stream\":\"stderr\",\"time\":\"2029-11-03T21:14:05.1Z\"}",
        "exp-a/0 [default1]:[rank1]: x", "[Sat Nov  3 21:14:05 2029][1,3]<stdout>: x",
        "P1 3: worker-1: [pod/a-1/b] W0611 15:02:41.221000 140 x", "Nov  3 21:14:05 cn7 python[41]: x"}) {
    for (std::size_t begin = 0; begin < whole.size(); ++begin) {
      for (std::size_t size = 0; begin + size <= whole.size(); ++size) {
        const std::string exact(whole.substr(begin, size));
        std::string scratch;
        CHECK(Peel(exact, scratch).text.size() <= size);
      }
    }
  }
}

}  // namespace envelope_test
}  // namespace inquest
