// Integrals of one class of pairs with the images of another one, as integrals over their combinations.
#pragma once

#include <cmath>

#include "transform.hpp"

namespace tilewise {

// Sums and differences of all values: out[t] = sum over j of (-1)^(bits that t and j share) in[j].
inline void walsh_hadamard(double* x, std::int64_t count) {
    for (std::int64_t step = 1; step < count; step *= 2)
        for (std::int64_t first = 0; first < count; first += 2 * step)
            for (std::int64_t k = first; k < first + step; ++k) {
                const double a = x[k], b = x[k + step];
                x[k] = a + b;
                x[k + step] = a - b;
            }
}

// Class L of the row of K: `value(e)` is the integral of K and the image of entry e.
template <int count, class Value>
inline void combine(const PairClasses& c, std::int64_t first, double scale, const Value& value, double* const* out) {
    double x[count];
    for (int j = 0; j < count; ++j) x[j] = scale * c.weight[first + j] * value(first + j);
    walsh_hadamard(x, count);
    for (int j = 0; j < count; ++j) out[c.irrep[first + j]][c.place[first + j]] = x[j];
}

template <class Value>
inline void combine(const PairClasses& c, std::int64_t l, double scale, const Value& value, double* const* out) {
    const std::int64_t first = c.first[l];
    switch (c.first[l + 1] - first) {
        case 1: return combine<1>(c, first, scale, value, out);
        case 2: return combine<2>(c, first, scale, value, out);
        case 4: return combine<4>(c, first, scale, value, out);
        default: return combine<8>(c, first, scale, value, out);
    }
}

// Row K of all irreps that it has; what the others would get goes to `nowhere`.
struct RowOf {
    RowOf(const PairClasses& c, std::int64_t k, double* const* out, double* nowhere)
        : scale(std::sqrt(static_cast<double>(c.first[k + 1] - c.first[k]))) {
        for (auto& row : rows) row = nowhere;
        for (std::int64_t e = c.first[k]; e < c.first[k + 1]; ++e) {
            const std::int64_t a = c.place[e];
            rows[c.irrep[e]] = out[c.irrep[e]] + a * (a + 1) / 2;
            irreps |= 1u << c.irrep[e];
        }
    }

    double* rows[max_irreps];
    double scale;
    unsigned irreps = 0;
};

// Bits of the irreps that a class has.
inline unsigned irreps_of(const PairClasses& c, std::int64_t k) {
    unsigned bits = 0;
    for (std::int64_t e = c.first[k]; e < c.first[k + 1]; ++e) bits |= 1u << c.irrep[e];
    return bits;
}

}  // namespace tilewise
