#include "square_product.hpp"

#include <algorithm>

#include "processor.hpp"
#include "tasks.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TILEWISE_AVX2 1
#include <immintrin.h>
#endif

namespace tilewise {

namespace {

constexpr std::int64_t lanes = 4;
constexpr std::int64_t panel_rows = square_panel_rows, panel_cols = square_panel_cols;
constexpr std::int64_t line = 8;  // numbers of a cache line

std::int64_t parts(std::int64_t n, std::int64_t width) { return (n + width - 1) / width; }

#ifdef TILEWISE_AVX2

// The first `count` of four numbers.
__attribute__((target("avx2,fma"))) inline __m256i first_lanes(std::int64_t count) {
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}

// One row of a factor, cut into panels of `width` numbers that lie `step` apart: s + from, or factor * from without s.
template <std::int64_t width, bool sum>
__attribute__((target("avx2,fma"))) void pack_row(std::int64_t n, const double* s, const double* from, double factor, double* to,
                                                   std::int64_t step) {
    const __m256d factors = _mm256_set1_pd(factor);
    std::int64_t x = 0;
    for (; x + width <= n; x += width, to += step)
        _Pragma("GCC unroll 4") for (std::int64_t y = 0; y < width; y += lanes) {
            const __m256d value = _mm256_loadu_pd(from + x + y);
            _mm256_store_pd(to + y, sum ? _mm256_add_pd(_mm256_loadu_pd(s + x + y), value) : _mm256_mul_pd(factors, value));
        }
    if (x == n) return;
    for (std::int64_t y = 0; y < width; ++y) to[y] = x + y >= n ? 0.0 : sum ? s[x + y] + from[x + y] : factor * from[x + y];
}

// What later tiles read and write, fetched from memory a few lines at a time between the steps of a sum: many at once would
// keep waiting what comes from the second cache meanwhile. A tile fetches as many numbers of each array as it has itself.
struct Ahead {
    const double *factor, *q, *r, *c;
    std::int64_t ld;  // of c

