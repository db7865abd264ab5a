// Lanes to which the same befell share a row of the picture.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "rules/picture.h"

namespace inquest {
namespace {

/// What befell a lane, without its times: each kind of work once, in the order in which it came first.
std::string ShapeOf(const Lane& lane) {
  std::string shape = fmt::format("{} {} {}\n{}\n", static_cast<int>(lane.of), lane.culprit, lane.first.has_value(),
                                  lane.culprit ? lane.why : "");
  std::vector<std::string> parts;
  const auto add = [&](std::string part) {
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(std::move(part));
  };
  for (const Stretch& stretch : lane.stretches) {
    const bool waits = stretch.stage == Stage::kWaiting || stretch.stage == Stage::kInCollective;
    add(fmt::format("{} {}", Name(stretch.stage), waits ? stretch.what : ""));
  }
  for (const PictureMark& mark : lane.marks)
    add(fmt::format("{} {} {}", Name(mark.kind), mark.kind == PictureMark::Kind::kTimeOut ? "" : mark.what,
                    mark.cause));
  // Who ended by itself and who was ended later differ in nothing that one could do something about.
  add(std::string(Name(lane.how)));
  for (const std::string& part : parts) shape += part + '\n';
  return shape;
}

/// Of what is not a rank, those that hold more of the story first.
int Rarity(const Lane& lane) {
  if (lane.of == Lane::Of::kRank) return 0;
  return lane.of == Lane::Of::kHost || lane.of == Lane::Of::kDevice ? 1 : 2;
}

}  // namespace

std::vector<LaneFold> FoldLanes(const std::vector<Lane>& lanes) {
  std::map<std::string, LaneFold> by_shape;
  for (std::uint32_t i = 0; i < lanes.size(); ++i) by_shape[ShapeOf(lanes[i])].lanes.push_back(i);
  const auto name = [&](std::uint32_t i) {
    const Lane& lane = lanes[i];
    return std::tuple(lane.rank ? lane.rank->value : 0, lane.host.value_or(""), lane.name, lane.pid.value_or(0));
  };
  std::vector<LaneFold> folds;
  for (auto& [shape, fold] : by_shape) {
    std::ranges::sort(fold.lanes, {}, name);
    folds.push_back(std::move(fold));
  }
  const auto has_cause = [&](const LaneFold& fold) {
    return std::ranges::any_of(lanes[fold.lanes.front()].marks, [](const PictureMark& mark) { return mark.cause; });
  };
  std::ranges::sort(folds, {}, [&](const LaneFold& fold) {
    const Lane& lane = lanes[fold.lanes.front()];
    const bool by_itself = lane.of != Lane::Of::kRank && has_cause(fold);
    return std::tuple(!lane.culprit, !by_itself, Rarity(lane), fold.lanes.size(), name(fold.lanes.front()));
  });
  return folds;
}

std::string Who(const Picture& picture, const LaneFold& fold) {
  const Lane& first = picture.lanes[fold.lanes.front()];
  constexpr std::size_t kMostNames = 3;
  if (first.of == Lane::Of::kRank) {
    RankSet ranks;
    for (const std::uint32_t lane : fold.lanes) ranks.Add(picture.lanes[lane].rank->value);
    return fmt::format("rank{} {}", fold.lanes.size() > 1 ? "s" : "", FoldRanks(ranks));
  }
  std::string out;
  for (std::size_t i = 0; i < std::min(fold.lanes.size(), kMostNames); ++i) {
    const Lane& lane = picture.lanes[fold.lanes[i]];
    if (!out.empty()) out += ", ";
    if (lane.of == Lane::Of::kDevice) out += "GPU ";
    out += lane.of == Lane::Of::kProcess ? fmt::format("pid {}", *lane.pid) : lane.name;
  }
  if (fold.lanes.size() > kMostNames) out += fmt::format(" and {} more", fold.lanes.size() - kMostNames);
  return out;
}

}  // namespace inquest
