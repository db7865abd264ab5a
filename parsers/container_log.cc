// Lines as a container's process wrote them, of what its runtime wrapped and cut, while they are read.
#include "parsers/container_log.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "core/ascii.h"
#include "parsers/block.h"
#include "parsers/docker_line.h"

namespace inquest {
namespace {

constexpr std::size_t kWindow = 1024 * 1024;
constexpr std::size_t kLinesLookedAt = 256;
constexpr std::size_t kStreams = 4;  ///< stdout and stderr, of either runtime

/// Size of `2031-04-05T06:07:08.1Z ` at the front; 0 if it is none.
std::size_t TimeSize(std::string_view line) {
  constexpr std::string_view kShape = "dddd-dd-ddTdd:dd:dd";
  constexpr std::size_t kLongest = sizeof("2031-04-05T06:07:08.123456789+01:00");
  if (line.size() <= kShape.size()) return 0;
  for (std::size_t i = 0; i < kShape.size(); ++i)
    if (kShape[i] == 'd' ? line[i] < '0' || line[i] > '9' : line[i] != kShape[i]) return 0;
  const std::size_t blank = line.substr(0, kLongest).find(' ', kShape.size());
  return blank == kNowhere ? 0 : blank + 1;
}

}  // namespace

/// A line of a runtime: all that a process wrote to one stream, or a part of it.
struct ContainerLine {
  std::size_t stream = 0;
  std::string_view head, text;  ///< the envelope, CRI's, and what the process wrote
  bool goes_on = false;

  /// False: the line is no runtime's. The strings are for views that are not of the line.
  bool Read(std::string_view line, std::string& head_memory, std::string& text_memory) {
    return ReadCri(line) || ReadDocker(line, head_memory, text_memory);
  }

