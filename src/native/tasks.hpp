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
enum class Kernel : std::int64_t { dgemm = 0, few_rows = 1, narrow = 2 };
Kernel kernel_of(const Gemm& record);

// Row-major product: by a kernel of our own for shapes that dgemm is slow for, if the arena has the
// memory (narrow_scratch doubles); else through that dgemm. `next`: the one to follow, if that is known.
void gemm(const Gemm& record, double* const* buffers, Arena& arena, const Gemm* next = nullptr);

// Elements of a block that are sorted at a time.
std::int64_t sort_chunk(const SortBlock& block, std::int64_t chunk);

// Sorts one block; scratch must hold (n_out + 2) chunks.
void sort_block(const TaskList& list, const SortBlock& block, double* scratch);

// Runs task t in the memory of its worker.
void run_task(const TaskList& list, std::int64_t t, Arena& arena);

}  // namespace tilewise
