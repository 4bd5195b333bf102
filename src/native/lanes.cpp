#include "lanes.hpp"

#include <cstring>

#include "wide.hpp"

namespace tilewise {

TILEWISE_WIDE double dot(std::int64_t count, const double* a, const double* b) {
    return lane_sum(count, [a, b](std::int64_t k) { return a[k] * b[k]; });
}

// All bits of the exponent are set in what is infinite or no number.
TILEWISE_WIDE bool all_finite(std::int64_t count, const double* x) {
    constexpr std::uint64_t exponent = 0x7ff0000000000000;
    std::uint64_t found = 0;
    for (std::int64_t k = 0; k < count; ++k) {
        std::uint64_t bits;
        std::memcpy(&bits, x + k, sizeof bits);
        found |= (bits & exponent) == exponent;
    }
    return found == 0;
}

TILEWISE_WIDE void add_multiple(std::int64_t count, double factor, const double* from, double* to, bool assign) {
    if (assign)
        for (std::int64_t k = 0; k < count; ++k) to[k] = factor * from[k];
    else
        for (std::int64_t k = 0; k < count; ++k) to[k] += factor * from[k];
}

}  // namespace tilewise
