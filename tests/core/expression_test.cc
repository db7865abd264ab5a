// Expressions cut into pieces: nothing is lost, and what is no expression is none.
#include "core/expression.h"

#include "core/pattern.h"
#include "tests/catch.h"

namespace inquest {
namespace expression_test {

/// `b` a character, `\` an escape, `[` `]` a class, `:` a name in it, `(` `)` a group, `f` flags, `x` a repetition.
std::string Kinds(std::string_view expression) {
  const auto pieces = PiecesOf(expression);
  if (!pieces) return "none";
  std::string kinds, whole;
  for (const ExpressionPiece& piece : *pieces) {
    kinds += "b\\.^|x()f[:]"[static_cast<std::size_t>(piece.kind)];
    whole += piece.text;
  }
  CHECK(whole == expression);
  return kinds;
}

TEST_CASE("an expression is cut into pieces", "[expression]") {
  struct Row {
    const char* text;
    const char* kinds;
  };
  for (const Row& row : {Row{"", ""},
                         Row{"ab", "bb"},
                         Row{R"(\s\.\x41)", "\\\\\\bb"},
                         Row{"^a.$", "^b.^"},
                         Row{"a|b", "b|b"},
                         Row{"a*b+?c?", "bxbxbx"},
                         Row{"a{2,3}b{4}?c{,2}d{", "bxbxbbbbbbb"},
                         Row{"(a)(?:b)(?P<n>c)(?i-s:d)", "(b)(b)(b)(b)"},
                         Row{"a(?i)b", "bfb"},
                         Row{"[a-z]", "[bbb]"},
                         Row{"[]a][^]a]", "[bb][bb]"},
                         Row{R"([^\]\s[:alpha:]$|*])", "[\\\\:bbb]"},
                         Row{"é█x", "bbb"},
                         Row{"(", "none"},
                         Row{"a)", "none"},
                         Row{"[a", "none"},
                         Row{"a\\", "none"},
                         Row{"(?=a)", "none"},
                         Row{"(?<=a)", "none"},
                         Row{"a++", "none"},
                         Row{"*a", "none"},
                         Row{"[[:a", "none"}}) {
    CAPTURE(row.text);
    CHECK(Kinds(row.text) == row.kinds);
  }
}

TEST_CASE("quoted text matches itself and nothing else", "[expression]") {
  const std::string text = R"(a\b^c$d.e|f?g*h+(i)[j]{2})";
  CHECK(Pattern::Compile("^" + QuoteExpression(text) + "$").value().Matches(text));
  CHECK_FALSE(Pattern::Compile("^" + QuoteExpression("a.c") + "$").value().Matches("abc"));
}

}  // namespace expression_test
}  // namespace inquest
