// elastic_error_file.cc: error.json, which a worker under torchrun's @record leaves when it dies of an exception.
// Format:  one JSON object a file (torch/distributed/elastic/multiprocessing/errors/error_handler.py)
//            {"message": {"message": "RuntimeError: ...", "extraInfo": {"py_callstack": "...", "timestamp":
//            "1932904028"}, "errorCode": 1}}
// Clock:   epoch seconds, UTC.        Not read: whose file it is; its folder (attempt_<n>/<local_rank>/) says so.
#include <simdjson.h>

#include <charconv>
#include <string>
#include <utility>
#include <vector>

#include "parsers/formats.h"
#include "parsers/formats/exit_status.h"
#include "parsers/formats/messages.h"

namespace inquest {

extern const Format kTraceback;  // reads what the file quotes
namespace {

using Json = simdjson::dom::element;

std::optional<std::string_view> TextIn(const Json& json, const char* key) {
  std::string_view text;
  if (json[key].get(text) != simdjson::SUCCESS) return std::nullopt;
  return text;
}

// A string of epoch seconds, or a number in files of other writers.
std::optional<Timestamp> TimeAt(const Json& json) {
  std::int64_t seconds = 0;
  if (const auto text = TextIn(json, "timestamp")) {
    if (std::from_chars(text->data(), text->data() + text->size(), seconds).ec != std::errc()) return std::nullopt;
  } else if (json["timestamp"].get(seconds) != simdjson::SUCCESS) {
    return std::nullopt;
  }
  constexpr std::int64_t kLatest = 4102444800;  // 2100: beyond it are milliseconds or nonsense
  if (seconds <= 0 || seconds > kLatest) return std::nullopt;
  Timestamp time;
  time.at = std::chrono::sys_seconds(std::chrono::seconds(seconds));
  time.zone_known = true;
  return time;
}

class ExceptionSink final : public EventSink {
 public:
  void Add(Event event) override {
    if (auto* raised = std::get_if<ExceptionRaised>(&event.what)) found.push_back(std::move(*raised));
  }
  void AddCalls(const CallBatch&, std::size_t, std::size_t, const SourcePos&) override {}
  std::vector<ExceptionRaised> found;
};

std::vector<ExceptionRaised> ReadCallStack(std::string_view stack, const SourcePos& where) {
  ExceptionSink sink;
  const auto parser = kTraceback.make();
  while (!stack.empty()) {
    const std::size_t end = std::min(stack.find('\n'), stack.size());
    parser->Consume(Record{.text = stack.substr(0, end), .origin = {}, .at = {}, .where = where}, sink);
    stack.remove_prefix(std::min(end + 1, stack.size()));
  }
  parser->Finish(sink);
  return std::move(sink.found);
}

// The call stack of an exception that has none of its own in it is the stack alone.
std::vector<ExceptionRaised> ReadExceptions(const Json& message, std::string_view text, const SourcePos& where) {
  std::vector<ExceptionRaised> raised;
  Json info;
  if (message["extraInfo"].get(info) == simdjson::SUCCESS) {
    if (const auto stack = TextIn(info, "py_callstack")) raised = ReadCallStack(*stack, where);
  }
  if (!raised.empty()) return raised;
  const std::string_view first = text.substr(0, text.find('\n'));
  const auto line = ReadExceptionLine(first);
  ExceptionRaised alone{.type = std::string(line ? line->type : std::string_view()),
                        .message = std::string(line ? line->message : first),
                        .frame = {},
                        .stack = {},
                        .chained_first = false,
                        .begin = where};
  raised.push_back(std::move(alone));
  return raised;
}

class ElasticErrorFileParser final : public Parser {
  bool Consume(const Record& record, EventSink& out) override {
    if (record.text.find("\"message\"") == std::string_view::npos) return false;
    simdjson::dom::parser parser;
    const simdjson::padded_string padded(record.text);
    Json root, message;
    // One object in the file and nothing behind it: a log of JSON lines is not ours, and a cut file is not JSON.
    if (parser.parse(padded).get(root) != simdjson::SUCCESS) return false;
    if (root["message"].get(message) != simdjson::SUCCESS) return false;
    // The message is an object, or a plain string where the parent wrote the file itself.
    const bool plain = message.is_string();
    const Json& holder = plain ? root : message;
    const auto text = TextIn(holder, "message");
    if (!text || !IsOurs(holder)) return false;
    AddEvents(record, holder, *text, out);
    return true;
  }

  static bool IsOurs(const Json& holder) {
    return holder["extraInfo"].error() == simdjson::SUCCESS || holder["errorCode"].error() == simdjson::SUCCESS;
  }

  static void AddEvents(const Record& record, const Json& holder, std::string_view text, EventSink& out) {
    Json info;
    std::optional<Timestamp> at;
    if (holder["extraInfo"].get(info) == simdjson::SUCCESS) at = TimeAt(info);
    // Cited is the message, not the JSON around it.
    Record cited{.text = text.substr(0, text.find('\n')),
                 .origin = record.origin,
                 .at = at ? at : record.at,
                 .where = record.where};
    for (ExceptionRaised& raised : ReadExceptions(holder, text, record.where))
      out.Add(EventFrom(cited, std::move(raised)));
    std::int64_t code = 0;
    if (holder["errorCode"].get(code) == simdjson::SUCCESS)
      out.Add(EventFrom(cited, ExitWithCode(code, Reporter::kTorchelastic)));
  }
};

constexpr std::string_view kElasticErrorFileMarks[] = {"\"py_callstack\"", "\"errorCode\""};

}  // namespace

extern const Format kElasticErrorFile{.name = "torchelastic-error-file",
                                      .framing = Framing::kDocument,
                                      .component = Component::kElastic,
                                      .marks = kElasticErrorFileMarks,
                                      .make = &Make<ElasticErrorFileParser>};

}  // namespace inquest
