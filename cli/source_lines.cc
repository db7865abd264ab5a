// Lines as their files have them: the inputs, read a second time.
#include "cli/source_lines.h"

#include <algorithm>
#include <set>

#include "parsers/source_reader.h"

namespace inquest {
namespace {

constexpr std::size_t kBlockBytes = 1 << 20, kLongestLine = 64 << 10;

/// The line round a place in a block; empty: it is too long to be one, or not as its file has it.
std::string_view LineRound(const Block& block, std::size_t at) {
  const std::string_view text = block.text;
  const std::size_t before = at == 0 ? std::string_view::npos : text.rfind('\n', at - 1);
  const std::size_t begin = before == std::string_view::npos ? 0 : before + 1;
  if (block.container || (begin == 0 && block.cut_head)) return {};
  std::string_view line = text.substr(begin, std::min(text.find('\n', at), text.size()) - begin);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line.size() > kLongestLine ? std::string_view() : line;
}

}  // namespace

std::vector<std::uint32_t> FilesOf(const std::vector<InputSummary>& inputs, const std::vector<Input>& files) {
  std::map<std::string_view, std::uint32_t> by_path;
  for (std::uint32_t i = 0; i < files.size(); ++i) by_path.emplace(files[i].path, i);
  std::vector<std::uint32_t> out;
  for (const InputSummary& input : inputs) {
    auto found = by_path.find(input.path);
    // `bundle.tar.zst:node07/dmesg.txt`; either part may hold colons.
    for (std::size_t colon = input.path.rfind(':'); found == by_path.end() && colon != std::string::npos && colon > 0;
         colon = input.path.rfind(':', colon - 1))
      found = by_path.find(std::string_view(input.path).substr(0, colon));
    out.push_back(found == by_path.end() ? static_cast<std::uint32_t>(files.size()) : found->second);
  }
  return out;
}

std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> LinesAt(const std::vector<InputSummary>& inputs,
                                                                       const std::vector<Input>& files,
                                                                       const std::vector<SourcePos>& places) {
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::string> lines;
  const std::vector<std::uint32_t> file_of = FilesOf(inputs, files);
  std::map<std::uint32_t, std::set<std::uint64_t>> wanted;
  std::set<std::uint32_t> wanted_files;
  for (const SourcePos& place : places) {
    if (place.input >= inputs.size() || file_of[place.input] >= files.size()) continue;
    wanted[place.input].insert(place.offset);
    wanted_files.insert(file_of[place.input]);
  }
  for (const std::uint32_t file : wanted_files) {
    if (files[file].path == "-") continue;
    // Inputs of one file come in the order in which they came.
    std::vector<std::uint32_t> of_file;
    for (std::uint32_t i = 0; i < inputs.size(); ++i)
      if (file_of[i] == file) of_file.push_back(i);
    std::size_t next = 0, sought = 0;
    for (const std::uint32_t of : of_file)
      if (const auto offsets = wanted.find(of); offsets != wanted.end()) sought += offsets->second.size();
    std::uint32_t input = 0;
    const std::vector<Input> one = {files[file]};
    SourceReader reader(one, kBlockBytes, nullptr);
    BlockBuffer buffer(kBlockBytes);
    while (sought > 0) {
      const Result<std::optional<Block>> read = reader.Next(buffer);
      if (!read || !*read) break;
      const Block& block = **read;
      if (block.first) {
        if (next == of_file.size() || inputs[of_file[next]].path != block.path) break;  // it changed
        input = of_file[next++];
      }
      const auto offsets = wanted.find(input);
      if (offsets == wanted.end()) continue;
      const std::uint64_t end = block.offset + block.text.size();
      for (auto at = offsets->second.lower_bound(block.offset); at != offsets->second.end() && *at < end;
           ++at, --sought)
        if (const std::string_view line = LineRound(block, *at - block.offset); !line.empty())
          lines.emplace(std::pair(input, *at), line);
    }
  }
  return lines;
}

}  // namespace inquest
