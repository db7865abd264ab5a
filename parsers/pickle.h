// Reads a pickle as data: numbers, texts, lists and dictionaries, and nothing that would have to be called.
// Format:  protocols 0 to 5 of Python's pickle (Lib/pickletools.py), of which PyTorch's C++ pickler
//          (torch/csrc/jit/serialization/pickler.cpp) writes a part of protocol 2.
// Not read: what names a class or a function, or calls one (GLOBAL, REDUCE, BUILD and the like): refused, with opcode
//          and offset. Persistent ids, extensions, buffers out of band.
#pragma once

#include <string>
#include <string_view>

#include "parsers/data_value.h"

namespace inquest {

/// `\x80`, the protocol, and what opens a frame, a dictionary, a list, a tuple or a class' name.
bool IsPickle(std::string_view head);

struct PickleRead {
  DataValue root;
  std::string problem;  ///< why it is not whole: cut, refused, too large; empty: it is. What came before is in `root`
};

/// Texts of the values lie in `bytes`, nodes in `pool`. Where the bytes end inside something, that is closed and marked
/// as torn, and so is all around it.
PickleRead ReadPickle(std::string_view bytes, DataPool& pool);

}  // namespace inquest
