// What the name of an input says of the job that wrote it.
#include "timeline/input_name.h"

#include <algorithm>

namespace inquest {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

std::string_view DigitsAt(std::string_view text, std::size_t at) {
  const std::string_view rest = text.substr(std::min(at, text.size()));
  return rest.substr(0, std::min(rest.find_first_not_of("0123456789"), rest.size()));
}

/// The part between slashes that begins behind `folder`.
std::string_view PartBehind(std::string_view path, std::string_view folder) {
  const std::size_t at = path.rfind(folder);
  if (at == std::string_view::npos || (at > 0 && path[at - 1] != '/')) return {};
  const std::string_view rest = path.substr(at + folder.size());
  return rest.substr(0, rest.find('/'));
}

}  // namespace

std::string_view BaseOf(std::string_view path) { return path.substr(path.rfind('/') + 1); }

std::optional<BatchFile> BatchFileOf(std::string_view path) {
  constexpr std::size_t kDigitsOfAnId = 4;  // fewer behind .o and .e number other things
  constexpr std::string_view kSlurm = "slurm-";
  const std::string_view base = BaseOf(path);
  const std::size_t front = path.size() - base.size();
  BatchFile file;
  std::size_t begin = base.find(kSlurm);
  if (begin != std::string_view::npos) {
    begin += kSlurm.size();
    file.slurm = true;
    file.family = path.substr(0, front + begin);
  }
  for (const std::string_view kind : {".o", ".e"})
    if (const std::size_t at = base.rfind(kind);
        at != std::string_view::npos && at + 2 < base.size() && IsDigit(base[at + 2])) {
      begin = at + 2;
      file.slurm = false;
      file.family = path.substr(0, front + begin - 1);
    }
  if (begin == std::string_view::npos) return std::nullopt;
  file.id = DigitsAt(base, begin);
  const std::size_t end = begin + file.id.size();
  if (file.id.empty() || (!file.slurm && file.id.size() < kDigitsOfAnId)) return std::nullopt;
  const std::string_view rest = base.substr(end);
  if (rest.starts_with('_')) file.task = DigitsAt(base, end + 1);
  if (rest.starts_with('-') && rest.size() > 1 && IsDigit(rest[1])) return std::nullopt;  // a date
  return file;
}

std::optional<std::string_view> PodOfPath(std::string_view path) {
  std::string_view name = PartBehind(path, "pods/");
  if (const std::size_t first = name.find('_'), last = name.rfind('_'); first != last)
    return name.substr(first + 1, last - first - 1);
  name = PartBehind(path, "containers/");
  const std::size_t first = name.find('_'), last = name.rfind('_');
  if (first == 0 || first == last || !name.ends_with(".log")) return std::nullopt;
  return name.substr(0, first);
}

}  // namespace inquest
