// Kernels for products C[m, n] = alpha A[m, k] B[k, n] + beta C, row-major, of shapes that dgemm is slow for.
//
// Few columns: dgemm packs both operands; for a narrow right-hand side the packing of A costs as much as the
// product. Here A is streamed as it lies, and only a slice of B is packed, so that it stays in cache.
#pragma once

#include <cstdint>

namespace tilewise {

constexpr std::int64_t narrow_limit = 128;       // columns up to which this is faster than dgemm ...
constexpr std::int64_t narrow_least_rows = 8;    // ... if there are so many rows
constexpr std::int64_t narrow_least_depth = 16;  // ... and so many terms of the sum
constexpr std::int64_t narrow_rows = 24;         // rows of A at a time, over all panels of B: what 4, 6 and 8 divide
constexpr std::int64_t narrow_depth = 256;       // rows of B that are packed at a time
constexpr std::int64_t narrow_scratch = narrow_depth * (narrow_limit + 12);

// Whether this machine has the instructions of these kernels.
bool own_kernels();

// Whether it has, and the shape is one for which this pays.
bool narrow_pays(std::int64_t m, std::int64_t n, std::int64_t k);

// A as it lies: rows x depth, or transposed.
struct Left {
    const double* at = nullptr;
    std::int64_t rows = 0, depth = 0, ld = 0;
    bool transposed = false;
};

// `next` is the left operand of the product that this worker computes afterwards, if that is known: it is fetched
// from memory in the meantime.
void narrow_product(const Left& left, std::int64_t n, double alpha, const double* b, std::int64_t ldb, double beta, double* c,
                    std::int64_t ldc, double* scratch, const Left& next);

constexpr std::int64_t few_rows_limit = 12, short_sum_limit = 16;  // one of them is enough
constexpr std::int64_t strip_rows = 6, strip_cols = 8;             // of C that are summed at a time

// Products with few rows or a short sum: B is streamed once, eight columns at a time, nothing is packed.
// Element (r, k) of A lies at a[r * row_stride + k * sum_stride], so A may be transposed.
bool short_pays(std::int64_t m, std::int64_t n, std::int64_t k);

void short_product(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double* a, std::int64_t row_stride,
                   std::int64_t sum_stride, const double* b, std::int64_t ldb, double beta, double* c, std::int64_t ldc);

}  // namespace tilewise
