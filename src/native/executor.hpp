// Workers that run a schedule of tasks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "gates.hpp"
#include "loop.hpp"
#include "records.hpp"

namespace tilewise {

// Phases follow each other with a barrier between them. In a phase every worker takes tasks from its
// queue: one after the other from a list of its own, `quantum` at a time from a shared counter, or by
// the rule of a loop. Where `steal` is set, it then goes on at the other end of the others' queues.
// Without phases the run is by data flow: ready tasks are taken by priority, from one queue or several. Queues form
// groups, and a task is ready in that group which is its home. If successors are given together with
// phases, a task begins only when those that it needs have ended; it must not need one that comes later in the lists.
struct Schedule {
    std::int64_t n_workers = 1;
    std::int64_t n_phases = 0;
    Span<std::int64_t> first_queue;   // (n_phases + 1): queues of each phase
    Span<std::int64_t> first_task;    // (queues + 1): tasks of each queue
    Span<std::int64_t> tasks;         // task numbers; a negative one is a null tuple, which is drawn in vain
    Span<std::int64_t> worker_queue;  // (n_phases * n_workers): queue of each worker, or -1
    Span<std::int64_t> quantum;       // (queues); 0 for the whole list of one worker
    Span<std::int64_t> steal;         // (n_phases)
    Span<std::int64_t> taking, probe, literal, taper;  // (queues): the rule of a loop
    Span<double> f, delta, most;       // (queues)
    Span<double> work;                 // (tasks): estimated, for the loops
    Span<std::int64_t> first_successor, successors, n_needed;  // who waits for whom; a negative number: done before
    Span<double> priority;
    Span<std::int64_t> ready_queue;  // (n_workers): the queue of ready tasks that each takes from; or nothing, for one queue,
    Span<std::int64_t> ready_group;  // (queues of ready tasks): the group of each,
    Span<std::int64_t> home;         // (tasks): and the group in which each task is ready

    std::int64_t length(std::int64_t queue) const { return first_task[queue + 1] - first_task[queue]; }

    // The loop of a queue from its beginning; nothing for a queue without a rule.
    std::unique_ptr<Loop> loop(std::int64_t q) const {
        if (static_cast<Taking>(taking[q]) == Taking::fixed) return nullptr;
        const LoopRule rule{static_cast<Taking>(taking[q]), f[q], delta[q], probe[q], literal[q] != 0, taper[q] != 0, most[q]};
        return std::make_unique<Loop>(rule, work.data + first_task[q], length(q), n_workers);
    }
};

// What one worker reports about a run.
struct WorkerCount {
    std::int64_t counter_calls = 0, steals = 0, counter_nanoseconds = 0;
    std::int64_t most_memory = 0;  // doubles of its memory that some task has used
    std::int64_t allocations = 0;  // from the heap, inside of tasks
};
constexpr const char* worker_count_names[] = {"counter_calls", "steals", "counter_nanoseconds", "most_memory", "allocations"};

struct Outcome {
    std::int64_t failed_task = -1;
    std::string reason;
    bool interrupted = false;
    std::vector<WorkerCount> workers;
};

// The memory of all workers: the same part for each, of which the first `TaskList::arena` are its buffer.
struct Scratch {
    double* memory = nullptr;
    std::int64_t size = 0;  // doubles of each worker
};

// Runs all tasks. `interrupted` is asked from the calling thread now and then; true ends the run.
// Workers are bound to the given processors, if there are any. With gates, tasks behind one count it among what they need.
Outcome execute(const TaskList& list, const Schedule& schedule, const Scratch& scratch, std::int64_t n_locks, Trace* trace,
                const std::vector<std::int64_t>& processors, const std::function<bool()>& interrupted, Gates* gates = nullptr);

}  // namespace tilewise
