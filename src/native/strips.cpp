#include "strips.hpp"

#include <algorithm>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TILEWISE_AVX2 1
#include <immintrin.h>
#endif

namespace tilewise {

namespace {

// `rows` rows by eight columns of C, over the whole sum; rows of A are `height` apart.
using Strip = void (*)(std::int64_t depth, const double* a, const double* b, double* c, std::int64_t ldc);

template <int rows, int height>
void plain_strip(std::int64_t depth, const double* a, const double* b, double* c, std::int64_t ldc) {
    double sum[rows][strip_width] = {};
    for (std::int64_t k = 0; k < depth; ++k, a += height, b += strip_width)
        for (std::int64_t r = 0; r < rows; ++r)
            for (std::int64_t x = 0; x < strip_width; ++x) sum[r][x] += a[r] * b[x];
    for (std::int64_t r = 0; r < rows; ++r) std::copy_n(sum[r], strip_width, c + r * ldc);
}

#ifdef TILEWISE_AVX2

// The sums stay in registers only if the loops over rows are unrolled before registers are chosen.
template <int rows, int height>
__attribute__((target("avx2,fma"))) void strip_of_fours(std::int64_t depth, const double* a, const double* b, double* c, std::int64_t ldc) {
    __m256d sum[rows][2];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sum[r][0] = sum[r][1] = _mm256_setzero_pd();
    for (std::int64_t k = 0; k < depth; ++k, a += height, b += strip_width) {
        const __m256d low = _mm256_loadu_pd(b), high = _mm256_loadu_pd(b + 4);
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
        _mm256_storeu_pd(c + r * ldc + 4, sum[r][1]);
    }
}

template <int rows, int height>
__attribute__((target("avx512f"))) void strip_of_eights(std::int64_t depth, const double* a, const double* b, double* c, std::int64_t ldc) {
    __m512d sum[rows];
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) sum[r] = _mm512_setzero_pd();
    for (std::int64_t k = 0; k < depth; ++k, a += height, b += strip_width) {
        const __m512d right = _mm512_loadu_pd(b);
#pragma GCC unroll 16
        for (int r = 0; r < rows; ++r) sum[r] = _mm512_fmadd_pd(_mm512_set1_pd(a[r]), right, sum[r]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < rows; ++r) _mm512_storeu_pd(c + r * ldc, sum[r]);
}

#endif

// By rows, from one to the height of a strip.
constexpr Strip plain_strips[] = {plain_strip<1, 6>, plain_strip<2, 6>, plain_strip<3, 6>, plain_strip<4, 6>, plain_strip<5, 6>, plain_strip<6, 6>};
#ifdef TILEWISE_AVX2
constexpr Strip strips_of_fours[] = {strip_of_fours<1, 6>, strip_of_fours<2, 6>, strip_of_fours<3, 6>,
                                     strip_of_fours<4, 6>, strip_of_fours<5, 6>, strip_of_fours<6, 6>};
constexpr Strip strips_of_eights[] = {strip_of_eights<1, 12>, strip_of_eights<2, 12>,  strip_of_eights<3, 12>,  strip_of_eights<4, 12>,
                                      strip_of_eights<5, 12>, strip_of_eights<6, 12>,  strip_of_eights<7, 12>,  strip_of_eights<8, 12>,
                                      strip_of_eights<9, 12>, strip_of_eights<10, 12>, strip_of_eights<11, 12>, strip_of_eights<12, 12>};
#endif

const Strip* strips_of_processor() {
#ifdef TILEWISE_AVX2
    if (own_kernels()) return many_registers() ? strips_of_eights : strips_of_fours;
#endif
    return plain_strips;
}

}  // namespace

void pack_strips(std::int64_t m, std::int64_t k, const double* a, std::int64_t lda, double* packed) {
    const std::int64_t height = strip_height();
    for (std::int64_t r = 0; r < m; r += height)
        for (std::int64_t x = 0; x < k; ++x, packed += height) std::copy_n(a + x * lda + r, std::min(height, m - r), packed);
}

void strip_product(std::int64_t m, std::int64_t k, const double* strips, const double* panel, double* c, std::int64_t ldc) {
    const Strip* const of_rows = strips_of_processor();
    const std::int64_t height = strip_height();
    for (std::int64_t r = 0; r < m; r += height) of_rows[std::min(height, m - r) - 1](k, strips + r * k, panel, c + r * ldc, ldc);
}

}  // namespace tilewise
