// What inquest read in a line, by the list of fields that its kind of event gives.
#pragma once

#include "core/event.h"
#include "report/json_value.h"

namespace inquest {

/// `{"kind": "xid", "xid": 79, "bus_id": "0000:4e:00.0"}`: its fields by their names, without those that the line does
/// not give; null of a line that no parser knows.
JsonValue EventInJson(const What& what);

}  // namespace inquest
