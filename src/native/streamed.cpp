#include "streamed.hpp"

#include <algorithm>

#include "processor.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TILEWISE_AVX2 1
#include <immintrin.h>
#endif

namespace tilewise {

#ifdef TILEWISE_AVX2

namespace {

// The part of A that comes next, fetched a few cache lines at a time while the part before it is computed with.
// By itself a core asks for A only while it works on the first panel of B, and waits.
class Ahead {
public:
    // Of a block of rows of A over a slice of the sum, in about as many calls.
    Ahead(const Left& left, std::int64_t row, std::int64_t k, std::int64_t calls) {
        const std::int64_t rows = std::min(streamed_rows, left.rows - row), depth = std::min(streamed_depth, left.depth - k);
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

// A slice of the sum for some rows of A, as it lies or transposed; `width` columns of C.
struct Slice {
    std::int64_t depth;
    const double* a;
    std::int64_t lda;
    const double* b;  // packed
    double alpha, beta;
    double* c;
    std::int64_t ldc, width;
};

// Registers of four numbers, and what is done with them. The mask stands for the first `count` of them.
struct Four {
    using Vector = __m256d;
    using Mask = __m256i;
    static constexpr std::int64_t lanes = 4;
    static constexpr const std::int64_t (&tile_rows)[most_tile_vectors + 1] = tile_rows_4;
#define TILEWISE_OP __attribute__((target("avx2,fma"), always_inline)) static inline
    TILEWISE_OP Mask first(std::int64_t count) { return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3)); }
    TILEWISE_OP Vector all(double x) { return _mm256_set1_pd(x); }
    TILEWISE_OP Vector load(const double* from) { return _mm256_loadu_pd(from); }
    TILEWISE_OP Vector load(const double* from, Mask mask) { return _mm256_maskload_pd(from, mask); }
    TILEWISE_OP void store(double* to, Vector x) { _mm256_storeu_pd(to, x); }
    TILEWISE_OP void store(double* to, Mask mask, Vector x) { _mm256_maskstore_pd(to, mask, x); }
    TILEWISE_OP Vector times(Vector x, Vector y) { return _mm256_mul_pd(x, y); }
    TILEWISE_OP Vector plus(Vector x, Vector y, Vector z) { return _mm256_fmadd_pd(x, y, z); }
#undef TILEWISE_OP
};

// The same of eight numbers.
struct Eight {
    using Vector = __m512d;
    using Mask = __mmask8;
    static constexpr std::int64_t lanes = 8;
    static constexpr const std::int64_t (&tile_rows)[most_tile_vectors + 1] = tile_rows_8;
#define TILEWISE_OP __attribute__((target("avx512f,avx512vl,avx512dq"), always_inline)) static inline
    TILEWISE_OP Mask first(std::int64_t count) { return static_cast<Mask>((1u << count) - 1u); }
    TILEWISE_OP Vector all(double x) { return _mm512_set1_pd(x); }
    TILEWISE_OP Vector load(const double* from) { return _mm512_loadu_pd(from); }
    TILEWISE_OP Vector load(const double* from, Mask mask) { return _mm512_maskz_loadu_pd(mask, from); }
    TILEWISE_OP void store(double* to, Vector x) { _mm512_storeu_pd(to, x); }
    TILEWISE_OP void store(double* to, Mask mask, Vector x) { _mm512_mask_storeu_pd(to, mask, x); }
    TILEWISE_OP Vector times(Vector x, Vector y) { return _mm512_mul_pd(x, y); }
    TILEWISE_OP Vector plus(Vector x, Vector y, Vector z) { return _mm512_fmadd_pd(x, y, z); }
#undef TILEWISE_OP
};

// Rows of B between the one that is packed and the one that is fetched: a core does not see by itself what comes.
constexpr std::int64_t rows_ahead = 6;
// Terms of the sum between two fetches of A, by the vectors of a tile: many lines at once would have to wait for each other,
// and the sum for them, and the fewer columns there are, the sooner the next lines are needed.
constexpr std::int64_t between_fetches[most_tile_vectors + 1] = {0, 8, 2, 8};

// tile: `rows` rows by `vectors` vectors of C, whose sums stay in registers only if the loops are unrolled before
// registers are chosen. pack: `depth` rows of B in panels of columns, the last one padded with zeros to whole vectors.
#define TILEWISE_STREAMED(Wide, features)                                                                                      \
    template <int rows, int vectors, bool transposed>                                                                          \
    __attribute__((target(features))) void tile(Wide, const Slice& s, std::int64_t row, Ahead& ahead) {                        \
        const double *a = s.a + (transposed ? row : row * s.lda), *b = s.b;                                                    \
        double* c = s.c + row * s.ldc;                                                                                         \
        Wide::Vector sum[rows][vectors];                                                                                       \
        _Pragma("GCC unroll 16") for (int r = 0; r < rows; ++r)                                                                \
            _Pragma("GCC unroll 16") for (int v = 0; v < vectors; ++v) {                                                       \
                sum[r][v] = Wide::all(0.0);                                                                                    \
                __builtin_prefetch(c + r * s.ldc + v * Wide::lanes, 1);                                                        \
            }                                                                                                                  \
        std::int64_t k = 0;                                                                                                    \
        const auto term = [&](std::int64_t at) __attribute__((target(features), always_inline)) {                              \
            Wide::Vector right[vectors];                                                                                       \
            _Pragma("GCC unroll 16") for (int v = 0; v < vectors; ++v) right[v] = Wide::load(b + v * Wide::lanes);             \
            _Pragma("GCC unroll 16") for (int r = 0; r < rows; ++r) {                                                          \
                const Wide::Vector left = Wide::all(transposed ? a[at * s.lda + r] : a[r * s.lda + at]);                       \
                _Pragma("GCC unroll 16") for (int v = 0; v < vectors; ++v)                                                     \
                    sum[r][v] = Wide::plus(left, right[v], sum[r][v]);                                                         \
            }                                                                                                                  \
            b += vectors * Wide::lanes;                                                                                        \
        };                                                                                                                     \
        constexpr std::int64_t terms = between_fetches[vectors];                                                               \
        for (; k + terms <= s.depth; k += terms) {                                                                             \
            ahead.fetch();                                                                                                     \
            _Pragma("GCC unroll 16") for (std::int64_t x = 0; x < terms; ++x) term(k + x);                                     \
        }                                                                                                                      \
        for (; k < s.depth; ++k) term(k);                                                                                      \
        const Wide::Vector scale = Wide::all(s.alpha), keep = Wide::all(s.beta);                                               \
        const Wide::Mask last = Wide::first(s.width - (vectors - 1) * Wide::lanes);                                            \
        _Pragma("GCC unroll 16") for (int r = 0; r < rows; ++r, c += s.ldc)                                                    \
            _Pragma("GCC unroll 16") for (int v = 0; v < vectors; ++v) {                                                       \
                double* place = c + v * Wide::lanes;                                                                           \
                Wide::Vector value = Wide::times(scale, sum[r][v]);                                                            \
                if (v + 1 < vectors) {                                                                                         \
                    if (s.beta != 0.0) value = Wide::plus(keep, Wide::load(place), value);                                     \
                    Wide::store(place, value);                                                                                 \
                } else {                                                                                                       \
                    if (s.beta != 0.0) value = Wide::plus(keep, Wide::load(place, last), value);                               \
                    Wide::store(place, last, value);                                                                           \
                }                                                                                                              \
            }                                                                                                                  \
    }                                                                                                                          \
                                                                                                                               \
    __attribute__((target(features))) void pack(Wide, std::int64_t depth, std::int64_t n, const double* b, std::int64_t ldb,   \
                                                double* packed) {                                                              \
        constexpr std::int64_t panel = most_tile_vectors * Wide::lanes;                                                        \
        const std::int64_t whole = n / panel, rest = n % panel, vectors = (rest + Wide::lanes - 1) / Wide::lanes;              \
        const Wide::Mask last = Wide::first(rest - (vectors - 1) * Wide::lanes);                                               \
        for (std::int64_t k = 0; k < depth; ++k, b += ldb) {                                                                   \
            const double* from = b;                                                                                            \
            double* to = packed + k * panel;                                                                                   \
            if (k + rows_ahead < depth)                                                                                        \
                for (std::int64_t x = 0; x < n; x += 8) __builtin_prefetch(b + rows_ahead * ldb + x);                          \
            for (std::int64_t p = 0; p < whole; ++p, from += panel, to += depth * panel)                                       \
                _Pragma("GCC unroll 4") for (int v = 0; v < most_tile_vectors; ++v)                                            \
                    Wide::store(to + v * Wide::lanes, Wide::load(from + v * Wide::lanes));                                     \
            if (vectors == 0) continue;                                                                                        \
            to = packed + whole * depth * panel + k * vectors * Wide::lanes;                                                   \
            for (std::int64_t v = 1; v < vectors; ++v, from += Wide::lanes, to += Wide::lanes) Wide::store(to, Wide::load(from));\
            Wide::store(to, Wide::load(from, last));                                                                           \
        }                                                                                                                      \
    }

TILEWISE_STREAMED(Four, "avx2,fma")
TILEWISE_STREAMED(Eight, "avx512f,avx512vl,avx512dq")

// The last rows of a block, fewer than a tile has.
template <class Wide, int rows, int vectors, bool transposed>
void last_rows(const Slice& s, std::int64_t row, std::int64_t left, Ahead& ahead) {
    if constexpr (rows > 1)
        if (left < rows) return last_rows<Wide, rows - 1, vectors, transposed>(s, row, left, ahead);
    tile<rows, vectors, transposed>(Wide{}, s, row, ahead);
}

template <class Wide, int vectors, bool transposed>
void rows_of_panel(const Slice& s, std::int64_t m, Ahead& ahead) {
    constexpr int rows = static_cast<int>(Wide::tile_rows[vectors]);
    std::int64_t row = 0;
    for (; row + rows <= m; row += rows) tile<rows, vectors, transposed>(Wide{}, s, row, ahead);
    if (row < m) last_rows<Wide, rows - 1, vectors, transposed>(s, row, m - row, ahead);
}

// Columns of C for which B is packed together.
template <class Wide, bool transposed>
void some_columns(const Left& left, std::int64_t n, double alpha, const double* b, std::int64_t ldb, double beta, double* c,
                  std::int64_t ldc, double* packed, const Left& next) {
    constexpr std::int64_t panel = most_tile_vectors * Wide::lanes;
    const std::int64_t lda = left.ld;
    for (std::int64_t k0 = 0; k0 < left.depth; k0 += streamed_depth) {
        const std::int64_t depth = std::min(streamed_depth, left.depth - k0);
        pack(Wide{}, depth, n, b + k0 * ldb, ldb, packed);
        for (std::int64_t r0 = 0; r0 < left.rows; r0 += streamed_rows) {
            const std::int64_t height = std::min(streamed_rows, left.rows - r0);
            const auto calls_of = [&](std::int64_t vectors) {
                const std::int64_t rows = Wide::tile_rows[vectors];
                return (height + rows - 1) / rows * std::max<std::int64_t>(1, depth / between_fetches[vectors]);
            };
            const std::int64_t rest = (n % panel + Wide::lanes - 1) / Wide::lanes;
            const std::int64_t calls = n / panel * calls_of(most_tile_vectors) + (rest ? calls_of(rest) : 0);
            Ahead ahead = r0 + streamed_rows < left.rows      ? Ahead(left, r0 + streamed_rows, k0, calls)
                          : k0 + streamed_depth < left.depth ? Ahead(left, 0, k0 + streamed_depth, calls)
                                                             : Ahead(next, 0, 0, calls);
            const double* a = left.at + (transposed ? k0 * lda + r0 : r0 * lda + k0);
            Slice s{depth, a, lda, packed, alpha, k0 == 0 ? beta : 1.0, c + r0 * ldc, ldc, panel};
            for (std::int64_t first = 0; first < n; first += panel, s.c += panel, s.b += depth * panel) {
                s.width = std::min(panel, n - first);
                if (s.width > 2 * Wide::lanes)
                    rows_of_panel<Wide, 3, transposed>(s, height, ahead);
                else if (s.width > Wide::lanes)
                    rows_of_panel<Wide, 2, transposed>(s, height, ahead);
                else
                    rows_of_panel<Wide, 1, transposed>(s, height, ahead);
            }
        }
    }
}

template <class Wide, bool transposed>
void all_columns(const Left& left, std::int64_t n, double alpha, const double* b, std::int64_t ldb, double beta, double* c,
                 std::int64_t ldc, double* packed, const Left& next) {
    for (std::int64_t first = 0; first < n; first += streamed_cols) {
        const bool is_last = first + streamed_cols >= n;
        some_columns<Wide, transposed>(left, std::min(streamed_cols, n - first), alpha, b + first, ldb, beta, c + first, ldc,
                                       packed, is_last ? next : left);
    }
}

}  // namespace

bool streamed_pays(std::int64_t m, std::int64_t n, std::int64_t k) {
    return own_kernels() && (n <= narrow_limit || many_registers()) && m >= streamed_least_rows && k >= streamed_least_depth;
}

void streamed_product(const Left& left, std::int64_t n, double alpha, const double* b, std::int64_t ldb, double beta, double* c,
                      std::int64_t ldc, double* scratch, const Left& next) {
    constexpr std::uintptr_t line = 64;
    double* packed = reinterpret_cast<double*>((reinterpret_cast<std::uintptr_t>(scratch) + line - 1) / line * line);
    const auto product = many_registers() ? (left.transposed ? all_columns<Eight, true> : all_columns<Eight, false>)
                                          : (left.transposed ? all_columns<Four, true> : all_columns<Four, false>);
    product(left, n, alpha, b, ldb, beta, c, ldc, packed, next);
}

#else

bool streamed_pays(std::int64_t, std::int64_t, std::int64_t) { return false; }

void streamed_product(const Left&, std::int64_t, double, const double*, std::int64_t, double, double*, std::int64_t, double*,
                      const Left&) {}

#endif

}  // namespace tilewise
