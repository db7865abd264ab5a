// The JSON report: every field of the document, unknown as null, hostile text harmless.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "report/report.h"
#include "tests/catch.h"
#include "tests/support/run_job.h"
#include "tests/support/sample_verdict.h"

using namespace inquest;
using Json = nlohmann::json;

TEST_CASE("the document holds verdict, alternatives, job, timeline and inputs", "[unit][report]") {
  const Sample sample = MakeSample();
  const Json document = Json::parse(RenderJson(sample.timeline, sample.verdict, "1.2.3"));
  CHECK(document["schema"] == "inquest-verdict-1");
  CHECK(document["tool"] == Json{{"name", "inquest"}, {"version", "1.2.3"}});
  CHECK(document["outcome"] == "failed");
  const Json& verdict = document["verdict"];
  CHECK(verdict["cause"] == "gpu-fault");
  CHECK(verdict["confidence"] == 0.93);
  CHECK(verdict["signature"] == "gpu-off-bus");
  CHECK(verdict["culprits"] == Json::array({{{"rank", 28},
                                             {"host", "node07"},
                                             {"pid", 2028},
                                             {"gpu", {{"index", 4}, {"bus_id", "0000:4e:00.0"}}},
                                             {"why", "its GPU fell off the bus"}}}));
  const Json& collective = verdict["collective"];
  CHECK(collective["op"] == "ALLREDUCE");
  CHECK(collective["seq"] == 4410);
  CHECK(collective["seq"].is_number_integer());
  CHECK(collective["op_count"].is_null());
  CHECK(collective["root"].is_null());
  CHECK(collective["ranks_absent"] == Json::array({28}));
  CHECK(collective["ranks_waiting"].size() == 63);
  CHECK(verdict["evidence"][0] == Json{{"source", "node07-kern.log"},
                                       {"line", 212},
                                       {"time", "2031-04-05T12:11:05Z"},
                                       {"rank", 28},
                                       {"text", sample.timeline.events[0].text},
                                       {"role", "cause"},
                                       {"event", nullptr}});
  CHECK(verdict["remedies"][0] == Json{{"text", "Drain the node, run the job elsewhere, then reset the GPU."},
                                       {"kind", "shell"},
                                       {"command", "nvidia-smi --gpu-reset -i 0000:4e:00.0"},
                                       {"run_on", "host"},
                                       {"hosts", {"node07"}},
                                       {"needs_root", true},
                                       {"destructive", true},
                                       {"needs", Json::array()}});
  CHECK(verdict["retry"] == "elsewhere");
  CHECK(document["alternatives"][0]["cause"] == "pcie-fault");
  CHECK(document["findings"][0]["strength"] == "decisive");
  CHECK(document["findings"][0]["explained_by"].is_null());
  CHECK(document["job"]["ranks"][28] == Json{{"rank", 28},
                                             {"basis", Name(Basis::kObserved)},
                                             {"host", "node07"},
                                             {"pid", 2028},
                                             {"local_rank", 4},
                                             {"cuda_dev", 4},
                                             {"bus_id", nullptr}});
  CHECK(document["job"]["world_size"]["value"] == 64);
  CHECK(document["job"]["id"] == nullptr);
  CHECK(document["job"]["attempt"] == Json{{"number", 1}, {"of", 1}});
  CHECK(document["job"]["start"] == nullptr);
  CHECK(document["job"]["versions"] == Json{{"nccl", {"2.21.5"}}});
  CHECK(document["timeline"].size() == 64);
  CHECK(document["timeline"][3]["last_event"]["line"] == 31);
  CHECK(document["timeline"][0]["first_event"].is_null());
  CHECK(document["inputs"][1]["damaged"] == 10);
}

TEST_CASE("an empty verdict is a whole document of nulls and empty lists", "[unit][report]") {
  const Json document = Json::parse(RenderJson({}, {}, ""));
  CHECK(document["outcome"] == "undecided");
  CHECK(document["verdict"]["collective"].is_null());
  CHECK(document["verdict"]["signature"].is_null());
  CHECK(document["verdict"]["evidence"] == Json::array());
  CHECK(document["inputs"] == Json::array());
  CHECK(document["job"]["versions"] == Json::object());
}

