// NCCL's lines of NCCL_DEBUG_SUBSYS=COLL, parsed and folded at the speed of memory.
#include "parsers/calls.h"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace inquest {
namespace {

constexpr std::string_view kInfo = "] NCCL INFO ";
constexpr std::size_t kPrefixSlots = 2048, kTailSlots = 4096, kCommSlots = 4096, kDescriptorSlots = 1024;
constexpr std::size_t kMaxProbes = 16;
constexpr std::size_t kPrefixBytes = 80, kTailBytes = 160, kOpBytes = 16;
constexpr std::size_t kFieldBytes = 448;   ///< more than the longest call's fields take
constexpr std::size_t kPaddingBytes = 32;  ///< more than any literal or number that is looked for
constexpr std::size_t kMaxWriters = 1 << 16;
constexpr std::size_t kPointerBytes = 14;  ///< `0x` and twelve digits: a 47-bit user address of the usual kind
constexpr std::uint32_t kNever = 0;

std::uint64_t Load64(const char* p) {
  std::uint64_t value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t x = (a ^ std::rotl(b, 29)) * 0x9e3779b97f4a7c15ULL;
  return x ^ (x >> 32);
}

template <std::size_t N>
bool Skip(const char*& p, const char (&literal)[N]) {
  if (std::memcmp(p, literal, N - 1) != 0) return false;
  p += N - 1;
  return true;
}

bool SkipPointer(const char*& p) {
  if (p[0] == '0' && p[1] == 'x') {
    const void* blank = std::memchr(p, ' ', 19);  // 16 digits at most; they matter to nobody
    if (blank == nullptr || blank == p + 2) return false;
    p = static_cast<const char*>(blank);
    return true;
  }
  return Skip(p, "(nil)");
}

constexpr auto kHexDigits = [] {
  std::array<std::int8_t, 256> table{};
  table.fill(-1);
  for (int i = 0; i < 10; ++i) table[static_cast<std::size_t>('0' + i)] = static_cast<std::int8_t>(i);
  for (int i = 0; i < 6; ++i) table[static_cast<std::size_t>('a' + i)] = static_cast<std::int8_t>(10 + i);
  return table;
}();

int HexDigit(char c) { return kHexDigits[static_cast<unsigned char>(c)]; }

bool ReadHex(const char*& p, std::uint64_t& value) {
  value = 0;
  const char* begin = p;
  for (int digit; (digit = HexDigit(*p)) >= 0 && p - begin < 17; ++p) value = value << 4 | static_cast<std::uint64_t>(digit);
  return p != begin && p - begin <= 16;
}

bool ReadDecimal(const char*& p, std::uint64_t& value) {
  value = 0;
  const char* begin = p;
  while (*p >= '0' && *p <= '9' && p - begin < 19) value = value * 10 + static_cast<std::uint64_t>(*p++ - '0');
  return p != begin;
}

bool ReadInt(const char*& p, std::int32_t& value) {
  const bool negative = *p == '-';
  if (negative) ++p;
  std::uint64_t digits = 0;
  if (!ReadDecimal(p, digits) || digits > 0x7fffffff) return false;
  value = negative ? -static_cast<std::int32_t>(digits) : static_cast<std::int32_t>(digits);
  return true;
}

bool IsHostByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

/// Equality of two ranges of at least 16 bytes. Differences are gathered first: they are rare, and branches are not free.
bool Same(const char* a, const char* b, std::size_t size) {
#if defined(__x86_64__)
  const auto difference = [&](std::size_t at) {
    return _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(a + at)), _mm_loadu_si128(reinterpret_cast<const __m128i*>(b + at)));
  };
  __m128i differ = difference(size - 16);
  for (std::size_t at = 0; at + 16 < size; at += 16) differ = _mm_or_si128(differ, difference(at));
  return _mm_movemask_epi8(_mm_cmpeq_epi8(differ, _mm_setzero_si128())) == 0xffff;
#else
  return std::memcmp(a, b, size) == 0;
#endif
}

/// Offset of the first ':' of 16 bytes; 16 if there is none. Names differ from line to line: no branch to mispredict.
std::size_t FindColon(const char* text) {
#if defined(__x86_64__)
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(text));
  const auto mask = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(':')))) | 1u << 16;
  return static_cast<std::size_t>(std::countr_zero(mask));
