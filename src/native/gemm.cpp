// Matrix products: by a kernel of our own for shapes that dgemm is slow for, else through dgemm.
#include <climits>

#include "few_rows.hpp"
#include "streamed.hpp"
#include "tasks.hpp"

namespace tilewise {

namespace {

DgemmPointer dgemm = nullptr;

void check_buffer(const TaskList& list, std::int64_t buffer, std::int64_t first, std::int64_t last) {
    if (buffer < 0 || buffer >= list.n_buffers || first < 0 || last > list.lengths[buffer])
        throw TaskFailure("a record points outside of its buffer");
}

void check_bounds(const TaskList& list, const Gemm& r) {
    check_buffer(list, r.c, r.c_offset, r.c_offset + (r.m - 1) * r.ldc + r.n);
    if (r.k <= 0) return;
    const auto a_rows = r.transpose_a ? r.k : r.m, a_cols = r.transpose_a ? r.m : r.k;
    const auto b_rows = r.transpose_b ? r.n : r.k, b_cols = r.transpose_b ? r.k : r.n;
    check_buffer(list, r.a, r.a_offset, r.a_offset + (a_rows - 1) * r.lda + a_cols);
    check_buffer(list, r.b, r.b_offset, r.b_offset + (b_rows - 1) * r.ldb + b_cols);
}

Left left_of(const Gemm& r, double* const* buffers) {
    return Left{buffers[r.a] + r.a_offset, r.m, r.k, r.lda, r.transpose_a != 0};
}

void check_dimensions(const Gemm& r) {
    const std::int64_t largest = INT_MAX;
    if (r.m > largest || r.n > largest || r.k > largest || r.lda > largest || r.ldb > largest || r.ldc > largest)
        throw TaskFailure("a matrix dimension is larger than BLAS can take");
}

void scale(const Gemm& r, double* c) {
    for (std::int64_t i = 0; i < r.m; ++i)
        for (std::int64_t j = 0; j < r.n; ++j) c[i * r.ldc + j] = r.beta == 0.0 ? 0.0 : r.beta * c[i * r.ldc + j];
}

// A row-major product is the column-major product of the transposes in the other order.
void call_dgemm(const Gemm& r, double* const* buffers, double* c) {
    char ta = r.transpose_b ? 'T' : 'N', tb = r.transpose_a ? 'T' : 'N';
    int m = static_cast<int>(r.n), n = static_cast<int>(r.m), k = static_cast<int>(r.k);
    int lda = static_cast<int>(r.ldb), ldb = static_cast<int>(r.lda), ldc = static_cast<int>(r.ldc);
    double alpha = r.alpha, beta = r.beta;
    dgemm(&ta, &tb, &m, &n, &k, &alpha, buffers[r.b] + r.b_offset, &lda, buffers[r.a] + r.a_offset, &ldb, &beta, c, &ldc);
}

}  // namespace

void add_product(std::int64_t m, std::int64_t n, std::int64_t k, const double* a, std::int64_t lda, const double* b,
                 std::int64_t ldb, double* c, std::int64_t ldc, bool transpose_a) {
    if (!dgemm) throw TaskFailure("no dgemm has been set");
    double* buffers[] = {const_cast<double*>(a), const_cast<double*>(b), c};
    const Gemm record{0, 1, 2, transpose_a, 0, m, n, k, 0, lda, 0, ldb, 0, ldc, 1.0, 1.0};
    check_dimensions(record);
    call_dgemm(record, buffers, c);
}

void set_dgemm(DgemmPointer pointer) { dgemm = pointer; }

Kernel kernel_of(const Gemm& r) {
    if (r.transpose_b) return Kernel::dgemm;
    if (few_rows_pay(r.m, r.n, r.k)) return Kernel::few_rows;
    return streamed_pays(r.m, r.n, r.k) ? Kernel::streamed : Kernel::dgemm;
}

void gemm(const Gemm& r, double* const* buffers, Arena& arena, const Gemm* next) {
    if (r.m <= 0 || r.n <= 0) return;
    double* c = buffers[r.c] + r.c_offset;
    if (r.k <= 0) return scale(r, c);
    if (!dgemm) throw TaskFailure("no dgemm has been set");
    check_dimensions(r);
    switch (arena.size >= streamed_scratch ? kernel_of(r) : Kernel::dgemm) {
        case Kernel::dgemm:
            return call_dgemm(r, buffers, c);
        case Kernel::few_rows:
            return few_rows_product(r.m, r.n, r.k, r.alpha, buffers[r.a] + r.a_offset, r.transpose_a ? 1 : r.lda,
                                    r.transpose_a ? r.lda : 1, buffers[r.b] + r.b_offset, r.ldb, r.beta, c, r.ldc);
        case Kernel::streamed:
            return streamed_product(left_of(r, buffers), r.n, r.alpha, buffers[r.b] + r.b_offset, r.ldb, r.beta, c, r.ldc,
                                    arena.take(streamed_scratch), next && next->k > 0 ? left_of(*next, buffers) : Left{});
    }
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

}  // namespace tilewise
