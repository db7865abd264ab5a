// Bytes, rate and time left, ten times a second.
#include "cli/progress.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "cli/console.h"
#include "parsers/scan.h"

namespace inquest {
namespace {

std::string Size(double bytes) {
  const char* unit = "B";
  for (const char* next : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes < 1024) break;
    bytes /= 1024;
    unit = next;
  }
  return fmt::format("{:.1f} {}", bytes, unit);
}

std::string Duration(double seconds) {
  const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole / 60 % 60);
}

}  // namespace

std::string ProgressText(std::uint64_t done, std::uint64_t total, double seconds) {
  const auto bytes = static_cast<double>(done), all = static_cast<double>(total);
  std::string text = Size(bytes);
  if (total > 0) text += " of " + Size(all);
  const double rate = seconds > 0 ? bytes / seconds : 0;
  if (rate > 0) text += "  " + Size(rate) + "/s";
  if (rate > 0 && all > bytes) text += "  " + Duration((all - bytes) / rate) + " left";
  return text;
}

Progress::Progress(const std::atomic<std::uint64_t>& done, std::uint64_t total)
    : done_(done), total_(total), thread_([this] { Draw(); }) {}

Progress::~Progress() {
  {
    const std::lock_guard lock(mutex_);
    ended_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Progress::Draw() {
  using Clock = std::chrono::steady_clock;
  constexpr auto kPatience = std::chrono::milliseconds(500), kInterval = std::chrono::milliseconds(100);
  const Clock::time_point start = Clock::now();
  bool drawn = false;
  std::unique_lock lock(mutex_);
  for (auto wait = kPatience; !wake_.wait_for(lock, wait, [this] { return ended_; }); wait = kInterval) {
    const std::chrono::duration<double> passed = Clock::now() - start;
    WriteErr("\r\x1b[K" + ProgressText(done_.load(std::memory_order_relaxed), total_, passed.count()));
    drawn = true;
  }
  if (drawn) WriteErr("\r\x1b[K");
}

std::uint64_t TotalBytes(const std::vector<std::string>& paths) {
  const Result<std::vector<Input>> inputs = ListInputs(paths);
  std::uint64_t total = 0;
  for (const Input& input : inputs ? *inputs : std::vector<Input>()) {
    if (input.size_bytes == 0) return 0;
    total += input.size_bytes;
  }
  return total;
}

}  // namespace inquest
