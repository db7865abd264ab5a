// Compressed files and archives: their members, one after the other, expanded while they are read.
#include "parsers/archive_source.h"

#include <unistd.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace inquest {
namespace {

constexpr std::size_t kPullBytes = 256 * 1024;
constexpr const char* kTooDeep = "packed once more than is opened; unpack it and give the folder";
constexpr const char* kTooMuch = "expands to far more than a log does";

}  // namespace

/// What was read of the file, and what follows.
class ArchiveSource::File final : public ByteStream {
 public:
  File(std::string head, int file, std::uint64_t& packed_bytes, std::atomic<std::uint64_t>* progress)
      : head_(std::move(head)), file_(file), packed_bytes_(packed_bytes), progress_(progress), buffer_(kPullBytes) {}
  std::optional<std::string_view> Next() override {
    if (!std::exchange(begun_, true) && !head_.empty()) return std::string_view(head_);
    ssize_t got = 0;
    do got = ::read(file_, buffer_.data(), buffer_.size());
    while (got < 0 && errno == EINTR);
    if (got < 0) problem_ = std::strerror(errno);
    if (got <= 0) return std::nullopt;
    const auto size = static_cast<std::size_t>(got);
    packed_bytes_ += size;
    if (progress_ != nullptr) progress_->fetch_add(size, std::memory_order_relaxed);
    return std::string_view(buffer_.data(), size);
  }
  std::string TakeProblem() override { return std::exchange(problem_, {}); }

 private:
  std::string head_, problem_;
  int file_;
  std::uint64_t& packed_bytes_;
  std::atomic<std::uint64_t>* progress_;
  std::vector<char> buffer_;
  bool begun_ = false;
};

/// The member that `outer_` stands at, from its first byte.
class ArchiveSource::MemberOfOuter final : public ByteStream {
 public:
  explicit MemberOfOuter(ArchiveSource& source) : source_(source), head_(std::exchange(source.head_, {})) {}
  std::optional<std::string_view> Next() override {
    if (!std::exchange(begun_, true) && !head_.empty()) return std::string_view(head_);
    const auto block = source_.over_ ? std::nullopt : source_.outer_->Next();
    if (block) source_.Spend(source_.given_bytes_, block->size());
    return block;
  }
  std::string TakeProblem() override { return source_.outer_->TakeProblem(); }

 private:
  ArchiveSource& source_;
  std::string head_;
  bool begun_ = false;
};

ArchiveSource::ArchiveSource(std::string path, std::string head, int file, const ExpansionLimits& limits,
                             std::atomic<std::uint64_t>* progress)
    : path_(std::move(path)), limits_(limits), packed_bytes_(head.size()) {
  outer_ =
      Unpacker::Open(std::make_unique<File>(std::move(head), file, packed_bytes_, progress), [this](std::size_t bytes) {
        Spend(unpacked_bytes_, bytes);
        return !over_;
      });
}

ArchiveSource::~ArchiveSource() = default;

std::string ArchiveSource::Broken(std::string label, std::string problem) {
  broken_ = true;
  problem_ = std::move(problem);
  return label;
}

std::string ArchiveSource::Stop(std::string problem) {
  stopped_ = true;
  return Broken(path_, std::move(problem) + "; the rest was not read");
}

bool ArchiveSource::IsWanted(const Unpacker::Member& member) {
  using Kind = Unpacker::Kind;
  // What macOS puts beside every file is nobody's.
  const std::string_view name = std::string_view(member.name).substr(member.name.rfind('/') + 1);
  links_ += member.kind == Kind::kLink ? 1 : 0;
  hidden_ += member.kind == Kind::kHidden && !name.starts_with("._") ? 1 : 0;
  devices_ += member.kind == Kind::kDevice ? 1 : 0;
  return member.kind == Kind::kFile;
}

std::string ArchiveSource::PassedOver() const {
  std::string text;
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", count, what, count == 1 ? "" : "s");
  };
  add(links_, "link");
  add(hidden_, "hidden file");
  add(devices_, "device");
  return text.empty() ? text : "passed over: " + text;
}

std::optional<std::string> ArchiveSource::Next() {
  problem_.clear();
  head_.clear();
  broken_ = too_deep_ = false;
  fresh_ = true;
  while (!stopped_) {
    if (over_) return Stop(kTooMuch);
    if (auto label = NextInside()) return label;
    if (stopped_) break;
    const auto member = outer_->NextMember();
    if (over_) return Stop(kTooMuch);
    if (!member) {
      stopped_ = true;
      std::string problem = outer_->TakeProblem();
      if (problem.empty()) problem = PassedOver();
      if (met_any_ && problem.empty()) break;
      return Broken(path_, std::move(problem));
    }
    if (++members_ > limits_.members) return Stop(fmt::format("more than {} members", limits_.members));
    if (!IsWanted(*member)) continue;
    met_any_ = true;
    if (outer_->is_single()) return path_;
    std::string label = path_ + ":" + member->name;
    head_.resize(kArchiveHead);
    head_.resize(outer_->Read(head_.data(), kArchiveHead));
    if (!IsArchive(head_)) return label;
    OpenInside(std::move(label));
  }
  return std::nullopt;
}

void ArchiveSource::OpenInside(std::string label) {
  inside_label_ = std::move(label);
  met_inside_ = false;
  inside_ = Unpacker::Open(std::make_unique<MemberOfOuter>(*this), [this](std::size_t bytes) {
    Spend(unpacked_bytes_, bytes);
    return !over_;
  });
}

std::optional<std::string> ArchiveSource::NextInside() {
  while (inside_ != nullptr) {
    const auto member = inside_->NextMember();
    if (over_) return Stop(kTooMuch);
    if (!member) {
      std::string problem = inside_->TakeProblem();
      inside_.reset();
      if (met_inside_ && problem.empty()) return std::nullopt;
      return Broken(inside_label_, std::move(problem));
    }
    if (++members_ > limits_.members) return Stop(fmt::format("more than {} members", limits_.members));
    if (!IsWanted(*member)) continue;
    met_inside_ = true;
    return inside_->is_single() ? inside_label_ : inside_label_ + ":" + member->name;
  }
  return std::nullopt;
}

void ArchiveSource::Spend(std::uint64_t& counter, std::size_t bytes) {
  counter += bytes;
  const bool too_dense = counter > limits_.dense_bytes && counter / limits_.ratio > packed_bytes_;
  over_ = over_ || counter > limits_.bytes || too_dense;
}

std::size_t ArchiveSource::ReadOuter(char* to, std::size_t room) {
  const std::size_t size = std::min(room, head_.size());
  std::memcpy(to, head_.data(), size);
  head_.erase(0, size);
  return size + outer_->Read(to + size, room - size);
}

std::size_t ArchiveSource::Read(char* to, std::size_t room) {
  if (broken_) return 0;
  const std::size_t got = inside_ != nullptr ? inside_->Read(to, room) : ReadOuter(to, room);
  Spend(given_bytes_, got);
  if (std::exchange(fresh_, false)) too_deep_ = inside_ != nullptr && IsArchive({to, got});
  if (got < room) {
    problem_ = (inside_ != nullptr ? *inside_ : *outer_).TakeProblem();
    if (problem_.empty() && too_deep_) problem_ = kTooDeep;
    broken_ = true;
  }
  if (over_) {
    problem_ = std::string(kTooMuch) + "; the rest was not read";
    broken_ = stopped_ = true;
  }
  return got;
}

}  // namespace inquest