#else
  const void* at = std::memchr(text, ':', 16);
  return at == nullptr ? 16 : static_cast<std::size_t>(static_cast<const char*>(at) - text);
#endif
}

/// Equality of the first `size` bytes of two ranges that are both readable for 16.
bool SameOp(const char* a, const char* b, std::size_t size) {
#if defined(__x86_64__)
  const __m128i x = _mm_loadu_si128(reinterpret_cast<const __m128i*>(a));
  const __m128i y = _mm_loadu_si128(reinterpret_cast<const __m128i*>(b));
  const auto same = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(x, y)));
  return (~same & ((1u << size) - 1)) == 0;
#else
  return std::memcmp(a, b, size) == 0;
#endif
}

/// Whether a ']' is among the first `size` bytes, 64 at most; as many must be readable.
bool HasBracket(const char* text, std::size_t size) {
#if defined(__x86_64__)
  const __m128i bracket = _mm_set1_epi8(']');
  for (std::size_t i = 0; i < size; i += 16) {
    auto mask = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(text + i)), bracket)));
    if (size - i < 16) mask &= (1u << (size - i)) - 1;
    if (mask != 0) return true;
  }
  return false;
#else
  return std::memchr(text, ']', size) != nullptr;
#endif
}

bool IsName(const char* text, std::size_t size) {
  return std::all_of(text, text + size, [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); });
}

}  // namespace

struct CallFolder::Fields {
  std::uint64_t op_count = 0, count = 0, comm = 0;
  std::int32_t datatype = 0, redop = 0, root = 0, nranks = 0;
};

std::size_t FindNcclInfo(std::string_view line, std::size_t guess) {
  // A guess that holds is the right one only if no other stands before it; in front of NCCL's prefix stand launchers' tags.
  if (guess < 64 && guess + kInfo.size() <= line.size() && std::memcmp(line.data() + guess, kInfo.data(), kInfo.size()) == 0 && !HasBracket(line.data(), guess)) return guess;
  const std::size_t limit = std::min<std::size_t>(line.size(), 256);
  const char* data = line.data();
#if defined(__x86_64__)
  const __m128i bracket = _mm_set1_epi8(']');
  for (std::size_t i = 0; i < limit; i += 32) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + i));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(data + i + 16));
    auto mask = static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(low, bracket))) |
                static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(high, bracket))) << 16;
    while (mask != 0) {
      const std::size_t at = i + static_cast<std::size_t>(std::countr_zero(mask));
      mask &= mask - 1;
      if (at + kInfo.size() <= line.size() && std::memcmp(data + at, kInfo.data(), kInfo.size()) == 0) return at;
    }
  }
  return std::string_view::npos;
#else
  return line.substr(0, std::min(line.size(), limit + kInfo.size())).find(kInfo);
#endif
}

struct CallFolder::Writer {
  std::string host;
  std::int64_t pid = 0;
  std::uint32_t process = 0, stamp = kNever;  ///< its number in the batch of that stamp
};
struct CallFolder::PrefixSlot {
  std::uint64_t tail = 0;
  std::uint32_t writer = 0, size = 0;  ///< size 0: free
  char text[kPrefixBytes] = {};
};
struct CallFolder::TailSlot {
  std::uint64_t hash = 0;
  std::uint32_t writer = 0, comm = 0, descriptor = 0, stamp = kNever;
  std::uint32_t op_size = 0, tail_size = 0;  ///< tail_size 0: free
  Fields fields;
  char op[kOpBytes] = {};
  char tail[kTailBytes] = {};
};
struct CallFolder::CommSlot {
  std::uint64_t pointer = 0;
  std::uint32_t process = 0, comm = 0, stamp = kNever;
};
struct CallFolder::DescriptorSlot {
  std::uint64_t hash = 0;
  std::uint32_t descriptor = 0, stamp = kNever;
};

CallFolder::CallFolder() : prefixes_(kPrefixSlots), tails_(kTailSlots), comms_(kCommSlots), descriptors_(kDescriptorSlots) {}
CallFolder::~CallFolder() = default;

