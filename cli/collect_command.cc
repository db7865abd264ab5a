// `inquest collect`: makes a bundle and says what is in it.
#include <unistd.h>
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/interrupt.h"
#include "collect/collect.h"
#include "report/terminal.h"

namespace inquest {
namespace {

std::string Summary(const Collected& collected) {
  const std::string path = Sanitize(collected.output);
  std::string missing;
  std::size_t whole = 0;
  for (const CollectedItem& item : collected.items) {
    if (item.problem.empty())
      ++whole;
    else
      missing += fmt::format("  {:<28} {}\n", Sanitize(item.name), Sanitize(item.problem));
  }
  std::string text = fmt::format("{}: {} of {} items, {} bytes. Nothing was sent anywhere.\n", path, whole,
                                 collected.items.size(), collected.bytes);
  if (!missing.empty()) text += "Missing or not whole:\n" + missing;
  if (path != "-") text += fmt::format("Look inside: tar -tf {0}\nRead it:     inquest {0}\n", path);
  return text;
}

}  // namespace

CommandResult RunCollect(const Options& options) {
  if (std::ranges::find(options.arguments, "-") != options.arguments.end())
    return CouldNotRun({"collect reads no standard input", "name the files to put in", ""});
  if (options.collect.output == "-" && OutputIsTerminal())
    return CouldNotRun({"a terminal shows no bundle", "send standard output to a file, or give -o FILE", ""});
  CollectRequest request{.output = options.collect.output,
                         .paths = options.arguments,
                         .environment = {},
                         .time_limit = options.collect.time_limit,
                         .stacks = options.collect.stacks,
                         .tool_version = std::string(Version())};
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) request.environment.emplace_back(*entry);
  request.interrupted = Interrupted;
  CatchInterrupts();
  const auto collected = Collect(request);
  if (!collected) return CouldNotRun(collected.error());
  CommandResult result;
  (options.collect.output == "-" ? result.err : result.out) = Summary(*collected);
  if (Interrupted()) {
    result.err += "inquest: interrupted; the bundle is whole, with what was gathered by then\n";
    result.status = kExitUndecided;
  }
  return result;
}

}  // namespace inquest
