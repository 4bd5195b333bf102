#include "strings.hpp"

#include <algorithm>
#include <stdexcept>

#include "crew.hpp"

namespace tilewise {

namespace {

// Numbers the strings that are left when electrons are taken away: equal ones have the same number. The table has open
// places; two strings are the same if their orbitals are, whatever the hash.
class Rests {
public:
    Rests(const Strings& strings, std::int64_t removed, std::int64_t expected) : strings_(strings), removed_(removed) {
        std::size_t size = 16;
        while (size < static_cast<std::size_t>(2 * expected)) size *= 2;
        table_.assign(size, -1);
        std::uint64_t state = 0x9e3779b97f4a7c15u;
        for (std::int64_t p = 0; p < strings.orbitals; ++p) key_.push_back(mixed(state += 0x9e3779b97f4a7c15u));
    }

    std::uint64_t key(std::int64_t orbital) const { return key_[orbital]; }

    // Of string s without the electrons at places i and j (j = -1 if one is removed); `hash` is that of the rest.
    std::int32_t number(std::int64_t s, std::int64_t i, std::int64_t j, std::uint64_t hash) {
        fill(rest_, s, i, j);
        std::size_t place = mixed(hash) & (table_.size() - 1);
        for (; table_[place] >= 0; place = (place + 1) & (table_.size() - 1)) {
            const std::int32_t id = table_[place];
            if (hashes_[id] == hash && std::equal(rest_.begin(), rest_.end(), rests_.begin() + id * width())) return id;
        }
        const auto id = static_cast<std::int32_t>(hashes_.size());
        table_[place] = id;
        hashes_.push_back(hash);
        rests_.insert(rests_.end(), rest_.begin(), rest_.end());
        if (2 * hashes_.size() > table_.size()) grow();
        return id;
    }

    std::int64_t count() const { return static_cast<std::int64_t>(hashes_.size()); }

private:
    static std::uint64_t mixed(std::uint64_t x) {  // the finalizer of splitmix64
        x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
        x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
        return x ^ (x >> 31);
    }

    std::int64_t width() const { return strings_.electrons - removed_; }

    void fill(std::vector<std::uint8_t>& rest, std::int64_t s, std::int64_t i, std::int64_t j) const {
        rest.clear();
        for (std::int64_t k = 0; k < strings_.electrons; ++k)
            if (k != i && k != j) rest.push_back(strings_.occupied[s * strings_.electrons + k]);
    }

    void grow() {
        table_.assign(2 * table_.size(), -1);
        for (std::size_t id = 0; id < hashes_.size(); ++id) {
            std::size_t place = mixed(hashes_[id]) & (table_.size() - 1);
            while (table_[place] >= 0) place = (place + 1) & (table_.size() - 1);
            table_[place] = static_cast<std::int32_t>(id);
        }
    }

