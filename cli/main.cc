// The program: parses the command line, runs one command, prints what it returned.
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/options.h"
#include "cli/pager.h"

namespace inquest {
namespace {

CommandResult Run(const Result<Options>& options) {
  if (!options) return CouldNotRun(options.error());
  if (options->version) return RunVersion(*options);
  if (options->help) return {.status = 0, .out = HelpText(*options->command), .err = ""};
  return options->command->run(*options);
}

/// A third of a run on a small log is page faults: the heap begins with pages of 2 MiB, where the kernel has them to
/// give. Not more of it, since a large page is resident whole; nor buffers of a block and more, which come and go.
void TakeHeapInLargePages() {
#if defined(__GLIBC__) && defined(MADV_HUGEPAGE)
  constexpr std::size_t kHeap = 6U << 20U, kPage = 2U << 20U;
  ::mallopt(M_TOP_PAD, static_cast<int>(kHeap));
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(kHeap));
  ::mallopt(M_MMAP_THRESHOLD, 1 << 20);
  void* volatile grown = std::malloc(kPage / 4);
  const auto end = reinterpret_cast<std::uintptr_t>(::sbrk(0)) / kPage * kPage;
  const auto begin = (reinterpret_cast<std::uintptr_t>(grown) + kPage - 1) / kPage * kPage;
  if (grown != nullptr && begin < end && end - begin <= 2 * kHeap)
    ::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  std::free(grown);
  ::mallopt(M_TOP_PAD, 128 * 1024);
#endif
}

int Main(const std::vector<std::string>& arguments) {
  TakeHeapInLargePages();
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
