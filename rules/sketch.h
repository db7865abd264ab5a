// A picture in brief, for what stands beside others: of earlier starts of a job, who was at what and what befell them.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace inquest {

/// A row of it: lanes to which the same befell. Places are from 0, the first moment of the start, to 1, its last.
struct SketchRow {
  struct Bar {
    double begin = 0, end = 0;
    std::string stage, what;  ///< the stage's name
  };
  struct Mark {
    double at = 0;
    std::string kind, what;  ///< the kind's name
    bool cause = false;
  };
  std::string who;
  bool culprit = false;
  double first = 0, last = 0;  ///< when it was heard
  std::vector<Bar> bars;       ///< at most kMostOfARow, the first and the last; later ones lie over earlier
  std::vector<Mark> marks;     ///< as many
};

struct Sketch {
  std::vector<SketchRow> rows;  ///< culprits first; at most kMostRows
  std::size_t rows_left_out = 0;
  bool clock = false;  ///< places are by time, where quiet stretches are shortened; else by order
};

}  // namespace inquest
