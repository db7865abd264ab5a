// What the code cells of a Jupyter notebook printed, as lines, while it is read.
#include "parsers/notebook.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <utility>

#include "parsers/block.h"

namespace inquest {
namespace {

using std::string_view;

constexpr std::size_t kDeepestValue = 256;
constexpr std::size_t kLongestKey = 64;
constexpr std::size_t kLongestError = 16 * 1024;
constexpr string_view kWhite = " \t\r\n";

std::string Utf8(std::uint32_t code) {
  std::string out;
  const auto byte = [&](std::uint32_t value) { out += static_cast<char>(static_cast<unsigned char>(value)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xC0 | code >> 6);
    byte(0x80 | (code & 0x3F));
  } else {
    if (code < 0x10000) {
      byte(0xE0 | code >> 12);
    } else {
      byte(0xF0 | code >> 18);
      byte(0x80 | (code >> 12 & 0x3F));
    }
    byte(0x80 | (code >> 6 & 0x3F));
    byte(0x80 | (code & 0x3F));
  }
  return out;
}

string_view WithoutMark(string_view text) { return text.substr(text.starts_with("\xef\xbb\xbf") ? 3 : 0); }

}  // namespace

bool IsNotebook(string_view head) {
  head = WithoutMark(head.substr(0, kLineCap));
  const std::size_t first = head.find_first_not_of(kWhite);
  if (first == string_view::npos || head[first] != '{') return false;
  NotebookReader reader("", true, [](char*, std::size_t) { return std::size_t{0}; });
  for (head.remove_prefix(first); !head.empty() && !reader.known_ && !reader.broken_ && !reader.done_;
       head.remove_prefix(std::min<std::size_t>(head.size(), 512)))
    reader.Take(head.substr(0, 512));
  return reader.known_;
}

NotebookReader::NotebookReader(std::string head, bool ended, ReadBytes read)
    : read_(std::move(read)), ended_(ended), raw_(std::move(head)) {}

std::size_t NotebookReader::Fill(char* to, std::size_t room) {
  std::size_t filled = 0;
  while (filled < room) {
    if (given_ < text_.size()) {
      const std::size_t size = std::min(room - filled, text_.size() - given_);
      std::memcpy(to + filled, text_.data() + given_, size);
      filled += size;
      given_ += size;
      continue;
    }
    text_.clear();
    given_ = 0;
    if (!raw_.empty()) {
      Take(raw_);
      raw_.clear();
      if (ended_) Finish();
    } else if (ended_) {
      break;
    } else {
      raw_.resize(kReadAtOnce);
      const std::size_t got = read_(raw_.data(), kReadAtOnce);
      raw_.resize(got);
      ended_ = got < kReadAtOnce;
      if (raw_.empty()) Finish();
    }
  }
  return filled;
}

Removed NotebookReader::TakeRemoved() {
  Removed removed = std::exchange(removed_, {});
  removed.claimed = taken_ - made_ - removed_bytes_;
  removed_bytes_ += removed.claimed;
  return removed;
}

void NotebookReader::Take(string_view bytes) {
  if (taken_ == 0 && bytes.starts_with("\xef\xbb\xbf")) {
    taken_ += 3;
    bytes.remove_prefix(3);
  }
  while (!bytes.empty() && !broken_) {
    const std::size_t size = token_ == Token::kNone ? TakeOutside(bytes) : TakeString(bytes);
    taken_ += size;
    bytes.remove_prefix(size);
  }
  text_ += bytes;
  taken_ += bytes.size();
  made_ += bytes.size();
}

/// At least one byte, unless one comes that is none of JSON.
std::size_t NotebookReader::TakeOutside(string_view bytes) {
  const char byte = bytes[0];
  switch (byte) {
    case ' ':
    case '\t':
    case '\r':
      return std::min(bytes.find_first_not_of(" \t\r"), bytes.size());
    case '\n':
      EndLine();
      return 1;
    case '{':
    case '[':
      Open(byte == '{');
      return broken_ ? 0 : 1;
    case '}':
    case ']':
      Close(byte == '}');
      return broken_ ? 0 : 1;
    case ',':
      key_next_ = !levels_.empty() && levels_.back().object;
      break;
    case ':':
      key_next_ = false;
      break;
    case '"':
      BeginString();
      break;
    default: {
      const bool scalar = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                          string_view("+-.EINTF").find(byte) != string_view::npos;
      if (!scalar) broken_ = true;
    }
  }
  if (levels_.empty()) broken_ = true;
  if (broken_) Settle(true);
  return broken_ ? 0 : 1;
}

void NotebookReader::Open(bool object) {
  if (done_ || levels_.size() == kDeepestValue || (levels_.empty() && !object) || key_next_) {
    broken_ = true;
    Settle(true);
    return;
  }
  Level level{Inner(), object};
  // A list of texts in a list of them is nothing that we know.
  if (!levels_.empty() && levels_.back().place == Place::kText) level.place = Place::kOther;
  levels_.push_back(level);
  if (level.place == Place::kOutput) {
    told_ = false;
    error_name_.clear();
    error_value_.clear();
  }
  key_next_ = object;
  key_.clear();
}

void NotebookReader::Close(bool object) {
  if (levels_.empty() || levels_.back().object != object) {
    broken_ = true;
    Settle(true);
    return;
  }
  if (levels_.back().place == Place::kOutput) Settle(true);
  levels_.pop_back();
  key_.clear();
  key_next_ = false;
  done_ = levels_.empty();
}

/// What a value is that comes next.
NotebookReader::Place NotebookReader::Inner() const {
  if (levels_.empty()) return Place::kNotebook;
  switch (levels_.back().place) {
    case Place::kNotebook:
      return key_ == "cells" ? Place::kCells : key_ == "worksheets" ? Place::kSheets : Place::kOther;
    case Place::kSheets:
      return Place::kNotebook;
    case Place::kCells:
      return Place::kCell;
    case Place::kCell:
      return key_ == "outputs" ? Place::kOutputs : Place::kOther;
    case Place::kOutputs:
      return Place::kOutput;
    case Place::kOutput:
      return key_ == "text" || key_ == "traceback" ? Place::kText : key_ == "data" ? Place::kData : Place::kOther;
    case Place::kData:
      return key_ == "text/plain" ? Place::kText : Place::kOther;
    case Place::kText:
      return Place::kText;
    case Place::kOther:
      break;
  }
  return Place::kOther;
}

void NotebookReader::BeginString() {
  if (key_next_) {
    token_ = Token::kKey;
    key_.clear();
    return;
  }
  token_ = Token::kSkipped;
  if (levels_.empty()) return;
  const Place place = Inner();
  if (place == Place::kText) {
    token_ = Token::kText;
    BeginText();
  } else if (levels_.back().place == Place::kOutput && key_ == "ename") {
    token_ = Token::kErrorName;
  } else if (levels_.back().place == Place::kOutput && key_ == "evalue") {
    token_ = Token::kErrorValue;
  }
}

void NotebookReader::EndString() {
  const Token token = std::exchange(token_, Token::kNone);
  high_ = 0;
  if (token == Token::kKey) {
    const Place place = levels_.empty() ? Place::kOther : levels_.back().place;
    known_ = known_ || (place == Place::kNotebook && levels_.size() == 1 && key_ == "nbformat") ||
             (place == Place::kCell && key_ == "cell_type");
  } else if (token == Token::kText) {
    if (breaks_ > 0) --breaks_;
    PutBreaks();
  } else if (token == Token::kErrorValue && !told_ && !error_name_.empty()) {
    error_ = true;
  }
}

std::size_t NotebookReader::TakeString(string_view bytes) {
  if (!escape_.empty() && bytes[0] != '\n') {
    if (TakeEscape(bytes[0])) escape_.clear();
    return 1;
  }
  std::size_t end = 0;
  while (end < bytes.size() && bytes[end] != '"' && bytes[end] != '\\' && bytes[end] != '\n') ++end;
  if (end > 0) {
    Put(bytes.substr(0, end));
    return end;
  }
  if (bytes[0] == '\n') {
    token_ = Token::kNone;
    broken_ = true;
    Settle(true);
    return 0;
  }
  if (bytes[0] == '\\')
    escape_ = "\\";
  else
    EndString();
  return 1;
}

/// Whether the escape is whole.
bool NotebookReader::TakeEscape(char byte) {
  static constexpr string_view kEscapes = "bfnrt", kMeanings = "\b\f\n\r\t";
  escape_ += byte;
  if (escape_[1] != 'u') {
    const std::size_t which = kEscapes.find(byte);
    Put(which == string_view::npos ? string_view(&byte, 1) : kMeanings.substr(which, 1));
    return true;
  }
  if (escape_.size() < 6) return false;
  std::uint32_t code = 0xFFFD;
  if (const auto [end, error] = std::from_chars(escape_.data() + 2, escape_.data() + 6, code, 16);
      error != std::errc() || end != escape_.data() + 6)
    code = '?';
  PutCode(code);
  return true;
}

void NotebookReader::PutCode(std::uint32_t code) {
  const bool first = code >= 0xD800 && code < 0xDC00, second = code >= 0xDC00 && code < 0xE000;
  if (second && high_ != 0)
    code = 0x10000 + ((high_ & 0x3FF) << 10 | (code & 0x3FF));
  else if (second)
    code = 0xFFFD;
  if (first) {
    high_ = code;
    return;
  }
  high_ = 0;
  Put(Utf8(code));
}

void NotebookReader::Put(string_view text) {
  const auto keep = [&](std::string& in, std::size_t most) {
    in.append(text.substr(0, most - std::min(most, in.size())));
  };
  if (token_ == Token::kKey) return keep(key_, kLongestKey);
  if (token_ == Token::kErrorName) return keep(error_name_, kLongestKey);
  if (token_ == Token::kErrorValue) return keep(error_value_, kLongestError);
  if (token_ != Token::kText) return;
  while (!text.empty()) {
    const std::size_t size = std::min(text.find('\n'), text.size());
    if (size > 0) {
      PutBreaks();
      text_ += text.substr(0, size);
      made_ += size;
      returned_ = text[size - 1] == '\r';
      text.remove_prefix(size);
    }
    if (text.empty()) break;
    ++breaks_;
    text.remove_prefix(1);
  }
}

/// Line feeds within the text. One behind a carriage return ended what that ended.
void NotebookReader::PutBreaks() {
  for (; breaks_ > 0; --breaks_) {
    if (std::exchange(returned_, false)) continue;
    text_ += '\r';
    ++made_;
  }
}

void NotebookReader::BeginText() {
  Settle(false);
  told_ = true;
  returned_ = false;
  breaks_ = 0;
  if (std::exchange(open_, true)) {
    text_ += '\r';
    ++made_;
  } else {
    ++lines_;
  }
}

void NotebookReader::EndLine() {
  if (error_) {
    ++error_lines_;
  } else if (std::exchange(open_, false)) {
    text_ += '\n';
    ++made_;
  } else {
    NoteRemoved(1);
  }
}

void NotebookReader::NoteRemoved(std::uint64_t lines) {
  if (lines == 0) return;
  if (removed_.lines.empty() || removed_.lines.back().line != lines_) removed_.lines.push_back({lines_, 0});
  removed_.lines.back().count += lines;
}

/// An error whose traceback has not come by now is told in its own words, in the line where they stand.
void NotebookReader::Settle(bool tell) {
  if (!std::exchange(error_, false)) return;
  std::uint64_t lines = std::exchange(error_lines_, 0);
  if (tell && !told_) {
    BeginText();
    token_ = Token::kText;
    Put(error_name_);
    Put(": ");
    Put(error_value_);
    token_ = Token::kNone;
    breaks_ = 0;
  }
  if (lines == 0) return;
  EndLine();
  NoteRemoved(lines - 1);
}

void NotebookReader::Finish() {
  token_ = Token::kNone;
  Settle(true);
}

}  // namespace inquest
