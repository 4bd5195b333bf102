// Sorts: gather permuted (packed, multiplied, summed) blocks, combine them, write them out.
//
// 1. A block is handled in chunks along its first row axis, so that a chunk fits the cache.
// 2. Each read is gathered into a contiguous buffer in the order of the output's axes, unless it lies in this order in long runs.
// 3. Each output adds it to its accumulator with its own coefficient.
// 4. Each accumulator is written to its rows; a triangle keeps p >= q and scales its diagonal. On a diagonal of the
//    output, each axis has a stride of its own.
#include <algorithm>

#include "lanes.hpp"
#include "sort_views.hpp"
#include "tasks.hpp"

namespace tilewise {

namespace {

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

// Adds `count` planes along the first axis to where the strides say.
void add_strided(const SortOut& out, const SortBlock& block, std::int64_t count, const double* from, double* to) {
    const int last = static_cast<int>(block.n_axes) - 1;
    std::int64_t extent[max_axes], index[max_axes] = {};
    std::copy_n(block.extent, max_axes, extent);
    extent[0] = count;
    for (bool more = true; more; from += extent[last]) {
        for (std::int64_t k = 0; k < extent[last]; ++k) to[k * out.stride[last]] += from[k];
        more = false;
        for (int axis = last - 1; axis >= 0 && !more; --axis) {
            to += out.stride[axis];
            more = ++index[axis] < extent[axis];
            if (more) continue;
            to -= out.stride[axis] * extent[axis];
            index[axis] = 0;
        }
    }
}

void write_out(const TaskList& list, const SortOut& out, const SortBlock& block, std::int64_t first, std::int64_t count,
               const double* from) {
    double* base = list.buffers[out.buffer] + out.offset;
    if (out.stride[0]) {
        add_strided(out, block, count, from, base + first * out.stride[0]);
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

// Rows of a chunk along the first axis, and the elements of each.
struct Chunk {
    std::int64_t length, rest;
};

Chunk chunk_of(const SortBlock& block, std::int64_t chunk) {
    std::int64_t rest = 1;
    for (std::int64_t axis = 1; axis < block.n_axes; ++axis) rest *= block.extent[axis];
    const std::int64_t length = block.n_axes > 0 ? block.extent[0] : 1;
    if (block.n_row_axes == 0) return {length, rest};
    return {std::clamp<std::int64_t>(chunk / std::max<std::int64_t>(rest, 1), 1, length), rest};
}

// The chunk of a block that begins at `first`.
Range range_of(const SortBlock& block, std::int64_t first, std::int64_t count) {
    Range range{};
    range.n_axes = static_cast<int>(block.n_axes);
    std::copy_n(block.extent, range.n_axes, range.extent);
    if (range.n_axes > 0) {
        range.first[0] = first;
        range.extent[0] = count;
    }
    return range;
}

// A read that lies in the order of the chunk, in runs of neighbours along the last axes.
struct Runs {
    const double* from;
    std::int64_t length;  // of a run
    int n_outer;          // axes that are walked from run to run
};

// Runs that are shorter are better gathered than added one by one.
constexpr std::int64_t shortest_run = 64;

// Without long ones, no length.
Runs runs_of(const TaskList& list, const SortRead& read, const Range& range) {
    const SortView& view = list.view[read.first_view];
    Runs runs{list.buffers[view.buffer] + view.offset, 1, range.n_axes};
    if (read.n_view != 1 || read.n_sum != 0 || view.n_pair != 0) return {nullptr, 0, 0};
    while (runs.n_outer > 0 && (view.stride[runs.n_outer - 1] == runs.length || range.extent[runs.n_outer - 1] == 1))
        runs.length *= range.extent[--runs.n_outer];
    if (runs.length < shortest_run) return {nullptr, 0, 0};
    for (int axis = 0; axis < range.n_axes; ++axis) runs.from += view.stride[axis] * range.first[axis];
    return runs;
}

// Adds the runs to each output by its coefficient; the next one is fetched meanwhile.
void add_runs(const SortBlock& block, const SortView& view, const Range& range, Runs runs, const double* coefficient, double* sums,
              std::int64_t apart, bool assign) {
    std::int64_t index[max_axes] = {};
    for (bool more = true; more; sums += runs.length) {
        const double* from = runs.from;
        more = false;
        for (int axis = runs.n_outer - 1; axis >= 0 && !more; --axis) {
            runs.from += view.stride[axis];
            more = ++index[axis] < range.extent[axis];
            if (more) continue;
            runs.from -= view.stride[axis] * range.extent[axis];
            index[axis] = 0;
        }
        for (std::int64_t x = 0; more && x < runs.length; x += per_line) __builtin_prefetch(runs.from + x);
        for (std::int64_t o = 0; o < block.n_out; ++o)
            if (assign || coefficient[o] != 0.0) add_multiple(runs.length, coefficient[o], from, sums + o * apart, assign);
    }
}

// Every read of a chunk, added to each output by its coefficient; the sums of outputs lie `apart`.
void combine_reads(const TaskList& list, const SortBlock& block, const Range& range, std::int64_t size, double* gathered,
                   double* spare, double* sums, std::int64_t apart) {
    if (block.n_read == 0) std::fill(sums, sums + block.n_out * apart, 0.0);
    for (std::int64_t r = 0; r < block.n_read; ++r) {
        const SortRead& read = list.read[block.first_read + r];
        const double* coefficient = &list.coefficients[block.first_coefficient + r * block.n_out];
        if (const Runs runs = runs_of(list, read, range); runs.length > 0) {
            add_runs(block, list.view[read.first_view], range, runs, coefficient, sums, apart, r == 0);
            continue;
        }
        gather_read(list, read, range, size, gathered, spare);
        for (std::int64_t o = 0; o < block.n_out; ++o)
            if (r == 0 || coefficient[o] != 0.0) add_multiple(size, coefficient[o], gathered, sums + o * apart, r == 0);
    }
}

}  // namespace

std::int64_t sort_chunk(const SortBlock& block, std::int64_t chunk) {
    const auto [length, rest] = chunk_of(block, chunk);
    return length * rest;
}

SortWalk sort_walk(const SortBlock& block, const SortView& view, std::int64_t chunk) {
    const Loops loops = loops_of(view, range_of(block, 0, chunk_of(block, chunk).length));
    const std::int64_t last = view.n_pair - 1;
    if (!loops.in_square && loops.inner.number < 0) return {1, 1, 0, 1, 0};
    const Axis& inner = loops.in_square ? loops.axes[view.q_axis[last]] : loops.inner;
    const Axis& second = loops.in_square ? loops.axes[view.p_axis[last]] : loops.second;
    return {inner.extent, second.extent, inner.from, inner.to, loops.in_square};
}

void sort_block(const TaskList& list, const SortBlock& block, double* scratch) {
    const auto [step, rest] = chunk_of(block, list.chunk);
    const std::int64_t length = block.n_axes > 0 ? block.extent[0] : 1, largest = step * rest;
    double* sums = scratch + 2 * largest;
    for (std::int64_t first = 0; first < length; first += step) {
        const std::int64_t count = std::min(step, length - first), size = count * rest;
        combine_reads(list, block, range_of(block, first, count), size, scratch, scratch + largest, sums, largest);
        for (std::int64_t o = 0; o < block.n_out; ++o) {
            const SortOut& out = list.out[block.first_out + o];
            if (out.buffer < 0) continue;
            if (!all_finite(size, sums + o * largest)) throw TaskFailure("the result is not finite");
            write_out(list, out, block, first, count, sums + o * largest);
        }
    }
}

void run_sorts(const TaskList& list, const Step& step, Arena& arena) {
    for (std::int64_t b = step.first; b < step.first + step.count; ++b) {
        const SortBlock& block = list.sort[b];
        double* scratch = arena.take(sort_chunk(block, list.chunk) * (block.n_out + 2));
        if (!scratch) throw TaskFailure("the worker is out of memory");
        sort_block(list, block, scratch);
    }
}

}  // namespace tilewise
