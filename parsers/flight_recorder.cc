// Dumps of PyTorch's Flight Recorder: what a rank had enqueued, started and completed.
#include "parsers/flight_recorder.h"

#include <simdjson.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "parsers/data_value.h"
#include "parsers/pickle.h"

namespace inquest {
namespace {

using std::string_view;
using Kind = DataValue::Kind;

constexpr std::size_t kPoolAtMost = std::size_t{1} << 30;

// ---- JSON, as the same values -----------------------------------------------------------------------------------

namespace json = simdjson;

constexpr int kDeepest = 16;

bool FromJson(json::dom::element from, DataPool& pool, int depth, DataValue& to);

bool NodeOf(Kind kind, DataPool& pool, DataValue& to) {
  to.kind = kind;
  to.node = pool.NewNode();
  return to.node != nullptr;
}

bool FromJson(json::dom::element from, DataPool& pool, int depth, DataValue& to) {
  if (depth > kDeepest) return true;  // nothing of ours lies so deep
  switch (from.type()) {
    case json::dom::element_type::ARRAY: {
      if (!NodeOf(Kind::kList, pool, to)) return false;
      for (const json::dom::element item : json::dom::array(from)) {
        DataValue value;
        if (!FromJson(item, pool, depth + 1, value) || !pool.Append(*to.node, &value, 1)) return false;
      }
      return true;
    }
    case json::dom::element_type::OBJECT: {
      if (!NodeOf(Kind::kDict, pool, to)) return false;
      for (const auto& field : json::dom::object(from)) {
        std::array<DataValue, 2> pair = {DataValue::Text(field.key), DataValue{}};
        if (!FromJson(field.value, pool, depth + 1, pair[1]) || !pool.Append(*to.node, pair.data(), 2)) return false;
      }
      return true;
    }
    case json::dom::element_type::STRING:
      to = DataValue::Text(string_view(from));
      return true;
    case json::dom::element_type::INT64:
      to = DataValue::Int(std::int64_t(from));
      return true;
    case json::dom::element_type::BOOL:
      to = DataValue::Bool(bool(from));
      return true;
    case json::dom::element_type::DOUBLE:
      to = DataValue::Float(double(from));
      return true;
    default:
      return true;
  }
}

/// A document that ends before its end, up to its last whole entry or whole value of a key, and closed there; empty:
/// there is none.
std::string ClosedWhereCut(string_view bytes) {
  std::string open;  // brackets
  std::size_t good = 0;
  string_view closing;
  bool in_text = false;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char c = bytes[i];
    if (in_text) {
      if (c == '\\')
        ++i;
      else
        in_text = c != '"';
    } else if (c == '"') {
      in_text = true;
    } else if (c == '{' || c == '[') {
      open += c;
      if (open.size() > 1024) return {};
    } else if (c == '}' || c == ']') {
      if (open.empty()) return {};
      open.pop_back();
      if (open == "{") closing = "}";
      if (open == "{[") closing = "]}";
      if (open == "{" || open == "{[") good = i + 1;
    }
  }
  return open.empty() || good == 0 ? std::string() : std::string(bytes.substr(0, good)).append(closing);
}

// ---- the keys ---------------------------------------------------------------------------------------------------

const DataValue* Find(const DataValue& dict, string_view key) {
  if (!dict.is(Kind::kDict)) return nullptr;
  for (std::uint32_t i = 0; i + 1 < dict.node->size; i += 2)
    if (dict.node->items[i].str() == key) return &dict.node->items[i + 1];
  return nullptr;
}

string_view TextUnder(const DataValue& dict, string_view key) {
  const DataValue* value = Find(dict, key);
  return value == nullptr ? string_view() : value->str();
}

/// A number, or a text that is one: JSON has both.
std::optional<std::int64_t> NumberInText(string_view text);
inline std::optional<std::int64_t> NumberOf(const DataValue& value) {
  if (value.is(Kind::kInt)) return value.number;
  return value.is(Kind::kText) ? NumberInText(value.str()) : std::nullopt;
}
std::optional<std::int64_t> NumberInText(string_view text) {
  std::int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

bool IsTrue(const DataValue& value) { return value.is(Kind::kBool) && value.number != 0; }

/// `[0, 1, 2]` as text, or a list of numbers. One that is none ends it: the place of a rank is its number in the group.
std::vector<int> RanksOf(const DataValue& value) {
  std::vector<int> out;
  if (value.is(Kind::kList)) {
    for (std::uint32_t i = 0; i < value.node->size; ++i) {
      const auto rank = NumberOf(value.node->items[i]);
      if (!rank || !IsRank(*rank)) break;
      out.push_back(static_cast<int>(*rank));
    }
    return out;
  }
  const string_view text = value.str();
  for (std::size_t at = 0; at < text.size();) {
    const bool digit = text[at] >= '0' && text[at] <= '9';
    int rank = 0;
    if (!digit) {
      ++at;
      continue;
    }
    const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), rank);
    if (error != std::errc() || !IsRank(rank)) break;
    out.push_back(rank);
    at = static_cast<std::size_t>(end - text.data());
  }
  return out;
}

