// Reads inputs and turns them into events: blocks scanned on every core, consumed in order on one.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "core/event.h"
#include "core/result.h"
#include "parsers/block.h"
#include "parsers/sieve.h"

namespace inquest {

/// One input: a path, or `-` for standard input.
struct Input {
  std::string path;
  std::uint64_t size_bytes = 0;  ///< 0: unknown (a pipe)
};

/// Files and folders (recursively, hidden ones and unreadable kinds left out) in path order, each once.
Result<std::vector<Input>> ListInputs(const std::vector<std::string>& paths);

struct ScanOptions {
  unsigned threads = 0;                  ///< 0: every core
  std::size_t block_bytes = 512 * 1024;
  std::atomic<std::uint64_t>* progress_bytes = nullptr;  ///< bytes read so far, for a progress line
};

/// What was read of one input.
struct InputRead {
  std::string path;
  Tally tally;
  std::vector<std::string> kinds;  ///< names of the formats seen, sorted
};

/// Scans every input and hands events to `sink` in input, then line order. Any number of threads gives the same calls.
Result<std::vector<InputRead>> ScanInputs(const std::vector<Input>& inputs, const Sieve& sieve, const ScanOptions& options, EventSink& sink);

/// The same over text in memory, for tests. `pieces` are read one by one, as a pipe would give them.
InputRead ScanText(std::string_view text, const Sieve& sieve, const ScanOptions& options, EventSink& sink);

}  // namespace inquest
