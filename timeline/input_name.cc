// What the name of an input says of the job that wrote it.
#include "timeline/input_name.h"

#include <algorithm>

#include "core/ascii.h"

namespace inquest {
namespace {

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

namespace {

/// `88123[4].pbs01.OU`
std::optional<BatchFile> SpooledOf(std::string_view base) {
  const bool spooled = base.ends_with(".OU") || base.ends_with(".ER");
  BatchFile file{.family = {}, .id = DigitsAt(base, 0), .task = {}, .system = BatchFile::System::kPbs};
  if (!spooled || file.id.empty()) return std::nullopt;
  std::size_t end = file.id.size();
  if (base[end] == '[') {
    file.task = DigitsAt(base, end + 1);
    end += file.task.size() + 2;
    if (file.task.empty() || end > base.size() || base[end - 1] != ']') return std::nullopt;
  }
  constexpr std::size_t kSuffix = 3;  // and a server is named between the points
  return end + kSuffix < base.size() && base[end] == '.' ? std::optional(file) : std::nullopt;
}

/// A day, or a moment, as names of files have them: 20310405, 20310405060708.
bool IsDate(std::string_view digits) {
  constexpr std::size_t kDay = 8, kMoment = 12;
  constexpr int kLastYears = 50;  // behind 20; what counts on to there is no date
  const auto part = [&](std::size_t at) { return 10 * (digits[at] - '0') + (digits[at + 1] - '0'); };
  const auto is_year = [&] { return part(0) == 19 || (part(0) == 20 && part(2) < kLastYears); };
  return digits.size() >= kMoment ||
         (digits.size() == kDay && is_year() && part(4) >= 1 && part(4) <= 12 && part(6) >= 1 && part(6) <= 31);
}

}  // namespace

std::optional<BatchFile> BatchFileOf(std::string_view path) {
  constexpr std::size_t kDigitsOfAnId = 4;  // fewer behind .o and .e number other things
  constexpr std::string_view kSlurm = "slurm-";
  const std::string_view base = BaseOf(path);
  const std::size_t front = path.size() - base.size();
  if (auto spooled = SpooledOf(base)) {
    spooled->family = path.substr(0, front);
    return spooled;
  }
  BatchFile file;
  std::size_t begin = base.find(kSlurm);
  if (begin != std::string_view::npos) {
    begin += kSlurm.size();
    file.system = BatchFile::System::kSlurm;
    file.family = path.substr(0, front + begin);
  }
  for (const std::string_view kind : {".o", ".e"})
    if (const std::size_t at = base.rfind(kind);
        at != std::string_view::npos && at + 2 < base.size() && IsDigit(base[at + 2])) {
      begin = at + 2;
      file.system = BatchFile::System::kAlike;
      file.family = path.substr(0, front + begin - 1);
    }
  if (begin == std::string_view::npos) return std::nullopt;
  file.id = DigitsAt(base, begin);
  const std::size_t end = begin + file.id.size();
  const bool slurm = file.system == BatchFile::System::kSlurm;
  if (file.id.empty() || (!slurm && file.id.size() < kDigitsOfAnId)) return std::nullopt;
  const std::string_view rest = base.substr(end);
  // Of an array: Slurm's _4, PBS's and Grid Engine's .4, Torque's -4.
  const std::string_view task = DigitsAt(base, end + 1);
  if (rest.starts_with('_') || (!slurm && rest.size() == task.size() + 1 && (rest[0] == '.' || rest[0] == '-')))
    file.task = task;
  else if (rest.starts_with('-') && rest.size() > 1 && IsDigit(rest[1]))
    return std::nullopt;  // a date
  return file;
}

namespace {

/// Of a name with an ending of three letters.
std::optional<BatchFile> NumberedFileOf(std::string_view path) {
  constexpr std::size_t kDigitsOfAnId = 5;  // fewer number ranks and steps
  const std::string_view base = BaseOf(path);
  const std::string_view stem = base.substr(0, base.size() - 4);
  const auto begin_of_digits = [](std::string_view text) { return text.find_last_not_of("0123456789") + 1; };
  std::size_t begin = begin_of_digits(stem);
  BatchFile file{.family = {}, .id = stem.substr(begin), .task = {}, .system = BatchFile::System::kAlike};
  if (const std::size_t bar = begin == 0 ? 0 : begin - 1; bar > 0 && stem[bar] == '_') {
    const std::string_view front = stem.substr(0, bar);  // 88123_4, and not v2_88123
    if (const std::size_t of_front = begin_of_digits(front); bar - of_front >= kDigitsOfAnId) {
      begin = of_front;
      file.task = file.id;
      file.id = front.substr(begin);
    }
  }
  const bool apart = begin == 0 || std::string_view("-_.").find(stem[begin - 1]) != std::string_view::npos;
  if (!apart || file.id.size() < kDigitsOfAnId || file.id[0] == '0' || IsDate(file.id) || IsDate(file.task))
    return std::nullopt;
  if (begin > 1 && IsDigit(stem[begin - 2])) {
    const std::size_t other = begin_of_digits(stem.substr(0, begin - 1));
    const bool of_word = other > 0 && ((stem[other - 1] >= 'a' && stem[other - 1] <= 'z') ||
                                       (stem[other - 1] >= 'A' && stem[other - 1] <= 'Z'));
    if (!of_word) return std::nullopt;  // one of several numbers
  }
  file.family = path.substr(0, path.size() - base.size() + begin);
  return file;
}

}  // namespace

std::optional<BatchFile> LikelyBatchFileOf(std::string_view path) {
  return path.ends_with(".out") || path.ends_with(".err") ? NumberedFileOf(path) : std::nullopt;
}

std::optional<BatchFile> BatchLogOf(std::string_view path) {
  return path.ends_with(".log") ? NumberedFileOf(path) : std::nullopt;
}

std::optional<std::string_view> RaySubmissionOf(std::string_view path) {
  constexpr std::string_view kWord = "raysubmit_";
  constexpr std::size_t kLeast = 8;
  const std::size_t at = path.rfind(kWord);
  if (at == std::string_view::npos) return std::nullopt;
  const auto is_of_id = [](char c) { return IsDigit(c) || IsLetter(c); };
  std::size_t end = at + kWord.size();
  while (end < path.size() && is_of_id(path[end])) ++end;
  return end - at >= kWord.size() + kLeast ? std::optional(path.substr(at, end - at)) : std::nullopt;
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