TEST_CASE("many who waited for many are told once each, not each for each", "[unit][report]") {
  std::string log;
  for (int rank = 0; rank < 200; ++rank)
    log += rank % 5 == 3 ? fmt::format("[rank{}]: epoch 3 step 17 loss 1.25\n", rank)
                         : fmt::format(
                               "[rank{0}]:[E405 06:07:08.{0:03}456 ProcessGroupNCCL.cpp:616] [Rank {0}] Watchdog "
                               "caught collective operation timeout: WorkNCCL(SeqNum=61, OpType=ALLREDUCE, "
                               "NumelIn=1024, NumelOut=1024, Timeout(ms)=600000) ran for 600012 milliseconds "
                               "before timing out.\n",
                               rank);
  const auto judged = JudgeText(log);
  const Json document = Json::parse(RenderJson(judged.timeline, judged.verdict, "1.2.3"));
  std::size_t edges = 0;
  for (const Json& line : document["lifelines"]) {
    const Json& because = line["end"]["because"];
    if (because.is_null()) continue;
    ++edges;
    CHECK(because["how"] == "waited-for");
    CHECK(because["ranks"].size() == 16);
    CHECK(because["ranks"][1] == 8);
    CHECK(because["ranks_left_out"] == 24);
  }
  CHECK(edges == 160);
}

TEST_CASE("the document has the form that a library gives it", "[unit][report]") {
  Sample sample = MakeSample();
  for (const char* text : {"", "quote \" and \\", "[ends in a bracket {", "]\n}", "caf\xc3\xa9 \xe2\x80\xae",
                           "\xff\xc3(\xe2\x82", "\x7f\x80\t\x1b"}) {
    CAPTURE(text);
    sample.verdict.summary = text;
    sample.verdict.warnings = {text, text};
    sample.timeline.versions["nccl"] = {text};
    const std::string document = RenderJson(sample.timeline, sample.verdict, "1.2.3");
    const auto ordered = nlohmann::ordered_json::parse(document);
    CHECK(document == ordered.dump(2, ' ', true) + "\n");
    const Json replaced = Json::parse(Json(text).dump(-1, ' ', true, Json::error_handler_t::replace));
    CHECK(ordered["verdict"]["summary"].get<std::string>() == replaced.get<std::string>());
  }
}

TEST_CASE("hostile text stays text", "[unit][report]") {
  const Sample sample = MakeHostileSample();
  const std::string text = RenderJson(sample.timeline, sample.verdict, "1.2.3");
  for (const char c : text) {
    const bool harmless = c == '\n' || (c >= ' ' && c <= '~');
    REQUIRE(harmless);
  }
  const Json document = Json::parse(text);
  const std::string quoted = document["verdict"]["evidence"][0]["text"];
  CHECK(quoted.find("\x1b[31mred") != std::string::npos);
  CHECK(quoted.find(std::string("nul\0 over\xe2\x80\xaeride", 15)) != std::string::npos);
  CHECK(quoted.find("bad\xef\xbf\xbd utf </script>") != std::string::npos);
}

TEST_CASE("communicators and process groups are told with what diverged", "[unit][report]") {
  Sample sample = MakeSample();
  CommunicatorRow communicator;
  communicator.comm_id = Known<std::uint64_t>{0xabcULL, Basis::kObserved};
  communicator.nranks = 2;
  CommunicatorRow::Member member;
  member.process = 1;
  member.started = member.completed = true;
  member.calls = 7;
  member.last_call = {.op = "AllReduce", .count = 4096, .datatype = 7, .redop = 0, .root = 0};
  member.last_call_at = {.input = 0, .line = 12, .offset = 0};
  communicator.members = {member};
  communicator.divergence = CommunicatorRow::Divergence{
      .number = 3, .sides = {{.call = member.last_call, .ranks = {0}, .where = {}, .text = {}}}};
  sample.timeline.communicators = {communicator};
  GroupRow group;
  group.desc = "default_pg";
  group.members[GlobalRank{5}].last_completed = -1;
  sample.timeline.groups = {group};
  const Json job = Json::parse(RenderJson(sample.timeline, sample.verdict, ""))["job"];
  CHECK(job["communicators"][0]["id"] == "0xabc");
  CHECK(job["communicators"][0]["members"][0]["state"] == "completed");
  CHECK(job["communicators"][0]["members"][0]["line"] == 12);
  CHECK(job["communicators"][0]["divergence"]["number"] == 3);
  CHECK(job["process_groups"][0]["members"][0] == Json{{"rank", 5},
                                                       {"group_rank", nullptr},
                                                       {"last_enqueued", nullptr},
                                                       {"last_completed", -1},
                                                       {"failed_work", nullptr}});
}
