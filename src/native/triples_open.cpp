// Connected triples of open shells: i > j > k and a > b > c of one spin, or i > j, a > b of one spin with k and c of the
// other one. One W[a][b][c], of two shapes of products as in a closed shell.
#include <algorithm>

#include "triples.hpp"
#include "wide.hpp"

namespace tilewise {

namespace {

using Row = double[largest_triples_tile];
using Pairs = Block (Operands::*)(std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t) const;

// A segment that begins with a later row of the result.
Segment from_row(const Segment& part, std::int64_t row) { return {part.left + row, part.left_ld, part.right, part.right_ld, part.depth}; }

class Triple {
public:
    Triple(const Operands& operands, const Triples& record, const TileTriple& tiles, std::int64_t k, double* w)
        : operands_(operands), one_(operands.set(record.s)), two_(operands.set(record.r)), tiles_(tiles), s_(record.s), r_(record.r),
          i_(record.i), j_(record.j), k_(k), n_a_(one_.tile_size[tiles.a]), n_b_(one_.tile_size[tiles.b]),
          n_c_(two_.tile_size[tiles.c]), width_(padded(n_c_)), of_a_(n_a_, width_), of_b_(n_b_, width_), w_(w) {}

    void add_to(TriplesEnergy& energy) {
        make(energy.product_seconds);
        const bool with_singles = any_singles();
        for (std::int64_t a = 0; a < n_a_; ++a) {
            const std::int64_t last = tiles_.a == tiles_.b ? a : n_b_;  // a > b
            for (std::int64_t b = 0; b < last; ++b) row_energy(a, b, with_singles, energy);
        }
    }

private:
    void make(double& seconds) {
        const Stopwatch products(seconds);
        if (s_ == r_)
            make_one_spin();
        else
            make_two_spins();
    }

    // Sum over cyclic (p; q r) and (c; a b) of F_p[ab] G_qr[c].
    void make_one_spin() {
        const std::int64_t s = s_, A = tiles_.a, B = tiles_.b, C = tiles_.c;
        const std::int64_t p[3] = {i_, j_, k_}, q[3] = {j_, k_, i_}, r[3] = {k_, i_, j_};
        Block at_a[3], at_b[3], at_c[3];
        for (int m = 0; m < 3; ++m) {
            at_a[m] = operands_.pair(s, s, q[m], r[m], A);
            at_b[m] = operands_.pair(s, s, r[m], q[m], B);  // F_p[ca] = -F_p[ac]
            at_c[m] = operands_.pair(s, s, q[m], r[m], C);
        }
        Segment parts[6];
        for (std::int64_t b = 0; b < n_b_; ++b) {
            for (int m = 0; m < 3; ++m) parts[m] = joined(at_a[m], operands_.direct(s, s, p[m], B, C).led_by(b));
            for_rows_of_a({parts, 0, 3}, b);
        }
        for (std::int64_t a = 0; a < n_a_; ++a) {
            for (int m = 0; m < 3; ++m) {
                parts[2 * m] = joined(operands_.direct(s, s, p[m], A, B).led_by(a), at_c[m]);
                parts[2 * m + 1] = joined(at_b[m], operands_.direct(s, s, p[m], A, C).led_by(a));
            }
            for_rows_of_b({parts, 0, 6}, a);
        }
    }

