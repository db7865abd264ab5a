// Inputs of earlier starts of the job.
#include "timeline/generations.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "timeline/input_name.h"
#include "timeline/shape.h"

namespace inquest {
namespace {

constexpr std::size_t kMostRanks = 4096;         ///< of an input, that are remembered
constexpr std::size_t kMostCommunicators = 256;  ///< the same

/// The number that begins at a place, where one does.
std::optional<std::uint64_t> NumberAt(std::string_view text, std::size_t at) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data() + std::min(at, text.size()), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

/// What a name says of the start that wrote it: of which family of files, and the how-manieth.
struct Numbered {
  std::string family;
  std::uint64_t number = 0;
};

/// torchelastic: `<log dir>/<run id>/attempt_1/0/stderr.log`.
std::optional<Numbered> ByAttemptFolder(std::string_view path) {
  constexpr std::string_view kFolder = "attempt_";
  const std::size_t at = path.rfind(kFolder);
  if (at == std::string_view::npos || (at > 0 && path[at - 1] != '/')) return std::nullopt;
  const auto number = NumberAt(path, at + kFolder.size());
  if (!number || path.find('/', at) == std::string_view::npos) return std::nullopt;
  return Numbered{std::string(path.substr(0, at)), *number};
}

/// The kubelet: `/var/log/pods/<namespace>_<pod>_<uid>/<container>/<restarts>.log`.
std::optional<Numbered> ByPodsLog(std::string_view path) {
  const std::string_view base = BaseOf(path);
  const auto number = NumberAt(base, 0);
  const bool only_number =
      number && base.find_first_not_of("0123456789") == base.find(".log") && base.ends_with(".log");
  if (!only_number || path.find("pods/") == std::string_view::npos) return std::nullopt;
  return Numbered{std::string(path.substr(0, path.size() - base.size())), *number};
}

/// Batch systems. Ids of jobs are long; an array's tasks run side by side.
std::optional<Numbered> ByJobId(std::string_view path) {
  constexpr std::size_t kDigitsOfAnId = 4;
  const auto file = BatchFileOf(path);
  if (!file || file->id.size() < kDigitsOfAnId || !file->task.empty()) return std::nullopt;
  return Numbered{std::string(file->family), NumberAt(file->id, 0).value_or(0)};
}

bool IsPrevious(std::string_view path) {
  constexpr std::string_view kWord = "previous";
  const std::string_view base = BaseOf(path);
  const std::size_t at = base.find(kWord);
  if (at == std::string_view::npos) return false;
  const auto is_letter = [&](std::size_t i) {
    return i < base.size() && ((base[i] >= 'a' && base[i] <= 'z') || (base[i] >= 'A' && base[i] <= 'Z'));
  };
  return !(at > 0 && is_letter(at - 1)) && !is_letter(at + kWord.size());
}

/// What one input of the job shows of itself.
struct Seen {
  bool of_job = false, has_end = false, has_start = false;
  std::optional<Timestamp> first, last;
  std::set<int> ranks;
  std::set<std::uint64_t> communicators;  ///< by NCCL's id, of which every start makes new ones
  std::string shape;                      ///< its path without numbers
};

std::vector<Seen> Look(const Timeline& timeline, std::span<const Told> told) {
  std::vector<Seen> inputs(timeline.inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) inputs[i].shape = ShapeOf(timeline.inputs[i].path);
  for (const Event& event : timeline.events) {
    if (IsOfHost(event.what) || IsOfKernel(event.what)) continue;
    Seen& seen = inputs[event.where.input];
    seen.of_job = true;
    seen.has_end = seen.has_end || IsDeath(event.what) || std::holds_alternative<ExceptionRaised>(event.what);
    seen.has_start = seen.has_start || std::holds_alternative<NcclVersion>(event.what) ||
                     std::holds_alternative<CommInit>(event.what);
    if (const auto* init = std::get_if<CommInit>(&event.what);
        init != nullptr && init->comm_id && seen.communicators.size() < kMostCommunicators)
      seen.communicators.insert(*init->comm_id);
    if (const auto rank = timeline.RankOf(event); rank && seen.ranks.size() < kMostRanks)
      seen.ranks.insert(rank->value.value);
    if (!event.at || event.at->date != Timestamp::Date::kFull) continue;
    if (!seen.first || event.at->at < seen.first->at) seen.first = event.at;
    if (!seen.last || event.at->at > seen.last->at) seen.last = event.at;
  }
  for (const Told& line : told) {
    Seen& seen = inputs[timeline.events[line.event].where.input];
    seen.has_start = seen.has_start || line.what == Told::What::kStart ||
                     (line.what == Told::What::kWork && line.at != Activity::kRows);
    seen.has_end = seen.has_end || (line.what == Told::What::kEnding && line.ending != EndingKind::kShell);
  }
  return inputs;
}

/// Slurm speaks of the job whose id the name of the input has.
bool SpeaksOf(const Timeline& timeline, std::uint32_t input, std::string_view id) {
  constexpr std::array<std::string_view, 5> kWords = {"JOB ", "STEP ", "job ", "StepId=", "JobId="};
  const auto [first, behind] = timeline.EventsOf(input);
  return std::ranges::any_of(std::span(timeline.events).subspan(first, behind - first), [&](const Event& event) {
    const std::string_view text = event.text;
    for (std::size_t at = text.find(id); at != text.npos; at = text.find(id, at + 1)) {
      const std::size_t end = at + id.size();
      const bool whole = end == text.size() || text[end] < '0' || text[end] > '9';
      const auto stands = [&](std::string_view word) { return text.substr(0, at).ends_with(word); };
      if (whole && std::ranges::any_of(kWords, stands)) return true;
    }
    return false;
  });
}

/// Names that users of batch systems give, `train_88123.out` beside `train_88123.err`, and that any number can have: of
/// a family in which an id has both streams, or two are spoken of in their own files, where no rank of one id is
/// another's peer, and what clocks say agrees.
std::map<std::size_t, Numbered> ByLikelyJobIds(const Timeline& timeline, const std::vector<Seen>& inputs) {
  std::map<std::string_view, std::map<std::uint64_t, std::vector<std::size_t>>> families;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto file = LikelyBatchFileOf(timeline.inputs[i].path);
    if (!file) file = BatchLogOf(timeline.inputs[i].path);
    if (!file || !file->task.empty()) continue;
    families[file->family][NumberAt(file->id, 0).value_or(0)].push_back(i);
  }
  std::map<std::size_t, Numbered> out;
  for (const auto& [family, ids] : families) {
    const auto is_pair = [&](const auto& id) {
      return id.second.size() > 1 && LikelyBatchFileOf(timeline.inputs[id.second.front()].path);
    };
    const auto is_named = [&](const auto& id) {
      return std::ranges::any_of(id.second, [&, number = std::to_string(id.first)](std::size_t i) {
        return SpeaksOf(timeline, static_cast<std::uint32_t>(i), number);
      });
    };
    if (ids.size() < 2 || (std::ranges::none_of(ids, is_pair) && std::ranges::count_if(ids, is_named) < 2)) continue;
    std::optional<Timestamp> last;
    std::optional<std::set<int>> ranks;
    bool in_order = true;
    for (const auto& [id, own] : ids) {
      const auto before = last;
      std::set<int> own_ranks;
      for (const std::size_t i : own) {
        own_ranks.insert(inputs[i].ranks.begin(), inputs[i].ranks.end());
        if (!inputs[i].first) continue;
        in_order = in_order && (!before || before->at <= inputs[i].first->at);
        if (!last || last->at < inputs[i].last->at) last = inputs[i].last;
      }
      if (own_ranks.empty()) continue;
      in_order = in_order && (!ranks || std::ranges::any_of(own_ranks, [&](int r) { return ranks->contains(r); }));
      ranks = std::move(own_ranks);
    }
    if (!in_order) continue;
    for (const auto& [id, own] : ids)
      for (const std::size_t i : own) out[i] = Numbered{std::string(family), id};
  }
  return out;
}

/// Counted from the last of each family.
std::vector<std::optional<std::size_t>> ByNames(const Timeline& timeline, const std::vector<Seen>& inputs) {
  std::vector<std::optional<Numbered>> names(inputs.size());
  std::map<std::string, std::set<std::uint64_t>> families;
  const std::map<std::size_t, Numbered> likely = ByLikelyJobIds(timeline, inputs);
  bool previous = false, others = false;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].of_job) continue;
    const std::string& path = timeline.inputs[i].path;
    for (const auto read : {&ByAttemptFolder, &ByPodsLog, &ByJobId})
      if (!names[i]) names[i] = read(path);
    if (const auto named = likely.find(i); !names[i] && named != likely.end()) names[i] = named->second;
    if (names[i]) families[names[i]->family].insert(names[i]->number);
    (IsPrevious(path) ? previous : others) = true;
  }
  std::vector<std::optional<std::size_t>> after(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (names[i]) {
      const std::set<std::uint64_t>& family = families[names[i]->family];
      after[i] = static_cast<std::size_t>(std::distance(family.upper_bound(names[i]->number), family.end()));
    } else if (inputs[i].of_job && previous && others) {
      after[i] = IsPrevious(timeline.inputs[i].path) ? 1 : 0;
    }
  }
  return after;
}

