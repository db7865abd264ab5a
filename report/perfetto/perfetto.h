// The verdict's picture, and every call that the inputs tell of, as a trace for ui.perfetto.dev.
#pragma once

#include <functional>
#include <string>

#include "core/event_sink.h"
#include "report/report.h"

namespace inquest {

/// Reads the inputs again, with the times of NCCL's calls, into a sink; says why they could not be read, or not whole.
/// Empty: they were.
using ReadAgain = std::function<std::string(EventSink& sink)>;

void RenderPerfetto(const Timeline& timeline, const Verdict& verdict, const ReportContext& context,
                    const ReadAgain& again, const Sink& sink);

}  // namespace inquest
