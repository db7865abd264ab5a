// Which lines of a host's kernel log belong to the job's failure.
#pragma once

#include <map>
#include <optional>

#include "rules/rule_book.h"
#include "timeline/course.h"
#include "timeline/timeline.h"

namespace inquest {

// A kernel log is the whole host's, over weeks. A line of it is no part of this failure where it is certain that the
// host or the GPU is not the job's, or that it was hours before or after. Certain means: every rank's host, or GPU, is
// known and it is none of them; both clocks print dates and either both zones or none. Where that is not so, the line
// counts.
class KernelScope {
 public:
  enum class Outside : std::uint8_t { kNo, kOtherHost, kOtherDevice, kLongBefore, kAfterwards };

  KernelScope(const Timeline& timeline, const RuleBook& book, const Course& course);
  /// By the event's line: what several events of one line say counts for all of them.
  Outside Of(const Event& event) const;
  /// Whether it is not known if the event was before the failure: nothing dates it, or the clocks may be zones apart.
  bool OrderUnknown(const Event& event) const;
  /// Something else than the kernel log says that the job failed.
  bool failed() const { return end_.has_value() || onset_.has_value(); }

 private:
  Outside Judge(const RuleBook& book, const Event& event) const;  ///< by time

  std::optional<Timestamp> onset_, end_;  ///< of the job's trouble, as its course has it
  std::map<SourcePos, Outside> outside_;
};

}  // namespace inquest