enum class Field : std::uint8_t {
  kOther,
  kFrames,
  kPgId,
  kGroup,
  kSeq,
  kP2pSeq,
  kName,
  kCreated,
  kInputs,
  kOutputs,
  kInputTypes,
  kOutputTypes,
  kState,
  kStarted,
  kEnded,
  kRetired,
  kTimeout,
  kIsP2p,
};

constexpr std::pair<string_view, Field> kFields[] = {
    {"frames", Field::kFrames},
    {"pg_id", Field::kPgId},
    {"process_group", Field::kGroup},
    {"collective_seq_id", Field::kSeq},
    {"seq_id", Field::kSeq},
    {"p2p_seq_id", Field::kP2pSeq},
    {"profiling_name", Field::kName},
    {"time_created_ns", Field::kCreated},
    {"input_sizes", Field::kInputs},
    {"output_sizes", Field::kOutputs},
    {"input_dtypes", Field::kInputTypes},
    {"output_dtypes", Field::kOutputTypes},
    {"state", Field::kState},
    {"time_discovered_started_ns", Field::kStarted},
    {"time_discovered_completed_ns", Field::kEnded},
    {"retired", Field::kRetired},
    {"timeout_ms", Field::kTimeout},
    {"is_p2p", Field::kIsP2p},
};

Field FieldOf(string_view key) {
  for (const auto& [name, field] : kFields)
    if (name == key) return field;
  return Field::kOther;
}

class Mix {
 public:
  void Add(std::uint64_t value) {
    hash_ = (hash_ ^ value) * 0x9e3779b97f4a7c15U;
    hash_ ^= hash_ >> 29;
  }
  void Add(string_view text) { Add(std::hash<string_view>()(text)); }
  std::uint64_t value() const { return hash_; }

 private:
  std::uint64_t hash_ = 0x51ed270b;
};

/// One entry of the dump, as it lies there.
class Entry {
 public:
  void Set(Field field, const DataValue& value) { values_[static_cast<std::size_t>(field)] = &value; }
  const DataValue& operator[](Field field) const {
    static constexpr DataValue kNone{};
    const DataValue* value = values_[static_cast<std::size_t>(field)];
    return value == nullptr ? kNone : *value;
  }
  std::optional<std::int64_t> Number(Field field) const { return NumberOf((*this)[field]); }

 private:
  std::array<const DataValue*, static_cast<std::size_t>(Field::kIsP2p) + 1> values_{};
};

