// One worker's way from combinations of pairs of functions to pairs of orbitals, which both halves of the transformation go.
#pragma once

#include <algorithm>
#include <atomic>
#include <vector>

#include "lanes.hpp"
#include "narrow.hpp"
#include "scratch.hpp"
#include "slab.hpp"
#include "tasks.hpp"
#include "transform.hpp"

namespace tilewise {

constexpr std::int64_t width = slab_width;
constexpr std::int64_t tile = 64;            // orbitals p that are transformed at a time
constexpr std::int64_t many_functions = 64;  // from which on dgemm is faster for all of them than our own kernels for a few
constexpr std::int64_t padding = 8;          // keeps rows that would be a power of two apart out of each other's cache lines

struct Range {
    std::int64_t first = 0, last = 0;
    std::int64_t size() const { return last - first; }
};

// C[m, n] = A^T[m, k] B[k, n], A (k, m). The rows of a slab lie side by side, and few of them need not be packed.
inline void product(const double* a, std::int64_t lda, const double* b, std::int64_t ldb, double* c, std::int64_t ldc, std::int64_t m,
             std::int64_t k, double* scratch, std::int64_t n = width) {
    if (n == width && k < many_functions && own_kernels()) return short_product(m, n, k, 1.0, a, 1, lda, b, ldb, 0.0, c, ldc);
    double* buffers[3] = {const_cast<double*>(a), const_cast<double*>(b), c};
    const Gemm record{0, 1, 2, 1, 0, m, n, k, 0, lda, 0, ldb, 0, ldc, 1.0, 0.0};
    Arena arena{scratch, narrow_scratch};
    gemm(record, buffers, arena);
}

// Pairs (P, Q) of two irreps as combinations of rows of a slab; of one irrep, those with P >= Q and the same for (Q, P).
void expand_block(const Expansion& e, std::int64_t at, std::int64_t n_left, std::int64_t n_right, bool same, const double* slab,
                  double* out);

// One worker's part of both halves: for `width` columns at a time, integrals over combinations of pairs of functions become
// integrals over pairs of orbitals.
class Transformer {
public:
    Transformer(const Expansion& expansion, const OrbitalSet& orbitals, WorkerScratch& scratch)
        : e_(expansion), o_(orbitals), s_(scratch), slab_(scratch.slab.at_least(expansion.n_classes * width)),
          packed_(scratch.packed.at_least(narrow_scratch)), plain_(expansion.plain && own_kernels()) {
        std::int64_t at = 0, entries = 0, pairs = 0;
        for (std::int64_t h = 0; h < e_.n_irreps; ++h) {
            coefficients_[h] = o_.coefficients.data + at;
            at += e_.n_functions[h] * n_orbitals(h);
        }
        for (std::int64_t right = 0; right < e_.n_irreps; ++right) {
            const std::int64_t left = right ^ e_.irrep;
            if (left < right) continue;
            first_expanded_[right] = entries;
            first_pair_[right] = pairs;
            const bool same = left == right;
            const std::int64_t n = e_.n_functions[left], m = n_orbitals(left);
            entries += same ? n * (n + 1) / 2 : n * e_.n_functions[right];
            pairs += same ? m * (m + 1) / 2 : m * n_orbitals(right);
        }
    }

    std::int64_t n_orbitals(std::int64_t h) const { return kind(h, o_.n_kinds) - kind(h, 0); }

    // Rank of the first orbital of a kind; the orbitals of a kind within their irrep.
    std::int64_t kind(std::int64_t h, std::int64_t k) const { return o_.first[h * (o_.n_kinds + 1) + k]; }
    Range of_kinds(std::int64_t h, std::int64_t first, std::int64_t last) const {
        return {kind(h, first) - kind(h, 0), kind(h, last) - kind(h, 0)};
    }

    // Number of a pair; that of the first pair of the next p less this is the number of its q.
    std::int64_t pair(std::int64_t right, std::int64_t p, std::int64_t q) const {
        const bool same = e_.irrep == 0;
        return first_pair_[right] + (same ? p * (p + 1) / 2 : p * n_orbitals(right)) + q;
    }

    double* slab() { return slab_; }

