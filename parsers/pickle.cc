// Reads a pickle as data: numbers, texts, lists and dictionaries, and nothing that would have to be called.
#include "parsers/pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <utility>
#include <vector>

namespace inquest {
namespace {

using std::string_view;
using Kind = DataValue::Kind;

enum Op : unsigned char {
  kMark = '(',
  kStop = '.',
  kPop = '0',
  kPopMark = '1',
  kDup = '2',
  kFloatText = 'F',
  kIntText = 'I',
  kBinInt = 'J',
  kBinInt1 = 'K',
  kLongText = 'L',
  kBinInt2 = 'M',
  kNone = 'N',
  kString = 'S',
  kBinString = 'T',
  kShortBinString = 'U',
  kUnicode = 'V',
  kBinUnicode = 'X',
  kAppend = 'a',
  kDict = 'd',
  kEmptyDict = '}',
  kAppends = 'e',
  kGet = 'g',
  kBinGet = 'h',
  kLongBinGet = 'j',
  kList = 'l',
  kEmptyList = ']',
  kPut = 'p',
  kBinPut = 'q',
  kLongBinPut = 'r',
  kSetItem = 's',
  kTuple = 't',
  kEmptyTuple = ')',
  kSetItems = 'u',
  kBinFloat = 'G',
  kBinBytes = 'B',
  kShortBinBytes = 'C',
  kProto = 0x80,
  kTuple1 = 0x85,
  kTuple2 = 0x86,
  kTuple3 = 0x87,
  kNewTrue = 0x88,
  kNewFalse = 0x89,
  kLong1 = 0x8a,
  kLong4 = 0x8b,
  kShortBinUnicode = 0x8c,
  kBinUnicode8 = 0x8d,
  kBinBytes8 = 0x8e,
  kEmptySet = 0x8f,
  kAddItems = 0x90,
  kFrozenSet = 0x91,
  kMemoize = 0x94,
  kFrame = 0x95,
};

struct Refused {
  unsigned char code;
  string_view name;
};
constexpr Refused kRefusedOps[] = {
    {'c', "GLOBAL"}, {'R', "REDUCE"},      {'b', "BUILD"},        {'i', "INST"},
    {'o', "OBJ"},    {0x81, "NEWOBJ"},     {0x92, "NEWOBJ_EX"},   {0x93, "STACK_GLOBAL"},
    {'P', "PERSID"}, {'Q', "BINPERSID"},   {0x82, "EXT1"},        {0x83, "EXT2"},
    {0x84, "EXT4"},  {0x96, "BYTEARRAY8"}, {0x97, "NEXT_BUFFER"}, {0x98, "READONLY_BUFFER"},
};

/// What of the machine is no opcode's: the reasons for which it stops.
enum class Halt : std::uint8_t { kNo, kStopped, kCut, kFull, kBroken, kRefused };

/// A stack whose room is made before it is used, so that many values are pushed without asking.
class Stack {
 public:
  /// Where the next values go: at least `count` of them.
  DataValue* Room(std::size_t count) {
    if (values_.size() - size_ < count) values_.resize(std::max(values_.size() * 2, size_ + count));
    return values_.data() + size_;
  }
  void Took(std::size_t count) { size_ += count; }
  void Push(const DataValue& value) {
    *Room(1) = value;
    ++size_;
  }
  void Cut(std::size_t size) { size_ = size; }
  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  const DataValue* data() const { return values_.data(); }
  DataValue& operator[](std::size_t at) { return values_[at]; }
  const DataValue& front() const { return values_[0]; }
  DataValue& back() { return values_[size_ - 1]; }

