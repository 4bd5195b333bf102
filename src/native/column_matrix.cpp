#include "column_matrix.hpp"

#include <algorithm>
#include <new>
#include <thread>
#include <utility>

#include "crew.hpp"
#include "pages.hpp"
#include "spin.hpp"

namespace tilewise {

namespace {

// Vectors are multiplied two at a time. `both` has x of `width` vectors and then y of them for each row in turn, so that an
// element touches one line of memory instead of one of each: y_i += H_ij x_j and y_j += H_ij x_i for the elements below the
// diagonal. Four sums, since each addition would wait for the one before it.
template <int width, int row_width>
void multiply_column(const std::uint8_t* rows, const double* values, std::int64_t n, std::int64_t column, double* both) {
    double* own = both + 2 * width * column;
    double x_j[width], sums[4][width] = {};
    std::copy_n(own, width, x_j);
    const auto element = [&](std::int64_t k, double* sum) {
        double* at = both + 2 * width * row_at<row_width>(rows, k);
        const double value = values[k];
        for (int w = 0; w < width; ++w) {
            sum[w] += value * at[w];
            at[width + w] += value * x_j[w];
        }
    };
    std::int64_t k = 0;
    for (; k + 4 <= n; k += 4) {
        element(k, sums[0]);
        element(k + 1, sums[1]);
        element(k + 2, sums[2]);
        element(k + 3, sums[3]);
    }
    for (; k < n; ++k) element(k, sums[0]);
    for (int w = 0; w < width; ++w) own[width + w] += (sums[0][w] + sums[1][w]) + (sums[2][w] + sums[3][w]);
}

// For all vectors; those from number k on that go together begin at 2 k times their length.
template <int row_width>
void multiply_column(const std::uint8_t* rows, const double* values, std::int64_t length, std::int64_t column, double* both, std::int64_t n,
                     std::int64_t n_vectors) {
    std::int64_t k = 0;
    for (; k + 2 <= n_vectors; k += 2) multiply_column<2, row_width>(rows, values, length, column, both + 2 * n * k);
    if (k < n_vectors) multiply_column<1, row_width>(rows, values, length, column, both + 2 * n * k);
}

// Calls found(width) with the bytes of a row's number as a constant.
template <class Found>
void with_width(std::int64_t row_bytes, const Found& found) {
    if (row_bytes == 2)
        found(std::integral_constant<int, 2>{});
    else if (row_bytes == 3)
        found(std::integral_constant<int, 3>{});
    else
        found(std::integral_constant<int, 4>{});
}

// The lowest bytes of each row; of three bytes the one behind is written too.
template <int width>
void pack_rows(const std::int32_t* rows, std::int64_t n, std::uint8_t* out) {
    for (std::int64_t k = 0; k < n; ++k) {
        const auto row = static_cast<std::conditional_t<width == 2, std::uint16_t, std::uint32_t>>(rows[k]);
        std::memcpy(out + width * k, &row, sizeof row);
    }
}

// Calls found(row, place in the vectors, place of x in `both`, how far behind it y is).
template <class Found>
void each_place(std::int64_t n, std::int64_t begin, std::int64_t end, std::int64_t n_vectors, const Found& found) {
    for (std::int64_t k = 0; k < n_vectors; k += 2) {
        const std::int64_t width = std::min<std::int64_t>(2, n_vectors - k);
        for (std::int64_t w = 0; w < width; ++w)
            for (std::int64_t i = begin; i < end; ++i) found(i, (k + w) * n + i, 2 * n * k + 2 * width * i + w, width);
    }
}

Outcome run_tasks(const ColumnTasks& tasks, const std::function<void(std::int64_t, std::int64_t)>& body) {
    TaskList list;
    list.tasks.size = tasks.columns.size;
    list.body = &body;
    return execute(list, tasks.schedule, Scratch{}, 0, tasks.trace, tasks.processors, tasks.interrupted);
}

template <class T>
void grow(std::vector<T>& vector, std::size_t size) {
    if (vector.size() < size) vector.resize(size);
}

// Elements of stored columns that a worker multiplies at a time: some ten microseconds.
constexpr std::int64_t piece_elements = 1 << 14;

// Where all workers meet once. `wait` is false if some never came, as `give_up` tells.
class Meeting {
public:
    explicit Meeting(std::int64_t expected) : missing_(expected) {}
    bool wait() {
        missing_.fetch_sub(1);
        for (int k = 0; missing_.load() > 0 && !given_up_.load(); ++k)
            if (k > 1000) std::this_thread::yield();
        return !given_up_.load();
    }
    void give_up() { given_up_.store(true); }

private:
    std::atomic<std::int64_t> missing_;
    std::atomic<bool> given_up_{false};
};

}  // namespace

Segment::Segment(std::int64_t size, std::int64_t row_bytes) : capacity(size) {
    const auto bytes = static_cast<std::size_t>(size * (sizeof(double) + row_bytes) + sizeof(std::uint32_t));
    const std::size_t whole = (bytes + huge_page - 1) / huge_page * huge_page;
    block_.reset(std::aligned_alloc(huge_page, whole));
    if (!block_) throw std::bad_alloc();
    choose_pages(block_.get(), whole);
}

void Segment::add(std::int64_t column, std::int64_t length) {
    if (pieces.empty() || used - pieces.back().element >= piece_elements)
        pieces.push_back({static_cast<std::int64_t>(columns.size()), used});
    columns.push_back({static_cast<std::int32_t>(column), static_cast<std::int32_t>(length)});
    used += length;
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
        const std::int64_t capacity = std::max(room, segment), bytes = capacity * element_bytes();
        if (budget.fetch_sub(bytes) < bytes) {
            budget.fetch_add(bytes);
            return false;
        }
        worker.segments.emplace_back(capacity, row_bytes(size()));  // not set to zero: its worker touches it first
    }
    Segment& last = worker.segments.back();
    grow(worker.rows, static_cast<std::size_t>(room));
    StoreSink sink{worker.rows.data(), last.values() + last.used};
    worker.walker.column(column, sink);
    with_width(row_bytes(size()), [&](auto width) { pack_rows<width>(sink.rows, sink.n, last.rows() + width * last.used); });
    last.add(column, sink.n);
    return true;
}

