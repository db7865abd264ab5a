// Files that hold what one program wrote, its output in one and its errors in the other.
#include "timeline/streams.h"

#include <array>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "core/ascii.h"

namespace inquest {
namespace {

enum class Stream : std::uint8_t { kOutput, kErrors };

struct Named {
  std::string common;  ///< the name without the word that says which stream it is
  Stream stream;
};

/// The last word of the path that says it. Batch systems put the job's number behind a letter.
std::optional<Named> ReadName(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, Stream>, 7> kWords = {{{"stdout", Stream::kOutput},
                                                                          {"output", Stream::kOutput},
                                                                          {"out", Stream::kOutput},
                                                                          {"log", Stream::kOutput},
                                                                          {"stderr", Stream::kErrors},
                                                                          {"error", Stream::kErrors},
                                                                          {"err", Stream::kErrors}}};
  for (std::size_t end = path.size(); end > 0; --end) {
    if (!IsLetter(path[end - 1]) || (end < path.size() && IsLetter(path[end]))) continue;
    std::size_t begin = end;
    while (begin > 0 && IsLetter(path[begin - 1])) --begin;
    const std::string_view word = path.substr(begin, end - begin);
    const auto without = [&](Stream stream) {
      return Named{std::string(path.substr(0, begin)) + "*" + std::string(path.substr(end)), stream};
    };
    const bool numbered = end < path.size() && IsDigit(path[end]) && begin > 0 && path[begin - 1] == '.';
    if (numbered && word == "o") return without(Stream::kOutput);
    if (numbered && word == "e") return without(Stream::kErrors);
    // `stderr.log` is not the output, but `train.log` is, beside `train.err`.
    const bool is_ending = word == "log" && end == path.size();
    for (const auto& [known, stream] : kWords) {
      if (word != known) continue;
      if (is_ending)
        if (auto inner = ReadName(path.substr(0, begin - (begin > 0 ? 1 : 0)))) {
          inner->common += path.substr(begin - 1);
          return inner;
        }
      return without(stream);
    }
  }
  return std::nullopt;
}

}  // namespace

std::vector<std::uint32_t> OtherStreams(const std::vector<InputSummary>& inputs) {
  std::vector<std::uint32_t> other(inputs.size());
  std::map<std::string, std::map<Stream, std::vector<std::uint32_t>>> by_name;
  for (std::uint32_t i = 0; i < inputs.size(); ++i) {
    other[i] = i;
    if (auto named = ReadName(inputs[i].path)) by_name[std::move(named->common)][named->stream].push_back(i);
  }
  for (auto& [common, streams] : by_name) {
    const auto &outputs = streams[Stream::kOutput], &errors = streams[Stream::kErrors];
    if (outputs.size() != 1 || errors.size() != 1) continue;
    other[outputs.front()] = errors.front();
    other[errors.front()] = outputs.front();
  }
  return other;
}

}  // namespace inquest
