// One thing to do about a cause: of which kind, where, as whom; and the places in it that only a case can fill.
#include "rules/remedy.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace inquest {
namespace {

constexpr Placeholder kPlaceholders[] = {
    {"adapter", "PCI address or name of the network adapter, as mst status -v or ibv_devices lists it"},
    {"bus_id", "PCI bus id of the GPU, as nvidia-smi -q has it"},
    {"gpu", "index of the GPU, as nvidia-smi -L numbers them"},
    {"hca", "name of the RDMA adapter, as ibv_devices lists it"},
    {"host", "the node, by the name that the scheduler knows"},
    {"interface", "network interface over which all nodes of the job reach one another, as ip -br addr lists it"},
    {"job", "the scheduler's number or name of the job"},
    {"master", "host of rank 0, or of the rendezvous"},
    {"master_port", "the port there"},
    {"netdev", "network device of the adapter, as ip -br link lists it"},
    {"path", "the file or folder that the message names"},
    {"peer", "the host or address that did not answer"},
    {"pid", "the process on that host"},
    {"port", "the port that the message names"},
    {"rank", "the rank that is blamed"},
    {"xid", "number of the Xid"},
};

struct Part {
  std::string_view text;
  const Placeholder* place = nullptr;  ///< else the text as it stands
};

std::vector<Part> PartsOfCommand(std::string_view command) {
  std::vector<Part> parts;
  std::size_t done = 0;
  for (std::size_t open = command.find('{'); open != std::string_view::npos; open = command.find('{', open + 1)) {
    const std::size_t close = command.find('}', open);
    if (close == std::string_view::npos) break;
    const std::string_view name = command.substr(open + 1, close - open - 1);
    const auto place = std::ranges::find(kPlaceholders, name, &Placeholder::name);
    if (place == std::end(kPlaceholders) || (open > 0 && command[open - 1] == '$')) continue;
    parts.push_back({command.substr(done, open - done)});
    parts.push_back({command.substr(open, close + 1 - open), place});
    done = close + 1;
    open = close;
  }
  parts.push_back({command.substr(done)});
  return parts;
}

/// Nor is it an option to whoever reads it.
bool IsPlain(std::string_view value) {
  return !value.empty() && value.front() != '-' &&
         std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~'; });
}

/// Every shell has a PATH of its own, so that it would not refuse.
std::string Variable(std::string_view name) {
  std::string out(name == "path" ? "file" : name);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return out;
}

}  // namespace

std::string_view Name(Remedy::Kind kind) {
  static constexpr std::string_view kNames[] = {"advice", "shell", "python", "config", "edit"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view Name(Remedy::Where where) {
  static constexpr std::string_view kNames[] = {"job", "host", "nodes", "login"};
  return kNames[static_cast<std::size_t>(where)];
}

std::span<const std::string_view> Environments() {
  static constexpr std::string_view kNames[] = {"slurm", "kubernetes", "lsf", "pbs"};
  return kNames;
}

Remedy Under(std::string_view environment, Remedy remedy) {
  if (remedy.otherwise.empty()) return remedy;
  const auto own = std::ranges::find(remedy.otherwise, environment, &Remedy::under);
  if (!environment.empty() && own != remedy.otherwise.end()) return *own;
  remedy.otherwise.clear();
  return remedy;
}

std::span<const Placeholder> Placeholders() { return kPlaceholders; }

std::string_view WhyNotToFill(Remedy::Kind kind, std::string_view command) {
  if (kind != Remedy::Kind::kShell) return {};
  char quote = 0;
  for (const Part& part : PartsOfCommand(command)) {
    if (part.place != nullptr) {
      if (quote != 0) return "a placeholder stands between quotes";
      continue;
    }
    for (std::size_t i = 0; i < part.text.size(); ++i) {
      const char c = part.text[i];
      if (c == '\\' && quote != '\'')
        ++i;
      else if (quote != 0)
        quote = c == quote ? char{0} : quote;
      else if (c == '\'' || c == '"')
        quote = c;
    }
  }
  return quote == 0 ? std::string_view() : "a quote does not end";
}

std::string ShellWord(std::string_view text) {
  constexpr std::string_view kSafe = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._/:@%+=,-";
  if (!text.empty() && text.front() != '=' && text.find_first_not_of(kSafe) == std::string_view::npos)
    return std::string(text);
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'')
      out += "'\\''";
    else
      out += c;
  }
  return out + "'";
}

std::string FilledWords(std::string text, const Facts& facts) {
  for (const auto& [name, values] : facts) {
    if (values.size() != 1) continue;
    const std::string place = fmt::format("<{}>", name);
    for (std::size_t at = text.find(place); at != std::string::npos; at = text.find(place, at)) {
      const std::string word = ShellWord(values.front());  // it may be pasted into a shell
      text.replace(at, place.size(), word);
      at += word.size();
    }
  }
  return text;
}

Remedy Filled(Remedy remedy, const Facts& facts) {
  const bool shell = remedy.kind == Remedy::Kind::kShell;
  if (remedy.run_on == Remedy::Where::kHost && !remedy.command.empty())
    if (const auto hosts = facts.find("host"); hosts != facts.end()) remedy.hosts = hosts->second;
  std::string command;
  for (const Part& part : PartsOfCommand(remedy.command)) {
    if (part.place == nullptr) {
      command += part.text;
      continue;
    }
    const std::string_view name = part.place->name;
    const auto known = facts.find(name);
    const bool one = known != facts.end() && known->second.size() == 1 && IsPlain(known->second.front());
    if (one) {
      command += shell ? ShellWord(known->second.front()) : known->second.front();
      continue;
    }
    const std::string variable = Variable(name);
    command += shell ? fmt::format("\"${{{}:?}}\"", variable) : fmt::format("<{}>", variable);
    if (std::ranges::find(remedy.needs, variable, &Remedy::Want::name) != remedy.needs.end()) continue;
    std::string meaning(part.place->meaning);
    if (known != facts.end() && known->second.size() > 1)
      meaning += fmt::format("; here: {}", fmt::join(known->second, ", "));
    else if (const auto rank = facts.find("rank"); name == "pid" && rank != facts.end() && rank->second.size() == 1)
      meaning += fmt::format("; grep -lzx RANK={} /proc/[0-9]*/environ finds it", rank->second.front());
    remedy.needs.push_back({variable, std::move(meaning)});
  }
  remedy.command = std::move(command);
  return remedy;
}

void AddUnique(std::vector<Remedy>& list, const std::vector<Remedy>& more) {
  const auto same = [](const Remedy& a, const Remedy& b) {
    return a.text == b.text || (!a.command.empty() && a.command == b.command);
  };
  for (const Remedy& item : more)
    if (std::none_of(list.begin(), list.end(), [&](const Remedy& r) { return same(r, item); })) list.push_back(item);
}

}  // namespace inquest