// Entries repeat one another: keys in one order, a few hundred forms of calls and call sites. Each is read once and
// then known again, keys by where their text lies.
class Reader {
 public:
  explicit Reader(std::size_t bytes) : left_(kWorkAByte * bytes + (1 << 16)) {}
  CallTrace Run(const DataValue& root) {
    out_.recorder = "flight-recorder";
    out_.sites.emplace_back();
    out_.version = std::string(TextUnder(root, "version"));
    out_.nccl_version = std::string(TextUnder(root, "comm_lib_version"));
    if (out_.nccl_version.empty()) out_.nccl_version = std::string(TextUnder(root, "nccl_version"));
    if (const DataValue* config = Find(root, "pg_config")) ReadGroups(*config);
    if (const DataValue* entries = Find(root, "entries"); entries != nullptr && entries->is(Kind::kList)) {
      out_.entries = entries->node->size;
      out_.calls.reserve(entries->node->size);
      for (std::uint32_t i = 0; i < entries->node->size; ++i) ReadEntry(entries->node->items[i], i + 1);
    }
    if (const DataValue* status = Find(root, "pg_status")) ReadStatus(*status);
    if (spent_) out_.problem = "refers to the same over and over, as no recorder does; what came before is read";
    return std::move(out_);
  }

 private:
  /// What is in a dump once can be referred to a million times, and that in what is referred to. So much is looked at
  /// for each byte that it has, and a hundredth of it kept.
  static constexpr std::uint64_t kWorkAByte = 16, kKeeping = 64;
  bool Spend(std::uint64_t work) {
    spent_ = spent_ || work > left_;
    left_ -= spent_ ? 0 : work;
    return !spent_;
  }
  static std::uint64_t SizeOf(const DataValue& value) {
    return value.is(Kind::kText) ? value.size : value.is(Kind::kList) || value.is(Kind::kDict) ? value.node->size : 0;
  }

  /// 1.4: number -> list of ranks; from 1.5 on: name -> {name, desc, ranks}.
  void ReadGroups(const DataValue& config) {
    if (!config.is(Kind::kDict)) return;
    for (std::uint32_t i = 0; i + 1 < config.node->size; i += 2) {
      const DataValue &key = config.node->items[i], &value = config.node->items[i + 1];
      const DataValue* ranks = value.is(Kind::kDict) ? Find(value, "ranks") : &value;
      const bool torn = (value.is(Kind::kDict) || value.is(Kind::kList)) && value.node->torn;
      if (torn || !Spend(SizeOf(key) + SizeOf(value) + (ranks == nullptr ? 0 : SizeOf(*ranks)))) return;
      const std::string name = key.is(Kind::kText) ? std::string(key.str())
                               : NumberOf(key)     ? std::to_string(*NumberOf(key))
                                                   : std::string();
      CallTrace::Group& group = out_.groups[GroupNumber(name)];
      group.desc = std::string(TextUnder(value, "desc"));
      if (ranks != nullptr) group.ranks = RanksOf(*ranks);
    }
  }

  std::uint32_t GroupNumber(const std::string& name) {
    const auto [it, is_new] = group_numbers_.try_emplace(name, static_cast<std::uint32_t>(out_.groups.size()));
    if (is_new) {
      out_.groups.emplace_back();
      out_.groups.back().name = name;
      blocks_.emplace_back();
    }
    return it->second;
  }

  void ReadStatus(const DataValue& status) {
    if (!status.is(Kind::kDict)) return;
    out_.has_status = true;
    for (std::uint32_t i = 0; i + 1 < status.node->size; i += 2) {
      if (!Spend(SizeOf(status.node->items[i + 1]))) return;
      const auto id = NumberOf(status.node->items[i]);
      const auto group = id ? group_by_id_.find(*id) : group_by_id_.end();
      const auto number = [&](string_view key) -> std::optional<std::int64_t> {
        const DataValue* value = Find(status.node->items[i + 1], key);
        const auto out = value == nullptr ? std::nullopt : NumberOf(*value);
        return out && *out >= 0 ? out : std::nullopt;  // -1: none ever
      };
      if (group == group_by_id_.end()) {
        out_.enqueued_elsewhere = std::max(out_.enqueued_elsewhere, number("last_enqueued_collective"));
        continue;
      }
      CallTrace::Group& to = out_.groups[group->second];
      to.last_enqueued = number("last_enqueued_collective");
      to.last_started = number("last_started_collective");
      to.last_completed = number("last_completed_collective");
    }
  }

