#include "report/event_json.h"

#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/event_fields.h"
#include "core/time.h"
#include "timeline/timeline.h"

namespace inquest {
namespace {

using Json = JsonValue;

// ---- a field's value; a kind of value that is missing here does not compile
// ------------------------------------------

Json ValueOf(bool value) { return Json(value); }
Json ValueOf(double value) { return Json(value); }
/// A reader that keeps numbers as doubles would lose digits of what is larger: addresses and hashes.
Json ValueOf(std::integral auto value) {
  constexpr std::int64_t kExact = std::int64_t{1} << 53;
  const bool exact = std::cmp_less_equal(value, kExact) && std::cmp_greater_equal(value, -kExact);
  return exact ? Json(value) : Json(std::to_string(value));
}
Json ValueOf(const std::string& text) { return Json(text); }
Json ValueOf(const RankSet& ranks) { return Json(FoldRanks(ranks)); }
Json ValueOf(const SourcePos& where) { return Json(where.InputLine()); }
Json ValueOf(const Timestamp& at) { return Json(FormatTime(at)); }
template <class Rep, class Period>
Json ValueOf(std::chrono::duration<Rep, Period> time) {
  return Json(std::chrono::duration<double>(time).count());  // seconds
}
template <class E>
requires std::is_enum_v<E> Json ValueOf(E value) { return Json(Name(value)); }
template <class Tag, class Rep>
Json ValueOf(const Strong<Tag, Rep>& number) {
  return Json(number.value);
}
template <class T>
Json ValueOf(const Known<T>& known);
template <class T>
Json ValueOf(const std::vector<T>& items);
template <class A, class B>
Json ValueOf(const std::pair<A, B>& pair);
template <HasFields T>
Json ValueOf(const T& value);

/// Whether the line gives it.
template <class T>
bool IsGiven(const T& value) {
  if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, RankSet>)
    return !value.empty();
  else if constexpr (std::is_enum_v<T>)
    return !Name(value).empty();
  else
    return true;
}
template <class T>
bool IsGiven(const std::vector<T>& items) {
  return !items.empty();
}

template <class T>
void AddField(Json& out, std::string_view name, const T& value) {
  if (IsGiven(value)) out.Add(name, ValueOf(value));
}
template <class T>
void AddField(Json& out, std::string_view name, const std::optional<T>& value) {
  if (value) AddField(out, name, *value);
}

template <class T>
Json ValueOf(const Known<T>& known) {
  return ValueOf(known.value);
}
template <class T>
Json ValueOf(const std::vector<T>& items) {
  Json out = Json::array();
  for (const T& item : items) out.push_back(ValueOf(item));
  return out;
}
template <class A, class B>
Json ValueOf(const std::pair<A, B>& pair) {
  Json out = Json::array();
  out.push_back(ValueOf(pair.first));
  out.push_back(ValueOf(pair.second));
  return out;
}
template <HasFields T>
Json ValueOf(const T& value) {
  Json out = Json::object();
  ForEachField(value, [&](std::string_view name, const auto& field) { AddField(out, name, field); });
  return out;
}

}  // namespace

JsonValue EventInJson(const What& what) {
  if (std::holds_alternative<LogMessage>(what)) return nullptr;
  Json out = Json::object();
  out.Add("kind", Json(KindOf(what)));
  std::visit(
      [&](const auto& kind) {
        ForEachField(kind, [&](std::string_view name, const auto& field) { AddField(out, name, field); });
      },
      what);
  return out;
}

}  // namespace inquest
