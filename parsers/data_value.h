// What a serialised document holds, as a tree of plain values: of a pickle, or of JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <vector>

namespace inquest {

struct DataNode;

/// A value of 16 bytes. Texts and nodes belong to the document or to the pool that it was read into.
struct DataValue {
  enum class Kind : std::uint8_t { kNone, kBool, kInt, kFloat, kText, kList, kDict };
  Kind kind = Kind::kNone;
  std::uint32_t size = 0;  ///< of a text
  union {
    std::int64_t number = 0;  ///< of a bool, 0 or 1
    double real;
    const char* text;
    DataNode* node;
  };

  bool is(Kind other) const { return kind == other; }
  std::string_view str() const { return kind == Kind::kText ? std::string_view(text, size) : std::string_view(); }
  static DataValue Int(std::int64_t number) {
    DataValue out;
    out.kind = Kind::kInt;
    out.number = number;
    return out;
  }
  static DataValue Bool(bool on) {
    DataValue out;
    out.kind = Kind::kBool;
    out.number = on ? 1 : 0;
    return out;
  }
  static DataValue Float(double real) {
    DataValue out;
    out.kind = Kind::kFloat;
    out.real = real;
    return out;
  }
  static DataValue Text(std::string_view text);
};

/// The items of a list, tuple or set; of a dictionary, keys and values in turn, in their order.
struct DataNode {
  DataValue* items = nullptr;
  std::uint32_t size = 0, room = 0;
  bool torn = false;   ///< the document ended inside it
  bool known = false;  ///< the same in several places of the document
};

/// Memory for one document, taken piece by piece and given back at once.
class DataPool {
 public:
  explicit DataPool(std::size_t limit_bytes) : limit_(limit_bytes) {}
  DataNode* NewNode() {
    char* const room = Take(sizeof(DataNode));
    return room == nullptr ? nullptr : new (room) DataNode;
  }
  /// False: the limit is reached, and the node is as before.
  bool Append(DataNode& node, const DataValue* items, std::size_t count) {
    if (count == 0) return true;
    if (node.size != 0 || count > ~std::uint32_t{0}) return AppendMore(node, items, count);
    auto* const room = reinterpret_cast<DataValue*>(Take(count * sizeof(DataValue)));
    if (room == nullptr) return false;
    std::memcpy(static_cast<void*>(room), items, count * sizeof(DataValue));
    node.items = room;
    node.size = node.room = static_cast<std::uint32_t>(count);
    return true;
  }
  /// A copy of the text that lives as long as the pool; nullptr: the limit is reached.
  const char* Copy(std::string_view text);
  bool full() const { return full_; }

 private:
  char* Take(std::size_t bytes) {
    bytes = (bytes + 15) / 16 * 16;
    if (room_ - at_ < bytes) return TakeNew(bytes);
    at_ += bytes;
    return piece_ + (at_ - bytes);
  }
  bool AppendMore(DataNode& node, const DataValue* items, std::size_t count);
  char* TakeNew(std::size_t bytes);

  std::size_t limit_, taken_ = 0, at_ = 0, room_ = 0;
  bool full_ = false;
  char* piece_ = nullptr;
  std::vector<std::unique_ptr<char[]>> pieces_;
};

}  // namespace inquest
