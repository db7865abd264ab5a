// A Jupyter notebook: the text that its outputs become, however it arrives, the lines that it cites, and what is none.
#include "parsers/notebook.h"

#include <algorithm>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/support/read_through.h"

namespace inquest {
namespace notebook_test {

struct Read {
  std::string text, problem;
  std::uint64_t claimed = 0;
  std::vector<Removed::Lines> removed;
  /// The line of the file that line `number` of the text stands in, both from 1.
  std::uint64_t FileLine(std::uint64_t number) const {
    std::uint64_t line = number;
    for (const Removed::Lines& lines : removed) line += lines.line < number ? lines.count : 0;
    return line;
  }
};

Read ReadAll(std::string_view bytes, std::size_t head, std::size_t room) {
  Read read;
  read.text = ReadThrough<NotebookReader>(bytes, head, room, [&](NotebookReader& reader) {
    const Removed removed = reader.TakeRemoved();
    read.claimed += removed.claimed;
    for (const Removed::Lines& lines : removed.lines) {
      if (read.removed.empty() || read.removed.back().line != lines.line) read.removed.push_back({lines.line, 0});
      read.removed.back().count += lines.count;
    }
    read.problem = reader.problem();
  });
  return read;
}

std::uint64_t Ends(std::string_view text) {
  return static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n'));
}

/// However it arrives; every byte and line of the file is in the text or removed.
Read ReadEveryWay(std::string_view bytes) {
  const Read whole = ReadAll(bytes, bytes.size(), bytes.size() + 1);
  std::uint64_t removed = 0;
  for (const Removed::Lines& lines : whole.removed) removed += lines.count;
  CHECK(whole.text.size() + whole.claimed == bytes.size());
  CHECK(Ends(whole.text) + removed == Ends(bytes));
  for (const std::size_t head : {std::size_t{0}, std::size_t{1}, bytes.size() / 2, bytes.size() - 1})
    for (const std::size_t room : {std::size_t{1}, std::size_t{7}, std::size_t{4096}}) {
      const Read again = ReadAll(bytes, head, room);
      CHECK(again.text == whole.text);
      CHECK(again.claimed == whole.claimed);
      CHECK(again.problem == whole.problem);
      for (std::uint64_t line = 1; line <= Ends(whole.text); ++line)
        CHECK(again.FileLine(line) == whole.FileLine(line));
    }
  return whole;
}

const std::string kNotebook = R"JSON({
 "cells": [
  {
   "cell_type": "markdown",
   "source": ["RuntimeError: quoted\n"]
  },
  {
   "cell_type": "code",
   "execution_count": 9,
   "outputs": [
    {
     "name": "stdout",
     "output_type": "stream",
     "text": [
      "step 1 \"loss\" 2.5\n",
      "\r 10%\r 20%\n",
      "caf\u00e9 \ud83d\ude00 C:\\tmp"
     ]
    },
    {
     "data": {
      "image/png": "iVBORw0KGgo=",
      "text/html": ["<b>2</b>"],
      "text/plain": "2"
     },
     "output_type": "execute_result"
    }
   ],
   "source": ["print('Traceback')\n"]
  },
  {
   "cell_type": "code",
   "execution_count": 2,
   "outputs": [
    {
     "ename": "ValueError",
     "evalue": "bad shape",
     "output_type": "error",
     "traceback": [
      "Traceback (most recent call last)",
      "Cell In[2], line 1\n----> 1 f()\n",
      "ValueError: bad shape"
     ]
    },
    {
     "ename": "KeyError",
     "evalue": "'x'",
     "output_type": "error",
     "traceback": []
    }
   ],
   "source": []
  }
 ],
 "metadata": {"text": "no output"},
 "nbformat": 4,
 "nbformat_minor": 5
}
)JSON";

