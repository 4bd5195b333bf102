// Arrays of Python dictionaries as spans, and a schedule made of them; for the binding files.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>

#include "executor.hpp"
#include "records.hpp"

namespace tilewise {

using Integers = nanobind::ndarray<const std::int64_t, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;
using Reals = nanobind::ndarray<const double, nanobind::ndim<1>, nanobind::c_contig, nanobind::device::cpu>;

inline Span<std::int64_t> integers(const nanobind::dict& tables, const char* key) {
    if (!tables.contains(key)) return {};
    const auto array = nanobind::cast<Integers>(tables[key]);
    return {array.data(), static_cast<std::int64_t>(array.shape(0))};
}

inline Span<double> reals(const nanobind::dict& tables, const char* key) {
    if (!tables.contains(key)) return {};
    const auto array = nanobind::cast<Reals>(tables[key]);
    return {array.data(), static_cast<std::int64_t>(array.shape(0))};
}

inline Schedule read_schedule(const nanobind::dict& tables, std::int64_t n_workers) {
    Schedule schedule;
    schedule.n_workers = n_workers;
    schedule.first_queue = integers(tables, "first_queue");
    schedule.n_phases = schedule.first_queue.size ? schedule.first_queue.size - 1 : 0;
    schedule.first_task = integers(tables, "first_task");
    schedule.tasks = integers(tables, "tasks");
    schedule.worker_queue = integers(tables, "worker_queue");
    schedule.quantum = integers(tables, "quantum");
    schedule.steal = integers(tables, "steal");
    schedule.taking = integers(tables, "taking");
    schedule.probe = integers(tables, "probe");
    schedule.literal = integers(tables, "literal");
    schedule.f = reals(tables, "f");
    schedule.delta = reals(tables, "delta");
    schedule.work = reals(tables, "work");
    schedule.first_successor = integers(tables, "first_successor");
    schedule.successors = integers(tables, "successors");
    schedule.n_needed = integers(tables, "n_needed");
    schedule.priority = reals(tables, "priority");
    return schedule;
}

}  // namespace tilewise
