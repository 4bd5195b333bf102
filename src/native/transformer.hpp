// One worker's way from combinations of pairs of functions to pairs of orbitals, which both halves of the transformation go.
#pragma once

#include <algorithm>
#include <atomic>

#include "lanes.hpp"
#include "scratch.hpp"
#include "slab.hpp"
#include "strips.hpp"
#include "transform.hpp"

namespace tilewise {

constexpr std::int64_t width = slab_width;
constexpr std::int64_t n_groups = width / strip_width;  // columns of the slab are transformed in groups
constexpr std::int64_t tile = 60;                       // orbitals p that are transformed at a time: whole strips

struct Range {
    std::int64_t first = 0, last = 0;
    std::int64_t size() const { return last - first; }
};

// Pairs (P, Q) of one Q as combinations of rows of a slab, those from number `at` on: panels [group][P][column].
void expand_panels(const Expansion& e, std::int64_t at, std::int64_t n_left, const double* slab, double* out);

// The same for all Q of one irrep, whose pairs are those with P >= Q: the panels of (Q, P) are filled too.
void expand_square(const Expansion& e, std::int64_t at, std::int64_t n, const double* slab, double* out);

// One worker's part of both halves: for `width` columns at a time, integrals over combinations of pairs of functions become
// integrals over pairs of orbitals.
class Transformer {
public:
    Transformer(const Expansion& expansion, const OrbitalSet& orbitals, WorkerScratch& scratch)
        : e_(expansion), o_(orbitals), s_(scratch), slab_(scratch.slab.at_least(expansion.n_classes * width)) {
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
        const double* rows[width] = {};
        for (std::int64_t k = 0; k < count; ++k) rows[k] = x.row(first + k);
        rows_to_slab(rows, count, first, slab_);
        for (std::int64_t k = 0; k < count; ++k)  // the square on the diagonal
            for (std::int64_t l = 0; l <= k; ++l)
                slab_[(first + l) * width + k] = slab_[(first + k) * width + l] = rows[k][first + l];
        columns_to_slab(x, first, count, e_.n_classes, slab_);
        clear_rest(count);
    }

    // Rows as columns of the slab, which they fill from its row `first` on.
    void take_rows(const double* const* rows, std::int64_t count, std::int64_t first, std::int64_t length) {
        rows_to_slab(rows, count, length, slab_ + first * width);
        if (first + length == e_.n_classes) clear_rest(count);
    }

    // The slab over pairs (P, Q) of symmetry-adapted functions, in panels [Q][group][P][column]; those of one Q are made
    // when they are first asked for. Without symmetry the rows of the slab are these pairs.
    void expand(std::int64_t right) {
        const std::int64_t left = right ^ e_.irrep, n_left = e_.n_functions[left], n_right = e_.n_functions[right];
        right_ = right;
        n_expanded_ = 0;
        if (e_.plain) return;
        expanded_ = s_.expanded.at_least(n_left * n_right * width);
        if (left != right) return;
        expand_square(e_, first_expanded_[right], n_left, slab_, expanded_);
        n_expanded_ = n_right;
    }

    // (pq) for p and q of some ranges, q <= p if both have one irrep: calls use(p range, q range, [p][q][width]) for a few p at a time.
    template <class Use>
    void orbitals(Range p, Range q, const Use& use) {
        const bool same = e_.irrep == 0;
        if (same) q.last = std::min(q.last, p.last);
        if (p.size() <= 0 || q.size() <= 0) return;
        if (q.size() < p.size() && !(same && q.size() == p.last))
            right_first(p, q, use);
        else
            left_first(p, q, use);
    }

