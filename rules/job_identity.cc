// Which job it is.
#include "rules/job_identity.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/pattern.h"
#include "rules/remedy.h"
#include "timeline/course.h"
#include "timeline/input_name.h"

namespace inquest {
namespace {

constexpr std::string_view kSystems[] = {"slurm", "lsf", "pbs"};
constexpr std::size_t kLongest = 253;  ///< of a name: what Kubernetes allows

/// The number of the batch job that slurmstepd's line names.
std::optional<std::string> StoppedJob(const Event& event) {
  if (!IsSchedulersStop(event.what)) return std::nullopt;
  static const Pattern kId(R"(\b(?:JOB|STEP) (\d+)(?:[._]\w+)? ON )");
  const auto match = kId.Search(event.text);
  return match ? std::optional(std::string(match->text(1))) : std::nullopt;
}

/// Values of a group, and of those of its name with a number behind, that the rules of kind `identity` captured.
template <class Take>
void EachNamed(const Evidence& evidence, std::string_view group, const Take& take) {
  for (const LineMatch& match : evidence.matches) {
    if (evidence.book.rules[match.rule].says != Rule::Says::kIdentity) continue;
    for (const auto& [name, value] : match.groups)
      if (name.starts_with(group) && name.find_first_not_of("0123456789", group.size()) == std::string::npos &&
          !value.empty() && value.size() <= kLongest)
        take(match.event, value);
  }
}

/// `88123` of `88123.pbs01`.
std::string_view NumberOf(std::string_view id) { return id.substr(0, id.find('.')); }

/// The one that there is.
std::optional<std::string> TheOne(const std::set<std::string>& values) {
  return values.size() == 1 ? std::optional(*values.begin()) : std::nullopt;
}

/// `train` of `train-worker-0` and `train-worker-1-x7k2p`: the words that all begin with.
std::string StemOf(const std::set<std::string>& pods) {
  const std::string &first = *pods.begin(), &last = *pods.rbegin();
  std::size_t stem = 0;
  for (std::size_t i = 0; i < std::min(first.size(), last.size()) && first[i] == last[i]; ++i)
    if (first[i] == '-') stem = i;
  return first.substr(0, stem);
}

/// The pod whose line it is, as kubectl or a collector put it in front.
std::string PodOf(const Event& event) {
  constexpr std::string_view kTag = "[pod/";
  const std::string& writer = event.origin.writer;
  if (writer.starts_with(kTag)) return writer.substr(kTag.size(), writer.find('/', kTag.size()) - kTag.size());
  const auto& host = event.origin.host;
  const bool exported =
      host && host->basis == Basis::kEnvelope && !host->value.empty() && writer.starts_with(host->value + "/");
  return exported ? host->value : std::string();
}

/// What the job's inputs are called, and the pods that wrote them.
struct Sources {
  std::set<std::pair<std::string_view, std::string>> batch;  ///< system and id
  std::set<std::string> likely;                              ///< of names that others give too
  std::set<std::string> ray, pods_of_files, pods;
};

std::string_view SystemOf(const BatchFile& file) {
  static constexpr std::string_view kNames[] = {"slurm", "pbs", "batch"};
  return kNames[static_cast<std::size_t>(file.system)];
}

/// As its system writes it.
std::string IdOf(const BatchFile& file) {
  std::string id(file.id);
  if (file.task.empty()) return id;
  if (file.system == BatchFile::System::kPbs) return id.append("[").append(file.task).append("]");
  return id.append(file.system == BatchFile::System::kSlurm ? "_" : ".").append(file.task);
}

Sources Look(const Timeline& timeline) {
  Sources sources;
  std::set<std::uint32_t> inputs;
  for (const Event& event : timeline.events) {
    if (IsOfHost(event.what) || IsOfKernel(event.what)) continue;
    inputs.insert(event.where.input);
    if (std::string pod = PodOf(event); !pod.empty() && pod.size() <= kLongest) sources.pods.insert(std::move(pod));
  }
  for (const std::uint32_t input : inputs) {
    if (input >= timeline.inputs.size()) continue;
    const std::string& path = timeline.inputs[input].path;
    if (const auto file = BatchFileOf(path)) sources.batch.emplace(SystemOf(*file), IdOf(*file));
    if (const auto file = LikelyBatchFileOf(path)) sources.likely.insert(IdOf(*file));
    if (const auto ray = RaySubmissionOf(BaseOf(path))) sources.ray.emplace(*ray);
    if (const auto pod = PodOfPath(path)) sources.pods_of_files.emplace(*pod);
  }
  return sources;
}

/// A line that only Slurm's own programs print.
bool ToldBySlurm(const Timeline& timeline) {
  return std::ranges::any_of(timeline.events, [](const Event& event) {
    const auto* exit = std::get_if<ProcessExit>(&event.what);
    return (exit != nullptr && exit->reporter == Reporter::kSrun) || IsSchedulersStop(event.what);
  });
}

void TellId(JobTold& job, std::string_view system, std::string id, Basis basis) {
  job.system = system;
  job.id = Known<std::string>{std::move(id), basis, {}};
}

void TellPods(JobTold& job, const std::set<std::string>& pods, Basis basis) {
  if (const auto pod = TheOne(pods)) return TellId(job, "kubernetes", *pod, basis);
  if (std::string stem = StemOf(pods); !stem.empty()) TellId(job, "kubernetes", std::move(stem), Basis::kDerived);
}

void FindId(const Evidence& evidence, std::span<const NamedJob> named, JobTold& job) {
  if (named.size() == 1) TellId(job, named[0].system, named[0].id, Basis::kObserved);
  if (!named.empty()) return;
  const Sources sources = Look(evidence.timeline);
  if (!sources.batch.empty()) {
    if (sources.batch.size() == 1)
      TellId(job, sources.batch.begin()->first, sources.batch.begin()->second, Basis::kFileName);
    return;
  }
  std::set<std::string> submissions;
  EachNamed(evidence, "ray", [&](EventIndex, const std::string& id) { submissions.insert(id); });
  if (const auto id = TheOne(submissions)) return TellId(job, "ray", *id, Basis::kObserved);
  if (const auto id = TheOne(sources.ray)) return TellId(job, "ray", *id, Basis::kFileName);
  if (const auto id = TheOne(sources.likely))
    return TellId(job, ToldBySlurm(evidence.timeline) ? "slurm" : "batch", *id, Basis::kFileName);
  if (!sources.pods.empty()) return TellPods(job, sources.pods, Basis::kEnvelope);
  if (!sources.pods_of_files.empty()) return TellPods(job, sources.pods_of_files, Basis::kFileName);
  std::set<std::string> runs;
  EachNamed(evidence, "run", [&](EventIndex, const std::string& id) {
    if (id != "none" && id != "None") runs.insert(id);
  });
  if (const auto run = TheOne(runs)) TellId(job, "torchelastic", *run, Basis::kObserved);
}

/// Moments of one clock alone: a zone that some lines print and others do not would put them hours apart.
void FindTimes(const Timeline& timeline, JobTold& job) {
  for (const Event& event : timeline.events) {
    if (!event.at || event.at->date != Timestamp::Date::kFull || IsOfHost(event.what) || IsOfKernel(event.what))
      continue;
    if (job.start && job.start->zone_known != event.at->zone_known) {
      job.start.reset();
      job.end.reset();
      return;
    }
    if (!job.start || event.at->at < job.start->at) job.start = event.at;
    if (!job.end || event.at->at > job.end->at) job.end = event.at;
  }
}

}  // namespace

std::vector<NamedJob> JobsNamed(const Evidence& evidence) {
  std::vector<NamedJob> said;
  for (EventIndex i = 0; i < evidence.timeline.events.size(); ++i)
    if (auto id = StoppedJob(evidence.timeline.events[i])) said.push_back({i, kSystems[0], *std::move(id)});
  for (const std::string_view system : kSystems)
    EachNamed(evidence, system, [&](EventIndex event, const std::string& id) { said.push_back({event, system, id}); });
  std::ranges::stable_sort(said, {}, &NamedJob::event);
  std::vector<NamedJob> named;
  for (NamedJob& job : said) {
    const auto same = std::ranges::find_if(named, [&](const NamedJob& other) {
      return other.system == job.system && NumberOf(other.id) == NumberOf(job.id) &&
             (other.id == job.id || other.id.size() == NumberOf(other.id).size() ||
              job.id.size() == NumberOf(job.id).size());
    });
    if (same == named.end())
      named.push_back(std::move(job));
    else if (same->id.size() < job.id.size())
      same->id = std::move(job.id);
  }
  return named;
}

namespace {

/// Of Slurm and Kubernetes by what only they print, where no id of theirs is known. A job of Slurm may run in
/// containers.
std::string_view EnvironmentOf(const Evidence& evidence, const JobTold& job) {
  const auto is = [&](std::string_view name) { return name == job.system; };
  if (const auto own = std::ranges::find_if(Environments(), is); own != Environments().end()) return *own;
  if (ToldBySlurm(evidence.timeline)) return "slurm";
  bool kubernetes = false;
  EachNamed(evidence, "kubernetes", [&](EventIndex, const std::string&) { kubernetes = true; });
  return kubernetes ? "kubernetes" : "";
}

}  // namespace

JobTold IdentityOf(const Evidence& evidence, std::span<const NamedJob> named) {
  JobTold job;
  FindId(evidence, named, job);
  job.environment = EnvironmentOf(evidence, job);
  std::set<std::string> names;
  EachNamed(evidence, "name", [&](EventIndex, const std::string& name) { names.insert(name); });
  if (named.size() < 2) job.name = TheOne(names).value_or("");
  FindTimes(evidence.timeline, job);
  return job;
}

}  // namespace inquest
