// One host's or GPU's case for a vendor, as a file that can be handed over.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/report.h"
#include "rules/vendor_case.h"

namespace inquest {

/// A file as it was given, and what it was when it was read.
struct FileDigest {
  std::string path;
  std::uint64_t bytes = 0;
  std::string sha256;   ///< hexadecimal; empty: there is none
  std::string problem;  ///< why
};

/// A case with all that its reports show. The case refers to both timelines.
struct EvidenceFile {
  const Timeline& devices;
  const Timeline& judged;
  const Verdict& verdict;
  const VendorCase& what;
  std::vector<FileDigest> files;       ///< as they were given
  std::vector<std::uint32_t> file_of;  ///< into `files`, by input: members of an archive are of one file
};

/// The document of docs/evidence.schema.json; ASCII.
void RenderEvidenceJson(const EvidenceFile& file, std::string_view tool_version, const Sink& sink);
/// All of it, for people. Everything that a log could have written is sanitised.
void RenderEvidenceText(const EvidenceFile& file, const ReportContext& context, const Sink& sink);
/// The same as a page: one file, without script and without network.
void RenderEvidenceHtml(const EvidenceFile& file, const ReportContext& context, const Sink& sink);

/// Stands in the first KiB of the document; of the page, that it is ours.
inline constexpr std::string_view kEvidenceMark = "\"schema\": \"inquest-evidence-1\"";

// ---- words that the text and the page share ---------------------------------------------------------------------

/// `GPU 3, 0000:4e:00.0, GPU-0f1e...`, as far as it is known.
std::string GpuInWords(const GpuId& id);
/// `node08`, `GPU 0000:4e:00.0 of node08`.
std::string PartInWords(const VendorCase& what);
/// `2031-04-05T12:11:05Z`, with what is not known of it.
std::string TimeInWords(const Quote& quote);
/// Whom the verdict blames, in one sentence that the verdict's lines prove.
std::string BlameInWords(const EvidenceFile& file);
/// `exited with 1, as torchelastic says`; empty: nothing tells how it ended.
std::string EndInWords(const CaseProcess& process);
/// `reset of the GPU, drain of the host`: what an error that can be a cause asks for; empty: nothing.
std::string NeedsInWords(const CaseError& error);
/// How a quoted line's time is known, without what the list of files says.
std::string BasisInWords(const EvidenceFile& file, const Quote& quote);
/// Of an input: lines, whose they are, its clock and what was wrong with it; `kinds` behind the lines, as they are
/// given.
std::string InputInWords(const EvidenceFile& file, std::uint32_t number, std::string_view kinds);
/// The file that holds a quoted line.
const FileDigest* FileOf(const EvidenceFile& file, const Quote& quote);

}  // namespace inquest