TEST_CASE("a notebook is read by what its cells printed, each line where it stands", "[notebook]") {
  const Read read = ReadEveryWay(kNotebook);
  CHECK(read.text ==
        "step 1 \"loss\" 2.5\n\r 10%\r 20%\ncaf\xc3\xa9 \xf0\x9f\x98\x80 C:\\tmp\n2\n"
        "Traceback (most recent call last)\nCell In[2], line 1\r----> 1 f()\nValueError: bad shape\nKeyError: 'x'\n");
  CHECK(read.problem.empty());
  std::vector<std::string> file;
  for (std::size_t at = 0; at < kNotebook.size(); at = kNotebook.find('\n', at) + 1)
    file.push_back(kNotebook.substr(at, kNotebook.find('\n', at) - at));
  const std::pair<std::uint64_t, std::string> rows[] = {{1, "step 1"},
                                                        {2, "10%"},
                                                        {3, "caf"},
                                                        {4, "\"text/plain\": \"2\""},
                                                        {5, "\"Traceback"},
                                                        {6, "Cell In"},
                                                        {7, "\"ValueError: bad"},
                                                        {8, "\"evalue\": \"'x'\""}};
  for (const auto& [line, text] : rows) {
    CAPTURE(line, text);
    CHECK(file[read.FileLine(line) - 1].find(text) != std::string::npos);
  }
}

TEST_CASE("a notebook in one line, and one of the third format", "[notebook]") {
  std::string minified = kNotebook;
  std::erase(minified, '\n');
  CHECK(ReadEveryWay(minified).text ==
        "step 1 \"loss\" 2.5\r\r 10%\r 20%\rcaf\xc3\xa9 \xf0\x9f\x98\x80 C:\\tmp\r2\r"
        "Traceback (most recent call last)\rCell In[2], line 1\r----> 1 f()\rValueError: bad shape\rKeyError: 'x'");
  CHECK(
      ReadEveryWay(
          "{\"nbformat\": 3, \"worksheets\": [{\"cells\": [{\"cell_type\": \"code\", \"input\": \"x\", \"outputs\": [\n"
          "{\"output_type\": \"stream\", \"stream\": \"stderr\", \"text\": \"one\\ntwo\\n\"}]}]}]}\n")
          .text == "one\rtwo\n");
}

TEST_CASE("a torn or broken notebook is read as far as it goes, and as text behind", "[notebook]") {
  CHECK(ReadEveryWay(kNotebook.substr(0, kNotebook.find("20%"))).problem == "cut: its JSON does not end");
  const std::string merged =
      std::string(kNotebook).replace(kNotebook.find("     \"output_type\": \"error\""), 0, "<<<<<<< HEAD\n");
  const Read read = ReadEveryWay(merged);
  CHECK(read.text.find("<<<<<<< HEAD\n     \"output_type\": \"error\"") != std::string::npos);
  CHECK(read.text.find("ValueError: bad shape\n<<<<") != std::string::npos);
  CHECK_FALSE(read.problem.empty());
  ReadEveryWay("{\"nbformat\": 4, \"cells\": [{\"outputs\": [{\"text\": [\"one\n two\n");
  ReadEveryWay("{\"nbformat\": 4, \"cells\": [{\"outputs\": [{\"text\": [\"\\u12\\ud800x\\q\"]}}}}\n");
  ReadEveryWay("{\"nbformat\": 4, \"cells\": [{\"outputs\": [{\"text\": [\"one\\\n\", \"two\"]}]}]}");
  ReadEveryWay("{\"cells\":" + std::string(5000, '[') + "\n");
  for (std::size_t size = 1; size < kNotebook.size(); size += 3) {
    const Read cut = ReadAll(kNotebook.substr(0, size), size / 2, 5);
    CHECK(cut.text.size() + cut.claimed == size);
  }
}

TEST_CASE("a notebook is known by what is in it", "[notebook]") {
  const std::pair<std::string, bool> rows[] = {
      {kNotebook, true},
      {"\xef\xbb\xbf\n{\"metadata\": {\"a\": [1, 2.5e3, true, null]}, \"nbformat\": 4, \"cells\": []}", true},
      {"{\"cells\": [{\"metadata\": {}, \"cell_type\": \"code\"", true},
      {"{\"cells\": [{\"name\": \"a\"}]}", false},
      {"{\"metadata\": {\"nbformat\": 4}}", false},
      {"{\"log\": \"x\", \"time\": \"2031\"}\n{\"nbformat\": 4}\n", false},
      {"[\"nbformat\"]", false},
      {"nbformat: {\"nbformat\": 4}", false},
      {"", false},
  };
  for (const auto& [text, is_one] : rows) {
    CAPTURE(text);
    CHECK(IsNotebook(text) == is_one);
  }
}

}  // namespace notebook_test
}  // namespace inquest
