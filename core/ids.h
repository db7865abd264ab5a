// Numbers that must not be mistaken for one another: ranks of three kinds, two counters, Known<T>.
#ifndef INQUEST_CORE_IDS_H  // no pragma: compilers know files by their times, and this one may come precompiled out of
                            // a cache
#define INQUEST_CORE_IDS_H

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace inquest {

/// A number with a meaning: never converts to another kind.
template <class Tag, class Rep>
struct Strong {
  Rep value{};
  auto operator<=>(const Strong&) const = default;
};

using GlobalRank = Strong<struct GlobalRankTag, std::int32_t>;  ///< place in the job
using LocalRank = Strong<struct LocalRankTag, std::int32_t>;    ///< place on its host
using GroupRank = Strong<struct GroupRankTag, std::int32_t>;    ///< place in one process group or communicator
using OpCount = Strong<struct OpCountTag, std::uint64_t>;       ///< NCCL's counter of launched plans, per communicator
using SeqId = Strong<struct SeqIdTag, std::int64_t>;            ///< the framework's counter, per process group

/// More ranks than any job has: a number beyond is none, whatever a damaged line prints.
constexpr bool IsRank(std::int64_t number) { return number >= 0 && number < 1 << 24; }

/// How a value is known, weakest first.
enum class Basis : std::uint8_t { kAssumed, kDerived, kFileName, kEnvelope, kObserved, kGiven };
std::string_view Name(Basis basis);

/// A value with how it is known; `rule` names the derivation where the basis is kDerived or kAssumed.
template <class T>
struct Known {
  T value{};
  Basis basis = Basis::kObserved;
  std::string_view rule{};  ///< a literal of the code that derived it
  bool operator==(const Known&) const = default;
};

}  // namespace inquest

#endif  // INQUEST_CORE_IDS_H
