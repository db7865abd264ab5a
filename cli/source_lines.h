// Lines as their files have them: the inputs, read a second time.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "parsers/scan.h"
#include "timeline/timeline.h"

namespace inquest {

/// The file that holds each input, into `files`: members of an archive are of one.
std::vector<std::uint32_t> FilesOf(const std::vector<InputSummary>& inputs, const std::vector<Input>& files);

/// By input and offset: the line that stands there in the text that the input became, without its end. What cannot be
/// read again, as standard input, is missing, and so is what is longer than any line of a log, or what a
/// container's runtime wrapped.
std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> LinesAt(const std::vector<InputSummary>& inputs,
                                                                       const std::vector<Input>& files,
                                                                       const std::vector<SourcePos>& places);

}  // namespace inquest
