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

constexpr std::size_t kFewestPlaces = 4096, kMostPlaces = 32768;  ///< for kinds, three in four of which stay free; powers of two
constexpr std::size_t kPrefixBytes = 80, kOpBytes = 16;
constexpr std::size_t kPointerBytes = 18;  ///< `0x` and sixteen digits
constexpr std::size_t kFieldBytes = 448;   ///< more than the longest call's fields take
constexpr std::size_t kBehindFields = 32;  ///< more than any literal or number that is looked for
constexpr std::size_t kWorthwhile = 32;    ///< calls of known kinds to a kind that is forgotten
constexpr std::size_t kMaxKnown = 1 << 16;
constexpr std::uint32_t kNever = 0;

// Of a message that is remembered: what differs from call to call stands in its head, what tells it from others in its
// last bytes, and between the two lies ` count `.
constexpr std::size_t kHeadBytes = 96, kTelling = 72, kCountBytes = 48, kMostMessage = 232;
constexpr std::size_t kLeastMessage = kTelling + kCountBytes;

template <class Word>
Word Load(const char* p) {
  Word value;
  std::memcpy(&value, p, sizeof value);
  return value;
}

template <std::size_t N>
bool Skip(const char*& p, const char (&literal)[N]) {
  if (std::memcmp(p, literal, N - 1) != 0) return false;
  p += N - 1;
  return true;
}

std::uint64_t Load64(const char* p) { return Load<std::uint64_t>(p); }

/// Buffers say nothing: any word will do.
bool SkipWord(const char*& p, std::uint64_t&) {
  const void* blank = std::memchr(p, ' ', kPointerBytes + 1);
  if (blank == nullptr || blank == p) return false;
  p = static_cast<const char*>(blank);
  return true;
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

bool IsName(const char* text, std::size_t size) {
  return std::all_of(text, text + size, [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); });
}

// What follows is made so that little of it branches: names, numbers and their lengths differ from line to line, and a
// mispredicted branch costs as much as a quarter of a line.

#if defined(__x86_64__)
__m128i Load128(const char* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
std::uint32_t Bits(__m128i bytes) { return static_cast<std::uint32_t>(_mm_movemask_epi8(bytes)); }
#endif

/// Whether a message is that of a kind: any byte but blanks and control bytes will do in the head where the known one is
/// 0, all others are the same. (What a byte above 0x7f is there is not decided: it makes them differ.)
bool SameMessage(const char* known, const char* text, std::size_t size) {
  bool same = true;
  for (std::size_t at = 0; at < kHeadBytes; ++at) same &= (known[at] == text[at]) | ((known[at] == 0) & (static_cast<signed char>(text[at]) > ' '));
  return same && std::memcmp(known + kHeadBytes, text + kHeadBytes, size - kHeadBytes) == 0;
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) inline __m256i Load256(const char* p) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }

__attribute__((target("avx2"))) bool SameMessageAvx2(const char* known, const char* text, std::size_t size) {
  __m256i same = _mm256_set1_epi8(-1);
  for (std::size_t at = 0; at < kHeadBytes; at += 32) {
    const __m256i a = Load256(known + at), b = Load256(text + at);
    const __m256i any = _mm256_and_si256(_mm256_cmpeq_epi8(a, _mm256_setzero_si256()), _mm256_cmpgt_epi8(b, _mm256_set1_epi8(' ')));
    same = _mm256_and_si256(same, _mm256_or_si256(_mm256_cmpeq_epi8(a, b), any));
  }
  for (std::size_t at = kHeadBytes; at + 32 < size; at += 32) same = _mm256_and_si256(same, _mm256_cmpeq_epi8(Load256(known + at), Load256(text + at)));
  same = _mm256_and_si256(same, _mm256_cmpeq_epi8(Load256(known + size - 32), Load256(text + size - 32)));
  return _mm256_movemask_epi8(same) == -1;
}
const bool kAvx2 = __builtin_cpu_supports("avx2") != 0;
#else
constexpr bool kAvx2 = false;
bool SameMessageAvx2(const char* known, const char* text, std::size_t size) { return SameMessage(known, text, size); }
#endif

