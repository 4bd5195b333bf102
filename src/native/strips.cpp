#include "strips.hpp"

#include <algorithm>

#include "narrow.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TILEWISE_AVX2 1
#include <immintrin.h>
#endif

namespace tilewise {

namespace {

// `rows` rows by eight columns of C, over the whole sum.
void plain_strip(std::int64_t rows, std::int64_t depth, const double* a, const double* b, double* c, std::int64_t ldc) {
    double sum[strip_height][strip_width] = {};
    for (std::int64_t k = 0; k < depth; ++k, a += strip_height, b += strip_width)
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t x = 0; x < strip_width; ++x) sum[r][x] += a[r] * b[x];
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(sum[r], strip_width, c + r * ldc);
}

#ifdef TILEWISE_AVX2

template <int rows>
__attribute__((target("avx2,fma"))) void wide_strip(std::int64_t depth, const double* a, const double* b, double* c, std::int64_t ldc) {
    constexpr int lanes = 4;
    // The sums stay in registers only if these loops are unrolled before registers are chosen.
    __m256d sum[rows][2];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_pd();
    for (std::int64_t k = 0; k < depth; ++k, a += strip_height, b += strip_width) {
        const __m256d low = _mm256_loadu_pd(b), high = _mm256_loadu_pd(b + lanes);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) {
            const __m256d left = _mm256_broadcast_sd(a + r);
            sum[r][0] = _mm256_fmadd_pd(left, low, sum[r][0]);
            sum[r][1] = _mm256_fmadd_pd(left, high, sum[r][1]);
        }
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) {
        _mm256_storeu_pd(c + r * ldc, sum[r][0]);
        _mm256_storeu_pd(c + r * ldc + lanes, sum[r][1]);
    }
}

void wide_strip(std::int64_t rows, std::int64_t depth, const double* a, const double* b, double* c, std::int64_t ldc) {
    switch (rows) {
        case 1: return wide_strip<1>(depth, a, b, c, ldc);
        case 2: return wide_strip<2>(depth, a, b, c, ldc);
        case 3: return wide_strip<3>(depth, a, b, c, ldc);
        case 4: return wide_strip<4>(depth, a, b, c, ldc);
        case 5: return wide_strip<5>(depth, a, b, c, ldc);
        default: return wide_strip<6>(depth, a, b, c, ldc);
    }
}

#else

void wide_strip(std::int64_t rows, std::int64_t depth, const double* a, const double* b, double* c, std::int64_t ldc) {
    plain_strip(rows, depth, a, b, c, ldc);
}

#endif

}  // namespace

void pack_strips(std::int64_t m, std::int64_t k, const double* a, std::int64_t lda, double* packed) {
    for (std::int64_t r = 0; r < m; r += strip_height)
        for (std::int64_t x = 0; x < k; ++x, packed += strip_height) std::copy_n(a + x * lda + r, std::min(strip_height, m - r), packed);
}

void strip_product(std::int64_t m, std::int64_t k, const double* strips, const double* panel, double* c, std::int64_t ldc) {
    const auto strip = own_kernels() ? static_cast<decltype(&plain_strip)>(wide_strip) : plain_strip;
    for (std::int64_t r = 0; r < m; r += strip_height) strip(std::min(strip_height, m - r), k, strips + r * k, panel, c + r * ldc, ldc);
}

}  // namespace tilewise
