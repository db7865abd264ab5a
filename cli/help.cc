// `--help`, `inquest help`, `inquest version` and manual pages, all made from the tables of commands and options.
#include <fmt/format.h>

#include <algorithm>

#include "cli/commands.h"
#include "cli/nearest.h"
#include "cli/schemas.h"

namespace inquest {
namespace {

std::string Indented(std::string_view lines) {
  std::string text;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    text.append("  ").append(lines.substr(0, end)).append("\n");
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return text;
}

/// The value as the user types it: one of its choices, or its name.
std::string Value(const Option& option) {
  return option.choices == nullptr ? std::string(option.value) : fmt::format("{}", fmt::join(option.Choices(), "|"));
}

std::string Usage(const Option& option) {
  const std::string usage =
      option.letter != 0 ? fmt::format("-{}, --{}", option.letter, option.name) : fmt::format("    --{}", option.name);
  const std::string value = Value(option);
  return value.empty() ? usage : fmt::format("{} {}", usage, value);
}

// ---- roff --------------------------------------------------------------------------------------------------------

/// Text of a manual page: nothing in it is a request, a hyphen is the one that can be typed, and a line may end behind
/// a |.
std::string Roff(std::string_view text) {
  std::string out;
  bool begins = true;
  for (const char c : text) {
    if (begins && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else if (c == '|') {
      out += "|\\:";
    } else {
      out += c;
    }
    begins = c == '\n';
  }
  return out;
}

std::string PageName(const Command& command) {
  return command.name.empty() ? "inquest" : fmt::format("inquest-{}", command.name);
}

std::string Verbatim(std::string_view title, std::string_view lines) {
  return fmt::format(".SH {}\n.nf\n{}\n.fi\n", title, Roff(lines));
}

}  // namespace

std::string HelpText(const Command& command) {
  std::string text = fmt::format("{}\n\nUsage:\n{}\nExamples:\n{}", command.summary, Indented(command.usage),
                                 Indented(command.examples));
  if (command.name.empty()) {
    text += "\nCommands:\n";
    for (const Command& other : Commands().subspan(1)) text += fmt::format("  {:<12} {}\n", other.name, other.summary);
  }
  text += "\nOptions:\n";
  for (const Option& option : OptionTable()) {
    if (Accepts(command, option)) text += fmt::format("  {:<30} {}\n", Usage(option), option.help);
  }
  if (!command.notes.empty()) text += fmt::format("\n{}\n", command.notes);
  return text;
}

std::string ManualPage(const Command& command) {
  std::string name = PageName(command);
  std::string title = name;
  std::ranges::transform(title, title.begin(),
                         [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  std::string page = fmt::format(".TH {} 1 \"\" \"inquest {}\" \"User Commands\"\n.SH NAME\n{} \\- {}\n", Roff(title),
                                 Roff(Version()), Roff(name), Roff(command.summary));
  page += Verbatim("SYNOPSIS", command.usage);
  if (command.name.empty()) {
    page += ".SH COMMANDS\n";
    for (const Command& other : Commands().subspan(1))
      page += fmt::format(".TP\n.B {}\n{}\n", Roff(other.name), Roff(other.summary));
  }
  page += ".SH OPTIONS\n";
  for (const Option& option : OptionTable()) {
    if (!Accepts(command, option)) continue;
    const std::string letter = option.letter != 0 ? fmt::format("\\fB\\-{}\\fR, ", option.letter) : "";
    const std::string value = Value(option);
    page += fmt::format(".TP\n{}\\fB\\-\\-{}\\fR{}\n{}\n", letter, Roff(option.name),
                        value.empty() ? "" : fmt::format(" \\fI{}\\fR", Roff(value)), Roff(option.help));
  }
  if (!command.notes.empty()) page += fmt::format(".SH NOTES\n{}\n", Roff(command.notes));
  page += Verbatim("EXAMPLES", command.examples);
  std::string others;
  for (const Command& other : Commands()) {
    if (other.name != command.name)
      others += fmt::format("{}\\fB{}\\fR(1)", others.empty() ? "" : ", ", Roff(PageName(other)));
  }
  return page + fmt::format(".SH \"SEE ALSO\"\n{}\n", others);
}

CommandResult RunHelp(const Options& options) {
  const Command* command = &Commands().front();
  if (options.arguments.size() > 1) return CouldNotRun({"help takes one command", "inquest help lists them", ""});
  if (!options.arguments.empty()) {
    const std::string& word = options.arguments.front();
    const auto found = std::ranges::find(Commands().subspan(1), word, &Command::name);
    if (found == Commands().end()) {
      std::vector<std::string_view> names;
      for (const Command& other : Commands().subspan(1)) names.push_back(other.name);
      const auto nearest = Nearest(word, names);
      return CouldNotRun({fmt::format("no command is called '{}'", word),
                          nearest ? fmt::format("did you mean inquest help {}?", *nearest) : "inquest help lists them",
                          ""});
    }
    command = &*found;
  }
  return {.status = 0, .out = options.help_as_man ? ManualPage(*command) : HelpText(*command), .err = ""};
}

CommandResult RunSchema(const Options& options) {
  const std::string which = options.arguments.empty() ? "verdict" : options.arguments.front();
  for (const auto& [name, schema] : Schemas())
    if (name == which) return {.status = 0, .out = std::string(schema), .err = ""};
  return CouldNotRun({fmt::format("there is no schema of '{}'", which),
                      fmt::format("one of {}", fmt::join(options.command->words, ", ")), ""});
}

CommandResult RunVersion(const Options&) {
  return {.status = 0, .out = fmt::format("inquest {}\n", Version()), .err = ""};
}

}  // namespace inquest
