// `inquest collect`: gathers on a node what inquest reads, into one compressed tar. Nothing is sent anywhere.
#include "cli/collect.h"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <fstream>
#include <iterator>
#include <optional>
#include <set>

#include "cli/bundle_writer.h"
#include "cli/child.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/environment.h"
#include "cli/manifest.h"
#include "parsers/scan.h"
#include "report/terminal.h"

namespace inquest {
namespace {

constexpr std::size_t kOutputBytes = 64 * 1024 * 1024;

struct Collected {
  CollectedItem item;
  std::string content;
};

std::string Hostname() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "unknown-host";
  std::string host(name.data());
  const auto odd = [](unsigned char c) { return std::isalnum(c) == 0 && c != '-' && c != '.'; };
  std::replace_if(host.begin(), host.end(), odd, '-');
  return host;
}

bool IsGood(const CollectedItem& item) { return item.missing.empty() && item.exit_code.value_or(0) == 0 && !item.signal && !item.timed_out; }

/// Files of /proc and small ones: their size is not known before they are read.
Collected ReadSmall(const CollectRow& row) {
  Collected got;
  got.item.source = row.file;
  std::ifstream stream(got.item.source, std::ios::binary);
  if (stream)
    got.content.assign(std::istreambuf_iterator<char>(stream), {});
  else
    got.item.missing = "there is no such file";
  return got;
}

Collected RunRow(const CollectRow& row) {
  Collected got;
  got.item.command.assign(row.command.begin(), row.command.end());
  ChildEnd end = RunChild(got.item.command, {.time = row.limit, .output_bytes = kOutputBytes});
  got.content = std::move(end.output);
  got.item.missing = std::move(end.missing);
  got.item.exit_code = end.exit_code;
  got.item.signal = end.signal;
  got.item.timed_out = end.timed_out;
  got.item.cut = end.cut;
  got.item.seconds = static_cast<double>(end.took.count()) / 1000;
  return got;
}

std::string Shortcoming(const CollectedItem& item) {
  if (!item.missing.empty()) return item.missing;
  if (item.timed_out) return fmt::format("stopped after {:.0f} s", item.seconds);
  if (item.signal) return fmt::format("killed by signal {}", *item.signal);
  if (item.exit_code.value_or(0) != 0) return fmt::format("exit status {}", *item.exit_code);
  return item.cut ? "cut: it printed too much" : "";
}

/// One run of the command: every step adds to the bundle and to the manifest.
class Collection {
 public:
  Collection(BundleWriter& writer, Manifest manifest) : writer_(writer), manifest_(std::move(manifest)), folder_("inquest-bundle/" + manifest_.hostname + "/") {}

  void Rows() {
    const auto rows = CollectTable();
    for (std::size_t i = 0; i < rows.size();) {
      std::size_t end = i + 1;
      while (end < rows.size() && rows[end].name == rows[i].name) ++end;
      Keep(std::string(rows[i].name), FirstGood(rows.subspan(i, end - i)));
      i = end;
    }
  }

  void Environment() {
    std::vector<std::string_view> entries;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) entries.emplace_back(*entry);
    Collected got;
    got.content = PublicEnvironment(entries);
    got.item.source = "the environment of inquest collect";
    Keep("environment.txt", std::move(got));
  }

  void Files(const std::vector<Input>& inputs) {
    for (const Input& input : inputs) {
      CollectedItem item;
      item.name = "files/" + Relative(input.path);
      item.source = input.path;
      const auto bytes = writer_.AddFile(folder_ + item.name, input.path);
      if (bytes)
        item.bytes = *bytes;
      else
        item.missing = bytes.error().message;
      manifest_.items.push_back(std::move(item));
    }
  }

  Result<std::uint64_t> Finish() {
    if (const auto error = writer_.Add(folder_ + "manifest.json", RenderManifest(manifest_))) return *error;
    return writer_.Finish();
  }
  const std::vector<CollectedItem>& items() const { return manifest_.items; }

