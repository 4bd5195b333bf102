#include "spin.hpp"

#include <algorithm>
#include <vector>

#include "crew.hpp"

namespace tilewise {

namespace {

// A hop from one alpha string to a later one, and the beta hop that goes with it.
struct Hop {
    std::uint8_t to, from;    // the orbital that the alpha electron enters, and the one that it leaves
    std::uint32_t turned;     // the number of the beta hop from `to` to `from`
    std::uint64_t sign;
    std::int32_t string;
    std::int32_t begin, end;  // classes of beta strings that go with the later string
};

// The first orbital of `one` that `other` does not have; both are ascending and one orbital apart.
std::uint8_t only_in(const std::uint8_t* one, const std::uint8_t* other, std::int64_t n) {
    std::int64_t k = 0, l = 0;
    while (k < n && l < n && one[k] >= other[l]) {
        k += one[k] == other[l];
        ++l;
    }
    return one[k];
}

class SpinWalker {
public:
    SpinWalker(const Hamiltonian& h, const double* x, std::int64_t n_vectors) : h_(h), x_(x), n_vectors_(n_vectors), is_beta_(most_orbitals, 0) {
        const double s_z = 0.5 * static_cast<double>(h.alpha.electrons - h.beta.electrons);
        constant_ = s_z * (s_z + 1.0) + static_cast<double>(h.beta.electrons);
    }

    // Adds what all determinants of an alpha string have to do with themselves and with later ones.
    void add(std::int64_t a, double* out) {
        const Pairing& p = h_.pairing;
        find_hops(a);
        for (std::int64_t j = p.first[a]; j < p.first[a + 1]; ++j) add_determinant(a, j, out);
    }

private:
    void find_hops(std::int64_t a) {
        const Side& side = h_.alpha;
        const Pairing& p = h_.pairing;
        const Operator& op = h_.integrals;
        const std::uint8_t* mine = side.occupied.data + a * side.electrons;
        hops_.clear();
        for (std::int64_t k = side.near_first[a]; k < side.near_first[a + 1]; ++k) {
            const Neighbour& t = side.near[k];
            const std::int32_t its_class = side.class_of[t.string];
            std::int32_t begin = 0, end = 0;
            if (p.is_list()) {
                begin = p.partner[its_class];
                end = begin + 1;
            } else if (p.range_first[its_class] < p.range_first[its_class + 1]) {
                begin = p.range_begin[p.range_first[its_class]];
                end = p.range_end[p.range_first[its_class + 1] - 1];
            }
            if (t.string <= a || begin < 0 || begin == end) continue;
            const std::uint8_t* theirs = side.occupied.data + t.string * side.electrons;
            const std::uint8_t to = only_in(theirs, mine, side.electrons), from = only_in(mine, theirs, side.electrons);
            const auto turned = static_cast<std::uint32_t>(op.hop[from * op.orbitals + to]);
            hops_.push_back({to, from, turned, sign_of(t.code), t.string, begin, end});
        }
    }

    void add_determinant(std::int64_t a, std::int64_t j, double* out) {
        const Side &alpha = h_.alpha, &beta = h_.beta;
        const std::int64_t n = h_.pairing.determinants, b = h_.pairing.beta[j];
        const std::uint8_t *mine = alpha.occupied.data + a * alpha.electrons, *theirs = beta.occupied.data + b * beta.electrons;
        for (std::int64_t k = 0; k < beta.electrons; ++k) is_beta_[theirs[k]] = 1;
        double diagonal = constant_;
        for (std::int64_t k = 0; k < alpha.electrons; ++k) diagonal -= is_beta_[mine[k]];
        for (std::int64_t k = 0; k < n_vectors_; ++k) out[k] += diagonal * x_[k * n + j] * x_[k * n + j];
        const std::int32_t* of_class = beta.near_class.data + b * (beta.classes + 1);
        const Neighbour* near = beta.near.data + beta.near_first[b];
        for (const Hop& hop : hops_) {
            if (!is_beta_[hop.to] || is_beta_[hop.from]) continue;
            const Neighbour *t = near + of_class[hop.begin], *end = near + of_class[hop.end];
            while (t < end && (t->code & pair_mask) != hop.turned) ++t;
            const std::int64_t row = t < end ? h_.number(hop.string, t->string) : -1;
            if (row < 0) continue;
            const double twice = with_sign(-2.0, hop.sign ^ sign_of(t->code));
            for (std::int64_t k = 0; k < n_vectors_; ++k) out[k] += twice * x_[k * n + j] * x_[k * n + row];
        }
        for (std::int64_t k = 0; k < beta.electrons; ++k) is_beta_[theirs[k]] = 0;
    }

    const Hamiltonian& h_;
    const double* x_;
    std::int64_t n_vectors_;
    double constant_;
    std::vector<std::uint8_t> is_beta_;  // of each orbital: whether the beta string at hand has it
    std::vector<Hop> hops_;
};

}  // namespace

void spin_squared(const Hamiltonian& h, std::int64_t n_workers, const double* x, std::int64_t n_vectors, double* out) {
    constexpr std::int64_t block = 64;  // alpha strings; sums of blocks are added in their order, whoever made them
    const std::int64_t strings = h.alpha.count, blocks = (strings + block - 1) / block;
    std::vector<double> sums(static_cast<std::size_t>(blocks * n_vectors), 0.0);
    hand_out(n_workers, blocks, [&] {
        return [&, walker = SpinWalker(h, x, n_vectors)](std::int64_t number) mutable {
            for (std::int64_t a = number * block; a < std::min(strings, (number + 1) * block); ++a)
                walker.add(a, sums.data() + number * n_vectors);
        };
    });
    std::fill_n(out, n_vectors, 0.0);
    for (std::int64_t k = 0; k < blocks * n_vectors; ++k) out[k % n_vectors] += sums[static_cast<std::size_t>(k)];
}

}  // namespace tilewise
