// Connected triples without symmetry, by squares: for fixed i and a, S_bd = (ia|bd) is a symmetric matrix, and the two terms
// that have it are S T + T S = (S + T)^2 - S^2 - T^2 with T = t_jk. S^2 and T^2 are made once, so that one product is left
// where there were two. The hole terms are further columns of the left and rows of the right factor.
//
// Operands, one after the other, with s the scale: s (ia|bd) as [i][a][b][d], the squares of these matrices, t_jk^bc / s as
// [j][k][b][c], the squares of these, and (lj|kc) as [l][j][k][c].
#include "triples_squares.hpp"

#include <algorithm>

#include "corner.hpp"
#include "square_product.hpp"

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
    const std::int64_t width = padded(extent[2]);
    Corner corner{w_, {}};
    corner.step[at_i] = v_ * v_, corner.step[at_j] = v_, corner.step[at_k] = 1;
    for (int axis = 0; axis < 3; ++axis) corner.at += first[axis] * corner.step[axis];
    copy_corner(corner, extent, to, width);
    for (std::int64_t row = 0; row < extent[0] * extent[1]; ++row)
        std::fill(to + row * width + extent[2], to + (row + 1) * width, 0.0);
}

namespace {

// The memory of a worker: W, a slab of squares on their way into it, their factors, and corners of W; each begins at a
// whole cache line.
struct Room {
    std::int64_t slab, factors, corners, end;

    explicit Room(const OrbitalSet& set) {
        const std::int64_t v = set.n_vir, tile = *std::max_element(set.tile_size, set.tile_size + set.n_tile);
        slab = lines(v * v * v);
        factors = slab + lines(square_slab * v * v);
        corners = factors + SquareFactors::size(v, 2 * set.n_occ);
        end = corners + 6 * tile * tile * padded(tile);
    }
    static std::int64_t lines(std::int64_t n) { return (n + 7) / 8 * 8; }
};

// The products of one i, j, k.
class Squares {
public:
    Squares(const Operands& operands, std::int64_t i, std::int64_t j, std::int64_t k, const Room& room, double* memory)
        : set_(operands.set(0)), o_(set_.n_occ), v_(set_.n_vir), i_(i), j_(j), k_(k), scale_(operands.scale()),
          integrals_(operands.squares(0)), integral_squares_(operands.squares(1)), doubles_(operands.squares(2)),
          double_squares_(operands.squares(3)), holes_(operands.squares(4)), w_(memory), slab_(memory + room.slab),
          factors_(v_, 2 * o_, memory + room.factors) {}

    // What comes last is followed by the first group again, of the next k.
    WholeW made() {
        const Group first = &Squares::first_group, second = &Squares::second_group, third = &Squares::third_group;
        make(first, i_ == j_ ? third : second);
        if (i_ == j_)
            add_exchanged();
        else
            make(second, j_ == k_ ? first : third);
        if (j_ != k_) make(third, first);
        return WholeW(set_, i_, j_, k_, w_);
    }

private:
    const double* doubles(std::int64_t j, std::int64_t k) const { return doubles_ + (j * o_ + k) * v_ * v_; }
    // (lj|kc) for all c.
    const double* holes(std::int64_t l, std::int64_t j, std::int64_t k) const { return holes_ + ((l * o_ + j) * o_ + k) * v_; }

    // One square: S of (p, lead) and T of (q, r), for W of `lead` with rows of q and columns of r.
    struct Square {
        std::int64_t p, lead, q, r;
        SquareTarget target;
    };

    // W[a][b][c] of one a: -t_il^ab (lj|kc) - (lk|jb) t_il^ac.
    Square first_group(std::int64_t a) const { return square(i_, a, j_, k_, w_ + a * v_ * v_, v_, false); }

    // W[a][b][c] of one b: -t_jl^ba (li|kc) - (lk|ia) t_jl^bc. Where j = k it is the third group, too.
    Square second_group(std::int64_t b) const {
        if (j_ == k_) return square(j_, b, i_, k_, in_slab(b), v_, false);
        return square(j_, b, i_, k_, w_ + b * v_, v_ * v_, true);
    }

    // W[a][b][c] of one c: -t_kl^ca (li|jb) - (lj|ia) t_kl^cb.
    Square third_group(std::int64_t c) const { return square(k_, c, i_, j_, in_slab(c), v_, false); }