 private:
  std::vector<DataValue> values_ = std::vector<DataValue>(1024);
  std::size_t size_ = 0;
};

/// Lists by the bytes that made them. A dump has a few hundred call stacks and shapes, each of them thousands of times
/// in the same bytes: values that were met before, and numbers. Such a list is read once, and is one node ever after.
class KnownLists {
 public:
  struct List {
    const char* begin = nullptr;  ///< at its first opcode
    std::size_t size = 0;
    DataNode* node = nullptr;
  };
  /// What ten bytes from `at` on, or more, begin with; nullptr: no list that is known.
  const List* Find(const char* at, const char* end) const {
    const auto left = static_cast<std::size_t>(end - at);
    if (const List& list = short_[PlaceOfShort(at)]; Is(list, at, left)) return &list;
    if (left < kLongest) return nullptr;
    const List& list = long_[PlaceOfLong(at)];
    return Is(list, at, left) ? &list : nullptr;
  }
  void Add(const List& list, const char* end) {
    if (end - list.begin < static_cast<std::ptrdiff_t>(kLongest)) return;
    (list.size < kShort ? short_[PlaceOfShort(list.begin)] : long_[PlaceOfLong(list.begin)]) = list;
  }
  void Forget() {
    short_.fill({});
    long_.fill({});
  }

 private:
  // Short ones are told apart by the eight bytes behind `](`, in which they mostly end; long ones by 32.
  static constexpr std::size_t kShort = 24, kLongest = 34, kPlaces = 512;
  static std::uint64_t Mixed(const char* at) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    return word * 0x9e3779b97f4a7c15U;
  }
  static std::size_t PlaceOfShort(const char* at) { return static_cast<std::size_t>(Mixed(at + 2) >> 55); }
  static std::size_t PlaceOfLong(const char* at) {
    std::uint64_t hash = 0;
    for (std::size_t i = 2; i < kLongest; i += 8) hash = (std::rotl(hash, 23) ^ Mixed(at + i)) * 0x9e3779b97f4a7c15U;
    return static_cast<std::size_t>(hash >> 55);
  }
  static bool Is(const List& list, const char* at, std::size_t left) {
    return list.node != nullptr && list.size <= left && std::memcmp(list.begin, at, list.size) == 0;
  }
  std::array<List, kPlaces> short_{}, long_{};
};

class Machine {
 public:
  Machine(string_view bytes, DataPool& pool)
      : begin_(bytes.data()), at_(bytes.data()), end_(bytes.data() + bytes.size()), pool_(pool) {
    memo_.reserve(256);
  }

  PickleRead Run() {
    while (halt_ == Halt::kNo) {
      RunUsual();
      op_at_ = at_;
      if (at_ == end_) {
        halt_ = Halt::kCut;
        break;
      }
      Step(static_cast<unsigned char>(*at_++));
    }
    PickleRead out;
    out.problem = Problem();
    if (halt_ != Halt::kStopped) CloseAll();
    if (!stack_.empty()) out.root = halt_ == Halt::kStopped ? stack_.back() : stack_.front();
    return out;
  }

 private:
  static constexpr std::size_t kDeepest = 1000;

  std::size_t Left() const { return static_cast<std::size_t>(end_ - at_); }

  /// `count` bytes of an operand; nullptr: they are not all there.
  const char* Operand(std::uint64_t count) {
    if (Left() < count) {
      halt_ = Halt::kCut;
      return nullptr;
    }
    return std::exchange(at_, at_ + count);
  }
  /// Little-endian.
  template <class T>
  T Number() {
    T out{};
    if (const char* from = Operand(sizeof(T))) std::memcpy(&out, from, sizeof(T));
    return out;
  }
  std::optional<string_view> Line() {
    const void* end = std::memchr(at_, '\n', Left());
    if (end == nullptr) {
      halt_ = Halt::kCut;
      return std::nullopt;
    }
    const auto size = static_cast<std::size_t>(static_cast<const char*>(end) - at_);
    const string_view line(at_, size);
    at_ += size + 1;
    return line;
  }

