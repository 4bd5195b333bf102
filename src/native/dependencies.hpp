// Who waits for whom: found from what each task does to which panels.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "records.hpp"

namespace tilewise {

// Accumulations commute: they wait for assignments and for earlier reads, not for each other.
enum class Access : std::uint8_t { read = 0, assign = 1, accumulate = 2 };
constexpr const char* access_names[] = {"read", "assign", "accumulate"};  // by number

// Parallel arrays; what a task reads stands before what it writes. No task touches what another task of its
// operation writes, so that the numbers of the tasks are all the order that is needed.
struct Accesses {
    Span<std::int64_t> task;
    Span<std::int64_t> panel;
    Span<std::uint8_t> access;
};

// All pairs (task, a later task that waits for it), each once, sorted; `ordered`: accumulations wait for each
// other too.
std::vector<std::pair<std::int64_t, std::int64_t>> dependencies(const Accesses& accesses, std::int64_t n_tasks,
                                                                 std::int64_t n_panels, bool ordered);

}  // namespace tilewise
