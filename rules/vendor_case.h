// One host's or GPU's case for a vendor: what the logs say of the part, what they say it did, and what is missing.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "rules/rule_book.h"
#include "rules/verdict.h"
#include "timeline/timeline.h"

namespace inquest {

// Nothing stands in a case that no line says: whatever is told of the part, the job or the ranks has quotes. What a
// vendor still wants and how evidence is preserved are ours, and stand apart. It is made of two timelines of the same
// inputs: that of the verdict, which is the one that `inquest PATH` prints, and one that holds every line of the
// devices (Devices::kWhole), of which nothing is argued.

/// A line, as its file has it.
struct Quote {
  SourcePos where;
  std::optional<Timestamp> at;
  bool from_boot = false;  ///< the kernel stamped it with its uptime
  std::string text;        ///< as cited; the whole line, as soon as it was read again
  bool whole = false;      ///< it was
};
/// Into VendorCase::quotes. Each line is in it once.
using QuoteIndex = std::uint32_t;

/// Which part it is. A GPU by as much as is known of it.
struct CasePart {
  std::string host;  ///< empty: no input names it
  std::optional<GpuId> gpu;
};

/// What a property is, and who says so. More than one value: the inputs disagree, or it changed.
struct CaseFact {
  struct Value {
    std::string value;
    std::vector<QuoteIndex> quotes;  ///< the first and the last of each input, at most kMostQuotes
  };
  std::string property;  ///< `serial`
  std::string title;     ///< `Serial number`
  bool counter = false;  ///< changes by itself: its values do not disagree
  std::vector<Value> values;
};

struct CaseGpu {
  GpuId id;
  bool asked = false;           ///< it is the part, or there is no other one on the host that was asked for
  std::vector<CaseFact> facts;  ///< what it is, then its counters and states
};

/// A line that was logged of a device of the host.
struct CaseLine {
  QuoteIndex quote = 0;
  std::string kind;              ///< `xid`, `sxid`, `pcie-error`, `mlx5`, ...
  std::optional<int> xid, sxid;  ///< as the line has it
  std::string bus_id;            ///< empty: it names none
  bool of_part = true;           ///< it speaks of the GPU that was asked for, or a host was
};

/// A numbered error that some line reports, and what it means.
struct CaseError {
  bool is_sxid = false;
  int number = 0;
  bool of_part = true;
  std::uint64_t lines = 0;  ///< that report it: two logs may hold one report
  QuoteIndex first = 0, last = 0;
  const ErrorCode* code = nullptr;  ///< nullptr: no catalogue has it
};

/// A process of the job on the host.
struct CaseProcess {
  std::optional<GlobalRank> rank;
  std::optional<std::int64_t> pid;
  std::string bus_id;  ///< empty: not known
  bool of_part = true;
  QuoteIndex first = 0, last = 0;
  std::string doing;  ///< the work that its last lines tell of; empty: they tell of none
  std::optional<QuoteIndex> doing_since;
  LifeEnd::How how = LifeEnd::How::kUnknown;
  std::string said_by;
  std::optional<QuoteIndex> end;
};

/// A finding that blames the part.
struct CaseFinding {
  const Finding* finding = nullptr;
  bool decided = false;  ///< the verdict rests on it
  std::vector<QuoteIndex> quotes;
};

struct CaseArtefact {
  std::string name, why, command;
  bool root = false;
  std::vector<std::uint32_t> given;       ///< inputs
  std::optional<QuoteIndex> because;      ///< of one that not every case needs: the line that makes it one
  std::vector<QuoteIndex> not_collected;  ///< what a bundle of the host says why it lacks it
};

struct CaseStep {
  std::string text, command;
  bool root = false, destructive = false;
  std::vector<QuoteIndex> quotes;  ///< the lines that ask for it
};

struct VendorCase {
  std::string asked;  ///< as the user named it
  CasePart part;
  std::vector<CaseFact> host_facts;
  std::vector<CaseGpu> gpus;  ///< by bus id
  std::vector<CaseError> errors;
  std::vector<CaseLine> lines;   ///< by time where all have one that compares, else by place
  std::vector<CaseLine> states;  ///< what tools said of the GPUs that a GPU that is well has not
  bool blamed = false;           ///< the verdict does
  std::vector<QuoteIndex> verdict_quotes;
  std::vector<CaseFinding> findings;
  std::vector<CaseProcess> processes;
  std::vector<CaseArtefact> artefacts;
  std::vector<CaseStep> steps;
  std::map<std::uint32_t, Known<std::string>> input_hosts;  ///< of inputs whose lines are of one host
  LeftOut left_out;                                         ///< of devices' lines: more than is held
  std::vector<Quote> quotes;
};

/// `node08`, `node08:0000:4e:00.0`, `node08:4e:00.0`, `node08:3` (nvidia-smi's number), a bus id that one host alone
/// has, a UUID or a serial number. An error names the hosts that the inputs know.
Result<CasePart> FindPart(const Timeline& devices, std::string_view asked);

/// `judged`: the timeline of the verdict. Both outlive the case, and so does the book.
VendorCase BuildCase(const Timeline& judged, const Verdict& verdict, const Timeline& devices, const RuleBook& book,
                     std::string asked, CasePart part);

/// How the time of a quoted line is known: `printed`, `printed without a year`, or by what it was derived; empty: there
/// is none.
std::string TimeBasis(const Timeline& devices, const Quote& quote);

}  // namespace inquest
