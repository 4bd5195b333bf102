// How a sort reads a tensor: the loops over a view, and what they copy in the order of the output. For sort.cpp alone.
#pragma once

#include <algorithm>
#include <cstdlib>
#include <cstdint>
#include <utility>

#include "records.hpp"

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
    std::int64_t extent, from, to;
    std::int64_t number;  // in the block
};
constexpr Axis no_axis{1, 0, 0, -1};

// Two loops, of which the inner one should be the longer or the contiguous one. What lies at `next` is copied next and
// fetched meanwhile: rows of a tensor are too far apart for the core to see by itself what comes.
template <Combine combine>
inline void plane(const Axis& outer, const Axis& inner, double factor, const double* from, double* to, const double* next) {
    const std::int64_t count = inner.extent, step = inner.from, to_step = inner.to;
    const std::int64_t apart = std::max<std::int64_t>(1, per_line / std::max<std::int64_t>(1, std::abs(step)));
    for (std::int64_t y = 0; y < outer.extent; ++y, from += outer.from, to += outer.to, next += outer.from) {
        for (std::int64_t x = 0; x < count; x += apart) __builtin_prefetch(next + x * step);
        if (step == 1 && to_step == 1)
            for (std::int64_t x = 0; x < count; ++x) put<combine>(to[x], factor * from[x]);
        else
            for (std::int64_t x = 0; x < count; ++x) put<combine>(to[x * to_step], factor * from[x * step]);
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

// The loops over a view, from the outermost to the two innermost ones.
struct Loops {
    Axis axes[max_axes];   // all of them, as the block has them
    int outer[max_axes];   // numbers of those that are walked one by one ...
    int n_outer = 0;
    Axis second = no_axis, inner = no_axis;  // ... and the plane of the innermost two, unless
    bool in_square = false;                  // these run over the last triangle
    int n_fixed = 0;                         // triangles whose (p, q) the outer loops give
};

// A bit for each axis that lies in a triangle; summed ones stand behind those of the block.
inline unsigned in_triangles(const SortView& view) {
    unsigned found = 0;
    for (int k = 0; k < view.n_pair; ++k) found |= 1u << view.p_axis[k] | 1u << view.q_axis[k];
    return found;
}

inline bool contiguous(const Axis& axis) { return axis.from == 1 && axis.to == 1; }

// The innermost loops run along axes that lie in no triangle: one that is contiguous on both sides or else the longest,
// and the longest of the others; of the two the nearer one is inside.
inline void choose_plane(const Axis* axes, int n_axes, unsigned excluded, Axis& inner, Axis& second) {
    for (int number = n_axes - 1; number >= 0; --number) {
        const Axis& axis = axes[number];
        if (excluded >> number & 1u || axis.extent == 1) continue;
        if (axis.extent > inner.extent && !contiguous(inner)) {
            second = inner;
            inner = axis;
        } else if (axis.extent > second.extent) {
            second = axis;
        }
    }
    if (second.number >= 0 && !contiguous(inner) && std::abs(second.from) < std::abs(inner.from)) std::swap(inner, second);
}

// Where every axis lies in a triangle the innermost loops run over the last one of these, if its indices are two axes.
inline bool ends_in_square(const SortView& view, const Axis& inner) {
    const std::int64_t last = view.n_pair - 1;
    return inner.number < 0 && last >= 0 && view.p_axis[last] < max_axes && view.q_axis[last] < max_axes &&
           view.p_axis[last] != view.q_axis[last];
}

inline Loops loops_of(const SortView& view, const Range& range) {
    Loops loops;
    std::int64_t size = 1;
    for (int axis = range.n_axes - 1; axis >= 0; --axis) {
        loops.axes[axis] = Axis{range.extent[axis], view.stride[axis], size, axis};
        size *= range.extent[axis];
    }
    choose_plane(loops.axes, range.n_axes, in_triangles(view), loops.inner, loops.second);
    loops.in_square = ends_in_square(view, loops.inner);
    const int last = static_cast<int>(view.n_pair) - 1;
    loops.n_fixed = loops.in_square ? last : last + 1;
    for (int axis = 0; axis < range.n_axes; ++axis) {
        const bool in_plane = axis == loops.inner.number || axis == loops.second.number;
        const bool in_square = loops.in_square && (axis == view.p_axis[last] || axis == view.q_axis[last]);
        if (!in_plane && !in_square) loops.outer[loops.n_outer++] = axis;
    }
    return loops;
}

// An element of a view, with the factor that its triangles give it.
struct Element {
    const double* from;
    double factor;
};

// Goes through the outer loops of a view: where the innermost ones begin in the tensor and in the chunk.
class Walk {
public:
    Walk(const SortView& view, const double* buffer, const Range& range, const Loops& loops, const std::int64_t* sum_index,
         int n_sum, double* target)
        : view_(view), range_(range), loops_(loops), base_(buffer + view.offset), target_(target) {
        for (int s = 0; s < n_sum; ++s) begin(max_axes + s, sum_index[s]);
        for (int axis = 0; axis < range.n_axes; ++axis) begin(axis, range.first[axis]);
    }

    double* target() const { return target_; }

    Element element() const {
        Element found{base_, 1.0};
        for (int k = 0; k < loops_.n_fixed; ++k)
            found.from += view_.unit[k] * triangle(index_[view_.p_axis[k]], index_[view_.q_axis[k]], view_.sign[k], found.factor);
        return found;
    }

    // To the next step; behind the last one everything begins anew: false.
    bool advance() {
        for (int k = loops_.n_outer - 1; k >= 0; --k) {
            const Axis& axis = loops_.axes[loops_.outer[k]];
            base_ += axis.from;
            target_ += axis.to;
            if (++index_[axis.number] < range_.first[axis.number] + axis.extent) return true;
            base_ -= axis.from * axis.extent;
            target_ -= axis.to * axis.extent;
            index_[axis.number] = range_.first[axis.number];
        }
        return false;
    }

private:
    void begin(int axis, std::int64_t first) {
        index_[axis] = first;
        base_ += view_.stride[axis] * first;
    }

    const SortView& view_;
    const Range& range_;
    const Loops& loops_;
    const double* base_;
    double* target_;
    std::int64_t index_[max_axes + max_sums] = {};
};

// The innermost loops.
template <Combine combine>
inline void copy_innermost(const SortView& view, const Range& range, const Loops& loops, const Element& here, double* to,
                           const double* next) {
    if (loops.in_square) {
        const std::int64_t last = view.n_pair - 1, p = view.p_axis[last], q = view.q_axis[last];
        square<combine>(loops.axes[p], range.first[p], loops.axes[q], range.first[q], view.unit[last], view.sign[last],
                        here.factor, here.from, to);
    } else if (here.factor == 0.0) {
        constexpr double zero = 0.0;
        const Axis &second = loops.second, &inner = loops.inner;
        plane<combine>({second.extent, 0, second.to, -1}, {inner.extent, 0, inner.to, -1}, 1.0, &zero, to, &zero);
    } else {
        plane<combine>(loops.second, loops.inner, here.factor, here.from, to, next);
    }
}

// A view, in the order of the output. What comes next is known before it is needed, to be fetched meanwhile. It is kept out
// of its callers, which would leave too few registers for the innermost loop.
template <Combine combine>
[[gnu::noinline]] void gather(const SortView& view, double* const* buffers, const Range& range, const std::int64_t* sum_index, int n_sum,
            double* target) {
    const Loops loops = loops_of(view, range);
    Walk walk(view, buffers[view.buffer], range, loops, sum_index, n_sum, target);
    Element next = walk.element();
    for (bool more = true; more;) {
        const Element here = next;
        double* to = walk.target();
        more = walk.advance();
        next = walk.element();
        copy_innermost<combine>(view, range, loops, here, to, next.from);
    }
}

}  // namespace

}  // namespace tilewise
