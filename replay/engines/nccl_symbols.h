// Functions of a library that is loaded at run time: each knows its name and its signature.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"

namespace inquest {

/// A name as a template's argument.
template <std::size_t kSize>
struct SymbolName {
  char text[kSize];
  constexpr SymbolName(const char (&name)[kSize]) { std::copy_n(name, kSize, text); }
  constexpr std::string_view view() const { return {text, kSize - 1}; }
};

template <SymbolName kName, class Signature>
struct Symbol;
template <SymbolName kName, class Returned, class... Parameters>
struct Symbol<kName, Returned(Parameters...)> {
  using Function = Returned (*)(Parameters...);
  static constexpr std::string_view name = kName.view();
  Function function = nullptr;
  Returned operator()(Parameters... parameters) const { return function(parameters...); }
};

/// Never unloaded: a library's threads outlive us.
class OpenedLibrary {
 public:
  /// The linker's words where it cannot be.
  static Result<OpenedLibrary> Open(const std::string& path);

  template <class Found>
  void Look(Found& symbol) {
    symbol.function = reinterpret_cast<typename Found::Function>(Address(Found::name));
  }
  /// The first name that was looked for and is not there; empty: none.
  const std::string& missing() const { return missing_; }
  /// Of the file that `symbol` stands in.
  template <class Found>
  std::string PathOf(const Found& symbol) const {
    return PathOfAddress(reinterpret_cast<void*>(symbol.function));
  }

 private:
  OpenedLibrary(void* handle, std::string asked) : handle_(handle), asked_(std::move(asked)) {}
  void* Address(std::string_view name);
  std::string PathOfAddress(void* function) const;

  void* handle_;
  std::string asked_, missing_;
};

}  // namespace inquest
