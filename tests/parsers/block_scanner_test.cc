// One block: calls parsed and folded, the lines that matter kept, every byte accounted for.
#include <fmt/format.h>

#include <algorithm>

#include "parsers/block.h"
#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace block_scanner_test {

const std::string kHead = "alder04:41234:41777 [3] NCCL INFO ";
const std::string kTail =
    " sendbuff 0x7f1c40000000 recvbuff 0x7f1c42000000 count 1048576 datatype 7 op 0 root 0 comm 0x55d0c2a41e70 "
    "[nranks=16] stream 0x55d0bf3312a0";
const std::string kCall = kHead + "AllReduce: opCount 2a" + kTail;
/// A line that the built-in rules look for.
const std::string kTelling = "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.";

/// Scans `text` with `behind` in the bytes that follow it.
BlockYield ScanWith(BlockScanner& scanner, const std::string& text, char behind = '\0', bool cut_head = false) {
  const std::string padded = text + std::string(kPadding, behind);
  return scanner.Scan(std::string_view(padded).substr(0, text.size()), cut_head);
}

BlockYield ScanBlock(const std::string& text, bool cut_head = false) {
  BlockScanner scanner(BuiltInSieve());
  return ScanWith(scanner, text, '\0', cut_head);
}

std::string TextOf(const BlockYield& yield, const KeptLine& line) { return std::string(yield.TextOf(line)); }

/// `alder04:41234 [3] 55d0c2a41e70/16 #2a AllReduce 1048576 7 0 0`, one a line.
std::string ShowCalls(const BlockYield& yield) {
  std::string out;
  for (const CallBatch::Call& call : yield.folded.calls.calls) {
    const CallBatch::Comm& comm = yield.folded.calls.comms.at(call.comm);
    const CallBatch::Process& process = yield.folded.calls.processes.at(comm.process);
    const CallDescriptor& what = yield.folded.calls.descriptors.at(call.descriptor);
    out += fmt::format("{}{}:{} [{}] {:x}/{} #{:x} {} {} {} {} {}", out.empty() ? "" : "\n", process.host, process.pid,
                       process.cuda_dev, comm.pointer, comm.nranks, call.op_count, what.op, what.count, what.datatype,
                       what.redop, what.root);
  }
  return out;
}

const ChannelsVia& ViaOf(const Folded::Sum& sum) { return std::get<ChannelsVia>(sum.what); }

/// Everything that a yield says.
std::string Show(const BlockYield& yield) {
  const Tally& t = yield.tally;
  std::string out = fmt::format("{} bytes {} lines {} claimed {} plain {} damaged\n{}\n", t.bytes, t.lines, t.claimed,
                                t.plain, t.damaged, ShowCalls(yield));
  for (const CallBatch::Call& call : yield.folded.calls.calls) out += fmt::format("{} ", call.line);
  for (const CallBatch::Process& p : yield.folded.calls.processes)
    out += fmt::format("{}:{} [{}] {} {} {}\n", p.host, p.pid, p.cuda_dev, p.sender ? p.sender->value : -1, p.last_line,
                       p.last_text);
  for (const Folded::Sum& sum : yield.folded.sums)
    out += fmt::format("{} x{} at {}: {}\n", ViaOf(sum).via, ViaOf(sum).count, sum.line, sum.text);
  for (const KeptLine& k : yield.kept) {
    out += fmt::format("{}+{} {} bytes{}{}{}:", k.line, k.offset, k.bytes, k.context ? " context" : "",
                       k.bulk ? " bulk" : "", k.damaged ? " damaged" : "");
    for (std::uint32_t i = 0; i < k.hit_count; ++i) out += fmt::format(" {}", yield.hits.at(k.hits + i));
    out += " " + TextOf(yield, k) + "\n";
  }
  return out;
}

std::uint64_t Accounted(const BlockYield& yield) {
  std::uint64_t bytes = yield.removed.claimed + yield.tally.claimed + yield.tally.plain + yield.tally.damaged;
  for (const KeptLine& line : yield.kept) bytes += line.bytes;
  return bytes;
}

