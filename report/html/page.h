// The verdict as one page for a browser: no network, no script but its own, readable without that.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"

namespace inquest {

/// A line of a log that stands near one that is cited.
struct NearbyLine {
  std::uint64_t line = 0;  ///< of its input
  std::string text;        ///< as the file has it
};
/// Asked for the lines round a cited one, itself among them. None: they cannot be had, and it stands alone.
using LinesNear = std::function<std::vector<NearbyLine>(const SourcePos& where, std::string_view text)>;

void RenderHtml(const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const LinesNear& near,
                const Sink& sink);

}  // namespace inquest
