// The verdict's picture for a terminal: a row for those to whom the same befell.
#include "report/lanes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "report/page.h"
#include "report/words.h"
#include "rules/picture.h"

namespace inquest {
namespace {

constexpr std::size_t kMostLaneRows = 48;

/// How something is drawn; both take one column.
struct Sign {
  std::string_view drawn, ascii, means;
};
constexpr std::array kStages = {
    Sign{"░", ":", "starting"},
    Sign{"▒", "%", "loading"},
    Sign{"█", "#", "computing"},
    Sign{"▓", "$", "saving"},
    Sign{"═", "=", "in a collective"},
    Sign{"─", "-", "waiting"},
    Sign{"╌", "~", "failed, not gone yet"},
};
constexpr std::array kMarks = {
    Sign{"G", "G", "GPU or bus"}, Sign{"M", "M", "out of memory"},  Sign{"T", "T", "time-out"},
    Sign{"E", "E", "exception"},  Sign{"x", "x", "exit or signal"}, Sign{"S", "S", "stopped"},
    Sign{"!", "!", "complaint"},  Sign{",", ",", "notice"},         Sign{"✓", "v", "ended well"},
};
constexpr Sign kAlive{"·", ".", "heard of"};

/// Columns of moments: a gap takes less room the longer it is, so that what happened at once is told apart.
class Places {
 public:
  Places(const Picture& picture, const std::vector<bool>& used, int width) : column_(picture.moments.size()) {
    constexpr double kShort = 2e8;  // of a gap, in the moments' units
    std::vector<double> places(picture.moments.size());
    double place = 0;
    const Moment* last = nullptr;
    for (std::size_t i = 0; i < picture.moments.size(); ++i) {
      if (!used[i]) continue;
      const Moment& moment = picture.moments[i];
      if (last != nullptr)
        place += std::log1p(static_cast<double>(std::max<std::int64_t>(moment.ns - last->ns, 0)) / kShort);
      places[i] = place;
      last = &moment;
    }
    for (std::size_t i = 0; i < column_.size(); ++i)
      column_[i] = place > 0 ? static_cast<int>(places[i] / place * (width - 1)) : 0;
  }
  int operator()(std::uint32_t moment) const { return column_[moment]; }

 private:
  std::vector<int> column_;
};

std::vector<bool> Used(const Picture& picture, std::size_t rows) {
  std::vector<bool> used(picture.moments.size());
  for (std::size_t i = 0; i < rows; ++i) {
    const Lane& lane = picture.lanes[picture.folds[i].lanes.front()];
    for (const auto& moment : {lane.first, lane.last, lane.ended})
      if (moment) used[*moment] = true;
    for (const Stretch& stretch : lane.stretches) used[stretch.begin] = used[stretch.end] = true;
    for (const PictureMark& mark : lane.marks) used[mark.moment] = true;
  }
  return used;
}

class Lanes {
 public:
  Lanes(const Picture& picture, const TextStyle& style, Page& page)
      : picture_(picture),
        style_(style),
        page_(page),
        rows_(std::min(picture.folds.size(), kMostLaneRows)),
        label_(LabelWidth()),
        room_(page.width() - label_ - 1),
        used_(Used(picture, rows_)),
        column_(picture, used_, room_) {}

  void Draw() {
    Ticks();
    for (std::size_t i = 0; i < rows_; ++i) Row(picture_.folds[i]);
    page_.More(picture_.folds.size(), rows_, "rows");
    page_.Blank();
    Legend();
  }

 private:
  struct Cell {
    const Sign* sign = nullptr;
    bool cause = false;
    int weight = -1;
  };

  int LabelWidth() const {
    int width = 8;
    for (std::size_t i = 0; i < rows_; ++i)
      width = std::max(width, Columns(Sanitize(Who(picture_, picture_.folds[i]))));
    return std::min(width, page_.width() / 3);
  }

  /// Where moments lie, in words, as far apart as they are wide; the day where it is another than before.
  void Ticks() {
    std::string line(static_cast<std::size_t>(label_ + 1), ' ');
    int next = label_ + 1;
    std::string day;
    for (std::uint32_t i = 0; i < used_.size(); ++i) {
      const Moment& moment = picture_.moments[i];
      const bool dated = picture_.clock && moment.how != Moment::How::kPlace && moment.how != Moment::How::kAhead;
      const int column = label_ + 1 + column_(i);
      if (!used_[i] || !dated || column < next) continue;
      Timestamp time;
      time.at = std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(moment.ns));
      time.date = picture_.date;
      std::string text = FormatTime(time);  // 2031-04-05T12:01:05
      const std::size_t clock = text.find('T');
      std::string own = clock == std::string::npos ? std::string() : text.substr(0, clock);
      text = FormatClock(time);
      if (own != day && !day.empty()) text = own.substr(own.size() - 5) + " " + text;
      if (column + static_cast<int>(text.size()) > page_.width()) break;
      day = std::move(own);
      line.resize(static_cast<std::size_t>(column), ' ');
      line += text;
      next = column + static_cast<int>(text.size()) + 2;
    }
    if (!picture_.clock) line += "in order; no line has a time";
    page_.Print("", line, style::kDim);
  }