  Field FieldAt(std::uint32_t place, const DataValue& key) {
    if (place < known_.size() && known_[place].first == key.text) return known_[place].second;
    const Field field = FieldOf(key.str());
    if (place >= known_.size()) known_.resize(place + 1, {nullptr, Field::kOther});
    known_[place] = {key.text, field};
    return field;
  }

  Entry Fields(const DataNode& node) {
    Entry out;
    for (std::uint32_t i = 0; i + 1 < node.size; i += 2)
      if (node.items[i].is(Kind::kText)) out.Set(FieldAt(i / 2, node.items[i]), node.items[i + 1]);
    return out;
  }

  void ReadEntry(const DataValue& value, std::uint32_t place) {
    if (!value.is(Kind::kDict) || value.node->torn || !Spend(1 + value.node->size)) return;
    const Entry entry = Fields(*value.node);
    const auto own = entry.Number(Field::kSeq), p2p_seq = entry.Number(Field::kP2pSeq);
    const auto& seq = own ? own : p2p_seq;
    if (!entry[Field::kName].is(Kind::kText) || !seq || !Counts(own) || !Counts(p2p_seq)) return;
    const string_view state = entry[Field::kState].str();
    CallTrace::Call call;
    call.place = place;
    call.group = GroupOf(entry);
    call.form = FormOf(entry);
    call.state = state == "completed" ? CallTrace::State::kCompleted
                 : state == "started" ? CallTrace::State::kStarted
                                      : CallTrace::State::kScheduled;
    const bool done = call.state == CallTrace::State::kCompleted;
    call.gave_up = !done && IsTrue(entry[Field::kRetired]);
    call.created_ns = TimeIn(entry, Field::kCreated);
    call.started_ns = TimeIn(entry, Field::kStarted);
    if (done) call.ended_ns = TimeIn(entry, Field::kEnded);
    call.site = SiteOf(entry[Field::kFrames]);
    if (spent_) return;
    const Named& named = names_[call.form];
    call.coalesced = named.coalesced;
    call.pairwise = named.to != CallTrace::Peer::kNone || IsTrue(entry[Field::kIsP2p]);
    call.to = named.to;
    call.peer = named.peer;
    call.seq = call.pairwise && p2p_seq ? *p2p_seq : *seq;
    JoinBlock(call, *seq, p2p_seq.value_or(0));
    if (call.to != CallTrace::Peer::kNone) LearnRank(call.group, named.self);
    if (call.state == CallTrace::State::kStarted || call.started_ns > 0) out_.timed = true;
    if (!done) out_.timeout_ms = std::max(out_.timeout_ms, entry.Number(Field::kTimeout).value_or(0));
    out_.calls.push_back(call);
  }

  /// A number of a counter, or none: no counter comes so far.
  static bool Counts(const std::optional<std::int64_t>& number) {
    return !number || (*number >= 0 && *number < std::int64_t{1} << 53);
  }

  /// 0: it is not known.
  static std::int64_t TimeIn(const Entry& entry, Field field) {
    return std::max<std::int64_t>(entry.Number(field).value_or(0), 0);
  }

  /// Calls of one group that share both of its numbers.
  struct Block {
    std::int64_t seq = -1, p2p_seq = -1, last_collective = -1;
    std::vector<std::uint32_t> calls;  ///< into out_.calls
  };

  /// What stands inside a coalesced block is launched with it: only the block's own entry, the last, is ever seen to
  /// end. Until 2.5, a block of sends took a number of the group's collectives.
  void JoinBlock(CallTrace::Call& call, std::int64_t seq, std::int64_t p2p_seq) {
    Block& block = blocks_[call.group];
    if (block.seq != seq || block.p2p_seq != p2p_seq) {
      block.seq = seq;
      block.p2p_seq = p2p_seq;
      block.calls.clear();
    }
    if (call.coalesced) {
      for (const std::uint32_t at : block.calls) {
        CallTrace::Call& inner = out_.calls[at];
        call.pairwise = call.pairwise || inner.to != CallTrace::Peer::kNone;
        if (inner.state == CallTrace::State::kCompleted) continue;
        inner.state = call.state;
        inner.started_ns = call.started_ns;
        inner.ended_ns = call.ended_ns;
        inner.gave_up = call.gave_up;
      }
      if (call.pairwise && seq != block.last_collective) out_.groups[call.group].mixed = true;
    }
    if (!call.pairwise) block.last_collective = seq;
    block.calls.push_back(static_cast<std::uint32_t>(out_.calls.size()));
  }

