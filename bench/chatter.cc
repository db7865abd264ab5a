// Metrics lines, progress bars, loggers and warnings, in the spelling of the programs that print them.
#include "bench/chatter.h"

namespace inquest::bench {
namespace {

constexpr std::uint64_t kTotalSteps = 500000;
constexpr std::string_view kFullBlock = "█";
constexpr std::string_view kPartBlocks[] = {" ", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
constexpr std::string_view kWords[] = {
    "the",     "of",     "and",      "river",   "model",  "because", "time",   "small",  "city",
    "between", "light",  "they",     "history", "number", "under",   "green",  "answer", "water",
    "simple",  "letter", "north",    "music",   "window", "about",   "early",  "people", "seven",
    "house",   "garden", "language", "paper",   "winter", "story",   "market", "engine", "quiet"};

}  // namespace

Chatter::Chatter(const Job& job) : job_(job), random_(job.seed ^ 0xc4a7) {}

void Chatter::Clock(LogWriter& log, std::string_view before_ms) {
  const std::uint64_t hour = 8 + second_ / 3600;
  log.Text(hour < 24 ? "2031-02-18 " : "2031-02-19 ")
      .Decimal(hour % 24, 2)
      .Text(":")
      .Decimal(second_ / 60 % 60, 2)
      .Text(":")
      .Decimal(second_ % 60, 2);
  if (!before_ms.empty()) log.Text(before_ms).Decimal(random_.Below(1000), 3);
}

void Chatter::Loss(LogWriter& log, unsigned decimals) {
  std::uint64_t unit = 1;
  for (unsigned i = 0; i < decimals; ++i) unit *= 10;
  const std::uint64_t floor = unit * 2 + 8 * unit * 1000 / (1000 + step_);
  log.Fixed(floor + random_.Below(unit), decimals);
}

void Chatter::Words(LogWriter& log, std::uint64_t count) {
  for (std::uint64_t i = 0; i < count; ++i) {
    if (i != 0) log.Text(" ");
    log.Text(kWords[random_.Below(std::size(kWords))]);
  }
}

void Chatter::Tqdm(LogWriter& log) {
  const std::uint64_t total = 1000 + random_.Below(9000);
  std::uint64_t done = random_.Below(total - 40), elapsed = done * 2 / 3;
  for (std::uint64_t updates = 4 + random_.Below(12); updates != 0; --updates) {
    done += 1 + random_.Below(2);
    elapsed += 1 + random_.Below(2);
    const std::uint64_t left = elapsed * (total - done) / done, eighths = done * 80 / total;
    log.Text("\rEpoch ").Decimal(1 + step_ / 90000).Text(": ").Decimal(done * 100 / total, 3, ' ').Text("%|");
    for (std::uint64_t block = 0; block < 10; ++block) {
      log.Text(block < eighths / 8 ? kFullBlock : block == eighths / 8 ? kPartBlocks[eighths % 8] : kPartBlocks[0]);
    }
    log.Text("| ")
        .Decimal(done)
        .Text("/")
        .Decimal(total)
        .Text(" [")
        .Decimal(elapsed / 60, 2)
        .Text(":")
        .Decimal(elapsed % 60, 2);
    log.Text("<")
        .Decimal(left / 60, 2)
        .Text(":")
        .Decimal(left % 60, 2)
        .Text(",  ")
        .Fixed(100 + random_.Below(200), 2)
        .Text("s/it, loss=");
    Loss(log, 3);
    log.Text("]");
  }
  log.Text("\n");
}

void Chatter::HuggingFace(LogWriter& log) {
  log.Text("{'loss': ");
  Loss(log, 4);
  log.Text(", 'grad_norm': ")
      .Fixed(20000000 + random_.Below(900000000), 9)
      .Text(", 'learning_rate': ")
      .Fixed(10000000 + random_.Below(80000000), 7);
  log.Text("e-06, 'epoch': ").Fixed(step_ / 900, 2).Text("}\n");
}

void Chatter::Megatron(LogWriter& log) {
  log.Text(" [");
  Clock(log, "");
  log.Text("] iteration ")
      .Decimal(step_, 8, ' ')
      .Text("/ ")
      .Decimal(kTotalSteps, 8, ' ')
      .Text(" | consumed samples: ")
      .Decimal(step_ * 1024, 12, ' ');
  log.Text(" | elapsed time per iteration (ms): ")
      .Fixed(11000 + random_.Below(3000), 1)
      .Text(" | throughput per GPU (TFLOP/s/GPU): ")
      .Fixed(3800 + random_.Below(400), 1);
  log.Text(" | learning rate: ")
      .Fixed(1000000 + random_.Below(8000000), 6)
      .Text("E-04 | global batch size:  1024 | lm loss: ");
  Loss(log, 6);
  log.Text("E+00 | loss scale: 1.0 | grad norm: ")
      .Fixed(50 + random_.Below(900), 3)
      .Text(" | num zeros: ")
      .Decimal(random_.Below(90000));
  log.Text(" | params norm: ")
      .Fixed(1200000 + random_.Below(90000), 3)
      .Text(" | number of skipped iterations:   0 | number of nan iterations:   0 |\n");
}

void Chatter::NeMo(LogWriter& log) {
  log.Text("[default")
      .Decimal(random_.Below(8))
      .Text("]:Training epoch ")
      .Decimal(step_ / 100000)
      .Text(", iteration ")
      .Decimal(step_)
      .Text("/499999 | lr: 0.000");
  log.Decimal(random_.Below(1000), 4)
      .Text(" | global_batch_size: 512 | global_step: ")
      .Decimal(step_)
      .Text(" | reduced_train_loss: ");
  Loss(log, 3);
  log.Text(" | train_step_timing in s: ")
      .Fixed(900 + random_.Below(400), 3)
      .Text(" | consumed_samples: ")
      .Decimal(step_ * 512)
      .Text("\n");
}

void Chatter::Titan(LogWriter& log) {
  log.Text("[rank").Decimal(random_.Below(static_cast<std::uint64_t>(job_.ranks))).Text("]:[titan] ");
  Clock(log, ",");
  log.Text(" - root - INFO - step: ").Decimal(step_, 6, ' ').Text("  loss:  ");
  Loss(log, 4);
  log.Text("  grad_norm:  ")
      .Fixed(1000 + random_.Below(9000), 4)
      .Text("  memory: ")
      .Fixed(6000 + random_.Below(900), 2)
      .Text("GiB(")
      .Fixed(7500 + random_.Below(900), 2);
  log.Text("%)  tps: ")
      .Decimal(5 + random_.Below(4))
      .Text(",")
      .Decimal(random_.Below(1000), 3)
      .Text("  tflops: ")
      .Fixed(34000 + random_.Below(3000), 2);
  log.Text("  mfu: ").Fixed(3400 + random_.Below(400), 2).Text("%\n");
}

void Chatter::Fairseq(LogWriter& log) {
  Clock(log, "");
  log.Text(" | INFO | train_inner | epoch ")
      .Decimal(1 + step_ / 50000, 3)
      .Text(": ")
      .Decimal(step_ % 50000, 6, ' ')
      .Text(" / 50000 loss=");
  Loss(log, 3);
  log.Text(", ppl=")
      .Fixed(900 + random_.Below(9000), 2)
      .Text(", wps=")
      .Decimal(100000 + random_.Below(50000))
      .Text(", ups=")
      .Fixed(80 + random_.Below(90), 2);
  log.Text(", wpb=")
      .Fixed(1310720 - random_.Below(5000), 1)
      .Text(", bsz=256, num_updates=")
      .Decimal(step_)
      .Text(", lr=0.000")
      .Decimal(random_.Below(100000), 6);
  log.Text(", gnorm=")
      .Fixed(200 + random_.Below(900), 3)
      .Text(", clip=0, loss_scale=16, train_wall=")
      .Decimal(60 + random_.Below(20));
  log.Text(", gb_free=").Fixed(110 + random_.Below(50), 1).Text(", wall=").Decimal(second_).Text("\n");
}

void Chatter::DeepSpeed(LogWriter& log) {
  log.Text("[");
  Clock(log, ",");
  if (random_.Below(2) == 0) {
    log.Text("] [INFO] [logging.py:96:log_dist] [Rank 0] step=")
        .Decimal(step_)
        .Text(", skipped=")
        .Decimal(random_.Below(9))
        .Text(", lr=[");
    const std::uint64_t rate = 10000000 + random_.Below(80000000);
    log.Fixed(rate, 7).Text("e-06, ").Fixed(rate, 7).Text("e-06], mom=[(0.9, 0.95), (0.9, 0.95)]\n");
  } else {
    log.Text("] [INFO] [timer.py:260:stop] epoch=")
        .Decimal(step_ / 90000)
        .Text("/micro_step=")
        .Decimal(step_)
        .Text("/global_step=")
        .Decimal(step_);
    log.Text(", RunningAvgSamplesPerSec=")
        .Fixed(4000000000 + random_.Below(900000000), 8)
        .Text(", CurrSamplesPerSec=")
        .Fixed(4000000000 + random_.Below(900000000), 8);
    log.Text(", MemAllocated=")
        .Fixed(2000 + random_.Below(900), 2)
        .Text("GB, MaxMemAllocated=")
        .Fixed(5000 + random_.Below(900), 2)
        .Text("GB\n");
  }
}

void Chatter::NanoGpt(LogWriter& log) {
  log.Text("iter ").Decimal(step_).Text(": loss ");
  Loss(log, 4);
  log.Text(", time ")
      .Fixed(24000 + random_.Below(3000), 2)
      .Text("ms, mfu ")
      .Fixed(4000 + random_.Below(500), 2)
      .Text("%\n");
}

void Chatter::LlmC(LogWriter& log) {
  log.Text("step ").Decimal(step_ % 19560, 5, ' ').Text("/19560 | loss ");
  Loss(log, 6);
  log.Text(random_.Below(2) == 0 ? " (+" : " (-")
      .Fixed(random_.Below(300), 2)
      .Text("z)| norm ")
      .Fixed(1000 + random_.Below(9000), 4);
  log.Text(random_.Below(2) == 0 ? " (+" : " (-")
      .Fixed(random_.Below(300), 2)
      .Text("z)| lr ")
      .Fixed(100 + random_.Below(500), 2)
      .Text("e-04 | ");
  log.Fixed(34000 + random_.Below(900), 2)
      .Text(" ms | ")
      .Fixed(450 + random_.Below(90), 1)
      .Text("% bf16 MFU | ")
      .Decimal(1500000 + random_.Below(40000))
      .Text(" tok/s\n");
}

void Chatter::JsonMetrics(LogWriter& log) {
  log.Text("{\"ts\": \"");
  Clock(log, ".");
  log.Text("\", \"host\": \"node")
      .Decimal(1 + random_.Below(static_cast<std::uint64_t>(job_.ranks + 7) / 8), 3)
      .Text("\", \"step\": ")
      .Decimal(step_)
      .Text(", \"train/loss\": ");
  Loss(log, 6);
  log.Text(", \"train/tokens_per_sec\": ")
      .Fixed(40000000 + random_.Below(9000000), 3)
      .Text(", \"gpu/mem_gb\": ")
      .Fixed(6000 + random_.Below(900), 2);
  log.Text(", \"lr\": 0.000")
      .Decimal(random_.Below(100000), 5)
      .Text(", \"data/wait_ms\": ")
      .Fixed(random_.Below(9000), 2)
      .Text("}\n");
}

void Chatter::Logger(LogWriter& log) {
  switch (random_.Below(4)) {
    case 0:
      log.Text("[INFO|trainer.py:").Decimal(2400 + random_.Below(9)).Text("] ");
      Clock(log, ",");
      log.Text(" >>   Number of tokens seen = ")
          .Decimal(step_ * 4194304 / 1000 % 1000, 3)
          .Text(",")
          .Decimal(step_ * 4194304 % 1000, 3)
          .Text("\n");
      break;
    case 1:
      log.Text("[");
      Clock(log, ",");
      log.Text("][trainer.callbacks][INFO] - epoch ")
          .Decimal(step_ / 90000)
          .Text(" tokens ")
          .Decimal(step_ * 4096)
          .Text(" grad norm before clipping ")
          .Fixed(random_.Below(90000), 4)
          .Text("\n");
      break;
    case 2:
      log.Text("INFO:root:throughput ")
          .Fixed(10000 + random_.Below(90000), 2)
          .Text(" samples/s over the last ")
          .Decimal(10 + random_.Below(90))
          .Text(" steps, eta ");
      log.Decimal((kTotalSteps - step_ % kTotalSteps) / 3600).Text("h").Decimal(random_.Below(60), 2).Text("m\n");
      break;
    default:
      log.Text("I0218 ")
          .Decimal((8 + second_ / 3600) % 24, 2)
          .Text(":")
          .Decimal(second_ / 60 % 60, 2)
          .Text(":")
          .Decimal(second_ % 60, 2)
          .Text(".")
          .Decimal(random_.Below(1000000), 6);
      log.Text(" 139")
          .Decimal(random_.Below(1000000000), 9)
          .Text(" train_loop.py:")
          .Decimal(200 + random_.Below(90))
          .Text("] [")
          .Decimal(step_)
          .Text("] total_loss=");
      Loss(log, 5);
      log.Text(", examples_per_sec=").Fixed(100000 + random_.Below(90000), 3).Text("\n");
  }
}

void Chatter::DataWarning(LogWriter& log) {
  switch (random_.Below(3)) {
    case 0: {
      const std::uint64_t workers = 12 + random_.Below(40);
      log.Text(
             "/opt/conda/lib/python3.11/site-packages/torch/utils/data/dataloader.py:617: UserWarning: This DataLoader "
             "will create ")
          .Decimal(workers);
      log.Text(" worker processes in total. Our suggested max number of worker in current system is ")
          .Decimal(workers / 2);
      log.Text(", which is smaller than what this DataLoader is going to create.\n  warnings.warn(\n");
      break;
    }
    case 1:
      log.Text("Token indices sequence length is longer than the specified maximum sequence length for this model (")
          .Decimal(4097 + random_.Below(9000));
      log.Text(" > 4096). Running this sequence through the model will result in indexing errors\n");
      break;
    default:
      log.Text("/workspace/src/data/packing.py:")
          .Decimal(80 + random_.Below(40))
          .Text(": UserWarning: document ")
          .Decimal(random_.Below(90000000))
          .Text(" has ");
      log.Decimal(1 + random_.Below(12))
          .Text(" tokens after filtering, padded to ")
          .Decimal(16 + 16 * random_.Below(8))
          .Text("\n  warnings.warn(message)\n");
  }
}

void Chatter::Wandb(LogWriter& log) {
  if (random_.Below(2) == 0) {
    log.Text("wandb: WARNING (User provided step: ")
        .Decimal(step_)
        .Text(" is less than current step: ")
        .Decimal(step_ + 1 + random_.Below(9));
    log.Text(". Dropping entry: {'train/loss': ");
    Loss(log, 6);
    log.Text(", '_timestamp': 19")
        .Decimal(29000000 + second_)
        .Text(".")
        .Decimal(random_.Below(10000000), 7)
        .Text("}).\n");
  } else {
    log.Text("wandb:   train/tokens_per_second ").Fixed(10000 + random_.Below(900000), 3).Text("\n");
  }
}

void Chatter::Sample(LogWriter& log) {
  log.Text("(").Decimal(step_).Text(") prompt: ");
  Words(log, 4 + random_.Below(8));
  log.Text(" -> ");
  Words(log, 10 + random_.Below(30));
  log.Text(".\n");
}

void Chatter::WriteStart(LogWriter& log) {
  log.Text("using world size: ")
      .Decimal(static_cast<std::uint64_t>(job_.ranks))
      .Text(", data-parallel size: ")
      .Decimal(static_cast<std::uint64_t>(job_.ranks));
  log.Text(", context-parallel size: 1, tensor-model-parallel size: 1, pipeline-model-parallel size: 1\n");
}

void Chatter::Write(std::uint64_t progress, LogWriter& log) {
  // Metrics make up most of a log, warnings little; one message of Tqdm is as long as ten others.
  static constexpr Message kMessages[] = {
      &Chatter::Tqdm,        &Chatter::Sample,      &Chatter::Sample,   &Chatter::HuggingFace, &Chatter::HuggingFace,
      &Chatter::HuggingFace, &Chatter::Megatron,    &Chatter::Megatron, &Chatter::Megatron,    &Chatter::Megatron,
      &Chatter::NeMo,        &Chatter::NeMo,        &Chatter::NeMo,     &Chatter::Titan,       &Chatter::Titan,
      &Chatter::Titan,       &Chatter::Fairseq,     &Chatter::Fairseq,  &Chatter::DeepSpeed,   &Chatter::DeepSpeed,
      &Chatter::NanoGpt,     &Chatter::NanoGpt,     &Chatter::LlmC,     &Chatter::LlmC,        &Chatter::JsonMetrics,
      &Chatter::JsonMetrics, &Chatter::JsonMetrics, &Chatter::Logger,   &Chatter::Logger,      &Chatter::DataWarning,
      &Chatter::Wandb,       &Chatter::Sample};
  second_ = 20 * 3600 * progress / 1000000;
  step_ += random_.Below(2);
  (this->*kMessages[random_.Below(std::size(kMessages))])(log);
}

}  // namespace inquest::bench
