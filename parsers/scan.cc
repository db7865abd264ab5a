// Reads inputs and turns them into events: blocks scanned on every core, consumed in order on one.
#include "parsers/scan.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "parsers/assembler.h"
#include "parsers/flight_recorder.h"
#include "parsers/folder_hosts.h"
#include "parsers/relay.h"
#include "parsers/source_reader.h"
#include "parsers/writing.h"

namespace inquest {
namespace {

/// What a thread costs, its scanner above all, a few blocks cost as well.
constexpr std::uint64_t kBlocksWorthAThread = 4;

/// Room for the longest line that is read whole, and one byte that tells a longer one from it.
std::size_t BlockBytes(const ScanOptions& options) { return std::max(options.block_bytes, kLineCap + 1); }

/// Parcels that wait to be taken; each holds a few hundred KiB at most where every line is an event.
constexpr std::size_t kMostParcels = 8;

/// A scanned block on its way to the consumer, with its text only where a document format may want it.
struct Scanned {
  Block block;
  BlockYield yield;
  std::string document;
  std::optional<CallTrace> trace;
};

/// Whether an input that begins so may be one document: JSON or XML, not a log in brackets and not JSON line by line.
bool MayBeDocument(std::string_view text) {
  constexpr const char* kBlank = " \t\r\n";
  text.remove_prefix(std::min(BeginOfDocument(text), text.size()));
  if (text.starts_with("<?") || text.starts_with("<!")) return true;
  if (!text.starts_with('{') && !text.starts_with('[')) return false;
  const std::size_t inner = text.find_first_not_of(kBlank, 1);
  if (inner == std::string_view::npos || std::string_view("{\"}").find(text[inner]) == std::string_view::npos)
    return false;
  const std::string_view line = text.substr(0, text.find('\n'));
  const bool closed = line[line.find_last_not_of(kBlank)] == '}';
  return text[0] == '[' || !closed || text.find_first_not_of(kBlank, line.size()) == std::string_view::npos;
}

/// Of a short input, what it is where nobody printed it. A long one would have to be held to be seen whole.
const InputForm* FormOf(const Block& block) {
  const bool whole = block.first && block.last && block.text.size() <= kLineCap;
  return whole && block.form == nullptr ? FormOfText(block.text) : nullptr;
}

/// Nothing of the block is left but its bytes and lines.
void PassOver(const InputForm& form, BlockYield& yield) {
  BlockYield passed;
  passed.form = &form;
  passed.removed.claimed = yield.removed.claimed + yield.removed.damaged + yield.tally.bytes;
  std::uint64_t lines = yield.tally.lines;
  for (const Removed::Lines& removed : yield.removed.lines) lines += removed.count;
  if (lines > 0) passed.removed.lines.push_back({0, lines});
  yield = std::move(passed);
}

// Workers take turns at reading and scan at the same time, and whoever holds the next block in order consumes it. A
// worker more than two blocks a thread ahead of the consumer has nothing to scan, so that memory is bounded by threads;
// it takes what the consumer finds, in parcels, and tells it to the sink. While nobody is idle the consumer does so
// itself.
class Pipeline {
 public:
  Pipeline(SourceReader& reader, const Sieve& sieve, const ScanOptions& options, unsigned threads, EventSink& sink)
      : reader_(reader),
        sieve_(sieve),
        block_bytes_(BlockBytes(options)),
        call_times_(options.call_times),
        threads_(threads),
        sink_(sink),
        relay_(
            sink, [this] { return MayTell(); }, [this](Parcel parcel) { Pass(std::move(parcel)); }),
        assembler_(sieve.first_mark_id(), options.hosts, threads > 1 ? static_cast<EventSink&>(relay_) : sink) {}

  Result<std::vector<InputRead>> Run() {
    if (threads_ <= 1) {
      Work();
    } else {
      std::vector<std::thread> workers;
      for (unsigned i = 0; i < threads_; ++i) workers.emplace_back([this] { Work(); });
      for (std::thread& worker : workers) worker.join();
    }
    for (Parcel& parcel : parcels_) parcel.GiveTo(sink_);
    if (error_) return *error_;
    return std::move(reads_);
  }

