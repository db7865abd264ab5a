// The files that the user of `inquest collect` names, and what they are called in the bundle.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace inquest {

struct NamedFile {
  std::string path;
  std::string problem;  ///< why it is not to be copied; empty: it is
};

/// Plain files, and those of folders at any depth, hidden ones left out, in path order, each once. A link that was
/// named is followed; one in a folder only if it stays in there: whoever writes the folder could have it point at any
/// file that the caller may read. Fails on a path that does not exist, or on too many files.
Result<std::vector<NamedFile>> FilesToCopy(const std::vector<std::string>& paths);

/// A relative name for a path: without `..`, control characters or hidden parts, which a reader would leave out.
std::string NameInBundle(const std::string& path);

}  // namespace inquest
