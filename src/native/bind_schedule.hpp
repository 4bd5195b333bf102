// Arrays of Python dictionaries as spans, and a schedule made of them; for the binding files.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <vector>

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
    schedule.taper = integers(tables, "taper");
    schedule.f = reals(tables, "f");
    schedule.delta = reals(tables, "delta");
    schedule.most = reals(tables, "most");
    schedule.work = reals(tables, "work");
    schedule.first_successor = integers(tables, "first_successor");
    schedule.successors = integers(tables, "successors");
    schedule.n_needed = integers(tables, "n_needed");
    schedule.priority = reals(tables, "priority");
    schedule.ready_queue = integers(tables, "ready_queue");
    schedule.ready_group = integers(tables, "ready_group");
    schedule.home = integers(tables, "home");
    return schedule;
}

// Throws unless every worker has a queue of ready tasks, and every task a home with such a queue; or all have one.
inline void check_ready_queues(const Schedule& schedule, std::int64_t n_tasks) {
    const Span<std::int64_t>&queue = schedule.ready_queue, &group = schedule.ready_group, &home = schedule.home;
    if (queue.size == 0 && group.size == 0 && home.size == 0) return;
    const auto all = [](const Span<std::int64_t>& numbers, const auto& good) {
        return std::all_of(numbers.data, numbers.data + numbers.size, good);
    };
    const auto is_queue = [&](std::int64_t number) { return 0 <= number && number < group.size; };
    bool good = queue.size == schedule.n_workers && home.size == n_tasks && all(queue, is_queue) && all(group, is_queue);
    if (good) {
        std::vector<bool> served(static_cast<std::size_t>(group.size), false);
        for (std::int64_t w = 0; w < queue.size; ++w) served[group[queue[w]]] = true;
        good = all(home, [&](std::int64_t number) { return is_queue(number) && served[number]; });
    }
    if (!good) throw std::invalid_argument("the queues of ready tasks are for other workers or tasks");
}

}  // namespace tilewise
