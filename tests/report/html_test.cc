// The page: nothing of a log becomes markup, alike ranks fold, and a large job fits.
#include <algorithm>

#include "report/html/markup.h"
#include "report/html/page.h"
#include "report/html/parts.h"
#include "report/terminal.h"
#include "tests/catch.h"
#include "tests/support/run_job.h"
#include "tests/support/sample_verdict.h"
#include "tests/support/synth_job.h"

using namespace inquest;

namespace html_test {

bool Has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

std::size_t Count(const std::string& text, std::string_view part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

std::string PageOf(const Timeline& timeline, const Verdict& verdict, const LinesNear& near = {}) {
  std::string page;
  RenderHtml(timeline, verdict, {.text = {}, .tool_version = "1.2.3"}, near,
             [&](std::string_view piece) { page += piece; });
  return page;
}

std::string TimeOut(int rank, int second) {
  return "[rank" + std::to_string(rank) + "]:[E405 12:11:0" + std::to_string(second) +
         ".123456789 ProcessGroupNCCL.cpp:616] [Rank " + std::to_string(rank) +
         "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4410, OpType=ALLREDUCE, NumelIn=1, "
         "NumelOut=1, Timeout(ms)=600000) ran for 600043 milliseconds before timing out.\n";
}

std::vector<std::string> Folds(const Picture& picture) {
  std::vector<std::string> out;
  for (const LaneFold& fold : picture.folds) out.push_back(Who(picture, fold));
  return out;
}

TEST_CASE("each start of a job has its lanes beside it, bounded", "[unit][html]") {
  const JobFolder folder(
      {{"slurm-88123.out", "2031-04-05T06:00:00Z step 1 loss 1.1\n" + TimeOut(0, 1) + TimeOut(1, 2)},
       {"slurm-88124.out", "2031-04-05T07:00:00Z step 1 loss 1.1\n[rank1]: ValueError: <script>alert(1)</script>\n"}});
  const Analysis judged = AnalyzePaths(folder.Files());
  REQUIRE(judged.verdict.attempts.size() == 2);
  for (const AttemptTold& attempt : judged.verdict.attempts) {
    CHECK_FALSE(attempt.sketch.rows.empty());
    CHECK(attempt.sketch.rows.size() <= 12);
    for (const SketchRow& row : attempt.sketch.rows) {
      CHECK((row.first >= 0 && row.first <= row.last && row.last <= 1));
      for (const SketchRow::Bar& bar : row.bars) CHECK((bar.begin >= 0 && bar.begin <= bar.end && bar.end <= 1));
    }
  }
  const std::string page = PageOf(judged.timeline, judged.verdict);
  CHECK(Count(page, "<details class=\"sketch\" open>") == 2);
  CHECK(Has(page, "<rect class=\"waiting\""));
  CHECK_FALSE(Has(page, "<script>alert"));
}

TEST_CASE("text is escaped where it is put in, and what hides or turns it is shown", "[unit][html]") {
  struct Row {
    std::string name, in, out;
  };
  const Row rows[] = {
      {"plain", "rank 5", "rank 5"},
      {"markup", "</script><b a=\"1\" c='2'>&amp;", "&lt;/script&gt;&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;amp;"},
      {"escape sequence", "a\x1b[31mb", "a\xe2\x90\x9b[31mb"},
      {"zero byte", std::string("a\0b", 3),
       "a\xe2\x90\x80"
       "b"},
      {"delete", "a\x7f", "a\xe2\x90\xa1"},
      {"direction",
       "a\xe2\x80\xae"
       "b",
       "a&lt;U+202E&gt;b"},
      {"line separator",
       "a\xe2\x80\xa8"
       "b",
       "a&lt;U+2028&gt;b"},
      {"no UTF-8", "a\xff", "a\xef\xbf\xbd"},
      {"other scripts stay", "caf\xc3\xa9 \xd7\xa9", "caf\xc3\xa9 \xd7\xa9"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    CHECK(EscapeHtml(row.in) == row.out);
    CHECK(Markup("<p>{}</p>", row.in).markup == "<p>" + row.out + "</p>");
  }
  CHECK(Markup("{}{}", Html{"<b>"}, 5).markup == "<b>5");
  CHECK(EscapeScript("{\"a\":\"</script><!--&\"}") == "{\"a\":\"\\u003c/script\\u003e\\u003c!--\\u0026\"}");
}

TEST_CASE("nothing that a log could write is markup of the page", "[unit][html]") {
  const Sample plain = MakeSample(), hostile = MakeHostileSample();
  const auto near = [](const SourcePos& where, std::string_view) {
    return std::vector<NearbyLine>{{where.line, HostileText()}, {where.line + 1, HostileText()}};
  };
  const std::string page = PageOf(hostile.timeline, hostile.verdict, near);
  CHECK(Count(page, "<script") == 2);
  CHECK(Count(page, "</script>") == Count(PageOf(plain.timeline, plain.verdict, near), "</script>"));
  CHECK_FALSE(Has(page, "<script>alert"));
  CHECK(Has(page, "&lt;script&gt;alert(1)"));
  CHECK_FALSE(Has(page, "\xe2\x80\xae"));
  CHECK_FALSE(Has(page, "\x1b"));
  CHECK_FALSE(Has(page, std::string_view("\0", 1)));
}

TEST_CASE("the page says all that matters without its script, and its policy names what is in it", "[unit][html]") {
  const Sample sample = MakeSample();
  const std::string page = PageOf(sample.timeline, sample.verdict);
  const std::string top = page.substr(0, page.find("id=\"data\""));
  for (const char* part : {"GPU hardware fault", "rank 28", "its GPU fell off the bus", "node07-kern.log:212",
                           "Drain the node", "nvidia-smi -q of the host", "yes, on other nodes"})
    CHECK(Has(top, part));
  CHECK(Has(page, "default-src 'none'; script-src 'sha256-"));
  for (const std::string_view digest : {PageStyleDigest(), PageScriptDigest()}) {
    CHECK(digest.size() == 7 + 44);
    CHECK(digest.ends_with('='));
    CHECK(Has(page, digest));
  }
  CHECK_FALSE(Has(page, " style="));
  CHECK(Count(page, "http") == Count(page, "http-equiv") + Count(page, "http://www.w3.org/2000/svg"));
  CHECK(Count(std::string(PageScript()), "innerHTML") == 0);
}

TEST_CASE("an empty verdict is a page", "[unit][html]") {
  const std::string page = PageOf({}, {});
  CHECK(Has(page, "UNDECIDED"));
  CHECK_FALSE(Has(page, "id=\"picture\""));
}

TEST_CASE("ranks to which the same befell share a lane, and culprits stand on top", "[unit][html]") {
  std::string log;
  for (int rank = 0; rank < 8; ++rank)
    if (rank != 5) log += TimeOut(rank, rank);
  log =
      "[rank5]: Traceback (most recent call last):\n[rank5]:   File \"train.py\", line 12, in main\n"
      "[rank5]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 5 has a total capacity "
      "of 79.11 GiB of which 1.02 GiB is free.\n" +
      log;
  const Judged judged = JudgeText(log);
  const Picture picture = DrawPicture(judged.timeline, judged.verdict);
  CHECK(Folds(picture) == std::vector<std::string>{"rank 5", "ranks 0-4, 6, 7"});
  const Lane& culprit = picture.lanes[picture.folds[0].lanes[0]];
  CHECK(culprit.culprit);
  REQUIRE(culprit.marks.size() == 1);
  CHECK(culprit.marks[0].kind == PictureMark::Kind::kMemory);
  CHECK(culprit.marks[0].cause);
  // Its lines print no time, and stand ahead of all that do.
  CHECK(picture.clock);
  CHECK(picture.moments[culprit.marks[0].moment].how == Moment::How::kAhead);
  const Lane& waiter = picture.lanes[picture.folds[1].lanes[0]];
  const auto wait = std::ranges::find(waiter.stretches, Stage::kWaiting, &Stretch::stage);
  REQUIRE(wait != waiter.stretches.end());
  CHECK(wait->what == "ALLREDUCE #4410");
  CHECK(picture.moments[wait->end].ns - picture.moments[wait->begin].ns == 600'043'000'000);
  CHECK(picture.moments[wait->begin].how == Moment::How::kComputed);
  CHECK_FALSE(picture.links.empty());
  CHECK(picture.links.front().from == culprit.marks[0].moment);
}

TEST_CASE("where no line has a time, order stands for it", "[unit][html]") {
  const Judged judged = JudgeText(
      "[rank0]: Setting up\n[rank1]: Setting up\n[rank1]: Traceback (most recent call last):\n"
      "[rank1]:   File \"train.py\", line 12, in main\n[rank1]: ValueError: bad shape\n");
  const Picture picture = DrawPicture(judged.timeline, judged.verdict);
  CHECK_FALSE(picture.clock);
  CHECK_FALSE(picture.mostly_timed);
  CHECK(std::ranges::is_sorted(picture.moments, {}, &Moment::ns));
  CHECK(Has(PageOf(judged.timeline, judged.verdict), "order stands for time"));
}

TEST_CASE("a kernel log alone is a picture of its host and its GPUs", "[unit][html]") {
  const Judged judged = JudgeText(
      "2031-04-05T12:01:01+0000 node07 kernel: NVRM: Xid (PCI:0000:4e:00): 79, pid=2113, GPU has fallen off the bus.\n"
      "2031-04-05T12:02:01+0000 node07 kernel: NVRM: Xid (PCI:0000:5d:00): 45, pid=2114, Ch 00000008\n");
  const Picture picture = DrawPicture(judged.timeline, judged.verdict);
  REQUIRE_FALSE(picture.folds.empty());
  const Lane& first = picture.lanes[picture.folds[0].lanes[0]];
  CHECK(first.of == Lane::Of::kDevice);
  CHECK(first.host == "node07");
  CHECK(first.culprit);
}

TEST_CASE("a page of 4,096 ranks stays below 2 MB, however unlike they are", "[unit][html]") {
  Sample sample = MakeSample();
  sample.timeline.events.clear();
  sample.verdict.lifelines.clear();
  for (int rank = 0; rank < 4096; ++rank) {
    Lifeline line;
    line.rank = GlobalRank{rank};
    line.first = static_cast<EventIndex>(sample.timeline.events.size());
    for (int i = 0; i < 40; ++i) {
      AddEvent(sample, 0, static_cast<std::uint64_t>(rank * 40 + i + 1), rank,
               "step " + std::to_string(rank * i) + std::string(static_cast<std::size_t>(rank % 97), 'x') +
                   " complains of something that is long enough to be cut");
      line.marks.push_back({line.first + static_cast<EventIndex>(i), "complaint"});
    }
    line.last = static_cast<EventIndex>(sample.timeline.events.size() - 1);
    Interval& interval = line.intervals.emplace_back();
    interval.at = rank % 2 == 0 ? Activity::kTraining : Activity::kLoading;
    interval.begin = line.first;
    interval.last = line.last;
    sample.verdict.lifelines.push_back(line);
  }
  sample.timeline.inputs[0].bytes = 1 << 30;
  sample.verdict.evidence.clear();
  sample.verdict.findings.clear();
  const std::string page = PageOf(sample.timeline, sample.verdict);
  CHECK(page.size() < 2'000'000);
  CHECK(DrawPicture(sample.timeline, sample.verdict).folds.size() < 8);
}

}  // namespace html_test
