#include "libcint.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <stdexcept>
#include <utility>

#include "crew.hpp"

namespace tilewise {

namespace {

// Columns of libcint's tables.
constexpr int atm_slots = 6, ptr_coord = 1;
constexpr int bas_slots = 8, atom_of = 0, ang_of = 1, nprim_of = 2, nctr_of = 3, ptr_exp = 5, ptr_coeff = 6;
constexpr int env_start = 20;  // of what belongs to atoms and shells

std::int64_t power4(std::int64_t n) { return n * n * n * n; }

// Calls `visit(i, j, values)` for all pairs of shells i >= j, with (ij|ij) or null.
template <class Visit>
void over_pairs(const Libcint& libcint, std::int64_t n_workers, const Visit& visit) {
    const std::int64_t n = libcint.n_shells();
    const auto make = [&] {
        return [&, quartets = Quartets(libcint)](std::int64_t row) mutable {
            const std::int64_t i = n - 1 - row;  // the longest row first
            for (std::int64_t j = 0; j <= i; ++j) visit(i, j, quartets(i, j, i, j));
        };
    };
    hand_out(n_workers, n, make);
}

}  // namespace

Libcint::Libcint(IntegralPointer integral, OptimizerPointer optimizer, ReleasePointer release, bool cartesian,
                 std::vector<int> atm, std::vector<int> bas, std::vector<double> env)
    : integral_(integral), release_(release), atm_(std::move(atm)), bas_(std::move(bas)), env_(std::move(env)), first_{0} {
    check();
    for (std::size_t at = 0; at < bas_.size(); at += bas_slots) {
        const std::int64_t l = bas_[at + ang_of], functions = cartesian ? (l + 1) * (l + 2) / 2 : 2 * l + 1;
        const std::int64_t size = functions * bas_[at + nctr_of];
        first_.push_back(first_.back() + size);
        largest_size_ = std::max(largest_size_, size);
    }
    cache_size_ = largest_cache();
    optimizer(&optimizer_, atm_.data(), static_cast<int>(atm_.size() / atm_slots), bas_.data(), static_cast<int>(n_shells()),
              env_.data());
}

Libcint::~Libcint() { release_(&optimizer_); }

void Libcint::check() const {
    const auto inside = [&](std::int64_t from, std::int64_t count) {
        return from >= env_start && count >= 0 && from + count <= static_cast<std::int64_t>(env_.size());
    };
    const std::int64_t atoms = static_cast<std::int64_t>(atm_.size()) / atm_slots;
    bool fits = atm_.size() % atm_slots == 0 && bas_.size() % bas_slots == 0 && env_.size() >= env_start;
    for (std::int64_t a = 0; fits && a < atoms; ++a) fits = inside(atm_[a * atm_slots + ptr_coord], 3);
    for (std::size_t at = 0; fits && at < bas_.size(); at += bas_slots) {
        const int* shell = bas_.data() + at;
        const std::int64_t primitives = shell[nprim_of];
        fits = shell[atom_of] >= 0 && shell[atom_of] < atoms && shell[ang_of] >= 0 && primitives > 0 && shell[nctr_of] > 0 &&
               inside(shell[ptr_exp], primitives) && inside(shell[ptr_coeff], primitives * shell[nctr_of]);
    }
    if (!fits) throw std::invalid_argument("the tables of atoms, shells and numbers do not fit");
}

// libcint's answer depends on the angular momentum and the numbers of primitives and contractions of each shell alone.
std::int64_t Libcint::largest_cache() const {
    std::set<std::array<int, 3>> seen;
    std::vector<int> kinds;  // a shell of each kind
    for (int s = 0; s < static_cast<int>(n_shells()); ++s) {
        const int* shell = bas_.data() + s * bas_slots;
        if (seen.insert({shell[ang_of], shell[nprim_of], shell[nctr_of]}).second) kinds.push_back(s);
    }
    std::int64_t largest = 0;
    for (const int i : kinds)
        for (const int j : kinds)
            for (const int k : kinds)
                for (const int l : kinds) {
                    int shells[4] = {i, j, k, l};
                    largest = std::max<std::int64_t>(largest, call(shells, nullptr, nullptr));
                }
    return largest;
}

int Libcint::call(int (&shells)[4], double* out, double* cache) const {
    return integral_(out, nullptr, shells, atm_.data(), static_cast<int>(atm_.size() / atm_slots), bas_.data(),
                     static_cast<int>(n_shells()), env_.data(), optimizer_, cache);
}

bool Libcint::operator()(const std::int64_t (&shells)[4], double* out, double* cache) const {
    int numbers[4];
    std::copy(shells, shells + 4, numbers);
    return call(numbers, out, cache) != 0;
}

Quartets::Quartets(const Libcint& libcint)
    : libcint_(libcint), values_(power4(libcint.largest_size())), cache_(libcint.cache_size()) {}

const double* Quartets::operator()(std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t l) {
    return libcint_({i, j, k, l}, values_.data(), cache_.data()) ? values_.data() : nullptr;
}

void diagonal(const Libcint& libcint, double* out, std::int64_t n_workers) {
    over_pairs(libcint, n_workers, [&](std::int64_t i, std::int64_t j, const double* values) {
        const std::int64_t ni = libcint.size(i), nj = libcint.size(j);
        for (std::int64_t a = 0; a < ni; ++a) {
            const std::int64_t mu = libcint.first(i) + a;
            for (std::int64_t b = 0; b < nj && libcint.first(j) + b <= mu; ++b)
                out[mu * (mu + 1) / 2 + libcint.first(j) + b] = values ? values[(b * ni + a) * (ni * nj + 1)] : 0.0;
        }
    });
}

void schwarz(const Libcint& libcint, double* out, std::int64_t n_workers) {
    const std::int64_t n = libcint.n_shells();
    over_pairs(libcint, n_workers, [&](std::int64_t i, std::int64_t j, const double* values) {
        const std::int64_t pairs = libcint.size(i) * libcint.size(j);
        double largest = 0.0;
        for (std::int64_t x = 0; values && x < pairs; ++x) largest = std::max(largest, std::abs(values[x * (pairs + 1)]));
        out[i * n + j] = out[j * n + i] = std::sqrt(largest);
    });
}

}  // namespace tilewise
