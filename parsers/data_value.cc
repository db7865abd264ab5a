// What a serialised document holds, as a tree of plain values: of a pickle, or of JSON.
#include "parsers/data_value.h"

#include <algorithm>
#include <cstring>
#include <new>

namespace inquest {

DataValue DataValue::Int(std::int64_t number) {
  DataValue out;
  out.kind = Kind::kInt;
  out.number = number;
  return out;
}

DataValue DataValue::Bool(bool on) {
  DataValue out;
  out.kind = Kind::kBool;
  out.number = on ? 1 : 0;
  return out;
}

DataValue DataValue::Float(double real) {
  DataValue out;
  out.kind = Kind::kFloat;
  out.real = real;
  return out;
}

DataValue DataValue::Text(std::string_view text) {
  DataValue out;
  out.kind = Kind::kText;
  out.size = static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), ~std::uint32_t{0}));
  out.text = text.data();
  return out;
}

char* DataPool::Take(std::size_t bytes) {
  constexpr std::size_t kPiece = 1 << 18;
  bytes = (bytes + 15) / 16 * 16;
  if (pieces_.empty() || room_ - at_ < bytes) {
    const std::size_t piece = std::max(kPiece, bytes);
    if (full_ || taken_ + piece > limit_) {
      full_ = true;
      return nullptr;
    }
    pieces_.emplace_back(new char[piece]);
    taken_ += piece;
    room_ = piece;
    at_ = 0;
  }
  char* const out = pieces_.back().get() + at_;
  at_ += bytes;
  return out;
}

DataNode* DataPool::NewNode() {
  char* const room = Take(sizeof(DataNode));
  return room == nullptr ? nullptr : new (room) DataNode;
}

bool DataPool::Append(DataNode& node, const DataValue* items, std::size_t count) {
  if (count == 0) return true;
  const std::size_t size = node.size + count;
  if (size > ~std::uint32_t{0}) return false;
  if (size > node.room) {
    // Most are filled at once.
    const std::size_t wanted = node.size == 0 ? count : std::max<std::size_t>(size, std::size_t{node.room} * 2);
    char* const room = Take(wanted * sizeof(DataValue));
    if (room == nullptr) return false;
    if (node.size > 0) std::memcpy(room, static_cast<const void*>(node.items), node.size * sizeof(DataValue));
    node.items = reinterpret_cast<DataValue*>(room);
    node.room = static_cast<std::uint32_t>(std::min<std::size_t>(wanted, ~std::uint32_t{0}));
  }
  std::memcpy(static_cast<void*>(node.items + node.size), items, count * sizeof(DataValue));
  node.size = static_cast<std::uint32_t>(size);
  return true;
}

const char* DataPool::Copy(std::string_view text) {
  char* const room = Take(std::max<std::size_t>(text.size(), 1));
  if (room != nullptr) std::memcpy(room, text.data(), text.size());
  return room;
}

}  // namespace inquest
