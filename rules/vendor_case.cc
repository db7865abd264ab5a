// One host's or GPU's case for a vendor: what the logs say of the part, what they say it did, and what is missing.
#include "rules/vendor_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "core/host_name.h"
#include "rules/evidence.h"
#include "rules/host_states.h"
#include "rules/recovery.h"
#include "rules/vendor_artefacts.h"
#include "rules/vendor_lines.h"
#include "rules/vendor_parts.h"

namespace inquest {
namespace {

using std::string_view;

constexpr std::size_t kMostQuotes = 6, kMostLines = 4000, kMostVerdictQuotes = 12, kMostFindingQuotes = 4;

/// Kinds of events that a case is made of.
constexpr string_view kOfDevices[] = {DeviceDescribed::kKind, GpuSnapshot::kKind, GpuCondition::kKind,
                                      GpuDiag::kKind,         XidReported::kKind, SxidReported::kKind,
                                      DriverFault::kKind,     PcieError::kKind,   KernelNotice::kKind,
                                      KernelDetail::kKind,    HostFact::kKind};

bool Compares(const Timestamp& time) { return time.date == Timestamp::Date::kFull; }

bool Holds(const std::string& text, std::string_view part) {
  return !part.empty() && Lower(text).find(Lower(part)) != std::string::npos;
}

class CaseBuilder {
 public:
  CaseBuilder(const Timeline& judged, const Verdict& verdict, const Timeline& devices, const RuleBook& book,
              std::string asked, CasePart part)
      : judged_(judged), verdict_(verdict), devices_(devices), book_(book), roster_(devices) {
    case_.asked = std::move(asked);
    case_.part = std::move(part);
    if (case_.part.gpu) part_key_ = roster_.KeyOf(case_.part.host, *case_.part.gpu, 0);
  }

  VendorCase Take() {
    FindInputs();
    AddGpus();
    AddFacts();
    AddLines();
    AddErrors();
    Shorten(case_.lines);
    Shorten(case_.states);
    AddVerdict();
    AddProcesses();
    AddArtefacts();
    AddSteps();
    for (const auto& [what, count] : devices_.left_out)
      if (std::ranges::find(kOfDevices, what) != std::end(kOfDevices)) case_.left_out[what] = count;
    return std::move(case_);
  }

 private:
  bool IsOfHost(const Event& event) const { return SameHost(HostOfLine(event), case_.part.host); }

  QuoteIndex QuoteOf(const Event& event) {
    const auto [it, is_new] =
        quotes_.try_emplace({event.where.input, event.where.InputLine()}, static_cast<QuoteIndex>(case_.quotes.size()));
    if (is_new)
      case_.quotes.push_back({.where = event.where,
                              .at = event.at,
                              .from_boot = UptimeOf(event.what).has_value(),
                              .text = event.text,
                              .whole = false});
    Quote& quote = case_.quotes[it->second];
    if (!quote.at) quote.at = event.at;
    quote.from_boot = quote.from_boot || UptimeOf(event.what).has_value();
    return it->second;
  }
  QuoteIndex QuoteOf(EventIndex judged) { return QuoteOf(judged_.events[judged]); }

  /// Whose each input's lines are, where they are one host's.
  void FindInputs() {
    std::set<std::uint32_t> several;
    for (const Event& event : devices_.events) {
      if (!event.origin.host || std::holds_alternative<LogMessage>(event.what)) continue;
      if (SameHost(event.origin.host->value, case_.part.host)) inputs_.insert(event.where.input);
      const auto [it, is_new] = case_.input_hosts.try_emplace(event.where.input, *event.origin.host);
      if (is_new || SameHost(it->second.value, event.origin.host->value)) continue;
      several.insert(event.where.input);
    }
    for (const std::uint32_t input : several) case_.input_hosts.erase(input);
    for (std::uint32_t i = 0; i < devices_.inputs.size(); ++i) {
      if (inputs_.contains(i) || case_.input_hosts.contains(i)) continue;
      // A file that no format reads: by its name, or because there is one host alone.
      const InputSummary& input = devices_.inputs[i];
      const bool named = input.host
                             ? SameHost(input.host->value, case_.part.host)
                             : !case_.part.host.empty() && StandsIn(input.path, HostName(case_.part.host).Short());
      if (named || case_.part.host.empty() || (!input.host && devices_.hosts.size() == 1)) inputs_.insert(i);
    }
  }

  // ---- what it is ------------------------------------------------------------------------------------------------

