#include "transformer.hpp"

#include "crew.hpp"

namespace tilewise {

void expand_panels(const Expansion& e, std::int64_t at, std::int64_t n_left, const double* slab, double* out) {
    for (std::int64_t p = 0; p < n_left; ++p, ++at)
        combine_rows(e.first_entry[at + 1] - e.first_entry[at], e.entry.data + e.first_entry[at], e.weight.data + e.first_entry[at], slab,
                     out + p * strip_width, n_left * strip_width);
}

void expand_square(const Expansion& e, std::int64_t at, std::int64_t n, const double* slab, double* out) {
    for (std::int64_t q = 0; q < n; ++q)
        for (std::int64_t p = q; p < n; ++p, ++at) {
            double* const to = out + q * n * width + p * strip_width;
            combine_rows(e.first_entry[at + 1] - e.first_entry[at], e.entry.data + e.first_entry[at], e.weight.data + e.first_entry[at], slab,
                         to, n * strip_width);
            if (p == q) continue;
            double* const mirrored = out + p * n * width + q * strip_width;
            for (std::int64_t g = 0; g < n_groups; ++g) copy_few<strip_width>(to + g * n * strip_width, mirrored + g * n * strip_width);
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
    FirstWorker(const Expansion& expansion, const OrbitalSet& orbitals, const FirstHalf& work, WorkerScratch& scratch)
        : e_(expansion), w_(work), t_(expansion, orbitals, scratch) {}

    void operator()(std::int64_t first) {
        const std::int64_t count = std::min(width, w_.end - first);
        if (w_.integrals.packed) {
            t_.take_columns(w_.integrals, first, count);
        } else {
            const double* rows[width] = {};
            for (std::int64_t k = 0; k < count; ++k) rows[k] = w_.integrals.row(first + k);
            t_.take_rows(rows, count, 0, e_.n_classes);
        }
        if (w_.density) add_coulomb(first, count);
        if (w_.out) return make_runs(first, count);
        for (std::int64_t right = 0; right < e_.n_irreps; ++right) {
            const std::int64_t left = right ^ e_.irrep;
            if (left < right) continue;
            const Range p = orbitals_in(t_, left, right, w_.parts[0].first, w_.parts[w_.parts.size - 1].last);
            if (p.size() <= 0) continue;
            t_.expand(right);
            t_.orbitals(p, {0, t_.n_orbitals(right)}, [&](Range some, Range q, const double* block) {
                for (std::int64_t a = some.first; a < some.last; ++a, block += q.size() * width) {
                    const std::int64_t pair = t_.pair(right, a, 0);
                    const HalfPart& part = part_of(pair);
                    double* to = part.out + (pair - part.first) * part.ld + first - w_.begin;
                    const std::int64_t last = left == right ? a + 1 : q.last;
                    if (count == width)
                        for (std::int64_t b = 0; b < last; ++b) copy_few<width>(block + b * width, to + b * part.ld);
                    else
                        for (std::int64_t b = 0; b < last; ++b) std::copy_n(block + b * width, count, to + b * part.ld);
                }
            });
        }
    }

private:
    void make_runs(std::int64_t first, std::int64_t count) {
        std::int64_t expanded = -1;
        for (std::int64_t k = 0; k < w_.runs.size; ++k) {
            const PairRun& run = w_.runs[k];
            if (run.right != expanded) t_.expand(run.right);
            expanded = run.right;
            t_.orbitals({run.first_p, run.last_p}, {run.first_q, run.last_q},
                        [&](Range p, Range q, const double* block) { store(run.right, p, q, first, count, block); });
        }
    }

    void store(std::int64_t right, Range p, Range q, std::int64_t first, std::int64_t count, const double* block) {
        const bool same = e_.irrep == 0;
        for (std::int64_t a = p.first; a < p.last; ++a, block += q.size() * width) {
            const std::int64_t* row = w_.row.data + t_.pair(right, a, 0);
            const std::int64_t last = same ? std::min(a + 1, q.last) : q.last;
            for (std::int64_t b = q.first; b < last; ++b)
                if (row[b] >= 0) std::copy_n(block + (b - q.first) * width, count, w_.out + row[b] * w_.ld + first);
        }
    }

    const HalfPart& part_of(std::int64_t pair) const {
        const HalfPart* const first = w_.parts.data;
        return *std::partition_point(first, first + w_.parts.size - 1, [=](const HalfPart& part) { return part.last <= pair; });
    }

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

void first_half(const Expansion& expansion, const OrbitalSet& orbitals, const FirstHalf& work, Scratch& scratch) {
    Turn mine(scratch);
    const auto make = [&] {
        return [&work, worker = FirstWorker(expansion, orbitals, work, mine())](std::int64_t k) mutable { worker(work.begin + k * width); };
    };
    hand_out(scratch.count(), (work.end - work.begin + width - 1) / width, make);
}

void exchange_half(const Expansion& expansion, const OrbitalSet& orbitals, const HalfMatrix& half,
                   Span<Exchange> groups, Span<std::int64_t> column, double* out, std::int64_t out_ld,
                   Scratch& scratch) {
    Turn mine(scratch);
    const auto make = [&] {
        return [&, t = Transformer(expansion, orbitals, mine())](std::int64_t g) mutable {
            const Exchange& group = groups[g];
            const std::int64_t right = std::min(group.irrep_i, group.irrep_q);
            const Range others = t.of_kinds(group.irrep_q, 0, orbitals.n_kinds - 1);
            for (std::int64_t x0 = 0; x0 < group.count; x0 += width) {
                const std::int64_t count = std::min(width, group.count - x0), first = group.first + x0;
                take_half(t, half, column.data + first, count);
                t.expand(right);
                t.with_one(group.irrep_i == right, group.i, others, [&](std::int64_t p, const double* values) {
                    for (std::int64_t x = 0; x < count; ++x) out[(first + x) * out_ld + p] = values[x];
                });
            }
        };
    };
    hand_out(scratch.count(), groups.size, make);
}

}  // namespace tilewise
