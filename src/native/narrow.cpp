#include "narrow.hpp"

#include <algorithm>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TILEWISE_AVX2 1
#include <immintrin.h>
#endif

namespace tilewise {

#ifdef TILEWISE_AVX2

namespace {

constexpr int lanes = 4;
constexpr std::int64_t row_block = 64;  // rows of A that stay in the second-level cache between panels

// Accumulates `rows` rows by `vectors` vectors of C over a slice of k; B is packed. A lies as (m, k), or
// transposed as (k, m).
template <int rows, int vectors, bool transposed>
__attribute__((target("avx2,fma"))) void kernel(std::int64_t depth, const double* a, std::int64_t lda, const double* b,
                                                double alpha, double beta, double* c, std::int64_t ldc, int width) {
    // The accumulators stay in registers only if these loops are unrolled before registers are chosen.
    __m256d sum[rows][vectors];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r)
#pragma GCC unroll 16
        for (int v = 0; v < vectors; ++v) sum[r][v] = _mm256_setzero_pd();
    for (std::int64_t k = 0; k < depth; ++k, b += vectors * lanes) {
        __m256d right[vectors];
#pragma GCC unroll 16
        for (int v = 0; v < vectors; ++v) right[v] = _mm256_loadu_pd(b + v * lanes);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
            const __m256d left = _mm256_broadcast_sd(transposed ? a + k * lda + r : a + r * lda + k);
#pragma GCC unroll 16
            for (int v = 0; v < vectors; ++v) sum[r][v] = _mm256_fmadd_pd(left, right[v], sum[r][v]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
        double values[vectors * lanes];
#pragma GCC unroll 16
        for (int v = 0; v < vectors; ++v) _mm256_storeu_pd(values + v * lanes, sum[r][v]);
        double* row = c + r * ldc;
        if (beta == 0.0)
            for (int x = 0; x < width; ++x) row[x] = alpha * values[x];
        else
            for (int x = 0; x < width; ++x) row[x] = beta * row[x] + alpha * values[x];
    }
}

template <int rows, int vectors, bool transposed>
void rows_of_panel(std::int64_t m, std::int64_t depth, const double* a, std::int64_t lda, const double* b, double alpha,
                   double beta, double* c, std::int64_t ldc, int width) {
    const std::int64_t step = transposed ? 1 : lda;
    std::int64_t r = 0;
    for (; r + rows <= m; r += rows)
        kernel<rows, vectors, transposed>(depth, a + r * step, lda, b, alpha, beta, c + r * ldc, ldc, width);
    for (; r < m; ++r) kernel<1, vectors, transposed>(depth, a + r * step, lda, b, alpha, beta, c + r * ldc, ldc, width);
}

// Packs `depth` rows of B in panels of 12 columns, the last one of 4, 8 or 12, padded with zeros.
void pack(std::int64_t depth, std::int64_t n, const double* b, std::int64_t ldb, double* packed) {
    for (std::int64_t first = 0; first < n; first += 12) {
        const std::int64_t width = std::min<std::int64_t>(12, n - first), padded = (width + lanes - 1) / lanes * lanes;
        for (std::int64_t k = 0; k < depth; ++k, packed += padded) {
            const double* row = b + k * ldb + first;
            std::int64_t x = 0;
            for (; x < width; ++x) packed[x] = row[x];
            for (; x < padded; ++x) packed[x] = 0.0;
        }
    }
}

// `rows` rows by eight columns of C, over the whole sum.
template <int rows>
__attribute__((target("avx2,fma"))) void strip(std::int64_t depth, const double* a, std::int64_t row_stride,
                                               std::int64_t sum_stride, const double* b, std::int64_t ldb, double alpha,
                                               double beta, double* c, std::int64_t ldc) {
    __m256d sum[rows][2];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_pd();
    for (std::int64_t k = 0; k < depth; ++k, b += ldb, a += sum_stride) {
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

bool has_avx2() {
    static const bool available = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return available;
}

}  // namespace

bool short_pays(std::int64_t m, std::int64_t n, std::int64_t k) {
    return has_avx2() && n >= 8 && (m <= 12 || k <= 16);
}

void short_product(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double* a, std::int64_t row_stride,
                   std::int64_t sum_stride, const double* b, std::int64_t ldb, double beta, double* c, std::int64_t ldc) {
    constexpr std::int64_t rows = 6, cols = 8;
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

bool narrow_pays(std::int64_t m, std::int64_t n, std::int64_t k) {
    return has_avx2() && n <= narrow_limit && m >= 8 && k >= 16;
}

namespace {

template <bool transposed>
void narrow_slices(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double* a, std::int64_t lda,
                   const double* b, std::int64_t ldb, double beta, double* c, std::int64_t ldc, double* scratch) {
    for (std::int64_t k0 = 0; k0 < k; k0 += narrow_depth) {
        const std::int64_t depth = std::min(narrow_depth, k - k0);
        const double scale = k0 == 0 ? beta : 1.0;
        pack(depth, n, b + k0 * ldb, ldb, scratch);
        for (std::int64_t r0 = 0; r0 < m; r0 += row_block) {
            const std::int64_t height = std::min(row_block, m - r0);
            const double* left = transposed ? a + k0 * lda + r0 : a + r0 * lda + k0;
            const double* right = scratch;
            for (std::int64_t first = 0; first < n; first += 12) {
                const int width = static_cast<int>(std::min<std::int64_t>(12, n - first));
                double* target = c + r0 * ldc + first;
                if (width > 8) {
                    rows_of_panel<4, 3, transposed>(height, depth, left, lda, right, alpha, scale, target, ldc, width);
                    right += depth * 12;
                } else if (width > 4) {
                    rows_of_panel<6, 2, transposed>(height, depth, left, lda, right, alpha, scale, target, ldc, width);
                    right += depth * 8;
                } else {
                    rows_of_panel<8, 1, transposed>(height, depth, left, lda, right, alpha, scale, target, ldc, width);
                    right += depth * 4;
                }
            }
        }
    }
}

}  // namespace

void narrow_product(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double* a, std::int64_t lda,
                    bool transpose_a, const double* b, std::int64_t ldb, double beta, double* c, std::int64_t ldc,
                    double* scratch) {
    const auto product = transpose_a ? narrow_slices<true> : narrow_slices<false>;
    product(m, n, k, alpha, a, lda, b, ldb, beta, c, ldc, scratch);
}

#else

bool narrow_pays(std::int64_t, std::int64_t, std::int64_t) { return false; }

void narrow_product(std::int64_t, std::int64_t, std::int64_t, double, const double*, std::int64_t, bool, const double*,
                    std::int64_t, double, double*, std::int64_t, double*) {}

bool short_pays(std::int64_t, std::int64_t, std::int64_t) { return false; }

void short_product(std::int64_t, std::int64_t, std::int64_t, double, const double*, std::int64_t, std::int64_t,
                   const double*, std::int64_t, double, double*, std::int64_t) {}

#endif

}  // namespace tilewise
