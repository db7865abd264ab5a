// The one in-order consumer: feeds kept lines to parsers, hands events and calls on.
#include "parsers/assembler.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <span>

#include "core/ascii.h"
#include "parsers/fold.h"
#include "parsers/folder_hosts.h"
#include "parsers/formats.h"

namespace inquest {

namespace {

Component ComponentOf(const Format* format) { return format == nullptr ? Component::kAny : format->component; }

/// `workerlog.3` (Paddle), `rsl.error.0020` (WRF).
std::optional<int> RankOfItsProgram(std::string_view name) {
  for (const std::string_view head : {"workerlog.", "rsl.error.", "rsl.out."}) {
    int rank = 0;
    const char* const end = name.data() + name.size();
    if (name.starts_with(head) && name.size() > head.size() && name.size() <= head.size() + 6 &&
        std::from_chars(name.data() + head.size(), end, rank).ptr == end)
      return rank;
  }
  return std::nullopt;
}

/// `stdout`, `stderr.log`: what a launcher writes into a folder for each process.
bool IsOfFolder(std::string_view name) {
  return name == "stdout" || name == "stderr" || name == "stdout.log" || name == "stderr.log";
}

/// torchelastic's folders: `<base>/<run id>_<random>/attempt_<restart>/<local rank>/stderr.log`.
std::optional<LocalRank> LocalRankInPath(std::string_view path) {
  const std::size_t file = path.rfind('/');
  if (file == std::string_view::npos || file == 0 || !IsOfFolder(path.substr(file + 1))) return std::nullopt;
  const std::size_t folder = path.rfind('/', file - 1);
  if (folder == std::string_view::npos) return std::nullopt;
  const std::string_view parent = path.substr(0, folder).substr(path.substr(0, folder).rfind('/') + 1);
  int rank = 0;
  const auto [end, error] = std::from_chars(path.data() + folder + 1, path.data() + file, rank);
  if (error != std::errc() || end != path.data() + file || !parent.starts_with("attempt_") || !IsRank(rank))
    return std::nullopt;
  return LocalRank{rank};
}

/// `rank3.log`, `job_rank-03.err`, `stderr.rank7`, Open MPI's `rank.3/stderr`: the rank that a file's name gives, if it
/// gives one.
std::optional<Known<GlobalRank>> RankInName(const std::string& path) {
  std::string_view place = path;
  if (IsOfFolder(place.substr(place.rfind('/') + 1))) place = place.substr(0, std::min(place.rfind('/'), place.size()));
  const std::string name(place.substr(place.rfind('/') + 1));
  if (const auto rank = RankOfItsProgram(name))
    return Known<GlobalRank>{GlobalRank{*rank}, Basis::kFileName, "rank in the name of the file"};
  const std::size_t at = name.find("rank");
  if (at == std::string::npos || name.find("rank", at + 4) != std::string::npos) return std::nullopt;
  const std::string_view before = std::string_view(name).substr(0, at);
  if (!before.empty() && IsLetter(before.back())) return std::nullopt;  // some other word
  for (const std::string_view other : {"local", "node", "group"})       // some other rank
    if (before.substr(0, before.size() - (before.empty() ? 0 : 1)).ends_with(other)) return std::nullopt;
  std::size_t digits = at + 4;
  if (digits < name.size() && (name[digits] == '_' || name[digits] == '-' || name[digits] == '.')) ++digits;
  int rank = 0;
  const auto [end, error] = std::from_chars(name.data() + digits, name.data() + name.size(), rank);
  const bool closed = end == name.data() + name.size() || *end == '.' || *end == '_' || *end == '-';
  if (error != std::errc() || !closed) return std::nullopt;
  return Known<GlobalRank>{GlobalRank{rank}, Basis::kFileName, "rank in the name of the file"};
}

/// `trace_3`, `5.json.gz`: the number at the end of a dump's name, which its writer puts there.
std::optional<Known<GlobalRank>> RankAtEnd(const std::string& path) {
  std::string_view name = std::string_view(path).substr(path.rfind('/') + 1);
  for (std::size_t dot = name.rfind('.'); dot != std::string_view::npos && dot > 0; dot = name.rfind('.'))
    if (std::all_of(name.begin() + static_cast<std::ptrdiff_t>(dot) + 1, name.end(), IsDigit))
      break;
    else
      name = name.substr(0, dot);
  std::size_t first = name.size();
  while (first > 0 && IsDigit(name[first - 1])) --first;
  int rank = 0;
  if (first == name.size() || std::from_chars(name.data() + first, name.data() + name.size(), rank).ec != std::errc() ||
      !IsRank(rank))
    return std::nullopt;
  return Known<GlobalRank>{GlobalRank{rank}, Basis::kFileName, "number at the end of the file's name"};
}

void SetKey(const Origin& origin, std::string& key) {
  const auto add = [&](std::int64_t number) {
    std::array<char, 24> digits;
    key.append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
    key += '|';
  };
  // Who is not known stands in front of rank 0: in the order of their keys streams are finished.
  key.clear();
  add(origin.rank ? origin.rank->value.value : -1);
  add(origin.local_rank ? origin.local_rank->value : -1);
  if (origin.host) key += origin.host->value;
  key += '|';
  add(origin.pid.value_or(-1));
  key += origin.writer;
}

}  // namespace

std::size_t BeginOfDocument(std::string_view text) {
  constexpr std::size_t kWords = 512;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos || text[first] == '{' || text[first] == '[' || text[first] == '<') return first;
  const std::size_t line = text.substr(0, kWords).find("\n{");
  return line == std::string_view::npos ? line : line + 1;
}

