// Sums over many numbers in several lanes side by side: a single sum waits for each of its additions.
#pragma once

#include <cstdint>

namespace tilewise {

// For functions whose loops gain from wider registers: compiled for these too, and chosen when the module is loaded.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define TILEWISE_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define TILEWISE_WIDE
#endif

constexpr int sum_lanes = 8;

// Adds `term(x)` for all x of a range, lane x % 8 first; always in the same order.
template <class Term>
inline double lane_sum(std::int64_t count, Term term) {
    double part[sum_lanes] = {};
    std::int64_t x = 0;
    for (; x + sum_lanes <= count; x += sum_lanes)
        for (int lane = 0; lane < sum_lanes; ++lane) part[lane] += term(x + lane);
    for (int lane = 0; x < count; ++x, ++lane) part[lane] += term(x);
    double total = 0.0;
    for (int lane = 0; lane < sum_lanes; ++lane) total += part[lane];
    return total;
}

// A sum of 0 * x is 0 only if every x is finite.
inline bool all_finite(const double* x, std::int64_t count) {
    return lane_sum(count, [x](std::int64_t k) { return 0.0 * x[k]; }) == 0.0;
}

}  // namespace tilewise
