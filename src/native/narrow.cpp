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

// The part of A that comes next, fetched a few cache lines at a time while the part before it is computed with.
// By itself a core asks for A only while it works on the first panel of B, and waits.
class Ahead {
public:
    // Of a block of rows of A over a slice of the sum, in about as many calls.
    Ahead(const Left& left, std::int64_t row, std::int64_t k, std::int64_t calls) {
        const std::int64_t rows = std::min(narrow_rows, left.rows - row), depth = std::min(narrow_depth, left.depth - k);
        if (!left.at || rows <= 0 || depth <= 0) return;
        line_ = left.at + (left.transposed ? k * left.ld + row : row * left.ld + k);
        stride_ = left.ld;
        runs_ = left.transposed ? depth : rows;
        lines_ = ((left.transposed ? rows : depth) + per_line - 1) / per_line;
        share_ = runs_ * lines_ / calls + 1;
    }

    void fetch() {
        for (std::int64_t n = 0; n < share_ && runs_ > 0; ++n) {
            __builtin_prefetch(line_ + per_line * at_, 0, 2);
            if (++at_ < lines_) continue;
            at_ = 0;
            line_ += stride_;
            --runs_;
        }
    }

private:
    static constexpr std::int64_t per_line = 8;
    const double* line_ = nullptr;
    std::int64_t stride_ = 0, runs_ = 0, lines_ = 0, share_ = 0, at_ = 0;
};

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

// At most `rows` rows.
template <int rows, int vectors, bool transposed>
void last_rows(std::int64_t m, std::int64_t depth, const double* a, std::int64_t lda, const double* b, double alpha,
               double beta, double* c, std::int64_t ldc, int width) {
    if constexpr (rows > 1)
        if (m < rows)
            return last_rows<rows - 1, vectors, transposed>(m, depth, a, lda, b, alpha, beta, c, ldc, width);
    kernel<rows, vectors, transposed>(depth, a, lda, b, alpha, beta, c, ldc, width);
}

template <int rows, int vectors, bool transposed>
void rows_of_panel(std::int64_t m, std::int64_t depth, const double* a, std::int64_t lda, const double* b, double alpha,
                   double beta, double* c, std::int64_t ldc, int width, Ahead& ahead) {
    const std::int64_t step = transposed ? 1 : lda;
    std::int64_t r = 0;
    for (; r + rows <= m; r += rows) {
        ahead.fetch();
        kernel<rows, vectors, transposed>(depth, a + r * step, lda, b, alpha, beta, c + r * ldc, ldc, width);
    }
    if (r < m)
        last_rows<rows - 1, vectors, transposed>(m - r, depth, a + r * step, lda, b, alpha, beta, c + r * ldc, ldc, width);
}

// Packs `depth` rows of B in panels of 12 columns, the last one of 4, 8 or 12, padded with zeros.
__attribute__((target("avx2,fma"))) void pack(std::int64_t depth, std::int64_t n, const double* b, std::int64_t ldb,
                                              double* packed) {
    for (std::int64_t first = 0; first < n; first += 12) {
        const std::int64_t width = std::min<std::int64_t>(12, n - first), whole = (width - 1) / lanes;
        const __m256i rest = _mm256_set1_epi64x(width - whole * lanes);
        const __m256i mask = _mm256_cmpgt_epi64(rest, _mm256_setr_epi64x(0, 1, 2, 3));
        for (std::int64_t k = 0; k < depth; ++k) {
            const double* row = b + k * ldb + first;
            for (std::int64_t v = 0; v < whole; ++v, row += lanes, packed += lanes)
                _mm256_storeu_pd(packed, _mm256_loadu_pd(row));
            _mm256_storeu_pd(packed, _mm256_maskload_pd(row, mask));
            packed += lanes;
        }
    }
}

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

bool own_kernels() {
    static const bool available = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return available;
}

bool short_pays(std::int64_t m, std::int64_t n, std::int64_t k) {
    return own_kernels() && n >= strip_cols && (m <= few_rows_limit || k <= short_sum_limit);
}

void short_product(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double* a, std::int64_t row_stride,
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

bool narrow_pays(std::int64_t m, std::int64_t n, std::int64_t k) {
    return own_kernels() && n <= narrow_limit && m >= narrow_least_rows && k >= narrow_least_depth;
}

namespace {

template <bool transposed>
void narrow_slices(const Left& left, std::int64_t n, double alpha, const double* b, std::int64_t ldb, double beta, double* c,
                   std::int64_t ldc, double* scratch, const Left& next) {
    const std::int64_t lda = left.ld;
    for (std::int64_t k0 = 0; k0 < left.depth; k0 += narrow_depth) {
        const std::int64_t depth = std::min(narrow_depth, left.depth - k0);
        const double scale = k0 == 0 ? beta : 1.0;
        pack(depth, n, b + k0 * ldb, ldb, scratch);
        for (std::int64_t r0 = 0; r0 < left.rows; r0 += narrow_rows) {
            const std::int64_t height = std::min(narrow_rows, left.rows - r0), calls = (n + 11) / 12 * ((height + 3) / 4);
            Ahead ahead = r0 + narrow_rows < left.rows        ? Ahead(left, r0 + narrow_rows, k0, calls)
                          : k0 + narrow_depth < left.depth ? Ahead(left, 0, k0 + narrow_depth, calls)
                                                           : Ahead(next, 0, 0, calls);
            const double* a = left.at + (transposed ? k0 * lda + r0 : r0 * lda + k0);
            const double* right = scratch;
            for (std::int64_t first = 0; first < n; first += 12) {
                const int width = static_cast<int>(std::min<std::int64_t>(12, n - first));
                double* target = c + r0 * ldc + first;
                if (width > 8) {
                    rows_of_panel<4, 3, transposed>(height, depth, a, lda, right, alpha, scale, target, ldc, width, ahead);
                    right += depth * 12;
                } else if (width > 4) {
                    rows_of_panel<6, 2, transposed>(height, depth, a, lda, right, alpha, scale, target, ldc, width, ahead);
                    right += depth * 8;
                } else {
                    rows_of_panel<8, 1, transposed>(height, depth, a, lda, right, alpha, scale, target, ldc, width, ahead);
                    right += depth * 4;
                }
            }
        }
    }
}

}  // namespace

void narrow_product(const Left& left, std::int64_t n, double alpha, const double* b, std::int64_t ldb, double beta, double* c,
                    std::int64_t ldc, double* scratch, const Left& next) {
    const auto product = left.transposed ? narrow_slices<true> : narrow_slices<false>;
    product(left, n, alpha, b, ldb, beta, c, ldc, scratch, next);
}

#else

bool own_kernels() { return false; }

bool narrow_pays(std::int64_t, std::int64_t, std::int64_t) { return false; }

void narrow_product(const Left&, std::int64_t, double, const double*, std::int64_t, double, double*, std::int64_t, double*,
                    const Left&) {}

bool short_pays(std::int64_t, std::int64_t, std::int64_t) { return false; }

void short_product(std::int64_t, std::int64_t, std::int64_t, double, const double*, std::int64_t, std::int64_t,
                   const double*, std::int64_t, double, double*, std::int64_t) {}

#endif

}  // namespace tilewise