/// The texts of kept lines, context in brackets.
std::string ShowKept(const BlockYield& yield) {
  std::string out;
  for (const KeptLine& line : yield.kept)
    out += line.context ? "(" + TextOf(yield, line) + ") " : TextOf(yield, line) + " ";
  return out;
}

TEST_CASE("block: call lines in every spelling", "[block]") {
  const std::string usual = "alder04:41234 [3] 55d0c2a41e70/16 #2a AllReduce 1048576 7 0 0";
  const struct {
    std::string line, shown;
  } rows[] = {
      {kCall, usual},
      {"[2031-04-05 06:07:08] " + kCall, usual},
      {"[rank3]:" + kCall, usual},
      {"[default3]:" + kCall, usual},
      {" 3: " + kCall, usual},
      {"2031-04-05T06:07:08.123456789Z " + kCall, usual},
      {"\x1b[36m(Worker pid=41234)\x1b[0m " + kCall + "\x1b[0m", usual},
      {kCall + " ", usual},
      {kHead + "AllReduce: opCount 2a sendbuff 0x7f1c40000000 recvbuff 0x7f1c42000000 count 1048576 datatype 7 op 0 "
               "root 0 comm 0x55d0c2a41e70 stream 0x55d0bf3312a0",
       "alder04:41234 [3] 55d0c2a41e70/0 #2a AllReduce 1048576 7 0 0"},
      {kHead + "Send: opCount 2b sendbuff (nil) recvbuff 0x7f1c44000000 count 4096 datatype 7 op 0 root 5 comm "
               "0x55d0c2a41e70 [nranks=16] stream 0x55d0bf3312a0",
       "alder04:41234 [3] 55d0c2a41e70/16 #2b Send 4096 7 0 5"},
      {kHead + "Send: opCount 2b sendbuff 0x7f1c44000000 recvbuff (nil) count 4096 datatype 7 op 0 root 5 comm "
               "0x55d0c2a41e70 [nranks=16] stream 0x55d0bf3312a0",
       "alder04:41234 [3] 55d0c2a41e70/16 #2b Send 4096 7 0 5"},
      {kHead + "Broadcast: opCount 0 sendbuff (nil) recvbuff (nil) count 0 datatype 0 op 0 root 15 comm 0x55d0c2a41e70 "
               "[nranks=16] stream (nil)",
       "alder04:41234 [3] 55d0c2a41e70/16 #0 Broadcast 0 0 0 15"},
      {kHead + "AllGather: opCount 1 sendbuff 0xa06000000 recvbuff 0xa07000000 count 17179869184 datatype 9 op 0 root "
               "0 comm 0x1a2b3c0 [nranks=8] stream 0x2ff0",
       "alder04:41234 [3] 1a2b3c0/8 #1 AllGather 17179869184 9 0 0"},
      {kHead + "Reduce: opCount 1 sendbuff 0x7ff recvbuff 0x12ab40 count 5 datatype 3 op 2 root 1 comm 0x5 [nranks=2] "
               "stream 0x1",
       "alder04:41234 [3] 5/2 #1 Reduce 5 3 2 1"},
      {kHead + "Reduce: opCount 1 sendbuff 0x12ab40 recvbuff 0x7ff count 5 datatype 3 op 2 root 1 comm 0x5 [nranks=2] "
               "stream 0x1",
       "alder04:41234 [3] 5/2 #1 Reduce 5 3 2 1"},
      {kHead + "AllReduce: opCount 1 sendbuff 0xffff7f1c40000000 recvbuff 0xffff7f1c42000000 count 8 datatype 7 op 18 "
               "root 0 comm 0xffff55d0c2a41e70 [nranks=16] stream 0xffff55d0bf3312a0",
       "alder04:41234 [3] ffff55d0c2a41e70/16 #1 AllReduce 8 7 18 0"},
      {kHead + "AllReduce: opCount 1234567890abcdef" + kTail,
       "alder04:41234 [3] 55d0c2a41e70/16 #90abcdef AllReduce 1048576 7 0 0"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.line);
    const BlockYield yield = ScanBlock(row.line + "\n");
    CHECK(ShowCalls(yield) == row.shown);
    CHECK(yield.tally.claimed + yield.removed.claimed == row.line.size() + 1);
    CHECK(yield.kept.empty());
  }
}

