// What a file is that is not read, by its first bytes: it holds no lines, or what inquest said of some.
#include "parsers/binary_form.h"

#include <algorithm>
#include <array>

#include "parsers/pickle.h"

namespace inquest {
namespace {

using std::string_view;

constexpr InputForm kCore{
    "core-dump",
    "a core dump, which is not read; what `gdb -batch -ex 'thread apply all bt' PROGRAM CORE` prints of it is read"};
constexpr InputForm kElf{"elf", "a program or a library, which is not read"};
constexpr InputForm kPickle{"pickle", "pickled Python objects, which are not read"};
constexpr InputForm kNsight{"nsight-report", "a report of Nsight, which is not read"};
constexpr InputForm kSqlite{"sqlite", "an SQLite database, which is not read"};
constexpr InputForm kPacked{"archive", "an archive of a kind that is not opened; unpack it and give the folder"};
constexpr InputForm kPicture{"picture", "a picture, which is not read; copy its text out"};
constexpr InputForm kPdf{"pdf", "a PDF, which is not read; copy its text out"};
constexpr InputForm kArrays{"arrays", "arrays or weights, which are not read"};
constexpr InputForm kReport{"inquest-report", "a report of inquest's, which is passed over"};
constexpr InputForm kBinary{"binary", "mostly no text; read as if it were"};

struct Magic {
  string_view bytes;
  const InputForm* form;
};
constexpr std::array kMagics = {
    Magic{"SQLite format 3", &kSqlite},
    Magic{"7z\xbc\xaf\x27\x1c", &kPacked},
    Magic{"Rar!\x1a\x07", &kPacked},
    Magic{"\x89PNG\r\n\x1a\n", &kPicture},
    Magic{"\xff\xd8\xff", &kPicture},
    Magic{"GIF89a", &kPicture},
    Magic{"%PDF-", &kPdf},
    Magic{"\x89HDF\r\n\x1a\n", &kArrays},
    Magic{"\x93NUMPY", &kArrays},
    Magic{"PAR1", &kArrays},
    Magic{"GGUF", &kArrays},
};

/// What --format wrote beside the logs quotes their lines: it would be a witness of itself.
bool IsReport(string_view head) {
  constexpr std::size_t kLookedAt = 1024;
  head = head.substr(0, kLookedAt);
  const auto has = [head](string_view mark) { return head.find(mark) != string_view::npos; };
  if (head.starts_with('{'))
    return has("\"inquest-verdict-1\"") || has("\"inquest-events-1\"") || has("\"inquest-triage-1\"") ||
           has("\"inquest-evidence-1\"") || has("\"inquest-replay-1\"") ||
           (has("/sarif-schema-") && has("\"name\": \"inquest\""));
  // A trace's first packet: its sequence, that nothing was before, and what it is.
  if (head.starts_with('\n')) return head.find("P\x01h\x01") == 2 && has("inquest-trace-1");
  return head.starts_with("<!-- inquest: ") || (head.starts_with("<?xml") && has("<testsuites name=\"inquest\"")) ||
         (head.starts_with("<!doctype html>") && has("content=\"inquest\""));
}

bool HasBinary(string_view head) { return head.find('\0') != string_view::npos; }

const InputForm* FormOfElf(string_view head) {
  constexpr std::size_t kDataAt = 5, kTypeAt = 16;
  constexpr char kBigEndian = 2, kCoreType = 4;
  if (head.size() < kTypeAt + 2) return &kElf;
  const bool big = head[kDataAt] == kBigEndian;
  return head[kTypeAt + (big ? 1 : 0)] == kCoreType && head[kTypeAt + (big ? 0 : 1)] == 0 ? &kCore : &kElf;
}

}  // namespace

const InputForm* UnreadForm(string_view path, string_view head) {
  constexpr std::size_t kLookedAt = 64 * 1024;
  head = head.substr(0, kLookedAt);
  if (head.starts_with("\x7f"
                       "ELF"))
    return FormOfElf(head);
  if (IsPickle(head)) return &kPickle;
  if (IsReport(head)) return &kReport;
  for (const auto& [bytes, form] : kMagics)
    if (head.starts_with(bytes) && (HasBinary(head) || form == &kPdf)) return form;
  for (const string_view end : {string_view(".nsys-rep"), string_view(".qdrep"), string_view(".ncu-rep")})
    if (path.ends_with(end) && HasBinary(head)) return &kNsight;
  return nullptr;
}

// A log may hold zeros where it was truncated while it was written, and bytes of another code page: neither counts.
const InputForm* BinaryForm(string_view head) {
  constexpr std::size_t kLookedAt = 16 * 1024, kFewest = 64;
  head = head.substr(0, kLookedAt);
  const auto odd = std::count_if(head.begin(), head.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\0' && (c < '\b' || c > '\r') && c != '\x1b';
  });
  return head.size() >= kFewest && static_cast<std::size_t>(odd) * 50 > head.size() ? &kBinary : nullptr;
}

}  // namespace inquest
