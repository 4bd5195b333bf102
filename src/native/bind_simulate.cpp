// Binds the simulator: checks arrays, releases the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>

#include "bind_schedule.hpp"
#include "simulate.hpp"

namespace nb = nanobind;
using namespace tilewise;

namespace {

using MutableBytes = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<double, nb::shape<-1, 7>, nb::c_contig, nb::device::cpu>;

double number(const nb::dict& tables, const char* key) { return nb::cast<double>(tables[key]); }

// The table gets a row per worker: busy, counter and communication seconds, counter calls, steals, messages,
// activations.
// The ends of the phases are returned, or the makespan alone for a run by data flow.
std::vector<double> simulate_schedule(const nb::dict& task_tables, const nb::dict& schedule_tables, const nb::dict& machine_tables,
                         MutableBytes trace, Table table) {
    const auto n_workers = static_cast<std::int64_t>(table.shape(0));
    const SimulatedTasks tasks{reals(task_tables, "seconds"),   integers(task_tables, "first_get"),
                               integers(task_tables, "puts"),   reals(task_tables, "bytes_got"),
                               reals(task_tables, "bytes_put"), reals(task_tables, "place")};
    const Schedule schedule = read_schedule(schedule_tables, n_workers);
    SimulatedMachine machine;
    machine.speed = reals(machine_tables, "speed");
    machine.node = integers(machine_tables, "node");
    machine.first_load = integers(machine_tables, "first_load");
    machine.load_from = reals(machine_tables, "load_from");
    machine.load_to = reals(machine_tables, "load_to");
    machine.load_jobs = reals(machine_tables, "load_jobs");
    machine.drift = number(machine_tables, "drift");
    machine.stretch = number(machine_tables, "stretch");
    machine.seed = nb::cast<std::int64_t>(machine_tables["seed"]);
    machine.latency = number(machine_tables, "latency");
    machine.bandwidth = number(machine_tables, "bandwidth");
    machine.links = nb::cast<bool>(machine_tables["links"]);
    machine.link_buffers = nb::cast<std::int64_t>(machine_tables["link_buffers"]);
    machine.link_resend = number(machine_tables, "link_resend");
    machine.in_flight = nb::cast<std::int64_t>(machine_tables["in_flight"]);
    machine.counter_service = number(machine_tables, "counter_service");
    machine.counter_latency = number(machine_tables, "counter_latency");
    machine.counter_shared = number(machine_tables, "counter_shared");
    machine.counter_buffers = nb::cast<std::int64_t>(machine_tables["counter_buffers"]);
    machine.counter_resend = number(machine_tables, "counter_resend");
    machine.ready_service = number(machine_tables, "ready_service");
    machine.ready_latency = number(machine_tables, "ready_latency");
    machine.ready_activation = number(machine_tables, "ready_activation");
    machine.barrier = number(machine_tables, "barrier");
    machine.prefetch = nb::cast<std::int64_t>(machine_tables["prefetch"]);
    machine.overlap = nb::cast<bool>(machine_tables["overlap"]);

    const std::int64_t n = tasks.seconds.size;
    if (tasks.bytes_got.size != n || tasks.bytes_put.size != n || tasks.first_get.size != n + 1 || tasks.puts.size != n ||
        static_cast<std::int64_t>(trace.shape(0)) != n * static_cast<std::int64_t>(sizeof(Trace)))
        throw std::invalid_argument("seconds, messages, bytes and trace need an entry for each task");
    if (tasks.place.size != 0 && tasks.place.size != tasks.first_get[n])
        throw std::invalid_argument("there must be a place for each Get, or for none");
    if (machine.speed.size != n_workers || machine.node.size != n_workers || machine.first_load.size != n_workers + 1)
        throw std::invalid_argument("the machine needs a core for each worker");
    if (schedule.n_phases ? schedule.worker_queue.size != schedule.n_phases * n_workers : schedule.n_needed.size != n)
        throw std::invalid_argument("the schedule is for other workers or tasks");
    check_ready_queues(schedule, n);
    const auto interrupted = [] {
        const nb::gil_scoped_acquire acquire;
        return PyErr_CheckSignals() != 0;
    };
    SimulatedRun run;
    {
        const nb::gil_scoped_release release;
        run = simulate(tasks, schedule, machine, reinterpret_cast<Trace*>(trace.data()), interrupted);
    }
    if (run.interrupted) throw nb::python_error();
    for (std::int64_t w = 0; w < n_workers; ++w) {
        const SimulatedWorker& sum = run.workers[w];
        double* row = table.data() + 7 * w;
        row[0] = sum.busy;
        row[1] = sum.counter;
        row[2] = sum.communication;
        row[3] = static_cast<double>(sum.counter_calls);
        row[4] = static_cast<double>(sum.steals);
        row[5] = static_cast<double>(sum.messages);
        row[6] = static_cast<double>(sum.activations);
    }
    if (run.phase_ends.empty()) run.phase_ends.push_back(run.makespan);
    return run.phase_ends;
}

}  // namespace

void bind_simulate(nb::module_& m) {
    m.def("simulate", &simulate_schedule, nb::arg("tasks"), nb::arg("schedule"), nb::arg("machine"), nb::arg("trace"),
          nb::arg("table"), "Simulates a schedule; when each of its phases ends, in seconds.");
}