    double* in_slab(std::int64_t lead) const { return slab_ + lead % square_slab * v_ * v_; }

    Square square(std::int64_t p, std::int64_t lead, std::int64_t q, std::int64_t r, double* to, std::int64_t ld, bool add) const {
        const std::int64_t size = v_ * v_;
        return {p, lead, q, r, {to, ld, integral_squares_ + (p * v_ + lead) * size, double_squares_ + (q * o_ + r) * size, add}};
    }

    using Group = Square (Squares::*)(std::int64_t) const;

    // All squares of a group; what the next one reads is fetched while one is computed.
    void make(Group group, Group following) {
        for (std::int64_t lead = 0; lead < v_; ++lead) {
            const Square own = (this->*group)(lead);
            const Square other = lead + 1 < v_ ? (this->*group)(lead + 1) : (this->*following)(0);
            const SquareNext next{integrals_ + (other.p * v_ + other.lead) * v_ * v_, other.target.q, other.target.c, other.target.ld};
            form(own);
            factors_.multiply(own.target, next);
            if (own.target.c == in_slab(lead) && (lead + 1 == v_ || (lead + 1) % square_slab == 0)) empty_slab(lead);
        }
    }

    // Squares of a few c, [c][a][b], are added to W[a][b][c] while they are in cache: whole lines of it at a time.
    void empty_slab(std::int64_t last) {
        const std::int64_t first = last / square_slab * square_slab, count = last + 1 - first, size = v_ * v_;
        for (std::int64_t a = 0; a < v_; ++a) {
            if (j_ == k_)
                for (std::int64_t b = 0; b < count; ++b) add_row(slab_ + b * size + a * v_, w_ + a * size + (first + b) * v_);
            add_turned({slab_ + a * v_, size, w_ + a * size + first, v_}, v_, count, a + 1 < v_ ? size : 0);
        }
    }

    void add_row(const double* from, double* to) const {
        for (std::int64_t c = 0; c < v_; ++c) to[c] += from[c];
    }

    // S + T, and beside it the two hole terms that have t_pl with the orbital `lead`:
    // -t_pl (lq|r.) - (lr|q.) t_pl, so that a group becomes another one when orbitals are exchanged.
    void form(const Square& own) {
        const std::int64_t size = v_ * v_;
        const double *s = integrals_ + (own.p * v_ + own.lead) * size, *pair = doubles(own.q, own.r);
        for (std::int64_t x = 0; x < v_; ++x) factors_.set_sum(x, s + x * v_, pair + x * v_);
        for (std::int64_t l = 0; l < o_; ++l) {
            const double* t = doubles(own.p, l) + own.lead * v_;
            factors_.set_multiples(l, -scale_, t, 1.0, holes(l, own.q, own.r));
            factors_.set_multiples(o_ + l, -1.0, holes(l, own.r, own.q), scale_, t);
        }
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
    const std::int64_t o_, v_, i_, j_, k_;
    const double scale_;
    const double *integrals_, *integral_squares_, *doubles_, *double_squares_, *holes_;
    double *w_, *slab_;
    SquareFactors factors_;
};

WholeW products(const Operands& operands, const Triples& record, std::int64_t k, const Room& room, double* memory, double& seconds) {
    const Stopwatch own(seconds);
    return Squares(operands, record.i, record.j, k, room, memory).made();
}

}  // namespace

void squared_triples(const TaskList& list, const Operands& operands, const Triples& record, Arena& arena, TriplesEnergy& energy) {
    const Room room(operands.set(0));
    double* memory = arena.take(room.end + 8);
    if (memory == nullptr) throw TaskFailure("the worker has too little memory for triples");
    memory += (64 - reinterpret_cast<std::uintptr_t>(memory) % 64) % 64 / 8;
    for (std::int64_t k = record.k; k < record.k + record.n_k; ++k) {
        if (record.i == record.j && record.j == k) continue;
        const WholeW made = products(operands, record, k, room, memory, energy.product_seconds);
        for (std::int64_t t = record.first_tiles; t < record.first_tiles + record.n_tiles; ++t)
            closed_energy(operands, list.tile_triples[t], record.i, record.j, k, &made, memory + room.corners, energy);
    }
}

}  // namespace tilewise
