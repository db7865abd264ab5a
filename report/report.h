// The reports: one verdict, rendered for a person or for a program. A report decides nothing.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "rules/verdict.h"
#include "timeline/timeline.h"

namespace inquest {

enum class Color : std::uint8_t { kNever, kAlways };

struct TextStyle {
  Color color = Color::kNever;
  int width = 100;     ///< columns; below 40 counts as 40
  bool utf8 = true;    ///< the terminal takes it; else the picture is of ASCII
  bool whole = false;  ///< all of a report, and not one screen of it
};

/// What a report needs beside the facts.
struct ReportContext {
  TextStyle text;
  std::string_view tool_version;
  std::string replay_command = {};                  ///< runs the verdict's collective again; empty: it cannot be run
  std::optional<std::size_t> timeline_events = {};  ///< of each rank, at most; nullopt: in JSON none, a line each all
};

/// Takes a report piece by piece.
using Sink = std::function<void(std::string_view)>;

/// All that the program knows of a report format.
struct ReportFormat {
  std::string_view name;
  std::string_view mark;  ///< stands in the first KiB of every such report; empty: nothing tells it from a log
  void (*render)(const Timeline&, const Verdict&, const ReportContext&, const Sink&);
};
std::span<const ReportFormat> ReportFormats();
/// nullptr: no such format.
const ReportFormat* FindReportFormat(std::string_view name);

/// One screen for a person; ends in a newline. Everything that a log could have written is sanitised.
std::string RenderText(const Timeline& timeline, const Verdict& verdict, const ReportContext& context);

/// A comment of less than 60,000 characters in GitHub's Markdown; nothing in it that a log wrote is obeyed or linked.
std::string RenderMarkdown(const Timeline& timeline, const Verdict& verdict, const ReportContext& context);

/// At most ten commands to the runner of a GitHub workflow, a line each; nothing of a log is one.
std::string RenderGithub(const Timeline& timeline, const Verdict& verdict, const ReportContext& context);

/// One suite of one test, that the job ended well: it passes, fails with the cause, or errs where nothing decides.
std::string RenderJunit(const Timeline& timeline, const Verdict& verdict, const ReportContext& context);

/// A log of SARIF 2.1.0 with one result, or none where the job ended well.
void RenderSarif(const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink);

/// An object a line, ASCII: the verdict, then every event of every lane of the picture, ranks first.
void RenderJsonLines(const Timeline& timeline, const Verdict& verdict, const ReportContext& context, const Sink& sink);

/// The document of docs/json.md; ASCII, ends in a newline. `events`: so many of each rank's, at most.
void RenderJson(const Timeline& timeline, const Verdict& verdict, std::string_view tool_version, const Sink& sink,
                std::size_t events = 0);
std::string RenderJson(const Timeline& timeline, const Verdict& verdict, std::string_view tool_version);

}  // namespace inquest