void CallFolder::Begin() {
  batch_ = {};
  last_pieces_.clear();
  if (writers_.size() > kMaxWriters) Forget();
  ++stamp_;
}

// A log that names a new process in every line must not grow this.
void CallFolder::Forget() {
  writers_.clear();
  writer_by_name_.clear();
  std::fill(prefixes_.begin(), prefixes_.end(), PrefixSlot());
  std::fill(tails_.begin(), tails_.end(), TailSlot());
}

CallBatch CallFolder::Take() { return std::move(batch_); }

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
  last_pieces_.push_back(0);
}

std::uint32_t CallFolder::InBatch(Writer& writer, const char* bracket, std::uint32_t piece) {
  if (writer.stamp != stamp_) Enter(writer, bracket);
  last_pieces_[writer.process] = piece;
  return writer.process;
}

std::optional<std::uint32_t> CallFolder::ProcessOf(std::string_view line, std::size_t bracket, std::uint32_t piece) {
  Writer* writer = WriterOf(line, bracket);
  if (writer == nullptr) return std::nullopt;
  return InBatch(*writer, line.data() + bracket, piece);
}

// The 24 bytes before the bracket tell a thread from another almost always; the whole prefix is compared all the same.
CallFolder::Writer* CallFolder::WriterOf(std::string_view line, std::size_t bracket) {
  if (bracket < 16) return NewPrefix(line, bracket, nullptr);
  const char* end = line.data() + bracket;
  const char* head = bracket < 24 ? line.data() : end - 24;
  const std::uint64_t tail = Mix(Mix(Load64(end - 8), Load64(end - 16)), Load64(head));
  std::size_t index = tail % kPrefixSlots;
  for (std::size_t probe = 0; probe < kMaxProbes; ++probe, index = (index + 1) % kPrefixSlots) {
    PrefixSlot& slot = prefixes_[index];
    if (slot.size == 0) {
      slot.tail = tail;
      return NewPrefix(line, bracket, &slot);
    }
    if (slot.tail != tail || slot.size > bracket || !Same(slot.text, end - slot.size, slot.size)) continue;
    if (slot.size < bracket && IsHostByte(*(end - slot.size - 1))) continue;
    return &writers_[slot.writer];
  }
  return NewPrefix(line, bracket, nullptr);  // more threads than probes find room for: right, only slower
}

// Reads `host:pid:tid [dev` backwards from the bracket.
CallFolder::Writer* CallFolder::NewPrefix(std::string_view line, std::size_t bracket, PrefixSlot* slot) {
  const char* begin = line.data();
  const char* end = begin + bracket;
  const char* p = end;
  while (p > begin && IsDigit(p[-1])) --p;
  if (p == end || p - begin < 2 || p[-1] != '[' || p[-2] != ' ') return nullptr;
  Writer writer;
  const char* q = p - 2;
  while (q > begin && IsDigit(q[-1])) --q;
  if (q == p - 2 || q == begin || q[-1] != ':') return nullptr;
  const char* pid_end = --q;
  while (q > begin && IsDigit(q[-1])) --q;
  if (q == pid_end || q == begin || q[-1] != ':') return nullptr;
  const char* host_end = q - 1;
  const char* host = host_end;
  while (host > begin && IsHostByte(host[-1])) --host;
  if (host == host_end) return nullptr;

  writer.host.assign(host, host_end);
  std::from_chars(q, pid_end, writer.pid);
  const auto [it, is_new] = writer_by_name_.try_emplace(std::string(host, pid_end), static_cast<std::uint32_t>(writers_.size()));
  if (is_new) writers_.push_back(std::move(writer));
  const auto size = static_cast<std::size_t>(end - host);
  if (slot != nullptr && size >= 16 && size <= kPrefixBytes) {
    slot->writer = it->second;
    slot->size = static_cast<std::uint32_t>(size);
    std::memcpy(slot->text, host, size);
  }
  return &writers_[it->second];
}

