// A matrix whose columns lie with the workers that made them, or are made again in each product.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <type_traits>
#include <vector>

#include "columns.hpp"
#include "executor.hpp"

namespace tilewise {

// Bytes in which the number of a row is kept: as few as the last one needs, since products are as fast as memory is.
constexpr std::int64_t row_bytes(std::int64_t n_rows) { return n_rows <= 1 << 16 ? 2 : n_rows <= 1 << 24 ? 3 : 4; }

// Number k of rows in `width` bytes each, the lowest byte first; of three bytes the one behind is read too.
template <int width>
std::int64_t row_at(const std::uint8_t* rows, std::int64_t k) {
    std::conditional_t<width == 2, std::uint16_t, std::uint32_t> row;
    std::memcpy(&row, rows + width * k, sizeof row);
    return width == 3 ? row & 0xffffffu : row;
}

// Elements of consecutive columns. Segments have a fixed size, so that nothing is ever copied to grow. One block holds the
// values, then the rows; it asks for huge pages, since touching small ones for the first time would take most of the time.
class Segment {
public:
    struct Column {
        std::int32_t number, length;
    };
    struct Piece {  // of the columns: where they begin, and their elements
        std::int64_t column, element;
    };
    Segment(std::int64_t capacity, std::int64_t row_bytes);

    double* values() const { return static_cast<double*>(block_.get()); }
    std::uint8_t* rows() const { return reinterpret_cast<std::uint8_t*>(values() + capacity); }
    void add(std::int64_t column, std::int64_t length);

    std::int64_t capacity = 0, used = 0;
    std::vector<Column> columns;
    std::vector<Piece> pieces;

private:
    struct Free {
        void operator()(void* block) const { std::free(block); }
    };
    std::unique_ptr<void, Free> block_;
};

// How the tasks of a run are shared, and where each leaves its times.
struct ColumnTasks {
    Schedule schedule;
    Span<std::int64_t> columns;  // of each task
    Trace* trace = nullptr;
    std::vector<std::int64_t> processors;
    std::function<bool()> interrupted;
};

class ColumnMatrix {
public:
    ColumnMatrix(const Hamiltonian& h, std::int64_t n_workers);

    std::int64_t size() const { return h_.pairing.determinants; }
    std::int64_t n_workers() const { return static_cast<std::int64_t>(workers_.size()); }
    void set_operator(const Operator& integrals);

    // A count for each of the given columns.
    void count(const Span<std::int64_t>& columns, ColumnCount* counts) const;
    void diagonal(double* out) const;
    void density(const double* x, double* out);
    void spin_squared(const double* x, std::int64_t n_vectors, double* out) const;

    // Makes the columns of all tasks. Each one goes to its worker's memory, which has `room[task]` elements for it, as long as
    // `budget` bytes last; `stored[task]` tells. `segment`: elements of a segment.
    Outcome build(const ColumnTasks& tasks, const Span<std::int64_t>& room, std::int64_t budget, std::int64_t segment, std::uint8_t* stored);

    // y = H x for vectors one after the other: of the stored columns if they are wanted, those of `direct`, and the diagonal.
    Outcome multiply(const double* x, double* y, std::int64_t n_vectors, const double* diagonal, const ColumnTasks& direct, bool with_stored);

    std::int64_t element_bytes() const { return sizeof(double) + row_bytes(size()); }
    std::vector<std::int32_t> rows(const Segment& segment, std::int64_t begin, std::int64_t count) const;
    std::int64_t elements(std::int64_t worker) const;
    std::int64_t bytes(std::int64_t worker) const;  // allocated
    const std::vector<Segment>& segments(std::int64_t worker) const { return workers_[worker].segments; }
    void clear();

private:
    struct alignas(64) Worker {
        explicit Worker(const Hamiltonian& h) : walker(h) {}
        ColumnWalker walker;
        std::vector<Segment> segments;
        std::vector<double> both;        // x and its part of y, row by row
        std::vector<std::int32_t> rows;  // of the column that is made
        std::vector<double> values;      // of one that several vectors are multiplied with
    };

    bool store(Worker& worker, std::int64_t column, std::int64_t room, std::int64_t segment, std::atomic<std::int64_t>& budget);
    void multiply_stored(const Segment& segment, std::size_t piece, double* both, std::int64_t n_vectors) const;
    void multiply_direct(Worker& worker, std::int64_t column, std::int64_t n_vectors) const;

    Hamiltonian h_;
    std::vector<Worker> workers_;
};

}  // namespace tilewise
