// nccl_ras.cc: what NCCL's RAS says of a running job: `ncclras`, and its JSON (-f json, NCCL 2.28 and later).
// Format:  a report of sections; printed by src/ras/client_support.cc, 2.24 to 2.30
//            DEAD
//              1 job process is considered dead (unreachable via the RAS network)
//              Process 41300 on node 10.3.0.22 managing GPU 5
//            #0-0 (8f3d2ab4c1e90d77) MISMATCH
//              Communicator ranks have different AllReduce operation counts
//              15 ranks have launched up to operation 4711
//              Rank 13 has launched up to operation 4710 -- GPU 5 managed by process 41300 on node 10.3.0.22
// Clock:   none in the text; the JSON's is local time and not read.
// Not read: the tables of nodes and communicators, status words, the events of MONITOR.
// Both forms yield the same: what most ranks had launched, and each rank that differs. A bare `Rank 5 -- GPU 1 ...` has
// what the line of several ranks above it says.
#include <simdjson.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "core/pattern.h"
#include "parsers/formats.h"
#include "parsers/formats/json_text.h"
#include "parsers/formats/messages.h"

namespace inquest {
namespace {

using State = RankProgress::State;

/// Of several reports the last counts, also where it has nothing to say: no rank, no count.
RankProgress ReportBegins() {
  RankProgress begins;
  begins.ranks = 0;
  return begins;
}

/// ` -- GPU 5 (NVML 3) managed by process 41300 on node 10.3.0.22`, `Process 41300 on node 10.3.0.22 managing GPU 5`.
void AddProcess(std::string_view text, RankProgress& progress) {
  static const Pattern kManaged(R"( -- GPU (\d+)(?: \(NVML (\d+)\))? managed by process (\d+) on node (\S+))");
  static const Pattern kProcess(R"(^\s*Process (\d+) on node (\S+) managing GPUs? ([\d,]+)(?: \(NVML ([\d,]+)\))?)");
  if (const auto managed = kManaged.Search(text)) {
    const auto gpu = managed->has(2) ? managed->number(2) : managed->number(1);
    if (gpu && *gpu < 4096) progress.gpu = static_cast<int>(*gpu);
    progress.pid = managed->number(3);
    progress.node = std::string(managed->text(4));
  } else if (const auto process = kProcess.Search(text)) {
    const std::vector<int> gpus = ReadNumbers<int>(process->has(4) ? process->text(4) : process->text(3));
    if (gpus.size() == 1) progress.gpu = gpus.front();
    progress.pid = process->number(1);
    progress.node = std::string(process->text(2));
  }
}

class NcclRasParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    const std::string_view text = record.text;
    return ReadBegin(record, out) || ReadHead(text) || ReadProcess(record, out) || ReadMany(record, out) ||
           ReadRank(record, out);
  }

  bool ReadBegin(const Record& record, EventSink& out) {
    static const Pattern kBegin(R"(^NCCL version \S+ compiled with CUDA )");
    if (!kBegin.Matches(record.text)) return false;
    below_ = {};
    counting_ = false;
    out.Add(EventFrom(record, ReportBegins()));
    return true;
  }

  /// What the lines below speak of.
  bool ReadHead(std::string_view text) {
    static const Pattern kComm(R"(^#\d+-\d+ \(([0-9a-f]+)\) (?:INCOMPLETE|ERROR|MISMATCH))");
    static const Pattern kCounts(R"(Communicator ranks have different (\w+) operation counts)");
    if (const auto comm = kComm.Search(text)) {
      below_ = {};
      below_.comm = std::string(comm->text(1));
      return true;
    }
    if (const auto counts = kCounts.Search(text)) {
      below_.state = State::kLaunched;
      below_.op =
          counts->text(1) == "collective" ? std::string() : std::string(counts->text(1));  // up to 2.25: all together
      counting_ = true;
      return true;
    }
    const auto begin = [&](State state) {
      below_.state = state;
      counting_ = false;
      return true;
    };
    if (text.find("considered dead (unreachable via the RAS network)") != std::string_view::npos) {
      below_ = {};
      return begin(State::kDead);
    }
    if (text.find("Missing communicator data from ") != std::string_view::npos) {
      if (text.find(" job process") != std::string_view::npos) below_ = {};
      return begin(State::kNotReported);
    }
    if (text.find("Communicator ranks have different status") != std::string_view::npos) {
      below_.op = "status";
      return begin(State::kLaunched);
    }
    if (text.find("nitialization error") != std::string_view::npos) return begin(State::kInitError);
    if (text.find("synchronous error") != std::string_view::npos) return begin(State::kAsyncError);
    return false;
  }

