// The result of a request that can fail: a value, or what went wrong and what to do next.
#ifndef INQUEST_CORE_RESULT_H  // no pragma: compilers know files by their times, and this one may come precompiled out
                               // of a cache
#define INQUEST_CORE_RESULT_H

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace inquest {

/// What went wrong, where (`path` or `path:line`, may be empty) and what to do next (may be empty).
struct Error {
  std::string message;
  std::string hint;
  std::string where;
};

/// A value or an Error. The shape of C++23's std::expected.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}
  Result(Error error) : state_(std::move(error)) {}
  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  T& value() { return std::get<0>(state_); }
  const T& value() const { return std::get<0>(state_); }
  const Error& error() const { return std::get<1>(state_); }
  T& operator*() { return value(); }
  const T& operator*() const { return value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  std::variant<T, Error> state_;
};

}  // namespace inquest

/// Aborts on a mistake of ours. Never for anything that a log can cause.
#define INQUEST_CHECK(condition)                                                         \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

#endif  // INQUEST_CORE_RESULT_H
