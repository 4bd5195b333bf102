#include <atomic>
#include <cmath>
#include <vector>

#include "on_workers.hpp"
#include "transform.hpp"

namespace tilewise {

namespace {

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

template <int count>
inline void combine(const PairClasses& c, std::int64_t first, const double* row, double scale, double* const* out) {
    double x[count];
    for (int j = 0; j < count; ++j) x[j] = scale * c.weight[first + j] * row[c.image[first + j]];
    walsh_hadamard(x, count);
    for (int j = 0; j < count; ++j) out[c.irrep[first + j]][c.place[first + j]] = x[j];
}

// Row K of all irreps that it has; what the others would get goes to `nowhere`.
void adapt_row(const PairClasses& c, const double* row, std::int64_t k, double* const* out, double* nowhere) {
    double* rows[max_irreps];
    for (auto& place : rows) place = nowhere;
    for (std::int64_t e = c.first[k]; e < c.first[k + 1]; ++e) {
        const std::int64_t a = c.place[e];
        rows[c.irrep[e]] = out[c.irrep[e]] + a * (a + 1) / 2;
    }
    const double scale = std::sqrt(static_cast<double>(c.first[k + 1] - c.first[k]));
    for (std::int64_t l = 0; l <= k; ++l) {
        const std::int64_t first = c.first[l];
        switch (c.first[l + 1] - first) {
            case 1: combine<1>(c, first, row, scale, rows); break;
            case 2: combine<2>(c, first, row, scale, rows); break;
            case 4: combine<4>(c, first, row, scale, rows); break;
            default: combine<8>(c, first, row, scale, rows);
        }
    }
}

}  // namespace

void adapt_pairs(const PairClasses& classes, const PairMatrix& integrals, double* const* out, std::int64_t n_workers) {
    constexpr std::int64_t rows_at_once = 16;
    const std::int64_t n = classes.first.size - 1;
    std::atomic<std::int64_t> next{0};
    on_workers(n_workers, next, n, [&](std::int64_t) {
        std::vector<double> nowhere(n);
        for (std::int64_t end = n - next.fetch_add(rows_at_once); end > 0; end = n - next.fetch_add(rows_at_once))
            for (std::int64_t k = end - 1; k >= std::max<std::int64_t>(0, end - rows_at_once); --k)
                adapt_row(classes, integrals.row(classes.image[classes.first[k]]), k, out, nowhere.data());
    });
}

}  // namespace tilewise
