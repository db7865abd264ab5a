// Compressed files and archives as inputs: whole, nested, cut, corrupt, and made to hurt.
#include <archive.h>
#include <archive_entry.h>
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>

#include "parsers/archive_source.h"
#include "parsers/folder_hosts.h"
#include "parsers/scan.h"
#include "tests/catch.h"
#include "tests/support/collect.h"
#include "tests/support/run_job.h"

using namespace inquest;
namespace fs = std::filesystem;

namespace archive_test {

struct Member {
  std::string name, content;
  unsigned type = AE_IFREG;
  std::string link;
};

la_ssize_t Append(archive*, void* to, const void* data, std::size_t size) {
  static_cast<std::string*>(to)->append(static_cast<const char*>(data), size);
  return static_cast<la_ssize_t>(size);
}

using Setter = int (*)(archive*);

std::string Pack(Setter format, Setter filter, const std::vector<Member>& members) {
  std::string packed;
  archive* out = ::archive_write_new();
  REQUIRE(format(out) == ARCHIVE_OK);
  REQUIRE(filter(out) == ARCHIVE_OK);
  ::archive_write_set_bytes_in_last_block(out, 1);
  REQUIRE(::archive_write_open(out, &packed, nullptr, Append, nullptr) == ARCHIVE_OK);
  for (const Member& member : members) {
    archive_entry* entry = ::archive_entry_new();
    ::archive_entry_set_pathname(entry, member.name.c_str());
    ::archive_entry_set_filetype(entry, member.type);
    ::archive_entry_set_perm(entry, 0644);
    ::archive_entry_set_size(entry, static_cast<la_int64_t>(member.content.size()));
    if (member.type == AE_IFLNK) ::archive_entry_set_symlink(entry, member.link.c_str());
    if (member.type == AE_IFREG && !member.link.empty()) ::archive_entry_set_hardlink(entry, member.link.c_str());
    REQUIRE(::archive_write_header(out, entry) >= ARCHIVE_WARN);
    if (!member.content.empty()) REQUIRE(::archive_write_data(out, member.content.data(), member.content.size()) >= 0);
    ::archive_entry_free(entry);
  }
  REQUIRE(::archive_write_close(out) == ARCHIVE_OK);
  ::archive_write_free(out);
  return packed;
}

/// In blocks of 64 KiB, as `lz4 -B4` does: a reader gives nothing of a block that is cut, and the usual 4 MiB hold a
/// whole test.
int AddSmallLz4(archive* out) {
  const int code = ::archive_write_add_filter_lz4(out);
  return code == ARCHIVE_OK ? ::archive_write_set_filter_option(out, "lz4", "block-size", "4") : code;
}

const std::map<std::string, Setter> kFilters = {{"gz", ::archive_write_add_filter_gzip},
                                                {"zst", ::archive_write_add_filter_zstd},
                                                {"xz", ::archive_write_add_filter_xz},
                                                {"bz2", ::archive_write_add_filter_bzip2},
                                                {"lz4", AddSmallLz4}};
const std::map<std::string, Setter> kFormats = {{"pax", ::archive_write_set_format_pax_restricted},
                                                {"ustar", ::archive_write_set_format_ustar},
                                                {"gnutar", ::archive_write_set_format_gnutar},
                                                {"v7", ::archive_write_set_format_v7tar},
                                                {"zip", ::archive_write_set_format_zip}};

std::string Compressed(const std::string& text, const std::string& how) {
  return Pack(::archive_write_set_format_raw, kFilters.at(how), {{"data", text, AE_IFREG, {}}});
}
std::string Tar(const std::vector<Member>& members) {
  return Pack(::archive_write_set_format_pax_restricted, ::archive_write_add_filter_none, members);
}

const std::string& Log() {
  static const std::string kLog = [] {
    std::ifstream stream(fs::path(INQUEST_SOURCE_DIR) / "corpus/oom-on-one-rank-others-time-out/job.log",
                         std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  }();
  REQUIRE(kLog.size() > 1000);
  return kLog;
}

/// More than some blocks, with evidence at both ends.
std::string LongLog() {
  std::string text = Log();
  for (std::int64_t i = 0; text.size() < 1'500'000; ++i)
    text += fmt::format("step {} loss {} tokens {}\n", i, i * 7919 % 10007, i * 104729 % 1000003);
  return text + Log();
}

struct Scan {
  std::vector<InputRead> reads;
  std::vector<std::string> events;
  std::optional<Error> error;
};

Scan ScanPath(const std::string& path, const ScanOptions& options = {.threads = 1}) {
  Scan scan;
  CollectingSink sink;
  const auto inputs = ListInputs({path});
  REQUIRE(inputs);
  auto reads = ScanInputs(*inputs, BuiltInSieve(), options, sink);
  if (!reads) {
    scan.error = reads.error();
    return scan;
  }
  scan.reads = std::move(*reads);
  for (const Event& event : sink.events)
    scan.events.push_back(fmt::format("{}:{}:{} {} {}", event.where.input, event.where.line, event.where.offset,
                                      KindOf(event.what), event.text));
  for (const InputRead& read : scan.reads)
    CHECK(read.tally.claimed + read.tally.plain + read.tally.damaged == read.tally.bytes);
  return scan;
}

Scan ScanBytes(const std::string& name, const std::string& bytes, const ScanOptions& options = {.threads = 1}) {
  const JobFolder folder({{name, bytes}});
  Scan scan = ScanPath(folder.Files().front(), options);
  for (InputRead& read : scan.reads) read.path.erase(0, folder.path().size() + 1);
  return scan;
}

std::vector<std::string> Paths(const Scan& scan) {
  std::vector<std::string> paths;
  for (const InputRead& read : scan.reads) paths.push_back(read.path);
  return paths;
}

using Names = std::vector<std::string>;

TEST_CASE("a compressed log is the log", "[unit][archive]") {
  const Scan plain = ScanBytes("job.log", Log());
  for (const auto& [how, filter] : kFilters) {
    CAPTURE(how);
    // The name plays no part.
    for (const std::string& name : {"job.log." + how, std::string("job.log")}) {
      const Scan scan = ScanBytes(name, Compressed(Log(), how));
      REQUIRE(Paths(scan) == Names{name});
      CHECK(scan.reads[0].problem.empty());
      CHECK(scan.reads[0].tally.bytes == Log().size());
      CHECK(scan.reads[0].tally.lines == plain.reads[0].tally.lines);
      CHECK((scan.events == plain.events));
    }
    if (how == "lz4") continue;  // libarchive 3.6 cannot write an empty one
    const Scan empty = ScanBytes("empty", Compressed("", how));
    REQUIRE(Paths(empty) == Names{"empty"});
    CHECK(empty.reads[0].tally.bytes == 0);
    CHECK(empty.reads[0].problem.empty());
  }
  for (const char* const how : {"gz", "zst", "xz", "bz2", "lz4"})
    CHECK(ScanBytes("rotated", Compressed("first\n", how) + Compressed("second\n", how)).reads[0].tally.lines == 2);
  // A log that was truncated while its writer went on begins with zeros, as a tar of no members does.
  const std::string late = std::string(4096, '\0') + "\n" + Log();
  const Scan after_zeros = ScanBytes("late.gz", Compressed(late, "gz"));
  REQUIRE(Paths(after_zeros) == Names{"late.gz"});
  CHECK(after_zeros.reads[0].tally.bytes == late.size());
  CHECK(after_zeros.events.size() >= plain.events.size());
}

TEST_CASE("members of an archive are inputs in its order", "[unit][archive]") {
  const std::vector<Member> members = {
      {"z/job.log", Log(), AE_IFREG, {}}, {"a.txt", "hello\n", AE_IFREG, {}}, {"empty", "", AE_IFREG, {}}};
  const Scan plain = ScanBytes("job.log", Log());
  auto filters = kFilters;
  filters["none"] = ::archive_write_add_filter_none;
  for (const auto& [kind, format] : kFormats) {
    for (const auto& [how, filter] : filters) {
      if (kind == "zip" && how != "none") continue;
      CAPTURE(kind, how);
      const Scan scan = ScanBytes("x", Pack(format, filter, members));
      REQUIRE(Paths(scan) == Names{"x:z/job.log", "x:a.txt", "x:empty"});
      CHECK(scan.reads[0].tally.bytes == Log().size());
      CHECK(scan.reads[1].tally.lines == 1);
      CHECK(scan.events.size() == plain.events.size() + 1);  // hello
      CHECK(std::equal(plain.events.begin(), plain.events.end(), scan.events.begin()));
    }
  }
  CHECK(Paths(ScanBytes("none.tar", Tar({{"folder", "", AE_IFDIR, {}}}))) == Names{"none.tar"});
}

TEST_CASE("one level of nesting is opened", "[unit][archive]") {
  const std::string inner =
      Tar({{"rank3.log", Log(), AE_IFREG, {}}, {"deep.gz", Compressed(Log(), "gz"), AE_IFREG, {}}});
  const Scan scan = ScanBytes("b.tar", Tar({{"n/dmesg.gz", Compressed("one\ntwo\n", "gz"), AE_IFREG, {}},
                                            {"n/plain", "x\n", AE_IFREG, {}},
                                            {"n/logs.tgz", Compressed(inner, "gz"), AE_IFREG, {}},
                                            {"last", "y\n", AE_IFREG, {}}}));
  REQUIRE(Paths(scan) == Names{"b.tar:n/dmesg.gz", "b.tar:n/plain", "b.tar:n/logs.tgz:rank3.log",
                               "b.tar:n/logs.tgz:deep.gz", "b.tar:last"});
  CHECK(scan.reads[0].tally.lines == 2);
  CHECK(scan.reads[2].tally.bytes == Log().size());
  CHECK(scan.reads[3].tally.bytes == Compressed(Log(), "gz").size());
  CHECK(scan.reads[3].problem == "packed once more than is opened; unpack it and give the folder");
  CHECK(scan.reads[4].tally.bytes == 2);
}

TEST_CASE("zips and tars nest in each other, two members may share a name, and there may be thousands",
          "[unit][archive]") {
  const auto zip = [](const std::vector<Member>& members) {
    return Pack(::archive_write_set_format_zip, ::archive_write_add_filter_none, members);
  };
  const std::string gz = Compressed(Tar({{"a", "1\n", AE_IFREG, {}}, {"a", "2\n2\n", AE_IFREG, {}}}), "gz");
  const Scan in_zip = ScanBytes("x", zip({{"t.tgz", gz, AE_IFREG, {}}, {"b", "3\n", AE_IFREG, {}}}));
  REQUIRE(Paths(in_zip) == Names{"x:t.tgz:a", "x:t.tgz:a", "x:b"});
  CHECK(in_zip.reads[0].tally.lines == 1);
  CHECK(in_zip.reads[1].tally.lines == 2);
  CHECK(Paths(ScanBytes("x", Tar({{"z", zip({{"a", "1\n", AE_IFREG, {}}}), AE_IFREG, {}}}))) == Names{"x:z:a"});
  CHECK(Paths(ScanBytes("x", Compressed(zip({{"a", "1\n", AE_IFREG, {}}}), "xz"))) == Names{"x:a"});

  std::vector<Member> many;
  for (int i = 0; i < 4000; ++i)
    many.push_back({fmt::format("rank{}.log", i), i == 3999 ? Log() : "line\n", AE_IFREG, {}});
  const Scan scan = ScanBytes("x", Compressed(Tar(many), "zst"));
  REQUIRE(scan.reads.size() == 4000);
  CHECK(scan.reads.back().path == "x:rank3999.log");
  CHECK(scan.reads.back().tally.bytes == Log().size());
}

TEST_CASE("what is encrypted is told, and what stands beside it is read", "[unit][archive]") {
  const auto encrypted = [](archive* out) {
    REQUIRE(::archive_write_set_format_zip(out) == ARCHIVE_OK);
    REQUIRE(::archive_write_set_passphrase(out, "secret") == ARCHIVE_OK);
    return ::archive_write_set_option(out, "zip", "encryption", "traditional");
  };
  const Scan both = ScanBytes(
      "x",
      Tar({{"z.zip", Pack(encrypted, ::archive_write_add_filter_none, {{"a.log", Log(), AE_IFREG, {}}}), AE_IFREG, {}},
           {"b", "3\n", AE_IFREG, {}}}));
  REQUIRE(Paths(both) == Names{"x:z.zip:a.log", "x:b"});
  CHECK(both.reads[0].problem == "encrypted: unpack it with its password and give the folder");
  CHECK(both.reads[0].tally.bytes == 0);
  CHECK(both.reads[1].problem.empty());
}

TEST_CASE("a sparse member has its holes, within the limits", "[unit][archive]") {
  const auto sparse = [](std::uint64_t size) {
    std::string packed;
    archive* out = ::archive_write_new();
    ::archive_write_set_format_pax(out);
    REQUIRE(::archive_write_open(out, &packed, nullptr, Append, nullptr) == ARCHIVE_OK);
    archive_entry* entry = ::archive_entry_new();
    ::archive_entry_set_pathname(entry, "s");
    ::archive_entry_set_filetype(entry, AE_IFREG);
    ::archive_entry_set_size(entry, static_cast<la_int64_t>(size));
    ::archive_entry_sparse_add_entry(entry, 0, 4096);
    ::archive_entry_sparse_add_entry(entry, static_cast<la_int64_t>(size - 4096), 4096);
    REQUIRE(::archive_write_header(out, entry) == ARCHIVE_OK);
    const std::string piece = std::string(4095, 'x') + "\n", hole(1 << 20, '\0');
    ::archive_write_data(out, piece.data(), piece.size());
    for (std::uint64_t left = size - 8192; left > 0;)
      left -= static_cast<std::uint64_t>(
          ::archive_write_data(out, hole.data(), std::min<std::uint64_t>(left, hole.size())));
    ::archive_write_data(out, piece.data(), piece.size());
    ::archive_entry_free(entry);
    ::archive_write_close(out);
    ::archive_write_free(out);
    return packed;
  };
  const std::string bytes = sparse(3'000'000);
  REQUIRE(bytes.size() < 100'000);
  const Scan scan = ScanBytes("x", bytes);
  REQUIRE(Paths(scan) == Names{"x:s"});
  CHECK(scan.reads[0].tally.bytes == 3'000'000);
  CHECK(scan.reads[0].tally.lines == 2);
  CHECK(scan.reads[0].problem.empty());
  const Scan wide =
      ScanBytes("x", sparse(64 << 20), {.threads = 1, .expansion = {.ratio = 100, .dense_bytes = 1 << 20}});
  CHECK(wide.reads[0].tally.bytes < (8 << 20));
  CHECK(wide.reads[0].problem == "expands to far more than a log does; the rest was not read");
}

TEST_CASE("names in archives are labels, and nothing is written", "[unit][archive]") {
  const JobFolder folder({{"in/b.tar", Tar({{"../../outside", "a\n", AE_IFREG, {}},
                                            {"/absolute", "b\n", AE_IFREG, {}},
                                            {"./here", "c\n", AE_IFREG, {}},
                                            {"link", "", AE_IFLNK, "/etc/passwd"},
                                            {"hard", "", AE_IFREG, "here"},
                                            {"device", "", AE_IFCHR, {}},
                                            {"pipe", "", AE_IFIFO, {}},
                                            {"._here", "junk\n", AE_IFREG, {}},
                                            {".cache/x", "junk\n", AE_IFREG, {}},
                                            {"n\x1b[31m\nx", "d\n", AE_IFREG, {}}})}});
  const Scan scan = ScanPath(folder.Files().front());
  Names paths = Paths(scan);
  const std::string problem = scan.reads.back().problem;
  for (std::string& path : paths) path.erase(0, folder.Files().front().size() + 1);
  CHECK(paths == Names{"../../outside", "/absolute", "here", "n\x1b[31m\nx", ""});
  CHECK(problem == "passed over: 2 links, 1 hidden file, 2 devices");
  std::size_t files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder.path())) files += entry.is_regular_file() ? 1 : 0;
  CHECK(files == 1);
}

TEST_CASE("text that only begins like an archive is text", "[unit][archive]") {
  for (const char* const begin : {"PK\n", "BZh9 is no magic alone\n", "ustar", "\x1f\x8b\n", "(\xb5/\n"}) {
    const std::string text = begin;
    CAPTURE(text);
    CHECK_FALSE(IsArchive(text));
    CHECK(ScanBytes("t", text).reads[0].tally.bytes == text.size());
  }
  CHECK_FALSE(IsArchive(std::string(512, '0')));
  CHECK_FALSE(IsArchive(std::string(512, '\0')));
  CHECK_FALSE(IsArchive(Log()));
}

TEST_CASE("a cut archive gives what stands before the cut", "[unit][archive]") {
  const std::string bundle = Tar({{"a.log", Log(), AE_IFREG, {}},
                                  {"b.gz", Compressed(Log(), "gz"), AE_IFREG, {}},
                                  {"c.log", LongLog(), AE_IFREG, {}}});
  std::map<std::string, std::string> whole = {
      {"tar", bundle},
      {"zip", Pack(::archive_write_set_format_zip, ::archive_write_add_filter_none,
                   {{"a.log", Log(), AE_IFREG, {}}, {"c.log", LongLog(), AE_IFREG, {}}})}};
  for (const auto& [how, filter] : kFilters) whole[how] = Compressed(bundle, how);
  for (const auto& [how, bytes] : whole) {
    const Scan full = ScanBytes("x", bytes);
    std::uint64_t most = 0;
    for (std::size_t i = 1; i < 40; i += 3) {
      const std::size_t size = bytes.size() * i / 40;
      CAPTURE(how, size, bytes.size());
      const Scan cut = ScanBytes("x", bytes.substr(0, size));
      const auto total = [](const Scan& scan) {
        std::uint64_t sum = 0;
        for (const InputRead& read : scan.reads) sum += read.tally.bytes;
        return sum;
      };
      if (cut.error) {
        CHECK(cut.error->where.ends_with("/x"));
        continue;
      }
      CHECK(total(cut) <= total(full));
      CHECK(total(cut) >= most);
      most = total(cut);
      CHECK(std::any_of(cut.reads.begin(), cut.reads.end(),
                        [](const InputRead& read) { return !read.problem.empty() || read.path == "x"; }));
    }
    CAPTURE(how);
    CHECK(most > Log().size());
  }
  // Text comes out of a small cut file only as whole pieces of the decompressor; a tar is exact.
  const Scan half = ScanBytes("x.tar", Tar({{"a.log", Log(), AE_IFREG, {}}}).substr(0, 512 + 4000));
  REQUIRE(half.reads.size() == 1);
  CHECK(half.reads[0].tally.bytes == 4000);
  CHECK(half.reads[0].problem == "cut or corrupt: Truncated tar archive");
}

TEST_CASE("a broken member leaves the others, a broken file the other files", "[unit][archive]") {
  const std::string broken = Compressed(LongLog(), "gz").substr(0, 50);
  const Scan scan = ScanBytes("b.tar", Tar({{"a.gz", broken, AE_IFREG, {}}, {"b.log", Log(), AE_IFREG, {}}}));
  REQUIRE(Paths(scan) == Names{"b.tar:a.gz", "b.tar:b.log"});
  CHECK(scan.reads[0].problem == "cut or corrupt: truncated gzip input");
  CHECK(scan.reads[1].tally.bytes == Log().size());

  const JobFolder folder({{"a.gz", broken}, {"b.log", Log()}});
  const Scan both = ScanPath(folder.path());
  REQUIRE(both.reads.size() == 2);
  CHECK_FALSE(both.reads[0].problem.empty());

  const Scan nothing = ScanBytes("a.gz", broken);
  REQUIRE(nothing.error);
  CHECK(nothing.error->message == "cut or corrupt: truncated gzip input");
  CHECK(nothing.error->where.ends_with("/a.gz"));
}

TEST_CASE("bytes turned over at random crash nothing", "[unit][archive]") {
  std::mt19937 chance(20310219);
  std::vector<std::string> whole;
  const std::string bundle = Tar({{"a.log", Log(), AE_IFREG, {}},
                                  {"b.gz", Compressed(Log(), "gz"), AE_IFREG, {}},
                                  {"c.log", Log(), AE_IFREG, {}}});
  for (const auto& [how, filter] : kFilters) whole.push_back(Compressed(bundle, how));
  for (const auto& [kind, format] : kFormats)
    whole.push_back(
        Pack(format, ::archive_write_add_filter_none, {{"a.log", Log(), AE_IFREG, {}}, {"d/b", "x\n", AE_IFREG, {}}}));
  for (const std::string& bytes : whole) {
    for (int i = 0; i < 50; ++i) {
      std::string damaged = bytes;
      for (int n = 0; n <= i % 4; ++n) damaged[chance() % damaged.size()] = static_cast<char>(chance());
      const Scan scan = ScanBytes("x", damaged);
      CHECK((scan.error || !scan.reads.empty()));
    }
  }
}

TEST_CASE("what expands without end is left", "[unit][archive]") {
  const std::string flood(32 << 20, 'x');
  const ScanOptions options{.threads = 2,
                            .expansion = {.bytes = 1 << 30, .ratio = 1000, .dense_bytes = 1 << 20, .members = 100}};
  const auto bomb = Compressed(flood, "zst");
  REQUIRE(bomb.size() * 1000 < flood.size());
  for (const std::string& bytes : {bomb, Tar({{"a", bomb, AE_IFREG, {}}, {"b", "after\n", AE_IFREG, {}}}),
                                   Compressed(Tar({{"flood", flood, AE_IFREG, {}}}), "zst")}) {
    CAPTURE(bytes.size());
    const Scan scan = ScanBytes("x", bytes, options);
    REQUIRE_FALSE(scan.error);
    REQUIRE(scan.reads.size() == 1);
    CHECK(scan.reads[0].tally.bytes < (8 << 20));
    CHECK(scan.reads[0].problem == "expands to far more than a log does; the rest was not read");
  }
  // Not even on the way past a member that nobody reads.
  const Scan hidden = ScanBytes(
      "x",
      Compressed(
          Tar({{"a", "before\n", AE_IFREG, {}}, {".hidden", flood, AE_IFREG, {}}, {"b", "after\n", AE_IFREG, {}}}),
          "zst"),
      options);
  CHECK(Paths(hidden) == Names{"x:a", "x"});
  CHECK(hidden.reads.back().problem == "expands to far more than a log does; the rest was not read");
  CHECK(ScanBytes("x", bomb, {.threads = 1, .expansion = {.ratio = 1000, .dense_bytes = 64 << 20}})
            .reads[0]
            .problem.empty());
  CHECK_FALSE(ScanBytes("x", Tar({{"a", flood, AE_IFREG, {}}}), {.threads = 1, .expansion = {.bytes = 4 << 20}})
                  .reads[0]
                  .problem.empty());

  std::vector<Member> many;
  for (int i = 0; i < 30; ++i)
    many.push_back({fmt::format("{}.log", i), i % 2 == 0 ? "line\n" : "", i % 3 == 0 ? AE_IFREG : AE_IFDIR, {}});
  for (Member& member : many)
    if (member.type != AE_IFREG) member.content.clear();
  const Scan scan = ScanBytes("x", Tar(many), {.threads = 1, .expansion = {.members = 10}});
  CHECK(scan.reads.size() == 5);
  CHECK(scan.reads.back().path == "x");
  CHECK(scan.reads.back().problem == "more than 10 members; the rest was not read");
}

TEST_CASE("any block size and number of threads reads an archive alike", "[unit][archive]") {
  const std::string bytes = Compressed(Tar({{"a.log", LongLog(), AE_IFREG, {}},
                                            {"b.gz", Compressed(LongLog(), "gz"), AE_IFREG, {}},
                                            {"error.json", "{\"message\": 1}", AE_IFREG, {}}}),
                                       "zst");
  const Scan one = ScanBytes("x", bytes);
  REQUIRE(one.reads.size() == 3);
  for (const std::size_t block_bytes : {256u << 10, 300'001u, 1u << 20, 8u << 20}) {
    for (const unsigned threads : {1u, 2u, 7u}) {
      CAPTURE(block_bytes, threads);
      const Scan other = ScanBytes("x", bytes, {.threads = threads, .block_bytes = block_bytes});
      CHECK(Paths(other) == Paths(one));
      for (std::size_t i = 0; i < one.reads.size(); ++i) {
        CHECK(other.reads[i].tally.bytes == one.reads[i].tally.bytes);
        CHECK(other.reads[i].tally.lines == one.reads[i].tally.lines);
      }
      if (block_bytes != 300'001u || threads == 1) CHECK(other.events.size() > 10);
    }
  }
  for (const unsigned threads : {2u, 7u}) CHECK(ScanBytes("x", bytes, {.threads = threads}).events == one.events);
}

TEST_CASE("folders of a bundle name hosts", "[unit][archive]") {
  struct Row {
    std::vector<std::string> paths;
    std::string hosts;  ///< one word a path, - for none
  };
  const Row rows[] = {
      {{"b.tar:node07/dmesg.txt", "b.tar:node08/dmesg.txt", "b.tar:node08/rank0.log", "b.tar:job.log"},
       "node07 node08 node08 -"},
      {{"case/gpu-a1.example.org/nvidia-smi.txt", "case/gpu-a2.example.org/var/log/kern.log",
        "case/gpu-a3.example.org/messages"},
       "gpu-a1 gpu-a2 gpu-a3"},
      {{"b.zip:in/node1/kern.log", "b.zip:in/node2/logs/rank0.log", "b.zip:in/node3/kern.log"}, "node1 node2 node3"},
      {{"node07/dmesg.txt"}, "-"},
      {{"run-1/dmesg.txt", "run-2/dmesg.txt"}, "- -"},
      {{"rank0/dmesg.txt", "rank1/dmesg.txt"}, "- -"},
      {{"20310405/dmesg.txt", "20310406/dmesg.txt"}, "- -"},
      {{"trial7/job.log", "trial8/job.log", "a7/job.log", "a8/job.log"}, "- - - -"},
      {{"node07/job.log", "node08/job.log"}, "node07 node08"},
      {{"node07/job.log"}, "-"},
      {{"logs/node07/rank_3/stderr.log", "logs/node08/rank_11/stderr.log", "logs/all.log"}, "node07 node08 -"},
      {{"logs/dgx-12/0.log", "logs/dgx-7/0.log", "logs/ip-10-0-0-7/1.log", "logs/ip-10-0-0-8/1.log"},
       "dgx-12 dgx-7 ip-10-0-0-7 ip-10-0-0-8"},
      {{"10.0.0.7/rank0.log", "10.0.0.300/rank0.log", "1.2.3/x", "10.0.0.7.8/x", "1..2.3/x"}, "10.0.0.7 - - - -"},
      {{"gpu0/dmesg.txt", "gpu1/dmesg.txt"}, "- -"},
      {{"node_0/job.log", "node_1/job.log"}, "- -"},
      {{"attempt_0/0/stderr.log", "attempt_0/1/stderr.log", "rank_0/x.log", "rank_1/x.log"}, "- - - -"},
      {{"/tmp/sosreport-node07-2031-04-05-abcdefg/sos_commands/kernel/dmesg",
        "b.tar.xz:sosreport-gpu-a1.example.org-0123456-2031-04-05-xyz/var/log/messages", "sosreport-x/dmesg"},
       "node07 gpu-a1 -"},
      {{"must-gather.local.12/quay-io/nodes/worker-3.ec2.internal/journal.log",
        "must-gather.local.12/quay-io/nodes/logs/x", "must-gather.local.12/version"},
       "worker-3 - -"},
      {{"node07/dmesg.txt", "node08/dmesg.txt", "shared/slurm.out"}, "node07 node08 -"},
      {{"x.tar.zst:inquest-bundle/node07/dmesg.txt", "x.tar.zst:inquest-bundle/node07/files/logs/slurm.out",
        "x.tar.zst:inquest-bundle/node07/dumps/nccl_trace_rank_9"},
       "node07 - -"},
      {{"dmesg.txt", "/dmesg.txt", "a:dmesg.txt", ""}, "- - - -"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.hosts);
    std::string hosts;
    for (const auto& host : FolderHosts(row.paths)) hosts += (hosts.empty() ? "" : " ") + host.value_or("-");
    CHECK(hosts == row.hosts);
  }
  CHECK(BundleHost("b.tar.zst:inquest-bundle/node07.example.org/uname.txt") == "node07");
  CHECK(BundleHost("/tmp/inquest-bundle/node07/uname.txt") == "node07");
  CHECK(BundleHost("/tmp/my-inquest-bundle/node07/uname.txt") == std::nullopt);
  CHECK(BundleHost("/tmp/inquest-bundle/manifest.json") == std::nullopt);
}

TEST_CASE("a support bundle blames the host of the folder", "[unit][archive]") {
  const std::string xid =
      "[ 8123.456789] NVRM: Xid (PCI:0000:4e:00): 79, pid=2113, name=python, GPU has fallen off the bus.\n";
  const std::string quiet = "[    0.000000] Linux version 6.1.0\n";
  for (const auto& [first, second] :
       {std::pair("node07/dmesg.txt", "node08/dmesg.txt"),
        std::pair("inquest-bundle/node07/dmesg.txt", "inquest-bundle/node08/uname.txt")}) {
    const JobFolder folder(
        {{"b.tar.zst", Compressed(Tar({{first, xid, AE_IFREG, {}}, {second, quiet, AE_IFREG, {}}}), "zst")}});
    const Analysis analysis = AnalyzePaths(folder.Files());
    CAPTURE(first);
    const auto& events = analysis.timeline.events;
    const auto named = std::find_if(events.begin(), events.end(), [](const Event& event) {
      return event.origin.host && event.origin.host->value == "node07";
    });
    REQUIRE(named != events.end());
    CHECK(named->origin.host->basis == Basis::kFileName);
    CHECK(analysis.timeline.inputs[named->where.input].path.ends_with(first));
  }
}

}  // namespace archive_test