    void make_two_spins() {
        const std::int64_t s = s_, r = r_, i = i_, j = j_, k = k_, A = tiles_.a, B = tiles_.b, C = tiles_.c;
        const Block ji_a = operands_.pair(s, s, j, i, A), ij_b = operands_.pair(s, s, i, j, B);
        const Block kj_a = operands_.pair(r, s, k, j, A), ki_a = operands_.pair(r, s, k, i, A);
        const Block kj_b = operands_.pair(r, s, k, j, B), ki_b = operands_.pair(r, s, k, i, B);
        const Block jk_c = operands_.pair(s, r, j, k, C), ik_c = operands_.pair(s, r, i, k, C);
        for (std::int64_t b = 0; b < n_b_; ++b) {
            const Segment parts[] = {joined(kj_a, operands_.direct(s, r, i, B, C).led_by(b)),   // subtracted
                                     joined(ki_a, operands_.direct(s, r, j, B, C).led_by(b)),
                                     joined(ji_a, operands_.crossed(r, s, k, B, C).led_by(b))};
            for_rows_of_a({parts, 1, 3}, b);
        }
        for (std::int64_t a = 0; a < n_a_; ++a) {
            const Segment parts[] = {joined(operands_.direct(s, s, j, A, B).led_by(a), ik_c),   // subtracted
                                     joined(ki_b, operands_.direct(s, r, j, A, C).led_by(a)),   // subtracted
                                     joined(operands_.direct(s, s, i, A, B).led_by(a), jk_c),
                                     joined(kj_b, operands_.direct(s, r, i, A, C).led_by(a)),
                                     joined(ij_b, operands_.crossed(r, s, k, A, C).led_by(a))};
            for_rows_of_b({parts, 2, 5}, a);
        }
    }

    // Rows a of the matrix of one b; of equal tiles those with a > b.
    void for_rows_of_a(const Segments& sum, std::int64_t b) {
        if (tiles_.a != tiles_.b) return of_a_.product(sum, w_ + b * width_, n_b_ * width_, false);
        const std::int64_t first = b + 1;
        if (first >= n_a_) return;
        Segment later[6];
        for (int m = 0; m < sum.n; ++m) later[m] = from_row(sum.first[m], first);
        SegmentTiles(n_a_ - first, width_).product({later, sum.n_negative, sum.n}, w_ + (first * n_b_ + b) * width_, n_b_ * width_, false);
    }

    void for_rows_of_b(const Segments& sum, std::int64_t a) {
        if (tiles_.a != tiles_.b) return of_b_.product(sum, w_ + a * n_b_ * width_, width_, true);
        if (a > 0) SegmentTiles(a, width_).product(sum, w_ + a * n_b_ * width_, width_, true);
    }

    bool any_singles() const {
        for (const std::int64_t i : {i_, j_})
            for (const std::int64_t tile : {tiles_.a, tiles_.b})
                if (one_.meets(i, tile)) return true;
        if (s_ != r_) return two_.meets(k_, tiles_.c);
        return one_.meets(k_, tiles_.a) || one_.meets(k_, tiles_.b) || one_.meets(k_, tiles_.c) || one_.meets(i_, tiles_.c) ||
               one_.meets(j_, tiles_.c);
    }

    // What singles (or the Fock matrix) and pairs of integrals (or doubles) add to W in one row.
    void disconnected(std::int64_t a, std::int64_t b, double* row) const {
        std::fill(row, row + width_, 0.0);
        add_disconnected(a, b, one_.t1, two_.t1, &Operands::integrals, row);
        if (operands_.has_fock()) add_disconnected(a, b, one_.fock, two_.fock, &Operands::doubles, row);
    }

    void add_disconnected(std::int64_t a, std::int64_t b, const double* one, const double* two, Pairs pairs, double* row) const {
        const std::int64_t A = tiles_.a, B = tiles_.b, C = tiles_.c;
        if (s_ == r_) {
            const std::int64_t p[3] = {i_, j_, k_}, q[3] = {j_, k_, i_}, r[3] = {k_, i_, j_};
            for (int m = 0; m < 3; ++m) {
                if (one_.meets(p[m], C)) add_last(a, b, q[m], r[m], pairs, one_, one, p[m], row);
                if (one_.meets(p[m], A)) add(one_.single(one, p[m], A, a), (operands_.*pairs)(s_, s_, q[m], r[m], B, C).row(b), row);
                if (one_.meets(p[m], B)) add(one_.single(one, p[m], B, b), (operands_.*pairs)(s_, s_, r[m], q[m], A, C).row(a), row);
            }
            return;
        }
        if (two_.meets(k_, C)) add_last(a, b, i_, j_, pairs, two_, two, k_, row);
        if (one_.meets(i_, A)) add(one_.single(one, i_, A, a), (operands_.*pairs)(s_, r_, j_, k_, B, C).row(b), row);
        if (one_.meets(j_, A)) add(-one_.single(one, j_, A, a), (operands_.*pairs)(s_, r_, i_, k_, B, C).row(b), row);
        if (one_.meets(i_, B)) add(-one_.single(one, i_, B, b), (operands_.*pairs)(s_, r_, j_, k_, A, C).row(a), row);
        if (one_.meets(j_, B)) add(one_.single(one, j_, B, b), (operands_.*pairs)(s_, r_, i_, k_, A, C).row(a), row);
    }

