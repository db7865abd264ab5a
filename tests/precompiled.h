// What most tests include, parsed once. No file may rely on it: each includes what it uses.
#pragma once

#include "core/precompiled.h"
#include "tests/catch.h"
