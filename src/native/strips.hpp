// Products C[m, 8] = A^T[m, k] B[k, 8] of operands that are packed before, for many products with one of them.
#pragma once

#include <cstdint>

#include "processor.hpp"

namespace tilewise {

constexpr std::int64_t strip_width = 8;  // columns of C that are summed at a time,

// and rows: as many sums stay in registers.
inline std::int64_t strip_height() { return many_registers() ? 12 : 6; }

// A, given as (k, m), in strips of `strip_height()` columns: [strip][k][column].
void pack_strips(std::int64_t m, std::int64_t k, const double* a, std::int64_t lda, double* packed);
inline std::int64_t packed_strips(std::int64_t m, std::int64_t k) { return (m + strip_height() - 1) / strip_height() * strip_height() * k; }

// B is a panel (k, 8).
void strip_product(std::int64_t m, std::int64_t k, const double* strips, const double* panel, double* c, std::int64_t ldc);

}  // namespace tilewise
