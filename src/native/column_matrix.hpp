// A matrix whose columns lie with the workers that made them, or are made again in each product.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <vector>

#include "columns.hpp"
#include "executor.hpp"

namespace tilewise {

// Elements of consecutive columns. Segments have a fixed size, so that nothing is ever copied to grow. One block holds the
// values, then the rows; it asks for huge pages, since touching small ones for the first time would take most of the time.
class Segment {
public:
    struct Column {
        std::int32_t number, length;
    };
    explicit Segment(std::int64_t capacity);

    double* values() const { return static_cast<double*>(block_.get()); }
    std::int32_t* rows() const { return reinterpret_cast<std::int32_t*>(values() + capacity); }

    std::int64_t capacity = 0, used = 0;
    std::vector<Column> columns;

private:
    struct Free {
        void operator()(void* block) const { std::free(block); }
    };
    std::unique_ptr<void, Free> block_;
};

constexpr std::int64_t element_bytes = sizeof(std::int32_t) + sizeof(double);

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

    std::int64_t elements(std::int64_t worker) const;
    std::int64_t bytes(std::int64_t worker) const;  // allocated
    const std::vector<Segment>& segments(std::int64_t worker) const { return workers_[worker].segments; }
    void clear();

private:
    struct alignas(64) Worker {
        explicit Worker(const Hamiltonian& h) : walker(h) {}
        ColumnWalker walker;
        std::vector<Segment> segments;
        std::vector<double> both;          // x and its part of y, row by row
        std::vector<std::int32_t> rows;    // of a column that several vectors are multiplied with
        std::vector<double> values;
    };

    bool store(Worker& worker, std::int64_t column, std::int64_t room, std::int64_t segment, std::atomic<std::int64_t>& budget);
    void multiply_stored(Worker& worker, std::int64_t n_vectors) const;
    void multiply_direct(Worker& worker, std::int64_t column, std::int64_t n_vectors) const;

    Hamiltonian h_;
    std::vector<Worker> workers_;
};

}  // namespace tilewise
