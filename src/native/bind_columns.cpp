// Binds strings and columns: checks arrays, keeps them alive, releases the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "bind_schedule.hpp"
#include "column_matrix.hpp"
#include "strings.hpp"

namespace nb = nanobind;
using namespace tilewise;

namespace {

template <class T>
using Array = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Result = nb::ndarray<nb::numpy, T, nb::ndim<1>>;

template <class T>
Span<T> span(const Array<const T>& array) {
    return {array.data(), static_cast<std::int64_t>(array.shape(0))};
}

template <class T>
Span<T> table(const nb::dict& tables, const char* key) {
    return span<T>(nb::cast<Array<const T>>(tables[key]));
}

void require(bool good, const char* text) {
    if (!good) throw std::invalid_argument(text);
}

// An array that owns what a vector held.
template <class To, class From>
Result<To> given(std::vector<From>&& values) {
    static_assert(sizeof(From) % sizeof(To) == 0);
    auto* kept = new std::vector<From>(std::move(values));
    const nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<From>*>(p); });
    return Result<To>(reinterpret_cast<To*>(kept->data()), {kept->size() * (sizeof(From) / sizeof(To))}, owner);
}

Strings read_strings(const Array<const std::uint8_t>& occupied, const Array<const std::int32_t>& class_of,
                     const Array<const std::int32_t>& numbers, std::int64_t n_electrons, std::int64_t n_classes, std::int64_t n_orbitals) {
    Strings s;
    s.count = static_cast<std::int64_t>(class_of.shape(0));
    s.electrons = n_electrons;
    s.orbitals = n_orbitals;
    s.classes = n_classes;
    s.occupied = span<std::uint8_t>(occupied);
    s.class_of = span<std::int32_t>(class_of);
    require(n_electrons >= 0 && s.occupied.size == s.count * n_electrons, "each string needs as many orbitals as electrons");
    require(n_orbitals <= most_orbitals, "there are too many orbitals");
    require(static_cast<std::int64_t>(numbers.shape(0)) == n_orbitals * n_orbitals, "each pair of orbitals needs a number");
    require(std::all_of(s.occupied.data, s.occupied.data + s.occupied.size, [&](std::uint8_t p) { return p < n_orbitals; }),
            "a string has an orbital that does not exist");
    require(std::is_sorted(s.class_of.data, s.class_of.data + s.count) &&
                (s.count == 0 || (s.class_of[0] >= 0 && s.class_of[s.count - 1] < n_classes)),
            "strings must be sorted by class");
    return s;
}

nb::tuple bound_near(const Array<const std::uint8_t>& occupied, const Array<const std::int32_t>& class_of,
                     const Array<const std::int32_t>& hop, std::int64_t n_electrons, std::int64_t n_classes, std::int64_t n_orbitals,
                     std::int64_t n_workers) {
    Strings s = read_strings(occupied, class_of, hop, n_electrons, n_classes, n_orbitals);
    s.hop = span<std::int32_t>(hop);
    NearLists lists;
    {
        const nb::gil_scoped_release release;
        lists = near_lists(s, n_workers);
    }
    return nb::make_tuple(given<std::int64_t>(std::move(lists.first)), given<std::int32_t>(std::move(lists.of_class)),
                          given<std::uint32_t>(std::move(lists.near)));
}

nb::tuple bound_far(const Array<const std::uint8_t>& occupied, const Array<const std::int32_t>& class_of,
                    const Array<const std::int32_t>& two_orbitals, std::int64_t n_electrons, std::int64_t n_classes, std::int64_t n_orbitals) {
    Strings s = read_strings(occupied, class_of, two_orbitals, n_electrons, n_classes, n_orbitals);
    s.two_orbitals = span<std::int32_t>(two_orbitals);
    FarLists lists;
    {
        const nb::gil_scoped_release release;
        lists = far_lists(s);
    }
    return nb::make_tuple(given<std::int32_t>(std::move(lists.place)), given<std::uint32_t>(std::move(lists.far)));
}

