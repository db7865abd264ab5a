// How rare a piece of text is in a log, and by which of its words a literal is found at the least cost.
#include "search/rarity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <vector>

#include "core/result.h"

namespace inquest {
namespace {

// What a log is full of while all is well. Digits count as one where pairs of bytes are counted.
constexpr std::string_view kChatter = R"(
[2025-03-01 10:00:00,123] [INFO] [logging.py:96:log_dist] [Rank 0] step=100, skipped=0, lr=[1.0e-05, 1.0e-05], mom=[(0.9, 0.95)]
 iteration      100/   50000 | consumed samples:       102400 | elapsed time per iteration (ms): 1234.5 | learning rate: 3.0E-04 | global batch size:  1024 | lm loss: 2.345678E+00 | loss scale: 1.0 | grad norm: 0.789 | number of skipped iterations:   0 | number of nan iterations:   0 |
{'loss': 1.2345, 'grad_norm': 0.5678, 'learning_rate': 2.0e-05, 'epoch': 0.12, 'num_tokens': 123456.0, 'mean_token_accuracy': 0.8}
Epoch 3:  42%|####      | 420/1000 [05:12<07:10,  1.35it/s, v_num=0, train_loss=0.234, train/acc=0.912]
Epoch: [12][ 100/5000]  Time  0.123 ( 0.130)   Data  0.002 ( 0.003)   Loss 2.3456e+00 (2.5678e+00)   Acc@1  45.31 ( 44.02)
Training epoch 0, iteration 100/4999 | lr: 0.0001 | global_batch_size: 512 | global_step: 100 | reduced_train_loss: 9.3 | train_step_timing in s: 1.2
2025-03-01 10:00:00 | INFO | train_inner | epoch 001: 100 / 5000 loss=9.876, ppl=940.1, wps=12345, ups=1.2, num_updates=100, gnorm=2.1, train_wall=80
{"time": "2025-03-01T10:00:00.123Z", "level": "info", "host": "node-01", "step": 100, "train/loss": 2.31, "train/tokens_per_second": 45000.0, "gpu/mem_gb": 61.2, "data/wait_ms": 12.5, "example": 1, "batch_size": 8}
INFO 03-01 10:00:00 metrics.py:345] Avg prompt throughput: 0.0 tokens/s, Running: 5 reqs, GPU KV cache usage: 3.1%, memory used
node01:1234:5678 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM comm 0x55d046a8 rank 0 nranks 8 cudaDev 0 busId 1b000 Init COMPLETE
node01:1234:5678 [0] NCCL INFO AllReduce: opCount 1f sendbuff 0x7f00 recvbuff 0x7f00 count 1024 datatype 7 op 0 root 0 comm 0x55d0 [nranks=8] stream 0x55d0
/usr/lib/python3.10/site-packages/torch/nn/modules/module.py:1501: UserWarning: the default value of this argument will change in a future version of the model
[default0]:[rank0]: Running training with arguments: {'train': 'default', 'example': 16, 'trainer': 'callbacks'} because the worker is running on the current device
(RayTrainWorker pid=123, ip=10.0.0.1) [1,0]<stdout>: tokenized samples: 1000 examples over all shards, dropping none, clipping at 1.0, model: small
[rank0]: loading data from /data/train/shard-00001.bin and tokenizing the dataset with config batch_size: 8, max_length: 2048, hidden_size: 4096
-----------------------------------------------------------------------------------------------------------------------
  layers.0.self_attn.q_proj.weight          torch.Size([4096, 4096])      parameters:   16,777,216      mean:   0.0001      std:   0.02
wandb:              global_step   100       tokens_per_sec 1234.5       loss   2.1       metrics     values
==================================================  **************************************  ####################################
The people of the town said that it was a fine morning and there were no more than three or four of them in the street when the
train came in; she had been waiting for an hour with her brother, who thought that everything would be all right in the end, as
other things had been before. What you are reading here is the kind of English that a model prints when someone asks it a question
about the weather, the history of a city, or how to write a letter to a friend: simple words between commas, and then some more.
To solve the problem, first we let x be the number of students; then the answer is given by the sum of these terms, which means
that each user should check the result again and return the final value. This function takes a list and returns the next element.
)";

