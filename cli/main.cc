// The program: parses the command line, runs one command, prints what it returned.
#include <csignal>

#include "cli/console.h"
#include "cli/options.h"

namespace inquest {
namespace {

CommandResult Run(const std::vector<std::string>& arguments) {
  const Result<Options> options = ParseOptions(arguments);
  if (!options) return CouldNotRun(options.error());
  if (options->version) return {.status = 0, .out = "inquest " INQUEST_VERSION "\n", .err = ""};
  if (options->help) return {.status = 0, .out = HelpText(*options->command), .err = ""};
  return options->command->run(*options);
}

int Main(const std::vector<std::string>& arguments) {
  // A closed pipe shall be an error of write(), not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  CommandResult result = Run(arguments);
  if (const auto error = WriteOut(result.out)) {
    result.status = kExitCouldNotRun;
    result.err += CouldNotRun(*error).err;
  }
  WriteErr(result.err);
  return result.status;
}

}  // namespace
}  // namespace inquest

int main(int argc, char** argv) { return inquest::Main({argv + 1, argv + argc}); }