TEST_CASE("block: every operation of every version", "[block]") {
  for (const std::string op : {"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "Send", "Recv",
                               "AlltoAll", "Gather", "Scatter", "PutSignal", "Signal", "WaitSignal"}) {
    const BlockYield yield = ScanBlock(kHead + op + ": opCount 2a" + kTail + "\n");
    CHECK(ShowCalls(yield) == "alder04:41234 [3] 55d0c2a41e70/16 #2a " + op + " 1048576 7 0 0");
  }
}

TEST_CASE("block: calls are folded by process, communicator and what they ask for", "[block]") {
  SynthJob job({.ranks = 4, .hosts = 2});
  const auto all = job.NewComm({0, 1, 2, 3}), pair = job.NewComm({0, 1});
  for (int step = 0; step < 10; ++step) {
    job.CallAll(all, {.count = 8, .op_count = static_cast<std::uint64_t>(step)});
    job.CallAll(pair, {.op = "Broadcast", .count = 4});
  }
  const BlockYield yield = ScanBlock(job.Interleaved());
  CHECK(yield.folded.calls.calls.size() == 60);
  CHECK(yield.folded.calls.processes.size() == 4);
  CHECK(yield.folded.calls.comms.size() == 6);
  CHECK(yield.folded.calls.descriptors.size() == 2);
  for (std::uint32_t i = 0; i < 60; ++i) CHECK(yield.folded.calls.calls[i].line == i);
  CHECK(yield.folded.calls.processes[3].last_line == 57);
  CHECK(yield.folded.calls.processes[3].last_text == job.Lines()[57]);
}

TEST_CASE("block: a communicator whose calls are on two streams stands there for each", "[block]") {
  const std::string call = kHead +
                           "AllReduce: opCount 2a sendbuff 0x7f00 recvbuff 0x7f00 count 8 datatype 7 op 0 root 0 "
                           "comm 0x5581 [nranks=2] stream ";
  const BlockYield yield = ScanBlock(call + "0x10\n" + call + "0x20\n" + call + "0x10\n" + call + "(nil)\n");
  std::vector<std::uint64_t> streams;
  for (const CallBatch::Call& one : yield.folded.calls.calls)
    streams.push_back(yield.folded.calls.comms[one.comm].stream);
  CHECK(streams == std::vector<std::uint64_t>{0x10, 0x20, 0x10, 0});
  CHECK(yield.folded.calls.comms.size() == 3);
  CHECK(yield.folded.calls.comms[1].pointer == 0x5581);
}

TEST_CASE("block: lines that a call line could be taken for", "[block]") {
  const std::string rows[] = {
      kHead + "AllReduce: 4194304 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}",
      kHead + "opCount 2a" + kTail,
      kHead + "Init COMPLETE",
      "AllReduce: opCount 2a" + kTail,
      "NCCL INFO AllReduce: opCount 2a" + kTail,
  };
  for (const std::string& line : rows) {
    CAPTURE(line);
    const BlockYield yield = ScanBlock(line + "\n");
    CHECK(ShowCalls(yield).empty());
    CHECK(yield.tally.damaged == 0);
    CHECK(Accounted(yield) == yield.tally.bytes);
  }
}

TEST_CASE("block: a torn call line is damaged and gives no call", "[block]") {
  const std::size_t telling = kCall.find(": opCount ") + 10,
                    whole = kCall.rfind("0x") + 3;  // of the stream only a digit is wanted
  for (std::size_t cut = 0; cut <= kCall.size(); ++cut) {
    const std::string torn = kCall.substr(0, cut);
    for (const std::string& behind : {std::string("\n"), std::string(), std::string("\nAllReduce: opCount 2a\n")}) {
      CAPTURE(torn, behind);
      const BlockYield yield = ScanBlock(torn + behind);
      CHECK(yield.folded.calls.calls.size() == (cut >= whole ? 1 : 0));
      const std::uint64_t damaged = yield.tally.damaged;
      CHECK(damaged == (cut >= telling && cut < whole ? torn.size() + (behind.empty() ? 0 : 1) : 0));
      CHECK(Accounted(yield) == yield.tally.bytes);
    }
  }
}

