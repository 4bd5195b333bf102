// Slabs: matrices with `slab_width` columns, which the two halves of the transformation fill from rows and write back to rows.
#pragma once

#include <cstdint>

#include "transform.hpp"

namespace tilewise {

// slab[l][k] = rows[k][l] for k < count and l < length.
void rows_to_slab(const double* const* rows, std::int64_t count, std::int64_t length, double* slab);

// The first `count` columns of a slab to one row each, times a factor for each row of the slab and one for each column:
// to[k][l] = row_factor[l] * column_factor[k] * slab[l][k].
void slab_to_rows(const double* slab, std::int64_t length, const double* row_factor, const double* column_factor, std::int64_t count,
                  double* const* to);

// to[x] = factor * factors[x] * from[x]
void scale_row(std::int64_t count, double factor, const double* factors, const double* from, double* to);

}  // namespace tilewise
