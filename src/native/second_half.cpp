// The second half of the transformation: integrals over orbitals, and where each of them goes.
#include <vector>

#include "crew.hpp"
#include "transformer.hpp"

namespace tilewise {

namespace {

// Step 3 of one worker.
class SecondWorker {
public:
    SecondWorker(const Expansion& expansion, const OrbitalSet& orbitals, const SecondHalf& work, WorkerScratch& scratch)
        : e_(expansion), o_(orbitals), w_(work), t_(expansion, orbitals, scratch) {}

    void operator()(std::int64_t block) {
        first_ = w_.first_block[block];
        count_ = w_.first_block[block + 1] - first_;
        label_ = w_.label[block];
        choose_destinations();
        if (active_.empty()) return;
        take_half(t_, w_.half, w_.column.data + first_, count_);
        for (std::int64_t right = 0; right < e_.n_irreps; ++right)
            if ((right ^ e_.irrep) >= right) pairs_of(right);
    }

private:
    // A destination, and where the columns of this block go.
    struct Active {
        const Destination* to;
        const Side* left;
        std::int64_t offset[width];
        double factor[width];
        bool together;  // all of them, side by side
    };

    void choose_destinations() {
        active_.clear();
        always_ = partly_ = up_to_ = 0;
        for (std::int64_t d = 0; d < w_.destinations.size; ++d) {
            const Destination& to = w_.destinations[d];
            const Side& right = w_.sides[to.right];
            Active a{&to, &w_.sides[to.left], {}, {}, true};
            bool any = false;
            for (std::int64_t x = 0; x < count_; ++x) {
                const std::int64_t pair = w_.pair[first_ + x];
                a.offset[x] = right.offset[pair];
                a.factor[x] = right.factor[pair];
                any = any || a.offset[x] >= 0;
                a.together = a.together && a.offset[x] == a.offset[0] + x && a.offset[x] >= 0;
            }
            if (!any) continue;
            (to.from == 3 ? up_to_ : to.from ? partly_ : always_) |= to.wanted;
            active_.push_back(a);
        }
        least_ = *std::min_element(w_.rank.data + first_, w_.rank.data + first_ + count_);
        most_ = *std::max_element(w_.rank.data + first_, w_.rank.data + first_ + count_);
    }

    bool wants(std::int64_t cells, std::int64_t a, std::int64_t b) const {
        return (cells >> (a * o_.n_kinds + b) & 1) || (cells >> (b * o_.n_kinds + a) & 1);
    }

    // All q that p of one kind are wanted with, as one range.
    Range partners(std::int64_t cells, std::int64_t kind, std::int64_t right) const {
        Range found{-1, -1};
        for (std::int64_t k = 0; k < o_.n_kinds; ++k)
            if (wants(cells, kind, k)) {
                const Range q = t_.of_kinds(right, k, k + 1);
                if (found.first < 0) found.first = q.first;
                found.last = q.last;
            }
        return found;
    }

    void pairs_of(std::int64_t right) {
        const std::int64_t left = right ^ e_.irrep;
        bool is_expanded = false;
        Range p, q;  // neighbours with the same q are taken together
        const auto flush = [&] {
            if (p.size() > 0 && q.size() > 0) {
                if (!is_expanded) t_.expand(right);
                is_expanded = true;
                t_.orbitals(p, q, [&](Range some, Range all, const double* block) { store(left, right, some, all, block); });
            }
            p = q = {};
        };
        const auto add = [&](Range more, Range with) {
            if (more.size() <= 0) return;
            if (p.size() > 0 && p.last == more.first && q.first == with.first && q.last == with.last) {
                p.last = more.last;
                return;
            }
            flush();
            p = more;
            q = with;
        };
        for (std::int64_t k = 0; k < o_.n_kinds; ++k) {
            const Range mine = t_.of_kinds(left, k, k + 1);
            const std::int64_t least = std::clamp(least_ - t_.kind(left, 0), mine.first, mine.last);
            const std::int64_t end = std::clamp(most_ + 1 - t_.kind(left, 0), least, mine.last);
            add({mine.first, least}, partners(always_ | up_to_, k, right));
            add({least, end}, partners(always_ | partly_ | up_to_, k, right));
            add({end, mine.last}, partners(always_ | partly_, k, right));
        }
        flush();
    }

