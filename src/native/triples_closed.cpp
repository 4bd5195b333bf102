// Connected triples of a closed shell. W_pqr[a][b][c] is made for the six orders pqr of i, j, k, all in one layout, so
// that nothing is sorted; the energy is then elementwise in the six, along c.
#include <algorithm>

#include "triples.hpp"
#include "triples_squares.hpp"
#include "wide.hpp"

namespace tilewise {

namespace {

constexpr int orders = 6;
using Row = double[largest_triples_tile];

// An order of i, j, k, and where its W is. Those of exchanged tiles, W_qpr[a][b] = W_pqr[b][a], are read there.
struct Order {
    std::int64_t p, q, r;
    const double* w;
    bool exchanged;
};

// A triple of occupied orbitals in a triple of tiles.
class Triple {
public:
    Triple(const Operands& operands, const TileTriple& tiles, std::int64_t i, std::int64_t j, std::int64_t k, const WholeW* whole,
           double* memory)
        : operands_(operands), whole_(whole), own_(operands.set(0)), tiles_(tiles), i_(i), j_(j), k_(k),
          n_a_(own_.tile_size[tiles.a]), n_b_(own_.tile_size[tiles.b]), n_c_(own_.tile_size[tiles.c]),
          width_(padded(n_c_)), memory_(memory) {}

    void add_to(TriplesEnergy& energy) {
        if (whole_) {
            make_orders();
        } else {
            const Stopwatch products(energy.product_seconds);
            make_orders();
        }
        const bool with_singles = any_singles();
        if (with_singles) make_terms();
        for (std::int64_t a = 0; a < n_a_; ++a) {
            const std::int64_t last = tiles_.a == tiles_.b ? a + 1 : n_b_;
            for (std::int64_t b = 0; b < last; ++b) row_energy(a, b, with_singles, energy);
        }
    }

private:
    // Even orders come first; the odd one m exchanges the first two of the even one m.
    void make_orders() {
        const std::int64_t every[orders][3] = {{i_, j_, k_}, {j_, k_, i_}, {k_, i_, j_}, {j_, i_, k_}, {k_, j_, i_}, {i_, k_, j_}};
        double* next = memory_;
        for (int m = 0; m < orders; ++m) {
            Order& order = orders_[m];
            order = Order{every[m][0], every[m][1], every[m][2], nullptr, false};
            for (int other = 0; other < m && !order.w; ++other)
                if (orders_[other].p == order.p && orders_[other].q == order.q && orders_[other].r == order.r) order = orders_[other];
            if (order.w) continue;
            if (m >= 3 && tiles_.a == tiles_.b) {
                order.w = orders_[m - 3].w;
                order.exchanged = true;
                continue;
            }
            if (whole_)
                whole_->copy(order.p, order.q, tiles_, {n_a_, n_b_, n_c_}, next);
            else if (m >= 3 && tiles_.b == tiles_.c)  // W_prq[a][b][c] = W_pqr[a][c][b]
                turn(with_last_exchanged(order), next);
            else
                make(order, next);
            order.w = next;
            next += n_a_ * n_b_ * width_;
        }
    }

    const double* with_last_exchanged(const Order& order) const {
        const Order* found = std::find_if(orders_, orders_ + 3, [&](const Order& even) { return even.p == order.p && even.q == order.r; });
        return found->w;
    }

    void turn(const double* from, double* to) const {
        for (std::int64_t a = 0; a < n_a_; ++a, from += n_b_ * width_, to += n_b_ * width_)
            for (std::int64_t b = 0; b < n_b_; ++b) {
                for (std::int64_t c = 0; c < n_c_; ++c) to[b * width_ + c] = from[c * width_ + b];
                for (std::int64_t c = n_c_; c < width_; ++c) to[b * width_ + c] = 0.0;
            }
    }

    // The six products of one order: two in each matrix of fixed b, four in each of fixed a.
    void make(const Order& order, double* w) const {
        const std::int64_t p = order.p, q = order.q, r = order.r, A = tiles_.a, B = tiles_.b, C = tiles_.c;
        const Block rp = pair(r, p, A), qp = pair(q, p, A), q_bc = direct(q, B, C), r_cb = crossed(r, B, C);
        const SegmentTiles of_b(n_a_, width_), of_a(n_b_, width_);
        for (std::int64_t b = 0; b < n_b_; ++b) {
            const Segment parts[] = {joined(rp, q_bc.led_by(b)), joined(qp, r_cb.led_by(b))};
            of_b.product({parts, 0, 2}, w + b * width_, n_b_ * width_, false);
        }
        const Block qr = pair(q, r, C), pr = pair(p, r, C), rq = pair(r, q, B), pq = pair(p, q, B);
        const Block p_ab = direct(p, A, B), q_ba = crossed(q, A, B), p_ac = direct(p, A, C), r_ca = crossed(r, A, C);
        for (std::int64_t a = 0; a < n_a_; ++a) {
            const Segment parts[] = {joined(p_ab.led_by(a), qr), joined(q_ba.led_by(a), pr), joined(rq, p_ac.led_by(a)),
                                     joined(pq, r_ca.led_by(a))};
            of_a.product({parts, 0, 4}, w + a * n_b_ * width_, width_, true);
        }
    }

