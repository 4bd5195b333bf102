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

// How C[m][n] is cut into tiles whose sums stay in registers until all segments are done, so that C is written once; `n` is
// padded. Products of one shape share it.
class SegmentTiles {
public:
    SegmentTiles(std::int64_t m, std::int64_t n);

    void product(const Segments& sum, double* c, std::int64_t ldc, bool add) const {
        if (n_tiles_ == 0) return plain(sum, c, ldc, add);
        for (int t = 0; t < n_tiles_; ++t) tiles_[t].kernel(sum, tiles_[t].row, tiles_[t].col, c, ldc, add);
    }

private:
    using Kernel = void (*)(const Segments&, std::int64_t, std::int64_t, double*, std::int64_t, bool);
    struct Tile {
        Kernel kernel;
        std::int64_t row, col;
    };
    static constexpr int most_tiles = 24;  // of 32 by 32 numbers, four by twelve at a time

    template <bool many>
    void cut(std::int64_t m, std::int64_t n);
    // What any processor can do.
    void plain(const Segments& sum, double* c, std::int64_t ldc, bool add) const;

    std::int64_t m_, n_;
    int n_tiles_ = 0;
    Tile tiles_[most_tiles];
};

}  // namespace tilewise
