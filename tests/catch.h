// The one door to Catch2: version 2 (Debian 12) and version 3 name their headers differently.
#ifndef INQUEST_TESTS_CATCH_H  // no pragma: compilers know files by their times, and this one may come precompiled out
                               // of a cache
#define INQUEST_TESTS_CATCH_H

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
#else
#include <catch2/catch.hpp>
#endif

#endif  // INQUEST_TESTS_CATCH_H
