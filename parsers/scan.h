// Reads inputs and turns them into events: blocks scanned on every core, consumed in order on one.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/event_sink.h"
#include "core/input_form.h"
#include "core/result.h"
#include "parsers/block.h"
#include "search/sieve.h"

namespace inquest {

/// One input: a path, or `-` for standard input.
struct Input {
  std::string path;
  std::uint64_t size_bytes = 0;  ///< 0: unknown (a pipe)
  bool found = false;            ///< in a folder that was given: one that cannot be read does not end the scan
};

/// Files and folders (recursively, without hidden ones, sockets and the like) in path order, each once. A folder that
/// may not be entered stands as an input, which cannot be read. Folders that hold no file, and nothing else, are an
/// error.
Result<std::vector<Input>> ListInputs(const std::vector<std::string>& paths);

/// What a compressed file or an archive may expand to before the rest of it is left unread.
struct ExpansionLimits {
  std::uint64_t bytes = 64ULL << 30;
  std::uint64_t ratio = 1000;  ///< to one packed byte, once more than `dense_bytes` came out
  std::uint64_t dense_bytes = 100ULL << 20;
  std::uint64_t members = 100'000;
};

/// A host that the user names: of the input or folder `path`, or of all where it is empty.
struct GivenHost {
  std::string path, host;
};

struct ScanOptions {
  unsigned threads = 0;  ///< 0: every core
  std::size_t block_bytes = 1024 * 1024;
  std::atomic<std::uint64_t>* progress_bytes = nullptr;  ///< bytes read so far, for a progress line
  ExpansionLimits expansion = {};
  std::vector<GivenHost> hosts = {};
  CallTimes call_times = CallTimes::kLeft;
};

/// What was read of one input: a file, or a member of an archive, whose bytes are counted as they come out.
struct InputRead {
  std::string path;                        ///< `bundle.tar.zst:node07/dmesg.txt` for a member
  std::string problem;                     ///< why it was not read whole; empty: it was
  std::optional<Known<std::string>> host;  ///< of the folder it is in, or given
  Tally tally;
  std::vector<std::string> kinds;   ///< names of the formats seen, sorted
  const InputForm* form = nullptr;  ///< what it is, where it is known to be no log
};

/// Scans every input and hands events to `sink` in input, then line order. Any number of threads gives the same calls.
/// Archives are opened, and their members are inputs in the archive's order. What can be read of a damaged one is; an
/// error is only an unreadable file that was given by its path, or damage that left nothing at all.
Result<std::vector<InputRead>> ScanInputs(const std::vector<Input>& inputs, const Sieve& sieve,
                                          const ScanOptions& options, EventSink& sink);

/// The same over text in memory, for tests. `pieces` are read one by one, as a pipe would give them.
InputRead ScanText(std::string_view text, const Sieve& sieve, const ScanOptions& options, EventSink& sink);

}  // namespace inquest