Span<Neighbour> neighbours(const nb::dict& tables, const char* key) {
    const Span<std::uint32_t> words = table<std::uint32_t>(tables, key);
    return {reinterpret_cast<const Neighbour*>(words.data), words.size / 2};
}

Side read_side(const nb::dict& tables) {
    Side side;
    side.occupied = table<std::uint8_t>(tables, "occupied");
    side.class_of = table<std::int32_t>(tables, "class_of");
    side.label_end = table<std::int32_t>(tables, "label_end");
    side.near_first = table<std::int64_t>(tables, "near_first");
    side.near_class = table<std::int32_t>(tables, "near_class");
    side.near = neighbours(tables, "near");
    side.far_place = table<std::int32_t>(tables, "far_place");
    side.far = neighbours(tables, "far");
    side.count = side.class_of.size;
    side.classes = side.label_end.size;
    side.electrons = side.count ? side.occupied.size / side.count : 0;
    require(side.near_first.size == side.count + 1 && side.near_class.size == side.count * (side.classes + 1) &&
                side.near.size == side.near_first[side.count] && side.far_place.size == side.count * side.pairs(),
            "the lists are those of other strings");
    return side;
}

Pairing read_pairing(const nb::dict& tables, const Side& alpha, const Side& beta) {
    Pairing p;
    p.first = table<std::int64_t>(tables, "first");
    p.beta = table<std::int32_t>(tables, "beta");
    p.shift = table<std::int64_t>(tables, "shift");
    p.range_first = table<std::int32_t>(tables, "range_first");
    p.range_begin = table<std::int32_t>(tables, "range_begin");
    p.range_end = table<std::int32_t>(tables, "range_end");
    p.partner = table<std::int32_t>(tables, "partner");
    p.class_first = table<std::int64_t>(tables, "class_first");
    p.determinants = p.beta.size;
    require(p.first.size == alpha.count + 1 && p.first[alpha.count] == p.determinants && p.determinants <= no_string,
            "the determinants are those of other strings");
    require(p.is_list() ? p.partner.size == alpha.classes
                        : p.shift.size == alpha.classes * beta.classes && p.range_first.size == alpha.classes + 1 &&
                              p.class_first.size == beta.classes + 1,
            "the classes are those of other strings");
    return p;
}

Operator read_operator(const nb::dict& tables) {
    Operator op;
    op.hop = table<std::int32_t>(tables, "hop");
    op.v = table<double>(tables, "v");
    op.w = table<double>(tables, "w");
    op.h = table<double>(tables, "h");
    op.j = table<double>(tables, "j");
    op.jk = table<double>(tables, "jk");
    op.v_row = table<std::int64_t>(tables, "v_row");
    op.w_row = table<std::int64_t>(tables, "w_row");
    op.orbitals = nb::cast<std::int64_t>(tables["orbitals"]);
    op.constant = nb::cast<double>(tables["constant"]);
    require(op.hop.size == op.orbitals * op.orbitals && op.j.size == op.h.size * op.orbitals && op.jk.size == op.j.size,
            "the integrals are those of other orbitals");
    return op;
}

// Keeps the arrays that the matrix points into.
struct BoundMatrix {
    BoundMatrix(nb::dict alpha_tables, nb::dict beta_tables, nb::dict pairing_tables, std::int64_t n_workers)
        : alpha(alpha_tables), beta(beta_tables), pairing(pairing_tables) {
        Hamiltonian h;
        h.alpha = read_side(alpha);
        h.beta = read_side(beta);
        h.pairing = read_pairing(pairing, h.alpha, h.beta);
        require(n_workers > 0, "at least one worker is needed");
        matrix = std::make_unique<ColumnMatrix>(h, n_workers);
    }
    nb::dict alpha, beta, pairing, integrals;
    std::unique_ptr<ColumnMatrix> matrix;
};

