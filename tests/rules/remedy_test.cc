// Commands of remedies: filled with what a case tells, quoted whatever it says, and refused by bash where a value is
// missing; and all commands of the rules, which bash takes.
#include "rules/remedy.h"

#include <sys/wait.h>
#include <fmt/format.h>

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "rules/rule_book.h"
#include "tests/catch.h"
#include "tests/support/run_job.h"

namespace inquest {
namespace remedy_test {

Remedy Shell(std::string command) {
  Remedy out;
  out.text = "Do it.";
  out.command = std::move(command);
  out.kind = Remedy::Kind::kShell;
  out.run_on = Remedy::Where::kHost;
  return out;
}

struct Ran {
  int status = 0;
  std::string out;
};
Ran Bash(const std::string& script, const std::string& options = "") {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / fmt::format("inquest-{}.sh", ::getpid());
  std::ofstream(path) << script << '\n';
  std::FILE* const pipe = ::popen(fmt::format("bash {} {} 2>&1", options, path.string()).c_str(), "r");
  REQUIRE(pipe != nullptr);
  Ran ran;
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) ran.out += static_cast<char>(c);
  ran.status = WEXITSTATUS(::pclose(pipe));
  std::filesystem::remove(path);
  return ran;
}

TEST_CASE("remedy: what a case tells stands in the command, what it does not is a variable", "[unit][remedy]") {
  const Facts facts = {{"host", {"node07"}}, {"gpu", {"0000:4e:00.0"}}, {"pid", {"1", "2"}}};
  const Remedy filled =
      Filled(Shell("ssh {host} nvidia-smi -i {gpu}; kill -0 {pid}; ls /dev/{hca}; echo ${X} {other} {a,b}"), facts);
  CHECK(filled.command ==
        "ssh node07 nvidia-smi -i 0000:4e:00.0; kill -0 \"${PID:?}\"; ls /dev/\"${HCA:?}\"; echo ${X} {other} {a,b}");
  CHECK(filled.hosts == std::vector<std::string>{"node07"});
  REQUIRE(filled.needs.size() == 2);
  CHECK(filled.needs[0].name == "PID");
  CHECK(filled.needs[0].meaning == "the process on that host; here: 1, 2");
  CHECK(filled.needs[1].name == "HCA");
  Remedy option = Shell("--rdzv-endpoint={master}:29500");
  option.kind = Remedy::Kind::kConfig;
  CHECK(Filled(option, facts).command == "--rdzv-endpoint=<MASTER>:29500");
}

TEST_CASE("remedy: what is to be collected names what is known for certain", "[unit][remedy]") {
  const Facts facts = {{"job", {"88123"}}, {"pid", {"1", "2"}}, {"host", {"a; b"}}};
  CHECK(FilledWords("sacct -j <job>; <job> of <host>, py-spy dump --pid <pid>, <other>", facts) ==
        "sacct -j 88123; 88123 of 'a; b', py-spy dump --pid <pid>, <other>");
}

TEST_CASE("remedy: no value is more than a word to bash", "[unit][remedy]") {
  for (const char* value : {"node07; touch /tmp/x", "$(id)", "`id`", "a'b\"c", "a b", "~", "*", "=x", "\\", "#x",
                            "{a,b}", "!!", "${HOME}", "&&", "a\\'; id #"}) {
    INFO(value);
    const Remedy filled = Filled(Shell("printf '[%s]' {host}"), {{"host", {value}}});
    const Ran ran = Bash(filled.command);
    CHECK(ran.status == 0);
    CHECK(ran.out == fmt::format("[{}]", value));
  }
  for (const char* value : {"-rf", "a\nb", "\x1b[31m", "a\tb", "", "\xe2\x80\xae"}) {
    CAPTURE(value);
    CHECK(Filled(Shell("echo {host}"), {{"host", {value}}}).needs.size() == 1);
  }
}

TEST_CASE("remedy: bash refuses a line that lacks a value", "[unit][remedy]") {
  const Ran ran = Bash("unset GPU; " + Filled(Shell("echo reset {gpu}"), {}).command);
  CHECK(ran.status != 0);
  CHECK(ran.out.find("reset") == std::string::npos);
  CHECK(Bash("GPU=3; " + Filled(Shell("echo reset {gpu}"), {}).command).out == "reset 3\n");
}

TEST_CASE("remedy: where a placeholder cannot stand", "[unit][remedy]") {
  const auto why = [](const char* command) { return WhyNotToFill(Remedy::Kind::kShell, command); };
  CHECK(why("a {host} 'b' \"c\" d\\' {gpu}").empty());
  CHECK(!why("ssh x 'ls {host}'").empty());
  CHECK(!why("echo \"{host}\"").empty());
  CHECK(!why("echo 'a").empty());
  CHECK(WhyNotToFill(Remedy::Kind::kPython, "f('{host}')").empty());
}

/// All that the rules advise, each once.
std::vector<Remedy> AllRemedies(const RuleBook& book) {
  std::vector<Remedy> out;
  const auto add = [&](const Remedy& remedy) {
    if (!remedy.command.empty()) out.push_back(remedy);
    for (const Remedy& way : remedy.otherwise)
      if (!way.command.empty()) out.push_back(way);
  };
  for (const Rule& rule : book.rules)
    for (const Remedy& remedy : rule.remedies) add(remedy);
  for (const Cause& cause : book.causes)
    for (const Remedy& remedy : cause.remedies) add(remedy);
  for (const FindingRule& finding : book.findings)
    for (const Grade& grade : finding.grades)
      for (const Advice& advice : grade.remedies) add(advice.remedy);
  return out;
}

TEST_CASE("remedy: bash takes every command of the rules, filled or not", "[unit][remedy]") {
  Facts all;
  for (const Placeholder& place : Placeholders()) all[place.name] = {"it's; here"};
  const std::vector<Remedy> remedies = AllRemedies(BuiltInRules());
  REQUIRE(remedies.size() > 300);
  for (const Facts& facts : {Facts(), all}) {
    std::string script;
    for (std::size_t i = 0; i < remedies.size(); ++i)
      if (remedies[i].kind == Remedy::Kind::kShell)
        script += fmt::format("f{}() {{\n{}\n}}\n", i, Filled(remedies[i], facts).command);
    const Ran ran = Bash(script, "-n");
    INFO(ran.out);
    CHECK(ran.status == 0);
  }
  for (const Remedy& remedy : remedies) {
    INFO(remedy.command);
    const std::string& command = remedy.command;
    CHECK(command.find("sudo ") == std::string::npos);  // needs_root says it
    if (remedy.kind != Remedy::Kind::kShell) continue;
    CHECK(command.find("...") == std::string::npos);
    // `<name>` would be read as a redirection
    for (std::size_t open = command.find('<'); open != std::string::npos; open = command.find('<', open + 1))
      CHECK_FALSE((open + 1 < command.size() && command[open + 1] >= 'a' && command[open + 1] <= 'z'));
  }
}

}  // namespace remedy_test
}  // namespace inquest
