#include "segments.hpp"

#include <algorithm>

#include "narrow.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TILEWISE_AVX2 1
#include <immintrin.h>
#endif

namespace tilewise {

namespace {

// What any processor can do, a row at a time.
void plain_product(const Segments& sum, std::int64_t m, std::int64_t n, double* c, std::int64_t ldc, bool add) {
    for (std::int64_t r = 0; r < m; ++r) {
        double* row = c + r * ldc;
        if (!add) std::fill(row, row + n, 0.0);
        for (int s = 0; s < sum.n; ++s) {
            const Segment& part = sum.first[s];
            for (std::int64_t x = 0; x < part.depth; ++x) {
                const double left = s < sum.n_negative ? -part.left[x * part.left_ld + r] : part.left[x * part.left_ld + r];
                const double* right = part.right + x * part.right_ld;
                for (std::int64_t j = 0; j < n; ++j) row[j] += left * right[j];
            }
        }
    }
}

#ifdef TILEWISE_AVX2

constexpr int lanes = 4;

// `rows` rows by `vectors` vectors of C. With AVX-512 there are twice as many registers for the sums, which are as wide.
#define TILEWISE_TILE(name, features)                                                                                          \
    template <int rows, int vectors>                                                                                           \
    __attribute__((target(features))) void name(const Segments& sum, std::int64_t row, std::int64_t col, double* c,            \
                                                std::int64_t ldc, bool add) {                                                  \
        __m256d acc[rows][vectors];                                                                                            \
        const __m256d sign = _mm256_set1_pd(-0.0);                                                                             \
        _Pragma("GCC unroll 16") for (int r = 0; r < rows; ++r)                                                                \
            _Pragma("GCC unroll 16") for (int v = 0; v < vectors; ++v) acc[r][v] = _mm256_setzero_pd();                        \
        for (int s = 0; s < sum.n; ++s) {                                                                                      \
            const Segment& part = sum.first[s];                                                                                \
            const double *left = part.left + row, *right = part.right + col;                                                   \
            for (std::int64_t x = 0; x < part.depth; ++x, left += part.left_ld, right += part.right_ld) {                      \
                __m256d values[vectors];                                                                                       \
                _Pragma("GCC unroll 16") for (int v = 0; v < vectors; ++v) values[v] = _mm256_loadu_pd(right + v * lanes);     \
                _Pragma("GCC unroll 16") for (int r = 0; r < rows; ++r) {                                                      \
                    const __m256d factor = _mm256_broadcast_sd(left + r);                                                      \
                    _Pragma("GCC unroll 16") for (int v = 0; v < vectors; ++v) acc[r][v] =                                     \
                        _mm256_fmadd_pd(factor, values[v], acc[r][v]);                                                         \
                }                                                                                                              \
            }                                                                                                                  \
            if (s + 1 == sum.n_negative)                                                                                       \
                _Pragma("GCC unroll 16") for (int r = 0; r < rows; ++r)                                                        \
                    _Pragma("GCC unroll 16") for (int v = 0; v < vectors; ++v) acc[r][v] = _mm256_xor_pd(sign, acc[r][v]);     \
        }                                                                                                                      \
        _Pragma("GCC unroll 16") for (int r = 0; r < rows; ++r)                                                                \
            _Pragma("GCC unroll 16") for (int v = 0; v < vectors; ++v) {                                                       \
                double* place = c + (row + r) * ldc + col + v * lanes;                                                         \
                if (add) acc[r][v] = _mm256_add_pd(_mm256_loadu_pd(place), acc[r][v]);                                         \
                _mm256_storeu_pd(place, acc[r][v]);                                                                            \
            }                                                                                                                  \
    }

TILEWISE_TILE(tile_16, "avx2,fma")
TILEWISE_TILE(tile_32, "avx2,fma,avx512f,avx512vl,avx512dq")

// Rows of one tile with so many vectors, such that sums and operands stay in 16 or in 32 registers.
constexpr int rows_16[] = {0, 8, 6, 4};
constexpr int rows_32[] = {0, 12, 12, 8, 6, 5};

template <bool many, int rows, int vectors>
void tile(const Segments& sum, std::int64_t row, std::int64_t count, std::int64_t col, double* c, std::int64_t ldc, bool add) {
    if constexpr (rows > 1)
        if (count < rows) return tile<many, rows - 1, vectors>(sum, row, count, col, c, ldc, add);
    if constexpr (many)
        tile_32<rows, vectors>(sum, row, col, c, ldc, add);
    else
        tile_16<rows, vectors>(sum, row, col, c, ldc, add);
}

// All rows, in tiles of nearly equal height: one of a single row would wait for each of its additions.
template <bool many, int vectors>
void columns(const Segments& sum, std::int64_t m, std::int64_t col, double* c, std::int64_t ldc, bool add) {
    constexpr int rows = many ? rows_32[vectors] : rows_16[vectors];
    const std::int64_t tiles = (m + rows - 1) / rows;
    for (std::int64_t t = 0; t < tiles; ++t) {
        const std::int64_t first = m * t / tiles;
        tile<many, rows, vectors>(sum, first, m * (t + 1) / tiles - first, col, c, ldc, add);
    }
}

bool many_registers() {
    static const bool available = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                                  __builtin_cpu_supports("avx512dq");
    return available;
}

// Columns in panels of nearly equal width.
template <bool many>
void wide_product(const Segments& sum, std::int64_t m, std::int64_t n, double* c, std::int64_t ldc, bool add) {
    constexpr std::int64_t most = many ? 5 : 3;
    const std::int64_t vectors = n / lanes, panels = (vectors + most - 1) / most;
    for (std::int64_t p = 0; p < panels; ++p) {
        const std::int64_t first = vectors * p / panels, width = vectors * (p + 1) / panels - first;
        if (width == 1) columns<many, 1>(sum, m, first * lanes, c, ldc, add);
        if (width == 2) columns<many, 2>(sum, m, first * lanes, c, ldc, add);
        if (width == 3) columns<many, 3>(sum, m, first * lanes, c, ldc, add);
        if constexpr (many) {
            if (width == 4) columns<many, 4>(sum, m, first * lanes, c, ldc, add);
            if (width == 5) columns<many, 5>(sum, m, first * lanes, c, ldc, add);
        }
    }
}

#endif

}  // namespace

void segment_product(const Segments& sum, std::int64_t m, std::int64_t n, double* c, std::int64_t ldc, bool add) {
#ifdef TILEWISE_AVX2
    if (own_kernels()) return (many_registers() ? wide_product<true> : wide_product<false>)(sum, m, n, c, ldc, add);
#endif
    plain_product(sum, m, n, c, ldc, add);
}

}  // namespace tilewise
