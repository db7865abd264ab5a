// What holds no lines is known by its first bytes; and logs that look a little like it.
#include "parsers/binary_form.h"

#include <string>

#include "tests/catch.h"

namespace inquest {
namespace binary_form_test {

std::string Elf(char data, char type_low, char type_high) {
  std::string head(
      "\x7f"
      "ELF\x02",
      5);
  head += data;
  head.resize(16);
  return head + type_low + type_high + std::string(40, '\0');
}

TEST_CASE("what holds no lines is named by its first bytes", "[binary-form]") {
  using namespace std::string_literals;
  const struct Row {
    std::string path, head, name;
  } rows[] = {
      {"core.4123", Elf(1, 4, 0), "core-dump"},
      {"core", Elf(2, 0, 4), "core-dump"},
      {"libnccl.so.2", Elf(1, 3, 0), "elf"},
      {"x",
       "\x7f"
       "ELF",
       "elf"},
      {"config.json", R"({"pg_config":{},"entries":[]})", ""},
      {"state.pkl", "\x80\x04\x95\x10\0\0\0\0\0\0\0}\x94."s, "pickle"},
      {"run.nsys-rep", "\x01\0\0\0report"s, "nsight-report"},
      {"notes.nsys-rep", "only text", ""},
      {"run.sqlite", "SQLite format 3\0"s, "sqlite"},
      {"job.log", "SQLite format 3 is what we write\n", ""},
      {"logs.7z", "7z\xbc\xaf\x27\x1c\0\x04"s, "archive"},
      {"screen.png", "\x89PNG\r\n\x1a\n\0\0\0"s, "picture"},
      {"why.json", "{\n  \"schema\": \"inquest-verdict-1\",\n", "inquest-report"},
      {"why.jsonl", "{\"kind\": \"verdict\", \"schema\": \"inquest-events-1\",", "inquest-report"},
      {"triage.json", "{\n  \"schema\": \"inquest-triage-1\",\n", "inquest-report"},
      {"case.json", "{\n  \"schema\": \"inquest-evidence-1\",\n", "inquest-report"},
      {"why.md", "<!-- inquest: cuda-oom 97fb1def60183727 -->\n", "inquest-report"},
      {"inquest.xml", "<?xml version=\"1.0\"?>\n<testsuites name=\"inquest\" tests=\"1\"", "inquest-report"},
      {"other.xml", "<?xml version=\"1.0\"?>\n<testsuites name=\"train\" tests=\"1\"", ""},
      {"job.log", "wrote \"inquest-verdict-1\" <!-- inquest: -->\n", ""},
      {"job.log", "PAR1 began\n", ""},
      {"job.log", "\x80 of 100\n", ""},
      {"job.log", "", ""},
  };
  for (const Row& row : rows) {
    CAPTURE(row.path, row.name);
    const InputForm* form = UnreadForm(row.path, row.head);
    CHECK((form == nullptr ? "" : form->name) == row.name);
  }
}

TEST_CASE("what is mostly no text is named and read", "[binary-form]") {
  CHECK(BinaryForm(std::string(4096, '\x01')) != nullptr);
  CHECK(BinaryForm(std::string(4096, '\0') + "step 1\n") == nullptr);
  CHECK(BinaryForm("\x1b[31mred\x1b[0m\tand \x1b[1mbold\x1b[0m\r\n" + std::string(100, 'x')) == nullptr);
  CHECK(BinaryForm("\x01\x02") == nullptr);
}

}  // namespace binary_form_test
}  // namespace inquest
