// The program: parses the command line, runs one command, prints what it returned.
#include <unistd.h>

#include <csignal>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/pager.h"

/// What jemalloc asks of the program that is linked with it: two pools for few threads, a cache in each thread for
/// blocks up to 64 KiB, and pages that are free go back to the kernel soon. It would keep them for ten seconds, which
/// is longer than a run; to give them back at once costs a flood a sixth of its speed.
extern "C" const char* malloc_conf;
const char* malloc_conf = "narenas:2,dirty_decay_ms:20,muzzy_decay_ms:0,lg_tcache_max:16";

namespace inquest {
namespace {

CommandResult Run(const Result<Options>& options) {
  if (!options) return CouldNotRun(options.error());
  if (options->version) return RunVersion(*options);
  if (options->help) return {.status = 0, .out = HelpText(*options->command), .err = ""};
  return options->command->run(*options);
}

int Main(const std::vector<std::string>& arguments) {
  // A closed pipe shall be an error of write(), not the end of the process.
  std::signal(SIGPIPE, SIG_IGN);
  const Result<Options> options = ParseOptions(arguments);
  CommandResult result = Run(options);
  std::optional<Error> error;
  const auto print = [&] {
    error = WriteOut(result.out);
    if (result.print)
      result.print([&](std::string_view piece) {
        if (!error) error = WriteOut(piece);
      });
  };
  if (options && options->pager && (!result.out.empty() || result.print))
    ThroughPager(print);
  else
    print();
  if (error) {
    result.status = kExitCouldNotRun;
    result.err += CouldNotRun(*error).err;
  }
  WriteErr(result.err);
  return result.status;
}

}  // namespace
}  // namespace inquest

int main(int argc, char** argv) { return inquest::Main({argv + 1, argv + argc}); }
