// The files that the user of `inquest collect` names, and what they are called in the bundle.
#include "collect/files.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace inquest {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostFiles = 20'000;

std::string_view KindOf(const fs::file_status& status) {
  switch (status.type()) {
    case fs::file_type::fifo:
      return "a named pipe";
    case fs::file_type::socket:
      return "a socket";
    case fs::file_type::block:
    case fs::file_type::character:
      return "a device";
    case fs::file_type::symlink:
    case fs::file_type::not_found:
      return "a link to nothing";
    default:
      return "not a plain file";
  }
}

bool IsInside(const fs::path& path, const fs::path& folder) {
  return std::mismatch(folder.begin(), folder.end(), path.begin(), path.end()).first == folder.end();
}

/// Of an entry below `folder`, whose own path without links is `home`.
std::string WhyNot(const fs::directory_entry& entry, const fs::path& home) {
  std::error_code error;
  const fs::file_status status = entry.status(error);
  if (!fs::is_regular_file(status)) return std::string(KindOf(status));
  if (!entry.is_symlink(error)) return "";
  const fs::path target = fs::canonical(entry.path(), error);
  if (!error && IsInside(target, home)) return "";
  return "a link that leaves the folder; name its target to have it";
}

std::optional<Error> AddFolder(const std::string& folder, std::vector<NamedFile>& files) {
  std::error_code error;
  const fs::path home = fs::canonical(folder, error);
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
  if (error) return Error{error.message(), "check the path", folder};
  for (; it != end && !error; it.increment(error)) {
    std::error_code ignored;
    if (it->path().filename().string().starts_with('.')) {
      if (it->is_directory(ignored)) it.disable_recursion_pending();
      continue;
    }
    if (it->is_directory(ignored) && !it->is_symlink(ignored)) continue;
    if (it->is_directory(ignored)) {
      files.push_back({it->path().string(), "a link to a folder; name its target to have it"});
      continue;
    }
    files.push_back({it->path().string(), WhyNot(*it, home)});
    if (files.size() > kMostFiles) return Error{"more than 20000 files", "name the folders of one job", folder};
  }
  return std::nullopt;
}

}  // namespace

Result<std::vector<NamedFile>> FilesToCopy(const std::vector<std::string>& paths) {
  std::vector<NamedFile> files;
  for (const std::string& path : paths) {
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) return Error{error ? error.message() : "there is no such file", "check the path", path};
    if (fs::is_directory(status)) {
      if (auto problem = AddFolder(path, files)) return *problem;
    } else {
      files.push_back({path, fs::is_regular_file(status) ? "" : std::string(KindOf(status))});
    }
  }
  std::sort(files.begin(), files.end(), [](const NamedFile& a, const NamedFile& b) { return a.path < b.path; });
  files.erase(
      std::unique(files.begin(), files.end(), [](const NamedFile& a, const NamedFile& b) { return a.path == b.path; }),
      files.end());
  return files;
}

std::string NameInBundle(const std::string& path) {
  std::string name;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    std::string part = path.substr(at, end - at);
    at = end + 1;
    if (part.empty() || part == "." || part == "..") continue;
    if (part.front() == '.') part.front() = '_';
    const auto odd = [](unsigned char c) { return c < ' ' || c == 0x7f || c == '\\'; };
    std::replace_if(part.begin(), part.end(), odd, '_');
    name += (name.empty() ? "" : "/") + part;
  }
  return name.empty() ? "unnamed" : name;
}

}  // namespace inquest
