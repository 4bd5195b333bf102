// W of all virtual orbitals for one i, j, k, as squares make it.
#pragma once

#include <cstdint>

#include "triples.hpp"

namespace tilewise {

// Squares that are made before they are added to W together: a cache line of each of its rows.
constexpr std::int64_t square_slab = 8;

// W[a][b][c]
class WholeW {
public:
    WholeW(const OrbitalSet& set, std::int64_t i, std::int64_t j, std::int64_t k, const double* w)
        : set_(set), i_(i), j_(j), k_(k), v_(set.n_vir), w_(w) {}

    // W_pqr[a][b][c] in tiles of these extents: of i, j, k each has the virtual orbital that stands in its place.
    void copy(std::int64_t p, std::int64_t q, const TileTriple& tiles, const std::int64_t (&extent)[3], double* to) const;

private:
    const OrbitalSet& set_;
    const std::int64_t i_, j_, k_, v_;
    const double* w_;
};

}  // namespace tilewise