TEST_CASE("block: two writers in one line give no call", "[block]") {
  for (const std::size_t cut : {60u, 90u, 150u, 200u, 229u}) {
    for (const std::string& torn : {kCall.substr(0, cut) + kCall, kCall.substr(0, cut) + kTelling}) {
      CAPTURE(torn);
      const BlockYield yield = ScanBlock(torn + "\n" + kCall + "\n");
      CHECK(yield.folded.calls.calls.size() == 1);
      CHECK(yield.tally.damaged == torn.size() + 1);
    }
  }
}

TEST_CASE("block: bytes behind the block do not matter", "[block]") {
  for (std::size_t cut = kCall.size() - 120; cut <= kCall.size(); ++cut)
    for (const char behind : {'f', ' ', '\n', ']'}) {
      BlockScanner scanner(BuiltInSieve());
      const std::string text = "starting\n" + kCall.substr(0, cut);
      CAPTURE(text, behind);
      CHECK(Show(ScanWith(scanner, text, behind)) == Show(ScanBlock(text)));
    }
}

TEST_CASE("block: what was scanned before does not matter", "[block]") {
  SynthJob job({.ranks = 4, .hosts = 1});
  const auto comm = job.NewComm(job.AllRanks());
  job.Init(comm);
  job.CallAll(comm, {.count = 8});
  // The device that NCCL prints is that of the thread which prints: one process may show several.
  const auto with_device = [](int device) {
    return fmt::format("alder04:41234:41777 [{}] NCCL INFO AllReduce: opCount 2a{}\n", device, kTail);
  };
  const std::string blocks[] = {with_device(0),
                                with_device(3),
                                job.Interleaved(),
                                kCall + "\n",
                                kCall.substr(0, 190) + "\n",
                                kTelling + "\n",
                                "",
                                "x" + kCall + "\n",
                                kHead + "Broadcast: opCount 2a" + kTail + "\n" + with_device(1),
                                std::string(3, '\0') + "\n"};
  BlockScanner used(BuiltInSieve());
  for (int round = 0; round < 2; ++round)
    for (const std::string& block : blocks)
      for (const std::string& then : blocks) {
        ScanWith(used, block);
        CAPTURE(block, then);
        CHECK(Show(ScanWith(used, then)) == Show(ScanBlock(then)));
      }
}