Outcome ColumnMatrix::build(const ColumnTasks& tasks, const Span<std::int64_t>& room, std::int64_t budget, std::int64_t segment, std::uint8_t* stored) {
    std::atomic<std::int64_t> left{budget};
    return run_tasks(tasks, [&](std::int64_t w, std::int64_t task) {
        // A column may end with a zero that is passed over: one place more than it has elements.
        stored[task] = store(workers_[w], tasks.columns[task], room[task] + 1, segment, left);
    });
}

void ColumnMatrix::multiply_stored(const Segment& segment, std::size_t piece, double* both, std::int64_t n_vectors) const {
    const Segment::Piece begin = segment.pieces[piece];
    const std::size_t end = piece + 1 < segment.pieces.size() ? segment.pieces[piece + 1].column : segment.columns.size();
    with_width(row_bytes(size()), [&](auto width) {
        const std::uint8_t* rows = segment.rows() + width * begin.element;
        const double* values = segment.values() + begin.element;
        for (std::size_t k = begin.column; k < end; ++k) {
            const Segment::Column column = segment.columns[k];
            multiply_column<width>(rows, values, column.length, column.number, both, size(), n_vectors);
            rows += width * column.length;
            values += column.length;
        }
    });
}

void ColumnMatrix::multiply_direct(Worker& worker, std::int64_t column, std::int64_t n_vectors) const {
    double* both = worker.both.data();
    if (n_vectors == 1) {
        MultiplySink sink{both, both[2 * column]};
        worker.walker.column(column, sink);
        both[2 * column + 1] += sink.sum;
        return;
    }
    const auto room = static_cast<std::size_t>(worker.walker.count(column).elements + 1);
    grow(worker.rows, room);
    grow(worker.values, room);
    StoreSink sink{worker.rows.data(), worker.values.data()};
    worker.walker.column(column, sink);
    multiply_column<4>(reinterpret_cast<const std::uint8_t*>(sink.rows), sink.values, sink.n, column, both, size(), n_vectors);
}