  std::uint32_t GroupOf(const Entry& entry) {
    const DataValue* name = nullptr;
    const DataValue& tuple = entry[Field::kGroup];
    const auto pg_id = entry.Number(Field::kPgId);
    if (tuple.is(Kind::kList) && tuple.node->size > 0) name = &tuple.node->items[0];
    const char* const lies = name != nullptr && name->is(Kind::kText) ? name->text : nullptr;
    if (lies != nullptr && lies == last_group_name_ && pg_id == last_group_id_) return last_group_;
    if (lies != nullptr) Spend(name->size);
    const std::string key = lies != nullptr ? std::string(name->str()) : std::to_string(pg_id.value_or(0));
    const std::uint32_t group = GroupNumber(key);
    if (lies != nullptr && tuple.node->size > 1 && out_.groups[group].desc.empty())
      out_.groups[group].desc = std::string(tuple.node->items[1].str());
    if (pg_id) group_by_id_.emplace(*pg_id, group);
    last_group_name_ = lies;
    last_group_id_ = pg_id;
    return last_group_ = group;
  }

  void Add(const DataValue& shapes, Mix& mix) {
    if (!shapes.is(Kind::kList) || !Spend(shapes.node->size)) return;
    mix.Add(shapes.node->size);
    for (std::uint32_t i = 0; i < shapes.node->size; ++i) {
      const DataValue& shape = shapes.node->items[i];
      if (!Spend(SizeOf(shape))) return;
      if (shape.is(Kind::kText)) {
        mix.Add(shape.str());
      } else if (shape.is(Kind::kList)) {
        mix.Add(shape.node->size);
        for (std::uint32_t k = 0; k < shape.node->size; ++k)
          mix.Add(static_cast<std::uint64_t>(shape.node->items[k].number));
      }
    }
  }

  static constexpr Field kFormParts[] = {Field::kInputs, Field::kOutputs, Field::kInputTypes, Field::kOutputTypes};

  /// What is known as one list everywhere is compared by where it lies; all else, told apart by 64 bits of a hash.
  std::uint32_t FormOf(const Entry& entry) {
    Mix places;
    places.Add(reinterpret_cast<std::uintptr_t>(entry[Field::kName].text));
    bool known = true;
    for (const Field part : kFormParts) {
      const DataValue& value = entry[part];
      known = known && value.is(Kind::kList) && (value.node->known || value.node->size == 0);
      if (known) places.Add(value.node->size == 0 ? 0 : reinterpret_cast<std::uintptr_t>(value.node));
    }
    if (!known) return FormByContent(entry);
    Near& near = near_forms_[places.value() % near_forms_.size()];
    if (near.key != places.value()) near = {places.value(), FormByContent(entry)};
    return near.number;
  }

  std::uint32_t FormByContent(const Entry& entry) {
    Mix mix;
    Spend(entry[Field::kName].size);
    mix.Add(entry[Field::kName].str());
    for (const Field part : kFormParts) Add(entry[part], mix);
    const auto [it, is_new] = form_numbers_.try_emplace(mix.value(), static_cast<std::uint32_t>(out_.forms.size()));
    if (is_new) AddForm(entry);
    return it->second;
  }

  void AddForm(const Entry& entry) {
    string_view name = entry[Field::kName].str();
    if (const std::size_t backend = name.find(':'); backend != string_view::npos) name.remove_prefix(backend + 1);
    const std::size_t space = name.find(' ');
    CallForm form;
    form.op = std::string(name.substr(0, space));
    Named named;
    named.coalesced = form.op == "coalesced";
    if (form.op == "send" || form.op == "recv")
      ReadPeers(space == string_view::npos ? string_view() : name.substr(space + 1), form.op == "send", named);
    form.inputs = Shapes(entry[Field::kInputs]);
    form.outputs = Shapes(entry[Field::kOutputs]);
    const std::string in = Types(entry[Field::kInputTypes]), out = Types(entry[Field::kOutputTypes]);
    form.dtypes = in == out || out.empty() ? in : in.empty() ? out : in + " -> " + out;
    out_.forms.push_back(std::move(form));
    names_.push_back(named);
  }