    const Strings& strings_;
    std::int64_t removed_;
    std::vector<std::int32_t> table_;
    std::vector<std::uint64_t> key_, hashes_;
    std::vector<std::uint8_t> rest_, rests_;
};

std::uint64_t hash_of(const Strings& strings, const Rests& rests, std::int64_t s) {
    std::uint64_t hash = 0;
    for (std::int64_t k = 0; k < strings.electrons; ++k) hash += rests.key(strings.occupied[s * strings.electrons + k]);
    return hash;
}

std::vector<std::int64_t> starts(const std::vector<std::int64_t>& lengths) {
    std::vector<std::int64_t> first(lengths.size() + 1, 0);
    for (std::size_t k = 0; k < lengths.size(); ++k) first[k + 1] = first[k] + lengths[k];
    return first;
}

}  // namespace

NearLists near_lists(const Strings& strings, std::int64_t n_workers) {
    const std::int64_t n = strings.count, ne = strings.electrons, n_classes = strings.classes;
    NearLists lists;
    lists.first.assign(static_cast<std::size_t>(n) + 1, 0);
    lists.of_class.assign(static_cast<std::size_t>(n * (n_classes + 1)), 0);
    if (ne == 0) return lists;

    // Strings by what is left without one electron.
    Rests rests(strings, 1, n);
    std::vector<std::int32_t> id(static_cast<std::size_t>(n * ne));
    std::vector<std::int64_t> lengths;
    for (std::int64_t s = 0; s < n; ++s) {
        const std::uint64_t hash = hash_of(strings, rests, s);
        for (std::int64_t k = 0; k < ne; ++k) {
            const std::int32_t found = rests.number(s, k, -1, hash - rests.key(strings.occupied[s * ne + k]));
            id[s * ne + k] = found;
            if (found >= static_cast<std::int32_t>(lengths.size())) lengths.push_back(0);
            ++lengths[found];
        }
    }
    const std::vector<std::int64_t> begin = starts(lengths);
    std::vector<std::int64_t> cursor(begin.begin(), begin.end() - 1);
    std::vector<std::int64_t> with(static_cast<std::size_t>(n * ne));  // s * ne + place of the electron
    for (std::int64_t k = 0; k < n * ne; ++k) with[cursor[id[k]]++] = k;

    for (std::int64_t s = 0; s < n; ++s) {
        std::int64_t count = 0;
        for (std::int64_t k = 0; k < ne; ++k) count += lengths[id[s * ne + k]] - 1;
        lists.first[s + 1] = lists.first[s] + count;
    }
    lists.near.resize(static_cast<std::size_t>(lists.first[n]));

    constexpr std::int64_t block = 256;
    hand_out(n_workers, (n + block - 1) / block, [&] {
        return [&, sorted = std::vector<std::uint64_t>()](std::int64_t number) mutable {
            for (std::int64_t s = number * block; s < std::min(n, (number + 1) * block); ++s) {
                sorted.clear();
                for (std::int64_t k = 0; k < ne; ++k) {
                    const std::int64_t old = strings.occupied[s * ne + k];
                    const std::int32_t list = id[s * ne + k];
                    for (std::int64_t t = begin[list]; t < begin[list + 1]; ++t) {
                        const std::int64_t other = with[t] / ne, place = with[t] % ne;
                        if (other == s) continue;
                        const std::int64_t fresh = strings.occupied[with[t]];
                        const auto pair = static_cast<std::uint32_t>(strings.hop[fresh * strings.orbitals + old]);
                        const std::uint32_t code = pair | ((place + k) % 2 ? sign_bit : 0u);
                        sorted.push_back(static_cast<std::uint64_t>(other) << 32 | code);
                    }
                }
                std::sort(sorted.begin(), sorted.end());
                std::int32_t* of_class = lists.of_class.data() + s * (n_classes + 1);
                Neighbour* out = lists.near.data() + lists.first[s];
                std::int64_t c = 0;
                for (std::size_t t = 0; t < sorted.size(); ++t) {
                    const auto other = static_cast<std::int32_t>(sorted[t] >> 32);
                    out[t] = {other, static_cast<std::uint32_t>(sorted[t])};
                    while (c <= strings.class_of[other]) of_class[c++] = static_cast<std::int32_t>(t);
                }
                while (c <= n_classes) of_class[c++] = static_cast<std::int32_t>(sorted.size());
            }
        };
    });
    return lists;
}

FarLists far_lists(const Strings& strings) {
    const std::int64_t n = strings.count, ne = strings.electrons, pairs = ne * (ne - 1) / 2;
    FarLists lists;
    if (ne < 2) return lists;
    Rests rests(strings, 2, n);
    std::vector<std::int32_t> id(static_cast<std::size_t>(n * pairs));
    std::vector<std::int64_t> lengths;
    for (std::int64_t s = 0; s < n; ++s) {
        const std::uint64_t hash = hash_of(strings, rests, s);
        const std::uint8_t* own = strings.occupied.data + s * ne;
        std::int64_t k = s * pairs;
        for (std::int64_t i = 0; i < ne; ++i)
            for (std::int64_t j = i + 1; j < ne; ++j, ++k) {
                id[k] = rests.number(s, i, j, hash - rests.key(own[i]) - rests.key(own[j]));
                if (id[k] >= static_cast<std::int32_t>(lengths.size())) lengths.push_back(1);  // for `no_string`
                ++lengths[id[k]];
            }
    }
    const std::vector<std::int64_t> begin = starts(lengths);
    if (begin.back() > no_string) throw std::length_error("the strings have too many pairs of electrons");
    std::vector<std::int64_t> cursor(begin.begin(), begin.end() - 1);
    lists.place.resize(id.size());
    lists.far.assign(static_cast<std::size_t>(begin.back()), {no_string, 0});
    for (std::int64_t s = 0; s < n; ++s) {
        const std::uint8_t* own = strings.occupied.data + s * ne;
        std::int64_t k = s * pairs;
        for (std::int64_t i = 0; i < ne; ++i)
            for (std::int64_t j = i + 1; j < ne; ++j, ++k) {
                const auto at = static_cast<std::int32_t>(cursor[id[k]]++);
                const auto two = static_cast<std::uint32_t>(strings.two_orbitals[own[i] * strings.orbitals + own[j]]);
                const std::uint32_t orbitals = static_cast<std::uint32_t>(own[i]) << 8 | own[j];
                lists.place[k] = at;
                lists.far[at] = {static_cast<std::int32_t>(s), ((i + j) % 2 ? sign_bit : 0u) | two << 16 | orbitals};
            }
    }
    return lists;
}

}  // namespace tilewise
