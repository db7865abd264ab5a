// What the page's script draws: lanes, moments and texts, as compact JSON.
#include <algorithm>
#include <map>

#include "core/ascii.h"
#include "report/html/parts.h"
#include "report/json_value.h"
#include "report/terminal.h"

namespace inquest {
namespace {

// A page of 4,096 ranks is to stay below 2 MB, whatever they printed.
constexpr std::size_t kMostLanes = 6144, kTextBytes = 600'000, kMarkBytes = 480'000;

/// Numbers and texts that are given out once each, in the order in which they came.
template <class Value>
class Numbering {
 public:
  std::size_t Of(const Value& value) {
    const auto [it, is_new] = numbers_.try_emplace(value, values_.size());
    if (is_new) values_.push_back(value);
    return it->second;
  }
  const std::vector<Value>& values() const { return values_; }

 private:
  std::map<Value, std::size_t> numbers_;
  std::vector<Value> values_;
};

std::string Quoted(std::string_view text) {
  std::string out;
  AppendJsonText(text, out);
  return out;
}

/// `[1,2,3]` piece by piece.
class DataRow {
 public:
  DataRow& Add(std::string_view value) {
    text_ += text_.empty() ? "[" : ",";
    text_ += value;
    return *this;
  }
  DataRow& Add(std::int64_t number) { return Add(fmt::format("{}", number)); }
  DataRow& Add(std::size_t number) { return Add(static_cast<std::int64_t>(number)); }
  std::string Take() { return text_.empty() ? "[]" : std::move(text_) + "]"; }

 private:
  std::string text_;
};

class Data {
 public:
  Data(const Timeline& timeline, const Picture& picture) : timeline_(timeline), picture_(picture) {
    used_.resize(picture.moments.size());
  }

  std::string Take() {
    DataRow folds, lanes, links;
    std::size_t shown = 0;
    // A lane that stands for its fold is shown in any case; so the others come behind all of those.
    std::size_t room = kMostLanes > picture_.folds.size() ? kMostLanes - picture_.folds.size() : 0;
    std::vector<std::uint32_t> order;
    for (const LaneFold& fold : picture_.folds) {
      if (shown++ >= kMostLanes) break;
      const std::size_t others = std::min(room, fold.lanes.size() - 1);
      room -= others;
      order.insert(order.end(), fold.lanes.begin(), fold.lanes.begin() + static_cast<std::ptrdiff_t>(others + 1));
      folds.Add(DataRow().Add(Quoted(Reveal(Who(picture_, fold)))).Add(fold.lanes.size()).Add(others + 1).Take());
      Use(picture_.lanes[fold.lanes.front()]);
    }
    for (const PictureLink& link : picture_.links) used_[link.from] = used_[link.to] = true;
    std::size_t marks_bytes = 0;
    for (const std::uint32_t i : order) {
      const Lane& lane = picture_.lanes[i];
      std::string row = ToRow(lane, marks_bytes > kMarkBytes && !IsUsed(lane));
      marks_bytes += row.size();
      lanes.Add(row);
    }
    // Now it is known which moments are spoken of; they are numbered anew.
    DataRow t, in, line;
    std::string how;
    std::int64_t last = 0;
    const std::int64_t base = picture_.moments.empty() ? 0 : picture_.moments.front().ns / 1000;
    for (std::uint32_t i = 0; i < used_.size(); ++i) {
      if (!used_[i]) continue;
      const Moment& moment = picture_.moments[i];
      const SourcePos& where = timeline_.events[moment.event].where;
      const std::int64_t now = moment.ns / 1000 - base;
      t.Add(now - last);
      last = now;
      in.Add(std::size_t{where.input});
      line.Add(where.InputLine());
      how += Name(moment.how).front();
      ids_.push_back(i);
    }
    for (const PictureLink& link : picture_.links)
      links.Add(DataRow().Add(std::size_t{link.from}).Add(std::size_t{link.to}).Add(Word(link.why)).Take());
    const std::string texts = Texts(order);
    std::string out = fmt::format(
        R"({{"clock":{},"zone":{},"date":{},"timed":{},"base":{},"how":"{}","t":{},"in":{},"ln":{},"id":{},)",
        picture_.clock, picture_.zone_known, static_cast<int>(picture_.date), picture_.mostly_timed, base, how,
        t.Take(), in.Take(), line.Take(), Ids());
    out += fmt::format(R"("folds":{},"lanes":{},"links":{},{},"words":{},"inputs":{},"hosts":{}}})", folds.Take(),
                       lanes.Take(), links.Take(), texts, List(words_.values()), Inputs(), List(hosts_.values()));
    return EscapeScript(out);
  }