// Reads a copy that ends where the line ends: what follows the last line of an input is not of the log.
bool CallFolder::ParseFields(const char* message, std::size_t op_size, const char* line_end, Fields& out) {
  std::array<char, kFieldBytes + kPaddingBytes> copy;
  const auto size = std::min(static_cast<std::size_t>(line_end - message), kFieldBytes);
  std::memcpy(copy.data(), message, size);
  std::memset(copy.data() + size, 0, kPaddingBytes);
  const char* p = copy.data() + op_size + 10;  // `: opCount `, compared by the caller
  const char* end = copy.data() + size;
  std::uint64_t pointer = 0;
  if (!ReadHex(p, out.op_count) || !Skip(p, " sendbuff ") || !SkipPointer(p) || !Skip(p, " recvbuff ") || !SkipPointer(p) ||
      !Skip(p, " count ") || !ReadDecimal(p, out.count) || !Skip(p, " datatype ") || !ReadInt(p, out.datatype) ||
      !Skip(p, " op ") || !ReadInt(p, out.redop) || !Skip(p, " root ") || !ReadInt(p, out.root) || !Skip(p, " comm 0x") ||
      !ReadHex(p, out.comm))
    return false;
  if (*p == ' ' && p[1] == '[' && (!Skip(p, " [nranks=") || !ReadInt(p, out.nranks) || *p++ != ']')) return false;
  if (!Skip(p, " stream ")) return false;
  if (p[0] == '0' && p[1] == 'x') {
    p += 2;
    if (!ReadHex(p, pointer)) return false;
  } else if (!Skip(p, "(nil)")) {
    return false;
  }
  return p == end || *p == ' ' || *p == '\x1b';
}

std::uint32_t CallFolder::CommOf(std::uint32_t process, std::uint64_t pointer, std::int32_t nranks) {
  std::size_t index = Mix(pointer, process) % kCommSlots;
  const auto add = [&] {
    batch_.comms.push_back({process, pointer, nranks});
    return static_cast<std::uint32_t>(batch_.comms.size() - 1);
  };
  for (std::size_t probe = 0; probe < kMaxProbes; ++probe, index = (index + 1) % kCommSlots) {
    CommSlot& slot = comms_[index];
    if (slot.stamp == stamp_ && slot.pointer == pointer && slot.process == process) return slot.comm;
    if (slot.stamp == stamp_) continue;
    slot = {pointer, process, add(), stamp_};
    return slot.comm;
  }
  for (std::size_t i = batch_.comms.size(); i-- > 0;)
    if (batch_.comms[i].pointer == pointer && batch_.comms[i].process == process) return static_cast<std::uint32_t>(i);
  return add();
}

std::uint32_t CallFolder::DescriptorOf(std::string_view op, const Fields& fields) {
  std::uint64_t hash = Mix(Load64(op.data()) & (op.size() >= 8 ? ~0ULL : (1ULL << (op.size() * 8)) - 1), fields.count);
  hash = Mix(hash + op.size(), static_cast<std::uint64_t>(fields.datatype) << 48 ^ static_cast<std::uint64_t>(fields.redop) << 32 ^
                                   static_cast<std::uint32_t>(fields.root));
  std::size_t index = hash % kDescriptorSlots;
  const auto same = [&](const CallDescriptor& other) {
    return other.count == fields.count && other.datatype == fields.datatype && other.redop == fields.redop &&
           other.root == fields.root && other.op == op;
  };
  const auto add = [&] {
    batch_.descriptors.push_back({std::string(op), fields.count, fields.datatype, fields.redop, fields.root});
    return static_cast<std::uint32_t>(batch_.descriptors.size() - 1);
  };
  for (std::size_t probe = 0; probe < kMaxProbes; ++probe, index = (index + 1) % kDescriptorSlots) {
    DescriptorSlot& slot = descriptors_[index];
    if (slot.stamp == stamp_ && slot.hash == hash && same(batch_.descriptors[slot.descriptor])) return slot.descriptor;
    if (slot.stamp == stamp_) continue;
    slot = {hash, add(), stamp_};
    return slot.descriptor;
  }
  return add();
}

CallLine CallFolder::AddSlowly(std::string_view line, std::size_t bracket, std::size_t op_size, std::uint32_t line_number, std::uint32_t piece) {
  const char* message = line.data() + bracket + kInfo.size();
  if (bracket + kInfo.size() + op_size + 10 > line.size()) return CallLine::kNotACall;  // the rest is the next line's
  Fields fields;
  if (!IsName(message, op_size) || !ParseFields(message, op_size, line.data() + line.size(), fields)) return CallLine::kTorn;
  const auto process = ProcessOf(line, bracket, piece);
  if (!process) return CallLine::kTorn;
  const std::uint32_t comm = CommOf(*process, fields.comm, fields.nranks);
  batch_.calls.push_back({comm, DescriptorOf({message, op_size}, fields), static_cast<std::uint32_t>(fields.op_count), line_number});
  return CallLine::kCall;
}

