// What every match of an expression must contain: by example, on every rule, and on expressions made at random.
#include "search/cover.h"

#include <algorithm>
#include <random>

#include "core/pattern.h"
#include "rules/rule_book.h"
#include "rules/sought.h"
#include "search/rarity.h"
#include "tests/catch.h"

using namespace inquest;

namespace cover_test {

using Strings = std::vector<std::string>;

bool Holds(std::string_view text, const Strings& literals) {
  const std::string folded = Fold(text);
  return std::any_of(literals.begin(), literals.end(),
                     [&](const std::string& literal) { return folded.find(literal) != std::string::npos; });
}

/// An expression, and a text that it matches.
struct Made {
  std::string expression, text;
};

class Maker {
 public:
  explicit Maker(unsigned seed) : random_(seed) {}
  Made Alternatives(int depth) {
    Made made = Row(depth);
    for (unsigned more = Below(depth > 0 ? 3 : 1); more > 0; --more) {
      const Made other = Row(depth);
      made.expression += '|' + other.expression;
      if (Below(2) == 0) made.text = other.text;
    }
    return made;
  }

 private:
  unsigned Below(unsigned limit) { return static_cast<unsigned>(random_()) % limit; }
  char Letter() { return "abcdeXYZ 01_:"[Below(13)]; }

  Made Row(int depth) {
    Made made;
    for (unsigned parts = 1 + Below(4); parts > 0; --parts) {
      const Made part = Repeated(Atom(depth));
      made.expression += part.expression;
      made.text += part.text;
    }
    return made;
  }
  Made Atom(int depth) {
    const unsigned kind = Below(depth > 0 ? 9 : 6);
    Made made;
    if (kind < 3) {
      for (unsigned size = 1 + Below(9); size > 0; --size) made.text += Letter();
      return {made.text, made.text};
    }
    if (kind == 3) return {"[ab:X]", std::string(1, "ab:X"[Below(4)])};
    if (kind == 4) return Below(2) == 0 ? Made{R"(\d)", "7"} : Made{"[^]Q]", "z"};
    if (kind == 5) return Below(2) == 0 ? Made{R"(\s)", Below(2) == 0 ? " " : "\t"} : Made{R"(\.)", "."};
    const Made inside = Alternatives(depth - 1);
    return {(kind == 6 ? "(?i:" : kind == 7 ? "(?P<name>" : "(?:") + inside.expression + ')', inside.text};
  }
  Made Repeated(const Made& atom) {
    const std::string group = atom.expression.size() > 1 && atom.expression[0] != '(' && atom.expression[0] != '[' &&
                                      atom.expression[0] != '\\'
                                  ? "(?:" + atom.expression + ')'
                                  : atom.expression;
    const std::string twice = atom.text + atom.text;
    switch (Below(9)) {
      case 0:
        return {group + '?', Below(2) == 0 ? "" : atom.text};
      case 1:
        return {group + '*', Below(2) == 0 ? "" : twice};
      case 2:
        return {group + '+', Below(2) == 0 ? atom.text : twice};
      case 3:
        return {group + "{2,3}", twice};
      case 4:
        return {group + "{0,2}?", Below(2) == 0 ? "" : twice};
      default:
        return atom;
    }
  }

