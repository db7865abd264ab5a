// The pieces of a block: the fast code and the portable one against a plain reading, byte by byte.
#include "parsers/structure.h"

#include <random>

#include "parsers/block.h"
#include "tests/catch.h"

namespace inquest {
namespace structure_test {

/// Everything that a structure says, in words.
std::string Show(const std::vector<std::string>& pieces, const std::vector<std::size_t>& lines,
                 const std::vector<std::size_t>& odd,
                 const std::vector<std::pair<std::size_t, std::size_t>>& brackets) {
  std::string out;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    out += std::to_string(lines[i]) + ":" + std::to_string(pieces[i].size()) + " ";
  for (const std::size_t piece : odd) out += "odd " + std::to_string(piece) + " ";
  for (const auto& [offset, piece] : brackets) out += std::to_string(offset) + " in " + std::to_string(piece) + " ";
  return out;
}

std::string Plainly(std::string_view block) {
  std::vector<std::string> pieces;
  std::vector<std::size_t> lines, odd;
  std::vector<std::pair<std::size_t, std::size_t>> brackets;
  std::string piece;
  std::size_t line = 0;
  const auto end = [&] {
    pieces.push_back(piece);
    lines.push_back(line);
    piece.clear();
  };
  bool open = false;
  for (std::size_t i = 0; i < block.size(); ++i) {
    const char byte = block[i];
    open = true;
    if (byte == '\r' && i + 1 < block.size() && block[i + 1] == '\n') continue;
    if (byte == '\r' || byte == '\n') {
      end();
      if (byte == '\n') ++line;
      open = false;
      continue;
    }
    piece += byte;
    if (byte >= 0 && byte < 0x20 && byte != '\t' && byte != '\b' && byte != '\f' && byte != '\x1b' &&
        (odd.empty() || odd.back() != pieces.size()))
      odd.push_back(pieces.size());
    if (byte == ']' && block.substr(i, 3) == "] N") brackets.emplace_back(i, pieces.size());
  }
  if (open) end();
  return Show(pieces, lines, odd, brackets);
}

/// `random`: cut in stretches of any size, and a line at a time where a line allows that.
std::string Found(Structure& structure, std::string_view block, std::mt19937* random = nullptr) {
  std::vector<std::pair<std::size_t, std::size_t>> brackets;
  structure.Begin(block);
  while (!structure.done()) {
    const std::size_t at = structure.at(), end = block.find('\n', at);
    const std::string_view line = block.substr(at, end - at);
    if (random != nullptr && (*random)() % 2 == 0 && end != std::string_view::npos &&
        line.find(']') == std::string_view::npos &&
        std::none_of(line.begin(), line.end(), [](char c) { return c >= 0 && c < 0x20; })) {
      CHECK(structure.lines() ==
            static_cast<std::size_t>(std::count(block.begin(), block.begin() + static_cast<std::ptrdiff_t>(at), '\n')));
      structure.TakeLines(std::vector{static_cast<std::uint32_t>(end)});
      continue;
    }
    structure.Find(random != nullptr ? (*random)() % 300 : block.size());
    // Places that only may be NCCL's are no promise.
    for (const Structure::Found& found : structure.found())
      if (block.substr(found.offset, 3) == "] N") brackets.emplace_back(found.offset, found.piece);
  }
  std::vector<std::string> pieces;
  std::vector<std::size_t> lines, odd(structure.odd().begin(), structure.odd().end());
  std::size_t begin = 0;
  for (std::size_t i = 0; i < structure.size(); ++i) {
    pieces.emplace_back(structure.text(i));
    lines.push_back(structure.line(i));
    CHECK(structure.begin(i) == begin);
    begin = structure.next(i);
    CHECK(structure.PieceAt(structure.begin(i)) == i);
    CHECK(structure.PieceAt(structure.next(i) - 1) == i);
  }
  CHECK(begin == block.size());
  CHECK(structure.lines() == static_cast<std::size_t>(std::count(block.begin(), block.end(), '\n')));
  return Show(pieces, lines, odd, brackets);
}

TEST_CASE("structure: fast and portable code read what a plain loop reads", "[block]") {
  std::mt19937 random(20310405);
  const std::string_view alphabets[] = {"abc ]N\n",
                                        "a\n\r",
                                        std::string_view("a\0\n\r]", 5),
                                        "] N",
                                        "text without an end ",
                                        "\t\b\f\x1b\n\x01\x7f\x80\xff\r",
                                        "x"};
  Structure best("] N"), portable("] N", Code::kPortable);
  for (int round = 0; round < 600; ++round) {
    const std::string_view alphabet = alphabets[random() % std::size(alphabets)];
    const std::size_t size = random() % (round % 10 == 0 ? 20000 : 400);
    const bool rare = random() % 2 == 0;
    std::string block;
    while (block.size() < size) {
      if (rare) block.append(random() % 90, 'x');
      block += alphabet[random() % alphabet.size()];
    }
    const std::string padded = block + std::string(kPadding, "\nN\r"[random() % 3]);
    const std::string_view view = std::string_view(padded).substr(0, block.size());
    const std::string expected = Plainly(view);
    CAPTURE(round, block.size());
    CHECK((Found(best, view) == expected));
    CHECK((Found(portable, view) == expected));
    CHECK((Found(best, view, &random) == expected));
    CHECK((Found(portable, view, &random) == expected));
  }
}

}  // namespace structure_test
}  // namespace inquest
