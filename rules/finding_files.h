// Reads the files under rules/findings/, and holds them against the detectors whose findings they are.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "rules/rule_book.h"

namespace YAML {
class Node;
}

namespace inquest {

/// A rule, finding or cause that a file names; checked when all are read.
struct NameElsewhere {
  std::string key;  ///< `explains`, `refuted_by`, `cause`
  std::string name, where;
};

struct FindingFile {
  FindingRule rule;
  std::vector<NameElsewhere> names;
};

/// What the path of a file says.
struct FindingPlace {
  std::string id, cause, file;  ///< cause: empty without a folder
};

/// Mistakes go to `errors`.
FindingFile ReadFinding(const YAML::Node& node, const FindingPlace& place, std::span<const AdvisedStep> steps,
                        RuleErrors* errors);

}  // namespace inquest