  void AddGpus() {
    // The part first: it is what the case is of.
    for (const bool asked : {true, false})
      for (const auto& [key, gpu] : roster_.GpusOf(case_.part.host)) {
        if ((!case_.part.gpu || key == part_key_) != asked) continue;
        gpu_places_[key] = case_.gpus.size();
        case_.gpus.push_back({.id = gpu.id, .asked = asked, .facts = {}});
      }
  }

  void Say(std::vector<CaseFact>& facts, string_view name, const std::string& value, const Event& event) {
    const CaseProperty* property = FindCaseProperty(name);
    if (property == nullptr) return;
    auto fact = std::ranges::find(facts, name, &CaseFact::property);
    if (fact == facts.end()) {
      facts.push_back({.property = std::string(name),
                       .title = std::string(property->title),
                       .counter = property->counter,
                       .values = {}});
      fact = facts.end() - 1;
    }
    const std::string compared = ComparedValue(name, value);
    auto said = std::ranges::find_if(
        fact->values, [&](const CaseFact::Value& known) { return ComparedValue(name, known.value) == compared; });
    if (said == fact->values.end()) {
      fact->values.push_back({.value = value, .quotes = {}});
      said = fact->values.end() - 1;
    }
    const QuoteIndex quote = QuoteOf(event);
    if (said->quotes.size() < kMostQuotes && std::ranges::find(said->quotes, quote) == said->quotes.end())
      said->quotes.push_back(quote);
  }

  void AddFacts() {
    for (const Event& event : devices_.events) {
      if (!IsOfHost(event)) continue;
      if (const auto of_host = HostPropertyOf(event.what))
        Say(case_.host_facts, of_host->first, of_host->second, event);
      const auto* described = std::get_if<DeviceDescribed>(&event.what);
      if (described == nullptr) continue;
      const auto id = GpuOfLine(event.what);
      const auto gpu =
          id ? gpu_places_.find(roster_.KeyOf(case_.part.host, *id, event.where.input)) : gpu_places_.end();
      if (gpu != gpu_places_.end())
        Say(case_.gpus[gpu->second].facts, described->property, described->value, event);
      else if (!id)
        Say(case_.host_facts, described->property,
            described->id.bus_id.empty() ? described->value : described->id.bus_id + " " + described->value, event);
    }
    const auto in_order = [](const CaseFact& a, const CaseFact& b) {
      return FindCaseProperty(a.property) < FindCaseProperty(b.property);
    };
    // A GPU that nothing describes is known as some rank's alone; it is told where it was asked for by its name.
    std::erase_if(case_.gpus, [&](const CaseGpu& gpu) { return gpu.facts.empty() && !(case_.part.gpu && gpu.asked); });
    std::ranges::stable_sort(case_.host_facts, in_order);
    for (CaseGpu& gpu : case_.gpus) std::ranges::stable_sort(gpu.facts, in_order);
  }

  // ---- what was logged -------------------------------------------------------------------------------------------

  bool IsOfPart(const Event& event, const std::string& bus_id) const {
    if (!case_.part.gpu) return true;
    if (const auto id = GpuOfLine(event.what))
      return roster_.KeyOf(case_.part.host, *id, event.where.input) == part_key_;
    const GpuId& gpu = *case_.part.gpu;
    if (!bus_id.empty() && SameDevice(bus_id, gpu.bus_id)) return true;
    return (!gpu.bus_id.empty() && Holds(event.text, WithoutFunction(gpu.bus_id))) || Holds(event.text, gpu.uuid);
  }

  void AddLines() {
    std::map<QuoteIndex, std::size_t> places;
    const auto add = [&](std::vector<CaseLine>& lines, CaseLine line, const Event& event) {
      line.quote = QuoteOf(event);
      line.of_part = IsOfPart(event, line.bus_id);
      const auto [it, is_new] = places.try_emplace(line.quote, lines.size());
      if (is_new)
        lines.push_back(std::move(line));
      else if (lines[it->second].kind != "xid" && lines[it->second].kind != "sxid" &&
               !std::holds_alternative<KernelDetail>(event.what))
        lines[it->second] = std::move(line);
    };
    for (const Event& event : devices_.events)
      if (IsOfHost(event))
        if (auto line = CaseLineOf(event.what)) add(case_.lines, *std::move(line), event);
    places.clear();
    for (const Event& event : devices_.events)
      if (IsOfHost(event))
        if (auto line = CaseStateOf(event.what)) add(case_.states, *std::move(line), event);
    Order(case_.lines);
  }

