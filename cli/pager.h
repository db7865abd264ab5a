// What is longer than a screen goes through the user's pager, as git's does.
#pragma once

#include <functional>

namespace inquest {

/// Calls `print` with standard output led into `$INQUEST_PAGER`, `$PAGER` or less (LESS=FRX where that is not set, so
/// that one screen is printed and no more), and waits until the pager is left. Where standard output is no terminal,
/// the pager is empty or `cat`, or cannot be run, `print` is called with standard output as it is.
void ThroughPager(const std::function<void()>& print);

}  // namespace inquest
