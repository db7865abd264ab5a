// A case for a vendor: which part is meant, every line of it, values that differ, and nothing without a line.
#include "report/evidence.h"

#include <algorithm>

#include "tests/catch.h"
#include "tests/support/run_job.h"

using namespace inquest;

namespace evidence_test {

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::string Query(std::string_view bus, std::string_view serial, std::string_view uuid) {
  return "==============NVSMI LOG==============\nDriver Version : 550.54.15\nAttached GPUs : 1\nGPU 00000000:" +
         std::string(bus) +
         ":00.0\n    Product Name : NVIDIA H100 80GB HBM3\n    Serial Number : " + std::string(serial) +
         "\n    GPU UUID : " + std::string(uuid) + "\n    VBIOS Version : 96.00.74.00.01\n";
}

std::string Xid(int number, std::string_view bus, std::string_view rest = "text") {
  return "Apr 05 06:07:08 node08 kernel: NVRM: Xid (PCI:0000:" + std::string(bus) + ":00): " + std::to_string(number) +
         ", " + std::string(rest) + "\n";
}

AnalysisWithDevices Read(const JobFolder& folder) {
  Result<AnalysisWithDevices> read = AnalyzeWithDevices(folder.Files(), BuiltInRules(), BuiltInSieve(), {.threads = 1});
  REQUIRE(read);
  return *std::move(read);
}

/// A case and all that it refers to.
struct Made {
  AnalysisWithDevices read;
  VendorCase what;

