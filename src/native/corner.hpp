// A corner of a three-dimensional array, with its axes in another order.
#pragma once

#include <cstdint>

namespace tilewise {

// Element (x, y, z) lies at at[x * step[0] + y * step[1] + z * step[2]]; one of the steps is 1.
struct Corner {
    const double* at;
    std::int64_t step[3];
};

// to[x][y][z] = from(x, y, z); rows of `to` are `width` apart.
void copy_corner(const Corner& from, const std::int64_t (&extent)[3], double* to, std::int64_t width);

// to[r][z] of rows `to_step` apart, and from[z][r] of rows `from_step` apart.
struct Turned {
    const double* from;
    std::int64_t from_step;
    double* to;
    std::int64_t to_step;
};

// to[r][z] += from[z][r]; what will be written next, `ahead` numbers farther on, is fetched if that is not 0.
void add_turned(const Turned& part, std::int64_t rows, std::int64_t cols, std::int64_t ahead);

}  // namespace tilewise
