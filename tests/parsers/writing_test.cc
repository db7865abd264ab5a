// What no program printed is told from logs, and from logs that somebody pasted among his own words.
#include "parsers/writing.h"

#include <string>

#include "tests/catch.h"

namespace inquest {
namespace writing_test {

const std::string kCpp =
    "#include \"socket.h\"\n"
    "// Connects to the peer, or gives up.\n"
    "namespace net {\n"
    "static Result Connect(Socket* sock) {\n"
    "  for (int i = 0; i < kTries; i++) {\n"
    "    if (TryConnect(sock) == 0) {\n"
    "      return kSuccess;\n"
    "    }\n"
    "  }\n"
    "  WARN(\"Call to connect to %s failed : %s\", sock->name, strerror(errno));\n"
    "  return kSystemError;\n"
    "}\n"
    "}  // namespace net\n";

/// Of a program that says in sentences what it does, and then does it.
const std::string kExplained = [] {
  std::string text = "\n====\nAbout this run\n====\n- The matrix is made at random for each test that is run.\n";
  for (int i = 0; i < 14; ++i)
    text += "- The check of part " + std::to_string(i) + " is that the residual of the solution is less than this.\n";
  for (int i = 0; i < 8; ++i)
    text += "WR1   20" + std::to_string(i) + "6  192  2  2  41.7" + std::to_string(i) + "  1.42e+02\n";
  return text;
}();

const std::string kPython =
    "\"\"\"Trains a model.\n"
    "\n"
    "Raises:\n"
    "    RuntimeError: if CUDA is out of memory.\n"
    "\"\"\"\n"
    "import torch\n"
    "\n"
    "def train(model, batches):\n"
    "    for batch in batches:\n"
    "        loss = model(batch)\n"
    "        if loss.isnan():\n"
    "            raise RuntimeError(\"CUDA error: an illegal memory access was encountered\")\n"
    "        loss.backward()\n"
    "    return model\n";

const std::string kPatch =
    "diff --git a/train.py b/train.py\n"
    "index 3f1c2aa..9b0d1e4 100644\n"
    "--- a/train.py\n"
    "+++ b/train.py\n"
    "@@ -10,7 +10,9 @@ def train(model):\n"
    "     for batch in batches:\n"
    "-        step(batch)\n"
    "+        try:\n"
    "+            step(batch)\n"
    "+        except RuntimeError:\n"
    "+            raise RuntimeError(\"NCCL error: unhandled system error\")\n"
    "     return model\n";

/// A page of the kind that explains messages, of so many sections.
std::string Page(int sections) {
  std::string page =
      "# Troubleshooting\n\nThis page lists the errors that users of the library have seen, and what to do about "
      "them.\n\n";
  for (int i = 0; i < sections; ++i) {
    const std::string number = std::to_string(i);
    page += "## Error " + number + "\n\nIf the program ends with the message number " + number +
            " below then the memory of the card is not enough for it.\n\n```\nRuntimeError: CUDA out of memory. Tried "
            "to allocate " +
            number + " GiB\n```\n\n- You can set a smaller batch in the " + number +
            ". part of the file that configures it.\n- It is also possible to use the option " + number +
            " of the launcher for this.\n\n";
  }
  return page + "## More\n\nSee the documentation of the launcher for a list of all the options that it has.\n";
}

const std::string kFailure =
    "[rank1]: Traceback (most recent call last):\n"
    "[rank1]:   File \"/srv/train.py\", line 88, in step\n"
    "[rank1]:     loss.backward()\n"
    "[rank1]: RuntimeError: CUDA error: an illegal memory access was encountered\n";

/// All headings and lists.
std::string Handbook() {
  std::string out = "# Troubleshooting training jobs\n\n";
  for (const char* what :
       {"Memory", "Time-outs", "Storage", "Network", "Drivers", "Containers", "Queues", "Accounts", "Limits"})
    out += std::string("## ") + what +
           "\n\n**Error:** `RuntimeError: CUDA error: out of memory`\n\n1. Smaller batch\n2. Larger "
           "card\n\n```bash\nscontrol show job\n```\n\n- **Fix:** `" +
           what + "`\n\n";
  return out;
}

std::string FormOf(const std::string& text) {
  const InputForm* form = FormOfText(text);
  return form == nullptr ? "" : std::string(form->name);
}

TEST_CASE("source, documents and data are no logs", "[writing]") {
  const std::pair<std::string, std::string> rows[] = {
      {kCpp, "source-code"},
      {kPython, "source-code"},
      {kPatch, "source-code"},
      {Page(6), "document"},
      {Handbook(), "document"},
      {"<!DOCTYPE html>\n<html>\n<body>\n<h1>Errors</h1>\n<p>If you see this message then the memory of the card is "
       "not enough.</p>\n<pre>\nRuntimeError: CUDA out of memory.\n</pre>\n"
       "<p>It helps to make the batch smaller, or to use more of the cards.</p>\n</body>\n</html>\n",
       "document"},
      {"{\"type\":\"OutOfMemoryError\"}\n", "data"},
      {"[\n {\"name\": \"oom\", \"pattern\": \"CUDA out of memory\"},\n {\"name\": \"ib\", \"pattern\": \"Got "
       "completion with error 12\"}\n]\n",
       "data"},
      {"rules:\n  - name: oom\n    pattern: \"CUDA out of memory\"\n  - name: xid\n    pattern: 'NVRM: Xid .*: 79,'\n",
       "data"},
  };
  for (const auto& [text, form] : rows) {
    CAPTURE(text);
    CHECK(FormOf(text) == form);
  }
}

TEST_CASE("what a program printed is a log, whatever it quotes", "[writing]") {
  std::string model;  // that speaks, in a log
  for (int i = 0; i < 40; ++i)
    model += "**Answer " + std::to_string(i) +
             ":** The memory of the card is used by the weights and by what is kept of the batch.\n- It is a list of "
             "the things that a model says in the step " +
             std::to_string(i) + ".\n";
  const std::string rows[] = {
      kFailure,
      // A job prints its script and goes on to run it.
      kPython + kFailure,
      "+ cat train.py\n" + kPython + "step 1 loss 2.5\nstep 2 loss 2.4\n" + kFailure,
      kPatch + kFailure,
      model + kFailure,
      "2031-04-05 06:07:08 begins\n" + Page(6),
      // Configurations and states.
      "model:\n  name: 'a'\n  path: 'b'\ntrain:\n  - 'x'\n" + kFailure,
      "CA 'mlx5_0'\n\tCA type: MT4123\n\tPort 1:\n\t\tState: Active\n",
      "apiVersion: v1\nkind: Pod\nstatus:\n  reason: 'OOMKilled'\n  message: 'x'\n  containers:\n  - 'a'\n",
      "{\"object\":\"error\",\"message\":\"CUDA out of memory\",\"type\":\"OutOfMemoryError\"}\n",
      "{\"timestamp\":\"2031-04-05T06:07:08Z\",\"text\":\"CUDA out of memory\"}\n",
      // A benchmark that explains itself, alone and between fences.
      kExplained,
      "```\n" + kExplained + "```\n",
      "",
  };
  for (const std::string& text : rows) {
    CAPTURE(text);
    CHECK(FormOf(text).empty());
  }
}

TEST_CASE("a failure that somebody pasted among his own words is a log", "[writing]") {
  const std::string asked =
      "Hi, I am training on two nodes and the job always dies after a while.\nIt works on a single node with the same "
      "data, so I think that it is the network.\n\n";
  const std::string rows[] = {
      asked + "```\n" + kFailure +
          "```\n\nIs there anything that I can do to find out what happens? Any help would be appreciated.\n",
      "### Describe the bug\n\nThe training of the model fails when it is started with more than one "
      "card.\n\n```python\n" +
          kPython + "```\n\n```\n" + kFailure + "```\n\n### Versions\n\n- torch 2.3\n- nccl 2.20\n",
      "Here is what my script looks like:\n\n" + kPython +
          "\nand this is what I get when I run it with four cards:\n\n" + kFailure,
      kFailure + "\nWhat does that mean?\n",
  };
  for (const std::string& text : rows) {
    CAPTURE(text);
    CHECK(FormOf(text).empty());
  }
}

}  // namespace writing_test
}  // namespace inquest
