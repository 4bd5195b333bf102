// The integral transformation: matrices over basis functions to pairs of orbitals, in two steps.
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
    // Of each pair of active orbitals: its place in the first row of the result (-1: not wanted), and from there
    // to the next row. Some columns at a time lie together, all of their rows one after the other.
    Span<std::int64_t> column, step;
};

// Symmetric matrices over basis functions, each a packed lower triangle: strided, or (`numbers` given)
// rows of a matrix of pairs that is a packed lower triangle itself.
struct Kets {
    const double* data;
    std::int64_t count, ket_stride, pair_stride;
    const std::int64_t* numbers = nullptr;
};

// What the Fock matrix takes from the same integrals: ket k is (mu nu|..), of some weight.
struct FockPart {
    const double* density = nullptr;  // (n_basis, n_basis), no Fock matrix without
    const std::int64_t *mu = nullptr, *nu = nullptr;
    const double* weight = nullptr;
    double* coulomb = nullptr;   // per ket: sum of its elements times the density
    double* exchange = nullptr;  // (n_basis, n_basis), added to
};

// Step 1. For each ket M: the wanted elements of C^T M C, into the row of `out` that `row` says.
void half_transform(const Orbitals& orbitals, const Kets& kets, const FockPart& fock, const std::int64_t* row, double* out,
                    std::int64_t n_workers);

constexpr std::int64_t columns_at_once = 64;  // that step 2 takes at a time

// Some neighbouring columns of one irrep, and the products to make for them.
struct Columns {
    std::int64_t first, count;        // in the half-transformed integrals
    std::int64_t first_job, n_jobs;
    std::int64_t table;               // where the results go
    std::int64_t target_column;
    // A tensor that is symmetric in its pairs (or -1) is written by rows instead: its rows are these columns.
    std::int64_t symmetric, sector_offset, row_length;
    std::int64_t last;                // nobody needs the half-transformed integrals any more
};

// Orbitals p and q, as ranges in the order of the coefficients.
struct Job {
    std::int64_t first_p, n_p, first_q, n_q;
};

struct SecondHalf {
    double* values;  // for each set of columns a (rows, count) matrix; the rows of one mu are neighbours
    std::int64_t n_columns, n_mu, n_orbitals;
    Span<std::int64_t> first_row;  // (n_mu + 1)
    Span<double> left;             // (n_orbitals, n_mu) C_mu,p
    Span<double> right;            // (rows of mu, for each mu an (n_orbitals, rows) matrix) w C_nu,q
    Span<double> column_scale;     // (n_columns)
    Span<Columns> columns;
    Span<Job> jobs;
    // Per table and (p, q): buffer, place of the row there (of a symmetric tensor: the column), and factor (0: not
    // wanted).
    Span<std::int64_t> buffer, offset;
    Span<double> factor;
    double* const* buffers;
};

// Step 2. Adds Z_pq (and by another job Z_qp) to the row of (pq).
void second_half(const SecondHalf& work, std::int64_t n_workers);

}  // namespace tilewise
