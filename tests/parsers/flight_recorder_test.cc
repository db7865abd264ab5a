// Dumps of the Flight Recorder: every version of its schema, pickled and in JSON, whole and torn; whose each is.
#include "parsers/flight_recorder.h"

#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <map>
#include <string>
#include <vector>

#include "parsers/scan.h"
#include "tests/catch.h"
#include "tests/support/collect.h"
#include "tests/support/flight_dump.h"
#include "tests/support/recorded_job.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace flight_recorder_test {

using namespace std::literals;

std::string Show(const std::vector<std::vector<std::int64_t>>& shapes) {
  std::vector<std::string> out;
  for (const auto& shape : shapes) out.push_back(fmt::format("{}", fmt::join(shape, "x")));
  return fmt::format("{}", fmt::join(out, "+"));
}

/// `0#4 all_reduce 8->8 Float completed at step at train.py:88`.
std::string Show(const CallTrace& trace, const CallTrace::Call& call) {
  const CallForm& form = trace.forms[call.form];
  std::string out = fmt::format("{}#{} {} {}->{} {} {}", trace.groups[call.group].name, call.seq, form.op,
                                Show(form.inputs), Show(form.outputs), form.dtypes, Name(call.state));
  if (call.to != CallTrace::Peer::kNone)
    out += fmt::format(" {} {}", call.to == CallTrace::Peer::kTo ? "to" : "from", call.peer);
  if (call.pairwise) out += " pairwise";
  if (call.coalesced) out += " coalesced";
  if (call.gave_up) out += " given up";
  if (!trace.sites[call.site].empty()) out += " at " + trace.sites[call.site];
  return out;
}

std::vector<std::string> ShowCalls(const CallTrace& trace) {
  std::vector<std::string> out;
  for (const CallTrace::Call& call : trace.calls) out.push_back(Show(trace, call));
  return out;
}

/// `0 (default_pg): 0, 1; 2 enqueued, 1 completed`.
std::vector<std::string> ShowGroups(const CallTrace& trace) {
  std::vector<std::string> out;
  for (const CallTrace::Group& group : trace.groups) {
    out.push_back(fmt::format("{} ({}): {}", group.name, group.desc, fmt::join(group.ranks, ", ")));
    if (group.last_enqueued) out.back() += fmt::format("; {} enqueued", *group.last_enqueued);
    if (group.last_started) out.back() += fmt::format("; {} started", *group.last_started);
    if (group.last_completed) out.back() += fmt::format("; {} completed", *group.last_completed);
    if (group.mixed) out.back() += "; mixed";
  }
  return out;
}

using Lines = std::vector<std::string>;

/// Three calls on the group of all four, and a send of its rank 1 (of all: 3) in another.
FlightDump Small(const std::string& version) {
  FlightDump dump;
  dump.version = version;
  dump.groups = {{"0", "default_pg", {0, 1, 2, 3}}, {"7", "mesh_pp", {1, 3}}};
  const auto add = [&](const std::string& name, std::int64_t seq, const std::string& state) -> DumpEntry& {
    DumpEntry entry;
    entry.record = dump.entries.size();
    entry.seq = seq;
    entry.name = "nccl:" + name;
    entry.state = state;
    entry.retired = state == "completed";
    entry.created_ns += static_cast<std::int64_t>(dump.entries.size()) * 1'000'000'000;
    dump.entries.push_back(entry);
    return dump.entries.back();
  };
  add("all_reduce", 1, "completed");
  DumpEntry& scatter = add("_reduce_scatter_base", 2, "completed");
  scatter.inputs = {{4, 256}};
  scatter.outputs = {{256}};
  scatter.dtype = "BFloat16";
  DumpEntry& send = add("send 1->0", 0, "scheduled");
  send.group = "7";
  send.desc = "mesh_pp";
  send.p2p_seq = 5;
  send.is_p2p = true;
  send.outputs.clear();
  send.inputs = {{70000}};
  add("broadcast", 3, "scheduled").retired = true;
  return dump;
}

