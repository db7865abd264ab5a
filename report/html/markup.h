// Markup into which nothing can come unescaped: texts are escaped where they are put in, and markup has a type.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace inquest {

/// What a log says, fit for an element or a quoted attribute: controls and what turns or hides text are made visible,
/// and nothing in it is markup.
std::string EscapeHtml(std::string_view text);

struct Html {
  std::string markup;
};

namespace markup {
inline std::string Safe(std::string_view text) { return EscapeHtml(text); }
inline std::string_view Safe(const Html& html) { return html.markup; }
template <class Number>
requires std::integral<Number> || std::floating_point<Number> Number Safe(Number number) { return number; }
template <class Argument>
using SafeType = decltype(Safe(std::declval<const Argument&>()));
}  // namespace markup

/// `form` is ours; of the arguments, texts are escaped, markup and numbers stand as they are.
template <class... Arguments>
Html Markup(fmt::format_string<markup::SafeType<Arguments>...> form, const Arguments&... arguments) {
  return {fmt::format(form, markup::Safe(arguments)...)};
}

/// A value of JSON as the content of a script element.
std::string EscapeScript(std::string_view json);

}  // namespace inquest
