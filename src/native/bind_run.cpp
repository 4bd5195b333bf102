// Binds the executor: checks arrays, releases the GIL, turns outcomes into Python values.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bind_schedule.hpp"
#include "executor.hpp"
#include "tasks.hpp"

namespace nb = nanobind;
using namespace tilewise;

namespace {

using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using BellPlace = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Buffer = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableBytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class T>
Span<T> records(const nb::dict& tables, const char* key) {
    const auto array = nb::cast<Bytes>(tables[key]);
    if (array.shape(0) % sizeof(T)) throw std::invalid_argument(std::string("table ") + key + " has records of another size");
    return {reinterpret_cast<const T*>(array.data()), static_cast<std::int64_t>(array.shape(0) / sizeof(T))};
}

Bell bell_at(const BellPlace& place) {
    if (place.shape(0) != 3) throw std::invalid_argument("a bell is three numbers");
    return Bell(place.data());
}

std::vector<Bell> bells_at(const std::vector<BellPlace>& places) {
    std::vector<Bell> bells;
    for (const BellPlace& place : places) bells.push_back(bell_at(place));
    return bells;
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
    nb::class_<Gates>(m, "Gates", "Holds tasks of one run back until they are opened by another thread, which hears of all that end.")
        .def(
            "__init__",
            [](Gates* gates, std::vector<std::int64_t> first, std::vector<std::int64_t> tasks, const std::vector<std::int64_t>& group_first,
               const std::vector<std::int64_t>& group_tasks, std::optional<BellPlace> bell,
               const std::vector<BellPlace>& others) {
                new (gates) Gates(std::move(first), std::move(tasks), group_first, group_tasks,
                                  bell ? std::optional<Bell>(bell_at(*bell)) : std::nullopt, bells_at(others));
            },
            nb::arg("first"), nb::arg("tasks"), nb::arg("group_first"), nb::arg("group_tasks"), nb::arg("bell").none() = nb::none(),
            nb::arg("others") = std::vector<BellPlace>(), nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>())
        .def("open", &Gates::open, nb::arg("gates"), nb::call_guard<nb::gil_scoped_release>(), "Opens gates, each once.")
        .def("ended", &Gates::ended, nb::arg("seconds"), nb::arg("heard") = 0, nb::call_guard<nb::gil_scoped_release>(),
             "Groups of tasks that have ended since the last call; waits for some, or for the bell, this long at the most.")
        .def("is_waiting", &Gates::is_waiting, nb::call_guard<nb::gil_scoped_release>(), "Whether some worker has nothing to do.")
        .def("is_over", &Gates::is_over, nb::call_guard<nb::gil_scoped_release>(), "Whether the run has ended.")
        .def("stop", &Gates::stop, nb::call_guard<nb::gil_scoped_release>(), "Ends the run.");
    m.def(
        "ring", [](const BellPlace& place) { bell_at(place).ring(); }, nb::arg("place"), "Wakes the thread that waits at a bell.");
    m.def("use_dgemm", &use_dgemm, nb::arg("capsule"), "Sets the dgemm that all products go through.");
    m.def("product_kernels", &product_kernels, nb::arg("gemms"), nb::arg("out"),
          "The kernel of each product, as a number in `kernels`.");
    m.def("run", &run, nb::arg("tables"), nb::arg("schedule"), nb::arg("buffers"), nb::arg("partial"), nb::arg("scratch"),
          nb::arg("trace"), nb::arg("n_workers"), nb::arg("n_locks"), nb::arg("chunk"), nb::arg("arena"),
          nb::arg("processors"), nb::arg("shift") = 0.0, nb::arg("gates").none() = nb::none(), "Runs a task list; (failed task or -1, reason, counts of each worker).");
}
