// Holds the events that the timeline is built from, within a bound that does not depend on the length of the log.
#include "timeline/kept_events.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

#include "core/event_fields.h"

namespace inquest {
namespace {

constexpr std::size_t kSameKept = 24;        ///< events of one kind, writer and meaning kept; then only the last
constexpr std::size_t kDescribedKept = 2;    ///< of what describes a device: the first and the last that say the same
constexpr std::uint64_t kRecordWeight = 16;  ///< of devices' events, where all of them are to be held
constexpr std::size_t kContextRing = 6;      ///< plain lines kept per writer: what it printed last
constexpr std::size_t kContextKept = 4096;   ///< plain lines kept because they stand near a telling one
constexpr std::size_t kLateKept = 2048;      ///< the last of them, where they are more: the last attempt is judged
// Lines, not more than are handed over whatever the blocks are.
constexpr std::uint64_t kContextBefore = 6, kContextReach = 16, kContextAfter = 8, kTailLines = 24, kHeadLines = 8;
constexpr std::size_t kRanks =
    1 << 14;  ///< of a job whose events are kept whole; what reads events may compare each with each
constexpr std::uint64_t kAbsenceWeight = 4;  ///< of events whose lack is evidence as well: a rank that did not time out

/// Events of one key say the same: kind, writer, and what tells one meaning from another. Never 0, the mark of a plain
/// line.
std::uint64_t SameKey(const Event& event) {
  const auto mix = [](std::uint64_t key, std::uint64_t value) {
    return (key ^ value) * 0x9e3779b97f4a7c15U ^ (key >> 29);
  };
  std::uint64_t key = KeyOf(event.what);
  key = mix(key, std::hash<std::optional<std::int64_t>>()(event.origin.pid));
  // How ranks are connected is told by both ends and in each file.
  if (!std::holds_alternative<ChannelsVia>(event.what)) {
    key = mix(key, event.where.input + 1);
    key = mix(key, event.origin.rank ? static_cast<std::uint64_t>(event.origin.rank->value.value) + 1 : 0);
  }
  // One file may hold the states of several hosts.
  if (IsOfHost(event.what) && event.origin.host) key = mix(key, std::hash<std::string>()(event.origin.host->value));
  return key | 1;
}

std::string WriterKey(const Event& event) {
  const Origin& from = event.origin;
  return fmt::format("{}|{}|{}|{}|{}", event.where.input, from.rank ? std::to_string(from.rank->value.value) : "",
                     from.local_rank ? std::to_string(from.local_rank->value) : "",
                     from.pid ? std::to_string(*from.pid) : "", from.writer);
}

/// By what hash the operation is known in which an event says that a rank waits.
std::optional<std::size_t> WaitsIn(const Event& event) {
  if (const auto* work = std::get_if<WorkTimedOut>(&event.what)) return HashOfWait(work->work.seq);
  const auto* status = std::get_if<GroupStatus>(&event.what);
  if (status == nullptr || !status->failed_work) return std::nullopt;
  return HashOfWait(SeqId{*status->failed_work});
}

/// Of the kernel or of a GPU: what a vendor is shown.
bool IsOfDevice(const What& what) {
  return (IsOfKernel(what) && !std::holds_alternative<LogMessage>(what)) ||
         std::holds_alternative<DeviceDescribed>(what) || std::holds_alternative<GpuCondition>(what) ||
         std::holds_alternative<GpuDiag>(what);
}

bool LackTells(const Event& event) {
  return std::holds_alternative<WorkTimedOut>(event.what) || std::holds_alternative<GroupStatus>(event.what);
}

/// How many events of one kind a rank of a large job may well print.
std::size_t PerRank(const What& what) {
  if (std::holds_alternative<CommInit>(what) || std::holds_alternative<EnvironmentSet>(what)) return 16;
  return std::holds_alternative<WorkTimedOut>(what) || std::holds_alternative<GroupStatus>(what) ||
                 std::holds_alternative<NetworkUsed>(what) || std::holds_alternative<ChannelsVia>(what)
             ? 4
             : 1;
}

/// A message that the event's text holds whole is not held twice.
void Slim(Event& event) {
  if (auto* message = std::get_if<LogMessage>(&event.what); message != nullptr && message->text.size() <= kCitedBytes)
    message->text = std::string();
}

}  // namespace

KeptEvents::KeptEvents(std::size_t bytes, std::size_t line_bytes, Devices devices)
    : bytes_limit_(bytes), line_limit_(line_bytes), devices_(devices), ring_(kContextRing) {}

std::uint16_t KeptEvents::ShelfOf(const Event& event) {
  const auto shelf_of = [&](std::uint32_t sort) {
    const std::uint32_t key = static_cast<std::uint32_t>(event.what.index()) << 24 | sort;
    const auto [it, is_new] = shelf_by_key_.try_emplace(key, static_cast<std::uint16_t>(shelves_.size()));
    if (is_new) {
      Shelf shelf;
      shelf.kind = KindOf(event.what);
      if (LackTells(event)) shelf.weight = kAbsenceWeight;
      shelf.most = kRanks * PerRank(event.what);
      if (devices_ == Devices::kWhole && IsOfDevice(event.what)) shelf.most *= kRecordWeight;
      shelves_.push_back(shelf);
    }
    return it->second;
  };
  const auto* message = std::get_if<LogMessage>(&event.what);
  if (message == nullptr || message->hits.empty()) return shelf_of(0);
  // A line that several rules ask for stands with the rarest.
  std::uint16_t rarest = shelf_of(message->hits.front() + 1);
  for (const std::uint32_t hit : message->hits)
    if (const std::uint16_t shelf = shelf_of(hit + 1); shelves_[shelf].bytes < shelves_[rarest].bytes) rarest = shelf;
  return rarest;
}

void KeptEvents::Append(Event&& event, std::uint64_t key, bool repeat) {
  Slim(event);
  Mark mark;
  mark.key = key;
  mark.bytes = static_cast<std::uint32_t>(SizeOf(event) + sizeof(Mark));
  mark.shelf = ShelfOf(event);
  mark.repeat = repeat;
  Shelf& shelf = shelves_[mark.shelf];
  ++shelf.events;
  shelf.bytes += mark.bytes;
  if (repeat) shelf.repeat_bytes += mark.bytes;
  bytes_ += mark.bytes;
  Place(std::move(event));
  marks_.resize(events_.size());
  marks_[order_.back()] = mark;
}

void KeptEvents::Place(Event&& event) {
  if (free_.empty()) {
    order_.push_back(static_cast<std::uint32_t>(events_.size()));
    events_.push_back(std::move(event));
    return;
  }
  order_.push_back(free_.back());
  free_.pop_back();
  events_[order_.back()] = std::move(event);
}

void KeptEvents::AddTelling(Event&& event) {
  Enter(event.where.input);
  // What stands in front of an exception stands in front of its traceback, whose last line may have been told before.
  const auto* raised = std::get_if<ExceptionRaised>(&event.what);
  const std::uint64_t first = raised != nullptr ? raised->begin.line : event.where.line;
  std::move(nearby_.begin(), nearby_.end(), std::back_inserter(passed_));
  nearby_.clear();
  while (passed_.size() > kContextBefore) passed_.pop_front();
  const auto near =
      std::ranges::find_if(passed_, [&](const Event& line) { return line.where.line + kContextReach >= first; });
  std::for_each(near, passed_.end(), [&](Event& line) { KeepNear(std::move(line)); });
  passed_.erase(near, passed_.end());
  telling_ = event.where;
  told_ = true;
  const std::uint64_t key = SameKey(event);
  RepeatTable::Entry& same = repeats_.At(key);
  if (auto* via = std::get_if<ChannelsVia>(&event.what); via != nullptr && same.count > 0) {
    std::get<ChannelsVia>(events_[same.last].what).count += via->count;
    return;
  }
  const bool whole = devices_ == Devices::kWhole && IsOfDevice(event.what);
  const bool describes = std::holds_alternative<DeviceDescribed>(event.what);
  if (describes ? same.count >= kDescribedKept : !whole && same.count >= kSameKept) {
    Slim(event);
    Mark& mark = marks_[same.last];
    Shelf& shelf = shelves_[mark.shelf];
    const std::uint32_t bytes = static_cast<std::uint32_t>(SizeOf(event) + sizeof(Mark));
    shelf.bytes += bytes - std::uint64_t{mark.bytes};
    if (mark.repeat) shelf.repeat_bytes += bytes - std::uint64_t{mark.bytes};
    bytes_ += bytes - std::size_t{mark.bytes};
    mark.bytes = bytes;
    events_[same.last] = std::move(event);
  } else {
    const bool repeat = ++same.count > 1 && !whole;
    Append(std::move(event), key, repeat);
    same.last = order_.back();
    const Shelf& shelf = shelves_[marks_[same.last].shelf];
    if (shelf.events > shelf.most / 4 * 5) Thin();
  }
  if (bytes_ > bytes_limit_) Thin();
}

void KeptEvents::Thin() {
  // The level at which the longest shelves are cut: what shorter ones leave, they may have.
  std::uint64_t level = ~0ULL;
  if (bytes_ > bytes_limit_) {
    std::vector<std::size_t> order(shelves_.size());
    std::iota(order.begin(), order.end(), 0);
    const auto height = [&](std::size_t i) { return shelves_[i].bytes / shelves_[i].weight; };
    std::sort(order.begin(), order.end(),
              [&](std::size_t a, std::size_t b) { return height(a) != height(b) ? height(a) < height(b) : a < b; });
    std::uint64_t left = bytes_limit_ / 4 * 3, weights = 0;
    for (const Shelf& shelf : shelves_) weights += shelf.weight;
    for (const std::size_t i : order) {
      level = left / weights;
      if (height(i) > level) break;
      left -= shelves_[i].bytes;
      weights -= shelves_[i].weight;
    }
  }
  const auto bytes_of = [&](std::size_t shelf) { return level == ~0ULL ? level : level * shelves_[shelf].weight; };
  std::vector<std::vector<std::uint32_t>> news(shelves_.size());  ///< of the shelves that give way, where in the order
  std::vector<bool> gives(shelves_.size()), keep(order_.size(), true);
  for (std::size_t s = 0; s < shelves_.size(); ++s)
    gives[s] = shelves_[s].bytes > bytes_of(s) || shelves_[s].events > shelves_[s].most;
  for (std::uint32_t i = 0; i < order_.size(); ++i) {
    const Mark& mark = marks_[order_[i]];
    if (!gives[mark.shelf]) continue;
    keep[i] = !mark.repeat;
    if (keep[i]) news[mark.shelf].push_back(i);
  }
  for (std::size_t s = 0; s < shelves_.size(); ++s) {
    // From both ends in turn, until either the bytes or the number is reached.
    const std::vector<std::uint32_t>& all = news[s];
    std::uint64_t taken = 0;
    std::size_t first = 0, last = all.size();
    for (bool front = true; first < last && first + all.size() - last < shelves_[s].most; front = !front) {
      const std::size_t i = front ? first : last - 1;
      if ((taken += marks_[order_[all[i]]].bytes) > bytes_of(s)) break;
      front ? ++first : --last;
    }
    for (std::size_t i = first; i < last; ++i) keep[all[i]] = false;
  }
  std::size_t next = 0;
  for (std::size_t i = 0; i < order_.size(); ++i) {
    const std::uint32_t place = order_[i];
    if (keep[i]) {
      order_[next++] = place;
      continue;
    }
    const Mark& mark = marks_[place];
    Shelf& shelf = shelves_[mark.shelf];
    shelf.bytes -= mark.bytes;
    if (mark.repeat) shelf.repeat_bytes -= mark.bytes;
    --shelf.events;
    ++shelf.left_out;
    if (const auto key = WaitsIn(events_[place]); key && !mark.repeat) waits_left_out_.Add(*key);
    bytes_ -= mark.bytes;
    RepeatTable::Entry* const same = mark.key == 0 ? nullptr : repeats_.Of(mark.key);
    if (same != nullptr && --same->count == 0) repeats_.Erase(mark.key);
    events_[place] = Event();
    free_.push_back(place);
  }
  order_.resize(next);
}

void KeptEvents::KeepNear(Event&& event) {
  AddLast(event);
  if (context_kept_ < kContextKept) {
    ++context_kept_;
    Append(std::move(event), 0, false);
    return;
  }
  late_.push_back(std::move(event));
  if (late_.size() > kLateKept) late_.pop_front();
}

void KeptEvents::AddContext(Event&& event) {
  Slim(event);
  auto& message = std::get<LogMessage>(event.what);
  if (message.text.size() > kCitedBytes) message.text = std::string();  // nobody asked for it
  Enter(event.where.input);
  const bool sampled = std::exchange(message.sampled, false);
  if (told_ && telling_.input == event.where.input && event.where.line <= telling_.line + kContextAfter) {
    KeepNear(std::move(event));
    return;
  }
  if (event.where.line <= kHeadLines && context_kept_ < kContextKept) {
    ++context_kept_;
    Append(std::move(event), 0, false);
    return;
  }
  if (sampled) {
    AddLast(event);
    AddSpread(event);
  }
  nearby_.push_back(std::move(event));
  while (nearby_.front().where.line + kTailLines <= nearby_.back().where.line) nearby_.pop_front();
}

void KeptEvents::Enter(std::uint32_t input) {
  if (input_ != input) EndInput();
  input_ = input;
}

/// What was printed last stays, unless there are too many inputs.
void KeptEvents::EndInput() {
  constexpr std::size_t kMostTails = 1 << 14;
  for (Event& event : nearby_)
    if (tails_.size() < kMostTails) tails_.push_back(std::move(event));
  nearby_.clear();
  passed_.clear();
  spread_from_ = spread_.size();
  spread_gap_ = 1;
}

/// What an input's writers were at, from its begin to its end, whatever was complained of: a few lines, spread over it.
void KeptEvents::AddSpread(const Event& event) {
  constexpr std::size_t kOfInput = 512, kOfAll = 1 << 14;
  if (spread_.size() >= kOfAll) return;
  const auto own = spread_.begin() + static_cast<std::ptrdiff_t>(spread_from_);
  // Of a line that was written over again and again, the last state tells.
  if (own != spread_.end() && event.where.line == spread_.back().where.line) {
    spread_.back() = event;
    return;
  }
  if (own != spread_.end() && event.where.line < spread_.back().where.line + spread_gap_) return;
  spread_.push_back(event);
  if (spread_.size() - spread_from_ <= kOfInput) return;
  spread_gap_ *= 2;
  std::optional<std::uint64_t> last;
  spread_.erase(std::remove_if(spread_.begin() + static_cast<std::ptrdiff_t>(spread_from_), spread_.end(),
                               [&](const Event& line) {
                                 const bool close = last && line.where.line < *last + spread_gap_;
                                 if (!close) last = line.where.line;
                                 return close;
                               }),
                spread_.end());
}

void KeptEvents::AddLast(Event event) {
  Writer& writer = writers_[WriterKey(event)];
  writer.spoke = ++lines_seen_;
  line_bytes_ += SizeOf(event);
  writer.lines.push_back(std::move(event));
  if (writer.lines.size() > ring_) {
    line_bytes_ -= SizeOf(writer.lines.front());
    writer.lines.pop_front();
  }
  if (line_bytes_ > line_limit_) ThinLast();
}

/// Fewer lines of each; where one of each is too much, those that have been silent for longest go.
void KeptEvents::ThinLast() {
  for (; ring_ > 1 && line_bytes_ > line_limit_ / 4 * 3; --ring_)
    for (auto& [key, writer] : writers_)
      if (writer.lines.size() >= ring_) {
        line_bytes_ -= SizeOf(writer.lines.front());
        writer.lines.pop_front();
      }
  if (line_bytes_ <= line_limit_ / 4 * 3) return;
  std::vector<std::uint64_t> spoke;
  for (const auto& [key, writer] : writers_) spoke.push_back(writer.spoke);
  std::nth_element(spoke.begin(), spoke.begin() + static_cast<std::ptrdiff_t>(spoke.size() / 2), spoke.end());
  const std::uint64_t since = spoke[spoke.size() / 2];
  writers_left_out_ += std::erase_if(writers_, [&](const auto& entry) {
    if (entry.second.spoke >= since) return false;
    for (const Event& line : entry.second.lines) line_bytes_ -= SizeOf(line);
    return true;
  });
}

std::vector<Event> KeptEvents::Take(const std::vector<InputSummary>& inputs, LeftOut& left_out) {
  EndInput();
  for (Event& event : tails_)
    if (const SourcePos& where = event.where;
        where.input >= inputs.size() || where.line + where.parts + kTailLines > inputs[where.input].lines)
      Place(std::move(event));
  tails_ = {};
  for (Event& event : late_) Place(std::move(event));
  late_.clear();
  for (Event& event : spread_) Place(std::move(event));
  spread_ = {};
  for (auto& [key, writer] : writers_) {
    for (Event& line : writer.lines) Place(std::move(line));
    writer.lines = {};
  }
  writers_.clear();
  repeats_.Clear();
  // Places that are still free are filled with what stands behind.
  for (std::uint32_t& place : order_) {
    if (place < order_.size()) continue;
    while (free_.back() >= order_.size()) free_.pop_back();
    events_[free_.back()] = std::move(events_[place]);
    place = free_.back();
    free_.pop_back();
  }
  events_.resize(order_.size());
  // Put into order in place: a sort of the events themselves takes half as much memory again.
  std::vector<std::uint32_t> order = std::move(order_);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::uint32_t a, std::uint32_t b) { return events_[a].where < events_[b].where; });
  for (std::uint32_t start = 0; start < order.size(); ++start) {
    if (order[start] == start) continue;
    Event first = std::move(events_[start]);
    std::uint32_t to = start;
    for (std::uint32_t from = order[to]; from != start; to = from, from = order[to]) {
      events_[to] = std::move(events_[from]);
      order[to] = to;
    }
    events_[to] = std::move(first);
    order[to] = to;
  }
  // A line may stand both before a telling one and last of its writer; several events of one line are several facts,
  // and a bar in front of it is another's.
  std::size_t kept = 0;
  for (std::size_t i = 0; i < events_.size(); ++i) {
    bool again = false;
    for (std::size_t k = kept; IsContext(events_[i]) && !again && k-- > 0 && events_[k].where == events_[i].where;)
      again = IsContext(events_[k]) && events_[k].text == events_[i].text;
    if (again) continue;
    if (kept != i) events_[kept] = std::move(events_[i]);
    ++kept;
  }
  events_.resize(kept);
  for (const Shelf& shelf : shelves_)
    if (shelf.left_out > 0) left_out[std::string(shelf.kind)] += shelf.left_out;
  if (writers_left_out_ > 0) left_out["writer"] += writers_left_out_;
  return std::move(events_);
}

}  // namespace inquest
