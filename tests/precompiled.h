// What most tests include, parsed once. No file may rely on it: each includes what it uses.
#ifndef INQUEST_TESTS_PRECOMPILED_H  // no pragma: compilers know files by their times, and this one may come
                                     // precompiled out of a cache
#define INQUEST_TESTS_PRECOMPILED_H

#include "core/precompiled.h"
#include "tests/catch.h"

#endif  // INQUEST_TESTS_PRECOMPILED_H