    // Columns K .. of a symmetric matrix, of which the lower triangle is there, as columns of the slab.
    void take_columns(const PairMatrix& x, std::int64_t first, std::int64_t count) {
        const double* rows[width];
        for (std::int64_t k = 0; k < count; ++k) rows[k] = x.row(first + k);
        rows_to_slab(rows, count, first, slab_);
        for (std::int64_t k = 0; k < count; ++k)  // the square on the diagonal
            for (std::int64_t l = 0; l <= k; ++l)
                slab_[(first + l) * width + k] = slab_[(first + k) * width + l] = rows[k][first + l];
        if (count == width)
            for (std::int64_t l = first + count; l < e_.n_classes; ++l) std::copy_n(x.row(l) + first, width, slab_ + l * width);
        else
            for (std::int64_t l = first + count; l < e_.n_classes; ++l) std::copy_n(x.row(l) + first, count, slab_ + l * width);
        clear_rest(count);
    }

    // Whole rows as columns of the slab.
    void take_rows(const double* const* rows, std::int64_t count) {
        rows_to_slab(rows, count, e_.n_classes, slab_);
        clear_rest(count);
    }

    // The slab over pairs (P, Q) of symmetry-adapted functions: [Q][P][width].
    void expand(std::int64_t right) {
        if (plain_) return;  // the rows of the slab are taken as they lie
        const std::int64_t left = right ^ e_.irrep, n_left = e_.n_functions[left], n_right = e_.n_functions[right];
        expanded_ = s_.expanded.at_least(n_left * n_right * width);
        expand_block(e_, first_expanded_[right], n_left, n_right, left == right, slab_, expanded_);
    }

    // (pq) for p and q of some ranges, q <= p if both have one irrep: calls use(p range, q range, [p][q][width]) for a few p at a time.
    template <class Use>
    void orbitals(std::int64_t right, Range p, Range q, const Use& use) {
        const std::int64_t left = right ^ e_.irrep;
        if (left == right) q.last = std::min(q.last, p.last);
        if (p.size() <= 0 || q.size() <= 0) return;
        const std::int64_t n_left = e_.n_functions[left], n_right = e_.n_functions[right];
        const bool right_first = q.size() < p.size() && !(left == right && q.size() == p.last);
        double* const block = s_.block.at_least(std::min(tile, p.size()) * q.size() * width);
        if (right_first) transform_right(left, right, q);
        for (std::int64_t p0 = p.first; p0 < p.last; p0 += tile) {
            const Range some{p0, std::min(p0 + tile, p.last)};
            if (right_first) {
                const std::int64_t ld = n_left * width + padding;
                for (std::int64_t k = 0; k < q.size(); ++k)
                    product(coefficients_[left] + some.first, n_orbitals(left), half_ + k * ld, width,
                            block + k * width, q.size() * width, some.size(), n_left, packed_);
            } else {
                transform_left(left, right, some);
                const std::int64_t ld = n_right * width + padding;
                for (std::int64_t k = 0; k < some.size(); ++k) {
                    const std::int64_t last = left == right ? std::min(q.last, some.first + k + 1) : q.last;
                    product(coefficients_[right] + q.first, n_orbitals(right), half_ + k * ld, width,
                            block + k * q.size() * width, width, last - q.first, n_right, packed_);
                }
            }
            use(some, q, block);
        }
    }

    // (pi) of one i, which is of the irrep on the right or on the left, for some p: calls use(p, [width]).
    template <class Use>
    void with_one(std::int64_t right, bool is_right, std::int64_t i, Range p, const Use& use) {
        const std::int64_t left = right ^ e_.irrep, other = is_right ? left : right, n = e_.n_functions[other];
        if (n == 0 || p.size() <= 0) return;
        half_ = s_.half.at_least(n * width);
        if (plain_)
            transform_plain({i, i + 1}, n * width);
        else
            transform_one(right, is_right, i);
        double* const block = s_.block.at_least(p.size() * width);
        product(coefficients_[other] + p.first, n_orbitals(other), half_, width, block, width, p.size(), n,
                packed_);
        for (std::int64_t k = 0; k < p.size(); ++k) use(p.first + k, block + k * width);
    }

private:
    // half[p][width] with one i
    void transform_one(std::int64_t right, bool is_right, std::int64_t i) {
        const std::int64_t left = right ^ e_.irrep, n_left = e_.n_functions[left], n_right = e_.n_functions[right];
        const std::int64_t mine = is_right ? right : left, n = is_right ? n_left : n_right;
        std::fill(half_, half_ + n * width, 0.0);
        const double* c = coefficients_[mine] + i;
        for (std::int64_t q = 0; q < n_right; ++q) {
            const double* panel = expanded_ + q * n_left * width;
            if (is_right)
                add_multiple(n_left * width, c[q * n_orbitals(mine)], panel, half_, false);
            else
                for (std::int64_t k = 0; k < n_left; ++k)
                    add_multiple(width, c[k * n_orbitals(mine)], panel + k * width, half_ + q * width, false);
        }
    }

