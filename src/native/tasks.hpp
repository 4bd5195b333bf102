// What a task does. Each function throws TaskFailure when its result is not finite or a record is wrong.
#pragma once

#include <stdexcept>

#include "records.hpp"

namespace tilewise {

struct TaskFailure : std::runtime_error {
    using std::runtime_error::runtime_error;
};

using DgemmPointer = void (*)(char*, char*, int*, int*, int*, double*, double*, int*, double*, int*, double*,
                              double*, int*);

// The dgemm of the BLAS that SciPy ships; set once, before any task runs.
void set_dgemm(DgemmPointer pointer);

// The memory of one worker, beside the buffer that chains use. A task takes it whole and leaves nothing in it.
struct Arena {
    double* memory = nullptr;
    std::int64_t size = 0, most = 0;

    // Null if there is less.
    double* take(std::int64_t count) {
        if (count > size) return nullptr;
        if (count > most) most = count;
        return memory;
    }
};

// What computes a product. kernel_of assumes that the worker has the memory that our own kernels need.
enum class Kernel : std::int64_t { dgemm = 0, few_rows = 1, streamed = 2 };
constexpr const char* kernel_names[] = {"dgemm", "few rows", "streamed"};  // by number
Kernel kernel_of(const Gemm& record);

// Row-major product: by a kernel of our own for shapes that dgemm is slow for, if the arena has the
// memory (streamed_scratch doubles); else through that dgemm. `next`: the one to follow, if that is known.
void gemm(const Gemm& record, double* const* buffers, Arena& arena, const Gemm* next = nullptr);

// C[m, n] += A[m, k] B[k, n], row-major, through that dgemm; A may lie as [k, m].
void add_product(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, std::int64_t lda, const double* b,
                 std::int64_t ldb, double* c, std::int64_t ldc, bool transpose_a = false);

// Elements of a block that are sorted at a time.
std::int64_t sort_chunk(const SortBlock& block, std::int64_t chunk);

// How the two innermost loops over a view run: the extents of the inner and of the other one, how far apart neighbours of
// the inner one lie in the tensor and in the chunk, and whether the two run over a triangle.
struct SortWalk {
    std::int64_t run, rows, from, to, in_triangle;
};
SortWalk sort_walk(const SortBlock& block, const SortView& view, std::int64_t chunk);

// Sorts one block; scratch must hold (n_out + 2) chunks.
void sort_block(const TaskList& list, const SortBlock& block, double* scratch);

// One pass over data that is still in cache.
void check_finite(const double* x, std::int64_t rows, std::int64_t cols, std::int64_t ld);

// The records of a step of each kind, or one of them; an operation has a file of its own.
void run_gemms(const TaskList& list, const Step& step, Arena& arena);
void run_sorts(const TaskList& list, const Step& step, Arena& arena);
void run_update(const TaskList& list, const Update& record, double& partial);
void run_dot(const TaskList& list, const Dot& record, double& partial);

void run_triples(const TaskList& list, const Triples& record, double& partial, Arena& arena);

// Runs task t in the memory of its worker.
void run_task(const TaskList& list, std::int64_t t, Arena& arena);

}  // namespace tilewise
