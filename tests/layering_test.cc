// Who may include whom, and which library is behind which door: the rooms of the house, as a table.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/pattern.h"
#include "tests/catch.h"

using namespace inquest;
namespace fs = std::filesystem;

namespace layering_test {

const std::map<std::string, std::set<std::string>> kRooms = {
    {"core", {"core"}},
    {"search", {"search", "core"}},
    {"parsers", {"parsers", "search", "core"}},
    {"timeline", {"timeline", "core"}},
    {"rules", {"rules", "timeline", "search", "core"}},
    {"report", {"report", "rules", "timeline", "core"}},
    {"replay", {"replay", "timeline", "core"}},
    {"collect", {"collect", "core"}},
    {"cli", {"cli", "collect", "core", "search", "parsers", "timeline", "rules", "report", "replay"}},
};

/// What supervisor and worker both speak, so that the worker may include it beside the engines.
const std::set<std::string> kReplaySeams = {"replay/call.h", "replay/engine.h",   "replay/ops.h", "replay/phase.h",
                                            "replay/plan.h", "replay/sequence.h", "replay/wire.h"};

struct Door {
  std::string library;             ///< start of the header's name
  std::vector<std::string> files;  ///< starts of paths that may include it
};
const std::vector<Door> kDoors = {
    {"re2/", {"core/pattern.cc"}},
    {"hs", {"search/hs_sieve.cc", "search/packed_sieve.cc"}},
    {"yaml-cpp/", {"rules/yaml_mapping.h"}},
    {"simdjson",
     {"parsers/exported_line.cc", "parsers/flight_recorder.cc", "parsers/profiler_trace.cc", "parsers/formats/",
      "replay/verdict_reader.cc"}},
    {"nlohmann/",
     {"collect/manifest.cc", "report/json_value.cc", "replay/wire_json.h", "cli/replay_json.cc", "cli/speed_file.cc"}},
    {"CLI/", {"cli/options.cc"}},
    {"nettle/", {"cli/file_digest.cc", "replay/secret.cc"}},
    {"protozero/", {"report/perfetto/trace_writer.cc"}},
    {"archive", {"parsers/unpack.cc", "collect/bundle_writer.cc"}},
    {"cuda", {}},
    {"nccl", {}},
    {"gloo/", {"replay/engines/gloo.cc", "replay/engines/gloo_call."}},
};

struct Include {
  std::string file, name;
  bool library = false;
};

bool IsSource(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cc" || path.extension() == ".cu";
}

std::vector<std::string> Sources() {
  std::vector<std::string> files;
  const fs::path root = INQUEST_SOURCE_DIR;
  for (const auto& [room, allowed] : kRooms) {
    if (!fs::exists(root / room)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / room)) {
      if (IsSource(entry.path())) files.push_back(entry.path().lexically_relative(root).string());
    }
  }
  std::sort(files.begin(), files.end());
  return files;
}

std::vector<Include> Includes(const std::string& file) {
  static const Pattern kInclude(R"(^\s*#\s*include\s*(["<])([^">]+)[">])");
  std::vector<Include> includes;
  std::ifstream stream(fs::path(INQUEST_SOURCE_DIR) / file);
  for (std::string line; std::getline(stream, line);) {
    if (const auto match = kInclude.Search(line))
      includes.push_back({file, std::string(match->text(2)), match->text(1) == "<"});
  }
  return includes;
}

std::string RoomOf(const std::string& path) { return path.substr(0, path.find('/')); }

bool Allowed(const Include& include) {
  const std::string room = RoomOf(include.name);
  if (!kRooms.contains(room)) return true;
  if (include.file.starts_with("replay/worker/"))
    return room == "core" || kReplaySeams.contains(include.name) || include.name.starts_with("replay/engines/") ||
           include.name.starts_with("replay/worker/");
  if (include.name.starts_with("replay/worker/")) return false;
  return kRooms.at(RoomOf(include.file)).contains(room);
}

/// Whether the header's name is that of a library: `hs.h` and `hs_runtime.h`, not `hsomething.h`.
bool IsOf(const std::string& header, const std::string& library) {
  if (!header.starts_with(library)) return false;
  return library.ends_with('/') || header.size() == library.size() ||
         std::string("._/").find(header[library.size()]) != std::string::npos;
}