  void Order(std::vector<CaseLine>& lines) const {
    const auto& quotes = case_.quotes;
    const bool comparable = std::ranges::all_of(lines, [&](const CaseLine& line) {
      const auto& at = quotes[line.quote].at;
      return at && Compares(*at) && at->zone_known == quotes[lines.front().quote].at->zone_known;
    });
    std::ranges::stable_sort(lines, [&](const CaseLine& a, const CaseLine& b) {
      const Quote &one = quotes[a.quote], &other = quotes[b.quote];
      if (comparable) return one.at->at < other.at->at;
      return one.where < other.where;
    });
  }

  /// Of very many the first and the last: of those that carry a number first, then of the others.
  void Shorten(std::vector<CaseLine>& lines) {
    if (lines.size() <= kMostLines) return;
    std::vector<bool> keep(lines.size(), false);
    std::size_t kept = 0;
    const auto take = [&](bool numbered, std::size_t most) {
      std::size_t first = 0, last = lines.size();
      for (bool front = true; first < last && kept < most; front = !front) {
        const std::size_t i = front ? first++ : --last;
        if (keep[i] || (lines[i].xid || lines[i].sxid) != numbered) continue;
        keep[i] = true;
        ++kept;
      }
    };
    take(true, kMostLines / 4 * 3);
    take(false, kMostLines);
    std::size_t next = 0;
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (!keep[i]) continue;
      if (next != i) lines[next] = std::move(lines[i]);
      ++next;
    }
    case_.left_out["line of a device"] += lines.size() - next;
    lines.resize(next);
  }

  void AddErrors() {
    std::map<std::tuple<bool, int, bool>, std::size_t> places;
    for (const CaseLine& line : case_.lines) {
      if (!line.xid && !line.sxid) continue;
      const bool is_sxid = line.sxid.has_value();
      const int number = is_sxid ? *line.sxid : *line.xid;
      const auto [it, is_new] = places.try_emplace({is_sxid, number, line.of_part}, case_.errors.size());
      if (is_new)
        case_.errors.push_back({.is_sxid = is_sxid,
                                .number = number,
                                .of_part = line.of_part,
                                .lines = 0,
                                .first = line.quote,
                                .last = line.quote,
                                .code = is_sxid ? book_.FindSxid(number) : book_.FindXid(number)});
      CaseError& error = case_.errors[it->second];
      ++error.lines;
      error.last = line.quote;
    }
    std::stable_partition(case_.errors.begin(), case_.errors.end(), [](const CaseError& row) { return row.of_part; });
  }

  // ---- what the job did there ------------------------------------------------------------------------------------

  /// The host of a rank or of a culprit.
  std::optional<std::string> HostOf(const std::optional<GlobalRank>& rank) const {
    const RankRow* row = rank ? judged_.FindRank(*rank) : nullptr;
    return row != nullptr && row->process ? judged_.processes[*row->process].host : std::nullopt;
  }
  std::string BusOf(const std::optional<GlobalRank>& rank) const {
    const RankRow* row = rank ? judged_.FindRank(*rank) : nullptr;
    return row != nullptr && row->process ? judged_.processes[*row->process].bus_id.value_or(std::string())
                                          : std::string();
  }

  bool Blames(const Culprit& culprit) const {
    const auto host = culprit.host ? culprit.host : HostOf(culprit.rank);
    if (!host || !SameHost(*host, case_.part.host)) return false;
    if (!case_.part.gpu) return true;
    const std::string bus_id = culprit.bus_id.value_or(BusOf(culprit.rank));
    if (!bus_id.empty()) return WithoutFunction(bus_id) == part_key_;
    if (culprit.gpu_index && case_.part.gpu->index) return culprit.gpu_index == case_.part.gpu->index;
    return !culprit.rank && !culprit.gpu_index;
  }

  void AddVerdict() {
    case_.blamed = verdict_.outcome == Outcome::kFailed &&
                   std::ranges::any_of(verdict_.culprits, [&](const Culprit& culprit) { return Blames(culprit); });
    for (const Citation& citation : verdict_.evidence)
      if (case_.verdict_quotes.size() < kMostVerdictQuotes) AddQuote(case_.verdict_quotes, citation);
    for (const Finding& finding : verdict_.findings) {
      if (std::ranges::none_of(finding.culprits, [&](const Culprit& culprit) { return Blames(culprit); })) continue;
      CaseFinding row{
          .finding = &finding, .decided = !verdict_.rule.empty() && finding.rule == verdict_.rule, .quotes = {}};
      for (const Citation& citation : finding.citations)
        if (row.quotes.size() < kMostFindingQuotes) AddQuote(row.quotes, citation);
      if (!row.quotes.empty()) case_.findings.push_back(std::move(row));
    }
  }
  void AddQuote(std::vector<QuoteIndex>& quotes, const Citation& citation) {
    if (citation.event >= judged_.events.size()) return;
    const QuoteIndex quote = QuoteOf(citation.event);
    if (std::ranges::find(quotes, quote) == quotes.end()) quotes.push_back(quote);
  }