// A call that was seen before is compared with the one remembered, any other is parsed. Both must say the same of every
// line, also of those that differ from a remembered one by a byte or are cut or joined.
TEST_CASE("block: a remembered call and a parsed one are read alike", "[block]") {
  const auto call = [](int rank, const std::string& op, const std::string& count, const std::string& send) {
    return fmt::format(
        "alder{:02}:41234:{} [{}] NCCL INFO {}: opCount 2a sendbuff {} recvbuff 0x7f1c42000000 count {} datatype 7 op "
        "0 root 0 comm "
        "0x55d0c2a4{:04x} [nranks=16] stream 0x55d0bf3312a0",
        rank, 41777 + rank, rank, op, send, count, rank);
  };
  std::vector<std::string> calls;
  for (int rank = 0; rank < 3; ++rank)
    for (const std::string op : {"AllReduce", "Send", "ReduceScatter"})
      for (const std::string count : {"1", "1048576", "17179869184"})
        for (const std::string send : {"0x7f1c40000000", "(nil)", "0xa06000000"})
          calls.push_back(call(rank, op, count, send));
  std::string all;
  for (const std::string& line : calls) all += line + "\n";
  const Code code = GENERATE(Code::kPortable, Code::kAvx2, Code::kAvx512);
  BlockScanner used(BuiltInSieve(), code);
  ScanWith(used, all);
  CHECK(ShowCalls(ScanWith(used, all)) == ShowCalls(ScanBlock(all)));

  std::uint32_t seed = 20310405;
  const auto below = [&seed](std::size_t limit) {
    seed = seed * 1664525 + 1013904223;
    return static_cast<std::size_t>(seed >> 8) % limit;
  };
  constexpr std::string_view kBytes("0123456789abcdefx ]:[\0\r\n\t\x80g", 27);
  const std::string bytes(kBytes);
  for (int round = 0; round < 2000; ++round) {
    std::string line = calls[below(calls.size())];
    switch (below(4)) {
      case 0:
        line[below(line.size())] = bytes[below(bytes.size())];
        break;
      case 1:
        line.insert(below(line.size()), 1, bytes[below(bytes.size())]);
        break;
      case 2:
        line.erase(below(line.size()), 1 + below(3));
        break;
      default:
        line = line.substr(0, below(line.size())) + calls[below(calls.size())].substr(below(170));
    }
    if (below(3) == 0) line = "2031-04-05T06:07:08.123456789Z " + line;
    line += below(3) == 0 ? "\r\n" : "\n";
    const std::string known = Show(ScanWith(used, line)), anew = Show(ScanBlock(line));
    CAPTURE(line);
    CHECK((known == anew));
    // Among other calls, where known lines are read in one go.
    const std::string among = calls[below(calls.size())] + "\n" + calls[below(calls.size())] + "\n" + line +
                              calls[below(calls.size())] + "\n" + calls[below(calls.size())] + "\n" + kTelling + "\n";
    CHECK((Show(ScanWith(used, among)) == Show(ScanBlock(among))));
    const std::string cut = calls[below(calls.size())] + "\n" + calls[below(calls.size())] + "\n" +
                            calls[below(calls.size())].substr(0, 150 + below(80));
    CHECK((Show(ScanWith(used, cut, '\n')) == Show(ScanBlock(cut))));
  }
}

TEST_CASE("block: where a line's prefix is found does not depend on the line before", "[block]") {
  const std::string torn = "alder04:41234:41777 [3] NCCL INFO ";  // then another process wrote
  const std::string before = std::string(torn.size() - 20, '-') + std::string(20, '.') + kCall + "\n";
  const BlockYield alone = ScanBlock(torn + kCall + "\n"), after = ScanBlock(before + torn + kCall + "\n");
  CHECK(ShowCalls(alone).empty());
  CHECK(after.folded.calls.calls.size() == 1);
}

TEST_CASE("block: the device of a process is that of its first line in the block", "[block]") {
  const auto line = [](int device) {
    return fmt::format("alder04:41234:41777 [{}] NCCL INFO AllReduce: opCount 2a{}\n", device, kTail);
  };
  CHECK(ScanBlock(line(5) + line(0)).folded.calls.processes.at(0).cuda_dev == 5);
  CHECK(ScanBlock(line(5) + line(0)).folded.calls.processes.size() == 1);
}

TEST_CASE("block: line ends", "[block]") {
  const struct {
    std::string text;
    std::vector<std::uint32_t> lines, offsets;
    std::uint64_t count;
  } rows[] = {
      {"a\nb\nc\n", {0, 1, 2}, {0, 2, 4}, 3},
      {"a\nb\nc", {0, 1, 2}, {0, 2, 4}, 2},
      {"a\r\nb\r\nc\r\n", {0, 1, 2}, {0, 3, 6}, 3},
      {"a\r\n\r\nb\r\n", {0, 2}, {0, 5}, 3},
      {"a\n\nb\n", {0, 2}, {0, 3}, 3},
      {"10%\r20%\r30%\nb\n", {0, 1}, {8, 12}, 2},  // of a progress bar's pieces only the last one says anything
      {"10%\r20%\r\nb\n", {0, 1}, {4, 9}, 2},
      {"a\n20%\r", {0, 1}, {0, 2}, 1},
      {"", {}, {}, 0},
      {"\n", {}, {}, 1},
      {"\r\r\r\n\n", {}, {}, 2},
  };
  for (const auto& row : rows) {
    CAPTURE(row.text);
    const BlockYield yield = ScanBlock(row.text);
    std::vector<std::uint32_t> lines, offsets;
    for (const KeptLine& kept : yield.kept) {
      lines.push_back(kept.line);
      offsets.push_back(kept.offset);
    }
    CHECK(lines == row.lines);
    CHECK(offsets == row.offsets);
    CHECK(yield.tally.lines == row.count);
    CHECK(Accounted(yield) == row.text.size());
  }
}