    template <int rows>
    __attribute__((always_inline)) void fetch(std::int64_t step) const {
        constexpr std::int64_t each = (rows + 3) / 4, lines = rows * panel_cols / line;
        for (std::int64_t at = each * step; at < std::min(each * (step + 1), lines); ++at) {
            fetch_line(factor + at * line);
            fetch_line(q + at * line);
            fetch_line(r + at * line);
        }
        if (step >= panel_rows) return;
        for (std::int64_t at = 0; at < each; ++at) fetch_line(c + step * ld + at * line);
    }
    // Always inline: a call that does nothing else is left out by GCC.
    __attribute__((always_inline)) static void fetch_line(const double* at) {
        _mm_prefetch(reinterpret_cast<const char*>(at), _MM_HINT_T1);
    }
};

// What a tile of C is made of. Element (row, x) of P lies in panel x / panel_cols, `panel_step` from one panel to the next.
struct TileFactors {
    const double *rows, *columns, *extra_rows;  // of P from the first row on, of P and K, of H
    std::int64_t n, extra, panel_step;
    Ahead ahead;
};

// Adds `depth` steps of a sum to a tile; numbers of the left factor are `row_step` apart for a row, `step` for a summand.
#define TILEWISE_SQUARE_STEPS(name, features)                                                                                  \
    template <int rows, int vectors, int row_step, int step>                                                                   \
    __attribute__((target(features), always_inline)) inline void name(__m256d (&acc)[rows][vectors], std::int64_t depth,       \
                                                                      const double* left, const double* right) {               \
        _Pragma("GCC unroll 4") for (std::int64_t x = 0; x < depth; ++x, left += step, right += panel_cols) {                  \
            __m256d values[vectors];                                                                                           \
            _Pragma("GCC unroll 8") for (int j = 0; j < vectors; ++j) values[j] = _mm256_load_pd(right + j * lanes);           \
            _Pragma("GCC unroll 8") for (int i = 0; i < rows; ++i) {                                                           \
                const __m256d factor = _mm256_broadcast_sd(left + i * row_step);                                               \
                _Pragma("GCC unroll 8") for (int j = 0; j < vectors; ++j) acc[i][j] =                                          \
                    _mm256_fmadd_pd(factor, values[j], acc[i][j]);                                                             \
            }                                                                                                                  \
        }                                                                                                                      \
    }

// `rows` rows by `vectors` vectors of C; the last vector has `in_last` numbers.
#define TILEWISE_SQUARE(name, steps, features)                                                                                 \
    template <int rows, int vectors>                                                                                           \
    __attribute__((target(features))) void name(const TileFactors& from, int in_last, const double* q, const double* r,        \
                                                double* c, std::int64_t ld, bool add) {                                        \
        const __m256i mask = first_lanes(in_last);                                                                             \
        __m256d acc[rows][vectors];                                                                                            \
        _Pragma("GCC unroll 8") for (int i = 0; i < rows; ++i)                                                                 \
            _Pragma("GCC unroll 8") for (int j = 0; j < vectors; ++j) acc[i][j] = _mm256_setzero_pd();                         \
        const double *left = from.rows, *right = from.columns;                                                                 \
        std::int64_t x = 0;                                                                                                    \
        for (std::int64_t step = 0; x + panel_cols <= from.n; x += panel_cols, ++step) {                                       \
            from.ahead.fetch<rows>(step);                                                                                      \
            steps<rows, vectors, panel_cols, 1>(acc, panel_cols, left, right);                                                 \
            left += from.panel_step, right += panel_cols * panel_cols;                                                         \
        }                                                                                                                      \
        steps<rows, vectors, panel_cols, 1>(acc, from.n - x, left, right);                                                     \
        steps<rows, vectors, 1, panel_rows>(acc, from.extra, from.extra_rows, from.columns + from.n * panel_cols);             \
        _Pragma("GCC unroll 8") for (int i = 0; i < rows; ++i, q += from.n, r += from.n, c += ld)                              \
            _Pragma("GCC unroll 8") for (int j = 0; j < vectors; ++j) {                                                        \
                const std::int64_t at = j * lanes;                                                                             \
                if (j + 1 < vectors) {                                                                                         \
                    __m256d sum = _mm256_sub_pd(_mm256_sub_pd(acc[i][j], _mm256_loadu_pd(q + at)), _mm256_loadu_pd(r + at));   \
                    if (add) sum = _mm256_add_pd(sum, _mm256_loadu_pd(c + at));                                                \
                    _mm256_storeu_pd(c + at, sum);                                                                             \
                    continue;                                                                                                  \
                }                                                                                                              \
                __m256d sum = _mm256_sub_pd(acc[i][j], _mm256_maskload_pd(q + at, mask));                                      \
                sum = _mm256_sub_pd(sum, _mm256_maskload_pd(r + at, mask));                                                    \
                if (add) sum = _mm256_add_pd(sum, _mm256_maskload_pd(c + at, mask));                                           \
                _mm256_maskstore_pd(c + at, mask, sum);                                                                        \
            }                                                                                                                  \
    }

TILEWISE_SQUARE_STEPS(steps_16, "avx2,fma")
TILEWISE_SQUARE_STEPS(steps_32, "avx2,fma,avx512f,avx512vl,avx512dq")
TILEWISE_SQUARE(square_16, steps_16, "avx2,fma")
TILEWISE_SQUARE(square_32, steps_32, "avx2,fma,avx512f,avx512vl,avx512dq")

using TileKernel = void (*)(const TileFactors&, int, const double*, const double*, double*, std::int64_t, bool);

// By rows and vectors: eight rows at a time where there are 32 registers, else four.
constexpr TileKernel kernels_32[][3] = {
    {square_32<1, 1>, square_32<1, 2>, square_32<1, 3>}, {square_32<2, 1>, square_32<2, 2>, square_32<2, 3>},
    {square_32<3, 1>, square_32<3, 2>, square_32<3, 3>}, {square_32<4, 1>, square_32<4, 2>, square_32<4, 3>},
    {square_32<5, 1>, square_32<5, 2>, square_32<5, 3>}, {square_32<6, 1>, square_32<6, 2>, square_32<6, 3>},
    {square_32<7, 1>, square_32<7, 2>, square_32<7, 3>}, {square_32<8, 1>, square_32<8, 2>, square_32<8, 3>}};
constexpr TileKernel kernels_16[][3] = {
    {square_16<1, 1>, square_16<1, 2>, square_16<1, 3>}, {square_16<2, 1>, square_16<2, 2>, square_16<2, 3>},
    {square_16<3, 1>, square_16<3, 2>, square_16<3, 3>}, {square_16<4, 1>, square_16<4, 2>, square_16<4, 3>}};

#endif

}  // namespace

SquareFactors::SquareFactors(std::int64_t n, std::int64_t extra, double* memory)
    : n_(n), extra_(extra), depth_(n + extra), own_kernel_(own_kernels()) {
    left_width_ = own_kernel_ ? panel_rows : n;
    right_width_ = own_kernel_ ? panel_cols : n;
    panels_ = memory;
    left_ = memory + parts(parts(n, right_width_) * right_width_ * depth_, line) * line;
}

std::int64_t SquareFactors::size(std::int64_t n, std::int64_t extra) {
    return parts((n + extra) * parts(n, panel_cols) * panel_cols, line) * line + extra * parts(n, panel_rows) * panel_rows;
}

void SquareFactors::set_sum(std::int64_t x, const double* s, const double* t) {
    double* to = panels_ + x * right_width_;
#ifdef TILEWISE_AVX2
    if (own_kernel_) return pack_row<panel_cols, true>(n_, s, t, 0.0, to, depth_ * right_width_);
#endif
    for (std::int64_t y = 0; y < n_; ++y) to[y] = s[y] + t[y];
}

void SquareFactors::set_multiples(std::int64_t y, double alpha, const double* left, double beta, const double* right) {
    double *to_left = left_ + y * left_width_, *to_right = panels_ + (n_ + y) * right_width_;
#ifdef TILEWISE_AVX2
    if (own_kernel_) {
        pack_row<panel_rows, false>(n_, nullptr, left, alpha, to_left, extra_ * left_width_);
        return pack_row<panel_cols, false>(n_, nullptr, right, beta, to_right, depth_ * right_width_);
    }
#endif
    for (std::int64_t x = 0; x < n_; ++x) to_left[x] = alpha * left[x], to_right[x] = beta * right[x];
}

void SquareFactors::multiply(const SquareTarget& target, const SquareNext& next) const {
    if (own_kernel_) return multiply_panels(target, next);
    for (std::int64_t x = 0; x < n_; ++x) {
        double* row = target.c + x * target.ld;
        const double *q = target.q + x * n_, *r = target.r + x * n_;
        if (!target.add) std::fill(row, row + n_, 0.0);
        for (std::int64_t y = 0; y < n_; ++y) row[y] -= q[y] + r[y];
    }
    add_product(n_, n_, n_, panels_, n_, panels_, n_, target.c, target.ld, false);
    add_product(n_, n_, extra_, left_, n_, panels_ + n_ * n_, n_, target.c, target.ld, true);
}

#ifdef TILEWISE_AVX2
// Some rows of P stay in the first cache while its panels pass; C, Q and R' come row by row.
void SquareFactors::multiply_panels(const SquareTarget& target, const SquareNext& next) const {
    const std::int64_t downs = parts(n_, panel_rows), acrosses = parts(n_, panel_cols);
    const std::int64_t most = many_registers() ? panel_rows : panel_rows / 2;
    const TileKernel(*kernels)[3] = many_registers() ? kernels_32 : kernels_16;
    for (std::int64_t down = 0; down < downs; ++down) {
        const std::int64_t row = down * panel_rows, rows = std::min(panel_rows, n_ - row);
        const bool is_last = down + 1 == downs;  // then the rows below are the first ones of the next product
        const double *q = is_last ? next.q : target.q + (row + rows) * n_, *r = is_last ? target.r : target.r + (row + rows) * n_;
        const std::int64_t ld = is_last ? next.ld : target.ld;
        const double* c = is_last ? next.c : target.c + (row + rows) * ld;
        for (std::int64_t across = 0; across < acrosses; ++across) {
            const std::int64_t col = across * panel_cols, cols = std::min(panel_cols, n_ - col), vectors = parts(cols, lanes);
            const int in_last = static_cast<int>(cols - (vectors - 1) * lanes);
            for (std::int64_t done = 0; done < rows; done += most) {
                const std::int64_t height = std::min(most, rows - done), at = (row + done) * n_ + col;
                // A tile fetches numbers in a row, as many as it has; of C those below it, since rows may be far apart.
                const std::int64_t fetched = across * panel_rows * panel_cols + done * panel_cols;
                const Ahead ahead{next.factor + row * acrosses * panel_cols + fetched, q + fetched, r + fetched,
                                  c + col + (done ? line : 0), ld};
                const TileFactors from{panels_ + (row + done) * panel_cols, panels_ + across * panel_cols * depth_,
                                       left_ + down * panel_rows * extra_ + done, n_, extra_, panel_cols * depth_, ahead};
                kernels[height - 1][vectors - 1](from, in_last, target.q + at, target.r + at,
                                                 target.c + (row + done) * target.ld + col, target.ld, target.add);
            }
        }
    }
}
#else
void SquareFactors::multiply_panels(const SquareTarget&, const SquareNext&) const {}
#endif

}  // namespace tilewise
