// Python tracebacks: one, chained, quoted, interleaved, cut; and the stacks of fatal errors.
#include "tests/catch.h"
#include "tests/support/rows.h"

namespace inquest {

extern const Format kTraceback;
namespace traceback_test {

std::string Show(const ExceptionRaised& what) {
  return (what.process.empty() ? "" : what.process + ": ") + (what.chained_first ? "*" : "") + what.type + "(" +
         what.message + ") at " + what.frame + " of " + std::to_string(what.stack.size()) + " from line " +
         std::to_string(what.begin.line);
}
std::string Show(const StackSeen& what) {
  return what.tool + ": " + std::string(Name(what.at)) + " in " + what.frame + (what.raised ? ", raised" : "");
}
std::string Show(const JobStopped& what) { return "stopped by " + std::string(Name(what.by)); }
template <class T>
std::string Show(const T&) {
  return std::string(T::kKind);
}

std::string ShowAll(std::string_view text) {
  return ShowEvents(kTraceback, text, [](const auto& what) { return Show(what); });
}

template <std::size_t N>
void Check(const Row (&rows)[N]) {
  CheckRows(rows, ShowAll);
}

TEST_CASE("traceback: multiprocessing names the child that died", "[traceback]") {
  const std::string raised =
      "Traceback (most recent call last):\n  File \"a.py\", line 7, in f\n    open(x)\nKeyError: 'x'\n";
  CHECK(ShowAll("Process Process-1:\n" + raised) == "Process-1: KeyError('x') at a.py:7 in f of 1 from line 2");
  CHECK(ShowAll("Process SpawnPoolWorker-12:\n" + raised) ==
        "SpawnPoolWorker-12: KeyError('x') at a.py:7 in f of 1 from line 2");
  CHECK(ShowAll("Process Process-1:\nsomething else\n" + raised) == "KeyError('x') at a.py:7 in f of 1 from line 3");
  CHECK(ShowAll("Process Process-1 is ready\n" + raised) == "KeyError('x') at a.py:7 in f of 1 from line 2");
}

TEST_CASE("traceback: a head that names a rank says whose it is, whoever prints it", "[traceback]") {
  const auto whose = [](const std::string& text) {
    std::string out;
    for (const Event& event : ParseLines(kTraceback, text))
      if (std::holds_alternative<ExceptionRaised>(event.what))
        out += event.origin.rank ? std::to_string(event.origin.rank->value.value) : "nobody's";
    return out;
  };
  const std::string raised = "  File \"a.py\", line 7, in f\n    open(x)\nKeyError: 'x'\n";
  CHECK(whose("Traceback (most recent call last): (RANK 5)\n" + raised) == "5");
  CHECK(whose("Traceback (most recent call last):\n" + raised) == "nobody's");
  CHECK(whose("Traceback (most recent call last): (RANK many)\n" + raised) == "nobody's");
}

TEST_CASE("traceback: what was ignored, warned of or answered ended nobody", "[traceback]") {
  const auto ignored = [](const std::string& text) {
    return ShowEvents(kTraceback, text, [](const auto& what) {
      if constexpr (std::is_same_v<std::decay_t<decltype(what)>, ExceptionRaised>)
        return what.type + (what.ignored ? " ignored" : "");
      else
        return std::string(what.kKind);
    });
  };
  const std::string frame = "  File \"a.py\", line 7, in f\n    open(x)\n",
                    head = "Traceback (most recent call last):\n",
                    link = "\nDuring handling of the above exception, another exception occurred:\n\n";
  CHECK(ignored(head + frame + "KeyError: 'x'\n") == "KeyError");
  CHECK(ignored("ERROR:    Exception in ASGI application\n" + head + frame + "KeyError: 'x'\n") == "KeyError ignored");
  CHECK(ignored("ERROR:    Exception in ASGI application\n" + head + frame + "KeyError: 'x'\n" + link + head + frame +
                "ValueError: y\n") == "KeyError ignored; ValueError ignored");
  const std::string others(120, '\n');
  CHECK(ignored("Exception ignored in: <function f at 0x7f>\n" + others.substr(0, 30) + head + frame +
                "KeyError: 'x'\n" + head + frame + "ValueError: y\n") == "KeyError ignored; ValueError");
  CHECK(ignored("Exception ignored in: <function f at 0x7f>\n" + others + head + frame + "KeyError: 'x'\n") ==
        "KeyError");
  CHECK(ignored(head + frame + "KeyError: 'x'\n" + link + head + frame + "ValueError: y\n") == "KeyError; ValueError");
  const auto led = [&](const std::string& by) {
    return by + head + by + frame.substr(0, frame.find('\n') + 1) + by + "KeyError: 'x'\n";
  };
  CHECK(ignored(led("W0405 06:07:08.123000 41200 torch/_dynamo/convert_frame.py:1233] ")) == "KeyError ignored");
  CHECK(ignored(led("E0405 06:07:08.123000 41200 torch/_dynamo/convert_frame.py:1233] ")) == "KeyError");
  // Several processes wrote at once; and what JAX raises to show a stack.
  CHECK(ignored(head + frame + "FileNotFoundErrorFileNotFoundError: : x\n") == "FileNotFoundError");
  CHECK(ignored(head + frame + "KeyErrorKeyErrorKeyError: x\n") == "KeyError");
  CHECK(ignored(head + frame + "jax.errors.JaxStackTraceBeforeTransformation: x\n").empty());
}

TEST_CASE("traceback: exceptions of any name", "[traceback]") {
  const std::string frame =
      "Traceback (most recent call last):\n  File \"a.py\", line 7, in f\n    take(lock)\n    ^^^^^^^^^^\n";
  const struct {
    const char* end;
    const char* shown;
  } rows[] = {
      {"filelock._error.Timeout: The file lock 'x' could not be acquired.\n",
       "filelock._error.Timeout(The file lock 'x' could not be acquired.) at a.py:7 in f of 1 from line 1"},
      {"botocore.errorfactory.NoSuchKey: An error occurred\n",
       "botocore.errorfactory.NoSuchKey(An error occurred) at a.py:7 in f of 1 from line 1"},
      {"cv2.error: OpenCV(4.8.0)\n", "cv2.error(OpenCV(4.8.0)) at a.py:7 in f of 1 from line 1"},
      {"Stop\n", "Stop() at a.py:7 in f of 1 from line 1"},
      {"Exhausted: no more\n", "Exhausted(no more) at a.py:7 in f of 1 from line 1"},
      {"INFO: going on\n", "traceback:  in a.py:7 in f, raised"},
      {"a line of another program\nStop\n", "Stop() at a.py:7 in f of 1 from line 1"},
      {"a\nb\nc\nd\nStop\n", "traceback:  in a.py:7 in f, raised"},
      {"  Fil", "traceback:  in a.py:7 in f, raised"},  // a cut, not a name
      {"FatalError: `Process abort signal` is detected by the operating system.\n",
       "traceback:  in a.py:7 in f, raised"},
  };
  for (const auto& row : rows) {
    CAPTURE(row.end);
    CHECK(ShowAll(frame + row.end) == row.shown);
  }
  // A stack that was printed on request has no head, and no exception.
  CHECK(ShowAll("  File \"a.py\", line 7, in f\n    traceback.print_stack()\nRetrying: 1 of 3\n") == "");
}

TEST_CASE("traceback: one traceback", "[traceback]") {
  Check({
      {"Traceback (most recent call last):\n"
       "  File \"train.py\", line 84, in <module>\n"
       "    main()\n"
       "  File \"train.py\", line 31, in main\n"
       "  File \"/opt/e/lib/python3.11/site-packages/torch/nn/modules/module.py\", line 1511, in _wrapped_call_impl\n"
       "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. \n",
       "torch.cuda.OutOfMemoryError(CUDA out of memory. Tried to allocate 2.00 GiB.) at train.py:31 in main of 3 from "
       "line 1"},
      // Nothing but libraries: the innermost of all.
      {"Traceback (most recent call last):\n"
       "  File \"<frozen importlib._bootstrap>\", line 3, in _load\n"
       "  File \"/usr/lib/python3.11/queue.py\", line 4, in get\n"
       "_queue.Empty\n",
       "_queue.Empty() at /usr/lib/python3.11/queue.py:4 in get of 2 from line 1"},
      {"[2031-02-23 14:09:34 TP14] Scheduler hit an exception: Traceback (most recent call last):\n"
       "  File \"/srv/scheduler.py\", line 18, in run\n"
       "AssertionError\n",
       "AssertionError() at /srv/scheduler.py:18 in run of 1 from line 1"},
      {"^CTraceback (most recent call last):\n  File \"gen.py\", line 6, in <module>\nKeyboardInterrupt\n",
       "stopped by keyboard; KeyboardInterrupt() at gen.py:6 in <module> of 1 from line 1"},
      // The head was cut away.
      {"  File \"deit/utils.py\", line 136, in log_every\nOSError: [Errno 24] Too many open files\n",
       "OSError([Errno 24] Too many open files) at deit/utils.py:136 in log_every of 1 from line 1"},
      {"pkg.mod.SomeError: all but the end was cut away\n",
       "pkg.mod.SomeError(all but the end was cut away) at  of 0 from line 1"},
      {"Traceback (most recent call last):\n  File \"x.py\", line 3\n    a b\nSyntaxError: invalid syntax\n",
       "SyntaxError(invalid syntax) at x.py:3 of 1 from line 1"},
      {"  File \"a.py\", line 1, in f\nray.exceptions.RayTaskError(ValueError): ray::step() (pid=4)\n",
       "ray.exceptions.RayTaskError(ValueError)(ray::step() (pid=4)) at a.py:1 in f of 1 from line 1"},
      {"  File \"a.py\", line 1, in f\ntorch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n",
       "torch.distributed.elastic.multiprocessing.errors.ChildFailedError() at a.py:1 in f of 1 from line 1"},
      {"  File \"a.py\", line 1, in f\nException: plain\n", "Exception(plain) at a.py:1 in f of 1 from line 1"},
      {"  + Exception Group Traceback (most recent call last):\n  |   File \"a.py\", line 1, in f\n  | ExceptionGroup: "
       "two (2 sub-exceptions)\n",
       "ExceptionGroup(two (2 sub-exceptions)) at a.py:1 in f of 1 from line 1"},
  });
}

TEST_CASE("traceback: whatever stands in front of every line", "[traceback]") {
  const auto with = [](const std::string& a, const std::string& b) {
    return a + "Traceback (most recent call last):\n" + a + "  File \"a.py\", line 7, in f\n" + b + "    take(lock)\n" +
           b + "Stop: no more\n";
  };
  const std::string shown = "Stop(no more) at a.py:7 in f of 1 from line 1";
  CHECK(ShowAll(with("worker | ", "worker | ")) == shown);
  CHECK(ShowAll(with("[job(pid 936)] [09c5-61ee] ", "[job(pid 936)] [09c5-61ee] ")) == shown);
  CHECK(ShowAll(with("ERROR 07-26 10:00:09 [worker.py:226] ", "ERROR 07-26 10:00:10 [worker.py:226] ")) == shown);
  // The head of a logger stands in front of the first line alone; then of none.
  CHECK(ShowAll("2031-02-03 ERROR main: " + with("", "")) == shown);
  // Another writer's line ends nothing.
  CHECK(ShowAll("[a]: Traceback (most recent call last):\n[a]:   File \"a.py\", line 7, in f\n[b]: Stop: no more\n") ==
        "traceback:  in a.py:7 in f, raised");
  // Two writers in turn.
  CHECK(ShowAll("[n1:4]: Traceback (most recent call last):\n[n1:5]: Traceback (most recent call last):\n[n1:4]:   "
                "File \"a.py\", line 1, in f\n"
                "[n1:5]:   File \"b.py\", line 2, in g\n[n1:4]: KeyError: 1\n[n1:5]: ValueError: 2\n") ==
        "KeyError(1) at a.py:1 in f of 1 from line 1; ValueError(2) at b.py:2 in g of 1 from line 2");
}

TEST_CASE("traceback: nothing but its last line", "[traceback]") {
  Check({
      {"RuntimeError: it broke\n", "RuntimeError(it broke) at  of 0 from line 1"},
      {"  RuntimeError: quoted by another\n", ""},
      {"RuntimeError\n", ""},
      {"UserWarning: not fatal\n", ""},
      {"File \"a.py\", line 1, in f\ntake()\nKeyError: 1\n", "KeyError(1) at a.py:1 in f of 1 from line 1"},
  });
}

TEST_CASE("traceback: chains", "[traceback]") {
  Check({
      {"Traceback (most recent call last):\n"
       "  File \"a.py\", line 1, in f\n"
       "RuntimeError: Broken pipe\n"
       "\n"
       "The above exception was the direct cause of the following exception:\n"
       "\n"
       "Traceback (most recent call last):\n"
       "  File \"b.py\", line 2, in g\n"
       "x.RendezvousConnectionError: The connection has failed.\n",
       "*RuntimeError(Broken pipe) at a.py:1 in f of 1 from line 1; "
       "x.RendezvousConnectionError(The connection has failed.) at b.py:2 in g of 1 from line 7"},
      {"  File \"a.py\", line 1, in f\nKeyError: 1\nDuring handling of the above exception, another exception "
       "occurred:\n"
       "Traceback (most recent call last):\n  File \"a.py\", line 2, in f\nValueError: 2\n"
       "During handling of the above exception, another exception occurred:\n"
       "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nTypeError: 3\n",
       "*KeyError(1) at a.py:1 in f of 1 from line 1; *ValueError(2) at a.py:2 in f of 1 from line 4; TypeError(3) at "
       "a.py:3 in f of 1 from line 8"},
      // Two that have nothing to do with one another.
      {"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 1\n"
       "Traceback (most recent call last):\n  File \"a.py\", line 2, in f\nValueError: 2\n",
       "KeyError(1) at a.py:1 in f of 1 from line 1; ValueError(2) at a.py:2 in f of 1 from line 4"},
      // A worker's traceback inside the message: the quoted one is nearer the cause.
      {"Traceback (most recent call last):\n  File \"train.py\", line 1, in f\nOSError: Caught OSError in DataLoader "
       "worker process 3.\n"
       "Original Traceback (most recent call last):\n  File \"data.py\", line 9, in load\nOSError: cannot identify "
       "image file\n",
       "OSError(Caught OSError in DataLoader worker process 3.) at train.py:1 in f of 1 from line 1; "
       "*OSError(cannot identify image file) at data.py:9 in load of 1 from line 4"},
  });
}

TEST_CASE("traceback: several at once in one stream", "[traceback]") {
  Check({
      // Heads of two ranks, then their frames, then both exceptions.
      {"Traceback (most recent call last):\nTraceback (most recent call last):\n  File \"a.py\", line 1, in f\n  File "
       "\"a.py\", line 1, in f\n"
       "ValueError: of one\nValueError: of the other\n",
       "ValueError(of one) at a.py:1 in f of 1 from line 2; ValueError(of the other) at a.py:1 in f of 1 from line 1"},
      {"  File \"a.py\", line 1, in f\nRuntimeError: first\n    main()\n  File \"a.py\", line 2, in g\nRuntimeError: "
       "second\n",
       "RuntimeError(first) at a.py:1 in f of 1 from line 1; RuntimeError(second) at a.py:2 in g of 1 from line 4"},
      // Cut: whatever it was that was raised.
      {"Traceback (most recent call last):\n  File \"a.py\", line 1, in f\n", "traceback:  in a.py:1 in f, raised"},
  });
  // An exception far behind a cut traceback is not its end.
  CHECK(ShowAll("Traceback (most recent call last):\n" + std::string(600, '\n') +
                "ValueError: bad sample, skipped\n") == "ValueError(bad sample, skipped) at  of 0 from line 602");
}

TEST_CASE("traceback: fatal errors", "[traceback]") {
  Check({
      {"Fatal Python error: Segmentation fault\n\nThread 0x00007f01 (most recent call first):\n  File \"other.py\", "
       "line 1 in wait\n\n"
       "Current thread 0x00007f02 (most recent call first):\n"
       "  File \"/o/lib/python3.10/site-packages/torch/store.py\", line 31 in get_all\n  File \"train.py\", line 53 in "
       "sync\n"
       "  File \"train.py\", line 99 in <module>\n",
       "Fatal Python error(Segmentation fault) at train.py:53 in sync of 3 from line 1"},
      {"Fatal Python error: Bus error\n\nThread 0x00007f01 (most recent call first):\n  File \"data.py\", line 1 in "
       "load\n\n"
       "Thread 0x00007f02 (most recent call first):\n  File \"main.py\", line 2 in wait\n",
       "Fatal Python error(Bus error) at data.py:1 in load of 1 from line 1"},
      {"Fatal Python error: Aborted\n", "Fatal Python error(Aborted) at  of 0 from line 1"},
      // A dump on request is no error.
      {"Timeout (0:05:00)!\nThread 0x00007f01 (most recent call first):\n  File \"a.py\", line 1 in f\n  ValueError: "
       "chatter\n",
       ""},
  });
  const auto raised = Only<ExceptionRaised>(
      ParseLines(kTraceback,
                 "Fatal Python error: x\nCurrent thread 0x1 (most recent call first):\n  File \"in.py\", line 2 in b\n"
                 "  File \"out.py\", line 1 in a\nTraceback (most recent call last):\n"));
  REQUIRE(raised.size() == 1);
  CHECK(raised[0].stack == std::vector<std::string>{"out.py:1 in a", "in.py:2 in b"});
}

TEST_CASE("traceback: lines that quote make no event", "[traceback]") {
  Check({
      {"2031-04-05 06:07:08 ERROR worker died: RuntimeError: x\n", ""},
      {"INFO: ValueError: x\n", ""},
      {"  File \"a.py\", line 1, in f\n    raise ValueError(\"Error: y\")\nERROR 06:07 RuntimeError: quoted\n", ""},
      {"  File \"a.py\", line 1, in f\nncclRemoteError: A call failed\nMean Absolute Error: 0.3\nError: 4\n", ""},
      {"{\"py_callstack\": \"Traceback (most recent call last):\\n  File \\\"a.py\\\"\"}\n  ValueError: x\n", ""},
      {"pkg.mod.SomeWarning: this is deprecated\n", ""},
  });
}

TEST_CASE("traceback: each rank has its own", "[traceback]") {
  const auto events = ParseLines(
      kTraceback,
      "[rank2]: Traceback (most recent call last):\n[rank2]:   File \"a.py\", line 1, in f\n[rank2]: ValueError: x\n");
  REQUIRE(events.size() == 1);
  REQUIRE(events[0].origin.rank);
  CHECK(events[0].origin.rank->value == GlobalRank{2});
  CHECK(events[0].text == "ValueError: x");
}

TEST_CASE("traceback: IPython's names its exception in its head", "[traceback]") {
  const std::string head = "                         Traceback (most recent call last)\n",
                    cell = "Cell In[3], line 2\n      1 x = f()\n----> 2 assert x\n\n";
  CHECK(ShowAll("AssertionError" + head + cell + "AssertionError: \n") == "AssertionError() at  of 0 from line 1");
  CHECK(ShowAll("EmptyQueue" + head + cell + "EmptyQueue: \n") == "");  // no mark of an exception in its last line
  CHECK(ShowAll("KeyError" + head + cell + "KeyError: 'x'\n") == "KeyError('x') at  of 0 from line 1");
  // A word that stands at the head of a line of the code it shows.
  CHECK(ShowAll("KeyError" + head + cell + "KeyErrors are rare\n") == "");
}

TEST_CASE("traceback: a deep stack keeps its inner frames", "[traceback]") {
  std::string text = "Traceback (most recent call last):\n";
  for (int i = 0; i < 200; ++i) text += "  File \"a.py\", line " + std::to_string(i) + ", in f\n";
  const auto raised = Only<ExceptionRaised>(ParseLines(kTraceback, text + "RecursionError: deep\n"));
  REQUIRE(raised.size() == 1);
  CHECK(raised[0].stack.size() == 64);
  CHECK(raised[0].stack.back() == "a.py:199 in f");
}

TEST_CASE("traceback: cut at every byte", "[traceback]") {
  const std::string text =
      "Traceback (most recent call last):\n  File \"a.py\", line 1, in f\nKeyError: 1\n\nDuring handling of the above "
      "exception, another exception "
      "occurred:\n\nTraceback (most recent call last):\n  File \"b.py\", line 2, in g\ntorch.OutOfMemoryError: "
      "x\nFatal Python error: Aborted\n"
      "Current thread 0x1 (most recent call first):\n  File \"in.py\", line 2 in b\n";
  for (std::size_t size = 0; size <= text.size(); ++size) ParseLines(kTraceback, text.substr(0, size));
}

TEST_CASE("traceback: a log that ends in its head, or in a frame that was wrapped, raised something", "[traceback]") {
  const std::string head = "Traceback (most recent call last):\n";
  CHECK(ShowAll(head) == "traceback:  in , raised");
  CHECK(ShowAll(head + "  File \"a.py\", line 7,\n in f\n") == "traceback:  in a.py:7, raised");
}

TEST_CASE("traceback: one that was cut tells where its process waited", "[traceback]") {
  const std::string head = "Traceback (most recent call last):\n  File \"train.py\", line 7, in <module>\n";
  const std::string packages = "  File \"/opt/conda/lib/python3.10/site-packages/";
  const std::string barrier = packages + "torch/distributed/distributed_c10d.py\", line 3696, in barrier\n";
  Check({
      {(head + barrier).c_str(),
       "traceback: collective in barrier (torch/distributed/distributed_c10d.py:3696), raised"},
      {(head + packages + "transformers/training_args.py\", line 2388, in main_process_first\n" + barrier).c_str(),
       "traceback: turn in main_process_first (transformers/training_args.py:2388), raised"},
      {(head + packages + "torch/distributed/distributed_c10d.py\", line 1141, in init_process_group\n" + packages +
        "torch/distributed/rendezvous.py\", line 189, in _create_c10d_store\n    return TCPStore(\n")
           .c_str(),
       "traceback: joining in _create_c10d_store (torch/distributed/rendezvous.py:189), raised"},
      // Two ranks at once, each with its own frames.
      {("Traceback (most recent call last):\n" + head + "  File \"train.py\", line 7, in <module>\n" + barrier +
        barrier)
           .c_str(),
       "traceback: collective in barrier (torch/distributed/distributed_c10d.py:3696), raised; "
       "traceback: collective in barrier (torch/distributed/distributed_c10d.py:3696), raised"},
      // Other work: what went wrong there only the exception tells. Frames alone were perhaps printed on request.
      {(head + packages + "torch/serialization.py\", line 441, in save\n").c_str(),
       "traceback:  in train.py:7 in <module>, raised"},
      {barrier.c_str(), ""},
  });
}

TEST_CASE("traceback: faulthandler tells what a process is at", "[traceback]") {
  const std::string wait =
      "  File \"/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py\", line 3696 in barrier\n"
      "  File \"train.py\", line 7 in <module>\n";
  Check({
      {("Timeout (0:05:00)!\nThread 0x00007f01 (most recent call first):\n  File \"/usr/lib/python3.10/threading.py\", "
        "line 320 in wait\n\nThread 0x00007f02 (most recent call first):\n" +
        wait)
           .c_str(),
       "faulthandler: collective in barrier (torch/distributed/distributed_c10d.py:3696)"},
      {("Current thread 0x00007f02 (most recent call first):\n" + wait +
        "\nThread 0x00007f01 (most recent call first):\n  File \"a.py\", line 320 in wait\n")
           .c_str(),
       "faulthandler: collective in barrier (torch/distributed/distributed_c10d.py:3696)"},
      {"Current thread 0x00007f02 (most recent call first):\n  File \"a.py\", line 320 in wait\n", ""},
  });
}

}  // namespace traceback_test
}  // namespace inquest
