// Reads inputs one after the other into blocks of whole lines, and those of archives member by member.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/call_trace.h"
#include "core/input_form.h"
#include "core/result.h"
#include "parsers/archive_source.h"
#include "parsers/container_log.h"
#include "parsers/notebook.h"
#include "parsers/restored_log.h"
#include "parsers/scan.h"
#include "parsers/utf16.h"

namespace inquest {

/// Memory for one block, reused; kPadding readable bytes follow what was read.
class BlockBuffer {
 public:
  explicit BlockBuffer(std::size_t block_bytes);
  char* data() { return bytes_.get(); }
  std::size_t capacity() const { return capacity_; }

 private:
  std::size_t capacity_;
  std::unique_ptr<char[]> bytes_;
};

/// An input that is the dump of a rank's recorder: whole, or, where it is too long for that, what was read of it.
struct Dump {
  std::uint64_t size = 0;
  std::string bytes;
  std::optional<CallTrace> trace;
};

/// A block of one input: whole lines, but for a line longer than a block, which is cut.
struct Block {
  std::uint64_t number = 0;  ///< from 0, over all inputs
  std::uint32_t input = 0;
  std::string_view text;             ///< in the buffer it was read into
  std::uint64_t offset = 0;          ///< of the text in its input's
  bool cut_head = false;             ///< begins inside a line that was cut
  bool first = false, last = false;  ///< of its input
  bool container = false;            ///< of an input that something wrapped, and that is read as what it wrapped
  const InputForm* form = nullptr;   ///< of its input, where `first`: what that is, where it is known to be no log
  Removed removed;                   ///< of the input, since the block before
  bool document = false;       ///< of an input that may be one document, and is not longer than kDocumentCap up to here
  std::string path;            ///< of its input, where `first`
  std::string problem;         ///< of its input, where `last`: why it is not whole
  std::shared_ptr<Dump> dump;  ///< what it is instead of a text, where it is a dump of a recorder
};

/// Not thread-safe: workers take turns, each reading into its own buffer, so that the bytes are in its own cache.
class SourceReader {
 public:
  SourceReader(const std::vector<Input>& inputs, std::size_t block_bytes, std::atomic<std::uint64_t>* progress,
               const ExpansionLimits& limits = {});
  ~SourceReader();
  /// A reader over bytes in memory, as one input.
  SourceReader(std::string_view text, std::size_t block_bytes);
  /// nullopt: no more. An unreadable input that was given by its path is an error, and the end.
  Result<std::optional<Block>> Next(BlockBuffer& buffer);

 private:
  Result<std::size_t> Fill(char* to, std::size_t room);
  Result<std::size_t> FillText(char* to, std::size_t room);
  Result<std::size_t> FillRaw(char* to, std::size_t room);
  Result<bool> OpenNext();
  Result<std::size_t> OpenArchive(BlockBuffer& buffer, std::size_t size);
  Result<std::size_t> OpenUtf16(BlockBuffer& buffer, std::size_t size);
  Result<std::size_t> FillRestored(char* to, std::size_t room);
  Result<std::size_t> OpenRestored(Restoration restoration, BlockBuffer& buffer, std::size_t size);
  Result<std::size_t> PassOver(BlockBuffer& buffer, std::size_t size);
  Result<std::size_t> TakeDump(BlockBuffer& buffer, std::size_t size);
  Result<std::size_t> TakeTrace(BlockBuffer& buffer, std::size_t size);
  Result<std::size_t> OpenNotebook(BlockBuffer& buffer, std::size_t size);
  Result<std::size_t> OpenContainer(BlockBuffer& buffer, std::size_t size);
  bool OpenMember();
  void Begin(std::string path);
  void Close();

  const std::vector<Input>* inputs_ = nullptr;
  std::string_view memory_;
  std::size_t block_bytes_;
  std::atomic<std::uint64_t>* progress_ = nullptr;
  ExpansionLimits limits_;
  int file_ = -1;
  std::unique_ptr<ArchiveSource> archive_;    ///< of `file_`, if that is one
  std::optional<Utf16Reader> utf16_;          ///< of the input that is open, if it is in that
  std::optional<RestoredReader> restored_;    ///< of the same, if it went through other hands
  std::optional<ContainerReader> container_;  ///< of the same, if a container runtime wrote it
  std::optional<NotebookReader> notebook_;    ///< of the same, if it is one: nothing else was done to it
  std::optional<Error> read_error_;           ///< what kept either from reading on
  std::string path_;                          ///< of the input that is open
  std::string problem_;                       ///< why it is not whole, where it is no archive
  const InputForm* form_ = nullptr;           ///< what it is, where it is no log
  Removed passed_over_;                       ///< of what is not read
  std::shared_ptr<Dump> dump_;                ///< what it is, where it is a dump
  bool found_ = false;                        ///< it is of a folder that was given
  std::size_t next_path_ = 0;                 ///< into `inputs_`
  std::uint32_t begun_ = 0;                   ///< inputs that gave a block; an archive gives many
  bool open_ = false, first_ = false, cut_ = false, eof_ = false;
  std::uint64_t number_ = 0, offset_ = 0;
  std::string carry_;  ///< the unfinished line at the end of the block before
};

}  // namespace inquest
