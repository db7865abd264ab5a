// Compiles the precompiled header, once for all rooms.
#include "core/precompiled.h"