Assembler::Assembler(std::uint32_t first_mark_id, const std::vector<GivenHost>& hosts, EventSink& sink)
    : first_mark_id_(first_mark_id), hosts_(hosts), sink_(sink) {}
Assembler::~Assembler() = default;

void Assembler::Begin(std::uint32_t input, const std::string& path, const InputForm* form) {
  read_ = {};
  read_.path = path;
  read_.form = form;
  input_ = input;
  lines_ = bytes_ = parts_ = 0;
  parts_ahead_.clear();
  streams_.Clear();
  bare_ = opened_ = nullptr;
  section_end_ = 0;
  kinds_.clear();
  file_rank_ = RankInName(path);
  file_local_rank_ = LocalRankInPath(path);
  file_host_.reset();
  if (auto host = BundleHost(path)) file_host_ = Known<std::string>{std::move(*host), Basis::kFileName, kByFolder};
  if (auto host = HostGiven(path, hosts_)) file_host_ = Known<std::string>{std::move(*host), Basis::kGiven, kByOption};
}

bool Assembler::OfferDocument(std::string_view text) {
  const std::size_t first = BeginOfDocument(text);
  if (text.size() > kDocumentCap || first == std::string_view::npos) return false;
  Record record;
  record.text = text.substr(first);
  record.where = {
      input_,
      1 + static_cast<std::uint64_t>(std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(first), '\n')),
      first};
  record.origin.host = file_host_;
  for (const Format* format : Formats()) {
    if (format->framing != Framing::kDocument) continue;
    const auto parser = format->make();
    if (!parser->Consume(record, sink_)) continue;
    parser->Finish(sink_);
    AddKind(format);
    read_.tally.bytes = read_.tally.claimed = text.size();
    read_.tally.lines =
        static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')) + (text.back() == '\n' ? 0 : 1);
    return true;
  }
  return false;
}

void Assembler::Take(const CallTrace& trace, std::uint64_t bytes) {
  Origin origin;
  origin.rank = file_rank_ ? file_rank_ : RankAtEnd(read_.path);
  origin.host = file_host_;
  if (!trace.calls.empty() || !trace.groups.empty()) sink_.AddTrace(trace, origin, {input_, 1, 0});
  read_.tally.bytes = read_.tally.claimed = bytes;
  read_.tally.lines = trace.entries;
  read_.kinds.emplace_back(trace.recorder);
}

Stream& Assembler::StreamOf(const Origin& origin) {
  SetKey(origin, key_);
  return streams_.At(key_);
}

Stream& Assembler::BareStream() {
  if (bare_ == nullptr) {
    Origin origin;
    origin.rank = file_rank_;
    origin.host = file_host_;
    bare_ = &StreamOf(origin);
  }
  return *bare_;
}