CallLine CallFolder::Add(std::string_view line, std::size_t bracket, std::uint32_t line_number, std::uint32_t piece) {
  const char* message = line.data() + bracket + kInfo.size();
  const std::size_t op_size = FindColon(message);
  if (op_size < 4 || op_size >= kOpBytes || std::memcmp(message + op_size, ": opCount ", 10) != 0) return CallLine::kNotACall;

  // opCount, two buffers that say nothing, and a tail: ` count ... stream 0x..`.
  const char* line_end = line.data() + line.size();
  const char* p = message + op_size + 10;
  std::uint64_t op_count = 0;
  if (!ReadHex(p, op_count) || line_end - p < static_cast<std::ptrdiff_t>(20 + 2 * kPointerBytes + 48)) return AddSlowly(line, bracket, op_size, line_number, piece);
  const char* send = p + 10;
  const char* receive = send + kPointerBytes + 10;
  const char* tail = receive + kPointerBytes;
  if (std::memcmp(p, " sendbuff ", 10) != 0 || std::memcmp(send, "0x", 2) != 0 || std::memcmp(send + kPointerBytes, " recvbuff ", 10) != 0 ||
      std::memcmp(receive, "0x", 2) != 0 || std::memcmp(tail, " count ", 7) != 0)
    return AddSlowly(line, bracket, op_size, line_number, piece);
  const auto tail_size = static_cast<std::size_t>(line_end - tail);
  Writer* writer = WriterOf(line, bracket);
  if (writer == nullptr || tail_size > kTailBytes) return AddSlowly(line, bracket, op_size, line_number, piece);

  const auto writer_number = static_cast<std::uint32_t>(writer - writers_.data());
  std::uint64_t hash = Mix(Load64(tail + 7) + writer_number, Load64(line_end - 8));
  hash = Mix(hash ^ Load64(message), Load64(line_end - 46));
  hash = Mix(hash, Load64(line_end - 38) ^ Load64(tail + 15));
  // Two places for each tail: with one, a sixth of a job's calls would push one another out.
  const std::size_t index = hash % kTailSlots;
  const auto known = [&](const TailSlot& candidate) {
    return candidate.hash == hash && candidate.writer == writer_number && candidate.op_size == op_size && candidate.tail_size == tail_size &&
           SameOp(candidate.op, message, op_size) && Same(candidate.tail, tail, tail_size);
  };
  const bool first = known(tails_[index]);
  const bool second = !first && known(tails_[index ^ 1]);
  const bool oust_first = tails_[index].tail_size == 0 || (tails_[index ^ 1].tail_size != 0 && tails_[index].stamp < tails_[index ^ 1].stamp);
  TailSlot& slot = tails_[first || (!second && oust_first) ? index : index ^ 1];
  if (!first && !second) {
    Fields fields;
    if (!IsName(message, op_size) || !ParseFields(message, op_size, line_end, fields)) return CallLine::kTorn;
    slot.hash = hash;
    slot.writer = writer_number;
    slot.op_size = static_cast<std::uint32_t>(op_size);
    slot.tail_size = static_cast<std::uint32_t>(tail_size);
    slot.fields = fields;
    slot.stamp = kNever;
    std::memcpy(slot.op, message, op_size);
    std::memcpy(slot.tail, tail, tail_size);
  }
  const std::uint32_t process = InBatch(*writer, line.data() + bracket, piece);
  if (slot.stamp != stamp_) {
    slot.comm = CommOf(process, slot.fields.comm, slot.fields.nranks);
    slot.descriptor = DescriptorOf({message, op_size}, slot.fields);
    slot.stamp = stamp_;
  }
  batch_.calls.push_back({slot.comm, slot.descriptor, static_cast<std::uint32_t>(op_count), line_number});
  return CallLine::kCall;
}

}  // namespace inquest