// Each worker multiplies what it has stored, then what is left of the others' columns: who made more of them, or is slowed
// down by another job, is helped.
Outcome ColumnMatrix::multiply(const double* x, double* y, std::int64_t n_vectors, const double* diagonal, const ColumnTasks& direct, bool with_stored) {
    const std::int64_t n = size(), p = n_workers();
    std::vector<std::vector<std::pair<const Segment*, std::size_t>>> pieces(static_cast<std::size_t>(p));
    for (std::int64_t w = 0; with_stored && w < p; ++w)
        for (const Segment& segment : workers_[w].segments)
            for (std::size_t k = 0; k < segment.pieces.size(); ++k) pieces[w].emplace_back(&segment, k);
    std::vector<std::atomic<std::size_t>> next(static_cast<std::size_t>(p));
    const auto products = [&](std::int64_t w) {
        workers_[w].both.resize(static_cast<std::size_t>(2 * n * n_vectors));
        double* both = workers_[w].both.data();
        each_place(n, 0, n, n_vectors, [&](std::int64_t, std::int64_t place, std::int64_t at, std::int64_t width) {
            both[at] = x[place];
            both[at + width] = 0.0;
        });
        for (std::int64_t v = w; v < w + p; ++v) {
            const auto& its = pieces[v % p];
            for (std::size_t k = next[v % p]++; k < its.size(); k = next[v % p]++) multiply_stored(*its[k].first, its[k].second, both, n_vectors);
        }
    };
    const auto sums = [&](std::int64_t w) {
        each_place(n, n * w / p, n * (w + 1) / p, n_vectors, [&](std::int64_t i, std::int64_t place, std::int64_t at, std::int64_t width) {
            double sum = workers_[0].both[at + width] + diagonal[i] * x[place];
            for (std::int64_t v = 1; v < p; ++v) sum += workers_[v].both[at + width];
            y[place] = sum;
        });
    };
    if (!direct.columns.size) {
        Meeting meeting(p);
        const auto both = [&](std::int64_t w) {
            products(w);
            if (meeting.wait()) sums(w);
        };
        on_crew(p, both, [&] { meeting.give_up(); });
        return {};
    }
    on_crew(p, products, [] {});
    const Outcome outcome =
        run_tasks(direct, [&](std::int64_t w, std::int64_t task) { multiply_direct(workers_[w], direct.columns[task], n_vectors); });
    on_crew(p, sums, [] {});
    return outcome;
}

std::vector<std::int32_t> ColumnMatrix::rows(const Segment& segment, std::int64_t begin, std::int64_t count) const {
    std::vector<std::int32_t> found(static_cast<std::size_t>(count));
    with_width(row_bytes(size()), [&](auto width) {
        for (std::int64_t k = 0; k < count; ++k) found[k] = static_cast<std::int32_t>(row_at<width>(segment.rows(), begin + k));
    });
    return found;
}

std::int64_t ColumnMatrix::elements(std::int64_t worker) const {
    std::int64_t sum = 0;
    for (const Segment& segment : workers_[worker].segments) sum += segment.used;
    return sum;
}

std::int64_t ColumnMatrix::bytes(std::int64_t worker) const {
    std::int64_t sum = 0;
    for (const Segment& segment : workers_[worker].segments)
        sum += segment.capacity * element_bytes() + static_cast<std::int64_t>(segment.columns.capacity() * sizeof(Segment::Column)) +
               static_cast<std::int64_t>(segment.pieces.capacity() * sizeof(Segment::Piece));
    return sum;
}

}  // namespace tilewise
