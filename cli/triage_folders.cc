// Which jobs there are in folders.
#include "cli/triage_folders.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <set>

#include "parsers/scan.h"
#include "timeline/input_name.h"

namespace inquest {
namespace {

namespace fs = std::filesystem;

/// What files of one job share of their names.
std::string KeyOf(const std::string& path) {
  constexpr std::string_view kErrors = ".err";
  if (const auto file = BatchFileOf(path))
    return std::string(file->family).append(file->id).append("_").append(file->task);
  return path.ends_with(kErrors) ? path.substr(0, path.size() - kErrors.size()) + ".out" : path;
}

using Jobs = std::map<std::string, std::vector<std::string>>;

struct Folder {
  std::vector<std::string> folders, files;
};

bool HoldsFiles(const std::string& folder) { return ListInputs({folder}).has_value(); }

Result<Folder> Look(const std::string& path) {
  Folder out;
  std::error_code error;
  for (fs::directory_iterator entry(path, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code unknown;
    const std::string name = entry->path().filename().string();
    if (name.starts_with('.')) continue;
    if (entry->is_directory(unknown)) {
      if (HoldsFiles(entry->path().string())) out.folders.push_back(entry->path().string());
    } else if (entry->is_regular_file(unknown)) {
      out.files.push_back(entry->path().string());
    }
  }
  if (error) return Error{error.message(), "give a folder that you may read", path};
  return out;
}

bool AreOfSeveralBatchJobs(const std::vector<std::string>& files) {
  std::set<std::string> keys;
  for (const std::string& file : files)
    if (BatchFileOf(file)) keys.insert(KeyOf(file));
  return keys.size() > 1;
}

/// `runs/` and `runs` are one folder.
std::string WithoutSlash(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

std::optional<Error> AddFolder(const std::string& path, Jobs& jobs) {
  const Result<Folder> looked = Look(path);
  if (!looked) return looked.error();
  const auto& [folders, files] = *looked;
  if (folders.empty() && !files.empty() && !AreOfSeveralBatchJobs(files)) {
    jobs[path] = {path};
    return std::nullopt;
  }
  for (const std::string& folder : folders) jobs[folder] = {folder};
  for (const std::string& file : files) jobs[KeyOf(file)].push_back(file);
  return std::nullopt;
}

}  // namespace

Result<std::vector<JobInputs>> FindJobs(const std::vector<std::string>& paths) {
  Jobs jobs;
  for (const std::string& given : paths) {
    const std::string path = WithoutSlash(given);
    std::error_code error;
    const fs::file_status status = fs::status(path, error);
    if (!fs::exists(status)) return Error{error ? error.message() : std::strerror(ENOENT), "", path};
    if (!fs::is_directory(status))
      jobs[KeyOf(path)].push_back(path);
    else if (auto failed = AddFolder(path, jobs))
      return *std::move(failed);
  }
  if (jobs.empty())
    return Error{"there is no file in it", "give the folder that holds the folders of the jobs, or their logs",
                 paths.front()};
  const std::string front = paths.size() == 1 ? WithoutSlash(paths.front()) + "/" : std::string();
  std::vector<JobInputs> out;
  for (auto& [key, files] : jobs) {
    std::ranges::sort(files);
    files.erase(std::unique(files.begin(), files.end()), files.end());
    // Of output and errors, the output's name.
    std::string name = std::ranges::find(files, key) != files.end() ? key : files.back();
    if (!front.empty() && name.starts_with(front)) name.erase(0, front.size());
    out.push_back({std::move(name), std::move(files)});
  }
  std::ranges::sort(out, {}, &JobInputs::name);
  return out;
}

}  // namespace inquest
