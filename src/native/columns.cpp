#include "columns.hpp"

#include <algorithm>

namespace tilewise {

namespace {

struct Part {
    const Neighbour *begin, *end;
};

// Neighbours of a string in classes [from, to).
Part near_of(const Side& side, std::int64_t s, std::int64_t from, std::int64_t to) {
    const std::int32_t* of_class = side.near_class.data + s * (side.classes + 1);
    const Neighbour* near = side.near.data + side.near_first[s];
    return {near + of_class[from], near + of_class[to]};
}

bool apart(std::uint32_t code, std::uint32_t i, std::uint32_t j) {
    const std::uint32_t a = code >> 8 & 255u, b = code & 255u;
    return (a != i) & (a != j) & (b != i) & (b != j);
}

// Calls found(neighbour, i, j, sign of i and j) for all strings of the same label after s that share all but two orbitals,
// and for those that share more, for which `apart` is false.
template <class Found>
void each_far(const Side& side, std::int64_t s, std::int32_t end, const Found& found) {
    const std::uint8_t* own = side.occupied.data + s * side.electrons;
    std::int64_t k = s * side.pairs();
    for (std::int64_t i = 0; i < side.electrons; ++i)
        for (std::int64_t j = i + 1; j < side.electrons; ++j, ++k) {
            const Neighbour* at = side.far.data + side.far_place[k];
            const std::uint32_t mine = at->code;
            for (++at; at->string < end; ++at) found(*at, mine, own[i], own[j]);
        }
}

// Runs whose integrals are asked for ahead of their use: each has a row of its own, which is seldom in a cache near by.
constexpr std::size_t runs_ahead = 8;

// Asks for the integrals of neighbours, which mostly lie beside each other.
void fetch(const double* v, const Part& part) {
    if (part.begin == part.end) return;
    __builtin_prefetch(v + (part.begin->code & pair_mask));
    __builtin_prefetch(v + ((part.end - 1)->code & pair_mask));
}

std::uint32_t two_of(std::uint32_t code) { return code >> 16 & 0x7fffu; }

}  // namespace

std::int64_t Hamiltonian::number(std::int64_t a, std::int64_t b) const {
    const Pairing& p = pairing;
    if (!p.is_list()) {
        const std::int64_t shift = p.shift[alpha.class_of[a] * beta.classes + beta.class_of[b]];
        return shift == absent ? -1 : p.first[a] + shift + b;
    }
    const std::int32_t *begin = p.beta.data + p.first[a], *end = p.beta.data + p.first[a + 1];
    const std::int32_t* found = std::lower_bound(begin, end, static_cast<std::int32_t>(b));
    return found != end && *found == b ? found - p.beta.data : -1;
}

// The field of electrons of the other spin, and h with that of the same spin; orbitals that a pair leaves count nothing in jk.
double ColumnWalker::others(std::uint32_t pair, const std::uint8_t* occupied, std::int64_t count) const {
    const double* j = h_->integrals.j.data + static_cast<std::int64_t>(pair) * h_->integrals.orbitals;
    double sum = 0.0;
    for (std::int64_t k = 0; k < count; ++k) sum += j[occupied[k]];
    return sum;
}

double ColumnWalker::own(std::uint32_t pair, const std::uint8_t* occupied, std::int64_t count) const {
    const double* jk = h_->integrals.jk.data + static_cast<std::int64_t>(pair) * h_->integrals.orbitals;
    double sum = h_->integrals.h[pair];
    for (std::int64_t k = 0; k < count; ++k) sum += jk[occupied[k]];
    return sum;
}

void ColumnWalker::use(std::int64_t j) {
    const Pairing& p = h_->pairing;
    prepared_ = 0;
    if (alpha_ < 0 || j < p.first[alpha_] || j >= p.first[alpha_ + 1]) {
        const std::int64_t* found = std::upper_bound(p.first.data, p.first.data + p.first.size, j);
        prepare(found - p.first.data - 1);
    }
    beta_ = p.beta[j];
}

void ColumnWalker::prepare(std::int64_t a) {
    const Side& side = h_->alpha;
    const Pairing& p = h_->pairing;
    const Operator& op = h_->integrals;
    const bool has_values = op.orbitals > 0;
    const std::uint8_t* occupied = side.occupied.data + a * side.electrons;
    const std::int32_t label_end = side.label_end[side.class_of[a]];
    alpha_ = a;
    runs_.clear();
    singles_.clear();
    const Part near = near_of(side, a, side.class_of[a], side.classes);
    for (const Neighbour* t = near.begin; t < near.end; ++t) {
        if (t->string <= a) continue;
        const std::uint32_t pair = t->code & pair_mask;
        const std::int32_t its_class = side.class_of[t->string];
        const std::int64_t first = p.first[t->string];
        if (t->string < label_end)
            singles_.push_back({t->string, pair, sign_of(t->code), has_values ? own(pair, occupied, side.electrons) : 0.0});
        const double* v = has_values ? op.v.data + op.v_row[pair] : nullptr;
        if (p.is_list()) {
            if (p.partner[its_class] >= 0) runs_.push_back({v, 0, t->string, p.partner[its_class], sign_of(t->code)});
            continue;
        }
        for (std::int32_t r = p.range_first[its_class]; r < p.range_first[its_class + 1]; ++r) {
            const std::int64_t shift = p.shift[its_class * h_->beta.classes + p.range_begin[r]];
            runs_.push_back({v, first + shift, p.range_begin[r], p.range_end[r], sign_of(t->code)});
        }
    }
    for (std::size_t k = 0; k < n_lists_; ++k) lists_[k].first.clear(), lists_[k].string.clear(), lists_[k].value.clear();
    n_lists_ = 0;
    AlphaList* list = nullptr;
    std::int64_t found = 0;
    each_far(side, a, label_end, [&](const Neighbour& t, std::uint32_t mine, std::uint32_t i, std::uint32_t j) {
        if (!apart(t.code, i, j)) return;
        const double value =
            has_values ? with_sign(op.w[op.w_row[two_of(mine)] + two_of(t.code)], sign_of(mine) ^ sign_of(t.code)) : 1.0;
        if (value == 0.0) return;
        const std::int32_t its_class = side.class_of[t.string];
        if (list == nullptr || list->alpha_class != its_class || n_lists_ == 0) {
            std::size_t k = 0;
            while (k < n_lists_ && lists_[k].alpha_class != its_class) ++k;
            if (k == n_lists_) {
                if (++n_lists_ > lists_.size()) lists_.emplace_back();
                lists_[k].alpha_class = its_class;
            }
            list = &lists_[k];
        }
        list->first.push_back(p.first[t.string]);
        list->string.push_back(t.string);
        list->value.push_back(value);
        ++found;
    });
    prepared_ = found + (near.end - near.begin);
}

template <class Sink>
void ColumnWalker::mixed_pairs(std::int64_t b, Sink& sink) {
    const Side& side = h_->beta;
    const Pairing& p = h_->pairing;
    const std::int32_t* of_class = side.near_class.data + b * (side.classes + 1);
    const Neighbour* near = side.near.data + side.near_first[b];
    if (!p.is_list()) {
        const auto part = [&](const Run& run) { return Part{near + of_class[run.begin], near + of_class[run.end]}; };
        for (std::size_t k = 0; k < runs_.size(); ++k) {
            if (Sink::has_values && k + runs_ahead < runs_.size()) fetch(runs_[k + runs_ahead].v, part(runs_[k + runs_ahead]));
            const Run& run = runs_[k];
            const Part found = part(run);
            if (found.begin < found.end) sink.pairs(found.begin, found.end - found.begin, run.base, run.v, run.sign);
        }
        return;
    }
    for (const Run& run : runs_) {
        const std::int32_t *at = p.beta.data + p.first[run.begin], *end = p.beta.data + p.first[run.begin + 1];
        for (const Neighbour* t = near + of_class[run.end]; t < near + of_class[run.end + 1] && at < end; ++t) {
            at = std::lower_bound(at, end, t->string);
            if (at < end && *at == t->string)
                sink.one(at - p.beta.data, Sink::has_values ? with_sign(run.v[t->code & pair_mask], run.sign ^ sign_of(t->code)) : 0.0);
        }
    }
}

template <class Sink>
void ColumnWalker::same_beta(std::int64_t b, Sink& sink) {
    const Pairing& p = h_->pairing;
    const std::int64_t n_classes = h_->beta.classes, b_class = h_->beta.class_of[b];
    const std::uint8_t* occupied = h_->beta.occupied.data + b * h_->beta.electrons;
    for (std::size_t k = 0; k < n_lists_; ++k) {
        const AlphaList& list = lists_[k];
        if (p.is_list()) {
            for (std::size_t t = 0; t < list.string.size(); ++t) {
                const std::int64_t row = h_->number(list.string[t], b);
                if (row >= 0) sink.one(row, list.value[t]);
            }
            continue;
        }
        const std::int64_t shift = p.shift[list.alpha_class * n_classes + b_class];
        if (shift != absent) sink.list(list, shift + b);
    }
    for (const Single& single : singles_) {
        const std::int64_t row = h_->number(single.string, b);
        if (row < 0) continue;
        const double value = Sink::has_values ? single.own + others(single.pair, occupied, h_->beta.electrons) : 0.0;
        sink.one(row, with_sign(value, single.sign));
    }
}

// found(row, neighbour) for determinants after this one whose beta string is one orbital apart from b.
template <class Found>
void ColumnWalker::beta_singles(std::int64_t b, const Found& found) {
    const Side& side = h_->beta;
    const std::int64_t b_class = side.class_of[b];
    const Part near = near_of(side, b, b_class, side.classes);
    for (const Neighbour* t = near.begin; t < near.end && t->string < side.label_end[b_class]; ++t) {
        if (t->string <= b) continue;
        const std::int64_t row = h_->number(alpha_, t->string);
        if (row >= 0) found(row, *t);
    }
}

template <class Sink>
void ColumnWalker::same_alpha(std::int64_t b, Sink& sink) {
    const Side& side = h_->beta;
    const Pairing& p = h_->pairing;
    const Operator& op = h_->integrals;
    const std::uint8_t* mine = side.occupied.data + b * side.electrons;
    const std::uint8_t* others_occupied = h_->alpha.occupied.data + alpha_ * h_->alpha.electrons;
    beta_singles(b, [&](std::int64_t row, const Neighbour& t) {
        const std::uint32_t pair = t.code & pair_mask;
        const double value =
            Sink::has_values ? own(pair, mine, side.electrons) + others(pair, others_occupied, h_->alpha.electrons) : 0.0;
        sink.one(row, with_sign(value, sign_of(t.code)));
    });
    const std::int64_t a_class = h_->alpha.class_of[alpha_];
    if (!p.is_list() && p.range_first[a_class + 1] - p.range_first[a_class] == 1) {  // all of them up to some string
        const std::int32_t r = p.range_first[a_class];
        const std::int64_t base = p.first[alpha_] + p.shift[a_class * side.classes + p.range_begin[r]];
        const auto end = static_cast<std::int32_t>(p.class_first[p.range_end[r]]);
        each_far(side, b, end, [&](const Neighbour& t, std::uint32_t own_code, std::uint32_t i, std::uint32_t j) {
            const double* w = Sink::has_values ? op.w.data + op.w_row[two_of(own_code)] : nullptr;
            sink.far(base + t.string, two_of(t.code), w, sign_of(own_code) ^ sign_of(t.code), apart(t.code, i, j));
        });
        return;
    }
    each_far(side, b, side.label_end[side.class_of[b]], [&](const Neighbour& t, std::uint32_t own_code, std::uint32_t i, std::uint32_t j) {
        if (!apart(t.code, i, j)) return;
        const std::int64_t row = h_->number(alpha_, t.string);
        const double* w = Sink::has_values ? op.w.data + op.w_row[two_of(own_code)] : nullptr;
        if (row >= 0) sink.far(row, two_of(t.code), w, sign_of(own_code) ^ sign_of(t.code), true);
    });
}

template <class Sink>
void ColumnWalker::column(std::int64_t j, Sink& sink) {
    use(j);
    same_alpha(beta_, sink);
    same_beta(beta_, sink);
    mixed_pairs(beta_, sink);
}

template void ColumnWalker::column(std::int64_t, CountSink&);
template void ColumnWalker::column(std::int64_t, StoreSink&);
template void ColumnWalker::column(std::int64_t, MultiplySink&);

ColumnCount ColumnWalker::count(std::int64_t j) {
    CountSink sink;
    column(j, sink);
    sink.count.looked = static_cast<std::int64_t>(runs_.size());
    sink.count.prepared = prepared_;
    return sink.count;
}

double ColumnWalker::diagonal(std::int64_t j) {
    use(j);
    const Operator& op = h_->integrals;
    const Side &alpha = h_->alpha, &beta = h_->beta;
    const std::uint8_t* a = alpha.occupied.data + alpha_ * alpha.electrons;
    const std::uint8_t* b = beta.occupied.data + beta_ * beta.electrons;
    double twice = 0.0;  // the two-electron part
    double sum = op.constant;
    const auto spin = [&](const std::uint8_t* mine, std::int64_t n, const std::uint8_t* theirs, std::int64_t m) {
        for (std::int64_t k = 0; k < n; ++k) {
            const auto pair = static_cast<std::uint32_t>(op.hop[mine[k] * op.orbitals + mine[k]]);
            sum += op.h[pair];
            twice += own(pair, mine, n) - op.h[pair] + others(pair, theirs, m);
        }
    };
    spin(a, alpha.electrons, b, beta.electrons);
    spin(b, beta.electrons, a, alpha.electrons);
    return sum + 0.5 * twice;
}

void ColumnWalker::add_density(std::int64_t j, const double* x, double* density) {
    use(j);
    const Operator& op = h_->integrals;
    const auto add = [&](std::uint32_t pair, std::int64_t row, std::uint64_t sign) { density[pair] += with_sign(x[row] * x[j], sign); };
    for (const Single& single : singles_) {
        const std::int64_t row = h_->number(single.string, beta_);
        if (row >= 0) add(single.pair, row, single.sign);
    }
    beta_singles(beta_, [&](std::int64_t row, const Neighbour& t) { add(t.code & pair_mask, row, sign_of(t.code)); });
    const auto spin = [&](const Side& side, std::int64_t s) {
        for (std::int64_t k = 0; k < side.electrons; ++k) {
            const std::int64_t orbital = side.occupied[s * side.electrons + k];
            density[op.hop[orbital * op.orbitals + orbital]] += x[j] * x[j];
        }
    };
    spin(h_->alpha, alpha_);
    spin(h_->beta, beta_);
}

}  // namespace tilewise