/// Equality of two ranges of at least 16 bytes, most of which are short.
bool Same(const char* a, const char* b, std::size_t size) {
#if defined(__x86_64__)
  const auto same = [&](std::size_t at) { return _mm_cmpeq_epi8(Load128(a + at), Load128(b + at)); };
  if (size <= 32) return Bits(_mm_and_si128(same(0), same(size - 16))) == 0xffff;
#endif
  return std::memcmp(a, b, size) == 0;
}

/// Where the count of a call stands in its message, most likely; so far in front of the end no other word has an `n`.
const char* CountIn(const char* end) {
  const char* begin = end - kLeastMessage;
#if defined(__x86_64__)
  const auto find = [begin](std::size_t at) { return std::uint64_t{Bits(_mm_cmpeq_epi8(Load128(begin + at), _mm_set1_epi8('n')))} << at; };
  return begin + std::bit_width(find(0) | find(16) | find(32)) + 2;
#else
  const void* n = ::memrchr(begin, 'n', kCountBytes);
  return n == nullptr ? begin + 2 : static_cast<const char*>(n) + 3;
#endif
}

/// Which of 16 bytes are hexadecimal digits as NCCL prints them.
std::uint32_t HexDigits(const char* text) {
#if defined(__x86_64__)
  const __m128i bytes = Load128(text);
  const __m128i digit = _mm_sub_epi8(bytes, _mm_set1_epi8('0')), letter = _mm_sub_epi8(bytes, _mm_set1_epi8('a'));
  const __m128i is_digit = _mm_cmpeq_epi8(_mm_min_epu8(digit, _mm_set1_epi8(9)), digit);
  const __m128i is_letter = _mm_cmpeq_epi8(_mm_min_epu8(letter, _mm_set1_epi8(5)), letter);
  return Bits(_mm_or_si128(is_digit, is_letter));
#else
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < 16; ++i) bits |= std::uint32_t{HexDigit(text[i]) >= 0} << i;
  return bits;
#endif
}

/// The value of one to eight hexadecimal digits.
std::uint32_t HexOf(const char* text, std::size_t digits) {
  static_assert(std::endian::native == std::endian::little);
  std::uint64_t bytes = Load64(text) << (64 - 8 * digits);  // the last digit is the highest byte
  bytes = (bytes & 0x0f0f0f0f0f0f0f0f) + 9 * (bytes >> 6 & 0x0101010101010101);
  bytes = (bytes << 4 | bytes >> 8) & 0x00ff00ff00ff00ff;
  bytes = (bytes << 8 | bytes >> 16) & 0x0000ffff0000ffff;
  return static_cast<std::uint32_t>(bytes << 16 | bytes >> 32);
}

/// Whether there are so many hexadecimal digits, eight at most.
bool AreHex(const char* text, std::size_t digits) {
  const std::uint32_t wanted = (1u << digits) - 1;
  return digits != 0 && (HexDigits(text) & wanted) == wanted;
}

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
  const auto view = [](const char* from, const char* to) { return std::string_view(from, static_cast<std::size_t>(to - from)); };
  return Prefix{view(host, host_end), view(q, pid_end), view(host, end)};
}

}  // namespace

struct CallFolder::Fields {
  struct Range { std::size_t begin = 0, end = 0; };
  std::uint64_t op_count = 0, count = 0, comm = 0;
  std::int32_t datatype = 0, redop = 0, root = 0, nranks = 0;
  Range digits, send, receive;  ///< of opCount and the buffers, in the message
};

