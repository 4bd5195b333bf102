// Binds the executor: checks arrays, releases the GIL, turns outcomes into Python values.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind_schedule.hpp"
#include "carrier.hpp"
#include "executor.hpp"
#include "tasks.hpp"

namespace nb = nanobind;
using namespace tilewise;

namespace {

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using BoxPlace = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Buffer = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableBytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
Span<T> records(const nb::dict& tables, const char* key) {
    const auto array = nb::cast<Bytes>(tables[key]);
    if (array.shape(0) % sizeof(T)) throw std::invalid_argument(std::string("table ") + key + " has records of another size");
    return {reinterpret_cast<const T*>(array.data()), static_cast<std::int64_t>(array.shape(0) / sizeof(T))};
}

using Table = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// Elements of one of several arrays.
double* elements_at(const std::vector<Buffer>& arrays, std::int64_t number, std::int64_t first, std::int64_t count) {
    const Buffer& array = arrays.at(static_cast<std::size_t>(number));
    if (first < 0 || count < 0 || first + count > static_cast<std::int64_t>(array.shape(0)))
        throw std::invalid_argument("a strip lies outside of its tensor");
    return array.data() + first;
}

void need_columns(const Table& table, std::size_t count) {
    if (table.shape(1) != count) throw std::invalid_argument("a table of strips has other columns");
}

// Rows of (source, transfer, theirs, offset, ours, offset, elements, gate, group, whether it is told).
std::vector<Inbound> inbound_of(const Table& table, const std::vector<Buffer>& theirs, const std::vector<Buffer>& ours) {
    need_columns(table, 10);
    std::vector<Inbound> found;
    for (std::size_t k = 0; k < table.shape(0); ++k) {
        const std::int64_t* row = table.data() + 10 * k;
        found.push_back({row[0], row[1], elements_at(theirs, row[2], row[3], row[6]), elements_at(ours, row[4], row[5], row[6]), row[6],
                         row[7], row[8], row[9] != 0});
    }
    return found;
}

// Rows of (group, gate), and of (outbound, target, transfer).
std::vector<Outbound> outbound_of(const Table& table, const Table& ways) {
    need_columns(table, 2);
    need_columns(ways, 3);
    std::vector<Outbound> found;
    for (std::size_t k = 0; k < table.shape(0); ++k) found.push_back({table.data()[2 * k], table.data()[2 * k + 1], {}});
    for (std::size_t k = 0; k < ways.shape(0); ++k) {
        const std::int64_t* row = ways.data() + 3 * k;
        found.at(static_cast<std::size_t>(row[0])).ways.push_back({row[1], row[2]});
    }
    return found;
}

std::vector<Box> boxes_of(const std::vector<BoxPlace>& places) {
    std::vector<Box> boxes;
    for (const BoxPlace& place : places) {
        if (static_cast<std::int64_t>(place.shape(0)) < Box::first_mark) throw std::invalid_argument("a box is too short for its bell");
        boxes.push_back({place.data(), static_cast<std::int64_t>(place.shape(0))});
    }
    return boxes;
}

void use_dgemm(nb::capsule capsule) {
    set_dgemm(reinterpret_cast<DgemmPointer>(PyCapsule_GetPointer(capsule.ptr(), PyCapsule_GetName(capsule.ptr()))));
}

nb::tuple run(const nb::dict& tables, const nb::dict& schedule_tables, const std::vector<Buffer>& buffers, Buffer partial,
              Buffer scratch, MutableBytes trace, std::int64_t n_workers, std::int64_t n_locks, std::int64_t chunk,
              std::int64_t arena, const std::vector<std::int64_t>& processors, double shift, Gates* gates) {
    TaskList list;
    list.tasks = records<Task>(tables, "task");
    list.gemm = records<Gemm>(tables, "gemm");
    list.sort = records<SortBlock>(tables, "sort");
    list.out = records<SortOut>(tables, "out");
    list.read = records<SortRead>(tables, "read");
    list.view = records<SortView>(tables, "view");
    list.update = records<Update>(tables, "update");
    list.dot = records<Dot>(tables, "dot");
    list.step = records<Step>(tables, "chain");
    list.triples = records<Triples>(tables, "triples");
    list.tile_triples = records<TileTriple>(tables, "tile_triple");
    list.triples_space = records<TriplesSpace>(tables, "triples_space");
    list.triples_numbers = integers(tables, "triples_numbers");
    list.coefficients = reals(tables, "coefficients");
    list.locks = integers(tables, "locks");
    std::vector<double*> pointers;
    std::vector<std::int64_t> lengths;
    for (const auto& buffer : buffers) {
        pointers.push_back(buffer.data());
        lengths.push_back(static_cast<std::int64_t>(buffer.shape(0)));
    }
    pointers.push_back(nullptr);
    lengths.push_back(arena);
    list.arena = arena;
    list.buffers = pointers.data();
    list.lengths = lengths.data();
    list.n_buffers = static_cast<std::int64_t>(pointers.size());
    list.partial = partial.data();
    list.chunk = chunk;
    list.shift = shift;
    if (static_cast<std::int64_t>(partial.shape(0)) < list.tasks.size ||
        static_cast<std::int64_t>(trace.shape(0)) < list.tasks.size * static_cast<std::int64_t>(sizeof(Trace)))
        throw std::invalid_argument("partial and trace need an entry for each task");

    const Schedule schedule = read_schedule(schedule_tables, n_workers);
    if (gates && schedule.n_needed.size != list.tasks.size) throw std::invalid_argument("gates need counts of what each task waits for");
    if (schedule.n_needed.size && (schedule.n_needed.size != list.tasks.size || schedule.first_successor.size != list.tasks.size + 1))
        throw std::invalid_argument("the schedule is for other tasks");
    check_ready_queues(schedule, list.tasks.size);
    if (static_cast<std::int64_t>(scratch.shape(0)) < arena * n_workers)
        throw std::invalid_argument("the scratch memory is smaller than the arenas of the workers");
    if (!processors.empty() && static_cast<std::int64_t>(processors.size()) != n_workers)
        throw std::invalid_argument("one processor is needed for each worker");
    const Scratch memory{scratch.data(), static_cast<std::int64_t>(scratch.shape(0)) / n_workers};
    const auto interrupted = [] {
        const nb::gil_scoped_acquire acquire;
        return PyErr_CheckSignals() != 0;
    };
    Outcome outcome;
    {
        const nb::gil_scoped_release release;
        outcome = execute(list, schedule, memory, n_locks, reinterpret_cast<Trace*>(trace.data()), processors, interrupted, gates);
    }
    if (outcome.interrupted) throw nb::python_error();
    nb::list counts;
    for (const WorkerCount& w : outcome.workers)
        counts.append(nb::make_tuple(w.counter_calls, w.steals, w.counter_nanoseconds, w.most_memory, w.allocations));
    return nb::make_tuple(outcome.failed_task, outcome.reason, counts);
}

void product_kernels(const Bytes& gemms, nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu> out) {
    const auto count = gemms.shape(0) / sizeof(Gemm);
    if (gemms.shape(0) % sizeof(Gemm) || out.shape(0) != count)
        throw std::invalid_argument("whole records are needed, and a place for each");
    const auto* first = reinterpret_cast<const Gemm*>(gemms.data());
    for (std::size_t g = 0; g < count; ++g) out.data()[g] = static_cast<std::int64_t>(kernel_of(first[g]));
}

}  // namespace