  struct Named {
    CallTrace::Peer to = CallTrace::Peer::kNone;
    bool coalesced = false;
    std::int32_t self = 0, peer = 0;
  };

  /// `1->2` of a send by 1, `3<-0` of a receive by 3.
  static void ReadPeers(string_view text, bool send, Named& named) {
    const std::size_t arrow = text.find(send ? "->" : "<-");
    if (arrow == string_view::npos) return;
    std::int32_t self = 0, peer = 0;
    const char* const end = text.data() + text.size();
    if (std::from_chars(text.data(), text.data() + arrow, self).ec != std::errc() ||
        std::from_chars(text.data() + arrow + 2, end, peer).ec != std::errc() || !IsRank(self) || !IsRank(peer))
      return;
    named = {send ? CallTrace::Peer::kTo : CallTrace::Peer::kFrom, false, self, peer};
  }

  std::vector<std::vector<std::int64_t>> Shapes(const DataValue& value) {
    std::vector<std::vector<std::int64_t>> out;
    if (!value.is(Kind::kList) || !Spend(kKeeping * value.node->size)) return out;
    for (std::uint32_t i = 0; i < value.node->size; ++i) {
      out.emplace_back();
      const DataValue& shape = value.node->items[i];
      if (!Spend(kKeeping * SizeOf(shape))) return out;
      for (std::uint32_t k = 0; shape.is(Kind::kList) && k < shape.node->size; ++k)
        out.back().push_back(NumberOf(shape.node->items[k]).value_or(0));
    }
    return out;
  }

  /// `Float`, or `Float, Half` where tensors differ.
  static std::string Types(const DataValue& value) {
    std::vector<string_view> seen;
    for (std::uint32_t i = 0; value.is(Kind::kList) && i < value.node->size; ++i)
      if (const string_view type = value.node->items[i].str(); std::find(seen.begin(), seen.end(), type) == seen.end())
        seen.push_back(type);
    return fmt::format("{}", fmt::join(seen, ", "));
  }

  std::uint32_t SiteOf(const DataValue& frames) {
    if (!frames.is(Kind::kList) || frames.node->size == 0) return 0;
    if (!frames.node->known) return SiteByContent(frames);
    const auto place = reinterpret_cast<std::uintptr_t>(frames.node);
    Near& near = near_sites_[place / alignof(std::max_align_t) % near_sites_.size()];
    if (near.key != place) near = {place, SiteByContent(frames)};
    return near.number;
  }

  /// The innermost frame that is not PyTorch's own.
  std::uint32_t SiteByContent(const DataValue& frames) {
    constexpr std::uint32_t kDeep = 48, kHashed = 16;
    Mix mix;
    for (std::uint32_t i = 0; i < std::min(frames.node->size, kHashed); ++i)
      mix.Add(reinterpret_cast<std::uintptr_t>(frames.node->items[i].node));
    const auto [it, is_new] = site_numbers_.try_emplace(mix.value(), 0);
    if (!is_new) return it->second;
    std::string site;
    for (std::uint32_t i = 0; i < std::min(frames.node->size, kDeep); ++i) {
      if (!Spend(SizeOf(frames.node->items[i]))) return 0;
      const string_view file = TextUnder(frames.node->items[i], "filename");
      const DataValue* line = Find(frames.node->items[i], "line");
      if (file.empty()) continue;
      const bool own = file.ends_with(".py") && file.find("/torch/") == string_view::npos;
      if (!own && !site.empty()) continue;
      if (!Spend(file.size() + TextUnder(frames.node->items[i], "name").size())) return 0;
      site = fmt::format("{} at {}:{}", TextUnder(frames.node->items[i], "name"), file.substr(file.rfind('/') + 1),
                         line == nullptr ? 0 : NumberOf(*line).value_or(0));
      if (own) break;
    }
    const auto [known, is_new_site] = site_texts_.try_emplace(site, static_cast<std::uint32_t>(out_.sites.size()));
    if (is_new_site) out_.sites.push_back(std::move(site));
    return it->second = known->second;
  }