TEST_CASE("block: a telling piece of a progress bar is kept, with the line that it shares", "[block]") {
  const BlockYield yield = ScanBlock("one\n10%\r" + kTelling + "\r30%\rlast\n");
  REQUIRE(yield.kept.size() >= 2);
  const auto telling = std::find_if(yield.kept.begin(), yield.kept.end(), [](const KeptLine& k) { return !k.context; });
  REQUIRE(telling != yield.kept.end());
  CHECK(TextOf(yield, *telling) == kTelling);
  CHECK(telling->line == 1);
  CHECK(telling->offset == 8);
  CHECK(telling->hit_count > 0);
}

TEST_CASE("block: the lines of connections are folded by process and transport", "[block]") {
  SynthJob job({.ranks = 3, .hosts = 1});
  const auto comm = job.NewComm(job.AllRanks());
  for (int rank : {1, 2, 0}) job.Connect(comm, rank, "P2P/IPC", 4);
  job.Connect(comm, 1, "NET/IB/2(1)/GDRDMA", 3);
  job.PrintNccl(1, "Channel 01/0 : 2[2] -> 1[1] [receive] via NET/IB/0/GDRDMA");
  job.PrintNccl(1, "Trees [0] 2/-1/-1->1->0 [1] 2/-1/-1->1->0");
  const BlockYield yield = ScanBlock(job.Interleaved());
  const auto& sums = yield.folded.sums;
  REQUIRE(sums.size() == 4);
  CHECK(ViaOf(sums[0]).via == "P2P/IPC");
  CHECK(ViaOf(sums[0]).count == 4);
  CHECK(sums[0].line == 0);
  CHECK(sums[0].text == job.Lines()[0]);
  CHECK(ViaOf(sums[3]).via == "NET/IB/GDRDMA");
  CHECK(ViaOf(sums[3]).count == 4);
  CHECK(sums[3].line == 12);
  REQUIRE(yield.folded.calls.processes.size() == 3);
  CHECK(yield.folded.calls.processes[0].sender == GroupRank{1});
  CHECK(yield.folded.calls.processes[2].sender == GroupRank{0});
  CHECK(yield.tally.claimed == yield.tally.bytes);
}

TEST_CASE("block: a telling line is kept with what stands before it", "[block]") {
  std::string text;
  for (int i = 0; text.size() < kSampledWhole; ++i) text += fmt::format("plain {}\n", i);
  for (int i = 0; i < 40; ++i) text += fmt::format("plain -{}\n", i);
  text += kTelling + "\n";
  for (int i = 40; i < 80; ++i) text += fmt::format("plain -{}\n", i);
  const BlockYield yield = ScanBlock(text);
  const std::string kept = ShowKept(yield);
  CHECK(kept.find(" (plain -36) (plain -37) (plain -38) (plain -39) " + kTelling) != std::string::npos);
  CHECK(kept.starts_with("(plain 0) "));  // by its begin a program is known again
  // Every line of the head, and no other of this small one, is a sample, whatever else it is kept for.
  const auto is_sample = [](const KeptLine& line) { return line.sampled; };
  const auto last = std::ranges::find_if_not(yield.kept, is_sample);
  CHECK(last - yield.kept.begin() > 4000);
  CHECK(std::find_if(last, yield.kept.end(), is_sample) == yield.kept.end());
  CHECK(kept.find("(plain 20) ") !=
        std::string::npos);  // in a small log everybody's last words are among the few lines
  CHECK(kept.find("(plain -47) (plain -56) ") != std::string::npos);
  CHECK(kept.find("(plain -79) ") != std::string::npos);  // what a block ends with may be somebody's last words
  CHECK(kept.find("(plain -20) ") == std::string::npos);
  CHECK(Accounted(yield) == text.size());
}

