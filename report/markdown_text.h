// Text of a log as a part of Markdown that a forge shows: it names nobody, links nowhere, and begins nothing.
#pragma once

#include <string>
#include <string_view>

namespace inquest {

/// For running text. Neither CommonMark nor what GitHub and GitLab add to it finds anything in it: no markup, HTML,
/// mention, reference, link, picture, formula, emoji or quick action. `@`, `#` and their like are set apart from what
/// follows by U+200B, since a backslash does not hinder them.
std::string EscapeMarkdown(std::string_view text);

/// On a line of its own kind: as it is, in a code span. Controls and what turns or hides text are made visible.
std::string CodeSpan(std::string_view text);

/// The same as a block: a fence longer than any in the text, every line behind `indent`, the last one ended.
std::string Fenced(std::string_view text, std::string_view language, std::string_view indent);

}  // namespace inquest
