// Workers that run a schedule of tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "records.hpp"

namespace tilewise {

// Phases follow each other with a barrier between them. In a phase every worker takes tasks from its
// queue, `quantum` at a time; a queue may belong to one worker (a static list) or to several (a
// counter). Without phases the run is by data flow: ready tasks are taken by priority.
struct Schedule {
    std::int64_t n_workers = 1;
    std::int64_t n_phases = 0;
    Span<std::int64_t> first_queue;   // (n_phases + 1): queues of each phase
    Span<std::int64_t> first_task;    // (queues + 1): tasks of each queue
    Span<std::int64_t> tasks;         // task numbers
    Span<std::int64_t> worker_queue;  // (n_phases * n_workers): queue of each worker, or -1
    Span<std::int64_t> quantum;       // (queues)
    Span<std::int64_t> first_successor, successors, n_needed;  // data flow
    Span<double> priority;
};

struct Outcome {
    std::int64_t failed_task = -1;
    std::string reason;
    bool interrupted = false;
    std::int64_t counter_calls = 0;
};

// Runs all tasks. `interrupted` is asked from the calling thread now and then; true ends the run.
Outcome execute(const TaskList& list, const Schedule& schedule, double* scratch, std::int64_t scratch_size,
                std::int64_t n_locks, Trace* trace, const std::function<bool()>& interrupted);

}  // namespace tilewise
