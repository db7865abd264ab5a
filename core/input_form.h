// What an input is that is no log: a notebook, a core dump, a program's source.
#pragma once

#include <string_view>

namespace inquest {

/// A row of a table; whoever holds a pointer to it may keep it.
struct InputForm {
  std::string_view name;  ///< `core-dump`; a promise, as the code of a cause is
  std::string_view text;  ///< `a core dump, which is not read: ...`, behind the path and a colon
};

}  // namespace inquest