const auto interrupted = [] {
    const nb::gil_scoped_acquire acquire;
    return PyErr_CheckSignals() != 0;
};

ColumnTasks read_tasks(const BoundMatrix& m, const nb::dict& schedule, const Array<const std::int64_t>& columns,
                       const Array<std::uint8_t>& trace, const std::vector<std::int64_t>& processors) {
    ColumnTasks tasks;
    tasks.schedule = read_schedule(schedule, m.matrix->n_workers());
    tasks.columns = span<std::int64_t>(columns);
    tasks.trace = reinterpret_cast<Trace*>(trace.data());
    tasks.processors = processors;
    tasks.interrupted = interrupted;
    require(static_cast<std::int64_t>(trace.shape(0)) == tasks.columns.size * static_cast<std::int64_t>(sizeof(Trace)),
            "the trace needs a record for each task");
    require(!tasks.schedule.n_needed.size || tasks.schedule.n_needed.size == tasks.columns.size, "the schedule is for other tasks");
    require(std::all_of(tasks.columns.data, tasks.columns.data + tasks.columns.size,
                        [&](std::int64_t j) { return 0 <= j && j < m.matrix->size(); }),
            "a task has a column that does not exist");
    return tasks;
}

nb::tuple told(const Outcome& outcome) {
    if (outcome.interrupted) throw nb::python_error();
    nb::list counts;
    for (const WorkerCount& w : outcome.workers)
        counts.append(nb::make_tuple(w.counter_calls, w.steals, w.counter_nanoseconds, w.most_memory, w.allocations));
    return nb::make_tuple(outcome.failed_task, outcome.reason, counts);
}

Result<std::int64_t> count(const BoundMatrix& m, const Array<const std::int64_t>& columns) {
    std::vector<ColumnCount> counts(columns.shape(0));
    {
        const nb::gil_scoped_release release;
        m.matrix->count(span<std::int64_t>(columns), counts.data());
    }
    return given<std::int64_t>(std::move(counts));
}

nb::tuple build(BoundMatrix& m, const nb::dict& schedule, const Array<const std::int64_t>& columns, const Array<const std::int64_t>& room,
                std::int64_t budget, std::int64_t segment, Array<std::uint8_t> stored, const Array<std::uint8_t>& trace,
                const std::vector<std::int64_t>& processors) {
    const ColumnTasks tasks = read_tasks(m, schedule, columns, trace, processors);
    require(room.shape(0) == columns.shape(0) && stored.shape(0) == columns.shape(0), "each column needs its room");
    require(m.integrals.size() > 0, "there are no integrals yet");
    Outcome outcome;
    {
        const nb::gil_scoped_release release;
        outcome = m.matrix->build(tasks, span<std::int64_t>(room), budget, segment, stored.data());
    }
    return told(outcome);
}

nb::tuple multiply(BoundMatrix& m, const Array<const double>& x, Array<double> y, const Array<const double>& diagonal, const nb::dict& schedule,
                   const Array<const std::int64_t>& columns, const Array<std::uint8_t>& trace, const std::vector<std::int64_t>& processors,
                   bool with_stored) {
    const ColumnTasks tasks = read_tasks(m, schedule, columns, trace, processors);
    const auto n = static_cast<std::size_t>(m.matrix->size());
    require(diagonal.shape(0) == n && x.shape(0) == y.shape(0) && x.shape(0) % n == 0, "the vectors have another length");
    require(m.integrals.size() > 0, "there are no integrals yet");
    Outcome outcome;
    {
        const nb::gil_scoped_release release;
        outcome = m.matrix->multiply(x.data(), y.data(), static_cast<std::int64_t>(x.shape(0) / n), diagonal.data(), tasks, with_stored);
    }
    return told(outcome);
}

