// In which pages new memory comes.
#pragma once

#include <cstddef>

namespace tilewise {

constexpr std::size_t huge_page = std::size_t{1} << 21;

// Of memory that nobody has written to: huge pages, which take the least time, but small ones where a virtual machine reports to
// its host what is free. It does so in huge pages. Each of them then has to be found by the host anew, which takes ten times as
// long as to clear it, while small pages come out of what was in use a moment ago.
void choose_pages(void* at, std::size_t bytes);

}  // namespace tilewise
