// Slabs: matrices with `slab_width` columns, which the two halves of the transformation fill from rows and write back to rows.
#pragma once

#include <cstdint>
#include <cstring>

#include "transform.hpp"

namespace tilewise {

// A few numbers, whose count the compiler knows, to a place that does not overlap theirs.
template <std::int64_t count>
inline void copy_few(const double* from, double* to) {
    std::memcpy(to, from, count * sizeof(double));
}

// slab[l][k] = rows[k][l] for k < count and l < length.
void rows_to_slab(const double* const* rows, std::int64_t count, std::int64_t length, double* slab);

// slab[l][k] = x[l, first + k] for k < count and the rows l from first + count to `last`.
void columns_to_slab(const PairMatrix& x, std::int64_t first, std::int64_t count, std::int64_t last, double* slab);

// A sum of rows of a slab, each with a weight, in pieces of 8 columns that lie `apart`.
void combine_rows(std::int64_t count, const std::int64_t* row, const double* weight, const double* slab, double* out, std::int64_t apart);

// The first `count` columns of a slab to one row each, times a factor for each row of the slab and one for each column:
// to[k][l] = row_factor[l] * column_factor[k] * slab[l][k].
void slab_to_rows(const double* slab, std::int64_t length, const double* row_factor, const double* column_factor, std::int64_t count,
                  double* const* to);

// to[x] = factor * factors[x] * from[x]
void scale_row(std::int64_t count, double factor, const double* factors, const double* from, double* to);

}  // namespace tilewise
