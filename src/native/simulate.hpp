// Discrete events: what a schedule would do on a machine that is not here.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "executor.hpp"
#include "records.hpp"

namespace tilewise {

// Times in seconds, sizes in bytes. A core under external load shares its speed among `load_jobs` jobs.
struct SimulatedMachine {
    Span<double> speed;                             // (workers): 1 for the seconds that tasks are given with
    Span<std::int64_t> node;                        // (workers)
    Span<std::int64_t> first_load;                  // (workers + 1): times of load of each worker, in order
    Span<double> load_from, load_to, load_jobs;
    double drift = 0.0, stretch = 0.0;              // a core's speed varies by this share, and lasts for so long
    std::int64_t seed = 0;                          // of these speeds
    double latency = 0.0, bandwidth = 0.0;          // of the network, for each Get and Accumulate
    bool links = false;                             // a node has one link: messages queue there and at the other end
    std::int64_t link_buffers = 0;                  // Gets that a node has room for; 0 for all
    double link_resend = 0.0;                       // that each of the others takes while it sends a message
    std::int64_t in_flight = 0;                     // Gets that a node has under way; 0 for one of each worker
    double counter_service = 0.0;                   // a counter's host answers one call after the other
    double counter_latency = 0.0;                   // to reach a counter in another node, and back again
    double counter_shared = 0.0;                    // service of a counter that one node alone uses
    std::int64_t counter_buffers = 0;               // calls that a host has room for; 0 for all
    double counter_resend = 0.0;                    // service of a call that comes when there is none left
    double ready_service = 0.0;                     // a queue of ready tasks gives one after the other
    double ready_latency = 0.0;                     // to reach such a queue, or to tell a home, in another node
    double ready_activation = 0.0;                  // that a node takes to write or to read what it tells
    double barrier = 0.0;
    std::int64_t prefetch = 0;                      // tasks taken ahead, whose data come meanwhile
    bool overlap = false;                           // a task gets its next data while it computes
};

struct SimulatedTasks {
    Span<double> seconds;                 // on a core of speed 1
    Span<std::int64_t> first_get;         // (tasks + 1): messages before and in the course of the work,
    Span<std::int64_t> puts;              // (tasks): and after it
    Span<double> bytes_got, bytes_put;    // of all these messages
    Span<double> place;                   // (Gets): where the data lie, from 0 to 1 over all nodes; or nothing
    std::int64_t gets(std::int64_t task) const { return first_get[task + 1] - first_get[task]; }
};

// Of one worker. What is missing from the makespan is waiting.
struct SimulatedWorker {
    double busy = 0.0, counter = 0.0, communication = 0.0;
    std::int64_t counter_calls = 0, steals = 0, messages = 0, activations = 0;
};
constexpr const char* simulated_worker_names[] = {"busy", "counter", "communication", "counter_calls", "steals", "messages", "activations"};

struct SimulatedRun {
    double makespan = 0.0;
    bool interrupted = false;
    std::vector<double> phase_ends;  // barriers included
    std::vector<SimulatedWorker> workers;
};

// A pure function of its arguments; `trace` gets a record per task. `interrupted` is asked now and then.
SimulatedRun simulate(const SimulatedTasks& tasks, const Schedule& schedule, const SimulatedMachine& machine, Trace* trace,
                      const std::function<bool()>& interrupted);

}  // namespace tilewise
