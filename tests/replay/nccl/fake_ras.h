// The RAS of the fake libnccl: what ranks have launched, told by the files that they left.
#pragma once

#include <string>

/// From a thread of its own; the first communicator of the process has it.
void ServeRas(const std::string& address, const std::string& folder, int nranks);
