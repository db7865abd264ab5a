// A job's lines as a container runtime keeps them: wrapped, cut, two streams in one file.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace inquest {

enum class Runtime : std::uint8_t { kCri, kDocker };

/// What docker's json-file logger cuts at; CRI's runtimes cut anywhere.
inline constexpr std::size_t kDockerChunk = 16 * 1024;

struct Wrapped {
  std::string cut;                   ///< lines cut into chunks, those of stdout and stderr mixed
  std::string whole;                 ///< the same lines, none cut, in the order in which they begin in `cut`
  std::vector<std::uint64_t> lines;  ///< of `cut`, from 1, by line of `whole`: where it begins
};

/// A line is put into a stream by chance; those of one stream stay in order.
Wrapped Wrap(const std::vector<std::string>& lines, Runtime runtime, std::size_t chunk, std::mt19937& random);

}  // namespace inquest
