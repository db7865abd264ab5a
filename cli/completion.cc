// `inquest completion SHELL`: completion scripts, made from the tables of commands and options.
#include <fmt/format.h>

#include "cli/commands.h"

namespace inquest {
namespace {

/// Words of a command, then of its options.
std::string OptionWords(const Command& command) {
  std::string words;
  for (const Option& option : OptionTable()) {
    if (!Accepts(command, option)) continue;
    words += fmt::format("{}--{}", words.empty() ? "" : " ", option.name);
    if (option.letter != 0) words += fmt::format(" -{}", option.letter);
  }
  return words;
}

std::string CommandWords() {
  std::string words;
  for (const Command& command : Commands().subspan(1))
    words += fmt::format("{}{}", words.empty() ? "" : " ", command.name);
  return words;
}

// ---- bash ------------------------------------------------------------------------------------------------------

std::string BashValues() {
  std::string text;
  for (const Option& option : OptionTable()) {
    if (option.value.empty()) continue;
    const std::string letter = option.letter != 0 ? fmt::format("|-{}", option.letter) : "";
    const std::string complete =
        option.choices != nullptr ? fmt::format("compgen -W \"{}\" -- \"$current\"", fmt::join(option.Choices(), " "))
        : option.value == "DIR"   ? "compgen -d -- \"$current\""
        : option.value == "FILE"  ? "compgen -f -- \"$current\""
        : option.value == "CODE"  ? "compgen -W \"$(inquest explain 2>/dev/null | cut -d' ' -f1)\" -- \"$current\""
                                  : "true";
    text += fmt::format("    --{}{}) mapfile -t COMPREPLY < <({}); return ;;\n", option.name, letter, complete);
  }
  return text;
}

std::string BashCommands() {
  std::string text;
  for (const Command& command : Commands().subspan(1)) {
    std::string words = fmt::format("{}", fmt::join(command.words, " "));
    if (!command.words.empty() && !command.ids.empty()) {
      words = fmt::format("$([ \"$previous\" = show ] && {} || echo {})", command.ids, words);
    } else if (!command.ids.empty()) {
      words = fmt::format("$({})", command.ids);
    }
    text += fmt::format("    {}) words=\"{}\"; options=\"{}\" ;;\n", command.name, words, OptionWords(command));
  }
  return text;
}

std::string Bash() {
  return fmt::format(R"(# bash completion of inquest; use: source <(inquest completion bash)
_inquest() {{
  local current="${{COMP_WORDS[COMP_CWORD]}}" previous="${{COMP_WORDS[COMP_CWORD-1]}}" command="${{COMP_WORDS[1]}}" words options
  case "$previous" in
{}  esac
  [ "$COMP_CWORD" -gt 1 ] || command=
  case "$command" in
{}    *) words=; options="{}" ;;
  esac
  if [[ "$current" == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  elif [ -n "$words" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current"; [ "$COMP_CWORD" -eq 1 ] && compgen -W "{}" -- "$current")
    compopt -o filenames
  fi
}}
complete -F _inquest inquest
)",
                     BashValues(), BashCommands(), OptionWords(Commands().front()), CommandWords());
}

// ---- zsh -------------------------------------------------------------------------------------------------------

/// Inside single quotes and brackets of _arguments.
std::string ZshText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '[' || c == ']' || c == ':') escaped += '\\';
    if (c == '\'') escaped += "'\\'";
    escaped += c;
  }
  return escaped;
}

std::string ZshOptions(const Command& command) {
  std::string text;
  for (const Option& option : OptionTable()) {
    if (!Accepts(command, option)) continue;
    std::string value;
    if (option.choices != nullptr) {
      value = fmt::format(":{}:({})", option.value, fmt::join(option.Choices(), " "));
    } else if (!option.value.empty()) {
      value = fmt::format(":{}:{}", option.value,
                          option.value == "DIR"    ? "_files -/"
                          : option.value == "FILE" ? "_files"
                                                   : "");
    }
    const std::string rest = fmt::format("[{}]{}", ZshText(option.help), value);
    text += fmt::format(" \\\n        '--{}{}'", option.name, rest);
    if (option.letter != 0) text += fmt::format(" \\\n        '-{}{}'", option.letter, rest);
  }
  return text;
}