  void Push(const DataValue& value) {
    constexpr std::size_t kMostValues = 1 << 24;
    if (halt_ != Halt::kNo) return;  // its operand is cut
    if (stack_.size() >= kMostValues)
      halt_ = Halt::kFull;
    else
      stack_.Push(value);
  }
  void PushText(std::uint64_t size) {
    if (const char* from = Operand(size)) Push(DataValue::Text({from, static_cast<std::size_t>(size)}));
  }
  void PushNumberLine(bool real) {
    auto line = Line();
    if (!line) return;
    if (line->ends_with('L')) line->remove_suffix(1);
    if (!real && (*line == "00" || *line == "01")) return Push(DataValue::Bool((*line)[1] == '1'));
    if (real) {
      double number = 0;
      std::from_chars(line->data(), line->data() + line->size(), number);
      return Push(DataValue::Float(number));
    }
    std::int64_t number = 0;
    std::from_chars(line->data(), line->data() + line->size(), number);
    Push(DataValue::Int(number));
  }
  /// Two's complement. What does not fit 64 bits is no number of ours.
  void PushLong(std::uint64_t size) {
    const char* from = Operand(size);
    if (from == nullptr) return;
    if (size > 8) return Push(DataValue{});
    std::uint64_t bits = 0;
    std::memcpy(&bits, from, size);
    if (size > 0 && size < 8 && (static_cast<unsigned char>(from[size - 1]) & 0x80) != 0) bits |= ~0ULL << (8 * size);
    Push(DataValue::Int(static_cast<std::int64_t>(bits)));
  }
  void PushNode(Kind kind) {
    DataValue value;
    value.kind = kind;
    value.node = pool_.NewNode();
    if (value.node == nullptr) {
      halt_ = Halt::kFull;
      return;
    }
    Push(value);
  }

  struct Mark {
    std::size_t above = 0;       ///< the size of the stack where it was set
    const char* list = nullptr;  ///< what it is to fill began there, empty, right before it
  };
  void PushMark() {
    if (marks_.size() >= kDeepest)
      halt_ = Halt::kFull;
    else
      marks_.push_back({stack_.size()});
  }
  /// The newest mark goes. A pickle without it is none.
  std::optional<Mark> PopMark() {
    if (marks_.empty() || marks_.back().above > stack_.size()) {
      halt_ = Halt::kBroken;
      return std::nullopt;
    }
    const Mark mark = marks_.back();
    marks_.pop_back();
    return mark;
  }
  /// A list that is known is nobody's: one that may be changed, from here or through the memo, becomes a copy of it.
  bool Own(DataValue& list) {
    if (!list.is(Kind::kList) || !list.node->known) return true;
    DataNode* const own = pool_.NewNode();
    if (own == nullptr || !pool_.Append(*own, list.node->items, list.node->size)) {
      halt_ = Halt::kFull;
      return false;
    }
    list.node = own;
    return true;
  }
  /// Values from `first` on go into the container below them.
  void Fill(std::size_t first) {
    if (first == 0 || first > stack_.size() ||
        (stack_[first - 1].kind != Kind::kList && stack_[first - 1].kind != Kind::kDict)) {
      halt_ = Halt::kBroken;
      return;
    }
    DataValue& into = stack_[first - 1];
    const std::size_t count = stack_.size() - first;
    if (into.kind == Kind::kDict && count % 2 != 0) {
      halt_ = Halt::kBroken;
      return;
    }
    if (!Own(into)) return;
    if (!pool_.Append(*into.node, stack_.data() + first, count)) halt_ = Halt::kFull;
    stack_.Cut(first);
  }
  void FillFromMark() {
    const auto mark = PopMark();
    if (!mark) return;
    Fill(mark->above);
    // What was put into the memo on the way is put there again by whoever reads it again.
    if (halt_ != Halt::kNo || mark->list == nullptr || (last_put_ != nullptr && last_put_ > mark->list)) return;
    DataNode* const node = stack_.back().node;
    node->known = true;
    known_.Add({mark->list, static_cast<std::size_t>(at_ - mark->list), node}, end_);
  }
  void FillTop(std::size_t count) {
    if (stack_.size() < count + 1) {
      halt_ = Halt::kBroken;
      return;
    }
    Fill(stack_.size() - count);
  }
  /// The values from `first` on become one list or dictionary in their place.
  void Wrap(Kind kind, std::size_t first) {
    if (first > stack_.size() || (kind == Kind::kDict && (stack_.size() - first) % 2 != 0)) {
      halt_ = Halt::kBroken;
      return;
    }
    DataValue value;
    value.kind = kind;
    value.node = pool_.NewNode();
    if (value.node == nullptr || !pool_.Append(*value.node, stack_.data() + first, stack_.size() - first)) {
      halt_ = Halt::kFull;
      return;
    }
    stack_.Cut(first);
    Push(value);
  }
  void WrapFromMark(Kind kind) {
    if (const auto mark = PopMark()) Wrap(kind, mark->above);
  }
  void WrapTop(std::size_t count) {
    if (stack_.size() < count)
      halt_ = Halt::kBroken;
    else
      Wrap(Kind::kList, stack_.size() - count);
  }