 private:
  void Work() {
    BlockBuffer buffer(block_bytes_);
    BlockScanner scanner(sieve_, BestCode(), call_times_);
    while (auto block = ReadNext(buffer)) {
      const auto scanned = std::make_shared<Scanned>();
      scanned->block = *block;
      if (Dump* const dump = block->dump.get()) {
        scanned->trace = dump->trace ? std::move(dump->trace) : ReadFlightDump(dump->bytes);
        dump->bytes = {};
      }
      if (block->document) scanned->document = std::string(block->text);
      scanned->yield = scanner.Scan(block->text, block->cut_head, block->offset);
      block->removed.claimed += scanned->yield.removed.claimed;
      scanned->yield.removed = std::move(block->removed);
      if (const InputForm* form = FormOf(*block)) PassOver(*form, scanned->yield);
      Deliver(scanned);
    }
  }

  std::optional<Block> ReadNext(BlockBuffer& buffer) {
    {
      std::unique_lock lock(mutex_);
      const auto may_read = [this] { return read_ <= consumed_ + 2 * threads_; };
      const auto may_take = [this] { return !parcels_.empty() && !taking_; };
      while (!may_read()) {
        if (may_take()) TakeParcel(lock);
        ++idle_;
        ready_.wait(lock, [&] { return may_read() || may_take(); });
        --idle_;
      }
    }
    const std::lock_guard lock(read_mutex_);
    if (ended_) return std::nullopt;
    auto block = reader_.Next(buffer);
    if (!block || !block.value()) {
      ended_ = true;
      if (!block) error_ = block.error();
      return std::nullopt;
    }
    Block& next = **block;
    if (next.first) document_bytes_ = !next.container && MayBeDocument(next.text) ? 0 : kDocumentCap;
    document_bytes_ += next.text.size();
    next.document = document_bytes_ <= kDocumentCap;
    const std::lock_guard count(mutex_);
    read_ = next.number + 1;
    return std::move(next);
  }

  void Deliver(const std::shared_ptr<Scanned>& scanned) {
    std::unique_lock lock(mutex_);
    waiting_.emplace(scanned->block.number, scanned);
    if (consuming_) return;
    consuming_ = true;
    while (!waiting_.empty() && waiting_.begin()->first == consumed_) {
      const std::shared_ptr<Scanned> next = std::move(waiting_.begin()->second);
      waiting_.erase(waiting_.begin());
      lock.unlock();
      ConsumeInOrder(next);
      lock.lock();
      ++consumed_;
      ready_.notify_all();
    }
    if (std::exchange(telling_, false)) taking_ = false;
    consuming_ = false;
    while (!parcels_.empty() && !taking_) TakeParcel(lock);
  }

  // Blocks of what may be a document are held until it is whole: then a format takes all of it, or they are consumed as
  // any others. One that turns out to be longer than the cap is none.
  void ConsumeInOrder(const std::shared_ptr<Scanned>& next) {
    const Block& block = next->block;
    if (block.first) assembler_.Begin(block.input, block.path, block.form);
    if (block.document) {
      document_ += std::exchange(next->document, {});
      held_.push_back(next);
    }
    if (!block.document || block.last) {
      if (!block.document || !assembler_.OfferDocument(document_))
        for (const auto& held : held_) Consume(held);
      held_.clear();
      document_ = {};
    }
    if (!block.document) Consume(next);
    if (next->trace) assembler_.Take(*next->trace, block.dump->size);
    std::string problem = block.problem;
    if (block.last) {
      reads_.push_back(assembler_.End());
      if (next->trace && problem.empty()) problem = next->trace->problem;
      reads_.back().problem = std::move(problem);
    }
    relay_.Flush(next);
  }

  void Consume(const std::shared_ptr<Scanned>& scanned) {
    assembler_.Consume(scanned->yield);
    relay_.Flush(scanned);
  }

  /// Whether the consumer is to tell the sink itself: nobody else is at it, or could be.
  bool MayTell() {
    const bool may = idle_.load(std::memory_order_relaxed) == 0;
    if (telling_ == may) return may;
    const std::lock_guard lock(mutex_);
    if (may && (taking_ || !parcels_.empty())) return false;
    taking_ = telling_ = may;
    return may;
  }

  /// A parcel waits for who takes it; where nobody does and too many wait, they are taken here.
  void Pass(Parcel parcel) {
    std::unique_lock lock(mutex_);
    room_.wait(lock, [this] { return parcels_.size() < kMostParcels || !taking_; });
    parcels_.push_back(std::move(parcel));
    const bool full = parcels_.size() > kMostParcels;
    while (full && !parcels_.empty() && !taking_) TakeParcel(lock);
    if (!parcels_.empty() && !taking_) ready_.notify_one();
  }