nb::list stored_columns(const BoundMatrix& m, std::int64_t worker) {
    nb::list all;
    for (const Segment& segment : m.matrix->segments(worker)) {
        std::int64_t at = 0;
        for (const Segment::Column& column : segment.columns) {
            std::vector<std::int32_t> rows = m.matrix->rows(segment, at, column.length);
            std::vector<double> values(segment.values() + at, segment.values() + at + column.length);
            all.append(nb::make_tuple(column.number, given<std::int32_t>(std::move(rows)), given<double>(std::move(values))));
            at += column.length;
        }
    }
    return all;
}

}  // namespace

void bind_columns(nb::module_& m) {
    m.def("near_lists", &bound_near, nb::arg("occupied"), nb::arg("class_of"), nb::arg("hop"), nb::arg("n_electrons"), nb::arg("n_classes"),
          nb::arg("n_orbitals"), nb::arg("n_workers"), "Strings one orbital apart: (first, of_class, pairs of string and code).");
    m.def("far_lists", &bound_far, nb::arg("occupied"), nb::arg("class_of"), nb::arg("two_orbitals"), nb::arg("n_electrons"),
          nb::arg("n_classes"), nb::arg("n_orbitals"), "Strings two orbitals apart: (place, pairs of string and code).");
    nb::list names;
    for (const char* name : column_count_names) names.append(name);
    m.attr("column_counts") = nb::tuple(names);
    nb::class_<BoundMatrix>(m, "ColumnMatrix", "A sparse symmetric matrix by columns, which lie with the workers that made them.")
        .def(nb::init<nb::dict, nb::dict, nb::dict, std::int64_t>(), nb::arg("alpha"), nb::arg("beta"), nb::arg("pairing"), nb::arg("n_workers"))
        .def("set_operator",
             [](BoundMatrix& b, nb::dict tables) {
                 b.matrix->set_operator(read_operator(tables));
                 b.integrals = tables;
             })
        .def("count", &count, nb::arg("columns"))
        .def("diagonal",
             [](const BoundMatrix& b) {
                 require(b.integrals.size() > 0, "there are no integrals yet");
                 std::vector<double> out(static_cast<std::size_t>(b.matrix->size()));
                 b.matrix->diagonal(out.data());
                 return given<double>(std::move(out));
             })
        .def("density",
             [](BoundMatrix& b, const Array<const double>& x, std::int64_t n_pairs) {
                 require(x.shape(0) == static_cast<std::size_t>(b.matrix->size()) && b.integrals.size() > 0, "the vector has another length");
                 std::vector<double> out(static_cast<std::size_t>(n_pairs), 0.0);
                 b.matrix->density(x.data(), out.data());
                 return given<double>(std::move(out));
             })
        .def("spin_squared",
             [](const BoundMatrix& b, const Array<const double>& x) {
                 const auto n = static_cast<std::size_t>(b.matrix->size());
                 require(x.shape(0) % n == 0 && b.integrals.size() > 0, "the vectors have another length");
                 std::vector<double> out(x.shape(0) / n);
                 {
                     const nb::gil_scoped_release release;
                     b.matrix->spin_squared(x.data(), static_cast<std::int64_t>(out.size()), out.data());
                 }
                 return given<double>(std::move(out));
             })
        .def("build", &build, nb::arg("schedule"), nb::arg("columns"), nb::arg("room"), nb::arg("budget"), nb::arg("segment"), nb::arg("stored"),
             nb::arg("trace"), nb::arg("processors"))
        .def("multiply", &multiply, nb::arg("x"), nb::arg("y"), nb::arg("diagonal"), nb::arg("schedule"), nb::arg("columns"), nb::arg("trace"),
             nb::arg("processors"), nb::arg("with_stored"))
        .def("elements", [](const BoundMatrix& b, std::int64_t worker) { return b.matrix->elements(worker); })
        .def("bytes", [](const BoundMatrix& b, std::int64_t worker) { return b.matrix->bytes(worker); })
        .def("columns", &stored_columns)
        .def("clear", [](BoundMatrix& b) { b.matrix->clear(); });
}