std::string Zsh() {
  std::string names, cases;
  for (const Command& command : Commands().subspan(1)) {
    names += fmt::format(" '{}:{}'", command.name, ZshText(command.summary));
    const std::string first = !command.words.empty() ? fmt::format("1:word:({})", fmt::join(command.words, " "))
                              : !command.ids.empty() ? fmt::format("1:word:($({}))", command.ids)
                                                     : "*:path:_files";
    const std::string second =
        !command.words.empty() && !command.ids.empty() ? fmt::format(" \"2:id:($({}))\"", command.ids) : "";
    cases += fmt::format("    {})\n      shift words; (( CURRENT-- ))\n      _arguments \"{}\"{}{}\n      ;;\n",
                         command.name, first, second, ZshOptions(command));
  }
  return fmt::format(R"(#compdef inquest
# zsh completion of inquest; use: inquest completion zsh > a folder of $fpath/_inquest
_inquest() {{
  local -a commands
  commands=({})
  case "${{words[2]}}" in
{}    *)
      (( CURRENT == 2 )) && _describe -t commands 'command' commands
      _arguments '*:path:_files'{}
      ;;
  esac
}}
if [ "$funcstack[1]" = _inquest ]; then _inquest "$@"; else compdef _inquest inquest; fi
)",
                     names, cases, ZshOptions(Commands().front()));
}

// ---- fish ------------------------------------------------------------------------------------------------------

std::string FishText(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

std::string FishCondition(const Command& command) {
  return command.name.empty() ? fmt::format("'not __fish_seen_subcommand_from {}'", CommandWords())
                              : fmt::format("'__fish_seen_subcommand_from {}'", command.name);
}

std::string FishOption(const Command& command, const Option& option) {
  std::string line = fmt::format("complete -c inquest -n {} -l {}", FishCondition(command), option.name);
  if (option.letter != 0) line += fmt::format(" -s {}", option.letter);
  if (option.choices != nullptr) {
    line += fmt::format(" -x -a '{}'", fmt::join(option.Choices(), " "));
  } else if (option.value == "FILE") {
    line += " -r";
  } else if (option.value == "DIR") {
    line += " -x -a '(__fish_complete_directories)'";
  } else if (!option.value.empty()) {
    line += " -x";
  }
  return line + fmt::format(" -d {}\n", FishText(option.help));
}

std::string Fish() {
  std::string text =
      "# fish completion of inquest; use: inquest completion fish > ~/.config/fish/completions/inquest.fish\n";
  for (const Command& command : Commands()) {
    if (!command.name.empty())
      text += fmt::format("complete -c inquest -n __fish_use_subcommand -a {} -d {}\n", command.name,
                          FishText(command.summary));
    if (!command.words.empty())
      text +=
          fmt::format("complete -c inquest -f -n {} -a '{}'\n", FishCondition(command), fmt::join(command.words, " "));
    if (!command.ids.empty()) {
      const std::string when = command.words.empty() ? FishCondition(command) : "'__fish_seen_subcommand_from show'";
      text += fmt::format("complete -c inquest -f -n {} -a \"({})\"\n", when, command.ids);
    }
    for (const Option& option : OptionTable()) {
      if (Accepts(command, option)) text += FishOption(command, option);
    }
  }
  return text;
}

struct Shell {
  std::string_view name;
  std::string (*script)();
};
constexpr Shell kScripts[] = {{"bash", Bash}, {"zsh", Zsh}, {"fish", Fish}};

}  // namespace

CommandResult RunCompletion(const Options& options) {
  const auto& words = options.arguments;
  for (const Shell& shell : kScripts) {
    if (words.size() == 1 && words[0] == shell.name) return {.status = 0, .out = shell.script(), .err = ""};
  }
  return CouldNotRun(
      {words.empty() ? "completion wants a shell" : fmt::format("completion knows no '{}'", fmt::join(words, " ")),
       fmt::format("one of {}", fmt::join(options.command->words, ", ")), ""});
}

}  // namespace inquest
