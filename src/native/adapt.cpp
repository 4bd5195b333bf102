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

constexpr std::int64_t block = 4;          // classes that are combined side by side
constexpr std::int64_t rows_together = 4;  // rows that are made in one pass over the tables

// Neighbouring classes that have the same irreps, so that their places are neighbours in each of these.
struct Run {
    std::int64_t first, count, size;  // classes, and images of each
    std::int64_t irrep[max_irreps], place[max_irreps];
    unsigned irreps;           // as bits
    std::int64_t image_block;  // in the table of images: [block of classes][image][class]
};

// All classes in runs, the images of whole blocks in the order in which they are read.
struct Runs {
    explicit Runs(const PairClasses& c) : largest(c.first.size - 1), run_of(c.first.size - 1) {
        for (std::int64_t k = 0; k + 1 < c.first.size; ++k) {
            largest[k] = std::max(k ? largest[k - 1] : 0, c.image[c.first[k]]);
            if (!all.empty() && is_alike(c, all.back().first, k)) {
                ++all.back().count;
                run_of[k] = static_cast<std::int64_t>(all.size()) - 1;
                continue;
            }
            run_of[k] = static_cast<std::int64_t>(all.size());
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
    std::vector<std::int64_t> run_of;   // each class
};

// A row K: its integrals with all pairs, and where those with the combinations of one run go.
struct Row {
    const double* integrals = nullptr;
    double* places[max_irreps] = {};
};

// Blocks first .. last of one run.
struct Blocks {
    std::int64_t first, last;
    const std::int32_t* image;
    const double* weight;
};

#ifdef TILEWISE_AVX2

bool has_blocks() {
    static const bool available = __builtin_cpu_supports("avx2");
    return available;
}

// Blocks of classes of one run, with the integrals of some rows.
template <int size>
__attribute__((target("avx2"))) void combine_blocks(const Blocks& blocks, double scale, const Row* rows, std::int64_t n_rows) {
    const __m256d factor = _mm256_set1_pd(scale);
    for (std::int64_t b = blocks.first; b < blocks.last; ++b)
        for (std::int64_t r = 0; r < n_rows; ++r) {
            const std::int32_t* image = blocks.image + b * size * block;
            const double *weight = blocks.weight + b * size * block, *row = rows[r].integrals;
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
            for (int j = 0; j < size; ++j) _mm256_storeu_pd(rows[r].places[j] + b * block, x[j]);
        }
}

void combine_blocks(std::int64_t size, const Blocks& blocks, double scale, const Row* rows, std::int64_t n_rows) {
    switch (size) {
        case 1: return combine_blocks<1>(blocks, scale, rows, n_rows);
        case 2: return combine_blocks<2>(blocks, scale, rows, n_rows);
        case 4: return combine_blocks<4>(blocks, scale, rows, n_rows);
        default: return combine_blocks<8>(blocks, scale, rows, n_rows);
    }
}

#else

bool has_blocks() { return false; }

void combine_blocks(std::int64_t, const Blocks&, double, const Row*, std::int64_t) {}

#endif

// The rows of neighbouring classes of one run. Classes before the first one with an image behind the pair of a row find all
// integrals there.
class SomeRows {
public:
    SomeRows(const PairClasses& c, const Runs& runs, const PairMatrix& integrals, std::int64_t first, std::int64_t count, double* const* out,
             double* nowhere)
        : c_(c), runs_(runs), integrals_(integrals), first_(first), count_(count) {
        for (std::int64_t r = 0; r < count; ++r) {
            to_.emplace_back(c, first + r, out, nowhere);
            pair_[r] = c.image[c.first[first + r]];
            rows_[r].integrals = integrals.row(pair_[r]);
            const auto begin = runs.largest.begin();
            whole_[r] = std::upper_bound(begin, begin + first + r + 1, pair_[r]) - begin;
        }
    }

    void make() {
        for (const Run& run : runs_.all) {
            if (run.first > first_ + count_ - 1) break;
            if (run.irreps & to_[0].irreps) combine_with(run);
        }
    }

private:
    void combine_with(const Run& run) {
        std::int64_t n_blocks[rows_together], shared = run.count / block;
        for (std::int64_t r = 0; r < count_; ++r) {
            const std::int64_t end = std::min({run.first + run.count, first_ + r + 1, whole_[r]});
            n_blocks[r] = has_blocks() ? std::max<std::int64_t>(0, end - run.first) / block : 0;
            shared = std::min(shared, n_blocks[r]);
            for (std::int64_t j = 0; j < run.size; ++j) rows_[r].places[j] = to_[r].rows[run.irrep[j]] + run.place[j];
        }
        const std::int32_t* image = runs_.image.data() + run.image_block;
        const double *weight = runs_.weight.data() + run.image_block, scale = to_[0].scale;
        if (shared > 0) combine_blocks(run.size, {0, shared, image, weight}, scale, rows_, count_);
        for (std::int64_t r = 0; r < count_; ++r) {
            if (n_blocks[r] > shared) combine_blocks(run.size, {shared, n_blocks[r], image, weight}, scale, rows_ + r, 1);
            combine_rest(run, r, run.first + n_blocks[r] * block);
        }
    }

    // Single classes of a run.
    void combine_rest(const Run& run, std::int64_t r, std::int64_t from) {
        const std::int64_t pair = pair_[r];
        const double* row = rows_[r].integrals;
        const auto value = [&](std::int64_t e) {
            const std::int64_t other = c_.image[e];
            return other <= pair ? row[other] : integrals_.row(other)[pair];
        };
        const std::int64_t end = std::min(run.first + run.count, first_ + r + 1);
        for (std::int64_t l = from; l < end; ++l) combine(c_, l, to_[r].scale, value, to_[r].rows);
    }

    const PairClasses& c_;
    const Runs& runs_;
    const PairMatrix& integrals_;
    std::int64_t first_, count_;
    std::vector<RowOf> to_;
    Row rows_[rows_together];
    std::int64_t pair_[rows_together], whole_[rows_together];
};

}  // namespace

void adapt_pairs(const PairClasses& classes, const PairMatrix& integrals, double* const* out, std::int64_t n_workers) {
    constexpr std::int64_t rows_at_once = 16;
    const std::int64_t n = classes.first.size - 1;
    const Runs runs(classes);
    const auto make = [&] {
        return [&, nowhere = std::vector<double>(n)](std::int64_t run) mutable {
            const std::int64_t end = n - run * rows_at_once;  // the longest rows first
            for (std::int64_t k = std::max<std::int64_t>(0, end - rows_at_once); k < end;) {
                std::int64_t count = 1;
                while (count < rows_together && k + count < end && runs.run_of[k + count] == runs.run_of[k]) ++count;
                SomeRows(classes, runs, integrals, k, count, out, nowhere.data()).make();
                k += count;
            }
        };
    };
    hand_out(n_workers, (n + rows_at_once - 1) / rows_at_once, make);
}

}  // namespace tilewise