  /// What a rank printed itself: its first and last line.
  struct Spoken {
    EventIndex first = 0, last = 0;
  };
  std::map<GlobalRank, Spoken> SpokenByRank() const {
    std::map<GlobalRank, Spoken> out;
    for (EventIndex i = 0; i < devices_.events.size(); ++i) {
      const Event& event = devices_.events[i];
      if (IsOfKernel(event.what) || inquest::IsOfHost(event.what)) continue;
      const auto rank = devices_.RankOf(event);
      if (!rank) continue;
      const auto [it, is_new] = out.try_emplace(rank->value, Spoken{i, i});
      if (is_new) continue;
      if (devices_.Order(i, it->second.first) < 0) it->second.first = i;
      if (!(devices_.Order(i, it->second.last) < 0)) it->second.last = i;
    }
    return out;
  }

  void AddProcesses() {
    std::map<GlobalRank, const Lifeline*> lifelines;
    for (const Lifeline& line : verdict_.lifelines)
      if (line.rank) lifelines.emplace(*line.rank, &line);
    for (const auto& [rank, spoken] : SpokenByRank()) {
      const RankRow* row = devices_.FindRank(rank);
      if (row == nullptr || !row->process) continue;
      const ProcessRow& process = devices_.processes[*row->process];
      if (!process.host || !SameHost(*process.host, case_.part.host)) continue;
      CaseProcess out{.rank = rank,
                      .pid = process.pid,
                      .bus_id = process.bus_id.value_or(std::string()),
                      .of_part = true,
                      .first = QuoteOf(devices_.events[spoken.first]),
                      .last = QuoteOf(devices_.events[spoken.last]),
                      .doing = {},
                      .doing_since = {},
                      .how = LifeEnd::How::kUnknown,
                      .said_by = {},
                      .end = {}};
      if (case_.part.gpu) out.of_part = !out.bus_id.empty() && WithoutFunction(out.bus_id) == part_key_;
      if (const auto line = lifelines.find(rank); line != lifelines.end()) AddLife(*line->second, out);
      case_.processes.push_back(std::move(out));
    }
    std::stable_partition(case_.processes.begin(), case_.processes.end(),
                          [](const CaseProcess& row) { return row.of_part; });
  }
  void AddLife(const Lifeline& line, CaseProcess& out) {
    if (!line.intervals.empty() && !line.intervals.back().end) {
      out.doing = Name(line.intervals.back().at);
      out.doing_since = QuoteOf(line.intervals.back().begin);
    }
    if (!line.end.event) return;
    out.end = QuoteOf(*line.end.event);
    out.how = line.end.how;
    out.said_by = line.end.said_by;
  }

  // ---- what is missing, and what to do ---------------------------------------------------------------------------

  /// The first line that makes the case want it; nullopt: it does not.
  std::optional<QuoteIndex> Because(WantedFor wanted) {
    for (const Event& event : devices_.events)
      if (IsOfHost(event) && (wanted == WantedFor::kSwitches ? SaysSwitches(event.what) : SaysNetwork(event.what)))
        return QuoteOf(event);
    return std::nullopt;
  }

  /// Whether the input holds something of it. A bug report holds other tools' outputs as well.
  bool IsGivenBy(const ArtefactRow& row, std::uint32_t input) const {
    const InputSummary& summary = devices_.inputs[input];
    for (const string_view format : row.formats)
      if (std::ranges::find(summary.kinds, format) != summary.kinds.end()) return true;
    return std::ranges::any_of(row.names, [&](string_view name) { return Holds(summary.path, name); });
  }

  Facts PlacesToFill() const {
    Facts facts;
    if (!case_.part.host.empty()) facts["host"] = {case_.part.host};
    if (case_.part.gpu && !case_.part.gpu->bus_id.empty()) facts["bus_id"] = {case_.part.gpu->bus_id};
    return facts;
  }
  std::string FilledCommand(string_view command) const {
    if (command.empty()) return {};
    Remedy remedy;
    remedy.command = command;
    remedy.kind = Remedy::Kind::kShell;
    return Filled(std::move(remedy), PlacesToFill()).command;
  }