 private:
  std::size_t Word(const std::string& text) { return words_.Of(Reveal(text)); }
  static std::string List(const std::vector<std::string>& texts) {
    DataRow row;
    for (const std::string& text : texts) row.Add(Quoted(text));
    return row.Take();
  }
  std::string Inputs() const {
    DataRow row;
    for (const InputSummary& input : timeline_.inputs) row.Add(Quoted(Reveal(input.path)));
    return row.Take();
  }
  /// Of each moment by how much its number is above the one in front of it.
  std::string Ids() const {
    DataRow row;
    std::size_t last = 0;
    for (const std::size_t id : ids_) {
      row.Add(id - last);
      last = id;
    }
    return row.Take();
  }
  void Use(const Lane& lane) {
    for (const Stretch& stretch : lane.stretches) used_[stretch.begin] = used_[stretch.end] = true;
    for (const PictureMark& mark : lane.marks) used_[mark.moment] = true;
    for (const auto& moment : {lane.first, lane.last, lane.ended})
      if (moment) used_[*moment] = true;
  }
  bool IsUsed(const Lane& lane) const {
    return std::ranges::all_of(lane.marks, [&](const PictureMark& mark) { return used_[mark.moment]; });
  }
  static std::int64_t OrNone(const std::optional<std::uint32_t>& moment) { return moment ? std::int64_t{*moment} : -1; }

  std::string ToRow(const Lane& lane, bool brief) {
    if (!brief) Use(lane);
    DataRow stretches, marks;
    if (!brief) {
      for (const Stretch& stretch : lane.stretches)
        stretches.Add(static_cast<std::int64_t>(stretch.stage))
            .Add(Word(stretch.what))
            .Add(std::size_t{stretch.begin})
            .Add(std::size_t{stretch.end})
            .Add(std::int64_t{stretch.open});
      for (const PictureMark& mark : lane.marks)
        marks.Add(static_cast<std::int64_t>(mark.kind))
            .Add(Word(mark.what))
            .Add(std::size_t{mark.moment})
            .Add(std::int64_t{mark.cause});
    }
    return DataRow()
        .Add(static_cast<std::int64_t>(lane.of))
        .Add(lane.rank ? fmt::format("{}", lane.rank->value) : Quoted(Reveal(lane.name)))
        .Add(lane.host ? static_cast<std::int64_t>(hosts_.Of(Reveal(*lane.host))) : -1)
        .Add(lane.pid.value_or(0))
        .Add(std::int64_t{lane.culprit})
        .Add(lane.why.empty() ? -1 : static_cast<std::int64_t>(Word(lane.why)))
        .Add(brief ? -1 : OrNone(lane.first))
        .Add(brief ? -1 : OrNone(lane.last))
        .Add(brief ? -1 : OrNone(lane.ended))
        .Add(static_cast<std::int64_t>(lane.how))
        .Add(brief ? lane.left_out + lane.marks.size() : lane.left_out)
        .Add(stretches.Take())
        .Add(marks.Take())
        .Take();
  }

  /// Lines as their words and their numbers: alike ranks print the same words. Those that stand for a fold come first.
  std::string Texts(const std::vector<std::uint32_t>& order) {
    Numbering<std::string> forms;
    std::map<std::uint32_t, std::string> texts;
    std::size_t bytes = 0;
    const auto add = [&](std::uint32_t moment) {
      if (bytes > kTextBytes || !used_[moment] || texts.contains(moment)) return;
      const Event& event = timeline_.events[picture_.moments[moment].event];
      std::string form, numbers;
      bool in_number = false;
      for (const char c : Shortened(event.text, kShortened)) {
        const bool digit = IsDigit(c);
        if (digit && !in_number) {
          form += '\x01';
          if (!numbers.empty()) numbers += ' ';
        }
        (digit ? numbers : form) += c;
        in_number = digit;
      }
      const std::size_t known = forms.values().size(), number = forms.Of(form);
      if (number == known) bytes += form.size();
      texts[moment] = DataRow().Add(number).Add(Quoted(numbers)).Take();
      bytes += texts[moment].size() + 10;
    };
    for (const LaneFold& fold : picture_.folds) {
      const Lane& lane = picture_.lanes[fold.lanes.front()];
      for (const PictureMark& mark : lane.marks) add(mark.moment);
      for (const Stretch& stretch : lane.stretches) add(stretch.begin);
    }
    for (const PictureLink& link : picture_.links) add(link.from), add(link.to);
    for (const std::uint32_t i : order)
      for (const PictureMark& mark : picture_.lanes[i].marks) add(mark.moment);
    std::string out;
    for (const auto& [moment, text] : texts) out += fmt::format("{}\"{}\":{}", out.empty() ? "" : ",", moment, text);
    return fmt::format(R"("texts":{{{}}},"forms":{})", out, List(forms.values()));
  }

