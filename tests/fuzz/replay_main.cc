// Runs a fuzz target over files and folders, so that any compiler can test it without libFuzzer.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  namespace fs = std::filesystem;
  std::vector<fs::path> paths;
  for (int i = 1; i < argc; ++i) {
    std::error_code error;
    if (!fs::is_directory(argv[i], error)) {
      paths.emplace_back(argv[i]);
      continue;
    }
    for (const auto& entry : fs::recursive_directory_iterator(argv[i], error)) {
      if (entry.is_regular_file(error)) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  if (paths.empty()) {
    std::fprintf(stderr, "%s: no seeds; name files or folders\n", argv[0]);
    return 1;
  }
  for (const fs::path& path : paths) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
      std::fprintf(stderr, "%s: cannot be read\n", path.c_str());
      return 1;
    }
    const std::string content{std::istreambuf_iterator<char>(file), {}};
    std::fprintf(stderr, "%s\n", path.c_str());
    // Whole, and cut in the middle: most seeds end well.
    for (const std::size_t size : {content.size(), content.size() / 2}) {
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(content.data()), size);
    }
  }
  return 0;
}