    // A pair q r with a and b, times a single of c.
    void add_last(std::int64_t a, std::int64_t b, std::int64_t q, std::int64_t r, Pairs pairs, const OrbitalSet& set,
                  const double* singles, std::int64_t p, double* row) const {
        const double factor = (operands_.*pairs)(s_, s_, q, r, tiles_.a, tiles_.b).row(a)[b];
        const double* values = singles + p * set.n_vir + set.tile_first[tiles_.c];
        for (std::int64_t c = 0; c < n_c_; ++c) row[c] += factor * values[c];
    }

    void add(double factor, const double* from, double* row) const {
        for (std::int64_t c = 0; c < width_; ++c) row[c] += factor * from[c];
    }

    // 1 / D; nothing where c would not be below b.
    void weights(std::int64_t a, std::int64_t b, double* row) const {
        const double top = one_.occ_energy[i_] + one_.occ_energy[j_] + two_.occ_energy[k_] -
                           one_.vir_energy[one_.tile_first[tiles_.a] + a] - one_.vir_energy[one_.tile_first[tiles_.b] + b];
        const double* last = two_.vir_energy + two_.tile_first[tiles_.c];
        const std::int64_t n = s_ == r_ && tiles_.b == tiles_.c ? b : n_c_;
        for (std::int64_t c = 0; c < n; ++c) row[c] = 1.0 / (top - last[c]);
        for (std::int64_t c = n; c < width_; ++c) row[c] = 0.0;
    }

    TILEWISE_WIDE_SUMS void row_energy(std::int64_t a, std::int64_t b, bool with_singles, TriplesEnergy& energy) const {
        const double* w = w_ + (a * n_b_ + b) * width_;
        Row weight;
        weights(a, b, weight);
        double part[segment_lanes] = {};
        for (std::int64_t c = 0; c < width_; c += segment_lanes)
            for (int lane = 0; lane < segment_lanes; ++lane) {
                const std::int64_t x = c + lane;
                weight[x] *= w[x];
                part[lane] += weight[x] * w[x];
            }
        for (const double x : part) energy.fourth += x;
        if (!with_singles) return;
        Row v;
        disconnected(a, b, v);
        double own[segment_lanes] = {};
        for (std::int64_t c = 0; c < width_; c += segment_lanes)
            for (int lane = 0; lane < segment_lanes; ++lane) own[lane] += weight[c + lane] * v[c + lane];
        for (const double x : own) energy.fifth += x;
    }

    const Operands& operands_;
    const OrbitalSet &one_, &two_;
    const TileTriple& tiles_;
    const std::int64_t s_, r_, i_, j_, k_, n_a_, n_b_, n_c_, width_;
    const SegmentTiles of_a_, of_b_;  // products with all rows of a, and of b
    double* w_;
};

}  // namespace

void open_triples(const Operands& operands, const Triples& record, const TileTriple& tiles, double* memory, TriplesEnergy& energy) {
    for (std::int64_t k = record.k; k < record.k + record.n_k; ++k) Triple(operands, record, tiles, k, memory).add_to(energy);
}

}  // namespace tilewise
