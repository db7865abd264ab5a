// The verdict's picture for a terminal: a row for those to whom the same befell.
#pragma once

#include "report/report.h"

namespace inquest {

void RenderLanes(const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink);

}  // namespace inquest