/// Names of files number ranks as well as starts: where both say whose they are, that tells.
bool AreOfOneWriter(const Seen& a, const Seen& b) {
  if (a.ranks.empty() || b.ranks.empty()) return a.shape == b.shape;
  return std::ranges::any_of(a.ranks, [&](int rank) { return b.ranks.contains(rank); });
}

/// By place among `dated`: whether an input in front of it and one from there on share a communicator.
std::vector<bool> IsInsideCommunicator(const std::vector<Seen>& inputs, std::span<const std::size_t> dated) {
  std::map<std::uint64_t, std::pair<std::size_t, std::size_t>> places;  // the first that has it, and the last
  for (std::size_t place = 0; place < dated.size(); ++place)
    for (const std::uint64_t id : inputs[dated[place]].communicators)
      places.try_emplace(id, place, place).first->second.second = place;
  std::vector<std::int64_t> opened(dated.size() + 1);
  for (const auto& [id, span] : places) {
    ++opened[span.first + 1];
    --opened[span.second + 1];
  }
  std::vector<bool> inside(dated.size());
  std::int64_t open = 0;
  for (std::size_t place = 1; place < dated.size(); ++place) inside[place] = (open += opened[place]) > 0;
  return inside;
}

std::vector<std::optional<std::size_t>> ByClocks(const std::vector<Seen>& inputs) {
  std::vector<std::optional<std::size_t>> after(inputs.size());
  std::vector<std::size_t> dated;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].of_job && inputs[i].first) dated.push_back(i);
  const auto zone = [&](std::size_t i) { return inputs[i].first->zone_known; };
  if (dated.size() < 2 || std::ranges::any_of(dated, [&](std::size_t i) { return zone(i) != zone(dated.front()); }))
    return after;
  std::ranges::sort(dated, {}, [&](std::size_t i) { return std::pair(inputs[i].first->at, i); });
  for (const std::size_t i : dated) after[i] = 0;
  const std::vector<bool> inside = IsInsideCommunicator(inputs, dated);
  std::size_t begin = 0;
  auto last = inputs[dated.front()].last->at;
  for (std::size_t next = 1; next < dated.size(); ++next) {
    const std::span<const std::size_t> earlier(dated.data() + begin, next - begin),
        later(dated.data() + next, dated.size() - next);
    const auto goes_on = [&](std::size_t a) {
      return inputs[a].has_end && std::ranges::any_of(later, [&](std::size_t b) {
               return inputs[b].has_start && AreOfOneWriter(inputs[a], inputs[b]);
             });
    };
    if (last < inputs[dated[next]].first->at && !inside[next] && std::ranges::any_of(earlier, goes_on)) {
      for (std::size_t i = 0; i < next; ++i) ++*after[dated[i]];
      begin = next;
    }
    last = std::max(last, inputs[dated[next]].last->at);
  }
  return after;
}

}  // namespace

std::vector<std::optional<std::size_t>> StartsAfter(const Timeline& timeline, std::span<const Told> told) {
  if (timeline.inputs.size() < 2) return std::vector<std::optional<std::size_t>>(timeline.inputs.size());
  const std::vector<Seen> inputs = Look(timeline, told);
  const std::vector<std::optional<std::size_t>> by_names = ByNames(timeline, inputs);
  return std::ranges::any_of(by_names, [](const auto& after) { return after.value_or(0) > 0; }) ? by_names
                                                                                                : ByClocks(inputs);
}

}  // namespace inquest
