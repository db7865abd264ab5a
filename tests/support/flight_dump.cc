// Dumps of PyTorch's Flight Recorder, written as its own pickler writes them.
#include "tests/support/flight_dump.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

namespace inquest {
namespace {

/// `2.10` is above `2.9`.
std::pair<int, int> Number(const std::string& version) {
  const std::size_t dot = version.find('.');
  return {std::stoi(version), std::stoi(version.substr(dot + 1))};
}

/// Which keys a version has.
struct Schema {
  explicit Schema(const std::string& version) : number(Number(version)) {}
  bool From(int major, int minor) const { return number >= std::pair(major, minor); }
  std::pair<int, int> number;
};

std::string RanksText(const std::vector<int>& ranks) { return fmt::format("[{}]", fmt::join(ranks, ", ")); }

/// Numbers that a process gives its groups: not the same on every rank, which is why they say nothing to another.
int PgId(const FlightDump& dump, const std::string& name) {
  for (std::size_t i = 0; i < dump.groups.size(); ++i)
    if (dump.groups[i].name == name) return static_cast<int>(i);
  return 0;
}

class Pickler {
 public:
  std::string Write(const FlightDump& dump) {
    const Schema schema(dump.version);
    out_ = "\x80\x02";
    Open('}');
    Text("version");
    Text(dump.version);
    if (schema.From(1, 4)) Groups(dump, schema);
    if (schema.From(2, 3)) Status(dump);
    if (schema.From(2, 7)) {
      Text(schema.From(2, 10) ? "comm_lib_version" : "nccl_version");
      Text("2.27.5");
    }
    Text("entries");
    Open(']');
    for (const DumpEntry& entry : dump.entries) Entry(dump, entry, schema);
    Close('e');
    if (schema.From(1, 4)) {
      Text("nccl_comm_state");
      Open('}');
      Close('u');
    }
    Close('u');
    out_ += '.';
    return std::move(out_);
  }

 private:
  template <class T>
  void Raw(T value) {
    for (std::size_t i = 0; i < sizeof(T); ++i) out_ += static_cast<char>(value >> (8 * i));
  }
  void Open(char code) {
    out_ += code;
    out_ += '(';
  }
  void Close(char code) { out_ += code; }
  void Put() {
    if (memo_ < 256) {
      out_ += 'q';
      out_ += static_cast<char>(memo_);
    } else {
      out_ += 'r';
      Raw(memo_);
    }
    ++memo_;
  }
  void Get(std::uint32_t number) {
    if (number < 256) {
      out_ += 'h';
      out_ += static_cast<char>(number);
    } else {
      out_ += 'j';
      Raw(number);
    }
  }
  void Text(const std::string& text) {
    const auto [it, is_new] = texts_.try_emplace(text, memo_);
    if (!is_new) return Get(it->second);
    out_ += 'X';
    Raw(static_cast<std::uint32_t>(text.size()));
    out_ += text;
    Put();
  }
  void Int(std::int64_t number) {
    if (number >= 0 && number < 256) {
      out_ += 'K';
      out_ += static_cast<char>(number);
    } else if (number >= 0 && number < 65536) {
      out_ += 'M';
      Raw(static_cast<std::uint16_t>(number));
    } else if (number >= INT32_MIN && number <= INT32_MAX) {
      out_ += 'J';
      Raw(static_cast<std::uint32_t>(number));
    } else {
      out_ += "\x8a\x08";
      Raw(static_cast<std::uint64_t>(number));
    }
  }
  void Bool(bool on) { out_ += on ? '\x88' : '\x89'; }
  void None() { out_ += 'N'; }

  void Groups(const FlightDump& dump, const Schema& schema) {
    Text("pg_config");
    Open('}');
    for (std::size_t i = 0; i < dump.groups.size(); ++i) {
      const DumpGroup& group = dump.groups[i];
      if (!schema.From(1, 5)) {
        Int(static_cast<std::int64_t>(i));
        Open(']');
        for (const int rank : group.ranks) Int(rank);
        Close('e');
        continue;
      }
      Text(group.name);
      Open('}');
      Text("name");
      Text(group.name);
      Text("desc");
      Text(group.desc);
      Text("ranks");
      Text(RanksText(group.ranks));
      Close('u');
    }
    Close('u');
  }

