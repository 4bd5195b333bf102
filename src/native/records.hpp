// The records that tasks are made of. The modules of inspect/operations/ have the same fields; Python compares them with
// what layouts.cpp tells when it loads this library, and takes the constants from here.
#pragma once

#include <cstdint>

namespace tilewise {

constexpr int max_axes = 6;
constexpr int max_sums = 2;
constexpr int max_pairs = 2;  // of axes of a view that lie in a triangle

enum class Kind : std::int64_t { gemm = 0, sort = 1, update = 2, dot = 3, chain = 4 };
constexpr const char* kind_names[] = {"gemm", "sort", "update", "dot", "chain"};  // by number

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
    std::int64_t amplitude, residual, new_amplitude, step, offset, rows, cols, ld;
    std::int64_t energies, row_energy, col_energy;
};

struct Dot {
    std::int64_t a, b, offset, rows, cols, ld;
    double factor;
};

// Records of one kind, as a part of a task that is a chain of several kinds.
struct Step {
    std::int64_t kind, first, count;
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
    Span<std::int64_t> locks;
    double* const* buffers = nullptr;
    const std::int64_t* lengths = nullptr;
    std::int64_t n_buffers = 0;  // the last one is each worker's own arena
    std::int64_t arena = 0;      // its elements
    double* partial = nullptr;  // one number per task, for reductions
    std::int64_t chunk = 0;     // elements that a sort handles at a time
    double shift = 0.0;         // level shift of the Jacobi steps of this run
};

}  // namespace tilewise
