#include "column_matrix.hpp"

#include <algorithm>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "crew.hpp"
#include "spin.hpp"

namespace tilewise {

namespace {

// y_i += H_ij x_j and y_j += H_ij x_i for the elements below the diagonal. Four sums, since each addition would wait for the
// one before it.
inline void multiply_column(const std::int32_t* rows, const double* values, std::int64_t n, double x_j, const double* x, double* y, double& y_j) {
    double sums[4] = {0.0, 0.0, 0.0, 0.0};
    const auto element = [&](std::int64_t k, double& sum) {
        const std::int32_t row = rows[k];
        sum += values[k] * x[row];
        y[row] += values[k] * x_j;
    };
    std::int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        element(k, sums[0]);
        element(k + 1, sums[1]);
        element(k + 2, sums[2]);
        element(k + 3, sums[3]);
    }
    for (; k < n; ++k) element(k, sums[0]);
    y_j += (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

Outcome run_tasks(const ColumnTasks& tasks, const std::function<void(std::int64_t, std::int64_t)>& body) {
    TaskList list;
    list.tasks.size = tasks.columns.size;
    list.body = &body;
    return execute(list, tasks.schedule, Scratch{}, 0, tasks.trace, tasks.processors, tasks.interrupted);
}

constexpr std::size_t huge_page = std::size_t{1} << 21;

}  // namespace

Segment::Segment(std::int64_t size) : capacity(size) {
    const auto bytes = static_cast<std::size_t>(size * element_bytes);
    const std::size_t whole = (bytes + huge_page - 1) / huge_page * huge_page;
    block_.reset(std::aligned_alloc(huge_page, whole));
    if (!block_) throw std::bad_alloc();
#if defined(__linux__)
    if (bytes >= huge_page) madvise(block_.get(), whole, MADV_HUGEPAGE);  // a wish: nothing depends on it
#endif
}

ColumnMatrix::ColumnMatrix(const Hamiltonian& h, std::int64_t n_workers) : h_(h) {
    workers_.reserve(static_cast<std::size_t>(n_workers));
    for (std::int64_t w = 0; w < n_workers; ++w) workers_.emplace_back(h_);
}

void ColumnMatrix::set_operator(const Operator& integrals) {
    h_.integrals = integrals;
    for (Worker& worker : workers_) worker.walker.forget();
}

void ColumnMatrix::clear() {
    for (Worker& worker : workers_) worker.segments.clear();
}

void ColumnMatrix::count(const Span<std::int64_t>& columns, ColumnCount* counts) const {
    Hamiltonian structure = h_;
    structure.integrals = Operator{};
    constexpr std::int64_t block = 1024;
    hand_out(n_workers(), (columns.size + block - 1) / block, [&] {
        return [&, walker = ColumnWalker(structure)](std::int64_t number) mutable {
            for (std::int64_t k = number * block; k < std::min(columns.size, (number + 1) * block); ++k)
                counts[k] = walker.count(columns[k]);
        };
    });
}

void ColumnMatrix::diagonal(double* out) const {
    constexpr std::int64_t block = 4096;
    hand_out(n_workers(), (size() + block - 1) / block, [&] {
        return [&, walker = ColumnWalker(h_)](std::int64_t number) mutable {
            for (std::int64_t j = number * block; j < std::min(size(), (number + 1) * block); ++j) out[j] = walker.diagonal(j);
        };
    });
}

void ColumnMatrix::density(const double* x, double* out) {
    for (std::int64_t j = 0; j < size(); ++j) workers_[0].walker.add_density(j, x, out);
}

void ColumnMatrix::spin_squared(const double* x, std::int64_t n_vectors, double* out) const {
    tilewise::spin_squared(h_, n_workers(), x, n_vectors, out);
}

bool ColumnMatrix::store(Worker& worker, std::int64_t column, std::int64_t room, std::int64_t segment, std::atomic<std::int64_t>& budget) {
    if (worker.segments.empty() || worker.segments.back().capacity - worker.segments.back().used < room) {
        const std::int64_t capacity = std::max(room, segment), bytes = capacity * element_bytes;
        if (budget.fetch_sub(bytes) < bytes) {
            budget.fetch_add(bytes);
            return false;
        }
        worker.segments.emplace_back(capacity);  // not set to zero: its worker touches it first
    }
    Segment& last = worker.segments.back();
    StoreSink sink{last.rows() + last.used, last.values() + last.used};
    worker.walker.column(column, sink);
    last.columns.push_back({static_cast<std::int32_t>(column), static_cast<std::int32_t>(sink.n)});
    last.used += sink.n;
    return true;
}

Outcome ColumnMatrix::build(const ColumnTasks& tasks, const Span<std::int64_t>& room, std::int64_t budget, std::int64_t segment, std::uint8_t* stored) {
    std::atomic<std::int64_t> left{budget};
    return run_tasks(tasks, [&](std::int64_t w, std::int64_t task) {
        // A column may end with a zero that is passed over: one place more than it has elements.
        stored[task] = store(workers_[w], tasks.columns[task], room[task] + 1, segment, left);
    });
}

void ColumnMatrix::multiply_stored(std::int64_t w, const double* x, double* y, std::int64_t n_vectors) const {
    const std::int64_t n = size();
    for (const Segment& segment : workers_[w].segments) {
        const std::int32_t* rows = segment.rows();
        const double* values = segment.values();
        for (const Segment::Column& column : segment.columns) {
            for (std::int64_t k = 0; k < n_vectors; ++k)
                multiply_column(rows, values, column.length, x[k * n + column.number], x + k * n, y + k * n, y[k * n + column.number]);
            rows += column.length;
            values += column.length;
        }
    }
}

void ColumnMatrix::multiply_direct(Worker& worker, std::int64_t column, const double* x, double* y, std::int64_t n_vectors) {
    const std::int64_t n = size();
    if (n_vectors == 1) {
        MultiplySink sink{x, y, x[column]};
        worker.walker.column(column, sink);
        y[column] += sink.sum;
        return;
    }
    const auto room = static_cast<std::size_t>(worker.walker.count(column).elements + 1);
    if (worker.rows.size() < room) worker.rows.resize(room), worker.values.resize(room);
    StoreSink sink{worker.rows.data(), worker.values.data()};
    worker.walker.column(column, sink);
    for (std::int64_t k = 0; k < n_vectors; ++k)
        multiply_column(sink.rows, sink.values, sink.n, x[k * n + column], x + k * n, y + k * n, y[k * n + column]);
}

Outcome ColumnMatrix::multiply(const double* x, double* y, std::int64_t n_vectors, const double* diagonal, const ColumnTasks& direct, bool with_stored) {
    const std::int64_t n = size(), length = n * n_vectors, p = n_workers();
    on_crew(
        p,
        [&](std::int64_t w) {
            if (w > 0) workers_[w].product.resize(static_cast<std::size_t>(length));
            std::fill_n(product(w, y), length, 0.0);
            if (with_stored) multiply_stored(w, x, product(w, y), n_vectors);
        },
        [] {});
    Outcome outcome;
    if (direct.columns.size)
        outcome = run_tasks(direct, [&](std::int64_t w, std::int64_t task) {
            multiply_direct(workers_[w], direct.columns[task], x, product(w, y), n_vectors);
        });
    on_crew(
        p,
        [&](std::int64_t w) {
            const std::int64_t begin = n * w / p, end = n * (w + 1) / p;
            for (std::int64_t k = 0; k < length; k += n) {
                for (std::int64_t i = begin; i < end; ++i) y[k + i] += diagonal[i] * x[k + i];
                for (std::int64_t v = 1; v < p; ++v) {
                    const double* part = workers_[v].product.data() + k;
                    for (std::int64_t i = begin; i < end; ++i) y[k + i] += part[i];
                }
            }
        },
        [] {});
    return outcome;
}

std::int64_t ColumnMatrix::elements(std::int64_t worker) const {
    std::int64_t sum = 0;
    for (const Segment& segment : workers_[worker].segments) sum += segment.used;
    return sum;
}

std::int64_t ColumnMatrix::bytes(std::int64_t worker) const {
    std::int64_t sum = 0;
    for (const Segment& segment : workers_[worker].segments)
        sum += segment.capacity * element_bytes + static_cast<std::int64_t>(segment.columns.capacity() * sizeof(Segment::Column));
    return sum;
}

}  // namespace tilewise
