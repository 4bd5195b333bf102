// The first step of the transformation with integrals that are there: rows of a matrix over pairs become rows over combinations.
#include <algorithm>
#include <vector>

#include "combine.hpp"
#include "crew.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TILEWISE_AVX2 1
#include <immintrin.h>
#endif

namespace tilewise {

namespace {

constexpr std::int64_t block = 4;  // classes that are combined side by side

// Neighbouring classes that have the same irreps, so that their places are neighbours in each of these.
struct Run {
    std::int64_t first, count, size;  // classes, and images of each
    std::int64_t irrep[max_irreps], place[max_irreps];
    unsigned irreps;           // as bits
    std::int64_t image_block;  // in the table of images: [block of classes][image][class]
};

// All classes in runs, the images of whole blocks in the order in which they are read.
struct Runs {
    explicit Runs(const PairClasses& c) : largest(c.first.size - 1) {
        for (std::int64_t k = 0; k + 1 < c.first.size; ++k) {
            largest[k] = std::max(k ? largest[k - 1] : 0, c.image[c.first[k]]);
            if (!all.empty() && is_alike(c, all.back().first, k)) {
                ++all.back().count;
                continue;
            }
            Run fresh{k, 1, c.first[k + 1] - c.first[k], {}, {}, irreps_of(c, k), 0};
            for (std::int64_t j = 0; j < fresh.size; ++j) {
                fresh.irrep[j] = c.irrep[c.first[k] + j];
                fresh.place[j] = c.place[c.first[k] + j];
            }
            all.push_back(fresh);
        }
        image.reserve(c.image.size);
        weight.reserve(c.image.size);
        for (Run& run : all) {
            run.image_block = static_cast<std::int64_t>(image.size());
            for (std::int64_t b = run.first; b + block <= run.first + run.count; b += block)
                for (std::int64_t j = 0; j < run.size; ++j)
                    for (std::int64_t x = b; x < b + block; ++x) {
                        image.push_back(static_cast<std::int32_t>(c.image[c.first[x] + j]));
                        weight.push_back(c.weight[c.first[x] + j]);
                    }
        }
    }

    static bool is_alike(const PairClasses& c, std::int64_t a, std::int64_t b) {
        const std::int64_t size = c.first[b + 1] - c.first[b];
        return c.first[a + 1] - c.first[a] == size &&
               std::equal(c.irrep.data + c.first[a], c.irrep.data + c.first[a + 1], c.irrep.data + c.first[b]);
    }

    std::vector<Run> all;
    std::vector<std::int32_t> image;
    std::vector<double> weight;
    std::vector<std::int64_t> largest;  // pair among the images of the classes up to each one
};

#ifdef TILEWISE_AVX2

bool has_blocks() {
    static const bool available = __builtin_cpu_supports("avx2");
    return available;
}

// Blocks of classes of one run, with the integrals of a row.
template <int size>
__attribute__((target("avx2"))) void combine_blocks(std::int64_t count, const std::int32_t* image, const double* weight, double scale,
                                                    const double* row, double* const* out) {
    const __m256d factor = _mm256_set1_pd(scale);
    for (std::int64_t b = 0; b < count; ++b) {
        __m256d x[size];
#pragma GCC unroll 8
        for (int j = 0; j < size; ++j, image += block, weight += block) {
            const __m256d values = _mm256_set_pd(row[image[3]], row[image[2]], row[image[1]], row[image[0]]);
            x[j] = _mm256_mul_pd(_mm256_mul_pd(factor, _mm256_loadu_pd(weight)), values);
        }
#pragma GCC unroll 8
        for (int step = 1; step < size; step *= 2)
#pragma GCC unroll 8
            for (int k = 0; k < size; ++k)
                if (!(k & step)) {
                    const __m256d low = x[k], high = x[k + step];
                    x[k] = _mm256_add_pd(low, high);
                    x[k + step] = _mm256_sub_pd(low, high);
                }
#pragma GCC unroll 8
        for (int j = 0; j < size; ++j) _mm256_storeu_pd(out[j] + b * block, x[j]);
    }
}

void combine_blocks(std::int64_t size, std::int64_t count, const std::int32_t* image, const double* weight, double scale,
                    const double* row, double* const* out) {
    switch (size) {
        case 1: return combine_blocks<1>(count, image, weight, scale, row, out);
        case 2: return combine_blocks<2>(count, image, weight, scale, row, out);
        case 4: return combine_blocks<4>(count, image, weight, scale, row, out);
        default: return combine_blocks<8>(count, image, weight, scale, row, out);
    }
}

#else

bool has_blocks() { return false; }

void combine_blocks(std::int64_t, std::int64_t, const std::int32_t*, const double*, double, const double*, double* const*) {}

#endif

// Row K. Classes before the first one with an image behind the pair K find all integrals in the row of K.
void adapt_row(const PairClasses& c, const Runs& runs, const PairMatrix& integrals, std::int64_t k, double* const* out, double* nowhere) {
    const RowOf to(c, k, out, nowhere);
    const std::int64_t pair = c.image[c.first[k]];
    const double* row = integrals.row(pair);
    const std::int64_t whole = std::upper_bound(runs.largest.begin(), runs.largest.begin() + k + 1, pair) - runs.largest.begin();
    const auto value = [&](std::int64_t e) {
        const std::int64_t other = c.image[e];
        return other <= pair ? row[other] : integrals.row(other)[pair];
    };
    for (const Run& run : runs.all) {
        if (run.first > k) break;
        if (!(run.irreps & to.irreps)) continue;
        std::int64_t l = run.first;
        const std::int64_t end = std::min(run.first + run.count, k + 1);
        const std::int64_t blocks = has_blocks() ? std::max<std::int64_t>(0, std::min(end, whole) - l) / block : 0;
        if (blocks) {
            double* places[max_irreps];
            for (std::int64_t j = 0; j < run.size; ++j) places[j] = to.rows[run.irrep[j]] + run.place[j];
            combine_blocks(run.size, blocks, runs.image.data() + run.image_block, runs.weight.data() + run.image_block, to.scale, row, places);
        }
        for (l += blocks * block; l < end; ++l) combine(c, l, to.scale, value, to.rows);
    }
}

}  // namespace

void adapt_pairs(const PairClasses& classes, const PairMatrix& integrals, double* const* out, std::int64_t n_workers) {
    constexpr std::int64_t rows_at_once = 16;
    const std::int64_t n = classes.first.size - 1;
    const Runs runs(classes);
    const auto make = [&] {
        return [&, nowhere = std::vector<double>(n)](std::int64_t run) mutable {
            const std::int64_t end = n - run * rows_at_once;  // the longest rows first
            for (std::int64_t k = std::max<std::int64_t>(0, end - rows_at_once); k < end; ++k)
                adapt_row(classes, runs, integrals, k, out, nowhere.data());
        };
    };
    hand_out(n_workers, (n + rows_at_once - 1) / rows_at_once, make);
}

}  // namespace tilewise
