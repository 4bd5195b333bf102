#include "segments.hpp"

#include <algorithm>

#include "processor.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TILEWISE_AVX2 1
#include <immintrin.h>
#endif

namespace tilewise {

namespace {

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
            _Pragma("GCC unroll 2") for (std::int64_t x = 0; x < part.depth;                                                   \
                                         ++x, left += part.left_ld, right += part.right_ld) {                                  \
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

using TileKernel = void (*)(const Segments&, std::int64_t, std::int64_t, double*, std::int64_t, bool);

template <bool many, int rows, int vectors>
TileKernel kernel_of(std::int64_t count) {
    if constexpr (rows > 1)
        if (count < rows) return kernel_of<many, rows - 1, vectors>(count);
    if constexpr (many)
        return tile_32<rows, vectors>;
    else
        return tile_16<rows, vectors>;
}

template <bool many, int vectors = many ? 5 : 3>
TileKernel kernel_of(std::int64_t count, std::int64_t width) {
    if constexpr (vectors > 1)
        if (width < vectors) return kernel_of<many, vectors - 1>(count, width);
    return kernel_of<many, many ? rows_32[vectors] : rows_16[vectors], vectors>(count);
}

#endif

}  // namespace

SegmentTiles::SegmentTiles(std::int64_t m, std::int64_t n) : m_(m), n_(n) {
#ifdef TILEWISE_AVX2
    if (own_kernels()) many_registers() ? cut<true>(m, n) : cut<false>(m, n);
#endif
}

#ifdef TILEWISE_AVX2
// In panels of nearly equal width and tiles of nearly equal height: one of a single row would wait for each of its additions.
template <bool many>
void SegmentTiles::cut(std::int64_t m, std::int64_t n) {
    constexpr std::int64_t most = many ? 5 : 3;
    const std::int64_t vectors = n / lanes, panels = (vectors + most - 1) / most;
    for (std::int64_t p = 0; p < panels; ++p) {
        const std::int64_t first = vectors * p / panels, width = vectors * (p + 1) / panels - first;
        const std::int64_t rows = many ? rows_32[width] : rows_16[width], tiles = (m + rows - 1) / rows;
        for (std::int64_t t = 0; t < tiles; ++t) {
            const std::int64_t row = m * t / tiles, height = m * (t + 1) / tiles - row;
            tiles_[n_tiles_++] = {kernel_of<many>(height, width), row, first * lanes};
        }
    }
}
#endif

void SegmentTiles::plain(const Segments& sum, double* c, std::int64_t ldc, bool add) const {
    for (std::int64_t r = 0; r < m_; ++r) {
        double* row = c + r * ldc;
        if (!add) std::fill(row, row + n_, 0.0);
        for (int s = 0; s < sum.n; ++s) {
            const Segment& part = sum.first[s];
            for (std::int64_t x = 0; x < part.depth; ++x) {
                const double left = s < sum.n_negative ? -part.left[x * part.left_ld + r] : part.left[x * part.left_ld + r];
                const double* right = part.right + x * part.right_ld;
                for (std::int64_t j = 0; j < n_; ++j) row[j] += left * right[j];
            }
        }
    }
}

}  // namespace tilewise