  EvidenceFile File() const {
    EvidenceFile file{read.devices, read.analysis.timeline, read.analysis.verdict, what, {}, {}};
    for (std::uint32_t i = 0; i < read.devices.inputs.size(); ++i) {
      file.files.push_back({.path = read.devices.inputs[i].path, .bytes = 1, .sha256 = "ab", .problem = {}});
      file.file_of.push_back(i);
    }
    return file;
  }
  template <class Renderer>
  std::string Rendered(Renderer render) const {
    std::string out;
    render(File(), ReportContext{.text = {}, .tool_version = "1.2.3"}, [&](std::string_view piece) { out += piece; });
    return out;
  }
};

std::unique_ptr<Made> Make(const std::vector<SynthFile>& files, const std::string& asked) {
  const JobFolder folder(files);
  auto made = std::make_unique<Made>(Made{Read(folder), {}});
  Result<CasePart> part = FindPart(made->read.devices, asked);
  REQUIRE(part);
  made->what = BuildCase(made->read.analysis.timeline, made->read.analysis.verdict, made->read.devices, BuiltInRules(),
                         asked, *part);
  return made;
}

const CaseFact* FindFact(const std::vector<CaseFact>& facts, std::string_view property) {
  const auto fact = std::ranges::find(facts, property, &CaseFact::property);
  return fact == facts.end() ? nullptr : &*fact;
}

TEST_CASE("a part by its host, address, number, UUID or serial number", "[unit][evidence]") {
  const JobFolder folder({{"smi-node08.txt", Query("4E", "1650522003820", "GPU-0f1e-4e")},
                          {"nvidia-smi-node08.txt", "GPU 3: NVIDIA H100 80GB HBM3 (UUID: GPU-0f1e-4e)\n"},
                          {"smi-node09.txt", Query("4E", "1650522009999", "GPU-0f1e-99")},
                          {"node08-kern.log", Xid(79, "4e")}});
  const AnalysisWithDevices read = Read(folder);
  struct Row {
    const char *asked, *host, *bus_id;
  };
  const Row rows[] = {
      {"node08", "node08", ""},
      {"node08.example.org", "node08", ""},
      {"node08:0000:4e:00.0", "node08", "0000:4e:00.0"},
      {"node08:00000000:4E:00.0", "node08", "0000:4e:00.0"},
      {"node08:4e:00.0", "node08", "0000:4e:00.0"},
      {"node08:4e:00", "node08", "0000:4e:00.0"},
      {"node08:3", "node08", "0000:4e:00.0"},
      {"node08:GPU-0F1E-4e", "node08", "0000:4e:00.0"},
      {"GPU-0f1e-99", "node09", "0000:4e:00.0"},
      {"1650522009999", "node09", "0000:4e:00.0"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.asked);
    const Result<CasePart> part = FindPart(read.devices, row.asked);
    REQUIRE(part);
    CHECK(part->host == row.host);
    CHECK((part->gpu ? part->gpu->bus_id : "") == row.bus_id);
  }
  struct Wrong {
    const char *asked, *message, *hint;
  };
  const Wrong wrong[] = {
      {"node10", "the inputs know no host or GPU 'node10'", "node08, node09"},
      {"0000:4e:00.0", "may be any of several GPUs", "node08:0000:4e:00.0, node09:0000:4e:00.0"},
      {"node08:5d:00.0", "no line speaks of a GPU '5d:00.0'", "node08:0000:4e:00.0"},
      {"node08:7", "no line speaks of a GPU '7'", "node08:0000:4e:00.0"},
      {"", "the inputs know no host or GPU ''", "node08"},
  };
  for (const Wrong& row : wrong) {
    CAPTURE(row.asked);
    const Result<CasePart> part = FindPart(read.devices, row.asked);
    REQUIRE_FALSE(part);
    CHECK(Has(part.error().message, row.message));
    CHECK(Has(part.error().hint, row.hint));
  }
}

TEST_CASE("values that differ are all told, and spellings of one value are one", "[unit][evidence]") {
  const auto made = Make({{"smi-node08.txt", Query("4E", "1650522003820", "GPU-0f1e")},
                          {"nvidia-smi-node08.txt", Query("4E", "1650522003821", "GPU-0F1E")},
                          {"nvidia-proc-node08.txt",
                           "Model: \t\t NVIDIA H100 80GB HBM3\nVideo BIOS: \t 96.00.74.00.01\n"
                           "Bus Location: \t 0000:4e:00.0\n"}},
                         "node08:4e:00.0");
  REQUIRE(made->what.gpus.size() == 1);
  const std::vector<CaseFact>& facts = made->what.gpus[0].facts;
  REQUIRE(FindFact(facts, "serial") != nullptr);
  CHECK(FindFact(facts, "serial")->values.size() == 2);
  CHECK(FindFact(facts, "uuid")->values.size() == 1);
  CHECK(FindFact(facts, "vbios_version")->values.size() == 1);
  CHECK(FindFact(facts, "vbios_version")->values[0].quotes.size() == 3);
  const std::string page = made->Rendered(RenderEvidenceHtml);
  CHECK(Has(page, "values differ"));
  CHECK(Has(page, "1650522003820"));
  CHECK(Has(page, "1650522003821"));
}

TEST_CASE("every line of a device is told, however often it was said", "[unit][evidence]") {
  std::string log;
  for (int i = 0; i < 100; ++i) log += Xid(13, "4e");
  log += Xid(79, "5d") +
         "Apr 05 06:07:09 node08 kernel: nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 LTSSM Fault "
         "Up\nApr 05 06:07:09 node08 kernel: nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Data {0x00000001}\n"
         "Apr 05 06:07:09 node09 kernel: NVRM: Xid (PCI:0000:4e:00): 48, text\n";
  const auto made = Make({{"kern.log", log}}, "node08:4e:00.0");
  CHECK(made->what.lines.size() == 103);
  CHECK(std::ranges::count_if(made->what.lines, &CaseLine::of_part) == 100);
  REQUIRE(made->what.errors.size() == 3);
  CHECK(made->what.errors[0].number == 13);
  CHECK(made->what.errors[0].lines == 100);
  CHECK(std::ranges::none_of(made->what.errors, [](const CaseError& error) { return error.number == 48; }));
  // The timeline of the verdict holds what it always held.
  CHECK(std::ranges::none_of(made->read.analysis.timeline.events,
                             [](const Event& event) { return IsForTheRecord(event.what); }));
  const auto xids = std::ranges::count_if(made->read.analysis.timeline.events, [](const Event& event) {
    const auto* xid = std::get_if<XidReported>(&event.what);
    return xid != nullptr && xid->xid == 13;
  });
  CHECK(xids < 100);
}

TEST_CASE("of very many lines those that carry a number stay, and all are counted", "[unit][evidence]") {
  std::string log;
  for (int i = 0; i < 6000; ++i) {
    log += "Apr 05 06:07:08 node08 kernel: NVRM: history " + std::to_string(i) + "\n";
    if (i % 10 == 0) log += Xid(13, "4e", std::to_string(i));
  }
  const auto made = Make({{"kern.log", log}}, "node08");
  CHECK(made->what.lines.size() == 4000);
  CHECK(std::ranges::count_if(made->what.lines, [](const CaseLine& line) { return line.xid == 13; }) == 600);
  REQUIRE(made->what.errors.size() == 1);
  CHECK(made->what.errors[0].lines == 600);
  CHECK(made->what.left_out.at("line of a device") == 2600);
}

TEST_CASE("a lost GPU without a number is no Xid", "[unit][evidence]") {
  const auto made = Make(
      {{"kern.log", "Apr 05 06:07:08 node08 kernel: NVRM: GPU 0000:4e:00.0: GPU has fallen off the bus.\n"}}, "node08");
  CHECK(made->what.errors.empty());
  CHECK(made->what.lines.size() == 1);
  for (const std::string& text : {made->Rendered(RenderEvidenceHtml), made->Rendered(RenderEvidenceText)}) {
    CHECK_FALSE(Has(text, "Xid 79"));
    CHECK(Has(text, "no line of the host that was given reports an Xid"));
  }
}

TEST_CASE("asked for is only what was not given", "[unit][evidence]") {
  const auto missing = [](const VendorCase& what) {
    std::string out;
    for (const CaseArtefact& artefact : what.artefacts)
      if (artefact.given.empty()) out += (out.empty() ? "" : ", ") + artefact.name;
    return out;
  };
  CHECK(missing(Make({{"node08-kern.log", Xid(79, "4e")}}, "node08")->what) ==
        "nvidia-bug-report.log.gz, nvidia-smi -q, system event log of the BMC, nvidia-smi nvlink, dcgmi diag");
  CHECK(
      missing(Make({{"node08-kern.log",
                     "Apr 05 06:07:09 node08 kernel: nvidia-nvswitch3: SXid (PCI:0000:05:00.0): 20034, Fatal, Link 30 "
                     "LTSSM Fault Up\nApr 05 06:07:09 node08 kernel: mlx5_core 0000:3a:00.0 ens3: Link down\n"},
                    {"node08-smi-q.txt", Query("4E", "1", "GPU-0f1e")},
                    {"node08-ipmi-sel.txt", "1 | 04/05/2031 | 06:07:08 | Power Supply #0x51 | Failure\n"}},
                   "node08")
                  ->what) ==
      "nvidia-bug-report.log.gz, nvidia-smi nvlink, dcgmi diag, fabric manager log, ibstat, mlxlink");
}

TEST_CASE("the order of steps keeps the evidence: no reset before all is saved", "[unit][evidence]") {
  const auto made = Make({{"node08-kern.log", Xid(79, "4e", "GPU has fallen off the bus.")}}, "node08");
  const auto place = [&](std::string_view words) {
    const auto step = std::ranges::find_if(
        made->what.steps, [&](const CaseStep& row) { return Has(row.text, words) || Has(row.command, words); });
    REQUIRE(step != made->what.steps.end());
    return step - made->what.steps.begin();
  };
  CHECK(place("state=drain") == 0);
  CHECK(place("nodename=node08") == 0);
  CHECK(place("journalctl") < place("nvidia-bug-report.sh"));
  CHECK(place("nvidia-bug-report.sh") < place("Only then"));
  CHECK(place("ipmitool sel") < place("Only then"));
  CHECK(place("Only then") < place("Xid 79: "));
  CHECK(place("Xid 79: ") < place("dcgmi diag"));
}

TEST_CASE("nothing of a hostile log is markup, a command or a control of the terminal", "[unit][evidence]") {
  const std::string evil = "</code><script>alert(1)</script>\x1b[31m\xe2\x80\xae$(touch pwned)";
  const auto made =
      Make({{"node08-smi.txt", Query("4E", evil, "GPU-0f1e")}, {"node08-kern.log", Xid(79, "4e", evil)}}, "node08");
  const std::string page = made->Rendered(RenderEvidenceHtml), text = made->Rendered(RenderEvidenceText);
  CHECK_FALSE(Has(page, "<script"));
  CHECK_FALSE(Has(page, "\x1b"));
  CHECK_FALSE(Has(page, "\xe2\x80\xae"));
  CHECK(Has(page, "default-src 'none'; style-src 'sha256-"));
  CHECK_FALSE(Has(text, "\x1b"));
  CHECK_FALSE(Has(text, "\xe2\x80\xae"));
  std::string json;
  RenderEvidenceJson(made->File(), "1.2.3", [&](std::string_view piece) { json += piece; });
  CHECK(std::ranges::all_of(json, [](char c) { return c == '\n' || (c >= ' ' && c < '\x7f'); }));
}

TEST_CASE("how the time of a line is known", "[unit][evidence]") {
  Timeline devices;
  devices.inputs = {{.path = "a", .kinds = {}, .clock = "lines that a log of the host prints with a date"}};
  struct Row {
    const char* text;
    bool from_boot;
    const char* basis;
  };
  const Row rows[] = {
      {"[Sat Apr  5 06:07:08 2031] NVRM: x", false, "printed"},
      {"2031-04-05T06:07:08,123456+00:00 NVRM: x", false, "printed"},
      {"Apr 05 06:07:08 node08 kernel: NVRM: x", false, "printed without a year; the year is that of lines around it"},
      {"[rank8]:[E405 05:23:22.734688346 ProcessGroupNCCL.cpp:632] x", false,
       "printed without a year; the year is that of lines around it"},
      {"[12345.678901] NVRM: x", true,
       "counted from boot, which is dated by lines that a log of the host prints with a date"},
      {"MESSAGE=NVRM: x", false, "of the record that holds the line"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(TimeBasis(devices, {.where = {}, .at = Timestamp{}, .from_boot = row.from_boot, .text = row.text}) ==
          row.basis);
  }
  CHECK(TimeBasis(devices, {.where = {}, .at = {}, .text = "x"}).empty());
}

}  // namespace evidence_test
