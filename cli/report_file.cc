// A report as a file: beside its place under another name, and moved there when it is whole.
#include "cli/report_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "parsers/scan.h"

namespace inquest {
namespace {

namespace fs = std::filesystem;

bool IsOurs(const ReportFile& file) {
  char head[1024] = {};
  std::ifstream(file.path, std::ios::binary).read(head, sizeof head - 1);
  return !file.mark.empty() && std::string_view(head).find(file.mark) != std::string_view::npos;
}

/// Bytes into an open file; remembers the first write that failed.
class Writing {
 public:
  explicit Writing(int file) : file_(file), error_(file < 0 ? errno : 0) {}
  Writing(const Writing&) = delete;
  Writing& operator=(const Writing&) = delete;
  ~Writing() { Close(); }

  int error() const { return error_; }
  void Write(std::string_view text) {
    while (error_ == 0 && !text.empty()) {
      const ssize_t written = ::write(file_, text.data(), text.size());
      if (written >= 0) {
        text.remove_prefix(static_cast<std::size_t>(written));
      } else if (errno != EINTR) {
        error_ = errno;
      }
    }
  }
  void Close() {
    if (file_ >= 0 && ::close(file_) != 0 && error_ == 0) error_ = errno;
    file_ = -1;
  }

 private:
  int file_, error_;
};

}  // namespace

std::optional<Error> CheckReportFile(const ReportFile& file, const std::vector<std::string>& inputs) {
  std::error_code absent;
  if (!fs::exists(file.path, absent)) return std::nullopt;
  if (fs::is_directory(file.path, absent))
    return Error{fmt::format("{} names a folder", file.option), "give the name of a file in it", file.path};
  if (!fs::is_regular_file(file.path, absent) || IsOurs(file)) return std::nullopt;  // a pipe would not answer
  const Result<std::vector<Input>> listed = ListInputs(inputs);
  if (!listed) return std::nullopt;  // the analysis says why
  for (const Input& input : *listed)
    if (fs::equivalent(input.path, file.path, absent))
      return Error{"the report would overwrite one of the inputs",
                   fmt::format("give {} a name of its own", file.option), file.path};
  return std::nullopt;
}

std::optional<Error> WriteReportFile(const ReportFile& file, const std::function<void(const Sink&)>& print) {
  struct stat before = {};
  const bool is_there = ::stat(file.path.c_str(), &before) == 0;
  const bool in_place = is_there && !S_ISREG(before.st_mode);
  std::error_code unknown;
  const fs::path place =
      is_there && !in_place ? fs::canonical(file.path, unknown) : fs::path(file.path);  // behind a link
  const std::string part = in_place ? place.string() : fmt::format("{}.part-{}", place.string(), ::getpid());
  constexpr mode_t kMode = 0666;
  Writing writing(in_place ? ::open(part.c_str(), O_WRONLY | O_CLOEXEC)
                           : ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kMode));
  int error = writing.error();
  if (error == 0) {
    print([&](std::string_view piece) { writing.Write(piece); });
    writing.Close();
    error = writing.error();
    if (!in_place) {
      constexpr mode_t kRights = 07777;
      if (error == 0 && is_there && ::chmod(part.c_str(), before.st_mode & kRights) != 0) error = errno;
      if (error == 0 && ::rename(part.c_str(), place.c_str()) != 0) error = errno;
      if (error != 0) ::unlink(part.c_str());
    }
  }
  if (error == 0) return std::nullopt;
  return Error{
      std::strerror(error),
      fmt::format("the report of {} was not written; its folder must be there, and you must be allowed to write to it",
                  file.option),
      file.path};
}

}  // namespace inquest
