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

// Row-major product: by a kernel of our own for shapes that dgemm is slow for, if scratch memory
// (narrow_scratch doubles) is given; else through that dgemm.
void gemm(const Gemm& record, double* const* buffers, double* scratch = nullptr);

// Elements of a block that are sorted at a time.
std::int64_t sort_chunk(const TaskList& list, const SortBlock& block);

// Sorts one block; scratch must hold (n_out + 2) chunks.
void sort_block(const TaskList& list, const SortBlock& block, double* scratch);

// Runs task t with the scratch memory of its worker.
void run_task(const TaskList& list, std::int64_t t, double* scratch, std::int64_t scratch_size);

}  // namespace tilewise
