// Squares of matrices that are made for one product alone: C = P P + H K - Q - R', where H has few columns. P is packed in
// panels as it is formed; both factors are read from the same panels, so that it is written once and read from cache.
#pragma once

#include <cstdint>

namespace tilewise {

// Rows of C that are made together, for which columns of H are packed, and columns of P that are.
constexpr std::int64_t square_panel_rows = 8, square_panel_cols = 12;

// What a product reads and writes besides its factors: C[n][n] of rows `ld` apart, from which Q and R' are subtracted.
struct SquareTarget {
    double* c;
    std::int64_t ld;
    const double *q, *r;
    bool add;  // to what C holds
};

// What the product after this one will ask for, to be fetched from memory in the meantime: n * n numbers, and its Q and C.
struct SquareNext {
    const double *factor, *q, *c;
    std::int64_t ld;
};

class SquareFactors {
public:
    // P of n rows and columns, and `extra` columns of H, in memory that begins at a whole cache line.
    SquareFactors(std::int64_t n, std::int64_t extra, double* memory);

    // Numbers that they take.
    static std::int64_t size(std::int64_t n, std::int64_t extra);

    // Row x of P is s + t.
    void set_sum(std::int64_t x, const double* s, const double* t);
    // Column y of H and row y of K are multiples of `left` and `right`.
    void set_multiples(std::int64_t y, double alpha, const double* left, double beta, const double* right);

    void multiply(const SquareTarget& target, const SquareNext& next) const;

private:
    void multiply_panels(const SquareTarget& target, const SquareNext& next) const;

    std::int64_t n_, extra_, depth_, left_width_, right_width_;
    bool own_kernel_;
    double *panels_, *left_;  // rows of P and K, and columns of H
};

}  // namespace tilewise