TEST_CASE("flight recorder: every version of the schema", "[unit][flight-recorder]") {
  for (const std::string version : {"1.1", "1.4", "1.5", "2.1", "2.3", "2.4", "2.7", "2.10"}) {
    CAPTURE(version);
    const FlightDump dump = Small(version);
    const std::string bytes = PickleOf(dump);
    CHECK(IsFlightDump(bytes));
    const CallTrace trace = ReadFlightDump(bytes);
    CHECK(trace.recorder == "flight-recorder");
    CHECK(trace.version == version);
    CHECK(trace.problem.empty());
    CHECK(trace.entries == 4);
    const bool has_types = version[0] == '2', has_names = version != "1.1" && version != "1.4";
    const std::string one = has_types ? "Float" : "", two = has_types ? "BFloat16" : "";
    const std::string second = has_names ? "7" : "1";  // the number in the process, where there are no names
    CHECK(ShowCalls(trace) ==
          Lines{"0#1 all_reduce 1048576->1048576 " + one + " completed at train_step at train.py:88",
                "0#2 _reduce_scatter_base 4x256->256 " + two + " completed at train_step at train.py:88",
                second + "#5 send 70000-> " + one + " scheduled to 0 pairwise at train_step at train.py:88",
                "0#3 broadcast 1048576->1048576 " + one + " scheduled given up at train_step at train.py:88"});
    Lines groups = {"0 (default_pg): 0, 1, 2, 3", "7 (mesh_pp): 1, 3"};
    if (!has_names) groups = {"0 (): 0, 1, 2, 3", "1 (): 1, 3"};
    if (version == "1.1") groups = {"0 (): ", "1 (): "};
    if (has_types && version != "2.1") groups[0] += "; 3 enqueued; 2 started; 2 completed";
    CHECK(ShowGroups(trace) == groups);
    CHECK(trace.nccl_version == (version == "2.7" || version == "2.10" ? "2.27.5" : ""));
    CHECK(trace.timeout_ms == (version == "2.4" || version == "2.7" || version == "2.10" ? 600000 : 0));
    CHECK(trace.calls[1].created_ns == 1933040001000000000);
    CHECK(trace.calls[1].ended_ns == 1933040001090000000);
    CHECK((trace.calls[1].started_ns == 0 && trace.calls[2].ended_ns == 0));
    CHECK_FALSE(trace.timed);
    // Number 1 of a group of 1 and 3.
    REQUIRE(trace.rank.has_value() == (version != "1.1"));
    if (trace.rank) CHECK((trace.rank->value == GlobalRank{3} && trace.rank->basis == Basis::kDerived));
  }
}

TEST_CASE("flight recorder: JSON says what the pickle says, but for frames", "[unit][flight-recorder]") {
  std::vector<FlightDump> dumps;
  for (const std::string version : {"2.4", "2.10"}) dumps.push_back(Small(version));
  for (const char* scenario : {"pipeline-chain", "coalesced-differs", "send-and-receive-differ", "uneven-all-to-all"})
    for (const auto& [rank, dump] : RecordedScenario(scenario)) dumps.push_back(dump);
  for (FlightDump& dump : dumps) {
    dump.frames = false;
    const std::string json = JsonOf(dump);
    CHECK(IsFlightDump(json));
    const CallTrace from_json = ReadFlightDump(json), from_pickle = ReadFlightDump(PickleOf(dump));
    CHECK(from_json.problem.empty());
    CHECK(ShowCalls(from_json) == ShowCalls(from_pickle));
    CHECK(ShowGroups(from_json) == ShowGroups(from_pickle));
    CHECK(from_json.rank == from_pickle.rank);
    CHECK(from_json.timeout_ms == from_pickle.timeout_ms);
    CHECK(from_json.version == from_pickle.version);
    CHECK(from_json.entries == from_pickle.entries);
  }
}

