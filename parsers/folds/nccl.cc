// NCCL's INFO lines, folded: its calls into batches, the lines of a connection into one event for each way that it
// took.
#include <algorithm>
#include <array>
#include <charconv>
#include <map>

#include "parsers/envelope.h"
#include "parsers/folds/calls.h"
#include "parsers/formats/nccl.h"

namespace inquest {
namespace {

constexpr std::size_t kShortestNccl = 24;

/// Messages that say who is who, or where a call failed. The others are known and say nothing.
bool WorthKeeping(std::string_view message) {
  static constexpr std::string_view kHeads[] = {"comm 0x",
                                                "ncclComm",
                                                "NCCL version",
                                                "NCCL_",
                                                "[Rank ",
                                                "CommRevoke",
                                                "Init timings",
                                                "NET/IB : Using",
                                                "NET/Socket : Using",
                                                "NET : Using",
                                                "Bootstrap : Using",
                                                "Bootstrap: Using"};
  for (const std::string_view head : kHeads)
    if (message.starts_with(head)) return head != "Init timings";
  return message.substr(0, 80).find(" -> ") != std::string_view::npos;
}

/// `NET/IB/2(1)/GDRDMA` -> `NET/IB/GDRDMA`: the transport without its device.
std::string NormaliseVia(std::string_view via) {
  std::string out;
  while (!via.empty()) {
    const std::size_t slash = std::min(via.find('/'), via.size());
    const std::string_view part = via.substr(0, slash);
    if (!part.empty() && !(part[0] >= '0' && part[0] <= '9')) {
      if (!out.empty()) out += '/';
      out += part;
    }
    via.remove_prefix(std::min(slash + 1, via.size()));
  }
  return out;
}

/// `Channel 01/0 : 3[3] -> 8[0] via ...` is printed by the sender; a `[receive]` line is not.
void NoteSender(std::string_view message, CallBatch::Process& process) {
  const std::size_t at = message.find(" : ");
  if (at == std::string_view::npos || message.find("[receive]") != std::string_view::npos) return;
  const std::string_view rest = message.substr(at + 3, 16);
  int rank = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), rank);
  if (error != std::errc() || end == rest.data() + rest.size() || *end != '[') return;
  // Ranks of several communicators differ; the first stands for the job's own, which is built first.
  if (!process.sender) process.sender = GroupRank{rank};
}

/// Who wrote a process' last line here, and when, by what stands in front of NCCL's prefix.
void PeelLast(std::string_view text, CallBatch::Process& process) {
  process.last_text = std::string(text);
  const std::string_view behind_host = text.starts_with(process.host) ? text.substr(process.host.size()) : "";
  if (behind_host.size() > 1 && behind_host[0] == ':' && behind_host[1] >= '0' && behind_host[1] <= '9')
    return;  // nothing does
  std::string scratch;
  const Peeled peeled = Peel(text, scratch);
  process.rank = peeled.origin.rank;
  process.local_rank = peeled.origin.local_rank;
  process.last_at = peeled.at;
  process.last_text = std::string(WithoutForeignHead(peeled.text));
}

class NcclFolder final : public Folder {
 public:
  explicit NcclFolder(Code code) : calls_(code) {}

  void Begin() override {
    calls_.Begin();
    vias_.clear();
    via_numbers_.clear();
  }
  void TakeKnown(std::string_view block, std::size_t at, std::uint32_t number, std::uint32_t piece,
                 std::vector<std::uint32_t>& ends) override {
    calls_.TakeKnown(block, at, number, piece, ends);
  }
  void Take(std::span<Line> lines) override {
    for (Line& line : lines) calls_.Look(line);
    for (Line& line : lines) line.what = Classify(line);
  }
  Folded End(const Structure& pieces) override {
    Folded folded{calls_.Take(), {}};
    auto& processes = folded.calls.processes;
    for (std::size_t i = 0; i < processes.size(); ++i) {
      const std::uint32_t piece = calls_.last_pieces()[i];
      processes[i].last_line = pieces.line(piece);
      PeelLast(pieces.text(piece).substr(0, kCitedBytes), processes[i]);
    }
    std::string scratch;
    for (Via& via : vias_) {
      const CallBatch::Process& process = processes[via.process];
      Origin origin;
      origin.host = Known<std::string>{process.host, Basis::kObserved, {}};
      origin.pid = process.pid;
      origin.cuda_dev = process.cuda_dev;
      folded.sums.push_back({.line = via.line,
                             .text = std::string(WithoutForeignHead(Peel(via.text, scratch).text)),
                             .origin = std::move(origin),
                             .what = ChannelsVia{std::move(via.via), via.count}});
    }
    return folded;
  }

 private:
  struct Via {
    std::uint32_t process = 0;
    std::string via;
    std::uint64_t count = 0;
    std::uint32_t line = 0;  ///< of the first
    std::string_view text;   ///< of the first, cut at kCitedBytes
  };

  LineClass Classify(const Line& line) {
    const CallLine call = calls_.Add(line);
    if (call == CallLine::kTorn) return LineClass::kTorn;
    if (call == CallLine::kCall || FoldVia(line)) return LineClass::kFolded;
    return WorthKeeping(MessageOf(line)) ? LineClass::kKept : LineClass::kKnown;
  }

  /// Counts a line of a connection. False: it is none.
  bool FoldVia(const Line& line) {
    const std::string_view message = MessageOf(line);
    if (!message.starts_with("Channel ") && !message.starts_with("Ring ") && !message.starts_with("Trees") &&
        !message.starts_with("Tree "))
      return false;
    const std::size_t via_at = message.find(" via ");
    if (via_at == std::string_view::npos) return true;
    const auto process = calls_.ProcessOf(line);
    if (!process) return true;
    NoteSender(message, calls_.process(*process));
    std::string via = NormaliseVia(message.substr(via_at + 5));
    const auto [known, is_new] = via_numbers_.try_emplace({*process, via}, vias_.size());
    if (is_new)
      vias_.push_back({*process, std::move(via), 1, line.number, line.text.substr(0, kCitedBytes)});
    else
      ++vias_[known->second].count;
    return true;
  }

  CallFolder calls_;
  std::vector<Via> vias_;
  std::map<std::pair<std::uint32_t, std::string>, std::size_t> via_numbers_;  ///< places in vias_
};

std::unique_ptr<Folder> MakeFolder(Code code) { return std::make_unique<NcclFolder>(code); }

}  // namespace

extern const Folding kNcclFold{.mark = kNcclInfo,
                               .shortest = kShortestNccl,
                               .make = &MakeFolder,
                               .without_foreign_head = &WithoutForeignHead,
                               .read_origin = &ReadNcclOrigin};

}  // namespace inquest
