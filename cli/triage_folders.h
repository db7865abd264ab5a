// Which jobs there are in folders: what belongs to one, by sub-folders and by the names of files.
#pragma once

#include <string>
#include <vector>

#include "core/result.h"

namespace inquest {

/// What was given of one job.
struct JobInputs {
  std::string name;  ///< below the folder, where one folder is given; else its path
  std::vector<std::string> paths;
};

// In a folder that is given every sub-folder which holds a file is a job, with all below it; of the files beside them,
// those of one batch job are one (`slurm-88123.out` and `.err`), and each other is one, but for the errors beside its
// output (`a.err` beside `a.out`). A folder without such sub-folders is one job, unless its files are of several batch
// jobs. A file that is given is a job, with the others of its batch job.

/// By name. An error: there is nothing at a path, or no file in what was given.
Result<std::vector<JobInputs>> FindJobs(const std::vector<std::string>& paths);

}  // namespace inquest