  void AddArtefacts() {
    for (const ArtefactRow& row : ArtefactTable()) {
      std::optional<QuoteIndex> because;
      if (row.wanted != WantedFor::kEvery && !(because = Because(row.wanted))) continue;
      CaseArtefact artefact{.name = std::string(row.name),
                            .why = std::string(row.why),
                            .command = FilledCommand(row.command),
                            .root = row.root,
                            .given = {},
                            .because = because,
                            .not_collected = {}};
      for (const std::uint32_t input : inputs_)
        if (devices_.inputs[input].bytes > 0 && IsGivenBy(row, input)) artefact.given.push_back(input);
      for (const Event& event : devices_.events)
        if (const auto* lack = std::get_if<NotCollected>(&event.what); lack != nullptr && artefact.given.empty() &&
                                                                       !row.bundle.empty() && IsOfHost(event) &&
                                                                       Holds(lack->name, row.bundle))
          artefact.not_collected.push_back(QuoteOf(event));
      case_.artefacts.push_back(std::move(artefact));
    }
  }

  void AddSteps() {
    const auto add = [&](const StepRow& row) {
      std::optional<QuoteIndex> because;
      if (row.wanted != WantedFor::kEvery && !(because = Because(row.wanted))) return;
      const auto known = std::ranges::find(book_.steps, row.step, &AdvisedStep::name);
      Remedy first;
      if (known != book_.steps.end()) first = Under(verdict_.job.environment, known->remedy);
      case_.steps.push_back(
          {.text = first.text.empty() ? std::string(row.text) : fmt::format("{} {}", first.text, row.text),
           .command = FilledCommand(first.text.empty() ? row.command : first.command),
           .root = row.root || first.root,
           .destructive = row.destructive || first.destructive,
           .quotes = because ? std::vector{*because} : std::vector<QuoteIndex>()});
    };
    const auto table = StepTable();
    for (const StepRow& row : table)
      if (!row.behind) add(row);
    bool asked = false;
    for (const StepRow& row : table) {
      if (!row.behind) continue;
      add(row);
      if (!std::exchange(asked, true)) AddActions();
    }
  }
  /// What the reported numbers ask for, as the catalogue has it.
  void AddActions() {
    for (const CaseError& error : case_.errors) {
      const bool asks = !error.is_sxid && error.number == kRecoveryAction;
      if (error.code == nullptr || (error.code->role != ErrorCode::Role::kCause && !asks)) continue;
      if (!error.of_part && !error.is_sxid) continue;
      case_.steps.push_back(
          {.text = fmt::format("{} {}: {}", error.is_sxid ? "SXid" : "Xid", error.number, error.code->action),
           .command = {},
           .root = false,
           .destructive = false,
           .quotes = {asks ? error.last : error.first}});
    }
  }

  const Timeline& judged_;
  const Verdict& verdict_;
  const Timeline& devices_;
  const RuleBook& book_;
  PartRoster roster_;
  VendorCase case_;
  std::string part_key_;
  std::set<std::uint32_t> inputs_;  ///< of the host
  std::map<std::string, std::size_t> gpu_places_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, QuoteIndex> quotes_;
};

}  // namespace

VendorCase BuildCase(const Timeline& judged, const Verdict& verdict, const Timeline& devices, const RuleBook& book,
                     std::string asked, CasePart part) {
  return CaseBuilder(judged, verdict, devices, book, std::move(asked), std::move(part)).Take();
}

std::string TimeBasis(const Timeline& devices, const Quote& quote) {
  if (!quote.at) return {};
  // What stands at the head of the line, behind a bracket, a priority or a name; glog's and c10's behind a letter.
  constexpr std::size_t kLongestHead = 64;
  const string_view text = quote.text;
  for (std::size_t at = 0; at < std::min(text.size(), kLongestHead); ++at) {
    if (at > 0 && string_view(" [<>\t\"=,").find(text[at - 1]) == string_view::npos) continue;
    auto printed = ParseTime(text.substr(at));
    if (!printed && string_view("IWEF").find(text[at]) != string_view::npos) {
      printed = ParseC10Time(text.substr(at + 1));
      if (!printed) printed = ParseGlogTime(text.substr(at + 1));
    }
    if (!printed || printed->time.date == Timestamp::Date::kNone) continue;
    if (printed->time.date == Timestamp::Date::kFull) return "printed";
    return quote.at->date == Timestamp::Date::kFull ? "printed without a year; the year is that of lines around it"
                                                    : "printed without a year";
  }
  const bool known = quote.where.input < devices.inputs.size();
  if (quote.from_boot && known && !devices.inputs[quote.where.input].clock.empty())
    return "counted from boot, which is dated by " + devices.inputs[quote.where.input].clock;
  return "of the record that holds the line";
}

}  // namespace inquest