 private:
  bool ReadCri(std::string_view line);
  bool ReadDocker(std::string_view line, std::string& head_memory, std::string& text_memory);
};

bool ContainerLine::ReadCri(std::string_view line) {
  constexpr std::string_view kOut = "stdout ", kErr = "stderr ";
  const std::size_t time = TimeSize(line), letter = time + kOut.size();
  if (time == 0 || (line.substr(time, kOut.size()) != kOut && line.substr(time, kErr.size()) != kErr)) return false;
  const std::size_t end = std::min(line.find(' ', letter), line.size());
  if (letter >= end || (line[letter] != 'F' && line[letter] != 'P') || (end > letter + 1 && line[letter + 1] != ':'))
    return false;
  stream = line[time + 3] == 'o' ? 0 : 1;
  head = line.substr(0, std::min(end + 1, line.size()));
  text = line.substr(head.size());
  goes_on = line[letter] == 'P';
  return true;
}

bool ContainerLine::ReadDocker(std::string_view line, std::string& head_memory, std::string& text_memory) {
  if (!line.starts_with('{')) return false;
  const auto docker = ReadDockerLine(line, text_memory);
  if (!docker || !docker->whole || (docker->stream != "stdout" && docker->stream != "stderr")) return false;
  stream = docker->stream == "stdout" ? 2 : 3;
  head_memory.assign(docker->time).append(" ").append(docker->stream).append(" F ");
  if (TimeSize(head_memory) != docker->time.size() + 1) return false;
  head = head_memory;
  text = docker->text;
  goes_on = docker->partial;
  return true;
}

bool IsContainerLog(std::string_view head) {
  head = head.substr(0, kLineCap);
  std::string head_memory, text_memory;
  for (std::size_t number = 0, at = 0; number < kLinesLookedAt; ++number) {
    const std::size_t end = head.find('\n', at);
    const std::string_view line = head.substr(at, end == kNowhere ? kNowhere : end - at);
    if (ContainerLine().Read(line, head_memory, text_memory)) return true;
    if (end == kNowhere) return false;
    at = end + 1;
  }
  return false;
}

ContainerReader::ContainerReader(std::string head, bool ended, ReadBytes read)
    : read_(std::move(read)), ended_(ended), raw_(std::move(head)), end_(raw_.size()), too_long_(kStreams) {}

std::size_t ContainerReader::Fill(char* to, std::size_t room) {
  std::size_t filled = 0;
  while (filled < room) {
    if (given_ == text_.size()) {
      text_.clear();
      given_ = 0;
      if (!Advance()) break;
      continue;
    }
    const std::size_t size = std::min(room - filled, text_.size() - given_);
    std::memcpy(to + filled, text_.data() + given_, size);
    filled += size;
    given_ += size;
  }
  return filled;
}

Removed ContainerReader::TakeRemoved() { return std::exchange(removed_, {}); }

/// Takes the lines that are there, and reads more. False: there is nothing left.
bool ContainerReader::Advance() {
  for (std::size_t at = raw().find('\n'); at != kNowhere; at = raw().find('\n')) {
    TakeLine(raw().substr(0, at), true);
    Took(at + 1);
  }
  if (ended_) {
    if (raw().empty() && open_.empty()) return !text_.empty();
    if (!raw().empty()) TakeLine(raw(), false);
    Took(raw().size());
    while (!open_.empty()) Close(0);
    return true;
  }
  if (in_long_ || raw().size() > kLineCap) {
    TakeLong(raw());
    Took(raw().size());
  }
  std::copy(raw_.begin() + static_cast<std::ptrdiff_t>(at_), raw_.begin() + static_cast<std::ptrdiff_t>(end_),
            raw_.begin());
  end_ -= at_;
  at_ = 0;
  raw_.resize(std::max(raw_.size(), end_ + kReadAtOnce));
  const std::size_t got = read_(raw_.data() + end_, kReadAtOnce);
  end_ += got;
  ended_ = got < kReadAtOnce;
  return true;
}

void ContainerReader::Took(std::size_t bytes) {
  at_ += bytes;
  taken_ += bytes;
}

std::size_t ContainerReader::OpenOf(std::size_t stream) const {
  const auto it = std::find_if(open_.begin(), open_.end(), [&](const Open& open) { return open.stream == stream; });
  return it == open_.end() ? kNowhere : static_cast<std::size_t>(it - open_.begin());
}

void ContainerReader::Close(std::size_t index) {
  Open closed = std::move(open_[index]);
  open_.erase(open_.begin() + static_cast<std::ptrdiff_t>(index));
  std::string& before = index == 0 ? text_ : open_[index - 1].after;
  before.append(closed.line).append("\n").append(closed.after);
}

void ContainerReader::Expire() {
  for (std::size_t i = open_.size(); i-- > 0;)
    if (taken_ - open_[i].began > kWindow) Close(i);
}

/// Part of a line that is longer than the cap: of no stream's parts.
void ContainerReader::TakeLong(std::string_view part) {
  Expire();
  if (!in_long_) {
    ++lines_;
    ContainerLine head;
    if (const std::size_t index = head.Read(part, head_memory_, text_memory_) ? OpenOf(head.stream) : kNowhere;
        index != kNowhere)
      Close(index);
  }
  in_long_ = true;
  Keep(part);
}

/// The line is no line of the text.
void ContainerReader::Drop(bool terminated) {
  if (!terminated) return;
  if (removed_.lines.empty() || removed_.lines.back().line != lines_) removed_.lines.push_back({lines_, 0});
  ++removed_.lines.back().count;
}

/// A line begins, with what is `before` the text of its first part.
void ContainerReader::Begin(const ContainerLine& part, std::string_view before, bool terminated) {
  ++lines_;
  if (!part.goes_on || !terminated) {
    Keep(part.head);
    Keep(before);
    Keep(part.text);
    if (terminated) Keep("\n");
    return;
  }
  Open& open = open_.emplace_back();
  open.stream = part.stream;
  open.began = taken_;
  open.line.append(part.head).append(before).append(part.text);
}

void ContainerReader::GoOn(std::size_t index, const ContainerLine& part, std::string_view line, bool terminated) {
  Open& open = open_[index];
  const std::size_t bytes = line.size() + (terminated ? 1 : 0);
  const bool fits = open.line.size() + part.text.size() <= kLineCap;
  const std::size_t overwritten = fits || !terminated ? kNowhere : open.line.rfind('\r');
  if (overwritten != kNowhere) {
    const std::string rest = open.line.substr(overwritten + 1);
    open.line.resize(overwritten + 1);
    Close(index);
    Begin(part, rest, terminated);
    removed_.claimed += line.size() - part.head.size() - part.text.size();
    return;
  }
  Drop(terminated);
  open.line += part.text;
  removed_.claimed += bytes - part.text.size();
  too_long_[part.stream] = !fits && part.goes_on;
  if (!part.goes_on || !fits) Close(index);
}

void ContainerReader::TakeLine(std::string_view line, bool terminated) {
  if (in_long_ || line.size() > kLineCap) {
    TakeLong(line);
    if (terminated) Keep("\n");
    in_long_ = false;
    return;
  }
  Expire();
  ContainerLine part;
  if (!part.Read(line, head_memory_, text_memory_)) {
    ++lines_;
    Keep(line);
    if (terminated) Keep("\n");
    return;
  }
  if (const std::size_t index = OpenOf(part.stream); index != kNowhere) {
    GoOn(index, part, line, terminated);
  } else if (too_long_[part.stream]) {
    Drop(terminated);
    removed_.damaged += line.size() + (terminated ? 1 : 0);
    too_long_[part.stream] = part.goes_on;
  } else {
    Begin(part, {}, terminated);
    removed_.claimed += line.size() - part.head.size() - part.text.size();
  }
}

}  // namespace inquest
