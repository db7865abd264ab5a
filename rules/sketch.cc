// A picture in brief.
#include "rules/sketch.h"

#include <algorithm>
#include <cmath>

#include "rules/picture.h"

namespace inquest {
namespace {

constexpr std::size_t kMostRows = 12, kMostOfARow = 12;

template <class Rows>
void Bound(Rows& rows) {
  if (rows.size() <= kMostOfARow) return;
  const auto middle = rows.begin() + kMostOfARow / 2;
  rows.erase(middle, middle + static_cast<std::ptrdiff_t>(rows.size() - kMostOfARow));
}

/// Where moments stand, from 0 to 1: the longer a gap, the less of it.
std::vector<double> PlacesOf(const Picture& picture) {
  constexpr double kShort = 2e8;  // of a gap, in the moments' units
  std::vector<double> places(picture.moments.size());
  double place = 0;
  for (std::size_t i = 1; i < places.size(); ++i) {
    const std::int64_t gap = std::max<std::int64_t>(picture.moments[i].ns - picture.moments[i - 1].ns, 0);
    places[i] = place += std::log1p(static_cast<double>(gap) / kShort);
  }
  if (place > 0)
    for (double& one : places) one /= place;
  return places;
}

}  // namespace

Sketch SketchOf(const Picture& picture) {
  const std::vector<double> place = PlacesOf(picture);
  Sketch out;
  out.clock = picture.clock;
  const std::size_t rows = std::min(picture.folds.size(), kMostRows);
  out.rows_left_out = picture.folds.size() - rows;
  for (std::size_t i = 0; i < rows; ++i) {
    const Lane& lane = picture.lanes[picture.folds[i].lanes.front()];
    SketchRow row;
    row.who = Who(picture, picture.folds[i]);
    row.culprit = lane.culprit;
    if (lane.first && lane.last) {
      row.first = place[*lane.first];
      row.last = place[*lane.last];
    }
    for (const Stretch& stretch : lane.stretches)
      row.bars.push_back({place[stretch.begin], place[stretch.end], std::string(Name(stretch.stage)), stretch.what});
    for (const PictureMark& mark : lane.marks)
      row.marks.push_back({place[mark.moment], std::string(Name(mark.kind)), mark.what, mark.cause});
    Bound(row.bars);
    Bound(row.marks);
    out.rows.push_back(std::move(row));
  }
  return out;
}

}  // namespace inquest