    Block pair(std::int64_t j, std::int64_t k, std::int64_t c) const { return operands_.pair(0, 0, j, k, c); }
    Block direct(std::int64_t p, std::int64_t first, std::int64_t second) const { return operands_.direct(0, 0, p, first, second); }
    Block crossed(std::int64_t p, std::int64_t first, std::int64_t second) const { return operands_.crossed(0, 0, p, first, second); }

    bool any_singles() const {
        for (const std::int64_t i : {i_, j_, k_})
            for (const std::int64_t tile : {tiles_.a, tiles_.b, tiles_.c})
                if (own_.meets(i, tile)) return true;
        return false;
    }

    // What singles add to W_pqr, t_p^a (qb|rc) + t_q^b (pa|rc) + t_r^c (pa|qb), or the Fock matrix with doubles; where
    // symmetry leaves nothing of a term its single is null.
    struct Term {
        const double *p, *q, *r;
        Block qr, pr, pq;

        bool any() const { return p || q || r; }
        void add_to(double* row, std::int64_t a, std::int64_t b, std::int64_t width, std::int64_t n_c) const {
            if (p) add(p[a], qr.row(b), row, width);
            if (q) add(q[b], pr.row(a), row, width);
            if (r) add(pq.row(a)[b], r, row, n_c);
        }
        static void add(double factor, const double* from, double* row, std::int64_t n) {
            for (std::int64_t c = 0; c < n; ++c) row[c] += factor * from[c];
        }
    };

    using Pairs = Block (Operands::*)(std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t) const;

    Term term(const Order& order, const double* singles, Pairs pairs) const {
        const std::int64_t p = order.p, q = order.q, r = order.r, A = tiles_.a, B = tiles_.b, C = tiles_.c;
        Term made{single(singles, p, A), single(singles, q, B), single(singles, r, C), {}, {}, {}};
        if (made.p) made.qr = (operands_.*pairs)(0, 0, q, r, B, C);
        if (made.q) made.pr = (operands_.*pairs)(0, 0, p, r, A, C);
        if (made.r) made.pq = (operands_.*pairs)(0, 0, p, q, A, B);
        return made;
    }

    const double* single(const double* singles, std::int64_t i, std::int64_t tile) const {
        return own_.meets(i, tile) ? singles + i * own_.n_vir + own_.tile_first[tile] : nullptr;
    }

    void make_terms() {
        for (int m = 0; m < orders; ++m) {
            terms_[m] = term(orders_[m], own_.t1, &Operands::integrals);
            if (operands_.has_fock()) fock_terms_[m] = term(orders_[m], own_.fock, &Operands::doubles);
        }
        all_singles_ = operands_.has_fock() && std::all_of(terms_, terms_ + orders, [](const Term& one) { return one.p && one.q && one.r; });
        for (int m = 0; m < orders && all_singles_; ++m) {
            std::fill(std::copy_n(terms_[m].r, n_c_, singles_[m]), singles_[m] + width_, 0.0);
            std::fill(std::copy_n(fock_terms_[m].r, n_c_, fock_singles_[m]), fock_singles_[m] + width_, 0.0);
        }
    }

    void disconnected(int m, std::int64_t a, std::int64_t b, double* row) const {
        std::fill(row, row + width_, 0.0);
        terms_[m].add_to(row, a, b, width_, n_c_);
        if (operands_.has_fock()) fock_terms_[m].add_to(row, a, b, width_, n_c_);
    }

    // 1 / D, times a half for each two that are equal of a, b, c (a sixth if all are); nothing where c > b.
    void weights(std::int64_t a, std::int64_t b, double* row) const {
        const double* e = own_.vir_energy;
        const double top = own_.occ_energy[i_] + own_.occ_energy[j_] + own_.occ_energy[k_] - e[own_.tile_first[tiles_.a] + a] -
                           e[own_.tile_first[tiles_.b] + b];
        const double* last = e + own_.tile_first[tiles_.c];
        const bool ab = tiles_.a == tiles_.b && a == b, same = tiles_.b == tiles_.c;
        const double pairs = (i_ == j_ || j_ == k_ ? 1.0 : 2.0) * (ab ? 0.5 : 1.0);
        for (std::int64_t c = 0; c < n_c_; ++c) row[c] = pairs / (top - last[c]);
        for (std::int64_t c = n_c_; c < width_; ++c) row[c] = 0.0;
        if (!same) return;
        for (std::int64_t c = b + 1; c < n_c_; ++c) row[c] = 0.0;
        row[b] *= ab ? 1.0 / 3.0 : 0.5;
    }

