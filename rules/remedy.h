// One thing to do about a cause: of which kind, where, as whom; and the places in it that only a case can fill.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace inquest {

struct Remedy {
  enum class Kind : std::uint8_t {
    kAdvice,  ///< no command
    kShell,   ///< a line for bash, as it stands
    kPython,  ///< code for the user's program
    kConfig,  ///< options or lines for a launcher, a container, a service, a file of settings
    kEdit,    ///< a change of a command or file of the user's, which has to be seen in its place
  };
  enum class Where : std::uint8_t {
    kJob,    ///< inside the job: its script, container or environment
    kHost,   ///< the culprit's
    kNodes,  ///< every node of the job
    kLogin,  ///< where jobs are submitted
  };
  /// What a command wants that the case does not tell.
  struct Want {
    std::string name;  ///< the variable in the command, `GPU`
    std::string meaning;
  };

  std::string text, command;  ///< command: with `{gpu}` and the like in the rules, none of them in a verdict
  Kind kind = Kind::kAdvice;
  Where run_on = Where::kJob;
  bool root = false;
  bool destructive = false;  ///< ends processes, resets, reboots, deletes, drains, drops links
  // Of a step of rules/steps.yaml:
  std::string under;              ///< who runs the machines where it is done so; empty: told where nobody says who does
  std::vector<Remedy> otherwise;  ///< how it is done elsewhere
  // Of a verdict:
  std::vector<std::string> hosts;  ///< those that run_on means, where it is kHost and they are known
  std::vector<Want> needs;
};
std::string_view Name(Remedy::Kind kind);
std::string_view Name(Remedy::Where where);

/// Who may run the machines: `slurm`, `kubernetes`, `lsf`, `pbs`.
std::span<const std::string_view> Environments();
/// As it is done there; of a remedy that is the same everywhere, or where `environment` is empty, itself.
Remedy Under(std::string_view environment, Remedy remedy);

/// A name that may stand in a command in braces: `{bus_id}`. Every other brace stands for itself.
struct Placeholder {
  std::string_view name, meaning;
};
std::span<const Placeholder> Placeholders();
/// Why a command cannot be filled: a placeholder between quotes, where its value's own quotes would end them. Empty: it
/// can.
std::string_view WhyNotToFill(Remedy::Kind kind, std::string_view command);

/// Values by placeholder. Several values of one: which of them is meant the case does not tell.
using Facts = std::map<std::string_view, std::vector<std::string>>;
/// The command with its places filled, quoted for bash where it is a shell's. What is not known is a variable without
/// which bash refuses to run it, and stands in `needs`.
Remedy Filled(Remedy remedy, const Facts& facts);
/// `<job>`, `<pid>` and their like in what is to be collected, where one is known for certain.
std::string FilledWords(std::string text, const Facts& facts);
/// One word of a shell's line, whatever stands in it.
std::string ShellWord(std::string_view text);

/// Adds those that are not there yet. The same command is the same remedy, whatever is said of it; the first, a
/// finding's own, says more.
void AddUnique(std::vector<Remedy>& list, const std::vector<Remedy>& more);

}  // namespace inquest
