// Markup into which nothing can come unescaped.
#include "report/html/markup.h"

#include "report/terminal.h"

namespace inquest {

std::string EscapeHtml(std::string_view text) {
  std::string out;
  for (const char c : Reveal(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

// In JSON these stand in texts alone; U+2028 and its like are escapes already.
std::string EscapeScript(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&')
      out += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    else
      out += c;
  }
  return out;
}

}  // namespace inquest
