// A line of a log as a collector exports it: an object a line, with the text under one of its keys.
// Format:  fluent-bit, fluentd, Vector, Loki (`logcli -o jsonl`), Google Cloud Logging, CloudWatch, Elasticsearch hits:
//          `{"log":"text\n","kubernetes":{"pod_name":"trainer-0","host":"node07"},"time":"2031-04-05T06:07:08Z"}`.
// Clock:   the collector's.        Not read: docker's json-file (docker_line.h), journald's (formats/journal_line.h).
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace inquest {

/// What is known of a line that something else handed on. All of it as it was printed; empty: not known.
struct RestoredHead {
  std::string host, time, writer;
  bool empty() const { return host.empty() && time.empty() && writer.empty(); }
};

/// One per thread: it owns the parser's memory.
class ExportedLines {
 public:
  ExportedLines();
  ~ExportedLines();
  ExportedLines(ExportedLines&&) noexcept;
  ExportedLines& operator=(ExportedLines&&) noexcept;
  struct Line {
    std::string text;  ///< may hold several lines
    RestoredHead head;
  };
  /// nullopt: it is no object with a text, or says nothing of a collector: data has texts too.
  std::optional<Line> Read(std::string_view line);
  /// Whether it is an object of data: a conversation, a prompt, a pair of texts, and nothing that says when.
  bool IsData(std::string_view line);
  /// The text of `"message": "text",`, as a line of an array that was written over many; nullopt: another line.
  std::optional<std::string> ReadMember(std::string_view line);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace inquest