TEST_CASE("block: NCCL's own lines are kept where they say who is who", "[block]") {
  SynthJob job({.ranks = 2, .hosts = 1});
  job.Init(job.NewComm(job.AllRanks()));
  job.PrintNccl(0, "misc/socket.cc:537 -> 6");
  job.PrintNccl(0, "NCCL_IB_HCA set by environment to mlx5_0.");
  std::string text = job.Interleaved();
  const std::size_t telling = job.Lines().size();
  for (int i = 0; i < 100; ++i) text += kHead + "P2P Chunksize set to 524288\n";
  const BlockYield yield = ScanBlock(text);
  CHECK(static_cast<std::size_t>(std::count_if(yield.kept.begin(), yield.kept.end(),
                                               [](const KeptLine& k) { return !k.context; })) == telling);
  CHECK(std::all_of(yield.kept.begin(), yield.kept.end(), [](const KeptLine& k) { return k.bulk; }));
  CHECK(std::ranges::count_if(yield.kept, [](const KeptLine& k) { return !k.sampled; }) <
        static_cast<std::ptrdiff_t>(telling + 40));
  CHECK(yield.tally.plain == 0);
  CHECK(Accounted(yield) == text.size());
}

TEST_CASE("block: control bytes damage a line, colours and tabs do not", "[block]") {
  const struct {
    std::string line;
    bool damaged;
  } rows[] = {{std::string("a") + '\0' + "b", true},
              {std::string(4000, '\0'), true},
              {"\x01", true},
              {"bell\a", true},
              {"\x1b[31mred\x1b[0m", false},
              {"tab\tab", false},
              {"back\bspace", false},
              {"caf\xc3\xa9", false},
              {"\xff\xfe", false}};
  for (const auto& row : rows) {
    CAPTURE(row.line);
    const BlockYield kept = ScanBlock("one\n" + row.line + "\ntwo\n");
    REQUIRE(kept.kept.size() == 3);
    CHECK(kept.kept[1].damaged == row.damaged);
    CHECK_FALSE(kept.kept[0].damaged);
    CHECK_FALSE(kept.kept[2].damaged);
    std::string text;
    while (text.size() < kSampledWhole) text += "plain\n";
    for (int i = 0; i < 80; ++i) text += i == 40 ? row.line + "\n" : "plain\n";
    CHECK(ScanBlock(text).tally.damaged == (row.damaged ? row.line.size() + 1 : 0));
  }
}

TEST_CASE("block: NUL garbage in front of a call, behind it and in it", "[block]") {
  const std::string hole(1000, '\0');
  CHECK(ShowCalls(ScanBlock(hole + "\n" + kCall + "\n" + hole)) == ShowCalls(ScanBlock(kCall)));
  CHECK(ScanBlock(kCall + hole + "\n").folded.calls.calls.empty());
  for (std::size_t at = kHead.size(); at < kCall.size(); ++at) {
    std::string line = kCall;
    line[at] = '\0';
    const BlockYield yield = ScanBlock(line + "\n");
    CAPTURE(at);
    // Buffers and streams are not read; anywhere else a damaged byte must not become a number.
    const std::string shown = ShowCalls(yield);
    CHECK((shown.empty() || shown == ShowCalls(ScanBlock(kCall))));
    CHECK(Accounted(yield) == yield.tally.bytes);
  }
}

