// What a line of the record of devices is to a vendor's case: a property, an error or notice, a state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "rules/vendor_case.h"

namespace inquest {

/// What is told of a part or a host.
struct CaseProperty {
  std::string_view name, title;
  bool counter = false;  ///< a counter, or a state: it may change without anybody being wrong
};
/// One row of a table that stands in the order in which they are told, so that rows compare by their place; nullptr: it
/// is not told.
const CaseProperty* FindCaseProperty(std::string_view name);

/// What two forms of a tool print for one value: hexadecimal digits are large in one and small in another.
std::string ComparedValue(std::string_view property, const std::string& value);

/// A property of the host, as an event that is not of the record alone says it.
std::optional<std::pair<std::string_view, std::string>> HostPropertyOf(const What& what);

/// A line of the kernel about a device; its quote is not filled. nullopt: it is about none, or about storage.
std::optional<CaseLine> CaseLineOf(const What& what);
/// What a tool says of a GPU that one that is well has not; the same.
std::optional<CaseLine> CaseStateOf(const What& what);

/// It speaks of an NVSwitch, or of the fabric that is made of them.
bool SaysSwitches(const What& what);
/// It speaks of a network adapter or its port.
bool SaysNetwork(const What& what);

}  // namespace inquest
