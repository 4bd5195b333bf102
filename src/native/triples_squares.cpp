// Connected triples without symmetry, by squares: for fixed i and a, S_bd = (ia|bd) is a symmetric matrix, and the two terms
// that have it are S T + T S = (S + T)^2 - S^2 - T^2 with T = t_jk. S^2 and T^2 are made once, so that one product is left
// where there were two. The hole terms are further columns of the left and rows of the right factor.
//
// Operands, one after the other, with s the scale: s (ia|bd) as [i][a][b][d], the squares of these matrices, t_jk^bc / s as
// [j][k][b][c], the squares of these, and (lj|kc) as [l][j][k][c].
#include "triples_squares.hpp"

#include <algorithm>

namespace tilewise {

void WholeW::copy(std::int64_t p, std::int64_t q, const TileTriple& tiles, const std::int64_t (&extent)[3], double* to) const {
    const std::int64_t first[] = {set_.tile_first[tiles.a], set_.tile_first[tiles.b], set_.tile_first[tiles.c]};
    // Where i, j, k stand among p, q, r; equal ones in any order.
    const int at_i = p == i_ ? 0 : q == i_ ? 1 : 2;
    int at_j = -1;
    const std::int64_t in_place[] = {p, q, -1};
    for (int place = 0; place < 2 && at_j < 0; ++place)
        if (place != at_i && in_place[place] == j_) at_j = place;
    if (at_j < 0) at_j = at_i == 2 ? 1 : 2;
    const int at_k = 3 - at_i - at_j;
    std::int64_t w_step[3], z_step[3], y_step[3];
    w_step[at_i] = v_ * v_, w_step[at_j] = v_, w_step[at_k] = 1;
    z_step[at_k] = v_ * v_, z_step[at_i] = v_, z_step[at_j] = 1;
    y_step[at_j] = v_ * v_, y_step[at_i] = v_, y_step[at_k] = 1;
    const bool both = j_ == k_;
    const std::int64_t width = padded(extent[2]);
    for (std::int64_t a = 0; a < extent[0]; ++a)
        for (std::int64_t b = 0; b < extent[1]; ++b, to += width) {
            const std::int64_t x = first[0] + a, y = first[1] + b, z = first[2];
            const double* w = w_ + x * w_step[0] + y * w_step[1] + z * w_step[2];
            const double* one = z_ + x * z_step[0] + y * z_step[1] + z * z_step[2];
            const double* two = z_ + x * y_step[0] + y * y_step[1] + z * y_step[2];
            const std::int64_t ws = w_step[2], zs = z_step[2], ys = y_step[2];
            for (std::int64_t c = 0; c < extent[2]; ++c) to[c] = w[c * ws] + one[c * zs];
            if (both)
                for (std::int64_t c = 0; c < extent[2]; ++c) to[c] += two[c * ys];
            std::fill(to + extent[2], to + width, 0.0);
        }
}

namespace {

// The products of one i, j, k.
class Squares {
public:
    Squares(const Operands& operands, std::int64_t i, std::int64_t j, std::int64_t k, double* memory)
        : set_(operands.set(0)), o_(set_.n_occ), v_(set_.n_vir), length_(v_ + 2 * o_), i_(i), j_(j), k_(k), scale_(operands.scale()),
          integrals_(operands.squares(0)), integral_squares_(operands.squares(1)), doubles_(operands.squares(2)),
          double_squares_(operands.squares(3)), holes_(operands.squares(4)), w_(memory), z_(memory + v_ * v_ * v_),
          factors_(memory + 2 * v_ * v_ * v_) {}

    WholeW made() {
        for (std::int64_t a = 0; a < v_; ++a) first_group(a);
        if (i_ == j_)
            add_exchanged();
        else if (j_ != k_)
            for (std::int64_t b = 0; b < v_; ++b) second_group(b, w_ + b * v_, v_ * v_, true);
        if (j_ == k_)
            for (std::int64_t b = 0; b < v_; ++b) second_group(b, z_ + b * v_ * v_, v_, false);
        else
            for (std::int64_t c = 0; c < v_; ++c) third_group(c);
        return WholeW(set_, i_, j_, k_, w_, z_);
    }

private:
    const double* doubles(std::int64_t j, std::int64_t k) const { return doubles_ + (j * o_ + k) * v_ * v_; }
    // (lj|kc) for all c.
    const double* holes(std::int64_t l, std::int64_t j, std::int64_t k) const { return holes_ + ((l * o_ + j) * o_ + k) * v_; }