    void store(std::int64_t left, std::int64_t right, Range p, Range q, const double* block) {
        for (std::int64_t a = p.first; a < p.last; ++a, block += q.size() * width) {
            const std::int64_t last = left == right ? std::min(q.last, a + 1) : q.last;
            const std::int64_t pair = w_.first_pair + t_.pair(right, a, 0), rank = t_.kind(left, 0) + a;
            for (const Active& to : active_) {
                if (to.to->from == 3 ? rank > most_ : to.to->from && rank < least_) continue;
                if (to.to->by_rows)
                    store_rows(to, pair, rank, q.first, last, block);
                else
                    store_columns(to, pair, rank, q.first, last, block);
            }
        }
    }

    bool is_wanted(const Active& to, std::int64_t rank, std::int64_t x) const {
        const std::int64_t from = to.to->from;
        if (from == 3) return to.offset[x] >= 0 && rank <= w_.rank[first_ + x];
        return to.offset[x] >= 0 && (from == 0 || rank > w_.rank[first_ + x] || (from == 1 && rank == w_.rank[first_ + x]));
    }

    void store_columns(const Active& to, std::int64_t pair, std::int64_t rank, std::int64_t q0, std::int64_t q1, const double* from) {
        double* buffer = w_.buffers[to.to->buffer];
        const bool whole = to.together && (to.to->from == 0 || (to.to->from == 3 ? rank <= least_ : rank > most_));
        for (std::int64_t q = q0; q < q1; ++q, from += width) {
            const std::int64_t offset = to.left->offset[pair + q];
            if (offset < 0 || w_.left_label[pair + q] != label_) continue;
            const double factor = to.left->factor[pair + q];
            if (whole) {
                scale_row(count_, factor, to.factor, from, buffer + offset + to.offset[0]);
            } else {
                for (std::int64_t x = 0; x < count_; ++x)
                    if (is_wanted(to, rank, x)) buffer[offset + to.offset[x]] = factor * to.factor[x] * from[x];
            }
        }
    }

    void store_rows(const Active& to, std::int64_t pair, std::int64_t rank, std::int64_t q0, std::int64_t q1, const double* from) {
        const std::int64_t *offset = to.left->offset + pair, *label = w_.left_label.data + pair;
        const double* factor = to.left->factor + pair;
        double *rows[width], *places[width];
        double factors[width];
        std::int64_t columns[width], n = 0;  // the columns that are wanted
        for (std::int64_t x = 0; x < count_; ++x)
            if (is_wanted(to, rank, x)) {
                columns[n] = x;
                factors[n] = to.factor[x];
                rows[n++] = w_.buffers[to.to->buffer] + to.offset[x];
            }
        for (std::int64_t q = q0; q < q1;) {
            if (offset[q] < 0 || label[q] != label_) {
                ++q;
                continue;
            }
            std::int64_t end = q + 1;  // of neighbours that stay neighbours
            while (end < q1 && offset[end] == offset[end - 1] + 1 && label[end] == label_) ++end;
            for (std::int64_t x = 0; x < n; ++x) places[x] = rows[x] + offset[q];
            const double* values = from + (q - q0) * width;
            if (n == count_)
                slab_to_rows(values, end - q, factor + q, factors, n, places);
            else
                for (std::int64_t x = 0; x < n; ++x)
                    for (std::int64_t b = 0; b < end - q; ++b) places[x][b] = factor[q + b] * factors[x] * values[b * width + columns[x]];
            q = end;
        }
    }

    const Expansion& e_;
    const OrbitalSet& o_;
    const SecondHalf& w_;
    Transformer t_;
    std::vector<Active> active_;
    std::int64_t first_ = 0, count_ = 0, label_ = 0, always_ = 0, partly_ = 0, up_to_ = 0, least_ = 0, most_ = 0;
};

}  // namespace

void second_half(const Expansion& expansion, const OrbitalSet& orbitals, const SecondHalf& work, Scratch& scratch) {
    Turn mine(scratch);
    hand_out(scratch.count(), work.first_block.size - 1, [&] { return SecondWorker(expansion, orbitals, work, mine()); });
}

}  // namespace tilewise
