# How the sources of a room are compiled.

option(INQUEST_UNITY "Compile several sources of a room at once, in a third less time" ON)

# inquest_unity(TARGET): sources of one folder are compiled about six at a time, those alone that are not checked in. Which
# go together depends on a source's own name: a new one makes its own unit anew, and others only where their number grows.
# Two in one unit do not define the same name, in an anonymous namespace either.
function(inquest_unity target)
  if(NOT INQUEST_UNITY)
    return()
  endif()
  set(size 6)
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "^[^/$].*\\.cc$")
  set(folders "")
  foreach(source IN LISTS sources)
    get_filename_component(folder "${source}" DIRECTORY)
    string(MAKE_C_IDENTIFIER "in_${folder}" folder)
    list(APPEND folders ${folder})
    list(APPEND ${folder} "${source}")
  endforeach()
  list(REMOVE_DUPLICATES folders)
  foreach(folder IN LISTS folders)
    list(LENGTH ${folder} count)
    math(EXPR units "(${count} + ${size} - 1) / ${size}")
    foreach(source IN LISTS ${folder})
      string(SHA1 hash "${source}")
      string(SUBSTRING "${hash}" 0 4 hash)
      math(EXPR unit "0x${hash} % ${units}")
      set_property(SOURCE "${source}" PROPERTY UNITY_GROUP "${folder}_${unit}")
    endforeach()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# inquest_hot(TARGET SOURCE...): a release is compiled at -O1, in half the time of -O2, but for the sources that
# every byte of a log passes, which are named here. bench/run.sh says what that costs. GCC takes a precompiled header only
# at the level it was made at: they do without.
function(inquest_hot target)
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    get_target_property(sources ${target} SOURCES)
    list(REMOVE_ITEM sources ${ARGN})
    set_property(TARGET ${target} PROPERTY SOURCES ${sources} $<TARGET_OBJECTS:${target}_hot>)
    add_library(${target}_hot OBJECT ${ARGN})
    target_link_libraries(${target}_hot PRIVATE $<TARGET_PROPERTY:${target},LINK_LIBRARIES>)
    target_compile_options(${target}_hot PRIVATE -O2)
    inquest_unity(${target}_hot)
  endif()
endfunction()

# inquest_cold(TARGET CONFIG...): of a room whose work is not to read a log. In a release it is compiled at -Og, in three
# quarters of the time of -O1; with sanitizers (Debug) at -O0, in half of it.
function(inquest_cold target)
  if(CMAKE_BUILD_TYPE IN_LIST ARGN)
    target_compile_options(${target} PRIVATE ${INQUEST_COLD_LEVEL})
    target_precompile_headers(${target} REUSE_FROM inquest_precompiled_cold)
  else()
    target_precompile_headers(${target} REUSE_FROM inquest_precompiled)
  endif()
endfunction()
set(INQUEST_COLD_LEVEL "$<IF:$<CONFIG:Release>,-Og,-O0>")