    // The two hole terms that have t_pl with the orbital `lead`: -t_pl (lq|r.) - (lr|q.) t_pl, so that a group becomes another
    // one when orbitals are exchanged.
    void beside(std::int64_t p, std::int64_t lead, std::int64_t q, std::int64_t r) {
        for (std::int64_t l = 0; l < o_; ++l) {
            column(l, doubles(p, l) + lead * v_, -scale_);
            row(l, holes(l, q, r), 1.0);
            column(o_ + l, holes(l, r, q), -1.0);
            row(o_ + l, doubles(p, l) + lead * v_, scale_);
        }
    }

    // W[a][b][c] of one a: -t_il^ab (lj|kc) - (lk|jb) t_il^ac.
    void first_group(std::int64_t a) {
        beside(i_, a, j_, k_);
        multiply(i_, a, j_, k_, w_ + a * v_ * v_, v_, false);
    }

    // W[a][b][c] of one b: -t_jl^ba (li|kc) - (lk|ia) t_jl^bc.
    void second_group(std::int64_t b, double* to, std::int64_t ld, bool add) {
        beside(j_, b, i_, k_);
        multiply(j_, b, i_, k_, to, ld, add);
    }

    // Z[c][a][b] of one c: -t_kl^ca (li|jb) - (lj|ia) t_kl^cb.
    void third_group(std::int64_t c) {
        beside(k_, c, i_, j_);
        multiply(k_, c, i_, j_, z_ + c * v_ * v_, v_, false);
    }

    void column(std::int64_t l, const double* from, double factor) {
        double* to = factors_ + v_ + l;
        for (std::int64_t x = 0; x < v_; ++x) to[x * length_] = factor * from[x];
    }

    void row(std::int64_t l, const double* from, double factor) {
        double* to = factors_ + (v_ + l) * length_;
        for (std::int64_t x = 0; x < v_; ++x) to[x] = factor * from[x];
    }

    // (S + T)^2 - S^2 - T^2 with S of (p, lead) and T of (q, r), and the hole terms that stand beside it.
    void multiply(std::int64_t p, std::int64_t lead, std::int64_t q, std::int64_t r, double* to, std::int64_t ld, bool add) {
        const std::int64_t size = v_ * v_;
        const double *s = integrals_ + (p * v_ + lead) * size, *t = doubles(q, r);
        const double *s2 = integral_squares_ + (p * v_ + lead) * size, *t2 = double_squares_ + (q * o_ + r) * size;
        for (std::int64_t x = 0; x < v_; ++x) {
            double *factor = factors_ + x * length_, *target = to + x * ld;
            const std::int64_t at = x * v_;
            for (std::int64_t y = 0; y < v_; ++y) factor[y] = s[at + y] + t[at + y];
            if (add)
                for (std::int64_t y = 0; y < v_; ++y) target[y] -= s2[at + y] + t2[at + y];
            else
                for (std::int64_t y = 0; y < v_; ++y) target[y] = -s2[at + y] - t2[at + y];
        }
        add_product(v_, v_, length_, factors_, length_, factors_, length_, to, ld);
    }

    // For i = j the second group is the first one with a and b exchanged.
    void add_exchanged() {
        for (std::int64_t a = 0; a < v_; ++a)
            for (std::int64_t b = 0; b <= a; ++b) {
                double *one = w_ + (a * v_ + b) * v_, *other = w_ + (b * v_ + a) * v_;
                for (std::int64_t c = 0; c < v_; ++c) one[c] = other[c] = one[c] + other[c];
            }
    }

    const OrbitalSet& set_;
    const std::int64_t o_, v_, length_, i_, j_, k_;
    const double scale_;
    const double *integrals_, *integral_squares_, *doubles_, *double_squares_, *holes_;
    double *w_, *z_, *factors_;
};

}  // namespace

void squared_triples(const TaskList& list, const Operands& operands, const Triples& record, Arena& arena, TriplesEnergy& energy) {
    const OrbitalSet& set = operands.set(0);
    const std::int64_t v = set.n_vir, length = v + 2 * set.n_occ, whole = 2 * v * v * v + length * length;
    std::int64_t tile = *std::max_element(set.tile_size, set.tile_size + set.n_tile);
    double* memory = arena.take(whole + 6 * tile * tile * padded(tile) + 8);
    if (memory == nullptr) throw TaskFailure("the worker has too little memory for triples");
    memory += (64 - reinterpret_cast<std::uintptr_t>(memory) % 64) % 64 / 8;
    for (std::int64_t k = record.k; k < record.k + record.n_k; ++k) {
        if (record.i == record.j && record.j == k) continue;
        const WholeW made = Squares(operands, record.i, record.j, k, memory).made();
        for (std::int64_t t = record.first_tiles; t < record.first_tiles + record.n_tiles; ++t)
            closed_energy(operands, list.tile_triples[t], record.i, record.j, k, &made, memory + whole, energy);
    }
}

}  // namespace tilewise
