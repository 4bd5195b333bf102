#pragma once

#include <cstdint>

namespace tilewise {

// What this library has taken from the heap on this thread so far.
std::int64_t heap_allocations();

}  // namespace tilewise
