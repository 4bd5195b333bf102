#include "lanes.hpp"

#include "wide.hpp"

namespace tilewise {

TILEWISE_WIDE double dot(std::int64_t count, const double* a, const double* b) {
    return lane_sum(count, [a, b](std::int64_t k) { return a[k] * b[k]; });
}

// A sum of 0 * x is 0 only if every x is finite.
TILEWISE_WIDE bool all_finite(std::int64_t count, const double* x) {
    return lane_sum(count, [x](std::int64_t k) { return 0.0 * x[k]; }) == 0.0;
}

TILEWISE_WIDE void add_multiple(std::int64_t count, double factor, const double* from, double* to, bool assign) {
    if (assign)
        for (std::int64_t k = 0; k < count; ++k) to[k] = factor * from[k];
    else
        for (std::int64_t k = 0; k < count; ++k) to[k] += factor * from[k];
}

}  // namespace tilewise