TEST_CASE("flight recorder: JSON of a rank that called nothing, and JSON that is cut", "[unit][flight-recorder]") {
  const std::string idle =
      R"({"version":"2.10","comm_lib_version":"2.29.2","pg_config":{"0":{"name":"0","desc":"default_pg","ranks":"[0, 1]"}},"pg_status":{"0":{"last_enqueued_collective":"-1"}}})";
  CHECK(IsFlightDump(idle));
  const CallTrace trace = ReadFlightDump(idle);
  CHECK(trace.problem.empty());
  CHECK(trace.calls.empty());
  CHECK(trace.nccl_version == "2.29.2");
  CHECK(ShowGroups(trace) == Lines{"0 (default_pg): 0, 1"});
  CHECK(ReadFlightDump(JsonOf(Small("2.4")).substr(0, 40)).problem.starts_with("no JSON: "));
  CHECK(ReadFlightDump(R"({"version": [}])").problem.starts_with("no JSON: "));
}

TEST_CASE("flight recorder: JSON that is cut gives the entries in front, and says so", "[unit][flight-recorder]") {
  FlightDump dump = Small("2.4");
  for (int i = 0; i < 20; ++i) dump.entries.push_back(dump.entries[static_cast<std::size_t>(i)]);
  dump.frames = false;
  const std::string json = JsonOf(dump);
  const Lines whole = ShowCalls(ReadFlightDump(json));
  std::size_t most = 0;
  for (std::size_t size = 60; size < json.size(); size += 7) {
    CAPTURE(size);
    const CallTrace cut = ReadFlightDump(json.substr(0, size));
    CHECK_FALSE(cut.problem.empty());
    const Lines calls = ShowCalls(cut);
    REQUIRE(calls.size() <= whole.size());
    // A block's end, which is cut off, would say more of what it holds.
    for (std::size_t i = 0; i + 1 < calls.size(); ++i)
      CHECK(calls[i].substr(0, calls[i].find(' ')) == whole[i].substr(0, whole[i].find(' ')));
    CHECK(calls.size() >= most);
    most = calls.size();
  }
  CHECK(most == whole.size());
}