/// The words of the nearest CMakeLists.txt at or above the folder of `file`, and `file` as that names it.
std::pair<std::set<std::string>, std::string> ListFor(const std::string& file) {
  const fs::path root = INQUEST_SOURCE_DIR;
  fs::path folder = fs::path(file).parent_path();
  while (!fs::exists(root / folder / "CMakeLists.txt")) folder = folder.parent_path();
  std::ifstream stream(root / folder / "CMakeLists.txt");
  std::set<std::string> words;
  std::string word;
  for (char c = 0; stream.get(c);) {
    if (std::string_view(" \n()\"").find(c) == std::string_view::npos) {
      word += c;
    } else {
      words.insert(std::exchange(word, {}));
    }
  }
  return {std::move(words), fs::path(file).lexically_relative(folder).string()};
}

TEST_CASE("every source is in the list of its room", "[layering]") {
  const fs::path root = INQUEST_SOURCE_DIR;
  std::vector<std::string> files = Sources();
  for (const char* folder : {"tests", "bench"}) {
    for (const auto& entry : fs::recursive_directory_iterator(root / folder))
      files.push_back(entry.path().lexically_relative(root).string());
  }
  for (const std::string& file : files) {
    if (!file.ends_with(".cc") && !file.ends_with(".cu")) continue;
    const auto [words, name] = ListFor(file);
    INFO(file << " is in no list of its CMakeLists.txt: nothing compiles it");
    // A fuzz target is listed by its door.
    CHECK(
        (words.contains(name) || (file.starts_with("tests/fuzz/") && words.contains(fs::path(file).stem().string()))));
  }
}

// Two types of one name are one to the linker, which then takes either's functions for both.
TEST_CASE("a name is of one type", "[layering]") {
  static const Pattern kNamespace(R"(^namespace ([\w:]+) \{$)"), kLeft(R"(^\}  // namespace)"),
      kType(R"(^(?:struct|class|union|enum class) (?:alignas\([^)]*\) )?([\w:]+)[^;]*\{)");
  std::map<std::string, std::string> defined;  // by name, in which header
  for (const std::string& file : Sources()) {
    if (!file.ends_with(".h")) continue;
    std::ifstream stream(fs::path(INQUEST_SOURCE_DIR) / file);
    std::vector<std::string> in;
    for (std::string line; std::getline(stream, line);) {
      if (const auto opened = kNamespace.Search(line)) in.emplace_back(opened->text(1));
      if (kLeft.Matches(line) && !in.empty()) in.pop_back();
      const auto type = kType.Search(line);
      if (!type) continue;
      std::string name;
      for (const std::string& space : in) name += space + "::";
      const auto [known, added] = defined.try_emplace(name + std::string(type->text(1)), file);
      INFO(known->first << " is defined in " << known->second << " and in " << file);
      CHECK(added);
    }
  }
  CHECK(defined.size() > 100);
}

TEST_CASE("rooms include only the rooms below them", "[layering]") {
  REQUIRE_FALSE(Sources().empty());
  for (const std::string& file : Sources()) {
    for (const Include& include : Includes(file)) {
      if (include.library) continue;
      INFO(file << " includes \"" << include.name << "\"");
      CHECK(Allowed(include));
    }
  }
}

TEST_CASE("every library has one door", "[layering]") {
  for (const std::string& file : Sources()) {
    for (const Include& include : Includes(file)) {
      if (!include.library) continue;
      for (const Door& door : kDoors) {
        if (!IsOf(include.name, door.library)) continue;
        INFO(file << " includes <" << include.name << ">");
        CHECK(std::any_of(door.files.begin(), door.files.end(),
                          [&](const std::string& allowed) { return file.starts_with(allowed); }));
      }
    }
  }
}

TEST_CASE("only cli reads the environment, prints and exits", "[layering]") {
  static const Pattern kCall(R"(\b(getenv|printf|puts|exit|_exit)\s*\(|std::(cout|cerr|clog)\b)");
  for (const std::string& file : Sources()) {
    // result.h aborts with a message; the replay's worker is a program of its own; a child
    // sets its own environment, and ends if it cannot become another program.
    if (file.starts_with("cli/") || file == "core/result.h" || file == "collect/child.cc" ||
        file.starts_with("replay/worker/"))
      continue;
    std::ifstream stream(fs::path(INQUEST_SOURCE_DIR) / file);
    for (std::string line; std::getline(stream, line);) {
      const std::size_t comment = line.find("//");
      INFO(file << ": " << line);
      CHECK_FALSE(kCall.Matches(std::string_view(line).substr(0, comment)));
    }
  }
}

}  // namespace layering_test
