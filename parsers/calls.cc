// NCCL's lines of NCCL_DEBUG_SUBSYS=COLL, parsed and folded at the speed of memory.
#include "parsers/calls.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace inquest {
namespace {

constexpr std::string_view kInfo = "] NCCL INFO ";
constexpr std::size_t kPrefixSlots = 2048, kCommSlots = 4096, kDescriptorSlots = 1024;
constexpr std::size_t kMaxProbes = 16;

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
    if (p[14] == ' ') {  // 48-bit addresses, the usual case: eleven digits that matter to nobody
      p += 14;
      return true;
    }
    p += 2;
    const char* begin = p;
    while ((*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f')) ++p;
    return p != begin;
  }
  return Skip(p, "(nil)");
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

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

}  // namespace

struct CallFolder::Fields {
  std::uint64_t op_count = 0, count = 0, comm = 0;
  std::int32_t datatype = 0, redop = 0, root = 0, nranks = 0;
};

std::size_t FindNcclInfo(std::string_view line) {
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

CallFolder::CallFolder() : prefixes_(kPrefixSlots), comms_(kCommSlots), descriptors_(kDescriptorSlots) {}

void CallFolder::Begin() {
  batch_ = {};
  last_pieces_.clear();
  process_by_name_.clear();
  ++stamp_;
}

CallBatch CallFolder::Take() { return std::move(batch_); }

// The 16 bytes before the bracket tell a thread from another almost always; the whole prefix is compared all the same.
std::optional<std::uint32_t> CallFolder::ProcessOf(std::string_view line, std::size_t bracket, std::uint32_t piece) {
  if (bracket < 16) return std::nullopt;
  const char* end = line.data() + bracket;
  const std::uint64_t tail = Mix(Load64(end - 8), Load64(end - 16));
  std::size_t index = tail % kPrefixSlots;
  for (std::size_t probe = 0; probe < kMaxProbes; ++probe, index = (index + 1) % kPrefixSlots) {
    PrefixSlot& slot = prefixes_[index];
    if (slot.stamp != stamp_) {
      const auto process = NewPrefix(line, bracket, slot, tail);
      if (process) last_pieces_[*process] = piece;
      return process;
    }
    if (slot.tail != tail || slot.size > bracket || std::memcmp(slot.begin, end - slot.size, slot.size) != 0) continue;
    if (slot.size < bracket && IsHostByte(*(end - slot.size - 1))) continue;
    last_pieces_[slot.process] = piece;
    return slot.process;
  }
  PrefixSlot overflow;  // more threads in one block than probes find room for: right, only slower
  const auto process = NewPrefix(line, bracket, overflow, tail);
  if (process) last_pieces_[*process] = piece;
  return process;
}

// Reads `host:pid:tid [dev` backwards from the bracket.
std::optional<std::uint32_t> CallFolder::NewPrefix(std::string_view line, std::size_t bracket, PrefixSlot& slot, std::uint64_t tail) {
  const char* begin = line.data();
  const char* end = begin + bracket;
  const char* p = end;
  while (p > begin && IsDigit(p[-1])) --p;
  if (p == end || p - begin < 2 || p[-1] != '[' || p[-2] != ' ') return std::nullopt;
  int device = 0;
  std::from_chars(p, end, device);
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

  const std::string_view name(host, static_cast<std::size_t>(pid_end - host));
  const auto [it, is_new] = process_by_name_.try_emplace(name, static_cast<std::uint32_t>(batch_.processes.size()));
  if (is_new) {
    CallBatch::Process process;
    process.host.assign(host, host_end);
    std::from_chars(q, pid_end, process.pid);
    process.cuda_dev = device;
    batch_.processes.push_back(std::move(process));
    last_pieces_.push_back(0);
  }
  slot = {tail, host, static_cast<std::uint32_t>(end - host), it->second, stamp_};
  return it->second;
}

bool CallFolder::ParseFields(const char* p, std::size_t op_size, const char* line_end, Fields& out) {
  p += op_size + 10;  // `: opCount `, compared by the caller
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
  return p == line_end || (p < line_end && (*p == ' ' || *p == '\x1b'));
}

std::uint32_t CallFolder::CommOf(std::uint32_t process, const Fields& fields) {
  std::size_t index = Mix(fields.comm, process) % kCommSlots;
  for (std::size_t probe = 0; probe < kMaxProbes; ++probe, index = (index + 1) % kCommSlots) {
    CommSlot& slot = comms_[index];
    if (slot.stamp == stamp_ && slot.pointer == fields.comm && slot.process == process) return slot.comm;
    if (slot.stamp == stamp_) continue;
    slot = {fields.comm, process, static_cast<std::uint32_t>(batch_.comms.size()), stamp_};
    batch_.comms.push_back({process, fields.comm, fields.nranks});
    return slot.comm;
  }
  for (std::size_t i = batch_.comms.size(); i-- > 0;)
    if (batch_.comms[i].pointer == fields.comm && batch_.comms[i].process == process) return static_cast<std::uint32_t>(i);
  batch_.comms.push_back({process, fields.comm, fields.nranks});
  return static_cast<std::uint32_t>(batch_.comms.size() - 1);
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

CallLine CallFolder::Add(std::string_view line, std::size_t bracket, std::uint32_t line_number, std::uint32_t piece) {
  const char* message = line.data() + bracket + kInfo.size();
  std::size_t op_size = 0;
  while (op_size < 24 && ((message[op_size] >= 'A' && message[op_size] <= 'Z') || (message[op_size] >= 'a' && message[op_size] <= 'z'))) ++op_size;
  if (op_size < 4 || op_size >= 24 || std::memcmp(message + op_size, ": opCount ", 10) != 0) return CallLine::kNotACall;
  Fields fields;
  if (!ParseFields(message, op_size, line.data() + line.size(), fields)) return CallLine::kTorn;
  const auto process = ProcessOf(line, bracket, piece);
  if (!process) return CallLine::kTorn;
  const std::uint32_t comm = CommOf(*process, fields);
  const std::uint32_t descriptor = DescriptorOf({message, op_size}, fields);
  batch_.calls.push_back({comm, descriptor, static_cast<std::uint32_t>(fields.op_count), line_number});
  return CallLine::kCall;
}

}  // namespace inquest