  /// Numbers count up; one that leaps ahead is a mistake, or a trap. None is above the number of opcodes.
  void Put(std::uint64_t number) {
    constexpr std::size_t kLeap = 1024;
    if (halt_ != Halt::kNo) return;
    if (stack_.empty() || number > memo_.size() + kLeap || number >= static_cast<std::uint64_t>(end_ - begin_)) {
      halt_ = Halt::kBroken;
      return;
    }
    if (!Own(stack_.back())) return;
    if (number < memo_.size())
      known_.Forget();
    else
      memo_.resize(number + 1);
    memo_[number] = stack_.back();
    last_put_ = at_;
  }
  void Get(std::uint64_t number) {
    if (halt_ != Halt::kNo) return;
    if (number >= memo_.size())
      halt_ = Halt::kBroken;
    else
      Push(memo_[number]);
  }
  void PutOrGetLine(bool put) {
    const auto line = Line();
    std::uint64_t number = 0;
    if (!line) return;
    if (std::from_chars(line->data(), line->data() + line->size(), number).ec != std::errc())
      halt_ = Halt::kBroken;
    else if (put)
      Put(number);
    else
      Get(number);
  }

  /// Bytes of an opcode that only pushes a value, which most of a dump are; 0: it is another, or not whole.
  std::size_t PushUsual(const char* at, DataValue& to) const {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(at[i]); };
    const auto number = [&]<class T>(T value, std::size_t from) {
      std::memcpy(&value, at + from, sizeof value);
      return value;
    };
    switch (byte(0)) {
      case kBinInt1:
        to = DataValue::Int(byte(1));
        return 2;
      case kBinInt2:
        to = DataValue::Int(number(std::uint16_t{}, 1));
        return 3;
      case kBinInt:
        to = DataValue::Int(number(std::int32_t{}, 1));
        return 5;
      case kLong1:
        to = DataValue::Int(number(std::int64_t{}, 2));
        return byte(1) == 8 ? 10 : 0;
      case kNewTrue:
        to = DataValue::Bool(true);
        return 1;
      case kNewFalse:
        to = DataValue::Bool(false);
        return 1;
      case kNone:
        to = DataValue{};
        return 1;
      default:
        return 0;
    }
  }

  /// A row of values that were met before, as the frames of a stack are; where it ends.
  const char* PushRepeats(const char* at, DataValue*& top, const DataValue* full) const {
    const DataValue* const memo = memo_.data();
    const std::size_t known = memo_.size();
    const char* const last = end_ - 5;  // room for the longer of the two
    DataValue* to = top;
    while (to != full && at <= last) {
      std::uint32_t number = static_cast<unsigned char>(at[1]);
      std::ptrdiff_t size = 2;
      if (*at != kBinGet) {
        if (*at != kLongBinGet) break;
        std::memcpy(&number, at + 1, sizeof number);
        size = 5;
      }
      if (number >= known) break;
      *to++ = memo[number];
      at += size;
    }
    top = to;
    return at;
  }

