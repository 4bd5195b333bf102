// Memory for long arrays of numbers. While pages are kept, those of arrays that are gone serve the arrays that follow: the
// system moves whole pages from one address to another sooner than it finds and clears new ones.
#pragma once

#include <cstddef>

namespace tilewise {

struct NewMemory {
    void* at = nullptr;
    std::size_t used_before = 0;  // bytes at the beginning that are not zero
};

// Throws std::bad_alloc if there is none.
NewMemory take_memory(std::size_t bytes);
void give_memory(void* at, std::size_t bytes);

// Pages are kept between two such calls, which may be nested. The last one gives them all back, in a thread of its own.
void keep_pages();
void give_pages_back();

// Waits until all pages that were to be given back are.
void settle_memory();

}  // namespace tilewise