  bool ReadProcess(const Record& record, EventSink& out) {
    if (record.text.find(" managing GPU") == std::string_view::npos || below_.state == State::kLaunched ||
        !below_.comm.empty())
      return false;
    Add(record, std::nullopt, 1, std::nullopt, out);
    return true;
  }

  bool ReadMany(const Record& record, EventSink& out) {
    static const Pattern kMany(
        R"(^\s*(\d{1,7}) ranks (?:have (?:launched up to operation (\d+)|(not launched any operations)|status )|reported ))");
    const auto many = kMany.Search(record.text);
    if (!many) return false;
    count_ = many->has(3) ? std::optional<std::int64_t>(0) : many->number(2);
    if (count_ && counting_) Add(record, std::nullopt, static_cast<int>(*many->number(1)), count_, out);
    return true;
  }

  bool ReadRank(const Record& record, EventSink& out) {
    static const Pattern kRank(
        R"(^\s*Rank (\d+) (?:-- |has (?:launched up to operation (\d+)|(not launched any operations)|status )|reported ))");
    const auto match = kRank.Search(record.text);
    if (!match) return false;
    const bool bare = record.text.substr(0, record.text.find("--")).find(" has ") == std::string_view::npos;
    if (match->has(2))
      Add(record, RankOf<GroupRank>(*match, 1), 1, match->number(2), out);
    else if (match->has(3))
      Add(record, RankOf<GroupRank>(*match, 1), 1, 0, out);
    else if (counting_ && bare && count_)
      Add(record, RankOf<GroupRank>(*match, 1), 1, count_, out);
    else if (below_.state != State::kLaunched)
      Add(record, RankOf<GroupRank>(*match, 1), 1, std::nullopt, out);
    return true;
  }

  void Add(const Record& record, std::optional<GroupRank> rank, int ranks, std::optional<std::int64_t> count,
           EventSink& out) {
    RankProgress progress = below_;
    progress.rank = rank;
    progress.ranks = ranks;
    progress.count = count;
    AddProcess(record.text, progress);
    out.Add(EventFrom(record, std::move(progress)));
  }

  RankProgress below_;
  std::optional<std::int64_t> count_;  // of the line of several ranks above
  bool counting_ = false;
};

// ---- JSON ------------------------------------------------------------------------------------------------------

using Json = simdjson::dom::element;

/// Cited is what the document says of one rank, which it spreads over many lines.
Event EventSaying(const Record& record, const std::string& text, What what) {
  Record cited = record;
  cited.text = text;
  return EventFrom(cited, std::move(what));
}

constexpr std::size_t kMostDiffering = 64;  ///< ranks that differ from most, of one communicator and operation

std::int64_t NumberAt(const Json& json, const char* key, std::int64_t otherwise) {
  std::int64_t number = 0;
  return json[key].get(number) == simdjson::SUCCESS ? number : otherwise;
}
bool TrueAt(const Json& json, const char* key) {
  bool value = false;
  return json[key].get(value) == simdjson::SUCCESS && value;
}

struct JsonRank {
  int rank = 0;
  std::string host;
  std::int64_t pid = 0;
  int gpu = 0;
  auto Place() const { return std::tuple(host, pid, gpu); }
};