  /// As many of those as there are in a row, with the lists and dictionaries that begin between them.
  void RunUsual() {
    constexpr std::size_t kRoom = 256, kLongest = 10;
    DataValue* const first = stack_.Room(kRoom);
    DataValue* const full = first + kRoom;
    DataValue* top = first;
    const std::size_t below = stack_.size();
    const char* at = at_;
    const char* empty = nullptr;  ///< where a list began
    while (top != full && static_cast<std::size_t>(end_ - at) >= kLongest) {
      if (*at == kBinGet || *at == kLongBinGet) {
        const DataValue* const before = top;
        at = PushRepeats(at, top, full);
        if (top == before) break;
      } else if (const std::size_t taken = PushUsual(at, *top); taken > 0) {
        at += taken;
        ++top;
      } else if (*at == kMark && marks_.size() < kDeepest) {
        const bool fills = empty != nullptr && at == empty + 1;
        marks_.push_back({below + static_cast<std::size_t>(top - first), fills ? empty : nullptr});
        ++at;
      } else if (const KnownLists::List* known = *at == kEmptyList ? known_.Find(at, end_) : nullptr) {
        top->kind = Kind::kList;
        top->node = known->node;
        ++top;
        at += known->size;
      } else if (*at == kEmptyList || *at == kEmptyDict) {
        DataNode* const node = pool_.NewNode();
        if (node == nullptr) break;
        top->kind = *at == kEmptyList ? Kind::kList : Kind::kDict;
        top->node = node;
        ++top;
        empty = *at == kEmptyList ? at : nullptr;
        ++at;
      } else {
        break;
      }
    }
    at_ = at;
    stack_.Took(static_cast<std::size_t>(top - first));
  }

  void Step(unsigned char op) {
    switch (op) {
      case kBinGet:
        return Get(Number<std::uint8_t>());
      case kBinInt1:
        return Push(DataValue::Int(Number<std::uint8_t>()));
      case kMark:
        return PushMark();
      case kBinInt:
        return Push(DataValue::Int(Number<std::int32_t>()));
      case kBinInt2:
        return Push(DataValue::Int(Number<std::uint16_t>()));
      case kLong1:
        return PushLong(Number<std::uint8_t>());
      case kLongBinGet:
        return Get(Number<std::uint32_t>());
      case kBinUnicode:
        return PushText(Number<std::uint32_t>());
      case kBinPut:
        return Put(Number<std::uint8_t>());
      case kLongBinPut:
        return Put(Number<std::uint32_t>());
      case kEmptyList:
        return PushNode(Kind::kList);
      case kEmptyDict:
        return PushNode(Kind::kDict);
      case kAppends:
        return FillFromMark();
      case kSetItems:
        return FillFromMark();
      case kNewTrue:
        return Push(DataValue::Bool(true));
      case kNewFalse:
        return Push(DataValue::Bool(false));
      case kNone:
        return Push(DataValue{});
      case kBinFloat: {
        std::uint64_t bits = 0;
        const char* from = Operand(8);
        if (from == nullptr) return;
        for (int i = 0; i < 8; ++i) bits = bits << 8 | static_cast<unsigned char>(from[i]);
        return Push(DataValue::Float(std::bit_cast<double>(bits)));
      }
      case kTuple1:
        return WrapTop(1);
      case kTuple2:
        return WrapTop(2);
      case kTuple3:
        return WrapTop(3);
      default:
        return Seldom(op);
    }
  }