TEST_CASE("block: a line longer than the cap is cut and damaged", "[block]") {
  const std::string giant(kLineCap + 7, 'x');
  const BlockYield yield = ScanBlock("one\n" + giant + "\ntwo\n");
  REQUIRE(yield.kept.size() == 3);
  CHECK(yield.kept[1].damaged);
  CHECK(yield.kept[1].size == kLineCap);
  CHECK(yield.kept[1].bytes == giant.size() + 1);
  CHECK(yield.kept[2].line == 2);
  const BlockYield longest = ScanBlock(std::string(kLineCap, 'x') + "\n");
  REQUIRE(longest.kept.size() == 1);
  CHECK_FALSE(longest.kept[0].damaged);
}

TEST_CASE("block: the rest of a line that was cut is damaged, whatever it looks like", "[block]") {
  for (const std::string& rest : {std::string("xxx"), kTelling, kCall, std::string()}) {
    CAPTURE(rest);
    const BlockYield yield = ScanBlock(rest + "\n" + kTelling + "\n", true);
    CHECK(yield.tally.damaged == rest.size() + 1);
    CHECK(yield.folded.calls.calls.empty());
    CHECK(ShowKept(yield) == kTelling + " ");
    CHECK(yield.kept.at(0).line == 1);
    CHECK(Accounted(yield) == yield.tally.bytes);
  }
}

TEST_CASE("block: hits are found whether lines are sieved in place or gathered first", "[block]") {
  for (const int runs : {1, 7, 8, 9, 40}) {
    CAPTURE(runs);
    std::string text;
    for (int i = 0; i < runs; ++i) text += kCall + "\nplain\n" + kTelling + "\nmore\n";
    text += kTelling;
    const BlockYield yield = ScanBlock(text);
    int telling = 0;
    for (const KeptLine& kept : yield.kept) {
      if (kept.context) continue;
      CHECK(TextOf(yield, kept) == kTelling);
      CHECK(text.substr(kept.offset, kept.size) == kTelling);
      ++telling;
    }
    CHECK(telling == runs + 1);
  }
}

TEST_CASE("block: all bytes are accounted for, whatever they are", "[block]") {
  const std::string parts[] = {kCall,    kTelling, "\n",
                               "\r",     "\r\n",   std::string(1, '\0'),
                               "plain",  kHead,    kHead + "comm 0x1 rank 0 nranks 2 - Init START",
                               "\x1b[0m"};
  BlockScanner scanner(BuiltInSieve());
  std::uint32_t seed = 20310405;
  for (int round = 0; round < 400; ++round) {
    std::string text;
    for (int i = 0; i < 30; ++i) {
      seed = seed * 1664525 + 1013904223;
      text += parts[(seed >> 16) % std::size(parts)];
    }
    const BlockYield yield = ScanWith(scanner, text, '\n', round % 3 == 0);
    CAPTURE(text);
    CHECK(Accounted(yield) == text.size());
    CHECK(yield.tally.bytes + yield.removed.claimed == text.size());
    CHECK(yield.tally.lines == static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')));
    for (std::size_t i = 1; i < yield.kept.size(); ++i) CHECK(yield.kept[i - 1].offset < yield.kept[i].offset);
  }
}

TEST_CASE("block: who wrote a kept line is read where it is scanned, and outlives a move", "[block]") {
  const struct {
    std::string line, text;
    std::optional<int> rank;
  } rows[] = {
      {"end", "end", std::nullopt},
      {kTelling, kTelling.substr(9), 3},
      {R"({"log":"[rank3]: a \"b\"\n","stream":"stderr","time":"2031-04-05T06:07:08Z"})", "a \"b\"", 3},
      {"\x1b[36m[rank3]:\x1b[0m end", "end", 3},
  };
  for (const auto& [line, text, rank] : rows) {
    CAPTURE(line);
    BlockYield scanned = ScanBlock(line + "\n");
    const BlockYield yield = std::move(scanned);
    REQUIRE(yield.kept.size() == 1);
    REQUIRE(yield.peeled.size() == 1);
    CHECK(yield.peeled[0].text == text);
    const auto& found = yield.peeled[0].origin.rank;
    CHECK((found ? std::optional(found->value.value) : std::nullopt) == rank);
  }
}

}  // namespace block_scanner_test
}  // namespace inquest
