// The parts of the page that are more than a paragraph: cited lines, tables of groups, and the picture's data.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "report/html/markup.h"
#include "report/html/page.h"
#include "rules/picture.h"

namespace inquest {

/// Cited lines, each with what stands round it the first time it is shown.
class CitedLines {
 public:
  CitedLines(const Timeline& timeline, const LinesNear& near) : timeline_(timeline), near_(near) {}
  Html Show(const Citation& citation);
  Html Show(EventIndex event);
  bool IsShown(EventIndex event) const;

 private:
  std::string Near(const SourcePos& where, std::string_view text);
  const Timeline& timeline_;
  const LinesNear& near_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> shown_;
  std::size_t excerpts_ = 0;
};

/// A table a process group or communicator: who is in which operation. Empty: none is known.
Html GroupTables(const Timeline& timeline);

/// What the page's script draws, as JSON that is safe inside its element. Bounded: of very many lanes, texts and then
/// lanes are left out, and the page says so.
std::string PictureData(const Timeline& timeline, const Picture& picture);

/// The first cause and what followed from it, in order. Empty: nothing is known to have.
Html ChainInWords(const Timeline& timeline, const Picture& picture);

/// The picture in words, for those who do not see it: a row a fold.
Html PictureInWords(const Timeline& timeline, const Picture& picture);

/// Embedded by the build, with the digests that the page's policy names.
std::string_view PageStyle();
std::string_view PageScript();
std::string_view PageStyleDigest();
std::string_view PageScriptDigest();
std::string_view PageEvidenceStyle();
std::string_view PageEvidenceStyleDigest();

}  // namespace inquest
