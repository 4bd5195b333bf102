// <S^2> of vectors over determinants.
#pragma once

#include <cstdint>

#include "columns.hpp"

namespace tilewise {

// S^2 = S_z (S_z + 1) + N_beta - sum over p, q of (p <- q of alpha) (q <- p of beta): besides the diagonal it has an element
// only where an alpha and a beta electron change places, which is one in dozens of those with a hop of each spin.
// `out` gets <x|S^2|x> of each of the vectors, one after the other in `x`.
void spin_squared(const Hamiltonian& h, std::int64_t n_workers, const double* x, std::int64_t n_vectors, double* out);

}  // namespace tilewise