constexpr std::size_t kSymbols = 128;
constexpr double kUnseen = 0.05;                             ///< a pair that is not in the sample counts as this many
constexpr double kNeighbourCycles = 10, kVerifyCycles = 60;  ///< per word, per six bytes found
constexpr double kLineCycles = 1500;                         ///< per line scanned for nothing
constexpr double kBitmapCycles = 2e-5;                       ///< per entry: what fuller bitmaps cost everybody
constexpr double kNever = std::numeric_limits<double>::infinity();

/// Folding leaves 128 values; digits are all alike.
std::size_t Symbol(char byte) {
  if (byte >= '0' && byte <= '9') byte = '0';
  const auto value = static_cast<unsigned>(static_cast<unsigned char>(byte));
  return (value & 0x1fU) | ((value >> 1U) & 0x60U);
}

/// Chance that a text stands at a given place of a log: as often as in the sample, or as its pairs of bytes suggest.
class Model {
 public:
  Model() : text_(Fold(kChatter)), follows_(kSymbols * kSymbols, kUnseen), stands_(kSymbols, kUnseen) {
    for (std::size_t i = 0; i + 1 < text_.size(); ++i) {
      stands_[Symbol(text_[i])] += 1;
      follows_[Symbol(text_[i]) * kSymbols + Symbol(text_[i + 1])] += 1;
      for (const std::size_t size : {kWordBytes, kSixBytes}) ++seen_[std::string_view(text_).substr(i, size)];
    }
    for (std::size_t first = 0; first < kSymbols; ++first) {
      for (std::size_t second = 0; second < kSymbols; ++second)
        follows_[first * kSymbols + second] /= stands_[first] + kUnseen * static_cast<double>(kSymbols - 1);
      stands_[first] /= static_cast<double>(text_.size());
    }
  }
  double Chance(std::string_view folded) const {
    double chance = stands_[Symbol(folded[0])];
    for (std::size_t i = 1; i < folded.size(); ++i)
      chance *= follows_[Symbol(folded[i - 1]) * kSymbols + Symbol(folded[i])];
    const auto seen = seen_.find(folded);
    return seen == seen_.end()
               ? chance
               : std::max(chance, static_cast<double>(seen->second) / static_cast<double>(text_.size()));
  }

 private:
  std::string text_;
  std::vector<double> follows_, stands_;
  std::unordered_map<std::string_view, int> seen_;  ///< of words and sixes
};

const Model& TheModel() {
  static const Model kModel;
  return kModel;
}

/// Expected work per byte of log for bytes [begin, begin + size) of the literal to be looked for.
double CostOfPart(std::string_view literal, std::int32_t begin, std::size_t size, double cycles) {
  const auto from = static_cast<std::size_t>(std::max(begin, 0));
  const auto to = std::min(static_cast<std::size_t>(begin + static_cast<std::int32_t>(size)), literal.size());
  const std::size_t outside = size - (to - from);
  if (outside > 1) return kNever;
  return TheModel().Chance(literal.substr(from, to - from)) * cycles + (outside == 1 ? 128 : 1) * kBitmapCycles;
}

double CostOfWindow(std::string_view literal, const Window& window) {
  return CostOfPart(literal, window.word, kWordBytes, kNeighbourCycles / kWordBytes) +
         CostOfPart(literal, window.six, kSixBytes, kVerifyCycles / kWordBytes);
}

}  // namespace

std::string Fold(std::string_view text) {
  std::string out(text);
  for (char& byte : out) byte = static_cast<char>(static_cast<unsigned char>(byte) | kCaseBit);
  return out;
}

std::array<Window, 4> RarestWindows(std::string_view literal) {
  INQUEST_CHECK(literal.size() >= kShortestLiteral);
  std::array<Window, 4> out{};
  std::array<double, 4> least;
  least.fill(kNever);
  const auto last = static_cast<std::int32_t>(literal.size() - kWordBytes);
  for (std::int32_t word = -1; word <= last + 1; ++word) {
    for (const std::int32_t six : {word - 2, word}) {
      const double cost = CostOfWindow(literal, {word, six});
      const auto remainder = static_cast<std::size_t>(word + 4) % kWordBytes;
      if (cost >= least[remainder]) continue;
      least[remainder] = cost;
      out[remainder] = {word, six};
    }
  }
  return out;
}

double CostOf(std::string_view literal) {
  double cost = kLineCycles * TheModel().Chance(literal);
  for (const Window& window : RarestWindows(literal)) cost += CostOfWindow(literal, window);
  return cost;
}

}  // namespace inquest