  const Timeline& timeline_;
  const Picture& picture_;
  std::vector<bool> used_;
  std::vector<std::size_t> ids_;
  Numbering<std::string> words_, hosts_;
};

}  // namespace

std::string PictureData(const Timeline& timeline, const Picture& picture) { return Data(timeline, picture).Take(); }

namespace {

/// `02:29:41`, or the place in its file where no clock is known.
std::string When(const Timeline& timeline, const Picture& picture, std::uint32_t moment) {
  const Moment& m = picture.moments[moment];
  if (!picture.clock || m.how == Moment::How::kPlace || m.how == Moment::How::kAhead)
    return fmt::format("line {}", timeline.events[m.event].where.InputLine());
  return FormatClock({.at = std::chrono::sys_time<std::chrono::nanoseconds>(std::chrono::nanoseconds(m.ns))});
}

}  // namespace

Html ChainInWords(const Timeline& timeline, const Picture& picture) {
  if (picture.links.empty()) return {};
  std::vector<PictureLink> links = picture.links;
  std::ranges::stable_sort(links, {}, &PictureLink::to);
  std::string items;
  for (const PictureLink& link : links) {
    const SourcePos& where = timeline.events[picture.moments[link.to].event].where;
    items += Markup("<li><time>{}</time> {} <a class=\"place\" href=\"#l{}-{}\">{}:{}</a></li>",
                    When(timeline, picture, link.to), link.why, where.input, where.InputLine(),
                    timeline.inputs[where.input].path, where.InputLine())
                 .markup;
  }
  return Markup("<h3>What followed from the first cause</h3><ol class=\"chain\">{}</ol>", Html{items});
}

Html PictureInWords(const Timeline& timeline, const Picture& picture) {
  constexpr std::size_t kMostRows = 200;
  std::string rows;
  const auto at = [&](std::uint32_t moment) { return When(timeline, picture, moment); };
  for (std::size_t i = 0; i < std::min(picture.folds.size(), kMostRows); ++i) {
    const Lane& lane = picture.lanes[picture.folds[i].lanes.front()];
    std::string did;
    const auto add = [&](std::string text) { did += (did.empty() ? "" : "; ") + std::move(text); };
    std::vector<std::pair<std::uint32_t, std::string>> parts;
    for (const Stretch& stretch : lane.stretches)
      if (stretch.stage != Stage::kErrored)
        parts.emplace_back(stretch.begin, fmt::format("{}{} {}–{}", Name(stretch.stage),
                                                      stretch.stage == Stage::kWaiting      ? " in " + stretch.what
                                                      : stretch.what == Name(stretch.stage) ? ""
                                                                                            : " (" + stretch.what + ")",
                                                      at(stretch.begin), at(stretch.end)));
    for (const PictureMark& mark : lane.marks) parts.emplace_back(mark.moment, mark.what + " " + at(mark.moment));
    std::ranges::stable_sort(parts, {}, [](const auto& part) { return part.first; });
    constexpr std::size_t kMostParts = 12;
    for (std::size_t k = 0; k < parts.size() && k < kMostParts; ++k) add(parts[k].second);
    if (parts.size() > kMostParts) add(fmt::format("and {} more", parts.size() - kMostParts));
    if (!lane.last) add("no line of it was given");
    rows += Markup("<tr{}><th scope=\"row\">{}</th><td>{}</td></tr>", Html{lane.culprit ? " class=\"culprit\"" : ""},
                   Who(picture, picture.folds[i]), did)
                .markup;
  }
  if (picture.folds.size() > kMostRows)
    rows += Markup("<tr><td colspan=\"2\">and {} more rows</td></tr>", picture.folds.size() - kMostRows).markup;
  return Markup(
      "<table class=\"words\"><thead><tr><th scope=\"col\">Who</th><th scope=\"col\">What, and when</th></tr></thead>"
      "<tbody>{}</tbody></table>",
      Html{rows});
}

}  // namespace inquest
