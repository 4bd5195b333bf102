// Products of small matrices that are sums of several products: C[m][n] (+)= sum over segments of L[x][m]^T R[x][n].
#pragma once

#include <cstdint>

namespace tilewise {

// Columns are padded with zeros to whole vectors of this many numbers.
constexpr std::int64_t segment_lanes = 4;

inline std::int64_t padded(std::int64_t n) { return (n + segment_lanes - 1) / segment_lanes * segment_lanes; }

// Rows of both factors follow the summed index; the columns of the left one become rows of the result.
struct Segment {
    const double* left;
    std::int64_t left_ld;
    const double* right;
    std::int64_t right_ld, depth;
};

// The segments of a product; those that are subtracted come first.
struct Segments {
    const Segment* first;
    int n_negative, n;
};

// `n` is padded. Sums are kept in registers until all segments are done, so C is written once.
void segment_product(const Segments& sum, std::int64_t m, std::int64_t n, double* c, std::int64_t ldc, bool add);

}  // namespace tilewise
