// Sorts: gather permuted (packed, multiplied, summed) blocks, combine them, write them out.
//
// 1. A block is handled in chunks along its first row axis, so that a chunk fits the cache.
// 2. Each read is gathered into a contiguous buffer in the order of the output's axes.
// 3. Each output adds it to its accumulator with its own coefficient.
// 4. Each accumulator is written to its rows; a triangle keeps p >= q and scales its diagonal. On a diagonal of the
//    output, each axis has a stride of its own.
#include <algorithm>
#include <cmath>

#include "lanes.hpp"
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

constexpr std::int64_t per_line = 8;  // numbers in a line of the cache

// An axis of a loop: how far apart neighbours lie in the tensor, and in the chunk.
struct Axis {
    std::int64_t extent = 1, from = 0, to = 0;
    int number = -1;  // in the block
};

// Two loops, of which the inner one should be the longer or the contiguous one. What lies at `next` is copied next and
// fetched meanwhile: rows of a tensor are too far apart for the core to see by itself what comes.
template <Combine combine>
inline void plane(const Axis& outer, const Axis& inner, double factor, const double* from, double* to, const double* next) {
    const std::int64_t apart = std::max<std::int64_t>(1, per_line / std::max<std::int64_t>(1, std::abs(inner.from)));
    for (std::int64_t y = 0; y < outer.extent; ++y, from += outer.from, to += outer.to, next += outer.from) {
        for (std::int64_t x = 0; x < inner.extent; x += apart) __builtin_prefetch(next + x * inner.from);
        if (inner.from == 1 && inner.to == 1)
            for (std::int64_t x = 0; x < inner.extent; ++x) put<combine>(to[x], factor * from[x]);
        else
            for (std::int64_t x = 0; x < inner.extent; ++x) put<combine>(to[x * inner.to], factor * from[x * inner.from]);
    }
}

// All (p, q) of a triangle that lies at `from`, from the first ones on.
template <Combine combine>
inline void square(const Axis& p_axis, std::int64_t p_first, const Axis& q_axis, std::int64_t q_first, std::int64_t unit,
                   std::int64_t sign, double factor, const double* from, double* to) {
    const std::int64_t q_last = q_first + q_axis.extent;
    for (std::int64_t p = p_first; p < p_first + p_axis.extent; ++p, to += p_axis.to) {
        double* place = to;
        std::int64_t q = q_first;
        const double* row = from + unit * (p * (p + sign) / 2);
        for (; q < std::min(p, q_last); ++q, place += q_axis.to) put<combine>(*place, factor * row[unit * q]);
        if (q == p && q < q_last) {
            put<combine>(*place, sign > 0 ? factor * sqrt_two * row[unit * p] : 0.0);
            ++q, place += q_axis.to;
        }
        const double* column = from + unit * p;
        const double exchanged = factor * static_cast<double>(sign);
        for (; q < q_last; ++q, place += q_axis.to) put<combine>(*place, exchanged * column[unit * (q * (q + sign) / 2)]);
    }
}

