#include "few_rows.hpp"

#include <algorithm>

#include "processor.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TILEWISE_AVX2 1
#include <immintrin.h>
#endif

namespace tilewise {

#ifdef TILEWISE_AVX2

namespace {

constexpr int lanes = 4;

// Columns between those that are computed with and those that are fetched meanwhile: rows of B and C are too far apart
// and too many for the core to see by itself what comes next.
constexpr std::int64_t fetched = 24;

// `rows` rows by eight columns of C, over the whole sum.
template <int rows>
__attribute__((target("avx2,fma"))) void strip(std::int64_t depth, const double* a, std::int64_t row_stride,
                                               std::int64_t sum_stride, const double* b, std::int64_t ldb, double alpha,
                                               double beta, double* c, std::int64_t ldc) {
    __m256d sum[rows][2];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
        sum[r][0] = sum[r][1] = _mm256_setzero_pd();
        __builtin_prefetch(c + r * ldc + fetched, 1);
    }
    for (std::int64_t k = 0; k < depth; ++k, b += ldb, a += sum_stride) {
        __builtin_prefetch(b + fetched);
        const __m256d low = _mm256_loadu_pd(b), high = _mm256_loadu_pd(b + lanes);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
            const __m256d left = _mm256_broadcast_sd(a + r * row_stride);
            sum[r][0] = _mm256_fmadd_pd(left, low, sum[r][0]);
            sum[r][1] = _mm256_fmadd_pd(left, high, sum[r][1]);
        }
    }
    const __m256d scale = _mm256_set1_pd(alpha), keep = _mm256_set1_pd(beta);
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < 2; ++v) {
            double* place = c + r * ldc + v * lanes;
            __m256d value = _mm256_mul_pd(scale, sum[r][v]);
            if (beta != 0.0) value = _mm256_fmadd_pd(keep, _mm256_loadu_pd(place), value);
            _mm256_storeu_pd(place, value);
        }
}

template <int rows>
void strip_or_less(std::int64_t count, std::int64_t depth, const double* a, std::int64_t row_stride, std::int64_t sum_stride,
                   const double* b, std::int64_t ldb, double alpha, double beta, double* c, std::int64_t ldc) {
    if constexpr (rows > 1)
        if (count < rows)
            return strip_or_less<rows - 1>(count, depth, a, row_stride, sum_stride, b, ldb, alpha, beta, c, ldc);
    strip<rows>(depth, a, row_stride, sum_stride, b, ldb, alpha, beta, c, ldc);
}

}  // namespace

bool few_rows_pay(std::int64_t m, std::int64_t n, std::int64_t k) {
    return own_kernels() && n >= strip_cols && (m <= few_rows_limit || k <= short_sum_limit);
}

void few_rows_product(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double* a, std::int64_t row_stride,
                      std::int64_t sum_stride, const double* b, std::int64_t ldb, double beta, double* c, std::int64_t ldc) {
    constexpr std::int64_t rows = strip_rows, cols = strip_cols;
    const std::int64_t whole = n / cols * cols;
    for (std::int64_t j = 0; j < whole; j += cols)
        for (std::int64_t r = 0; r < m; r += rows)
            strip_or_less<rows>(std::min(rows, m - r), k, a + r * row_stride, row_stride, sum_stride, b + j, ldb, alpha, beta,
                                c + r * ldc + j, ldc);
    for (std::int64_t r = 0; r < m; ++r)
        for (std::int64_t j = whole; j < n; ++j) {
            double sum = 0.0;
            for (std::int64_t x = 0; x < k; ++x) sum += a[r * row_stride + x * sum_stride] * b[x * ldb + j];
            c[r * ldc + j] = beta == 0.0 ? alpha * sum : beta * c[r * ldc + j] + alpha * sum;
        }
}

#else

bool few_rows_pay(std::int64_t, std::int64_t, std::int64_t) { return false; }

void few_rows_product(std::int64_t, std::int64_t, std::int64_t, double, const double*, std::int64_t, std::int64_t, const double*,
                      std::int64_t, double, double*, std::int64_t) {}

#endif

}  // namespace tilewise