  void Seldom(unsigned char op) {
    switch (op) {
      case kStop:
        halt_ = stack_.empty() ? Halt::kBroken : Halt::kStopped;
        return;
      case kProto: {
        const auto protocol = Number<std::uint8_t>();
        if (halt_ == Halt::kNo && protocol > 5) halt_ = Halt::kBroken;
        return;
      }
      case kFrame:
        Operand(8);
        return;
      case kMemoize:
        return Put(memo_.size());
      case kShortBinUnicode:
        return PushText(Number<std::uint8_t>());
      case kShortBinString:
        return PushText(Number<std::uint8_t>());
      case kShortBinBytes:
        return PushText(Number<std::uint8_t>());
      case kBinString:
        return PushText(Number<std::uint32_t>());
      case kBinBytes:
        return PushText(Number<std::uint32_t>());
      case kBinUnicode8:
        return PushText(Number<std::uint64_t>());
      case kBinBytes8:
        return PushText(Number<std::uint64_t>());
      case kString: {
        auto line = Line();
        if (line && line->size() >= 2) *line = line->substr(1, line->size() - 2);
        if (line) Push(DataValue::Text(*line));
        return;
      }
      case kUnicode:
        if (const auto line = Line()) Push(DataValue::Text(*line));
        return;
      case kIntText:
        return PushNumberLine(false);
      case kLongText:
        return PushNumberLine(false);
      case kFloatText:
        return PushNumberLine(true);
      case kLong4: {
        const auto size = Number<std::int32_t>();
        if (size < 0)
          halt_ = Halt::kBroken;
        else
          PushLong(static_cast<std::uint64_t>(size));
        return;
      }
      case kPut:
        return PutOrGetLine(true);
      case kGet:
        return PutOrGetLine(false);
      case kAppend:
        return FillTop(1);
      case kSetItem:
        return FillTop(2);
      case kList:
        return WrapFromMark(Kind::kList);
      case kTuple:
        return WrapFromMark(Kind::kList);
      case kDict:
        return WrapFromMark(Kind::kDict);
      case kEmptyTuple:
        return PushNode(Kind::kList);
      case kEmptySet:
        return PushNode(Kind::kList);
      case kAddItems:
        return FillFromMark();
      case kFrozenSet:
        return WrapFromMark(Kind::kList);
      case kPop:
        if (!marks_.empty() && marks_.back().above == stack_.size())
          marks_.pop_back();
        else if (!stack_.empty())
          stack_.Cut(stack_.size() - 1);
        else
          halt_ = Halt::kBroken;
        return;
      case kPopMark:
        if (const auto mark = PopMark()) stack_.Cut(mark->above);
        return;
      case kDup:
        if (stack_.empty())
          halt_ = Halt::kBroken;
        else if (Own(stack_.back()))
          Push(DataValue(stack_.back()));
        return;
      default:
        break;
    }
    for (const Refused& refused : kRefusedOps)
      if (refused.code == op) refused_ = refused.name;
    halt_ = refused_.empty() ? Halt::kBroken : Halt::kRefused;
  }

  /// From the inside out, what stands above each mark goes into what stands below it; a key without its value is lost.
  void CloseAll() {
    while (!marks_.empty() && marks_.back().above <= stack_.size()) {
      const std::size_t mark = marks_.back().above;
      marks_.pop_back();
      if (mark == 0) break;
      DataValue& into = stack_[mark - 1];
      if ((into.kind != Kind::kList && into.kind != Kind::kDict) || !Own(into)) {
        stack_.Cut(mark);
        continue;
      }
      std::size_t count = stack_.size() - mark;
      if (into.kind == Kind::kDict) count -= count % 2;
      if (!pool_.Append(*into.node, stack_.data() + mark, count)) count = 0;
      into.node->torn = true;
      stack_.Cut(mark);
    }
  }

  std::string Problem() const {
    const auto offset = op_at_ - begin_;
    switch (halt_) {
      case Halt::kStopped:
        return {};
      case Halt::kCut:
        return fmt::format("cut after {} bytes, in the middle of the dump", end_ - begin_);
      case Halt::kFull:
        return fmt::format("larger than what is held of one dump; read up to byte {}", offset);
      case Halt::kRefused:
        return fmt::format("{} at byte {} would call what the file names, which is refused", refused_, offset);
      default:
        return fmt::format("no pickle from byte {} on (opcode 0x{:02x})", offset,
                           op_at_ < end_ ? static_cast<unsigned char>(*op_at_) : 0);
    }
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  const char* op_at_ = nullptr;
  DataPool& pool_;
  Stack stack_;
  std::vector<DataValue> memo_;
  std::vector<Mark> marks_;
  KnownLists known_;
  const char* last_put_ = nullptr;
  string_view refused_;
  Halt halt_ = Halt::kNo;
};

}  // namespace

bool IsPickle(string_view head) {
  return head.size() > 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5 &&
         string_view("\x95}](c\x8a").find(head[2]) != string_view::npos;
}

PickleRead ReadPickle(string_view bytes, DataPool& pool) { return Machine(bytes, pool).Run(); }

}  // namespace inquest