    // half[p][Q][width] of rows of the slab that are the pairs (P, Q) themselves.
    void transform_plain(Range p, std::int64_t ld) {
        const std::int64_t n = e_.n_functions[0];
        double* const scratch = s_.strips.at_least(n * strip_cols + packed_strips(p.size(), n));
        double* const strips = scratch + n * strip_cols;
        pack_strips(p.size(), n, coefficients_[0] + p.first, n_orbitals(0), strips);
        rows_.resize(n);
        for (std::int64_t q = 0; q < n; ++q) {
            for (std::int64_t k = 0; k <= q; ++k) rows_[k] = slab_ + (q * (q + 1) / 2 + k) * width;
            for (std::int64_t k = q + 1; k < n; ++k) rows_[k] = slab_ + (k * (k + 1) / 2 + q) * width;
            gathered_product(p.size(), width, n, strips, rows_.data(), half_ + q * width, ld, scratch);
        }
    }

    void clear_rest(std::int64_t count) {
        if (count == width) return;
        for (std::int64_t l = 0; l < e_.n_classes; ++l) std::fill(slab_ + l * width + count, slab_ + (l + 1) * width, 0.0);
    }

    // half[p][Q][width]
    void transform_left(std::int64_t left, std::int64_t right, Range p) {
        const std::int64_t n_left = e_.n_functions[left], n_right = e_.n_functions[right], ld = n_right * width + padding;
        half_ = s_.half.at_least(p.size() * ld);
        if (plain_) return transform_plain(p, ld);
        if (left == right && n_left >= many_functions)  // [P][Q] is [Q][P]
            return product(coefficients_[left] + p.first, n_orbitals(left), expanded_, n_right * width, half_, ld,
                           p.size(), n_left, packed_, n_right * width);
        for (std::int64_t q = 0; q < n_right; ++q)
            product(coefficients_[left] + p.first, n_orbitals(left), expanded_ + q * n_left * width, width,
                    half_ + q * width, ld, p.size(), n_left, packed_);
    }

    // half[q][P][width]
    void transform_right(std::int64_t left, std::int64_t right, Range q) {
        const std::int64_t n_left = e_.n_functions[left], n_right = e_.n_functions[right], ld = n_left * width + padding;
        half_ = s_.half.at_least(q.size() * ld);
        if (plain_) return transform_plain(q, ld);
        for (std::int64_t p = 0; p < n_left; ++p)
            product(coefficients_[right] + q.first, n_orbitals(right), expanded_ + p * width, n_left * width,
                    half_ + p * width, ld, q.size(), n_right, packed_);
    }

    const Expansion& e_;
    const OrbitalSet& o_;
    WorkerScratch& s_;
    double *slab_, *packed_, *expanded_ = nullptr, *half_ = nullptr;
    bool plain_;
    std::vector<const double*> rows_;
    const double* coefficients_[max_irreps] = {};
    std::int64_t first_expanded_[max_irreps] = {}, first_pair_[max_irreps] = {};
};

// Hands the scratch of each worker to one thread, in the order in which they ask.
class Turn {
public:
    explicit Turn(Scratch& scratch) : scratch_(scratch) {}
    WorkerScratch& operator()() { return scratch_.workers[next_++]; }

private:
    Scratch& scratch_;
    std::atomic<std::size_t> next_{0};
};

// Columns (rs) of half-transformed integrals as columns of the slab.
inline void take_half(Transformer& t, const double* half, std::int64_t ld, const std::int64_t* column, std::int64_t count) {
    const double* rows[width];
    for (std::int64_t x = 0; x < count; ++x) rows[x] = half + column[x] * ld;
    t.take_rows(rows, count);
}

}  // namespace tilewise