/// The stream of an unmarked line, if one of its sections reaches so far; nullptr: it is nobody's. A line that says
/// nothing of its writer can be the rest of whatever was written last: a terminal broke it.
Stream* Assembler::SectionOf(const Record& record) {
  SetKey(record.origin, key_);
  Stream* const own = streams_.Find(key_);
  Stream* const stream = own != nullptr ? own : key_.empty() ? opened_ : nullptr;
  if (stream != nullptr && stream->InSection(record.where.line)) return stream;
  return key_.empty() && opened_ != nullptr && opened_->InSection(record.where.line) ? opened_ : nullptr;
}

void Assembler::AddKind(const Format* format) {
  if (std::find(kinds_.begin(), kinds_.end(), format) == kinds_.end()) kinds_.push_back(format);
}

bool Assembler::Offer(Stream& stream, const Record& record, const BlockYield& yield, const KeptLine& line) {
  const std::span<const std::uint32_t> hits(yield.hits.data() + line.hits, line.hit_count);
  const auto is_mark_of = [&](std::uint32_t id, const Format* format) {
    return id >= first_mark_id_ && Marks().formats[id - first_mark_id_] == format;
  };
  const auto marked = [&](const Format* format) {
    return (line.bulk && format->fold != nullptr) ||
           std::any_of(hits.begin(), hits.end(), [&](std::uint32_t id) { return is_mark_of(id, format); });
  };
  const auto offer = [&](const Format* format) {
    if (!stream.Get(format).Consume(record, sink_)) return false;
    stream.last = format;
    AddKind(format);
    if (format->follow > 0 && marked(format)) {
      stream.sections[format] = record.where.line + format->follow;
      section_end_ = std::max(section_end_, record.where.line + format->follow);
      opened_ = &stream;
    }
    return true;
  };
  if (stream.last != nullptr && marked(stream.last) && offer(stream.last)) return true;
  for (const Format* format : Formats())
    if (format != stream.last && marked(format) && offer(format)) return true;
  if (stream.sections.empty()) return false;
  for (const Format* format : Formats()) {
    const auto section = stream.sections.find(format);
    if (section == stream.sections.end() || record.where.line > section->second || marked(format)) continue;
    if (stream.Get(format).Expects(record.text) && offer(format)) return true;
  }
  return false;
}

void Assembler::ConsumeLine(BlockYield& yield, std::size_t number, const SourcePos& where) {
  const KeptLine& line = yield.kept[number];
  if (line.section && where.line > section_end_) {
    (line.damaged ? read_.tally.damaged : read_.tally.plain) += line.bytes;
    return;
  }
  if (line.silent != nullptr) {
    BareStream().last = line.silent;
    AddKind(line.silent);
    (line.damaged ? read_.tally.damaged : read_.tally.claimed) += line.bytes;
    return;
  }
  const Format& bulk = BulkFormat();
  Peeled& peeled = yield.peeled[number];
  Record record{peeled.text, std::move(peeled.origin), peeled.at, where};
  if (!record.origin.rank && file_rank_) record.origin.rank = file_rank_;
  if (!record.origin.rank && !record.origin.local_rank) record.origin.local_rank = file_local_rank_;
  if (!record.origin.host) record.origin.host = file_host_;
  const bool marked = (!line.context && !line.section) || line.bulk;
  Stream* const stream = marked ? &StreamOf(record.origin) : where.line <= section_end_ ? SectionOf(record) : nullptr;
  const bool claimed = stream != nullptr && Offer(*stream, record, yield, line);
  (line.damaged ? read_.tally.damaged : claimed ? read_.tally.claimed : read_.tally.plain) += line.bytes;
  const auto is_asked_for = [&](std::uint32_t id) { return id < first_mark_id_; };
  const auto first_hit = yield.hits.begin() + line.hits;
  // A line with a format's mark that no format takes is as plain as any other.
  if (!peeled.bar && claimed && std::none_of(first_hit, first_hit + line.hit_count, is_asked_for)) return;
  LogMessage message;
  message.component = line.bulk ? bulk.component : Component::kAny;
  for (std::uint32_t i = 0; i < line.hit_count; ++i) {
    const std::uint32_t id = yield.hits[line.hits + i];
    if (id < first_mark_id_)
      message.hits.push_back(id);
    else if (message.component == Component::kAny)
      message.component = ComponentOf(Marks().formats[id - first_mark_id_]);
  }
  if (peeled.bar) {
    // Two wrote on one line; each says its own.
    const Record bar{peeled.bar->text, peeled.bar->origin, std::nullopt, where};
    LogMessage work = message;
    work.text = std::string(bar.text);
    sink_.Add(EventFrom(bar, std::move(work)));
  }
  if (message.hits.empty() && claimed) return;
  if (record.text.size() > kCitedBytes) message.text = std::string(record.text.substr(0, kLineCap));
  message.sampled = line.sampled && message.hits.empty();
  sink_.Add(EventFrom(record, std::move(message)));
}