  void Status(const FlightDump& dump) {
    Text("pg_status");
    Open('}');
    const std::vector<DumpProgress> progress = ProgressOf(dump);
    for (std::size_t i = 0; i < progress.size(); ++i) {
      Text(std::to_string(i));
      Open('}');
      Text("last_enqueued_collective");
      Int(progress[i].enqueued);
      Text("last_started_collective");
      Int(progress[i].completed);
      Text("last_completed_collective");
      Int(progress[i].completed);
      Close('u');
    }
    Close('u');
  }

  void Frame(const std::string& function, const std::string& file, int line) {
    const auto [it, is_new] = frames_.try_emplace({function, file, line}, 0);
    if (!is_new) return Get(it->second);
    Open('}');
    Text("name");
    Text(function);
    Text("filename");
    Text(file);
    Text("line");
    Int(line);
    Close('u');
    it->second = memo_;
    Put();
  }

  void Sizes(const std::vector<std::vector<std::int64_t>>& sizes) {
    Open(']');
    for (const auto& shape : sizes) {
      Open(']');
      for (const std::int64_t size : shape) Int(size);
      Close('e');
    }
    Close('e');
  }

  void Types(const std::string& type, std::size_t count) {
    Open(']');
    for (std::size_t i = 0; i < count; ++i) Text(type);
    Close('e');
  }

  void Entry(const FlightDump& dump, const DumpEntry& entry, const Schema& schema) {
    const bool done = entry.state == "completed";
    Open('}');
    if (dump.frames) {
      Text("frames");
      Open(']');
      const std::string torch = "/opt/conda/lib/python3.11/site-packages/torch/";
      Frame("all_reduce", torch + "distributed/distributed_c10d.py", 2501);
      Frame("wrapper", torch + "distributed/c10d_logger.py", 83);
      Frame(entry.function, entry.file, entry.line);
      Frame("_call_impl", torch + "nn/modules/module.py", 1562);
      Frame("_wrapped_call_impl", torch + "nn/modules/module.py", 1553);
      Frame("run_layers", "/workspace/model.py", 400 + entry.line % 64);
      for (int i = 0; i < entry.nested; ++i) {
        Frame("_call_impl", torch + "nn/modules/module.py", 1562);
        Frame("_wrapped_call_impl", torch + "nn/modules/module.py", 1553);
        Frame("forward", "/workspace/model.py", 40 + 21 * i);
      }
      Frame("forward", torch + "utils/checkpoint.py", 264);
      Frame("apply", torch + "autograd/function.py", 575);
      Frame("checkpoint", torch + "utils/checkpoint.py", 496);
      Frame("forward", "/workspace/model.py", 377);
      Frame("_call_impl", torch + "nn/modules/module.py", 1562);
      Frame("_wrapped_call_impl", torch + "nn/modules/module.py", 1553);
      Frame("decorate_autocast", torch + "amp/autocast_mode.py", 44);
      Frame("inner", "/workspace/loop.py", 118);
      Frame("main", entry.file, 301);
      Frame("<module>", entry.file, 340);
      Close('e');
    }
    if (schema.From(1, 4)) {
      Text("record_id");
      Int(static_cast<std::int64_t>(entry.record));
    }
    Text("pg_id");
    Int(PgId(dump, entry.group));
    if (schema.From(1, 5)) {
      Text("process_group");
      Text(entry.group);
      Text(entry.desc);
      out_ += '\x86';
    }
    if (schema.From(2, 1)) {
      Text("collective_seq_id");
      Int(entry.seq);
      Text("p2p_seq_id");
      Int(entry.p2p_seq);
    } else {
      Text("seq_id");
      Int(entry.is_p2p ? entry.p2p_seq : entry.seq);
    }
    if (schema.From(1, 4)) {
      Text("op_id");
      Int(entry.op_id);
    }
    Text("profiling_name");
    Text(entry.name);
    Text("time_created_ns");
    Int(entry.created_ns);
    Text("input_sizes");
    Sizes(entry.inputs);
    if (schema.From(2, 1)) {
      Text("input_dtypes");
      Types(entry.dtype, entry.inputs.size());
    }
    Text("output_sizes");
    Sizes(entry.outputs);
    if (schema.From(2, 1)) {
      Text("output_dtypes");
      Types(entry.dtype, entry.outputs.size());
    }
    Text("state");
    Text(entry.state);
    Text("time_discovered_started_ns");
    if (entry.started)
      Int(entry.created_ns + 1'000'000);
    else
      None();
    Text("time_discovered_completed_ns");
    if (done)
      Int(entry.created_ns + 90'000'000);
    else
      None();
    Text("retired");
    Bool(entry.retired);
    if (schema.From(2, 4)) {
      Text("timeout_ms");
      Int(entry.timeout_ms);
    }
    if (schema.From(2, 1)) {
      Text("is_p2p");
      Bool(entry.is_p2p);
    }
    if (schema.From(2, 10)) {
      Text("thread_id");
      Text("140213");
      Text("thread_name");
      Text("pt_main_thread");
    }
    Close('u');
  }

