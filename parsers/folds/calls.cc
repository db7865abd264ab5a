// NCCL's lines of NCCL_DEBUG_SUBSYS=COLL, parsed and folded at the speed of memory.
#include "parsers/folds/calls.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#include "parsers/folds/call_bytes.h"
#include "parsers/folds/call_tables.h"

namespace inquest {
namespace {

constexpr std::size_t kFewestPlaces = 256;  ///< three in four of which stay free; a power of two
constexpr std::size_t kOpBytes = 16;
constexpr std::size_t kFieldBytes = 448;   ///< more than the longest call's fields take
constexpr std::size_t kBehindFields = 32;  ///< more than any literal or number that is looked for
constexpr std::size_t kMaxKnown = 1 << 16, kMaxHeads = 1 << 13;

/// `host:pid:tid [dev`, read backwards from the bracket.
struct Prefix {
  std::string_view host, pid, text;
};
std::optional<Prefix> ReadPrefix(std::string_view head) {
  const char* begin = head.data();
  const char* end = begin + head.size();
  const char* p = end;
  while (p > begin && IsDigit(p[-1])) --p;
  if (p == end || p - begin < 2 || p[-1] != '[' || p[-2] != ' ') return std::nullopt;
  const char* q = p - 2;
  while (q > begin && IsDigit(q[-1])) --q;
  if (q == p - 2 || q == begin || q[-1] != ':') return std::nullopt;
  const char* pid_end = --q;
  while (q > begin && IsDigit(q[-1])) --q;
  if (q == pid_end || q == begin || q[-1] != ':') return std::nullopt;
  const char* host_end = q - 1;
  const char* host = host_end;
  while (host > begin && IsHostByte(host[-1])) --host;
  if (host == host_end) return std::nullopt;
  const auto view = [](const char* from, const char* to) {
    return std::string_view(from, static_cast<std::size_t>(to - from));
  };
  return Prefix{view(host, host_end), view(q, pid_end), view(host, end)};
}

}  // namespace

struct CallFolder::Fields {
  struct Range {
    std::size_t begin = 0, end = 0;
  };
  std::uint64_t op_count = 0, count = 0, comm = 0, stream = 0;
  std::int32_t datatype = 0, redop = 0, root = 0, nranks = 0;
  Range digits, send, receive;  ///< of opCount and the buffers, in the message
  std::size_t tail = 0;         ///< where ` comm ` stands
};

CallFolder::Places::Places()
    : slots_(kFewestPlaces), last_(kFewestPlaces - 1), shift_(32 - std::countr_zero(kFewestPlaces)) {}

void CallFolder::Places::Add(std::uint32_t hash, std::uint32_t number) {
  if (4 * (used_ + 1) > slots_.size()) {
    const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
    last_ = slots_.size() - 1;
    --shift_;
    for (const Slot& slot : before)
      if (slot.number != 0) Enter(slot);
  }
  ++used_;
  Enter({hash, number});
}

void CallFolder::Places::Enter(const Slot& slot) {
  std::size_t at = slot.hash >> shift_;
  while (slots_[at].number != 0) at = (at + 1) & last_;
  slots_[at] = slot;
}

CallFolder::CallFolder(Code code) : code_(Runnable(code)) {}
CallFolder::~CallFolder() = default;

void CallFolder::Begin() {
  const std::size_t calls = batch_.calls.size();
  batch_ = {};
  batch_.calls.reserve(calls);
  batch_writers_.clear();
  batch_speakers_.clear();
  if (std::max({threads_.size(), comms_.size(), descriptors_.size(), speakers_.size()}) > kMaxKnown) Forget();
  ++stamp_;
}

// A log that names a new process in every line must not grow this.
void CallFolder::Forget() {
  writers_.clear();
  threads_.clear();
  comms_.clear();
  descriptors_.clear();
  heads_.clear();
  speakers_.clear();
  head_places_ = speaker_places_ = {};
  writer_by_name_.clear();
  thread_by_prefix_.clear();
  comm_by_pointer_.clear();
  descriptor_by_fields_.clear();
}

std::uint32_t CallFolder::NumberOf(Comm& comm) {
  if (comm.stamp != stamp_) {
    comm.stamp = stamp_;
    comm.number = static_cast<std::uint32_t>(batch_.comms.size());
    batch_.comms.push_back(
        {writers_[comm.what.process].process, comm.what.pointer, comm.what.nranks, comm.what.stream});
  }
  return comm.number;
}

std::uint32_t CallFolder::NumberOf(Descriptor& descriptor) {
  if (descriptor.stamp != stamp_) {
    descriptor.stamp = stamp_;
    descriptor.number = static_cast<std::uint32_t>(batch_.descriptors.size());
    batch_.descriptors.push_back(descriptor.what);
  }
  return descriptor.number;
}

CallBatch CallFolder::Take() {
  for (const std::uint32_t index : batch_speakers_) {
    const Speaker& speaker = speakers_[index];
    std::uint32_t& last_piece = writers_[speaker.writer].last_piece;
    last_piece = std::max(last_piece, speaker.last_piece);
  }
  last_pieces_.clear();
  for (const std::uint32_t writer : batch_writers_) last_pieces_.push_back(writers_[writer].last_piece);
  return std::move(batch_);
}

// The device is that of the writer's first line in this block, not of the first that this folder ever saw.
void CallFolder::Enter(Writer& writer, const char* bracket) {
  writer.stamp = stamp_;
  writer.process = static_cast<std::uint32_t>(batch_.processes.size());
  CallBatch::Process process;
  process.host = writer.host;
  process.pid = writer.pid;
  const char* device = bracket;
  while (IsDigit(device[-1])) --device;
  std::from_chars(device, bracket, process.cuda_dev);
  batch_.processes.push_back(std::move(process));
  batch_writers_.push_back(static_cast<std::uint32_t>(&writer - writers_.data()));
}

void CallFolder::Wrote(Writer& writer, const Line& line) {
  if (writer.stamp != stamp_) Enter(writer, line.text.data() + line.mark);
  writer.last_piece = line.piece;
}

void CallFolder::Enter(Speaker& speaker, const Line& line) {
  Wrote(writers_[speaker.writer], line);
  speaker.stamp = stamp_;
  speaker.number = NumberOf(comms_[speaker.comm]);
  batch_speakers_.push_back(static_cast<std::uint32_t>(&speaker - speakers_.data()));
}

void CallFolder::Enter(Head& head) {
  head.stamp = stamp_;
  head.number = NumberOf(descriptors_[head.descriptor]);
}

std::optional<std::uint32_t> CallFolder::ProcessOf(const Line& line) {
  const auto thread = ThreadOf(line);
  if (!thread) return std::nullopt;
  Writer& writer = writers_[threads_[*thread].writer];
  Wrote(writer, line);
  return writer.process;
}

std::optional<std::uint32_t> CallFolder::ThreadOf(const Line& line) {
  const auto prefix = ReadPrefix(line.text.substr(0, line.mark));
  if (!prefix) return std::nullopt;
  const auto [it, is_new] =
      thread_by_prefix_.try_emplace(std::string(prefix->text), static_cast<std::uint32_t>(threads_.size()));
  if (!is_new) return it->second;
  Thread thread;
  const std::string name = std::string(prefix->host) + ':' + std::string(prefix->pid);
  const auto [writer, is_new_writer] = writer_by_name_.try_emplace(name, static_cast<std::uint32_t>(writers_.size()));
  if (is_new_writer) {
    writers_.push_back({.host = std::string(prefix->host)});
    std::from_chars(prefix->pid.data(), prefix->pid.data() + prefix->pid.size(), writers_.back().pid);
  }
  thread.writer = writer->second;
  if (prefix->text.size() >= kFewestPrefix && prefix->text.size() <= kMostPrefix)
    thread.size = static_cast<std::uint32_t>(prefix->text.size());
  threads_.push_back(thread);
  return it->second;
}

// Reads a copy that ends where the line ends: what follows the last line of an input is not of the log.
bool CallFolder::ParseFields(std::string_view message, std::size_t op_size, Fields& out) {
  std::array<char, kFieldBytes + kBehindFields> copy;
  const auto size = message.copy(copy.data(), kFieldBytes);
  std::memset(copy.data() + size, 0, kBehindFields);
  const char* p = copy.data() + op_size + 10;  // `: opCount `, compared by the caller
  const char* end = copy.data() + size;
  const auto range = [&](Fields::Range& to, bool (*skip)(const char*&, std::uint64_t&), std::uint64_t& value) {
    to.begin = static_cast<std::size_t>(p - copy.data());
    const bool good = skip(p, value);
    to.end = static_cast<std::size_t>(p - copy.data());
    return good;
  };
  std::uint64_t pointer = 0;
  if (!range(out.digits, ReadHex, out.op_count) || !Skip(p, " sendbuff ") || !range(out.send, SkipWord, pointer) ||
      !Skip(p, " recvbuff ") || !range(out.receive, SkipWord, pointer) || !Skip(p, " count ") ||
      !ReadDecimal(p, out.count) || !Skip(p, " datatype ") || !ReadInt(p, out.datatype) || !Skip(p, " op ") ||
      !ReadInt(p, out.redop) || !Skip(p, " root ") || !ReadInt(p, out.root))
    return false;
  out.tail = static_cast<std::size_t>(p - copy.data());
  if (!Skip(p, " comm 0x") || !ReadHex(p, out.comm)) return false;
  if (*p == ' ' && p[1] == '[' && (!Skip(p, " [nranks=") || !ReadInt(p, out.nranks) || *p++ != ']')) return false;
  if (!Skip(p, " stream ")) return false;
  if (p[0] == '0' && p[1] == 'x') {
    p += 2;
    if (!ReadHex(p, out.stream)) return false;
  } else if (!Skip(p, "(nil)")) {
    return false;
  }
  return p == end || *p == ' ' || *p == '\x1b';
}

std::uint32_t CallFolder::CommOf(std::uint32_t writer, const Fields& fields) {
  const auto [it, is_new] = comm_by_pointer_.try_emplace({writer, fields.comm, fields.nranks, fields.stream},
                                                         static_cast<std::uint32_t>(comms_.size()));
  if (is_new) comms_.push_back({.what = {writer, fields.comm, fields.nranks, fields.stream}});
  return it->second;
}

std::uint32_t CallFolder::DescriptorOf(std::string_view op, const Fields& fields) {
  const auto [it, is_new] =
      descriptor_by_fields_.try_emplace({std::string(op), fields.count, fields.datatype, fields.redop, fields.root},
                                        static_cast<std::uint32_t>(descriptors_.size()));
  if (is_new)
    descriptors_.push_back({.what = {std::string(op), fields.count, fields.datatype, fields.redop, fields.root}});
  return it->second;
}

// Heads that are not met any more (opCount has grown by a digit, a count was a batch's own) are never told from others:
// when there are too many, all are forgotten, and those of today are soon known again.
void CallFolder::RememberHead(std::string_view text, const Fields& fields, std::uint32_t descriptor) {
  const std::size_t digits = fields.digits.end - fields.digits.begin;
  if (digits > 8 || text.size() < kWide || text.size() > kMostHead) return;
  if (heads_.size() == kMaxHeads) {
    heads_.clear();
    head_places_ = {};
  }
  Head head{.descriptor = descriptor,
            .size = static_cast<std::uint8_t>(text.size()),
            .digits_at = static_cast<std::uint8_t>(fields.digits.begin),
            .digits = static_cast<std::uint8_t>(digits)};
  text.copy(head.text, kMostHead);
  for (const Fields::Range& range : {fields.digits, fields.send, fields.receive})
    std::fill(head.text + range.begin, head.text + range.end, '\0');
  heads_.push_back(head);
  head_places_.Add(HashOfHead(text), static_cast<std::uint32_t>(heads_.size()));
}

void CallFolder::RememberSpeaker(const Line& line, std::string_view tail, const Thread& thread, std::uint32_t comm) {
  Speaker speaker{.writer = thread.writer,
                  .comm = comm,
                  .prefix_size = static_cast<std::uint8_t>(thread.size),
                  .size = static_cast<std::uint8_t>(tail.size())};
  line.text.copy(speaker.prefix, thread.size, line.mark - thread.size);
  tail.copy(speaker.text, kMostTail);
  speakers_.push_back(speaker);
  speaker_places_.Add(line.hash, static_cast<std::uint32_t>(speakers_.size()));
}

CallLine CallFolder::AddSlowly(const Line& line) {
  const std::string_view message = MessageOf(line);
  const std::size_t op_size = message.substr(0, kOpBytes).find(':');
  if (op_size == std::string_view::npos || op_size < 4 || message.substr(op_size, 10) != ": opCount ")
    return CallLine::kNotACall;
  Fields fields;
  if (!IsName(message.data(), op_size) || !ParseFields(message, op_size, fields)) return CallLine::kTorn;
  const auto thread = ThreadOf(line);
  if (!thread) return CallLine::kTorn;
  const std::uint32_t writer = threads_[*thread].writer;
  Wrote(writers_[writer], line);
  const std::uint32_t comm = CommOf(writer, fields), descriptor = DescriptorOf(message.substr(0, op_size), fields);
  batch_.calls.push_back({NumberOf(comms_[comm]), NumberOf(descriptors_[descriptor]),
                          static_cast<std::uint32_t>(fields.op_count), line.number});
  if (line.hash == 0 || threads_[*thread].size == 0) return CallLine::kCall;
  const std::string_view head = message.substr(0, fields.tail), tail = message.substr(fields.tail);
  if (!IsKnownHead(head)) RememberHead(head, fields, descriptor);
  if (tail.size() >= kWide && tail.size() <= kMostTail && !IsKnownSpeaker(line))
    RememberSpeaker(line, tail, threads_[*thread], comm);
  return CallLine::kCall;
}

}  // namespace inquest