    // (pi) of one i, which is of the irrep on the right or on the left, for some p: calls use(p, [width]).
    template <class Use>
    void with_one(bool is_right, std::int64_t i, Range p, const Use& use) {
        const std::int64_t left = right_ ^ e_.irrep, other = is_right ? left : right_, n = e_.n_functions[other];
        if (n == 0 || p.size() <= 0) return;
        const std::int64_t ld = is_right ? half_of_one(i) : transform_left({i, i + 1});
        const double* const strips = strips_of(s_.right_strips, other, p);
        double* const block = s_.block.at_least(p.size() * width);
        for (std::int64_t g = 0; g < n_groups; ++g)
            strip_product(p.size(), n, strips, half_ + g * ld, block + g * strip_width, width);
        for (std::int64_t k = 0; k < p.size(); ++k) use(p.first + k, block + k * width);
    }

private:
    template <class Use>
    void left_first(Range p, Range q, const Use& use) {
        const std::int64_t n_right = e_.n_functions[right_];
        const double* const strips = strips_of(s_.right_strips, right_, q);
        double* const block = s_.block.at_least(q.size() * width);
        for (std::int64_t p0 = p.first; p0 < p.last; p0 += tile) {
            const Range some{p0, std::min(p0 + tile, p.last)};
            const std::int64_t ld = transform_left(some);
            for (std::int64_t k = 0; k < some.size(); ++k) {
                const std::int64_t last = e_.irrep == 0 ? std::min(q.last, some.first + k + 1) : q.last;
                for (std::int64_t g = 0; g < n_groups; ++g)
                    strip_product(last - q.first, n_right, strips, half_ + (g * some.size() + k) * ld, block + g * strip_width, width);
                use(Range{some.first + k, some.first + k + 1}, q, block);
            }
        }
    }

    template <class Use>
    void right_first(Range p, Range q, const Use& use) {
        const std::int64_t left = right_ ^ e_.irrep, n_left = e_.n_functions[left], ld = transform_right(q);
        double* const block = s_.block.at_least(std::min(tile, p.size()) * q.size() * width);
        for (std::int64_t p0 = p.first; p0 < p.last; p0 += tile) {
            const Range some{p0, std::min(p0 + tile, p.last)};
            const double* const strips = strips_of(s_.left_strips, left, some);
            for (std::int64_t k = 0; k < q.size(); ++k)
                for (std::int64_t g = 0; g < n_groups; ++g)
                    strip_product(some.size(), n_left, strips, half_ + (g * q.size() + k) * ld, block + k * width + g * strip_width,
                                  q.size() * width);
            use(some, q, block);
        }
    }

    // Coefficients of some orbitals of an irrep.
    const double* strips_of(Buffer& buffer, std::int64_t h, Range some) const {
        const std::int64_t n = e_.n_functions[h];
        double* const strips = buffer.at_least(packed_strips(some.size(), n));
        pack_strips(some.size(), n, coefficients_[h] + some.first, n_orbitals(h), strips);
        return strips;
    }

    // Of the distance of two rows of `half`: an odd number of cache lines.
    static std::int64_t apart(std::int64_t n) { return (n | 1) * strip_width; }

    // half[group][p][Q][column]; answers with the distance of two p.
    std::int64_t transform_left(Range p) {
        const std::int64_t left = right_ ^ e_.irrep, n_left = e_.n_functions[left], n_right = e_.n_functions[right_], ld = apart(n_right);
        const double* const strips = strips_of(s_.left_strips, left, p);
        half_ = s_.half.at_least(n_groups * p.size() * ld);
        for (std::int64_t q = 0; q < n_right; ++q) {
            if (!e_.plain) expand_up_to(q + 1);
            for (std::int64_t g = 0; g < n_groups; ++g) {
                const double* panel = e_.plain ? gather_pairs(q, g) : expanded_ + (q * n_groups + g) * n_left * strip_width;
                strip_product(p.size(), n_left, strips, panel, half_ + g * p.size() * ld + q * strip_width, ld);
            }
        }
        return ld;
    }

