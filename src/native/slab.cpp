#include "slab.hpp"

#include <algorithm>

#include "processor.hpp"
#include "wide.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TILEWISE_AVX2 1
#include <immintrin.h>
#endif

namespace tilewise {

namespace {

constexpr std::int64_t width = slab_width;

#ifdef TILEWISE_AVX2

constexpr std::int64_t square = 4;       // rows and columns that are exchanged at a time
constexpr std::int64_t line = 8;         // numbers in a cache line,
constexpr std::int64_t lines_ahead = 6;  // and how far ahead rows are fetched

bool has_squares() {
    static const bool available = __builtin_cpu_supports("avx2");
    return available;
}

__attribute__((target("avx2"))) inline void transpose(__m256d (&x)[4]) {
    const __m256d a = _mm256_unpacklo_pd(x[0], x[1]), b = _mm256_unpackhi_pd(x[0], x[1]);
    const __m256d c = _mm256_unpacklo_pd(x[2], x[3]), d = _mm256_unpackhi_pd(x[2], x[3]);
    x[0] = _mm256_permute2f128_pd(a, c, 0x20);
    x[1] = _mm256_permute2f128_pd(b, d, 0x20);
    x[2] = _mm256_permute2f128_pd(a, c, 0x31);
    x[3] = _mm256_permute2f128_pd(b, d, 0x31);
}

__attribute__((target("avx2"))) void squares_to_slab(const double* const* rows, std::int64_t count, std::int64_t length, double* slab) {
    for (std::int64_t l0 = 0; l0 < length; l0 += line)
        for (std::int64_t k = 0; k < count; k += square) {
            // Of more rows than a core follows by itself; it does not matter what lies behind their ends.
            for (int r = 0; r < 4; ++r) __builtin_prefetch(rows[k + r] + l0 + lines_ahead * line);
            for (std::int64_t l = l0; l < std::min(l0 + line, length); l += square) {
                __m256d x[4];
                for (int r = 0; r < 4; ++r) x[r] = _mm256_loadu_pd(rows[k + r] + l);
                transpose(x);
                for (int r = 0; r < 4; ++r) _mm256_storeu_pd(slab + (l + r) * width + k, x[r]);
            }
        }
}

__attribute__((target("avx2"))) void squares_to_rows(const double* slab, std::int64_t length, const double* row_factor,
                                                     const double* column_factor, std::int64_t count, double* const* to) {
    for (std::int64_t k = 0; k < count; k += square) {
        const __m256d factor = _mm256_loadu_pd(column_factor + k);
        for (std::int64_t l = 0; l < length; l += square) {
            __m256d x[4];
            for (int r = 0; r < 4; ++r) {
                const __m256d both = _mm256_mul_pd(_mm256_set1_pd(row_factor[l + r]), factor);
                x[r] = _mm256_mul_pd(both, _mm256_loadu_pd(slab + (l + r) * width + k));
            }
            transpose(x);
            for (int r = 0; r < 4; ++r) _mm256_storeu_pd(to[k + r] + l, x[r]);
        }
    }
}

__attribute__((target("avx2,fma"))) void combine_in_registers(std::int64_t count, const std::int64_t* row, const double* weight,
                                                              const double* slab, double* out, std::int64_t apart) {
    constexpr int n_vectors = width / 4;
    __m256d sum[n_vectors];
#pragma GCC unroll 8
    for (int v = 0; v < n_vectors; ++v) sum[v] = _mm256_setzero_pd();
    for (std::int64_t k = 0; k < count; ++k) {
        const double* from = slab + row[k] * width;
        const __m256d factor = _mm256_set1_pd(weight[k]);
#pragma GCC unroll 8
        for (int v = 0; v < n_vectors; ++v) sum[v] = _mm256_fmadd_pd(factor, _mm256_loadu_pd(from + 4 * v), sum[v]);
    }
#pragma GCC unroll 8
    for (int v = 0; v < n_vectors; ++v) _mm256_storeu_pd(out + v / 2 * apart + v % 2 * 4, sum[v]);
}

#else

constexpr std::int64_t square = 1, line = 8;

void combine_in_registers(std::int64_t, const std::int64_t*, const double*, const double*, double*, std::int64_t) {}

bool has_squares() { return false; }

void squares_to_slab(const double* const*, std::int64_t, std::int64_t, double*) {}

void squares_to_rows(const double*, std::int64_t, const double*, const double*, std::int64_t, double* const*) {}

#endif

std::int64_t in_squares(std::int64_t count) { return has_squares() ? count / square * square : 0; }

}  // namespace

void rows_to_slab(const double* const* rows, std::int64_t count, std::int64_t length, double* slab) {
    const std::int64_t columns = in_squares(count), whole = in_squares(length);
    if (columns > 0) squares_to_slab(rows, columns, whole, slab);
    for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t l = k < columns ? whole : 0; l < length; ++l) slab[l * width + k] = rows[k][l];
}

void combine_rows(std::int64_t count, const std::int64_t* row, const double* weight, const double* slab, double* out, std::int64_t apart) {
    constexpr std::int64_t piece = 8;
    if (own_kernels()) return combine_in_registers(count, row, weight, slab, out, apart);
    double sum[width] = {};
    for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t x = 0; x < width; ++x) sum[x] += weight[k] * slab[row[k] * width + x];
    for (std::int64_t x = 0; x < width; x += piece) copy_few<piece>(sum + x, out + x / piece * apart);
}

void columns_to_slab(const PairMatrix& x, std::int64_t first, std::int64_t count, std::int64_t last, double* slab) {
    constexpr std::int64_t ahead = 12;  // rows lie too far apart for the core to see which comes next
    for (std::int64_t l = first + count; l < last; ++l) {
        const double* next = x.row(std::min(l + ahead, last - 1)) + first;
        for (std::int64_t k = 0; k < count; k += line) __builtin_prefetch(next + k);
        if (count == width)
            copy_few<width>(x.row(l) + first, slab + l * width);
        else
            std::copy_n(x.row(l) + first, count, slab + l * width);
    }
}

void slab_to_rows(const double* slab, std::int64_t length, const double* row_factor, const double* column_factor, std::int64_t count,
                  double* const* to) {
    const std::int64_t columns = in_squares(count), whole = in_squares(length);
    if (columns > 0) squares_to_rows(slab, whole, row_factor, column_factor, columns, to);
    for (std::int64_t k = 0; k < count; ++k)
        for (std::int64_t l = k < columns ? whole : 0; l < length; ++l)
            to[k][l] = row_factor[l] * column_factor[k] * slab[l * width + k];
}

TILEWISE_WIDE void scale_row(std::int64_t count, double factor, const double* factors, const double* from, double* to) {
    for (std::int64_t x = 0; x < count; ++x) to[x] = factor * factors[x] * from[x];
}

}  // namespace tilewise
