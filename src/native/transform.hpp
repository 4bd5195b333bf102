// The integral transformation in the basis of a group whose operations are signed permutations of the functions.
//
// Pairs of functions fall into classes of images of one pair. In each irrep that it has, a class is one symmetric
// combination, and the integrals over combinations, X_h[K, L], are block diagonal in the irrep h. `chem/transform.py`
// says what the steps are; each is a function here.
#pragma once

#include <cstdint>

#include "records.hpp"

namespace tilewise {

constexpr int max_irreps = 8;
constexpr std::int64_t slab_width = 32;  // columns that the two halves take at a time

// Pairs by their place in a packed lower triangle. Class K has the images first[K] .. first[K + 1], 1, 2, 4 or 8 of them,
// the first one the largest; image j is that of the operation whose bits are j. As many irreps have a combination:
// `irrep` says which (their characters are those of a Walsh-Hadamard transform), `place` its number there, which ascends with K.
struct PairClasses {
    Span<std::int64_t> first, image, irrep, place;
    Span<double> weight;  // of the images in a combination, for the irrep without signs
};

// A symmetric matrix over pairs, or rows of one: row a begins at data + a (a + 1) / 2, or at data + a * ld.
struct PairMatrix {
    const double* data;
    std::int64_t n_rows, ld;
    bool packed;

    const double* row(std::int64_t a) const { return data + (packed ? a * (a + 1) / 2 : a * ld); }
};

// The steps after the first one have as many workers as there are in their scratch.

// Step 1: X_h[K, L] for L <= K of all irreps, packed lower triangles.
void adapt_pairs(const PairClasses& classes, const PairMatrix& integrals, double* const* out, std::int64_t n_workers);

class Libcint;
struct Scratch;

// What each operation makes of each function: `sign` times the function `image`, both at [operation * n_functions + function].
struct FunctionOperations {
    std::int64_t count, n_functions;
    Span<std::int64_t> image;
    Span<double> sign;
};

// The same with integrals that are computed when they are needed; those whose Schwarz bound is smaller than the threshold
// are taken for zero. Only rows K whose representative has its first function in the shells first .. last are made.
void adapt_quartets(const PairClasses& classes, const FunctionOperations& operations, const Libcint& libcint, double threshold,
                    std::int64_t first_shell, std::int64_t last_shell, double* const* out, std::int64_t n_workers);

// For each pair of symmetry-adapted functions P, Q whose product has the irrep: which combinations it is made of, and
// with which weights. Blocks (hP, hQ) with hP >= hQ, by hQ; within a block Q, then P (P >= Q where hP = hQ).
struct Expansion {
    std::int64_t irrep, n_classes, n_irreps;
    std::int64_t n_functions[max_irreps];  // symmetry-adapted ones of each irrep
    Span<std::int64_t> first_entry, entry;
    Span<double> weight;
    bool plain = false;  // whether each pair of functions is the combination of its own number: there is no symmetry
};

// Orbitals by irrep, and within it by kind (occupied, ..., virtual, frozen): first[h * (n_kinds + 1) + kind].
struct OrbitalSet {
    std::int64_t n_irreps, n_kinds;
    Span<std::int64_t> first;   // in all of the set
    Span<double> coefficients;  // per irrep (functions, orbitals), row-major, one after the other
};

// Pairs (p, q) of orbitals of one irrep are numbered by block (hP, hQ) as in Expansion, then p, then q (q <= p where
// hP = hQ). Step 2: Y[pq, K] for pairs in parts, each all pairs of some p. With a density (over combinations of the
// irrep 0) also its Coulomb field.
struct HalfPart {
    std::int64_t first, last, ld;  // Y[first .. last, K] from `out` on, the first K that is taken first
    double* out;
};

// Y as the steps after it read it: matrices that would stand side by side.
struct HalfPiece {
    const double* data;
    std::int64_t n_columns;
};
using HalfMatrix = Span<HalfPiece>;

// Pairs (p, q) of a block (hP, hQ) that are made together: a run of p by a run of q, counted within their irreps.
struct PairRun {
    std::int64_t right;  // hQ
    std::int64_t first_p, last_p, first_q, last_q;
};

// Or the pairs of some runs that have a row in `out`.
struct FirstHalf {
    PairMatrix integrals;           // X_h, or rows of anything over pairs, such as vectors
    std::int64_t begin, end;        // rows K that are taken
    Span<HalfPart> parts;           // from the first pair on, without gaps
    const double* density = nullptr;
    double* coulomb = nullptr;
    Span<PairRun> runs{};           // by `right`; in the place of parts
    Span<std::int64_t> row{};       // of each pair, or -1
    std::int64_t ld = 0;
    double* out = nullptr;
};
void first_half(const Expansion& expansion, const OrbitalSet& orbitals, const FirstHalf& work, Scratch& scratch);

// Where a pair stands in tensors: an offset (-1: nowhere) and a factor.
struct Side {
    const std::int64_t* offset;
    const double* factor;
};

// (pq|rs) goes to offset(pq) + offset(rs) of a buffer, times both factors.
struct Destination {
    std::int64_t buffer, left, right;  // sides of (pq) and of (rs)
    std::int64_t from;                 // 0: all p; 1: p >= r; 2: p > r alone; 3: p <= r
    std::int64_t by_rows;              // neighbours of (pq), not of (rs), are neighbours in memory
    std::int64_t wanted;               // bit a * n_kinds + b: whether p of kind a and q of kind b have a place
};

struct SecondHalf {
    HalfMatrix half;                              // Y[rs, K]
    Span<std::int64_t> first_block;               // columns of each block, at most slab_width
    Span<std::int64_t> column, pair, rank;        // row in `half`, number for the sides, and rank of r among the orbitals
    Span<std::int64_t> label, left_label;         // of each block and of each pair (pq): both must agree
    Span<Destination> destinations;
    const Side* sides;
    double* const* buffers;
    std::int64_t first_pair;  // number of the first (pq) of this irrep for the sides
};

// Step 3: (pq|rs) for the given columns (rs), into their places.
void second_half(const Expansion& expansion, const OrbitalSet& orbitals, const SecondHalf& work, Scratch& scratch);

// Columns (q, i) of one i: (pi|qi) for all p of the irrep of q that are not frozen.
struct Exchange {
    std::int64_t i, irrep_i, irrep_q, first, count;  // i within its irrep
};

// Exchange integrals: out[x, p] for column x, p counted within its irrep.
void exchange_half(const Expansion& expansion, const OrbitalSet& orbitals, const HalfMatrix& half,
                   Span<Exchange> groups, Span<std::int64_t> column, double* out, std::int64_t out_ld, Scratch& scratch);

}  // namespace tilewise