 private:
  /// The first row that ends well, else the last that ran at all.
  Collected FirstGood(std::span<const CollectRow> rows) {
    std::optional<Collected> best;
    for (const CollectRow& row : rows) {
      Collected got = Try(row);
      const bool good = IsGood(got.item);
      if (!good && row.on_failure == OnFailure::kDrop) Drop(got);
      if (good || !best || got.item.missing.empty() || got.item.exit_code) best = std::move(got);
      if (good) break;
    }
    return std::move(*best);
  }

  Collected Try(const CollectRow& row) {
    if (row.command.empty()) return ReadSmall(row);
    Collected got;
    got.item.command.assign(row.command.begin(), row.command.end());
    if (stuck_.contains(row.command.front()))
      got.item.missing = "left out: an earlier call of it did not end even when it was killed";
    else
      got = RunRow(row);
    if (got.item.timed_out && !got.item.exit_code && !got.item.signal) stuck_.insert(row.command.front());
    return got;
  }

  static void Drop(Collected& got) {
    got.content.clear();
    if (got.item.missing.empty()) got.item.missing = Shortcoming(got.item);
  }

  void Keep(std::string name, Collected got) {
    got.item.name = std::move(name);
    got.item.bytes = got.content.size();
    if (got.item.missing.empty()) writer_.Add(folder_ + got.item.name, got.content);
    manifest_.items.push_back(std::move(got.item));
  }

  /// Its own path below `files/`, so that two of one name stay two.
  static std::string Relative(const std::string& path) {
    std::string out;
    for (std::size_t at = 0; at < path.size();) {
      const std::size_t end = std::min(path.find('/', at), path.size());
      const std::string part = path.substr(at, end - at);
      if (!part.empty() && part != "." && part != "..") out += (out.empty() ? "" : "/") + part;
      at = end + 1;
    }
    return out;
  }

  BundleWriter& writer_;
  Manifest manifest_;
  std::string folder_;
  std::set<std::string_view> stuck_;  ///< programs that SIGKILL does not end
};

std::string Summary(const std::string& bundle, std::uint64_t bytes, const std::vector<CollectedItem>& items) {
  const std::string path = Sanitize(bundle);
  std::string missing;
  std::size_t whole = 0;
  for (const CollectedItem& item : items) {
    const std::string why = Shortcoming(item);
    if (why.empty())
      ++whole;
    else
      missing += fmt::format("  {:<28} {}\n", Sanitize(item.name), Sanitize(why));
  }
  std::string text = fmt::format("{}: {} of {} items, {} bytes. Nothing was sent anywhere.\n", path, whole, items.size(), bytes);
  if (!missing.empty()) text += "Missing or not whole:\n" + missing;
  if (path != "-") text += fmt::format("Look inside: tar -tf {0}\nRead it:     inquest {0}\n", path);
  return text;
}

}  // namespace

CommandResult RunCollect(const Options& options) {
  if (std::ranges::find(options.arguments, "-") != options.arguments.end())
    return CouldNotRun({"collect reads no standard input", "name the files to put in", ""});
  const Result<std::vector<Input>> inputs = ListInputs(options.arguments);
  if (!inputs) return CouldNotRun(inputs.error());
  const std::time_t now = std::time(nullptr);
  Manifest manifest{.hostname = Hostname(), .time = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now)), .tool_version = INQUEST_VERSION, .items = {}};
  const std::string path =
      !options.output.empty() ? options.output : fmt::format("inquest-{}-{:%Y%m%dT%H%M%SZ}.tar.zst", manifest.hostname, fmt::gmtime(now));
  if (path == "-" && OutputIsTerminal()) return CouldNotRun({"a terminal shows no bundle", "send standard output to a file, or give -o FILE", ""});
  auto writer = BundleWriter::Open(path);
  if (!writer) return CouldNotRun(writer.error());
  Collection collection(**writer, std::move(manifest));
  collection.Rows();
  collection.Environment();
  collection.Files(*inputs);
  const auto bytes = collection.Finish();
  if (!bytes) return CouldNotRun(bytes.error());
  CommandResult result;
  (path == "-" ? result.err : result.out) = Summary(path, *bytes, collection.items());
  return result;
}

}  // namespace inquest