  void Put(std::vector<Cell>& cells, int column, const Sign& sign, int weight, bool cause = false) {
    Cell& cell = cells[static_cast<std::size_t>(std::clamp(column, 0, room_ - 1))];
    if (weight < cell.weight) return;
    cell = {&sign, cause, weight};
  }

  void Row(const LaneFold& fold) {
    const Lane& lane = picture_.lanes[fold.lanes.front()];
    std::vector<Cell> cells(static_cast<std::size_t>(room_));
    if (lane.first && lane.last)
      for (int at = column_(*lane.first); at <= column_(*lane.last); ++at) Put(cells, at, kAlive, 0);
    for (const Stretch& stretch : lane.stretches)
      for (int at = column_(stretch.begin); at <= column_(stretch.end); ++at)
        Put(cells, at, kStages[static_cast<std::size_t>(stretch.stage)], 1);
    // What is first in the list of marks says more than what is behind it.
    for (const PictureMark& mark : lane.marks)
      Put(cells, column_(mark.moment), kMarks[static_cast<std::size_t>(mark.kind)],
          mark.cause ? 100 : 20 - static_cast<int>(mark.kind), mark.cause);
    const std::string who = Cut(Sanitize(Who(picture_, fold)), label_);
    std::string line = page_.Painted(who, lane.culprit ? style::kRed : style::kPlain);
    line.append(static_cast<std::size_t>(label_ - Columns(who) + 1), ' ');
    std::size_t end = cells.size();
    while (end > 0 && cells[end - 1].sign == nullptr) --end;
    for (std::size_t i = 0; i < end; ++i) {
      const Cell& cell = cells[i];
      if (cell.sign == nullptr) {
        line += ' ';
        continue;
      }
      shown_[static_cast<std::size_t>(IndexOf(*cell.sign))] = true;
      const std::string_view text = style_.utf8 ? cell.sign->drawn : cell.sign->ascii;
      line += cell.cause         ? page_.Painted(text, style::kRed)
              : cell.weight > 1  ? page_.Painted(text, style::kYellow)
              : cell.weight == 0 ? page_.Painted(text, style::kDim)
                                 : std::string(text);
    }
    if (end == 0) line += page_.Painted("no line of it was given", style::kDim);
    page_.Print("", line);
  }

  static std::size_t IndexOf(const Sign& sign) {
    for (std::size_t i = 0; i < kStages.size(); ++i)
      if (&sign == &kStages[i]) return i;
    for (std::size_t i = 0; i < kMarks.size(); ++i)
      if (&sign == &kMarks[i]) return kStages.size() + i;
    return kStages.size() + kMarks.size();
  }

  void Legend() {
    std::string text;
    const auto add = [&](const Sign& sign) {
      if (!shown_[IndexOf(sign)]) return;
      text += fmt::format("{}{} {}", text.empty() ? "" : "   ", style_.utf8 ? sign.drawn : sign.ascii, sign.means);
    };
    std::ranges::for_each(kStages, add);
    std::ranges::for_each(kMarks, add);
    add(kAlive);
    constexpr int kRows = 4;
    page_.Paragraph("", text, kRows, style::kDim);
  }

  const Picture& picture_;
  const TextStyle& style_;
  Page& page_;
  std::size_t rows_;
  int label_, room_;
  std::vector<bool> used_;
  Places column_;
  std::array<bool, kStages.size() + kMarks.size() + 1> shown_{};
};

/// What followed from the first cause, in order.
void Chain(Page& page, const Timeline& timeline, const Picture& picture) {
  constexpr std::size_t kMost = 8;
  if (picture.links.empty()) return;
  std::vector<PictureLink> links = picture.links;
  std::ranges::stable_sort(links, {}, &PictureLink::to);
  page.Heading("What followed");
  for (std::size_t i = 0; i < std::min(links.size(), kMost); ++i) {
    const Event& event = timeline.events[picture.moments[links[i].to].event];
    const std::string& path = timeline.inputs[event.where.input].path;
    const std::string place = Sanitize(fmt::format("{}:{}", path.substr(path.rfind('/') + 1), event.where.InputLine()));
    const std::string when = event.at ? FormatClock(*event.at) + "  " : std::string();
    const std::string why = FirstClause(links[i].why);
    const int room = std::max(page.width() - 4 - Columns(when) - Columns(place), 20);
    page.Line("  ", fmt::format("{}{}  {}", when, Cut(Sanitize(why), room), place));
  }
  page.More(links.size(), kMost);
}

}  // namespace

void RenderLanes(const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink) {
  const Picture picture = DrawPicture(timeline, verdict);
  Page page(context.text);
  const bool failed = verdict.outcome == Outcome::kFailed;
  page.Line(
      "",
      failed ? fmt::format("{}: {} ({})", verdict.cause, verdict.title, Percent(verdict.confidence)) : verdict.title,
      style::kBold);
  constexpr int kSummaryRows = 4;
  page.Paragraph("", verdict.summary, kSummaryRows);
  page.Blank();
  if (picture.folds.empty())
    page.Line("", "nobody is known: no line says which process, host or device wrote it");
  else
    Lanes(picture, context.text, page).Draw();
  Chain(page, timeline, picture);
  sink(page.Take());
}

}  // namespace inquest