// Walks over a view in the order of the output. The two innermost loops run along axes that lie in no triangle: one that
// is contiguous on both sides or else the longest, and the longest of the others. Where every axis lies in a triangle
// they run over the last one of these, if its indices are two axes.
template <Combine combine>
void gather(const SortView& view, double* const* buffers, const Range& range, const std::int64_t* sum_index, int n_sum,
            double* target) {
    const double* base = buffers[view.buffer] + view.offset;
    std::int64_t index[max_axes + max_sums] = {};
    bool in_pair[max_axes + max_sums] = {};
    for (int s = 0; s < n_sum; ++s) {
        index[max_axes + s] = sum_index[s];
        base += view.stride[max_axes + s] * sum_index[s];
    }
    for (int k = 0; k < view.n_pair; ++k) in_pair[view.p_axis[k]] = in_pair[view.q_axis[k]] = true;
    const auto contiguous = [](const Axis& axis) { return axis.from == 1 && axis.to == 1; };
    Axis axes[max_axes], second, inner;
    std::int64_t size = 1;
    for (int axis = range.n_axes - 1; axis >= 0; --axis) {
        axes[axis] = Axis{range.extent[axis], view.stride[axis], size, axis};
        size *= range.extent[axis];
        index[axis] = range.first[axis];
        base += view.stride[axis] * range.first[axis];
        if (in_pair[axis] || range.extent[axis] == 1) continue;
        if (range.extent[axis] > inner.extent && !contiguous(inner)) {
            second = inner;
            inner = axes[axis];
        } else if (range.extent[axis] > second.extent) {
            second = axes[axis];
        }
    }
    if (second.number >= 0 && !contiguous(inner) && std::abs(second.from) < std::abs(inner.from)) std::swap(inner, second);
    const int last = static_cast<int>(view.n_pair) - 1;
    const bool in_square = inner.number < 0 && last >= 0 && view.p_axis[last] < max_axes && view.q_axis[last] < max_axes &&
                           view.p_axis[last] != view.q_axis[last];
    const int n_fixed = in_square ? last : last + 1;  // triangles whose (p, q) the outer loops give
    Axis outer[max_axes];
    int n_outer = 0;
    for (int axis = 0; axis < range.n_axes; ++axis) {
        const bool mine = axis == inner.number || axis == second.number;
        if (!mine && !(in_square && (axis == view.p_axis[last] || axis == view.q_axis[last]))) outer[n_outer++] = axes[axis];
    }
    const auto place = [&](double& factor) {
        std::int64_t offset = 0;
        factor = 1.0;
        for (int k = 0; k < n_fixed; ++k)
            offset += view.unit[k] * triangle(index[view.p_axis[k]], index[view.q_axis[k]], view.sign[k], factor);
        return base + offset;
    };
    double factor, next_factor;
    const double* next = place(next_factor);
    for (bool done = false; !done;) {
        const double* from = next;
        double* to = target;
        factor = next_factor;
        int k = n_outer - 1;
        for (; k >= 0; --k) {
            const Axis& axis = outer[k];
            base += axis.from;
            target += axis.to;
            if (++index[axis.number] < range.first[axis.number] + axis.extent) break;
            base -= axis.from * axis.extent;
            target -= axis.to * axis.extent;
            index[axis.number] = range.first[axis.number];
        }
        done = k < 0;
        next = place(next_factor);
        if (in_square) {
            const std::int64_t p = view.p_axis[last], q = view.q_axis[last];
            square<combine>(axes[p], range.first[p], axes[q], range.first[q], view.unit[last], view.sign[last], factor, from, to);
        } else if (factor == 0.0) {
            constexpr double zero = 0.0;
            plane<combine>({second.extent, 0, second.to}, {inner.extent, 0, inner.to}, 1.0, &zero, to, &zero);
        } else {
            plane<combine>(second, inner, factor, from, to, next);
        }
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

// `count` numbers, or the triangle p >= q of a square of them.
void write_row(const SortOut& out, std::int64_t count, std::int64_t width, double factor, const double* from, double* to) {
    if (!out.col_triangle) {
        add_multiple(count, factor, from, to, !out.accumulate);
        return;
    }
    for (std::int64_t p = 0; p < width; ++p, from += width) {
        if (out.accumulate)
            for (std::int64_t q = 0; q < p; ++q) to[q] += factor * from[q];
        else
            for (std::int64_t q = 0; q < p; ++q) to[q] = factor * from[q];
        to += p;
        if (out.col_triangle < 0) continue;
        *to = (out.accumulate ? *to : 0.0) + factor * sqrt_half * from[p];
        ++to;
    }
}

// Adds `count` planes along an axis to where the strides say; what follows them.
const double* add_strided(const SortOut& out, const SortBlock& block, std::int64_t axis, std::int64_t count,
                          const double* from, double* to) {
    if (axis + 1 == block.n_axes) {
        for (std::int64_t k = 0; k < count; ++k) to[k * out.stride[axis]] += from[k];
        return from + count;
    }
    for (std::int64_t k = 0; k < count; ++k, to += out.stride[axis])
        from = add_strided(out, block, axis + 1, block.extent[axis + 1], from, to);
    return from;
}

void write_out(const TaskList& list, const SortOut& out, const SortBlock& block, std::int64_t first, std::int64_t count,
               const double* from) {
    double* base = list.buffers[out.buffer] + out.offset;
    if (out.stride[0]) {
        add_strided(out, block, 0, count, from, base + first * out.stride[0]);
        return;
    }
    std::int64_t cols = 1, inner_rows = 1;
    for (std::int64_t axis = block.n_row_axes; axis < block.n_axes; ++axis) cols *= block.extent[axis];
    for (std::int64_t axis = 1; axis < block.n_row_axes; ++axis) inner_rows *= block.extent[axis];
    const std::int64_t width = block.n_row_axes < block.n_axes ? block.extent[block.n_row_axes] : 1;
    if (block.n_row_axes == 0) {
        write_row(out, cols, width, 1.0, from, base);
        return;
    }
    for (std::int64_t p = first; p < first + count; ++p) {
        for (std::int64_t r = 0; r < inner_rows; ++r, from += cols) {
            std::int64_t row = p * inner_rows + r;
            double factor = 1.0;
            if (out.row_triangle) {
                if (r > p || (r == p && out.row_triangle < 0)) continue;
                row = p * (p + out.row_triangle) / 2 + r;
                if (r == p) factor = sqrt_half;
            }
            write_row(out, cols, width, factor, from, base + row * out.ld);
        }
    }
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
        if (block.n_read == 0) std::fill(sums, sums + block.n_out * largest, 0.0);
        for (std::int64_t r = 0; r < block.n_read; ++r) {
            gather_read(list, list.read[block.first_read + r], range, size, gathered, spare);
            const double* coefficient = &list.coefficients[block.first_coefficient + r * block.n_out];
            for (std::int64_t o = 0; o < block.n_out; ++o) {
                if (r == 0 || coefficient[o] != 0.0)
                    add_multiple(size, coefficient[o], gathered, sums + o * largest, r == 0);
            }
        }
        for (std::int64_t o = 0; o < block.n_out; ++o) {
            const SortOut& out = list.out[block.first_out + o];
            if (out.buffer < 0) continue;
            if (!all_finite(size, sums + o * largest)) throw TaskFailure("the result is not finite");
            write_out(list, out, block, first, count, sums + o * largest);
        }
    }
}

}  // namespace tilewise
