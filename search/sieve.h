// The scanner's view of the rules: which places of a block may matter. What the ids mean is not its business.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

namespace inquest {

/// Finds, in one pass over a block, the places that rules or formats ask for.
class Sieve {
 public:
  virtual ~Sieve() = default;

  struct Hit {
    std::uint32_t id = 0;
    std::uint32_t end = 0;  ///< byte behind the match, in the block
  };
  /// One per thread: scratch space, never shared.
  class Scanner {
   public:
    virtual ~Scanner() = default;
    /// Appends hits to `hits`, in any order; several hits of one id may fall on one line.
    virtual void Scan(std::string_view block, std::vector<Hit>& hits) = 0;
  };
  virtual std::unique_ptr<Scanner> MakeScanner() const = 0;
  /// Ids from here up mean "a format's mark", those below are rules.
  virtual std::uint32_t first_mark_id() const = 0;
  /// True where only the last hits of a block are worth keeping (a phase: progress bars would flood).
  virtual bool keep_last_only(std::uint32_t id) const = 0;
};

}  // namespace inquest
