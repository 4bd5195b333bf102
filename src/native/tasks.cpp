#include "tasks.hpp"

#include <climits>
#include <cmath>
#include <string>

#include "lanes.hpp"
#include "narrow.hpp"

namespace tilewise {

namespace {

DgemmPointer dgemm = nullptr;

void check_buffer(const TaskList& list, std::int64_t buffer, std::int64_t first, std::int64_t last) {
    if (buffer < 0 || buffer >= list.n_buffers || first < 0 || last > list.lengths[buffer])
        throw TaskFailure("a record points outside of its buffer");
}

// One pass over data that is still in cache.
void check_finite(const double* x, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
    for (std::int64_t r = 0; r < rows; ++r)
        if (!all_finite(cols, x + r * ld)) throw TaskFailure("the result is not finite");
}

void check_bounds(const TaskList& list, const Gemm& r) {
    check_buffer(list, r.c, r.c_offset, r.c_offset + (r.m - 1) * r.ldc + r.n);
    if (r.k <= 0) return;
    const auto a_rows = r.transpose_a ? r.k : r.m, a_cols = r.transpose_a ? r.m : r.k;
    const auto b_rows = r.transpose_b ? r.n : r.k, b_cols = r.transpose_b ? r.k : r.n;
    check_buffer(list, r.a, r.a_offset, r.a_offset + (a_rows - 1) * r.lda + a_cols);
    check_buffer(list, r.b, r.b_offset, r.b_offset + (b_rows - 1) * r.ldb + b_cols);
}

void run_gemms(const TaskList& list, const Step& step, Arena& arena) {
    const Gemm *first = &list.gemm[step.first], *end = first + step.count;
    for (const Gemm* r = first; r < end; ++r) check_bounds(list, *r);
    for (const Gemm* r = first; r < end; ++r) {
        const Gemm* next = r + 1 < end ? r + 1 : nullptr;
        gemm(*r, list.buffers, arena, next);
        if (!next || next->c_offset != r->c_offset) check_finite(list.buffers[r->c] + r->c_offset, r->m, r->n, r->ldc);
    }
}

void run_update(const TaskList& list, const Update& r, double& partial) {
    const double* amplitude = list.buffers[r.amplitude] + r.offset;
    const double* residual = list.buffers[r.residual] + r.offset;
    double* fresh = list.buffers[r.new_amplitude] + r.offset;
    double* step = list.buffers[r.step] + r.offset;
    const double* row_energy = list.buffers[r.energies] + r.row_energy;
    const double* col_energy = list.buffers[r.energies] + r.col_energy;
    for (std::int64_t i = 0; i < r.rows; ++i) {
        const std::int64_t row = i * r.ld;
        partial += lane_sum(r.cols, [&](std::int64_t j) {
            const double gap = row_energy[i] + col_energy[j];
            const double rest = residual[row + j] - gap * amplitude[row + j];
            step[row + j] = rest / (gap - list.shift);
            fresh[row + j] = amplitude[row + j] + step[row + j];
            return rest * rest;
        });
    }
    check_finite(fresh, r.rows, r.cols, r.ld);
}

void run_dot(const TaskList& list, const Dot& r, double& partial) {
    const double* a = list.buffers[r.a] + r.offset;
    const double* b = list.buffers[r.b] + r.offset;
    for (std::int64_t i = 0; i < r.rows; ++i)
        partial += r.factor * dot(r.cols, a + i * r.ld, b + i * r.ld);
    if (!std::isfinite(partial)) throw TaskFailure("the result is not finite");
}

}  // namespace

void set_dgemm(DgemmPointer pointer) { dgemm = pointer; }

Kernel kernel_of(const Gemm& r) {
    if (r.transpose_b) return Kernel::dgemm;
    if (short_pays(r.m, r.n, r.k)) return Kernel::few_rows;
    return narrow_pays(r.m, r.n, r.k) ? Kernel::narrow : Kernel::dgemm;
}

namespace {

Left left_of(const Gemm& r, double* const* buffers) {
    return Left{buffers[r.a] + r.a_offset, r.m, r.k, r.lda, r.transpose_a != 0};
}

}  // namespace

void gemm(const Gemm& r, double* const* buffers, Arena& arena, const Gemm* next) {
    if (r.m <= 0 || r.n <= 0) return;
    double* c = buffers[r.c] + r.c_offset;
    if (r.k <= 0) {
        for (std::int64_t i = 0; i < r.m; ++i)
            for (std::int64_t j = 0; j < r.n; ++j) c[i * r.ldc + j] = r.beta == 0.0 ? 0.0 : r.beta * c[i * r.ldc + j];
        return;
    }
    if (!dgemm) throw TaskFailure("no dgemm has been set");
    const std::int64_t largest = INT_MAX;
    if (r.m > largest || r.n > largest || r.k > largest || r.lda > largest || r.ldb > largest || r.ldc > largest)
        throw TaskFailure("a matrix dimension is larger than BLAS can take");
    const Kernel kernel = arena.size >= narrow_scratch ? kernel_of(r) : Kernel::dgemm;
    if (kernel == Kernel::few_rows) {
        short_product(r.m, r.n, r.k, r.alpha, buffers[r.a] + r.a_offset, r.transpose_a ? 1 : r.lda, r.transpose_a ? r.lda : 1,
                      buffers[r.b] + r.b_offset, r.ldb, r.beta, c, r.ldc);
        return;
    }
    if (kernel == Kernel::narrow) {
        narrow_product(left_of(r, buffers), r.n, r.alpha, buffers[r.b] + r.b_offset, r.ldb, r.beta, c, r.ldc,
                       arena.take(narrow_scratch), next && next->k > 0 ? left_of(*next, buffers) : Left{});
        return;
    }
    // A row-major product is the column-major product of the transposes in the other order.
    char ta = r.transpose_b ? 'T' : 'N', tb = r.transpose_a ? 'T' : 'N';
    int m = static_cast<int>(r.n), n = static_cast<int>(r.m), k = static_cast<int>(r.k);
    int lda = static_cast<int>(r.ldb), ldb = static_cast<int>(r.lda), ldc = static_cast<int>(r.ldc);
    double alpha = r.alpha, beta = r.beta;
    dgemm(&ta, &tb, &m, &n, &k, &alpha, buffers[r.b] + r.b_offset, &lda, buffers[r.a] + r.a_offset, &ldb, &beta, c,
          &ldc);
}

namespace {

void run_step(const TaskList& list, const Step& step, double& partial, Arena& arena) {
    const std::int64_t last = step.first + step.count;
    switch (static_cast<Kind>(step.kind)) {
        case Kind::gemm:
            run_gemms(list, step, arena);
            return;
        case Kind::sort:
            for (std::int64_t b = step.first; b < last; ++b) {
                const SortBlock& block = list.sort[b];
                double* scratch = arena.take(sort_chunk(block, list.chunk) * (block.n_out + 2));
                if (!scratch) throw TaskFailure("the worker is out of memory");
                sort_block(list, block, scratch);
            }
            return;
        case Kind::update:
            for (std::int64_t k = step.first; k < last; ++k) run_update(list, list.update[k], partial);
            return;
        case Kind::dot:
            for (std::int64_t k = step.first; k < last; ++k) run_dot(list, list.dot[k], partial);
            return;
        case Kind::chain:
            for (std::int64_t k = step.first; k < last; ++k) run_step(list, list.step[k], partial, arena);
            return;
    }
    throw TaskFailure("unknown kind of task " + std::to_string(step.kind));
}

}  // namespace

void run_task(const TaskList& list, std::int64_t t, Arena& arena) {
    const Task& task = list.tasks[t];
    list.partial[t] = 0.0;
    run_step(list, Step{task.kind, task.first, task.count}, list.partial[t], arena);
}

}  // namespace tilewise