  /// A send names the sender by its number in the group, whose ranks the dump lists.
  void LearnRank(std::uint32_t group, std::int32_t self) {
    const std::vector<int>& ranks = out_.groups[group].ranks;
    if (out_.rank || static_cast<std::size_t>(self) >= ranks.size()) return;
    out_.rank = Known<GlobalRank>{GlobalRank{ranks[static_cast<std::size_t>(self)]}, Basis::kDerived,
                                  "its number in a send or receive"};
  }

  /// What was looked up last under a key like it.
  struct Near {
    std::uint64_t key = 0;
    std::uint32_t number = 0;
  };

  CallTrace out_;
  std::array<Near, 256> near_forms_{}, near_sites_{};
  std::vector<std::pair<const char*, Field>> known_;
  std::vector<Named> names_;   ///< of each form
  std::vector<Block> blocks_;  ///< of each group
  std::unordered_map<std::string, std::uint32_t> group_numbers_, site_texts_ = {{std::string(), 0}};
  std::unordered_map<std::int64_t, std::uint32_t> group_by_id_;
  std::unordered_map<std::uint64_t, std::uint32_t> form_numbers_, site_numbers_;
  std::uint64_t left_;
  bool spent_ = false;
  const char* last_group_name_ = nullptr;
  std::optional<std::int64_t> last_group_id_;
  std::uint32_t last_group_ = 0;
};

bool HasKeys(string_view head) {
  const auto has = [&](string_view key) { return head.find(key) != string_view::npos; };
  return has("version") && (has("pg_config") || has("profiling_name") || has("pg_status"));
}

}  // namespace

bool IsFlightDump(string_view head) {
  constexpr std::size_t kLookedAt = 64 * 1024;
  head = head.substr(0, kLookedAt);
  if (IsPickle(head)) return HasKeys(head);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == string_view::npos || head[first] != '{') return false;
  // nlohmann::json writes keys in their alphabetical order: of a long dump the head holds entries alone.
  const auto has = [&](string_view key) { return head.find(key) != string_view::npos; };
  return (has("\"profiling_name\"") && has("\"collective_seq_id\"")) ||
         (has("\"version\"") && (has("\"profiling_name\"") || (has("\"pg_config\"") && has("\"pg_status\""))));
}

CallTrace ReadFlightDump(string_view bytes) {
  DataPool pool(std::min(kPoolAtMost, (std::size_t{1} << 20) + bytes.size() * 16));
  if (IsPickle(bytes)) {
    const PickleRead read = ReadPickle(bytes, pool);
    CallTrace out = Reader(bytes.size()).Run(read.root);
    if (!read.problem.empty()) out.problem = read.problem;
    return out;
  }
  CallTrace out;
  out.recorder = "flight-recorder";
  json::dom::parser parser;
  json::dom::element root;
  DataValue value;
  std::string problem;
  json::padded_string padded(bytes);
  auto error = parser.parse(padded).get(root);
  if (const std::string closed = error == json::SUCCESS ? std::string() : ClosedWhereCut(bytes); !closed.empty()) {
    problem = fmt::format("cut after {} bytes, in the middle of the dump", bytes.size());
    padded = json::padded_string(closed);
    error = parser.parse(padded).get(root);
  }
  if (error != json::SUCCESS) {
    out.problem = fmt::format("no JSON: {}", json::error_message(error));
    return out;
  }
  const bool whole = FromJson(root, pool, 0, value);
  out = Reader(bytes.size()).Run(value);
  if (out.problem.empty()) out.problem = std::move(problem);
  if (!whole) out.problem = "larger than what is held of one dump";
  return out;
}

}  // namespace inquest
