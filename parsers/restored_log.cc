// A log as it was printed, of what went through other hands since, while it is read.
#include "parsers/restored_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/ascii.h"
#include "parsers/block.h"

namespace inquest {
namespace {

constexpr std::size_t kMostWriters = 1000;

}  // namespace

RestoredReader::RestoredReader(Restoration restoration, std::string head, bool ended, ReadBytes read)
    : restoration_(std::move(restoration)), read_(std::move(read)), ended_(ended), raw_(std::move(head)) {}

std::size_t RestoredReader::Fill(char* to, std::size_t room) {
  std::size_t filled = 0;
  while (filled < room) {
    if (given_ == text_.size()) {
      text_.clear();
      given_ = 0;
      if (!Advance() && text_.empty()) break;
      continue;
    }
    const std::size_t size = std::min(room - filled, text_.size() - given_);
    std::memcpy(to + filled, text_.data() + given_, size);
    filled += size;
    given_ += size;
  }
  return filled;
}

Removed RestoredReader::TakeRemoved() {
  Removed removed = std::exchange(removed_, {});
  removed.claimed = taken_ - made_ - told_;
  told_ += removed.claimed;
  return removed;
}

/// Takes the lines that are there, and reads more. False: there is nothing left.
bool RestoredReader::Advance() {
  const std::string_view raw = raw_;
  for (std::size_t end = raw.find('\n', at_); end != kNowhere; end = raw.find('\n', at_)) {
    TakeLine(raw.substr(at_, end - at_), true);
    at_ = end + 1;
  }
  if (ended_) {
    const bool left = at_ < raw_.size() || open_;
    if (at_ < raw_.size()) TakeLine(raw.substr(at_), false);
    at_ = raw_.size();
    Flush();
    return left;
  }
  if (in_long_ || raw_.size() - at_ > kLineCap) {
    TakeLine(raw.substr(at_), false);
    in_long_ = true;
    at_ = raw_.size();
  }
  raw_.erase(0, std::exchange(at_, 0));
  const std::size_t before = raw_.size();
  raw_.resize(before + kReadAtOnce);
  const std::size_t got = read_(raw_.data() + before, kReadAtOnce);
  raw_.resize(before + got);
  ended_ = got < kReadAtOnce;
  return true;
}

void RestoredReader::TakeLine(std::string_view line, bool terminated) {
  const std::size_t bytes = line.size() + (terminated ? 1 : 0);
  if (in_long_ || line.size() > kLineCap) {
    Flush();
    if (!in_long_) ++lines_;
    text_ += line;
    if (terminated) text_ += '\n';
    taken_ += bytes;
    made_ += bytes;
    in_long_ = false;
    return;
  }
  taken_ += bytes;
  RestoredLine next{std::string(line.ends_with('\r') ? line.substr(0, line.size() - 1) : line), {}};
  const bool is_line = restoration_.Begin(next);
  const bool goes_on =
      is_line && open_ && line_.text.size() + next.text.size() <= kLineCap && restoration_.GoesOn(last_, next.text);
  if (!is_line || goes_on) {
    if (terminated) {
      if (removed_.lines.empty() || removed_.lines.back().line != lines_) removed_.lines.push_back({lines_, 0});
      ++removed_.lines.back().count;
    }
    if (!goes_on) return;
    line_.text += next.text;
    open_terminated_ = terminated;
    last_ = std::move(next.text);
    return;
  }
  Flush();
  ++lines_;
  if (!restoration_.joins()) {
    Emit(std::move(next), terminated);
    return;
  }
  last_ = next.text;
  line_ = std::move(next);
  open_ = true;
  open_terminated_ = terminated;
}

std::string RestoredReader::HeadOf(const RestoredHead& head) {
  if (head.empty()) return {};
  std::string out(1, kRestoredHead);
  if (!head.writer.empty() && (writers_.size() < kMostWriters || writers_.contains(head.writer)))
    out += fmt::format("{}", writers_.try_emplace(head.writer, writers_.size()).first->second);
  if (!head.time.empty() || !head.host.empty()) out.append("\t").append(head.time);
  if (!head.host.empty()) out.append("\t").append(head.host);
  return out += kRestoredHead;
}

void RestoredReader::Flush() {
  if (!std::exchange(open_, false)) return;
  Emit(std::exchange(line_, {}), open_terminated_);
}

// The text must not become longer than the input: its bytes are accounted for by what was removed. A head is left out
// where it would be, which only what repeats it over the lines of one text can do.
void RestoredReader::Emit(RestoredLine line, bool terminated) {
  restoration_.End(line);
  const std::string head = HeadOf(line.head);
  std::size_t begin = 0;
  std::size_t rest = line.text.size() + (terminated ? 1 : 0);
  while (true) {
    const std::size_t end = head.empty() ? kNowhere : line.text.find('\r', begin);
    if (made_ + rest + head.size() <= taken_) {
      text_ += head;
      made_ += head.size();
    }
    const std::size_t size = end == kNowhere ? line.text.size() - begin : end + 1 - begin;
    text_.append(line.text, begin, size);
    made_ += size;
    rest -= size;
    if (end == kNowhere) break;
    begin = end + 1;
  }
  if (!terminated) return;
  text_ += '\n';
  ++made_;
}

}  // namespace inquest