TEST_CASE("flight recorder: a long JSON dump is known by its entries, which its writer puts first",
          "[unit][flight-recorder]") {
  FlightDump dump = Small("2.4");
  const std::vector<DumpEntry> few = dump.entries;
  while (JsonOf(dump).size() < 80'000) dump.entries.insert(dump.entries.end(), few.begin(), few.end());
  const std::string json = JsonOf(dump);
  CHECK(json.find("\"version\"") > 65'536);
  CHECK(IsFlightDump(json));
}

// What Python writes of a small dump that it read: protocol 2, and 3 but for one byte; protocol 4, and 5 likewise.
const std::string kByPython2 =
    "\200\002}q\000(X\007\000\000\000versionq\001X\003\000\000\0002.4q\002X\011\000\000\000pg_configq\003}q\004X"
    "\001\000\000\0000q\005}q\006(X\004\000\000\000nameq\007h\005X\004\000\000\000descq\010X\012\000\000\000defau"
    "lt_pgq\011X\005\000\000\000ranksq\012X\006\000\000\000[0, 1]q\013usX\011\000\000\000pg_statusq\014}q\015X"
    "\001\000\000\0003q\016}q\017(X\030\000\000\000last_enqueued_collectiveq\020K\002X\027\000\000\000last_starte"
    "d_collectiveq\021J\377\377\377\377X\031\000\000\000last_completed_collectiveq\022K\001usX\007\000\000\000ent"
    "riesq\023]q\024(}q\025(X\006\000\000\000framesq\026]q\027(}q\030(h\007X\012\000\000\000all_reduceq\031X\010"
    "\000\000\000filenameq\032X(\000\000\000/x/torch/distributed/distributed_c10d.pyq\033X\004\000\000\000lineq"
    "\034M\305\011u}q\035(h\007X\004\000\000\000stepq\036h\032X\013\000\000\000/w/train.pyq\037h\034KXueX\011\000"
    "\000\000record_idq K\001X\005\000\000\000pg_idq!K\003X\015\000\000\000process_groupq\042h\005h\011\206q#X"
    "\021\000\000\000collective_seq_idq$K\001X\012\000\000\000p2p_seq_idq%K\000X\005\000\000\000op_idq&K\001X\016"
    "\000\000\000profiling_nameq'X\017\000\000\000nccl:all_reduceq(X\017\000\000\000time_created_nsq)\212\010\000"
    "\000\237h\243\211\323\032X\013\000\000\000input_sizesq*]q+]q,(K\004M\000\001eaX\014\000\000\000input_dtypesq"
    "-]q.X\005\000\000\000Floatq/aX\014\000\000\000output_sizesq0]q1]q2(K\004M\000\001eaX\015\000\000\000output_d"
    "typesq3]q4h/aX\005\000\000\000stateq5X\011\000\000\000completedq6X\032\000\000\000time_discovered_started_ns"
    "q7NX\034\000\000\000time_discovered_completed_nsq8\212\010\200J\374m\243\211\323\032X\007\000\000\000retired"
    "q9\210X\012\000\000\000timeout_msq:J\300'\011\000X\006\000\000\000is_p2pq;\211X\013\000\000\000duration_msq<"
    "G?\370\000\000\000\000\000\000u}q=(h\026h\027h K\002h!K\003h\042h#h$K\002h%K\000h&K\002h'X\023\000\000\000nc"
    "cl:_broadcast_oopq>h)\212\010\000\341\224n\243\211\323\032h*]q?]q@Jp\021\001\000aah-]qAX\004\000\000\000Long"
    "qBah0]qC]qDJp\021\001\000aah3]qEhBah5X\011\000\000\000scheduledqFh7Nh8Nh9\211h:J\300'\011\000h;\211ueu."s;
const std::string kByPython4 =
    "\200\004\225\211\003\000\000\000\000\000\000}\224(\214\007version\224\214\0032.4\224\214\011pg_config\224}"
    "\224\214\0010\224}\224(\214\004name\224h\005\214\004desc\224\214\012default_pg\224\214\005ranks\224\214\006["
    "0, 1]\224us\214\011pg_status\224}\224\214\0013\224}\224(\214\030last_enqueued_collective\224K\002\214\027las"
    "t_started_collective\224J\377\377\377\377\214\031last_completed_collective\224K\001us\214\007entries\224]"
    "\224(}\224(\214\006frames\224]\224(}\224(h\007\214\012all_reduce\224\214\010filename\224\214(/x/torch/distri"
    "buted/distributed_c10d.py\224\214\004line\224M\305\011u}\224(h\007\214\004step\224h\032\214\013/w/train.py"
    "\224h\034KXue\214\011record_id\224K\001\214\005pg_id\224K\003\214\015process_group\224h\005h\011\206\224\214"
    "\021collective_seq_id\224K\001\214\012p2p_seq_id\224K\000\214\005op_id\224K\001\214\016profiling_name\224"
    "\214\017nccl:all_reduce\224\214\017time_created_ns\224\212\010\000\000\237h\243\211\323\032\214\013input_siz"
    "es\224]\224]\224(K\004M\000\001ea\214\014input_dtypes\224]\224\214\005Float\224a\214\014output_sizes\224]"
    "\224]\224(K\004M\000\001ea\214\015output_dtypes\224]\224h/a\214\005state\224\214\011completed\224\214\032tim"
    "e_discovered_started_ns\224N\214\034time_discovered_completed_ns\224\212\010\200J\374m\243\211\323\032\214"
    "\007retired\224\210\214\012timeout_ms\224J\300'\011\000\214\006is_p2p\224\211\214\013duration_ms\224G?\370"
    "\000\000\000\000\000\000u}\224(h\026h\027h K\002h!K\003h\042h#h$K\002h%K\000h&K\002h'\214\023nccl:_broadcast"
    "_oop\224h)\212\010\000\341\224n\243\211\323\032h*]\224]\224Jp\021\001\000aah-]\224\214\004Long\224ah0]\224]"
    "\224Jp\021\001\000aah3]\224hBah5\214\011scheduled\224h7Nh8Nh9\211h:J\300'\011\000h;\211ueu."s;

TEST_CASE("flight recorder: what Python wrote of it again", "[unit][flight-recorder]") {
  for (int protocol = 2; protocol <= 5; ++protocol) {
    CAPTURE(protocol);
    std::string bytes = protocol < 4 ? kByPython2 : kByPython4;
    bytes[1] = static_cast<char>(protocol);
    CHECK(IsFlightDump(bytes));
    const CallTrace trace = ReadFlightDump(bytes);
    CHECK(trace.problem.empty());
    CHECK(ShowCalls(trace) == Lines{"0#1 all_reduce 4x256->4x256 Float completed at step at train.py:88",
                                    "0#2 _broadcast_oop 70000->70000 Long scheduled at step at train.py:88"});
    CHECK(ShowGroups(trace) == Lines{"0 (default_pg): 0, 1; 2 enqueued; 1 completed"});
  }
}

TEST_CASE("flight recorder: parts of a block stand as the block stands", "[unit][flight-recorder]") {
  const auto block = [](const std::string& state, bool retired) {
    FlightDump dump;
    dump.groups = {{"0", "default_pg", {0, 1}}};
    for (const char* name : {"nccl:_all_gather_base", "nccl:_all_gather_base", "nccl:coalesced"}) {
      DumpEntry entry;
      entry.seq = 4;
      entry.name = name;
      entry.state = "scheduled";
      entry.retired = false;
      dump.entries.push_back(entry);
    }
    dump.entries.back().inputs.clear();
    dump.entries.back().outputs.clear();
    dump.entries.back().state = state;
    dump.entries.back().retired = retired;
    dump.frames = false;
    return ShowCalls(ReadFlightDump(PickleOf(dump)));
  };
  const std::string part = "0#4 _all_gather_base 1048576->1048576 Float ";
  CHECK(block("completed", true) ==
        Lines{part + "completed", part + "completed", "0#4 coalesced ->  completed coalesced"});
  CHECK(block("started", false) == Lines{part + "started", part + "started", "0#4 coalesced ->  started coalesced"});
  CHECK(block("scheduled", true) == Lines{part + "scheduled given up", part + "scheduled given up",
                                          "0#4 coalesced ->  scheduled coalesced given up"});
}

/// Two collectives with a block of a send and a receive between them, numbered so.
FlightDump Batched(std::int64_t block_seq, std::int64_t block_p2p, std::int64_t next_seq) {
  FlightDump dump;
  dump.groups = {{"0", "default_pg", {0, 1}}};
  const auto add = [&](const std::string& name, std::int64_t seq, std::int64_t p2p, bool is_p2p) {
    DumpEntry entry;
    entry.name = "nccl:" + name;
    entry.seq = seq;
    entry.p2p_seq = p2p;
    entry.is_p2p = is_p2p;
    dump.entries.push_back(entry);
  };
  add("all_reduce", 1, 0, false);
  add("send 0->1", block_seq, block_p2p, true);
  add("recv 0<-1", block_seq, block_p2p, true);
  add("coalesced", block_seq, block_p2p, block_p2p > 0);
  add("all_reduce", next_seq, block_p2p, false);
  return dump;
}

TEST_CASE("flight recorder: blocks of sends that took a number of the collectives", "[unit][flight-recorder]") {
  const CallTrace now = ReadFlightDump(PickleOf(Batched(1, 1, 2)));
  CHECK_FALSE(now.groups[0].mixed);
  CHECK(now.calls[3].pairwise);
  CHECK(now.calls[3].seq == 1);
  const CallTrace then = ReadFlightDump(PickleOf(Batched(2, 0, 3)));
  CHECK(then.groups[0].mixed);
  CHECK(then.calls[3].pairwise);
  CHECK_FALSE(then.calls[4].pairwise);
}

TEST_CASE("flight recorder: call sites", "[unit][flight-recorder]") {
  const auto site = [](const std::vector<std::string>& frames) {
    std::string json;
    for (const std::string& frame : frames) {
      const std::size_t at = frame.find('@'), colon = frame.rfind(':');
      json += fmt::format(R"({}{{"name":"{}","filename":"{}","line":{}}})", json.empty() ? "" : ",",
                          frame.substr(0, at), frame.substr(at + 1, colon - at - 1), frame.substr(colon + 1));
    }
    const CallTrace trace = ReadFlightDump(fmt::format(
        R"({{"version":"2.4","pg_config":{{}},"entries":[{{"frames":[{}],"profiling_name":"nccl:all_reduce","collective_seq_id":1,"state":"completed"}}]}})",
        json));
    REQUIRE(trace.calls.size() == 1);
    return trace.sites[trace.calls[0].site];
  };
  CHECK(site({}).empty());
  CHECK(site({"all_reduce@/x/torch/distributed/distributed_c10d.py:2501", "step@/w/train.py:88",
              "main@/w/train.py:9"}) == "step at train.py:88");
  // Nothing but the framework's own, and C++ below it.
  CHECK(site({"all_reduce@/x/torch/distributed/distributed_c10d.py:2501", "f@/x/torch/nn/module.py:5"}) ==
        "all_reduce at distributed_c10d.py:2501");
  CHECK(site({"c10d::ops::allreduce_@ProcessGroup.hpp:203", "call@/x/torch/_ops.py:5", "step@/w/train.py:88"}) ==
        "step at train.py:88");
  CHECK(site({"<lambda>@train.py:1"}) == "<lambda> at train.py:1");
}

TEST_CASE("flight recorder: the rank that sends and receives name", "[unit][flight-recorder]") {
  const auto rank = [](const std::string& name, const std::vector<int>& ranks) {
    FlightDump dump;
    dump.groups = {{"3", "mesh_pp", ranks}};
    DumpEntry entry;
    entry.group = "3";
    entry.name = name;
    entry.is_p2p = true;
    dump.entries = {entry};
    const auto known = ReadFlightDump(PickleOf(dump)).rank;
    return known ? known->value.value : -1;
  };
  CHECK(rank("nccl:send 1->0", {2, 6}) == 6);
  CHECK(rank("nccl:recv 0<-1", {2, 6}) == 2);
  CHECK(rank("nccl:send 5->0", {2, 6}) == -1);
  CHECK(rank("nccl:send", {2, 6}) == -1);
  CHECK(rank("nccl:send x->y", {2, 6}) == -1);
  CHECK(rank("nccl:all_reduce", {2, 6}) == -1);
}

TEST_CASE("flight recorder: cut at every byte, what was whole is given and the cut is told",
          "[unit][flight-recorder]") {
  for (const std::string version : {"1.4", "2.4"}) {
    const std::string bytes = PickleOf(Small(version));
    const CallTrace whole = ReadFlightDump(bytes);
    const Lines calls = ShowCalls(whole), groups = ShowGroups(whole);
    std::size_t before = 0;
    for (std::size_t cut = 3; cut < bytes.size(); ++cut) {
      const CallTrace torn = ReadFlightDump(std::string_view(bytes).substr(0, cut));
      const Lines left = ShowCalls(torn);
      const bool fine = torn.problem == fmt::format("cut after {} bytes, in the middle of the dump", cut) &&
                        left.size() >= before && left.size() <= calls.size() &&
                        std::equal(left.begin(), left.end(), calls.begin());
      // Members of a group are all known, or none of them.
      bool whole_groups = true;
      for (const CallTrace::Group& group : torn.groups)
        whole_groups = whole_groups && (group.ranks.empty() || group.ranks.size() == 4 || group.ranks.size() == 2) &&
                       (group.name != "0" || group.ranks.size() != 2);
      if (fine && whole_groups) {
        before = left.size();
        continue;
      }
      CAPTURE(version, cut, torn.problem, left);
      CHECK(fine);
      CHECK(whole_groups);
    }
    CHECK(before == calls.size());
  }
}

TEST_CASE("flight recorder: a dump that is mostly references to itself costs no more than its size",
          "[unit][flight-recorder]") {
  // One entry with very many tensors, and very many times that entry.
  std::string bytes = "\200\002}(U\007versionU\0032.4U\012pg_config}U\007entries]("s;
  bytes += "}(U\016profiling_nameU\017nccl:all_reduceU\021collective_seq_idK\001U\013input_sizes](](K\001eq\000"s;
  for (int i = 0; i < 100'000; ++i) bytes += "h\000"s;
  bytes += "euq\001"s;
  for (int i = 0; i < 100'000; ++i) bytes += "h\001"s;
  const auto begin = std::chrono::steady_clock::now();
  const CallTrace trace = ReadFlightDump(bytes + "eu."s);
  CHECK(std::chrono::steady_clock::now() - begin < 5s);
  CHECK_FALSE(trace.problem.empty());
}

TEST_CASE("flight recorder: what is none", "[unit][flight-recorder]") {
  for (const std::string& bytes :
       {""s, "{"s, "\200\002}(U\001aK\001u."s, "\200\002ctorch._utils\n_rebuild_tensor_v2\n"s,
        R"({"version":"2.4","entries":[]})"s, R"({"version": 3, "metrics": {"loss": 1}})"s,
        R"([{"version":"2.4","profiling_name":"nccl:all_reduce"}])"s, "version pg_config profiling_name\n"s})
    CHECK_FALSE(IsFlightDump(bytes));
  // Entries that say nothing are counted, and no more.
  const CallTrace odd = ReadFlightDump(
      R"({"version":"2.4","pg_config":[],"pg_status":3,"entries":[7,{},{"profiling_name":"nccl:all_reduce"},{"profiling_name":3,"collective_seq_id":1},{"profiling_name":"x","collective_seq_id":-4},{"profiling_name":"x","collective_seq_id":9223372036854775807},{"profiling_name":"nccl:send 0->1","collective_seq_id":1,"p2p_seq_id":-1}]})");
  CHECK(odd.entries == 7);
  CHECK(odd.calls.empty());
}

// ---- as inputs --------------------------------------------------------------------------------------------------

class TraceSink final : public EventSink {
 public:
  void Add(Event) override {}
  void AddCalls(const CallBatch&, std::size_t, std::size_t, const SourcePos&) override {}
  void AddTrace(const CallTrace& trace, const Origin& origin, const SourcePos&) override {
    const auto& rank = trace.rank ? trace.rank : origin.rank;
    said.push_back(fmt::format("{} of rank {}", trace.calls.size(), rank ? std::to_string(rank->value.value) : "?"));
  }
  Lines said;
};

la_ssize_t Append(archive*, void* to, const void* data, std::size_t size) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(data), size);
  return static_cast<la_ssize_t>(size);
}

/// As .gz; with a name, as a .tar.gz that has that member.
std::string Packed(const std::string& bytes, const std::string& name = {}) {
  std::string packed;
  archive* out = ::archive_write_new();
  REQUIRE((name.empty() ? ::archive_write_set_format_raw(out) : ::archive_write_set_format_pax_restricted(out)) ==
          ARCHIVE_OK);
  REQUIRE(::archive_write_add_filter_gzip(out) == ARCHIVE_OK);
  REQUIRE(::archive_write_open(out, &packed, nullptr, Append, nullptr) == ARCHIVE_OK);
  archive_entry* entry = ::archive_entry_new();
  ::archive_entry_set_pathname(entry, name.empty() ? "data" : name.c_str());
  ::archive_entry_set_filetype(entry, AE_IFREG);
  ::archive_entry_set_size(entry, static_cast<la_int64_t>(bytes.size()));
  REQUIRE(::archive_write_header(out, entry) >= ARCHIVE_WARN);
  REQUIRE(::archive_write_data(out, bytes.data(), bytes.size()) >= 0);
  ::archive_entry_free(entry);
  REQUIRE(::archive_write_close(out) == ARCHIVE_OK);
  ::archive_write_free(out);
  return packed;
}

TEST_CASE("flight recorder: whose dump it is, by the names that its writers give", "[unit][flight-recorder]") {
  FlightDump dump = Small("2.4");
  dump.entries.erase(dump.entries.begin() + 2);  // the send, which names its rank
  const std::string pickle = PickleOf(dump), json = JsonOf(dump);
  const struct {
    std::string name, bytes, said;
  } rows[] = {
      {"nccl_trace_rank_5", pickle, "3 of rank 5"},
      {"comm_lib_trace_rank_5", pickle, "3 of rank 5"},
      {"nccl_trace_rank_12", json, "3 of rank 12"},
      {"nccl_trace_rank_5.json", json, "3 of rank 5"},
      {"nccl_trace_rank_5.pkl", pickle, "3 of rank 5"},
      {"my_prefix5", pickle, "3 of rank 5"},
      {"trace.5", pickle, "3 of rank 5"},
      {"5", pickle, "3 of rank 5"},
      {"trace_of_all", pickle, "3 of rank ?"},
      {"comm_lib_trace_rank_5.gz", Packed(pickle), "3 of rank 5"},
      {"nccl_trace_rank_5.json.gz", Packed(json), "3 of rank 5"},
      {"dumps.tar.gz", Packed(pickle, "node01/nccl_trace_rank_5"), "3 of rank 5"},
      {"dumps_of_rank_3.tar.gz", Packed(pickle, "node01/my_prefix5"), "3 of rank 5"},
      {"node01/tmp/nccl_trace_rank_5", pickle, "3 of rank 5"},
      // What the dump says itself counts more than its name.
      {"nccl_trace_rank_5", PickleOf(Small("2.4")), "4 of rank 3"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.name);
    const JobFolder folder({{row.name, row.bytes}});
    const auto inputs = ListInputs({folder.path()});
    REQUIRE(inputs);
    TraceSink sink;
    const auto reads = ScanInputs(*inputs, BuiltInSieve(), {.threads = 1}, sink);
    REQUIRE(reads);
    CHECK(sink.said == Lines{row.said});
    REQUIRE(reads->size() == 1);
    CHECK(reads->front().problem.empty());
    CHECK(reads->front().tally.claimed == reads->front().tally.bytes);
    CHECK(reads->front().kinds == Lines{"flight-recorder"});
  }
}

TEST_CASE("flight recorder: a torn dump is told among the inputs", "[unit][flight-recorder]") {
  const std::string pickle = PickleOf(Small("2.4"));
  const JobFolder folder({{"nccl_trace_rank_0", pickle}, {"nccl_trace_rank_1", pickle.substr(0, 900)}});
  const auto inputs = ListInputs({folder.path()});
  REQUIRE(inputs);
  TraceSink sink;
  const auto reads = ScanInputs(*inputs, BuiltInSieve(), {.threads = 1}, sink);
  REQUIRE(reads);
  REQUIRE(reads->size() == 2);
  CHECK((*reads)[0].problem.empty());
  CHECK((*reads)[1].problem == "cut after 900 bytes, in the middle of the dump");
}

}  // namespace flight_recorder_test
}  // namespace inquest