    TILEWISE_WIDE_SUMS void row_energy(std::int64_t a, std::int64_t b, bool with_singles, TriplesEnergy& energy) const {
        const std::int64_t n = width_;
        const double* w[orders];
        for (int m = 0; m < orders; ++m)
            w[m] = orders_[m].w + (orders_[m].exchanged ? b * n_b_ + a : a * n_b_ + b) * n;
        Row weight, even, odd;
        weights(a, b, weight);
        double fourth = 0.0, fifth = 0.0, part[segment_lanes] = {};
        for (std::int64_t c = 0; c < n; c += segment_lanes)
            for (int lane = 0; lane < segment_lanes; ++lane) {
                const std::int64_t x = c + lane;
                const double e = w[0][x] + w[1][x] + w[2][x], o = w[3][x] + w[4][x] + w[5][x];
                const double squares = w[0][x] * w[0][x] + w[1][x] * w[1][x] + w[2][x] * w[2][x] + w[3][x] * w[3][x] +
                                       w[4][x] * w[4][x] + w[5][x] * w[5][x];
                part[lane] += weight[x] * (3.0 * squares + e * e + o * o - 4.0 * e * o);
                even[x] = weight[x] * (e - 2.0 * o);
                odd[x] = weight[x] * (o - 2.0 * e);
            }
        for (const double x : part) fourth += x;
        energy.fourth += fourth;
        if (!with_singles) return;
        for (int m = 0; m < orders; ++m) {
            const double* sums = m < 3 ? even : odd;
            if (!terms_[m].any()) continue;
            if (all_singles_) {
                fifth += at_once(m, a, b, w[m], weight, sums);
                continue;
            }
            Row v;
            disconnected(m, a, b, v);
            double own[segment_lanes] = {};
            for (std::int64_t c = 0; c < n; c += segment_lanes)
                for (int lane = 0; lane < segment_lanes; ++lane) {
                    const std::int64_t x = c + lane;
                    own[lane] += (3.0 * weight[x] * w[m][x] + sums[x]) * v[x];
                }
            for (const double x : own) fifth += x;
        }
        energy.fifth += fifth;
    }

    // The part of one order in a row, where no term is missing, in one pass.
    double at_once(int m, std::int64_t a, std::int64_t b, const double* w, const double* weight, const double* sums) const {
        const Term &one = terms_[m], &two = fock_terms_[m];
        const double p = one.p[a], q = one.q[b], r = one.pq.row(a)[b], fp = two.p[a], fq = two.q[b], fr = two.pq.row(a)[b];
        const double *qr = one.qr.row(b), *pr = one.pr.row(a), *single = singles_[m];
        const double *t_qr = two.qr.row(b), *t_pr = two.pr.row(a), *fock = fock_singles_[m];
        double own[segment_lanes] = {};
        for (std::int64_t c = 0; c < width_; c += segment_lanes)
            for (int lane = 0; lane < segment_lanes; ++lane) {
                const std::int64_t x = c + lane;
                const double v = p * qr[x] + q * pr[x] + r * single[x] + fp * t_qr[x] + fq * t_pr[x] + fr * fock[x];
                own[lane] += (3.0 * weight[x] * w[x] + sums[x]) * v;
            }
        return (own[0] + own[1]) + (own[2] + own[3]);
    }

    const Operands& operands_;
    const WholeW* whole_;
    const OrbitalSet& own_;
    const TileTriple& tiles_;
    const std::int64_t i_, j_, k_, n_a_, n_b_, n_c_, width_;
    double* memory_;
    Order orders_[orders];
    Term terms_[orders], fock_terms_[orders];
    bool all_singles_ = false;
    Row singles_[orders], fock_singles_[orders];  // of the last orbital of each order, padded with zeros
};

}  // namespace

void closed_triples(const Operands& operands, const Triples& record, const TileTriple& tiles, double* memory, TriplesEnergy& energy) {
    for (std::int64_t k = record.k; k < record.k + record.n_k; ++k)
        if (record.i != record.j || record.j != k) closed_energy(operands, tiles, record.i, record.j, k, nullptr, memory, energy);
}

void closed_energy(const Operands& operands, const TileTriple& tiles, std::int64_t i, std::int64_t j, std::int64_t k,
                   const WholeW* whole, double* memory, TriplesEnergy& energy) {
    Triple(operands, tiles, i, j, k, whole, memory).add_to(energy);
}

}  // namespace tilewise
