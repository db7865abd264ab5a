// The program of one rank. `inquest replay` starts it; by hand it only says what engines it has.
#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>
#include <string>

#include "replay/engines/engines.h"
#include "replay/worker/worker.h"

namespace inquest {
namespace {

constexpr int kMissing = 3, kOrphaned = 2;

/// `probe ENGINE [NAME=VALUE]...`: prints a ProbeAnswer, on a line of its own.
int Probe(int argc, char** argv) {
  const Engine* engine = FindEngine(argv[2]);
  std::map<std::string, std::string> options;
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos) options[word.substr(0, equals)] = word.substr(equals + 1);
  }
  if (const char* const visible = std::getenv("CUDA_VISIBLE_DEVICES")) options["CUDA_VISIBLE_DEVICES"] = visible;
  const Result<EngineProbe> found = engine == nullptr
                                        ? Error{std::string("this worker has no engine named ") + argv[2], "", ""}
                                    : !engine->missing.empty() ? Error{std::string(engine->missing), "", ""}
                                                               : engine->probe(options);
  ProbeAnswer answer;
  if (found) {
    answer.found = *found;
    answer.found.tests = engine->tests;
  } else {
    answer.missing = found.error().message;
    answer.hint = found.error().hint;
  }
  std::printf("\n%s\n", EncodeProbe(answer).c_str());
  return found ? 0 : kMissing;
}

Worker* the_worker = nullptr;

/// A library's thread that throws, as Gloo's does where a connection breaks in its hands, would end us without a word.
[[noreturn]] void OnTerminate() {
  const std::exception_ptr thrown = std::current_exception();
  if (!thrown || the_worker == nullptr) std::abort();
  try {
    std::rethrow_exception(thrown);
  } catch (const std::exception& exception) {
    the_worker->Threw(exception.what());
  } catch (...) {
    the_worker->Threw("an exception that says nothing");
  }
}

/// `work SUPERVISOR`: its process number, so that one that died before prctl is noticed.
int Work(const char* supervisor) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != std::atol(supervisor)) return kOrphaned;
  // A signal for a library that has not asked for it yet must not end us; what it prints then must not stay in a
  // buffer.
  ::signal(SIGUSR1, SIG_IGN);
  ::signal(SIGUSR2, SIG_IGN);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  ::prctl(PR_SET_PTRACER, std::atol(supervisor));  // and its children: gdb, where only ancestors may look (yama 1)
  Worker worker(kWorkerSocket);
  the_worker = &worker;
  std::set_terminate(OnTerminate);
  worker.Run();
}

}  // namespace
}  // namespace inquest

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);  // Gloo writes to peers that may be dead; that is an error to report, not an end
  if (argc >= 3 && std::strcmp(argv[1], "probe") == 0) {
    const int status = inquest::Probe(argc, argv);
    std::fflush(nullptr);
    ::_exit(status);  // a library that was only looked at may hang, or complain, in its own end
  }
  if (argc == 3 && std::strcmp(argv[1], "work") == 0) return inquest::Work(argv[2]);
  std::fputs("inquest-replay-worker is started by `inquest replay`\n", stderr);
  return inquest::kMissing;
}
