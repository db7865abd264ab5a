# Writes the styles and the script of the pages into a source, with the digests that their policies name.
# usage: cmake -DSTYLE=FILE -DSCRIPT=FILE -DEVIDENCESTYLE=FILE -DOUTPUT=FILE -P assets.cmake
set(alphabet "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")

# Hexadecimal SHA-256 -> base64: 32 bytes are ten groups of three and one of two.
function(to_base64 hex out)
  set(text "")
  foreach(at RANGE 0 60 6)
    string(SUBSTRING "${hex}00" ${at} 6 group)
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${group} >> ${shift}) & 63")
      string(SUBSTRING "${alphabet}" ${digit} 1 character)
      string(APPEND text "${character}")
    endforeach()
  endforeach()
  string(REGEX REPLACE "A$" "=" text "${text}")
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

set(source "// Written by assets.cmake.\n#include \"report/html/parts.h\"\n\nnamespace inquest {\n\n")
foreach(name Style Script EvidenceStyle)
  string(TOUPPER "${name}" variable)
  file(READ "${${variable}}" text)
  file(SHA256 "${${variable}}" hex)
  to_base64("${hex}" digest)
  string(APPEND source "std::string_view Page${name}() {\n  return R\"~~~~(" "${text}" ")~~~~\";\n}\n"
         "std::string_view Page${name}Digest() { return \"sha256-${digest}\"; }\n\n")
endforeach()
file(WRITE "${OUTPUT}" "${source}" "}  // namespace inquest\n")
