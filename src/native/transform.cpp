#include "transformer.hpp"

#include "crew.hpp"
#include "wide.hpp"

namespace tilewise {

TILEWISE_WIDE void expand_block(const Expansion& e, std::int64_t at, std::int64_t n_left, std::int64_t n_right, bool same,
                                const double* slab, double* out) {
    for (std::int64_t q = 0; q < n_right; ++q)
        for (std::int64_t p = same ? q : 0; p < n_left; ++p, ++at) {
            double sum[width] = {};
            for (std::int64_t k = e.first_entry[at]; k < e.first_entry[at + 1]; ++k) {
                const double weight = e.weight[k];
                const double* from = slab + e.entry[k] * width;
                for (std::int64_t x = 0; x < width; ++x) sum[x] += weight * from[x];
            }
            std::copy_n(sum, width, out + (q * n_left + p) * width);
            if (same && p != q) std::copy_n(sum, width, out + (p * n_left + q) * width);
        }
}

namespace {

// The p of a block whose pairs lie in a range of pairs.
Range orbitals_in(const Transformer& t, std::int64_t left, std::int64_t right, std::int64_t first, std::int64_t last) {
    Range found;
    const std::int64_t n = t.n_orbitals(left);
    while (found.first < n && t.pair(right, found.first, 0) < first) ++found.first;
    found.last = found.first;
    while (found.last < n && t.pair(right, found.last + 1, 0) <= last) ++found.last;
    return found;
}

// Step 2 of one worker: the integrals of `width` combinations K at a time.
class FirstWorker {
public:
    FirstWorker(const Expansion& expansion, const OrbitalSet& orbitals, const FirstHalf& work)
        : e_(expansion), w_(work), t_(expansion, orbitals) {}

    void operator()(std::int64_t first) {
        const std::int64_t count = std::min(width, w_.integrals.n_rows - first);
        if (w_.integrals.packed) {
            t_.take_columns(w_.integrals, first, count);
        } else {
            const double* rows[width];
            for (std::int64_t k = 0; k < count; ++k) rows[k] = w_.integrals.row(first + k);
            t_.take_rows(rows, count);
        }
        if (w_.density) add_coulomb(first, count);
        for (std::int64_t right = 0; right < e_.n_irreps; ++right) {
            const std::int64_t left = right ^ e_.irrep;
            if (left < right) continue;
            const Range p = orbitals_in(t_, left, right, w_.first, w_.last);
            if (p.size() <= 0) continue;
            t_.expand(right);
            t_.orbitals(right, p, {0, t_.n_orbitals(right)}, [&](Range some, Range q, const double* block) {
                for (std::int64_t a = some.first; a < some.last; ++a, block += q.size() * width) {
                    double* to = w_.out + (t_.pair(right, a, 0) - w_.first) * w_.ld + first;
                    const std::int64_t last = left == right ? a + 1 : q.last;
                    for (std::int64_t b = 0; b < last; ++b) std::copy_n(block + b * width, count, to + b * w_.ld);
                }
            });
        }
    }

private:
    void add_coulomb(std::int64_t first, std::int64_t count) {
        double sum[width] = {};
        for (std::int64_t l = 0; l < e_.n_classes; ++l) add_multiple(width, w_.density[l], t_.slab() + l * width, sum, l == 0);
        std::copy_n(sum, count, w_.coulomb + first);
    }

    const Expansion& e_;
    const FirstHalf& w_;
    Transformer t_;
};

}  // namespace

void first_half(const Expansion& expansion, const OrbitalSet& orbitals, const FirstHalf& work, std::int64_t n_workers) {
    const auto make = [&] {
        return [worker = FirstWorker(expansion, orbitals, work)](std::int64_t k) mutable { worker(k * width); };
    };
    hand_out(n_workers, (work.integrals.n_rows + width - 1) / width, make);
}

void exchange_half(const Expansion& expansion, const OrbitalSet& orbitals, const double* half, std::int64_t ld,
                   Span<Exchange> groups, Span<std::int64_t> column, double* out, std::int64_t out_ld,
                   std::int64_t n_workers) {
    const auto make = [&] {
        return [&, t = Transformer(expansion, orbitals)](std::int64_t g) mutable {
            const Exchange& group = groups[g];
            const std::int64_t right = std::min(group.irrep_i, group.irrep_q);
            const Range others = t.of_kinds(group.irrep_q, 1, orbitals.n_kinds);
            for (std::int64_t x0 = 0; x0 < group.count; x0 += width) {
                const std::int64_t count = std::min(width, group.count - x0), first = group.first + x0;
                take_half(t, half, ld, column.data + first, count);
                t.expand(right);
                t.with_one(right, group.irrep_i == right, group.i, others, [&](std::int64_t p, const double* values) {
                    for (std::int64_t x = 0; x < count; ++x) out[(first + x) * out_ld + p] = values[x];
                });
            }
        };
    };
    hand_out(n_workers, groups.size, make);
}

}  // namespace tilewise
