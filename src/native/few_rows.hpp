// Products C[m, n] = alpha A[m, k] B[k, n] + beta C, row-major, with few rows or a short sum: B is streamed once, eight
// columns at a time, nothing is packed.
#pragma once

#include <cstdint>

namespace tilewise {

constexpr std::int64_t few_rows_limit = 12, short_sum_limit = 16;  // one of them is enough
constexpr std::int64_t strip_rows = 6, strip_cols = 8;             // of C that are summed at a time

// Whether this machine has the instructions, and the shape is one for which this pays.
bool few_rows_pay(std::int64_t m, std::int64_t n, std::int64_t k);

// Element (r, k) of A lies at a[r * row_stride + k * sum_stride], so A may be transposed.
void few_rows_product(std::int64_t m, std::int64_t n, std::int64_t k, double alpha, const double* a, std::int64_t row_stride,
                      std::int64_t sum_stride, const double* b, std::int64_t ldb, double beta, double* c, std::int64_t ldc);

}  // namespace tilewise