  std::string out_;
  std::uint32_t memo_ = 0;
  std::map<std::string, std::uint32_t> texts_;
  std::map<std::tuple<std::string, std::string, int>, std::uint32_t> frames_;
};

std::string Shapes(const std::vector<std::vector<std::int64_t>>& sizes) {
  std::vector<std::string> out;
  for (const auto& shape : sizes) out.push_back(fmt::format("[{}]", fmt::join(shape, ",")));
  return fmt::format("[{}]", fmt::join(out, ","));
}

}  // namespace

std::vector<DumpProgress> ProgressOf(const FlightDump& dump) {
  if (!dump.progress.empty()) return dump.progress;
  std::vector<DumpProgress> out(dump.groups.size());
  for (const DumpEntry& entry : dump.entries) {
    if (entry.is_p2p || dump.groups.empty()) continue;
    DumpProgress& of = out[static_cast<std::size_t>(PgId(dump, entry.group))];
    of.enqueued = std::max(of.enqueued, entry.seq);
    if (entry.state == "completed") of.completed = std::max(of.completed, entry.seq);
  }
  return out;
}

std::string PickleOf(const FlightDump& dump) { return Pickler().Write(dump); }

std::string JsonOf(const FlightDump& dump) {
  const auto types = [](const std::string& type, std::size_t count) {
    return fmt::format("[{}]", fmt::join(std::vector<std::string>(count, '"' + type + '"'), ","));
  };
  std::vector<std::string> groups, status, entries;
  const std::vector<DumpProgress> progress = ProgressOf(dump);
  for (std::size_t i = 0; i < progress.size(); ++i)
    status.push_back(fmt::format(
        R"("{}":{{"last_enqueued_collective":"{}","last_started_collective":"{}","last_completed_collective":"{}"}})",
        i, progress[i].enqueued, progress[i].completed, progress[i].completed));
  for (const DumpGroup& group : dump.groups)
    groups.push_back(fmt::format(R"("{0}":{{"name":"{0}","desc":"{1}","ranks":"{2}"}})", group.name, group.desc,
                                 RanksText(group.ranks)));
  for (const DumpEntry& entry : dump.entries)
    entries.push_back(fmt::format(
        R"({{"record_id":{},"pg_id":{},"process_group":["{}","{}"],"collective_seq_id":{},"p2p_seq_id":{},"op_id":{},)"
        R"("profiling_name":"{}","time_created_ns":{},"input_sizes":{},"input_dtypes":{},"output_sizes":{},)"
        R"("output_dtypes":{},"state":"{}","time_discovered_started_ns":0,"time_discovered_completed_ns":{},)"
        R"("retired":{},"timeout_ms":{},"is_p2p":{}}})",
        entry.record, PgId(dump, entry.group), entry.group, entry.desc, entry.seq, entry.p2p_seq, entry.op_id,
        entry.name, entry.created_ns, Shapes(entry.inputs), types(entry.dtype, entry.inputs.size()),
        Shapes(entry.outputs), types(entry.dtype, entry.outputs.size()), entry.state,
        entry.state == "completed" ? entry.created_ns + 90'000'000 : 0, entry.retired, entry.timeout_ms, entry.is_p2p));
  // As PyTorch's: keys in alphabetical order, `entries` in front of what they refer to.
  return nlohmann::json::parse(fmt::format(R"({{"version":"{}","pg_config":{{{}}},"pg_status":{{{}}},"entries":[{}]}})",
                                           dump.version, fmt::join(groups, ","), fmt::join(status, ","),
                                           fmt::join(entries, ",")))
      .dump();
}

}  // namespace inquest