void bind_run(nb::module_& m) {
    using List = std::vector<std::int64_t>;
    using nogil = nb::call_guard<nb::gil_scoped_release>;
    nb::class_<Gates>(m, "Gates", "Holds tasks of one run back until they are opened by another thread, which hears of all that end.")
        .def(nb::init<List, List, const List&, const List&>(), nb::arg("first"), nb::arg("tasks"), nb::arg("group_first"),
             nb::arg("group_tasks"))
        .def("open", &Gates::open, nb::arg("gates"), nogil(), "Opens gates, each once.")
        .def("ended", &Gates::ended, nb::arg("seconds"), nogil(),
             "Groups of tasks that have ended since the last call; waits for some, this long at the most.")
        .def("is_waiting", &Gates::is_waiting, nogil(), "Whether some worker has nothing to do.")
        .def("is_over", &Gates::is_over, nogil(), "Whether the run has ended.")
        .def("stop", &Gates::stop, nogil(), "Ends the run.");
    nb::class_<Carrier, Gates>(m, "Carrier", "Gates of a run whose workers take strips out of the memory of other ranks of the node.")
        .def(
            "__init__",
            [](Carrier* carrier, List first, List tasks, const List& group_first, const List& group_tasks, const std::vector<BoxPlace>& boxes,
               std::int64_t rank, std::int64_t run, const Table& inbound, const std::vector<Buffer>& theirs, const std::vector<Buffer>& ours,
               const Table& outbound, const Table& ways) {
                new (carrier) Carrier(std::move(first), std::move(tasks), group_first, group_tasks, boxes_of(boxes), rank, run,
                                      inbound_of(inbound, theirs, ours), outbound_of(outbound, ways));
            },
            nb::arg("first"), nb::arg("tasks"), nb::arg("group_first"), nb::arg("group_tasks"), nb::arg("boxes"), nb::arg("rank"),
            nb::arg("run"), nb::arg("inbound"), nb::arg("theirs"), nb::arg("ours"), nb::arg("outbound"), nb::arg("ways"),
            nb::keep_alive<1, 6>(), nb::keep_alive<1, 10>(), nb::keep_alive<1, 11>())
        .def("start", &Carrier::start, nogil(), "Tells other ranks of all that needs no task.")
        .def("watch", &Carrier::watch, nb::arg("seconds"), nogil(),
             "Waits for the end of the run, this long at the most, and tells whether it has come.")
        .def_prop_ro("gets", &Carrier::gets, "Strips that were taken.")
        .def_prop_ro("bytes", &Carrier::bytes, "Their bytes.")
        .def_prop_ro("told", &Carrier::told, "How often other ranks were told that a strip is ready, or has been taken.")
        .def_prop_ro("spans", &Carrier::spans, "(begin, end) of the spans in which strips were taken, in nanoseconds of the clock.");
    m.attr("box_start") = Box::first_mark;
    m.def("use_dgemm", &use_dgemm, nb::arg("capsule"), "Sets the dgemm that all products go through.");
    m.def("product_kernels", &product_kernels, nb::arg("gemms"), nb::arg("out"),
          "The kernel of each product, as a number in `kernels`.");
    m.def("run", &run, nb::arg("tables"), nb::arg("schedule"), nb::arg("buffers"), nb::arg("partial"), nb::arg("scratch"),
          nb::arg("trace"), nb::arg("n_workers"), nb::arg("n_locks"), nb::arg("chunk"), nb::arg("arena"),
          nb::arg("processors"), nb::arg("shift") = 0.0, nb::arg("gates").none() = nb::none(), "Runs a task list; (failed task or -1, reason, counts of each worker).");
}