  std::mt19937 random_;
};

TEST_CASE("covers by example", "[rules]") {
  const struct {
    std::string_view expression;
    Strings cover;
  } kRows[] = {
      {"out of memory", {"out of memory"}},
      {"(?i)Out Of Memory", {"out of memory"}},
      {"[Oo]ut of [Mm]emory", {"out of memory"}},
      {R"(^\[c10d\] socket$)", {"{c10d} socket"}},
      {"killed|terminated", {"killed", "terminated"}},
      {"(?:CUDA|HIP) error", {"cuda error", "hip error"}},
      {"killed|x", {}},
      {"exit code(?: of it)?: [1-9]", {"exit code of it: ", "exit code: "}},
      {R"(rank \d+ of (?P<all>\d+) ranks gone)", {" ranks gone"}},
      {"watchdog(?: thread)*", {"watchdog"}},
      {"(?:watchdog)?", {}},
      {"(?:watchdog){0,2}", {}},
      {"(?:wat+chdog){2}", {"tchdog"}},
      {"abcde?", {}},
      {"abcde+", {"abcde"}},
      {"a{2}bcdef", {"abcdef"}},
      {R"(process\s+gone)", {"process"}},
      {"wait: error|error: wait", {"error: wait", "wait: error"}},
      {"error: wait|error:", {"error:"}},
      // Not understood, hence nothing is known.
      {"abcdefgh(?=x)", {}},
      {R"(abcdefgh\x41)", {}},
      {R"((abcdefgh)\1)", {}},
      {R"(abcdefgh\Q.\E)", {}},
      {"[[:alpha:]]abcdefgh", {}},
      {"abcdefgh++", {}},
      {"(abcdefgh", {}},
      {"", {}},
  };
  for (const auto& row : kRows) {
    CAPTURE(row.expression);
    const Strings cover = CoverOf(row.expression);
    // A longer way to say the same is as good, as long as there is none where there must be none.
    CHECK(cover.empty() == row.cover.empty());
    if (!row.cover.empty() && row.expression.find('\\') == std::string_view::npos) CHECK(cover == row.cover);
  }
}

TEST_CASE("every sample of a rule holds a literal of the rule's cover", "[rules]") {
  const auto loaded = LoadRules(INQUEST_SOURCE_DIR "/rules", nullptr);
  REQUIRE(std::holds_alternative<RuleBook>(loaded));
  const RuleBook& book = std::get<RuleBook>(loaded);
  const Sought sought = SoughtBy(book, {});
  for (std::size_t i = 0; i < book.rules.size(); ++i) {
    const Rule& rule = book.rules[i];
    CAPTURE(rule.file);
    const Strings cover = CoverOf(rule.text);
    for (const std::string& sample : rule.match) {
      CAPTURE(sample, cover);
      CHECK((cover.empty() || Holds(sample, cover)));
    }
    // A rule without a cover makes the scanner read every byte twice: give it a longer literal, or `scope`.
    if (sought.expressions[i].in_sieve) CHECK_FALSE(cover.empty());
  }
}

TEST_CASE("no line that a training prints by the thousand holds a literal of a rule's cover", "[rules]") {
  // Each such line would be searched for all rules: one short literal in one rule made a training log take twice as
  // long. Reword the rule, so that what must stand in its lines is longer or rarer.
  const Strings lines = {
      "[default5]:Training epoch 1, iteration 142956/499999 | lr: 0.0000042 | global_batch_size: 512 | global_step: "
      "142956 | reduced_train_loss: 2.2",
      " iteration     1200/   5000 | consumed samples:       153600 | elapsed time per iteration (ms): 812.3 | "
      "learning rate: 1.500E-04 | global batch size:   128 | lm loss: 2.345E+00 | loss scale: 1.0 | grad norm: 0.512 | "
      "number of skipped iterations:   0 | number of nan iterations:   0 |",
      "{'loss': 1.2345, 'grad_norm': 0.51, 'learning_rate': 2e-05, 'epoch': 0.53}",
      "Epoch 3:  45%|####5     | 450/1000 [03:12<03:54,  2.34it/s, v_num=0, train_loss=0.123, val_acc=0.91]",
      "Epoch: [3][ 450/1000]\tTime  0.312 ( 0.320)\tData  0.001 ( 0.004)\tLoss 1.2345e+00 (1.3010e+00)\tAcc@1  67.19",
      "Train: 12 [ 450/1251 ( 36%)]  Loss: 3.21 (3.30)  Time: 0.412s,  2485.44/s  LR: 1.000e-03  Data: 0.010 (0.012)",
      "[2026-03-04 10:11:12,345] [INFO] [logging.py:96:log_dist] [Rank 0] step=1200, skipped=3, lr=[0.00015], "
      "mom=[(0.9)]",
      "[2026-03-04 10:11:12,345] [INFO] [timer.py:260:stop] epoch=0/micro_step=1200/global_step=1200, "
      "RunningAvgSamplesPerSec=15.7, CurrSamplesPerSec=15.8, MemAllocated=4.98GB, MaxMemAllocated=27.5GB",
      "2026-03-04 10:11:12 | INFO | train_inner | epoch 003:    450 / 1000 loss=4.321, nll_loss=2.9, ppl=7.5, "
      "wps=51234, "
      "ups=3.21, wpb=15960, bsz=512, num_updates=2450, lr=0.0003, gnorm=0.9, train_wall=31, gb_free=12.3, wall=800",
      "1875/1875 [==============================] - 4s 2ms/step - loss: 0.2961 - accuracy: 0.9140",
      "step 1200: train loss 2.3456, val loss 2.4567, time 123.45ms, mfu 41.20%",
      "INFO:root:step=1200 loss=2.345 tokens_per_sec=51234.5 tflops=151.2 mfu=0.41",
      "[rank3]: 2026-03-04 10:11:12,345 - root - INFO - step: 1200  loss:  2.3456  memory: 41.20GiB(43.3%)  wps: 5,123",
      "wandb: \xf0\x9f\x9a\x80 View run at https://wandb.ai/team/project/runs/ab12cd34",
  };
  const auto loaded = LoadRules(INQUEST_SOURCE_DIR "/rules", nullptr);
  REQUIRE(std::holds_alternative<RuleBook>(loaded));
  for (const Sought::Expression& one : SoughtBy(std::get<RuleBook>(loaded), {}).expressions) {
    if (!one.in_sieve) continue;
    const Strings cover = CoverOf(one.text);
    for (const std::string& line : lines) {
      CAPTURE(one.where, line, cover);
      CHECK_FALSE(Holds(line, cover));
    }
  }
}

/// How many of the expressions of seeds [begin, end) have a cover.
std::size_t CheckRandomExpressions(unsigned begin, unsigned end) {
  std::size_t covered = 0;
  for (unsigned seed = begin; seed < end; ++seed) {
    const Made made = Maker(seed).Alternatives(3);
    CAPTURE(seed, made.expression, made.text);
    const auto pattern = Pattern::Compile("^(?:" + made.expression + ")$");
    if (!pattern) continue;  // e.g. a group name twice
    REQUIRE(pattern.value().Matches(made.text));
    const Strings cover = CoverOf(made.expression);
    covered += cover.empty() ? 0 : 1;
    CHECK((cover.empty() || Holds(made.text, cover)));
  }
  return covered;
}

TEST_CASE("what a random expression matches holds a literal of its cover", "[rules]") {
  CHECK(CheckRandomExpressions(0, 200) > 20);
}

TEST_CASE("what many random expressions match holds a literal of their covers", "[rules][slow]") {
  CHECK(CheckRandomExpressions(200, 3000) > 400);
}

TEST_CASE("a literal that holds another one need not be looked for", "[rules]") {
  CHECK(WithoutImplied({"nccl error: x", "error: ", "timeout", "timeout"}) == Strings{"error: ", "timeout"});
  CHECK(WithoutImplied({}).empty());
}

}  // namespace cover_test