/// Ranks of the report's largest communicator, which is taken for the job's, by where they run.
using JobRanks = std::map<std::tuple<std::string, std::int64_t, int>, int>;

class NcclRasJsonParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    if (record.text.find("\"collective_counts\"") == std::string_view::npos &&
        record.text.find("\"missing_ranks\"") == std::string_view::npos)
      return false;
    simdjson::dom::parser parser;
    const simdjson::padded_string padded(record.text);
    Json root;
    simdjson::dom::array comms;
    if (parser.parse(padded).get(root) != simdjson::SUCCESS || root["communicators"].get(comms) != simdjson::SUCCESS)
      return false;
    if (const std::string version = TextAt(root, "nccl_version"); !version.empty())
      out.Add(EventSaying(record, "nccl_version " + version, NcclVersion{version.substr(0, version.find('+')), {}}));
    out.Add(EventSaying(record, "NCCL RAS report of " + TextAt(root, "timestamp"), ReportBegins()));
    const JobRanks job = ReadJob(comms);
    for (const Json comm : comms) ReadComm(record, comm, job, out);
    return true;
  }

  static JobRanks ReadJob(const simdjson::dom::array& comms) {
    JobRanks out;
    std::int64_t largest = 0;
    for (const Json comm : comms) {
      const std::int64_t size = NumberAt(comm, "size", 0);
      if (size <= largest) continue;
      largest = size;
      out.clear();
      for (const char* const list : {"ranks", "missing_ranks"}) {
        simdjson::dom::array ranks;
        if (comm[list].get(ranks) != simdjson::SUCCESS) continue;
        for (const Json rank : ranks)
          if (const auto who = ReadRank(rank)) out.emplace(who->Place(), who->rank);
      }
    }
    return out;
  }

  /// nullopt: no rank is named.
  static std::optional<JsonRank> ReadRank(const Json& json) {
    std::int64_t rank = 0;
    if (json["rank"].get(rank) != simdjson::SUCCESS || !IsRank(rank)) return std::nullopt;
    return JsonRank{static_cast<int>(rank), TextAt(json, "host"), NumberAt(json, "pid", 0),
                    static_cast<int>(NumberAt(json, "nvml_dev", 0) & 0xfff)};
  }

  static void Add(const Record& record, const RankProgress& progress, const JsonRank& rank, const JobRanks& job,
                  const std::string& what, EventSink& out) {
    RankProgress one = progress;
    if (const auto known = job.find(rank.Place()); known != job.end()) one.in_job.Add(known->second);
    one.rank = GroupRank{rank.rank};
    one.gpu = rank.gpu;
    if (rank.pid > 0) one.pid = rank.pid;
    one.node = rank.host;
    out.Add(EventSaying(record,
                        "Rank " + std::to_string(rank.rank) + " of communicator " + progress.comm + " " + what +
                            " -- GPU " + std::to_string(rank.gpu) + " managed by process " + std::to_string(rank.pid) +
                            " on node " + rank.host,
                        std::move(one)));
  }

  static void ReadComm(const Record& record, const Json& comm, const JobRanks& job, EventSink& out) {
    RankProgress progress;
    progress.comm = TextAt(comm, "hash");
    progress.nranks = static_cast<int>(NumberAt(comm, "size", 0) & 0xffffff);
    simdjson::dom::array ranks, missing;
    std::map<std::string, std::map<std::int64_t, std::vector<JsonRank>>> counts;  // by operation, by count
    if (comm["ranks"].get(ranks) == simdjson::SUCCESS)
      for (const Json rank : ranks) ReadStatus(record, progress, rank, job, counts, out);
    for (const auto& [op, by_count] : counts) AddCounts(record, progress, op, by_count, job, out);
    std::size_t reported = 0;
    if (comm["missing_ranks"].get(missing) == simdjson::SUCCESS)
      for (const Json rank : missing) {
        Json status;
        if (rank["status"].get(status) != simdjson::SUCCESS || ++reported > kMostDiffering) continue;
        progress.state = TrueAt(status, "considered_dead") ? State::kDead
                         : TrueAt(status, "unresponsive")  ? State::kUnresponsive
                                                           : State::kNotReported;
        if (const auto who = ReadRank(rank))
          Add(record, progress, *who, job, progress.state == State::kDead ? "is considered dead" : "did not report",
              out);
      }
  }

  static void ReadStatus(const Record& record, RankProgress progress, const Json& rank, const JobRanks& job,
                         std::map<std::string, std::map<std::int64_t, std::vector<JsonRank>>>& counts, EventSink& out) {
    const auto who = ReadRank(rank);
    if (!who) return;
    constexpr std::int64_t kSuccess = 0, kInProgress = 7;
    Json status;
    if (rank["status"].get(status) == simdjson::SUCCESS) {
      const std::int64_t init = NumberAt(status, "init_state", 0), async = NumberAt(status, "async_error", 0);
      progress.state = init != kSuccess && init != kInProgress ? State::kInitError : State::kAsyncError;
      if (progress.state == State::kInitError || (async != kSuccess && async != kInProgress))
        Add(record, progress, *who, job,
            "reported error " + std::to_string(progress.state == State::kInitError ? init : async), out);
    }
    simdjson::dom::object by_op;
    if (rank["collective_counts"].get(by_op) != simdjson::SUCCESS) return;
    for (const auto field : by_op) {
      std::int64_t count = 0;
      if (field.value.get(count) == simdjson::SUCCESS && counts.size() < 64)
        counts[std::string(field.key)][count].push_back(*who);
    }
  }

  static void AddCounts(const Record& record, RankProgress progress, const std::string& op,
                        const std::map<std::int64_t, std::vector<JsonRank>>& by_count, const JobRanks& job,
                        EventSink& out) {
    if (by_count.size() == 1 && by_count.begin()->first == 0) return;
    const auto most = std::max_element(by_count.begin(), by_count.end(),
                                       [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    progress.state = State::kLaunched;
    progress.op = op;
    progress.ranks = static_cast<int>(most->second.size());
    progress.count = most->first;
    for (const JsonRank& rank : most->second)
      if (const auto known = job.find(rank.Place()); known != job.end()) progress.in_job.Add(known->second);
    out.Add(EventSaying(record,
                        std::to_string(progress.ranks) + " ranks of communicator " + progress.comm +
                            " have launched up to " + op + " " + std::to_string(most->first),
                        progress));
    progress.ranks = 1;
    progress.in_job = {};
    std::size_t added = 0;
    for (const auto& [count, ranks] : by_count) {
      if (count == most->first) continue;
      progress.count = count;
      for (const JsonRank& rank : ranks)
        if (++added <= kMostDiffering)
          Add(record, progress, rank, job, "has launched up to " + op + " " + std::to_string(count), out);
    }
  }
};

constexpr std::string_view kNcclRasMarks[] = {
    " compiled with CUDA ",
    "Communicator ranks have different ",
    "considered dead (unreachable via the RAS",
    "Missing communicator data from ",
    " managed by process ",
    " managing GPU",
    "[process information not found]",
    " ranks have launched up to operation ",
    " ranks have not launched any operations",
    ") MISMATCH",
    ") INCOMPLETE",
    ") ERROR",
    "  Initialization error",
    "  Asynchronous error",
    " ranks reported ",
};
constexpr std::string_view kRasJsonMarks[] = {"\"collective_counts\""};

}  // namespace

extern const Format kNcclRas{.name = "nccl-ras",
                             .framing = Framing::kLines,
                             .component = Component::kNccl,
                             .marks = kNcclRasMarks,
                             .make = &Make<NcclRasParser>};
extern const Format kNcclRasJson{.name = "nccl-ras-json",
                                 .framing = Framing::kDocument,
                                 .component = Component::kNccl,
                                 .marks = kRasJsonMarks,
                                 .make = &Make<NcclRasJsonParser>};

}  // namespace inquest
