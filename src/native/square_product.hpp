// Products of square matrices that are made for one product alone: C = L^T R - Q - R', in panels that are packed as the
// factors are formed, so that each is written once and read from cache.
#pragma once

#include <cstdint>

namespace tilewise {

// Columns of the left factor, which are rows of C, and of the right one, that are packed together.
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
    const double *factor = nullptr, *q = nullptr, *c = nullptr;
    std::int64_t ld = 0;
};

class SquareFactors {
public:
    // Factors of `depth` rows and n columns, in memory that begins at a whole cache line.
    SquareFactors(std::int64_t n, std::int64_t depth, double* memory);

    // Numbers that they take.
    static std::int64_t size(std::int64_t n, std::int64_t depth);

    // Row x of the left factor is s + left, that of the right one s + right.
    void set_sums(std::int64_t x, const double* s, const double* left, const double* right);
    // They are multiples of `left` and `right`.
    void set_multiples(std::int64_t x, double alpha, const double* left, double beta, const double* right);

    void multiply(const SquareTarget& target, const SquareNext& next) const;

private:
    void multiply_panels(const SquareTarget& target, const SquareNext& next) const;

    std::int64_t n_, depth_, left_width_, right_width_;
    bool own_kernel_;
    double *left_, *right_;
};

}  // namespace tilewise
