// What the name of an input says of the job that wrote it: names that batch systems and the kubelet give.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace inquest {

/// What follows the last slash.
std::string_view BaseOf(std::string_view path);

/// Views into the path.
struct BatchFile {
  std::string_view family;  ///< what is in front of the id: the same of all files of one name
  std::string_view id;      ///< digits
  std::string_view task;    ///< of an array, digits; empty: of none
  enum class System : std::uint8_t {
    kSlurm,
    kPbs,   ///< while the job runs, and where its output could not be brought home
    kAlike  ///< PBS, Grid Engine and their like
  } system = System::kAlike;
};
/// `slurm-88123.out`, `slurm-88123_4.out`, `train.o88123`, `train.e88123.4`, `88123[4].pbs01.OU`.
std::optional<BatchFile> BatchFileOf(std::string_view path);

/// `train-88123.out`, `train_88123_4.err`, `88123.out`: names that users of batch systems give (Slurm's `%x-%j.out`),
/// and others too: a number alone does not make two files two jobs.
std::optional<BatchFile> LikelyBatchFileOf(std::string_view path);
/// The same of a `.log`, which has fewer of them.
std::optional<BatchFile> BatchLogOf(std::string_view path);

/// `raysubmit_Xq3bT5wYc1kLm9ZP` of `job-driver-raysubmit_Xq3bT5wYc1kLm9ZP.log`.
std::optional<std::string_view> RaySubmissionOf(std::string_view path);

/// The kubelet's `/var/log/pods/<namespace>_<pod>_<uid>/<container>/<restarts>.log`, and the links to them,
/// `/var/log/containers/<pod>_<namespace>_<container>-<id>.log`.
std::optional<std::string_view> PodOfPath(std::string_view path);

}  // namespace inquest
