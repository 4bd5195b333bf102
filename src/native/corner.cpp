#include "corner.hpp"

#include <algorithm>

#include "processor.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TILEWISE_AVX2 1
#include <immintrin.h>
#endif

namespace tilewise {

namespace {

void turn_plainly(const Turned& part, std::int64_t first_row, std::int64_t rows, std::int64_t first_col, std::int64_t cols, bool add) {
    for (std::int64_t r = first_row; r < rows; ++r)
        for (std::int64_t z = first_col; z < cols; ++z) {
            double& place = part.to[r * part.to_step + z];
            place = (add ? place : 0.0) + part.from[z * part.from_step + r];
        }
}

#ifdef TILEWISE_AVX2
constexpr std::int64_t lanes = 4;

// Four by four numbers at a time, in registers.
__attribute__((target("avx2"))) void turn_blocks(const Turned& part, std::int64_t rows, std::int64_t cols, bool add,
                                                 std::int64_t ahead) {
    const std::int64_t whole_rows = rows / lanes * lanes, whole_cols = cols / lanes * lanes, step = part.from_step;
    for (std::int64_t z = 0; z < whole_cols; z += lanes)
        for (std::int64_t r = 0; r < whole_rows; r += lanes) {
            const double* from = part.from + z * step + r;
            const __m256d one = _mm256_loadu_pd(from), two = _mm256_loadu_pd(from + step);
            const __m256d three = _mm256_loadu_pd(from + 2 * step), four = _mm256_loadu_pd(from + 3 * step);
            const __m256d even = _mm256_unpacklo_pd(one, two), odd = _mm256_unpackhi_pd(one, two);
            const __m256d even_last = _mm256_unpacklo_pd(three, four), odd_last = _mm256_unpackhi_pd(three, four);
            __m256d turned[] = {_mm256_permute2f128_pd(even, even_last, 0x20), _mm256_permute2f128_pd(odd, odd_last, 0x20),
                                _mm256_permute2f128_pd(even, even_last, 0x31), _mm256_permute2f128_pd(odd, odd_last, 0x31)};
            _Pragma("GCC unroll 4") for (std::int64_t k = 0; k < lanes; ++k) {
                double* place = part.to + (r + k) * part.to_step + z;
                if (ahead) _mm_prefetch(reinterpret_cast<const char*>(place + ahead), _MM_HINT_T0);
                if (add) turned[k] = _mm256_add_pd(turned[k], _mm256_loadu_pd(place));
                _mm256_storeu_pd(place, turned[k]);
            }
        }
    turn_plainly(part, whole_rows, rows, 0, whole_cols, add);
    turn_plainly(part, 0, rows, whole_cols, cols, add);
}
#endif

void turn(const Turned& part, std::int64_t rows, std::int64_t cols, bool add, [[maybe_unused]] std::int64_t ahead = 0) {
#ifdef TILEWISE_AVX2
    if (own_kernels()) return turn_blocks(part, rows, cols, add, ahead);
#endif
    turn_plainly(part, 0, rows, 0, cols, add);
}

}  // namespace

void copy_corner(const Corner& from, const std::int64_t (&extent)[3], double* to, std::int64_t width) {
    const std::int64_t plane = extent[1] * width;
    if (from.step[2] == 1) {
        for (std::int64_t x = 0; x < extent[0]; ++x)
            for (std::int64_t y = 0; y < extent[1]; ++y)
                std::copy_n(from.at + x * from.step[0] + y * from.step[1], extent[2], to + x * plane + y * width);
    } else if (from.step[1] == 1) {
        for (std::int64_t x = 0; x < extent[0]; ++x)
            turn({from.at + x * from.step[0], from.step[2], to + x * plane, width}, extent[1], extent[2], false);
    } else {
        for (std::int64_t y = 0; y < extent[1]; ++y)
            turn({from.at + y * from.step[1], from.step[2], to + y * width, plane}, extent[0], extent[2], false);
    }
}

void add_turned(const Turned& part, std::int64_t rows, std::int64_t cols, std::int64_t ahead) {
    turn(part, rows, cols, true, ahead);
}

}  // namespace tilewise
