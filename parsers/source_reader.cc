// Reads inputs one after the other into blocks of whole lines, and those of archives member by member.
#include "parsers/source_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <tuple>
#include <utility>

#include "parsers/binary_form.h"
#include "parsers/block.h"
#include "parsers/flight_recorder.h"
#include "parsers/profiler_trace.h"

namespace inquest {
namespace {

namespace fs = std::filesystem;

constexpr int kPipeBytes = 1024 * 1024;
constexpr std::size_t kDumpCap = std::size_t{512} << 20;
constexpr InputForm kNotebook{"jupyter-notebook", "a Jupyter notebook, read by what its cells printed"};

std::size_t LastTerminator(std::string_view text) {
  const void* newline = ::memrchr(text.data(), '\n', text.size());
  if (newline != nullptr) return static_cast<std::size_t>(static_cast<const char*>(newline) - text.data());
  // A '\r' at the very end may be half of a line's end.
  const std::size_t earlier = text.substr(0, text.size() - 1).rfind('\r');
  return earlier != std::string_view::npos ? earlier : text.rfind('\r');
}

Error ReadError(const std::string& path, int code) {
  return Error{std::strerror(code), code == EACCES ? "run as a user who may read it, or copy it" : "check the path",
               path};
}

// A folder's own order is the file system's accident; the path order is the same everywhere.
Result<std::vector<std::string>> FilesUnder(const std::string& folder) {
  std::vector<std::string> out;
  std::error_code error;
  fs::recursive_directory_iterator it(folder, fs::directory_options::skip_permission_denied, error), end;
  if (error) return ReadError(folder, error.value());
  for (; it != end; it.increment(error)) {
    if (error) break;
    const std::string name = it->path().filename().string();
    if (!name.empty() && name[0] == '.') {
      if (it->is_directory(error)) it.disable_recursion_pending();
      continue;
    }
    const bool closed = it->is_directory(error) && ::access(it->path().c_str(), R_OK | X_OK) != 0;
    if (closed || it->is_regular_file(error)) out.push_back(it->path().string());
  }
  return out;
}

}  // namespace

Result<std::vector<Input>> ListInputs(const std::vector<std::string>& paths) {
  std::vector<Input> inputs;
  std::string empty_folder;
  for (const std::string& path : paths) {
    struct stat status {};
    if (path != "-" && ::stat(path.c_str(), &status) != 0) return ReadError(path, errno);
    if (path == "-" || !S_ISDIR(status.st_mode)) {
      inputs.push_back({path, S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0});
      continue;
    }
    auto files = FilesUnder(path);
    if (!files) return files.error();
    if (files->empty()) empty_folder = path;
    for (const std::string& file : *files) {
      std::error_code error;
      const auto size = fs::file_size(file, error);
      inputs.push_back({file, error ? 0 : static_cast<std::uint64_t>(size), true});
    }
  }
  if (inputs.empty() && !empty_folder.empty())
    return Error{"there is no file in it", "give the folder that holds the job's logs; hidden files are passed over",
                 empty_folder};
  std::sort(inputs.begin(), inputs.end(),
            [](const Input& a, const Input& b) { return std::tie(a.path, a.found) < std::tie(b.path, b.found); });
  inputs.erase(
      std::unique(inputs.begin(), inputs.end(), [](const Input& a, const Input& b) { return a.path == b.path; }),
      inputs.end());
  return inputs;
}

BlockBuffer::BlockBuffer(std::size_t block_bytes) : capacity_(block_bytes), bytes_(new char[block_bytes + kPadding]) {
  std::memset(bytes_.get() + block_bytes, 0, kPadding);
}

SourceReader::SourceReader(const std::vector<Input>& inputs, std::size_t block_bytes,
                           std::atomic<std::uint64_t>* progress, const ExpansionLimits& limits)
    : inputs_(&inputs), block_bytes_(block_bytes), progress_(progress), limits_(limits) {}

SourceReader::SourceReader(std::string_view text, std::size_t block_bytes)
    : memory_(text), block_bytes_(block_bytes), path_("text"), open_(true), first_(true) {}

SourceReader::~SourceReader() { Close(); }

void SourceReader::Close() {
  archive_.reset();
  if (file_ > 0) ::close(file_);
  file_ = -1;
}

void SourceReader::Begin(std::string path) {
  path_ = std::move(path);
  problem_.clear();
  open_ = first_ = true;
  cut_ = eof_ = false;
  utf16_.reset();
  restored_.reset();
  container_.reset();
  notebook_.reset();
  form_ = nullptr;
}

bool SourceReader::OpenMember() {
  auto path = archive_->Next();
  if (path)
    Begin(std::move(*path));
  else
    Close();
  return path.has_value();
}

Result<bool> SourceReader::OpenNext() {
  if (archive_ != nullptr && OpenMember()) return true;
  if (inputs_ == nullptr || next_path_ >= inputs_->size()) return false;
  const auto& [path, size, found] = (*inputs_)[next_path_++];
  file_ = path == "-" ? 0 : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const int code = errno;
  if (file_ < 0 && !found) return ReadError(path, code);
  Begin(path);
  found_ = found;
  if (file_ < 0) {
    problem_ = std::string("not read: ") + std::strerror(code);
    return true;
  }
  ::posix_fadvise(file_, 0, 0, POSIX_FADV_SEQUENTIAL);
  ::fcntl(file_, F_SETPIPE_SZ, kPipeBytes);  // fails on what is no pipe, which is fine
  return true;
}

Result<std::size_t> SourceReader::Fill(char* to, std::size_t room) {
  if (!container_) return FillRestored(to, room);
  const std::size_t filled = container_->Fill(to, room);
  if (read_error_) return *read_error_;
  eof_ = filled < room;
  return filled;
}

Result<std::size_t> SourceReader::FillRestored(char* to, std::size_t room) {
  if (notebook_) {
    const std::size_t filled = notebook_->Fill(to, room);
    if (read_error_) return *read_error_;
    eof_ = filled < room;
    return filled;
  }
  if (!restored_) return FillText(to, room);
  const std::size_t filled = restored_->Fill(to, room);
  if (read_error_) return *read_error_;
  eof_ = filled < room;
  return filled;
}

Result<std::size_t> SourceReader::FillText(char* to, std::size_t room) {
  if (!utf16_) return FillRaw(to, room);
  const std::size_t filled = utf16_->Fill(to, room);
  if (read_error_) return *read_error_;
  eof_ = filled < room;
  return filled;
}

Result<std::size_t> SourceReader::FillRaw(char* to, std::size_t room) {
  std::size_t filled = 0;
  if (inputs_ == nullptr) {
    filled = std::min(room, memory_.size());
    std::memcpy(to, memory_.data(), filled);
    memory_.remove_prefix(filled);
    eof_ = memory_.empty();
    return filled;
  }
  if (archive_ != nullptr) {
    filled = archive_->Read(to, room);
    eof_ = filled < room;
    return filled;
  }
  while (filled < room) {
    const ssize_t got = file_ < 0 ? 0 : ::read(file_, to + filled, room - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && !found_) return ReadError(path_, errno);
    if (got < 0) problem_ = std::string("the rest was not read: ") + std::strerror(errno);
    if (got <= 0) {
      eof_ = true;
      break;
    }
    filled += static_cast<std::size_t>(got);
  }
  if (progress_ != nullptr) progress_->fetch_add(filled, std::memory_order_relaxed);
  return filled;
}

// The first block of a file turned out to begin an archive: what was read of it goes there, and its first member's
// first block takes the place.
Result<std::size_t> SourceReader::OpenArchive(BlockBuffer& buffer, std::size_t size) {
  archive_ = std::make_unique<ArchiveSource>(path_, std::string(buffer.data(), size), file_, limits_, progress_);
  INQUEST_CHECK(OpenMember());
  return Fill(buffer.data(), buffer.capacity());
}

/// The same for the first block of an input in UTF-16.
Result<std::size_t> SourceReader::OpenUtf16(BlockBuffer& buffer, std::size_t size) {
  utf16_.emplace(std::string(buffer.data(), size), eof_, [this](char* to, std::size_t room) {
    const auto got = FillRaw(to, room);
    if (!got) read_error_ = got.error();
    return got ? *got : 0;
  });
  return Fill(buffer.data(), buffer.capacity());
}

/// The same for the first block of what went through other hands.
Result<std::size_t> SourceReader::OpenRestored(Restoration restoration, BlockBuffer& buffer, std::size_t size) {
  restored_.emplace(std::move(restoration), std::string(buffer.data(), size), eof_, [this](char* to, std::size_t room) {
    const auto got = FillText(to, room);
    if (!got) read_error_ = got.error();
    return got ? *got : 0;
  });
  return Fill(buffer.data(), buffer.capacity());
}

/// What is not read, but for what came with its head; of an archive, all of it, so that the next member can be.
Result<std::size_t> SourceReader::PassOver(BlockBuffer& buffer, std::size_t size) {
  std::uint64_t bytes = size, lines = 0;
  while (true) {
    lines += static_cast<std::uint64_t>(std::count(buffer.data(), buffer.data() + size, '\n'));
    if (eof_ || archive_ == nullptr) break;
    const auto filled = FillText(buffer.data(), buffer.capacity());
    if (!filled) return filled;
    bytes += size = *filled;
  }
  eof_ = true;
  passed_over_ = {.lines = {}, .claimed = bytes, .damaged = 0};
  if (lines > 0) passed_over_.lines.push_back({0, lines});
  return std::size_t{0};
}

/// A dump is read whole, up to a cap. No text is left of it.
Result<std::size_t> SourceReader::TakeDump(BlockBuffer& buffer, std::size_t size) {
  dump_ = std::make_shared<Dump>();
  dump_->size = size;
  dump_->bytes.assign(buffer.data(), size);
  while (!eof_) {
    const auto filled = FillText(buffer.data(), buffer.capacity());
    if (!filled) return filled;
    dump_->size += *filled;
    const bool fits = dump_->size <= kDumpCap;
    if (fits) dump_->bytes.append(buffer.data(), *filled);
    if (!fits && archive_ == nullptr) break;
  }
  eof_ = true;
  return std::size_t{0};
}

/// A trace may be longer than memory, and is read as it comes.
Result<std::size_t> SourceReader::TakeTrace(BlockBuffer& buffer, std::size_t size) {
  dump_ = std::make_shared<Dump>();
  ProfilerTraceReader reader;
  for (std::size_t filled = size;;) {
    dump_->size += filled;
    reader.Feed({buffer.data(), filled});
    if (eof_) break;
    const auto more = FillText(buffer.data(), buffer.capacity());
    if (!more) return more;
    filled = *more;
  }
  dump_->trace = reader.Finish();
  return std::size_t{0};
}

/// The same for the first block of a notebook.
Result<std::size_t> SourceReader::OpenNotebook(BlockBuffer& buffer, std::size_t size) {
  notebook_.emplace(std::string(buffer.data(), size), eof_, [this](char* to, std::size_t room) {
    const auto got = FillText(to, room);
    if (!got) read_error_ = got.error();
    return got ? *got : 0;
  });
  return Fill(buffer.data(), buffer.capacity());
}

/// The same for the first block of what a container runtime wrote.
Result<std::size_t> SourceReader::OpenContainer(BlockBuffer& buffer, std::size_t size) {
  container_.emplace(std::string(buffer.data(), size), eof_, [this](char* to, std::size_t room) {
    const auto got = FillRestored(to, room);
    if (!got) read_error_ = got.error();
    return got ? *got : 0;
  });
  return Fill(buffer.data(), buffer.capacity());
}

Result<std::optional<Block>> SourceReader::Next(BlockBuffer& buffer) {
  if (!open_) {
    const auto opened = OpenNext();
    if (!opened) return opened.error();
    if (!opened.value()) return std::optional<Block>();
  }
  std::memcpy(buffer.data(), carry_.data(), carry_.size());
  const std::size_t carried = carry_.size();
  carry_.clear();
  auto filled = Fill(buffer.data() + carried, buffer.capacity() - carried);
  if (filled && first_ && file_ >= 0 && archive_ == nullptr && IsArchive({buffer.data(), *filled}))
    filled = OpenArchive(buffer, *filled);
  if (filled && first_ && IsFlightDump({buffer.data(), *filled})) {
    filled = TakeDump(buffer, *filled);
  } else if (filled && first_ && IsProfilerTrace({buffer.data(), *filled})) {
    filled = TakeTrace(buffer, *filled);
  } else if (filled && first_ && (form_ = UnreadForm(path_, {buffer.data(), *filled})) != nullptr) {
    filled = PassOver(buffer, *filled);
  }
  const bool new_text = first_ && form_ == nullptr && dump_ == nullptr;
  if (filled && new_text && IsUtf16({buffer.data(), *filled})) filled = OpenUtf16(buffer, *filled);
  if (filled && new_text && IsNotebook({buffer.data(), *filled})) {
    form_ = &kNotebook;
    filled = OpenNotebook(buffer, *filled);
  } else if (filled && new_text) {
    form_ = BinaryForm({buffer.data(), *filled});
  }
  const bool may_be_wrapped = new_text && !notebook_;
  if (filled && may_be_wrapped)
    if (auto restoration = Restoration::Find({buffer.data(), *filled}, eof_))
      filled = OpenRestored(std::move(*restoration), buffer, *filled);
  if (filled && may_be_wrapped && (!restored_ || !restored_->drops_lines()) && IsContainerLog({buffer.data(), *filled}))
    filled = OpenContainer(buffer, *filled);
  if (!filled) return filled.error();
  std::size_t size = carried + *filled;

  Block block;
  block.number = number_++;
  if (first_) {
    ++begun_;
    block.path = path_;
    block.form = form_;
  }
  block.input = begun_ - 1;
  block.cut_head = cut_;
  block.first = first_;
  if (container_) block.removed = container_->TakeRemoved();
  if (restored_) {
    Removed removed = restored_->TakeRemoved();
    block.removed.claimed += removed.claimed;
    if (!container_) block.removed.lines = std::move(removed.lines);
  }
  if (notebook_) block.removed = notebook_->TakeRemoved();
  block.dump = std::exchange(dump_, nullptr);
  if (first_) block.removed.claimed += passed_over_.claimed;
  if (first_ && !passed_over_.lines.empty()) block.removed.lines = std::move(passed_over_.lines);
  passed_over_ = {};
  block.container = container_ || restored_ || notebook_;
  first_ = cut_ = false;
  if (!eof_) {
    const std::size_t end = LastTerminator({buffer.data(), size});
    if (end == std::string_view::npos) {
      cut_ = true;
    } else {
      carry_.assign(buffer.data() + end + 1, size - end - 1);
      size = end + 1;
    }
  }
  block.text = {buffer.data(), size};
  block.offset = std::exchange(offset_, eof_ ? 0 : offset_ + size);
  block.last = eof_;
  if (eof_) {
    open_ = false;
    if (archive_ != nullptr)
      block.problem = archive_->problem();
    else
      Close();
    if (block.problem.empty()) block.problem = std::move(problem_);
    if (block.problem.empty() && notebook_) block.problem = notebook_->problem();
  }
  return std::optional<Block>(block);
}

}  // namespace inquest