/// Counts what is not in the text. It may stand behind the block that it came with.
void Assembler::TakeRemoved(const Removed& removed) {
  read_.tally.claimed += removed.claimed;
  read_.tally.damaged += removed.damaged;
  read_.tally.bytes += removed.claimed + removed.damaged;
  for (const Removed::Lines& lines : removed.lines) {
    read_.tally.lines += lines.count;
    parts_ahead_.push_back({lines.line, (parts_ahead_.empty() ? parts_ : parts_ahead_.back().count) + lines.count});
  }
}

Assembler::Parts Assembler::PartsAt(std::uint64_t line) const {
  const auto next = std::upper_bound(parts_ahead_.begin(), parts_ahead_.end(), line,
                                     [](std::uint64_t at, const Removed::Lines& lines) { return at < lines.line; });
  return {next == parts_ahead_.begin() ? parts_ : std::prev(next)->count,
          next == parts_ahead_.end() ? ~0ULL : next->line};
}

void Assembler::Consume(BlockYield& yield) {
  if (yield.form != nullptr) read_.form = yield.form;
  TakeRemoved(yield.removed);
  const std::uint64_t base_line = lines_ + 1, base_offset = bytes_;
  std::size_t flushed = 0;
  SourcePos base{input_, base_line, base_offset, parts_};
  const CallBatch& batch = yield.folded.calls;
  const auto& calls = batch.calls;
  const auto flush = [&](std::uint32_t before_line) {
    const auto is_before = [](const CallBatch::Call& call, std::uint64_t line) { return call.line < line; };
    while (flushed < calls.size() && calls[flushed].line < before_line) {
      const Parts parts = PartsAt(lines_ + calls[flushed].line);
      const std::uint64_t before = std::min<std::uint64_t>(before_line, parts.end - lines_);
      const auto end = static_cast<std::size_t>(
          std::lower_bound(calls.begin() + static_cast<std::ptrdiff_t>(flushed), calls.end(), before, is_before) -
          calls.begin());
      base.parts = parts.count;
      sink_.AddCalls(batch, flushed, end, base);
      flushed = end;
    }
  };
  for (std::size_t number = 0; number < yield.kept.size(); ++number) {
    const KeptLine& line = yield.kept[number];
    if (line.bulk) flush(line.line);  // a communicator's birth and death decide whose calls are whose
    ConsumeLine(yield, number,
                {input_, base_line + line.line, base_offset + line.offset, PartsAt(lines_ + line.line).count});
  }
  flush(~0u);
  if (calls.empty() && !batch.processes.empty()) sink_.AddCalls(batch, 0, 0, base);
  for (const Folded::Sum& sum : yield.folded.sums) {
    const SourcePos where{input_, base_line + sum.line, base_offset, PartsAt(lines_ + sum.line).count};
    sink_.Add(EventFrom({sum.text, sum.origin, std::nullopt, where}, sum.what));
  }
  if (!calls.empty() || !yield.folded.sums.empty()) AddKind(&BulkFormat());
  read_.tally.Add(yield.tally);
  lines_ += yield.tally.lines;
  bytes_ += yield.tally.bytes;
  auto next = parts_ahead_.begin();
  for (; next != parts_ahead_.end() && next->line <= lines_; ++next) parts_ = next->count;
  parts_ahead_.erase(parts_ahead_.begin(), next);
}

InputRead Assembler::End() {
  for (Stream* const stream : streams_.InOrder())
    for (auto& [format, parser] : stream->parsers) parser->Finish(sink_);
  streams_.Clear();
  for (const Format* format : kinds_) read_.kinds.emplace_back(format->name);
  std::sort(read_.kinds.begin(), read_.kinds.end());
  return std::move(read_);
}

}  // namespace inquest
