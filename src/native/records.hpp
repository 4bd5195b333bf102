// The records that tasks are made of. The modules of inspect/operations/ have the same fields; Python compares them with
// what layouts.cpp tells when it loads this library, and takes the constants from here.
#pragma once

#include <cstdint>
#include <functional>

namespace tilewise {

constexpr int max_axes = 6;
constexpr int max_sums = 2;
constexpr int max_pairs = 2;  // of axes of a view that lie in a triangle

enum class Kind : std::int64_t { gemm = 0, sort = 1, update = 2, dot = 3, chain = 4, triples = 5 };
constexpr const char* kind_names[] = {"gemm", "sort", "update", "dot", "chain", "triples"};  // by number

// C[m, n] = alpha op(A)[m, k] op(B)[k, n] + beta C, row-major; k = 0 scales C alone.
struct Gemm {
    std::int64_t a, b, c, transpose_a, transpose_b, m, n, k;
    std::int64_t a_offset, lda, b_offset, ldb, c_offset, ldc;
    double alpha, beta;
};

struct SortBlock {
    std::int64_t n_axes, n_row_axes, extent[max_axes];
    std::int64_t first_out, n_out, first_read, n_read, first_coefficient;
};

struct SortOut {
    std::int64_t buffer, offset, ld, accumulate, row_triangle, col_triangle;
    std::int64_t stride[max_axes];
};

struct SortRead {
    std::int64_t first_view, n_view, n_sum, sum_extent[max_sums];
};

struct SortView {
    std::int64_t buffer, offset, stride[max_axes + max_sums], n_pair;
    std::int64_t p_axis[max_pairs], q_axis[max_pairs], unit[max_pairs], sign[max_pairs];
};

struct Update {
    std::int64_t amplitude, residual, new_amplitude, step;
    std::int64_t amplitude_offset, residual_offset, new_offset, step_offset, rows, cols, ld;
    std::int64_t energies, row_energy, col_energy;
};

struct Dot {
    std::int64_t a, b, a_offset, b_offset, rows, cols, ld;
    double factor;
};

// Records of one kind, as a part of a task that is a chain of several kinds.
struct Step {
    std::int64_t kind, first, count;
};

// Connected triples of the occupied orbitals i, j and a run of k, in a list of triples of virtual tiles.
// `form` is a TriplesForm; i and j are orbitals of the set `s`, k are those of the set `r`. `part` is the place for the
// energy of fourth order. What follows is for cost models: multiply-adds that are needed and that are done, elements, and
// words of operands.
struct Triples {
    std::int64_t form, s, r, i, j, k, n_k, first_tiles, n_tiles, part;
    double needed, done, elements, words;
};

// Tiles A, B, C of virtual orbitals.
struct TileTriple {
    std::int64_t a, b, c;
};

// Where the operands of all triples lie. Arrays have a place for each set of orbitals (alpha and beta; a closed shell
// has the first alone), or for each two sets (2 s + r). What is not a count or a buffer is a place in the table of
// numbers (occ_irrep up to tile_inner, and the places of blocks: direct, crossed, pair) or in a buffer.
struct TriplesSpace {
    std::int64_t blocks, pairs, energies, singles, parts, product_seconds, has_fock;
    std::int64_t n_occ[2], n_vir[2], n_tile[2];
    std::int64_t occ_irrep[2], n_sum[2], n_in_irrep[2], tile_irrep[2], tile_size[2], tile_first[2], tile_inner[2];
    std::int64_t occ_energy[2], vir_energy[2], t1[2], fock[2];
    std::int64_t direct[4], crossed[4], pair[4];
    std::int64_t squares[5];  // places of the operands of squares among the blocks; see triples_squares.cpp
    double scale;             // of the integrals in these
};

struct Task {
    std::int64_t kind, operation, first, count, first_lock, n_lock, panel;
};

// What a worker writes down about a task: nanoseconds since the run began.
struct Trace {
    std::int64_t worker, ready, start, end;
};

template <class T>
struct Span {
    const T* data = nullptr;
    std::int64_t size = 0;
    const T& operator[](std::int64_t k) const { return data[k]; }
};

// A task list with all that its tasks refer to. Memory belongs to the caller.
struct TaskList {
    Span<Task> tasks;
    Span<Gemm> gemm;
    Span<SortBlock> sort;
    Span<SortOut> out;
    Span<SortRead> read;
    Span<SortView> view;
    Span<double> coefficients;
    Span<Update> update;
    Span<Dot> dot;
    Span<Step> step;
    Span<Triples> triples;
    Span<TileTriple> tile_triples;
    Span<TriplesSpace> triples_space;
    Span<std::int64_t> triples_numbers;
    Span<std::int64_t> locks;
    double* const* buffers = nullptr;
    const std::int64_t* lengths = nullptr;
    std::int64_t n_buffers = 0;  // the last one is each worker's own arena
    std::int64_t arena = 0;      // its elements
    double* partial = nullptr;  // one number per task, for reductions
    std::int64_t chunk = 0;     // elements that a sort handles at a time
    double shift = 0.0;         // level shift of the Jacobi steps of this run
    // If given, it is called with worker and task instead of all the above; tasks need no records then, only a number of them.
    const std::function<void(std::int64_t, std::int64_t)>* body = nullptr;
};

}  // namespace tilewise
