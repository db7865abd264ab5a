// The table of input formats.
#pragma once

#include <vector>

#include "parsers/parser.h"

namespace inquest {

/// The marks of all line formats, in table order: `mark_format[i]` is the format of `marks[i]`.
struct MarkTable {
  std::vector<std::string_view> marks;
  std::vector<const Format*> formats;
};
const MarkTable& Marks();

/// The format that folds.
const Format& BulkFormat();

}  // namespace inquest