  /// Hands the first that waits to the sink.
  void TakeParcel(std::unique_lock<std::mutex>& lock) {
    taking_ = true;
    Parcel parcel = std::move(parcels_.front());
    parcels_.pop_front();
    lock.unlock();
    parcel.GiveTo(sink_);
    lock.lock();
    taking_ = false;
    room_.notify_one();
  }

  SourceReader& reader_;
  const Sieve& sieve_;
  std::size_t block_bytes_;
  CallTimes call_times_;
  unsigned threads_;
  EventSink& sink_;
  Relay relay_;
  Assembler assembler_;
  std::mutex read_mutex_, mutex_;
  std::condition_variable ready_;  ///< there is something to read, or to take
  std::condition_variable room_;   ///< for a parcel
  bool ended_ = false, consuming_ = false;
  bool taking_ = false;   ///< somebody hands on to the sink
  bool telling_ = false;  ///< that is the consumer, and without parcels
  std::atomic<unsigned> idle_ = 0;
  std::uint64_t read_ = 0, consumed_ = 0;
  std::uint64_t document_bytes_ = 0;  ///< of the input that is read; more than the cap where it is none
  std::string document_;              ///< of the input that is consumed
  std::vector<std::shared_ptr<Scanned>> held_;
  std::map<std::uint64_t, std::shared_ptr<Scanned>> waiting_;
  std::deque<Parcel> parcels_;
  std::vector<InputRead> reads_;
  std::optional<Error> error_;
};

unsigned ThreadsFor(const std::vector<Input>& inputs, const ScanOptions& options) {
  unsigned threads = options.threads != 0 ? options.threads : std::max(1u, std::thread::hardware_concurrency());
  std::uint64_t bytes = 0;
  for (const Input& input : inputs) bytes += input.size_bytes == 0 ? ~0ULL >> 16 : input.size_bytes;
  return static_cast<unsigned>(
      std::min<std::uint64_t>(threads, bytes / (kBlocksWorthAThread * options.block_bytes) + 1));
}

std::optional<Error> DamageThatLeftNothing(const std::vector<InputRead>& reads) {
  const auto damaged =
      std::find_if(reads.begin(), reads.end(), [](const InputRead& read) { return !read.problem.empty(); });
  if (damaged == reads.end() ||
      std::any_of(reads.begin(), reads.end(), [](const InputRead& read) { return read.tally.bytes > 0; }))
    return std::nullopt;
  return Error{
      damaged->problem,
      "nothing could be read of it; check that you may, fetch it again, or unpack by hand what there is (zcat, tar -x)",
      damaged->path};
}

}  // namespace

Result<std::vector<InputRead>> ScanInputs(const std::vector<Input>& inputs, const Sieve& sieve,
                                          const ScanOptions& options, EventSink& sink) {
  const std::size_t block_bytes = BlockBytes(options);
  SourceReader reader(inputs, block_bytes, options.progress_bytes, options.expansion);
  auto reads = Pipeline(reader, sieve, options, ThreadsFor(inputs, options), sink).Run();
  if (!reads) return reads;
  if (const auto damage = DamageThatLeftNothing(*reads)) return *damage;
  std::vector<std::string> paths;
  for (const InputRead& read : *reads) paths.push_back(read.path);
  const auto hosts = FolderHosts(paths);
  for (std::size_t i = 0; i < hosts.size(); ++i)
    if (auto given = HostGiven(paths[i], options.hosts))
      (*reads)[i].host = Known<std::string>{std::move(*given), Basis::kGiven, kByOption};
    else if (hosts[i])
      (*reads)[i].host = Known<std::string>{*hosts[i], Basis::kFileName, kByFolder};
  return reads;
}

InputRead ScanText(std::string_view text, const Sieve& sieve, const ScanOptions& options, EventSink& sink) {
  const std::size_t block_bytes = BlockBytes(options);
  SourceReader reader(text, block_bytes);
  auto reads = Pipeline(reader, sieve, options, std::max(1u, options.threads), sink).Run();
  INQUEST_CHECK(reads && reads->size() == 1);
  return reads->front();
}

}  // namespace inquest
