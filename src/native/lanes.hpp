// Loops over many numbers: sums in several lanes side by side, for a single sum waits for each of its additions.
#pragma once

#include <cstdint>

namespace tilewise {

constexpr int sum_lanes = 8;

// Adds `term(x)` for all x of a range, always in the same order.
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

double dot(std::int64_t count, const double* a, const double* b);

bool all_finite(std::int64_t count, const double* x);

// to += factor * from, or to = factor * from.
void add_multiple(std::int64_t count, double factor, const double* from, double* to, bool assign);

}  // namespace tilewise