struct alignas(64) CallFolder::Writer {
  std::string host;
  std::int64_t pid = 0;
  std::uint32_t process = 0, stamp = kNever;  ///< its number in the batch of that stamp
  std::uint32_t last_piece = 0;
};
struct CallFolder::Thread {
  std::uint32_t writer = 0, size = 0;  ///< size 0: its calls are not remembered
  char prefix[kPrefixBytes] = {};
};
struct alignas(64) CallFolder::Kind {
  std::uint64_t hash = 0;
  std::uint32_t thread = 0, comm = 0, descriptor = 0;
  std::uint16_t size = 0;
  std::uint8_t digits_at = 0, digits = 0;
  char message[kMostMessage] = {};  ///< 0 where calls differ
};
struct CallFolder::Comm {
  CallBatch::Comm what;  ///< its process is a writer of this folder
  std::uint32_t number = 0, stamp = kNever;  ///< in the batch of that stamp
};
struct CallFolder::Descriptor {
  CallDescriptor what;
  std::uint32_t number = 0, stamp = kNever;  ///< in the batch of that stamp
};

CallFolder::CallFolder() : places_(kFewestPlaces) {}
CallFolder::~CallFolder() = default;

void CallFolder::Begin() {
  const std::size_t calls = batch_.calls.size();
  batch_ = {};
  batch_.calls.reserve(calls);
  batch_writers_.clear();
  if (threads_.size() > kMaxKnown || comms_.size() > kMaxKnown || descriptors_.size() > kMaxKnown) Forget();
  ++stamp_;
}

// A log that names a new process in every line must not grow this.
void CallFolder::Forget() {
  writers_.clear();
  threads_.clear();
  comms_.clear();
  descriptors_.clear();
  writer_by_name_.clear();
  thread_by_prefix_.clear();
  comm_by_pointer_.clear();
  descriptor_by_fields_.clear();
  kinds_.clear();
  places_.assign(kFewestPlaces, {});
}

