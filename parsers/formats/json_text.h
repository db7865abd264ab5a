// What readers of JSON documents share.
#pragma once

#include <simdjson.h>

#include <string>
#include <string_view>

namespace inquest {

/// The text under a key of an object; empty: there is none.
inline std::string TextAt(const simdjson::dom::element& json, const char* key) {
  std::string_view text;
  return json[key].get(text) == simdjson::SUCCESS ? std::string(text) : std::string();
}

}  // namespace inquest
