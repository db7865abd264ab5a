// What a serialised document holds, as a tree of plain values: of a pickle, or of JSON.
#include "parsers/data_value.h"

#include <algorithm>
#include <cstring>

namespace inquest {

DataValue DataValue::Text(std::string_view text) {
  DataValue out;
  out.kind = Kind::kText;
  out.size = static_cast<std::uint32_t>(std::min<std::size_t>(text.size(), ~std::uint32_t{0}));
  out.text = text.data();
  return out;
}

char* DataPool::TakeNew(std::size_t bytes) {
  constexpr std::size_t kPiece = 1 << 18;
  const std::size_t piece = std::max(kPiece, bytes);
  if (full_ || taken_ + piece > limit_) {
    full_ = true;
    return nullptr;
  }
  piece_ = pieces_.emplace_back(new char[piece]).get();
  taken_ += piece;
  room_ = piece;
  at_ = bytes;
  return piece_;
}

bool DataPool::AppendMore(DataNode& node, const DataValue* items, std::size_t count) {
  const std::size_t size = node.size + count;
  if (size > ~std::uint32_t{0}) return false;
  if (size > node.room) {
    const std::size_t wanted = std::max<std::size_t>(size, std::size_t{node.room} * 2);
    char* const room = Take(wanted * sizeof(DataValue));
    if (room == nullptr) return false;
    std::memcpy(room, static_cast<const void*>(node.items), node.size * sizeof(DataValue));
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
