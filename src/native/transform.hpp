// Half of an integral transformation: matrices over basis functions to pairs of orbitals.
#pragma once

#include <cstdint>

#include "records.hpp"

namespace tilewise {

// Orbitals by irrep: symmetry-adapted functions as sparse combinations of basis functions, and the
// coefficients of the orbitals in them. Irrep h has functions first_function[h] .. and orbitals first_orbital[h] ..
struct Orbitals {
    std::int64_t n_basis, n_irreps, n_orbitals;
    Span<std::int64_t> first_entry, entry;  // functions: their basis functions ...
    Span<double> weight;                    // ... and weights
    bool plain;                             // the functions are the basis functions, in their order
    Span<std::int64_t> first_function, first_orbital;
    Span<std::int64_t> position;  // of each orbital (ordered by irrep) among the active ones
    Span<double> coefficients;    // per irrep (functions, orbitals), row-major, one after the other
};

// For each symmetric matrix (packed lower triangle) of `kets`: C^T M C, packed likewise, into `out`.
void half_transform(const Orbitals& orbitals, const double* kets, std::int64_t count, double* out, std::int64_t n_workers);

// Rows of a matrix of pairs that is itself a packed lower triangle.
void unpack_rows(const double* packed, std::int64_t n_pairs, Span<std::int64_t> rows, double* out);

}  // namespace tilewise
