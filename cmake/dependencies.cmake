# The only file that knows versions and spellings of what we link. Debian 12 is the floor.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(fmt REQUIRED)
find_package(simdjson REQUIRED)
find_package(yaml-cpp REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(CLI11 REQUIRED)
find_package(LibArchive REQUIRED)
# For the job token of a replay over several nodes. Debian's libarchive uses it as well, so that nothing more is loaded.
pkg_check_modules(nettle REQUIRED IMPORTED_TARGET nettle)
# Headers alone, without a CMake package; Perfetto's traces are written with them.
find_path(PROTOZERO_INCLUDE_DIR protozero/pbf_builder.hpp REQUIRED)
add_library(inquest_protozero INTERFACE)
target_include_directories(inquest_protozero SYSTEM INTERFACE "${PROTOZERO_INCLUDE_DIR}")

# The program's allocator, and nothing else's: a third of a run on a small log was page faults of glibc's heap, and
# a flood's events come and go in no order, on which glibc spends a quarter of the time.
pkg_check_modules(jemalloc REQUIRED IMPORTED_TARGET jemalloc)

# The CPU engine of `inquest replay`; without it replay says what is missing.
find_package(Gloo QUIET)

# Debian 12's re2 has only re2.pc, later ones a CMake package.
find_package(re2 CONFIG QUIET)
if(NOT TARGET re2::re2)
  pkg_check_modules(re2 REQUIRED IMPORTED_TARGET re2)
  add_library(re2::re2 ALIAS PkgConfig::re2)
endif()

# libhs comes from vectorscan or hyperscan; both have only libhs.pc.
pkg_check_modules(libhs REQUIRED IMPORTED_TARGET libhs)
add_library(inquest_libhs ALIAS PkgConfig::libhs)

# yaml-cpp 0.7 exports `yaml-cpp`, later ones `yaml-cpp::yaml-cpp`.
if(NOT TARGET yaml-cpp::yaml-cpp)
  add_library(inquest_yaml INTERFACE)
  target_link_libraries(inquest_yaml INTERFACE yaml-cpp)
  add_library(yaml-cpp::yaml-cpp ALIAS inquest_yaml)
endif()