// Calls carry this folder's numbers until all of the block's are known.
CallBatch CallFolder::Take() {
  for (CallBatch::Call& call : batch_.calls) {
    Comm& comm = comms_[call.comm];
    if (comm.stamp != stamp_) {
      comm.stamp = stamp_;
      comm.number = static_cast<std::uint32_t>(batch_.comms.size());
      batch_.comms.push_back({writers_[comm.what.process].process, comm.what.pointer, comm.what.nranks});
    }
    call.comm = comm.number;
    Descriptor& descriptor = descriptors_[call.descriptor];
    if (descriptor.stamp != stamp_) {
      descriptor.stamp = stamp_;
      descriptor.number = static_cast<std::uint32_t>(batch_.descriptors.size());
      batch_.descriptors.push_back(descriptor.what);
    }
    call.descriptor = descriptor.number;
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
  if (writer.stamp != stamp_) Enter(writer, line.text.data() + line.bracket);
  writer.last_piece = line.piece;
}

std::optional<std::uint32_t> CallFolder::ProcessOf(const Line& line) {
  const auto thread = ThreadOf(line);
  if (!thread) return std::nullopt;
  Writer& writer = writers_[threads_[*thread].writer];
  Wrote(writer, line);
  return writer.process;
}

std::optional<std::uint32_t> CallFolder::ThreadOf(const Line& line) {
  const auto prefix = ReadPrefix(line.text.substr(0, line.bracket));
  if (!prefix) return std::nullopt;
  const auto [it, is_new] = thread_by_prefix_.try_emplace(std::string(prefix->text), static_cast<std::uint32_t>(threads_.size()));
  if (!is_new) return it->second;
  Thread thread;
  const std::string name = std::string(prefix->host) + ':' + std::string(prefix->pid);
  const auto [writer, is_new_writer] = writer_by_name_.try_emplace(name, static_cast<std::uint32_t>(writers_.size()));
  if (is_new_writer) {
    writers_.push_back({.host = std::string(prefix->host)});
    std::from_chars(prefix->pid.data(), prefix->pid.data() + prefix->pid.size(), writers_.back().pid);
  }
  thread.writer = writer->second;
  if (prefix->text.size() >= 16 && prefix->text.size() <= kPrefixBytes) {
    thread.size = static_cast<std::uint32_t>(prefix->text.size());
    prefix->text.copy(thread.prefix, kPrefixBytes);
  }
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
  if (!range(out.digits, ReadHex, out.op_count) || !Skip(p, " sendbuff ") || !range(out.send, SkipWord, pointer) || !Skip(p, " recvbuff ") ||
      !range(out.receive, SkipWord, pointer) || !Skip(p, " count ") || !ReadDecimal(p, out.count) || !Skip(p, " datatype ") ||
      !ReadInt(p, out.datatype) || !Skip(p, " op ") || !ReadInt(p, out.redop) || !Skip(p, " root ") || !ReadInt(p, out.root) ||
      !Skip(p, " comm 0x") || !ReadHex(p, out.comm))
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

std::uint32_t CallFolder::CommOf(std::uint32_t writer, const Fields& fields) {
  const auto [it, is_new] = comm_by_pointer_.try_emplace({writer, fields.comm, fields.nranks}, static_cast<std::uint32_t>(comms_.size()));
  if (is_new) comms_.push_back({.what = {writer, fields.comm, fields.nranks}});
  return it->second;
}

std::uint32_t CallFolder::DescriptorOf(std::string_view op, const Fields& fields) {
  const auto [it, is_new] = descriptor_by_fields_.try_emplace({std::string(op), fields.count, fields.datatype, fields.redop, fields.root},
                                                              static_cast<std::uint32_t>(descriptors_.size()));
  if (is_new) descriptors_.push_back({.what = {std::string(op), fields.count, fields.datatype, fields.redop, fields.root}});
  return it->second;
}

CallLine CallFolder::AddSlowly(const Line& line) {
  const std::string_view message = line.text.substr(line.bracket + kNcclInfo.size());
  const std::size_t op_size = message.substr(0, kOpBytes).find(':');
  if (op_size == std::string_view::npos || op_size < 4 || message.substr(op_size, 10) != ": opCount ") return CallLine::kNotACall;
  Fields fields;
  if (!IsName(message.data(), op_size) || !ParseFields(message, op_size, fields)) return CallLine::kTorn;
  const auto thread = ThreadOf(line);
  if (!thread) return CallLine::kTorn;
  const std::uint32_t writer = threads_[*thread].writer;
  Wrote(writers_[writer], line);
  const std::uint32_t comm = CommOf(writer, fields), descriptor = DescriptorOf(message.substr(0, op_size), fields);
  batch_.calls.push_back({comm, descriptor, static_cast<std::uint32_t>(fields.op_count), line.number});
  const std::size_t digits = fields.digits.end - fields.digits.begin;
  if (line.hash == 0 || threads_[*thread].size == 0 || digits > 8 || fields.receive.end > message.size() - kTelling) return CallLine::kCall;

  Kind kind{.hash = line.hash, .thread = *thread, .comm = comm, .descriptor = descriptor};
  kind.size = static_cast<std::uint16_t>(message.size());
  kind.digits_at = static_cast<std::uint8_t>(fields.digits.begin);
  kind.digits = static_cast<std::uint8_t>(digits);
  message.copy(kind.message, kMostMessage);
  for (const Fields::Range& range : {fields.digits, fields.send, fields.receive}) std::fill(kind.message + range.begin, kind.message + range.end, '\0');
  Remember(kind);
  return CallLine::kCall;
}

// Kinds that are not met any more (opCount has grown by a digit) are never told from others: when there is no more room,
// all are forgotten, and those of today are soon known again. More room is made where that comes too often.
void CallFolder::Remember(const Kind& kind) {
  if (4 * (kinds_.size() + 1) > places_.size()) {
    const bool grow = calls_known_ < kWorthwhile * kinds_.size() && places_.size() < kMostPlaces;
    places_.assign(grow ? 2 * places_.size() : places_.size(), {});
    kinds_.clear();
    calls_known_ = 0;
  }
  kinds_.push_back(kind);
  std::size_t place = PlaceOf(kind.hash);
  while (places_[place].kind != 0) place = (place + 1) & (places_.size() - 1);
  places_[place] = {static_cast<std::uint16_t>(kind.hash), static_cast<std::uint16_t>(kinds_.size())};
}

/// Where the search for a hash begins: by its highest bits, which all that was hashed decides.
std::size_t CallFolder::PlaceOf(std::uint64_t hash) const { return hash >> (std::countl_zero(places_.size()) + 1); }

void CallFolder::Look(Line& line) const {
  line.hash = 0;
  const char* message = line.text.data() + line.bracket + kNcclInfo.size();
  const char* end = line.text.data() + line.text.size();
  const auto size = static_cast<std::size_t>(end - message);
  if (size - kLeastMessage > kMostMessage - kLeastMessage || line.bracket < 16) return;
  const char* prefix_end = line.text.data() + line.bracket;
  const auto mix = [](const char* a, const char* b, std::uint64_t factor) { return (Load64(a) ^ std::rotl(Load64(b), 32)) * factor; };
  // What tells most calls apart; those that it does not are compared one by one.
  std::uint64_t hash = mix(message, CountIn(end), 0x9e3779b97f4a7c15) + mix(prefix_end - 8, prefix_end - 16, 0x589965cc75374cc3);
  hash += mix(end - 64, end - 48, 0xd6e8feb86659fd93) + mix(end - 40, end - 32, 0xa0761d6478bd642f);
  hash += (Load64(end - 8) + size) * 0x8ebc6af09c88c6e3;
  line.hash = ((hash ^ hash >> 32) * 0x9fb21c651e98df25) | 1;
  const std::uint16_t number = places_[PlaceOf(line.hash)].kind;
  if (number == 0) return;
  const auto* kind = reinterpret_cast<const char*>(&kinds_[number - 1u]);
  for (std::size_t at = 0; at < sizeof(Kind); at += 64) __builtin_prefetch(kind + at);
}

/// A line that was seen before, but for opCount and the buffers, costs a comparison and a few digits.
const CallFolder::Kind* CallFolder::KindOf(const Line& line) const {
  if (line.hash == 0) return nullptr;
  const std::string_view message = line.text.substr(line.bracket + kNcclInfo.size());
  const char* prefix_end = line.text.data() + line.bracket;
  for (std::size_t i = PlaceOf(line.hash); places_[i].kind != 0; i = (i + 1) & (places_.size() - 1)) {
    if (places_[i].tag != static_cast<std::uint16_t>(line.hash)) continue;
    const Kind& kind = kinds_[places_[i].kind - 1];
    if (kind.size != message.size() || !(kAvx2 ? SameMessageAvx2 : SameMessage)(kind.message, message.data(), message.size())) continue;
    const Thread& thread = threads_[kind.thread];
    const bool same_thread = thread.size <= line.bracket && Same(thread.prefix, prefix_end - thread.size, thread.size) &&
                             (thread.size == line.bracket || !IsHostByte(*(prefix_end - thread.size - 1)));
    if (same_thread && AreHex(message.data() + kind.digits_at, kind.digits)) return &kind;
  }
  return nullptr;
}

CallLine CallFolder::Add(const Line& line) {
  const Kind* kind = KindOf(line);
  if (kind == nullptr) return AddSlowly(line);
  ++calls_known_;
  Wrote(writers_[threads_[kind->thread].writer], line);
  const char* digits = line.text.data() + line.bracket + kNcclInfo.size() + kind->digits_at;
  batch_.calls.push_back({kind->comm, kind->descriptor, HexOf(digits, kind->digits), line.number});
  return CallLine::kCall;
}

}  // namespace inquest