    // half[group][q][P][column]
    std::int64_t transform_right(Range q) {
        const std::int64_t left = right_ ^ e_.irrep, n_left = e_.n_functions[left], n_right = e_.n_functions[right_], ld = apart(n_left);
        const double* const strips = strips_of(s_.right_strips, right_, q);
        half_ = s_.half.at_least(n_groups * q.size() * ld);
        if (!e_.plain) expand_up_to(n_right);
        for (std::int64_t p = 0; p < n_left; ++p)
            for (std::int64_t g = 0; g < n_groups; ++g) {
                const double* panel = e_.plain ? gather_pairs(p, g) : gather_expanded(p, g);
                strip_product(q.size(), n_right, strips, panel, half_ + g * q.size() * ld + p * strip_width, ld);
            }
        return ld;
    }

    // half[group][P][column] of one i on the right
    std::int64_t half_of_one(std::int64_t i) {
        const std::int64_t n_left = e_.n_functions[right_ ^ e_.irrep], n_right = e_.n_functions[right_];
        if (e_.plain) return transform_left({i, i + 1});
        half_ = s_.half.at_least(n_left * width);
        std::fill(half_, half_ + n_left * width, 0.0);
        expand_up_to(n_right);
        for (std::int64_t q = 0; q < n_right; ++q)
            add_multiple(n_left * width, coefficients_[right_][q * n_orbitals(right_) + i], expanded_ + q * n_left * width, half_, false);
        return n_left * strip_width;
    }

    void expand_up_to(std::int64_t end) {
        const std::int64_t n_left = e_.n_functions[right_ ^ e_.irrep];
        for (; n_expanded_ < end; ++n_expanded_)
            expand_panels(e_, first_expanded_[right_] + n_expanded_ * n_left, n_left, slab_, expanded_ + n_expanded_ * n_left * width);
    }

    // Panel [P][column] of the pairs (P, Q) of one function where there is no symmetry.
    const double* gather_pairs(std::int64_t q, std::int64_t g) {
        const std::int64_t n = e_.n_functions[0];
        double* const panel = s_.panel.at_least(n * strip_width);
        const double* const from = slab_ + g * strip_width;
        gather_rows(q, from + q * (q + 1) / 2 * width, width, panel);
        double* to = panel + q * strip_width;
        const double* row = from + (q * (q + 1) / 2 + q) * width;
        for (std::int64_t p = q; p < n; ++p, row += p * width, to += strip_width) {
            __builtin_prefetch(row + (p + 1) * width + strip_width);
            copy_few<strip_width>(row, to);
        }
        return panel;
    }

    // Panel [Q][column] of the pairs (P, Q) of one P.
    const double* gather_expanded(std::int64_t p, std::int64_t g) {
        const std::int64_t n_left = e_.n_functions[right_ ^ e_.irrep], n_right = e_.n_functions[right_];
        double* const panel = s_.panel.at_least(n_right * strip_width);
        gather_rows(n_right, expanded_ + (g * n_left + p) * strip_width, n_left * width, panel);
        return panel;
    }

    static void gather_rows(std::int64_t count, const double* from, std::int64_t ld, double* to) {
        for (std::int64_t k = 0; k < count; ++k) copy_few<strip_width>(from + k * ld, to + k * strip_width);
    }

    void clear_rest(std::int64_t count) {
        if (count == width) return;
        for (std::int64_t l = 0; l < e_.n_classes; ++l) std::fill(slab_ + l * width + count, slab_ + (l + 1) * width, 0.0);
    }

    const Expansion& e_;
    const OrbitalSet& o_;
    WorkerScratch& s_;
    double *slab_, *expanded_ = nullptr, *half_ = nullptr;
    std::int64_t right_ = 0, n_expanded_ = 0;  // the irrep on the right, and its functions Q that have panels
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
inline void take_half(Transformer& t, const HalfMatrix& half, const std::int64_t* column, std::int64_t count) {
    const double* rows[width] = {};
    std::int64_t first = 0;
    for (std::int64_t k = 0; k < half.size; ++k) {
        const HalfPiece& piece = half[k];
        for (std::int64_t x = 0; x < count; ++x) rows[x] = piece.data + column[x] * piece.n_columns;
        t.take_rows(rows, count, first, piece.n_columns);
        first += piece.n_columns;
    }
}

}  // namespace tilewise
