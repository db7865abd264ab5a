// Reads bytes through one of the readers that put a text together in front of the blocks.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "core/result.h"

namespace inquest {

/// The whole text, with a head of so many bytes and rooms of so many; `each` is handed the reader after every fill.
template <class Reader, class Each>
std::string ReadThrough(std::string_view bytes, std::size_t head, std::size_t room, Each each) {
  std::string_view rest = bytes.substr(std::min(head, bytes.size()));
  Reader reader(std::string(bytes.substr(0, head)), rest.empty(), [&](char* to, std::size_t most) {
    const std::size_t got = rest.copy(to, most);
    rest.remove_prefix(got);
    return got;
  });
  std::string text, part(room, '\0');
  for (std::size_t got = room; got == room;) {
    got = reader.Fill(part.data(), room);
    INQUEST_CHECK(got <= room);
    text.append(part, 0, got);
    each(reader);
  }
  return text;
}

template <class Reader>
std::string ReadThrough(std::string_view bytes, std::size_t head, std::size_t room) {
  return ReadThrough<Reader>(bytes, head, room, [](Reader&) {});
}

}  // namespace inquest
