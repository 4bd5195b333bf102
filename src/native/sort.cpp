// Sorts: gather permuted (packed, multiplied, summed) blocks, combine them, write them out.
//
// 1. A block is handled in chunks along its first row axis, so that a chunk fits the cache.
// 2. Each read is gathered into a contiguous buffer in the order of the output's axes.
// 3. Each output adds it to its accumulator with its own coefficient.
// 4. Each accumulator is written to its rows; a triangle keeps p >= q and scales its diagonal.
#include <algorithm>
#include <cmath>

#include "tasks.hpp"

namespace tilewise {

namespace {

constexpr double sqrt_two = 1.4142135623730950488;
constexpr double sqrt_half = 0.70710678118654752440;

struct Range {
    int n_axes;
    std::int64_t first[max_axes], extent[max_axes];
};

// Position of (p, q) in a packed triangle, and the factor of the element there.
inline std::int64_t triangle(std::int64_t p, std::int64_t q, std::int64_t sign, double& factor) {
    if (p == q) {
        factor *= sign > 0 ? sqrt_two : 0.0;
        return sign > 0 ? p * (p + 1) / 2 + q : 0;
    }
    if (p < q) {
        std::swap(p, q);
        factor *= static_cast<double>(sign);
    }
    return p * (p + sign) / 2 + q;
}

enum class Combine { assign, multiply };

template <Combine combine>
inline void put(double& place, double value) {
    if constexpr (combine == Combine::assign)
        place = value;
    else
        place *= value;
}

// Walks over a view in the order of the output. The innermost loop runs along the longest axis that lies in no
// triangle (tiles of occupied orbitals are often only a few orbitals long).
template <Combine combine>
void gather(const SortView& view, double* const* buffers, const Range& range, const std::int64_t* sum_index, int n_sum,
            double* target) {
    const int n = range.n_axes;
    const double* base = buffers[view.buffer] + view.offset;
    std::int64_t index[max_axes + max_sums] = {}, step[max_axes] = {}, target_step[max_axes] = {};
    bool in_pair[max_axes + max_sums] = {};
    for (int s = 0; s < n_sum; ++s) {
        index[max_axes + s] = sum_index[s];
        base += view.stride[max_axes + s] * sum_index[s];
    }
    for (int k = 0; k < view.n_pair; ++k) in_pair[view.p_axis[k]] = in_pair[view.q_axis[k]] = true;
    std::int64_t size = 1;
    int inner = -1;
    for (int axis = n - 1; axis >= 0; --axis) {
        target_step[axis] = size;
        size *= range.extent[axis];
        step[axis] = view.stride[axis];
        index[axis] = range.first[axis];
        base += step[axis] * range.first[axis];
        if (!in_pair[axis] && (inner < 0 || range.extent[axis] > range.extent[inner])) inner = axis;
    }
    const bool pair_inside = inner < 0 && n > 0;  // every axis lies in a triangle
    if (pair_inside) inner = n - 1;
    const std::int64_t run = inner >= 0 ? range.extent[inner] : 1;
    const std::int64_t from_step = inner >= 0 ? step[inner] : 0, to_step = inner >= 0 ? target_step[inner] : 0;
    for (;;) {
        if (!pair_inside) {
            double factor = 1.0;
            std::int64_t offset = 0;
            for (int k = 0; k < view.n_pair; ++k)
                offset += view.unit[k] * triangle(index[view.p_axis[k]], index[view.q_axis[k]], view.sign[k], factor);
            const double* from = base + offset;
            if (factor == 1.0 && from_step == 1 && to_step == 1)
                for (std::int64_t x = 0; x < run; ++x) put<combine>(target[x], from[x]);
            else
                for (std::int64_t x = 0; x < run; ++x) put<combine>(target[x * to_step], factor * from[x * from_step]);
        } else {
            for (std::int64_t x = 0; x < run; ++x) {
                index[inner] = range.first[inner] + x;
                double factor = 1.0;
                std::int64_t at = x * from_step;
                for (int k = 0; k < view.n_pair; ++k)
                    at += view.unit[k] * triangle(index[view.p_axis[k]], index[view.q_axis[k]], view.sign[k], factor);
                put<combine>(target[x * to_step], factor == 0.0 ? 0.0 : factor * base[at]);
            }
        }
        int axis = n - 1;
        for (; axis >= 0; --axis) {
            if (axis == inner) continue;
            base += step[axis];
            target += target_step[axis];
            if (++index[axis] < range.first[axis] + range.extent[axis]) break;
            base -= step[axis] * range.extent[axis];
            target -= target_step[axis] * range.extent[axis];
            index[axis] = range.first[axis];
        }
        if (axis < 0) return;
    }
}

// One read: the product of its views, summed over its summed axes, into `target`.
void gather_read(const TaskList& list, const SortRead& read, const Range& range, std::int64_t size, double* target,
                 double* spare) {
    const int n_sum = static_cast<int>(read.n_sum);
    std::int64_t index[max_sums] = {};
    for (bool first = true;; first = false) {
        double* into = first ? target : spare;
        gather<Combine::assign>(list.view[read.first_view], list.buffers, range, index, n_sum, into);
        for (std::int64_t v = 1; v < read.n_view; ++v)
            gather<Combine::multiply>(list.view[read.first_view + v], list.buffers, range, index, n_sum, into);
        if (!first)
            for (std::int64_t x = 0; x < size; ++x) target[x] += spare[x];
        int axis = n_sum - 1;
        for (; axis >= 0; --axis) {
            if (++index[axis] < read.sum_extent[axis]) break;
            index[axis] = 0;
        }
        if (axis < 0) return;
    }
}

void write_row(const SortOut& out, const SortBlock& block, double factor, const double* from, double* to, double& check) {
    const auto store = [&](double& place, double value) {
        place = out.accumulate ? place + value : value;
        check += value * 0.0;
    };
    if (!out.col_triangle) {
        std::int64_t cols = 1;
        for (std::int64_t axis = block.n_row_axes; axis < block.n_axes; ++axis) cols *= block.extent[axis];
        for (std::int64_t c = 0; c < cols; ++c) store(to[c], factor * from[c]);
        return;
    }
    const std::int64_t n = block.extent[block.n_row_axes];
    const bool diagonal = out.col_triangle > 0;
    for (std::int64_t p = 0; p < n; ++p) {
        for (std::int64_t q = 0; q < p; ++q) store(*to++, factor * from[p * n + q]);
        if (diagonal) store(*to++, factor * sqrt_half * from[p * n + p]);
    }
}

void write_out(const TaskList& list, const SortOut& out, const SortBlock& block, std::int64_t first, std::int64_t count,
               const double* from) {
    double* base = list.buffers[out.buffer] + out.offset;
    std::int64_t cols = 1, inner_rows = 1;
    for (std::int64_t axis = block.n_row_axes; axis < block.n_axes; ++axis) cols *= block.extent[axis];
    for (std::int64_t axis = 1; axis < block.n_row_axes; ++axis) inner_rows *= block.extent[axis];
    double check = 0.0;
    if (block.n_row_axes == 0) {
        write_row(out, block, 1.0, from, base, check);
    } else {
        for (std::int64_t p = first; p < first + count; ++p) {
            for (std::int64_t r = 0; r < inner_rows; ++r, from += cols) {
                std::int64_t row = p * inner_rows + r;
                double factor = 1.0;
                if (out.row_triangle) {
                    if (r > p || (r == p && out.row_triangle < 0)) continue;
                    row = p * (p + out.row_triangle) / 2 + r;
                    if (r == p) factor = sqrt_half;
                }
                write_row(out, block, factor, from, base + row * out.ld, check);
            }
        }
    }
    if (!(check == 0.0)) throw TaskFailure("the result is not finite");
}

}  // namespace

std::int64_t sort_chunk(const SortBlock& block, std::int64_t chunk) {
    std::int64_t rest = 1;
    for (std::int64_t axis = 1; axis < block.n_axes; ++axis) rest *= block.extent[axis];
    const std::int64_t length = block.n_axes > 0 ? block.extent[0] : 1;
    if (block.n_row_axes == 0) return length * rest;
    return std::clamp<std::int64_t>(chunk / std::max<std::int64_t>(rest, 1), 1, length) * rest;
}

void sort_block(const TaskList& list, const SortBlock& block, double* scratch) {
    Range range{};
    range.n_axes = static_cast<int>(block.n_axes);
    std::int64_t rest = 1;
    for (int axis = 0; axis < range.n_axes; ++axis) {
        range.extent[axis] = block.extent[axis];
        if (axis > 0) rest *= block.extent[axis];
    }
    const std::int64_t length = block.n_axes > 0 ? block.extent[0] : 1;
    const std::int64_t largest = sort_chunk(block, list.chunk), step = largest / rest;
    double* gathered = scratch;
    double* spare = scratch + largest;
    double* sums = scratch + 2 * largest;
    for (std::int64_t first = 0; first < length; first += step) {
        const std::int64_t count = std::min(step, length - first), size = count * rest;
        if (block.n_axes > 0) {
            range.first[0] = first;
            range.extent[0] = count;
        }
        std::fill(sums, sums + block.n_out * largest, 0.0);
        for (std::int64_t r = 0; r < block.n_read; ++r) {
            gather_read(list, list.read[block.first_read + r], range, size, gathered, spare);
            const double* coefficient = &list.coefficients[block.first_coefficient + r * block.n_out];
            for (std::int64_t o = 0; o < block.n_out; ++o) {
                const double c = coefficient[o];
                if (c == 0.0) continue;
                double* sum = sums + o * largest;
                for (std::int64_t x = 0; x < size; ++x) sum[x] += c * gathered[x];
            }
        }
        for (std::int64_t o = 0; o < block.n_out; ++o) {
            const SortOut& out = list.out[block.first_out + o];
            if (out.buffer >= 0) write_out(list, out, block, first, count, sums + o * largest);
        }
    }
}

}  // namespace tilewise
