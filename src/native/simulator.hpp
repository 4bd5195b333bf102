// The state of a simulation and its events. What happens to tasks, in phases and by data flow is in simulate_*.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "loop.hpp"
#include "ready.hpp"
#include "simulate.hpp"

namespace tilewise {

// begun, partly, computed, done: of a task (partly when it needs its next data, done when its result is in
// place). leaves, came, here: data of a Get on the link of their node, through, and at hand. put: an Accumulate
// on the link. asked: a call has reached its counter. answered: the answer is back. By data flow: turn when a call
// has reached a queue of ready tasks, given when the task is back; told when a message about an ended task has
// come to a node, activated when it has been read there (of both, `task` is the number of the message).
enum class What : std::int64_t {
    begun, partly, computed, done, leaves, came, here, put, asked, answered, turn, given, told, activated
};

struct Event {
    double time;
    std::int64_t worker;
    What what;
    std::int64_t task;
    bool operator>(const Event& other) const {
        return std::tie(time, worker, what, task) > std::tie(other.time, other.worker, other.what, other.task);
    }
};

// The host of a counter. It answers one call after the other and has room for so many that wait.
class CounterHost {
public:
    double answer(double time, double service) { return free_ = std::max(free_, time) + service; }

    // A call that comes when no buffer is left takes `resend` instead of `service`.
    double answer(double time, double service, std::int64_t buffers, double resend);

private:
    double free_ = 0.0;              // when all calls that have reached it are answered
    std::vector<double> answers_;    // of the calls so far, in order
    std::size_t first_waiting_ = 0;  // of these
};

// A queue of the present phase.
struct QueueState {
    std::int64_t front = 0, back = 0;
    std::int64_t node = -1;   // of its counter: that of its first worker
    bool in_one_node = true;  // all of its workers
    CounterHost host;
    std::unique_ptr<Loop> loop;
    std::int64_t left() const { return back - front; }
};

// A queue of ready tasks, and its workers: those without work, and those that may take a task ahead.
struct ReadyState {
    explicit ReadyState(ByPriority order) : tasks(order) {}
    std::priority_queue<std::int64_t, std::vector<std::int64_t>, ByPriority> tasks;
    std::set<std::int64_t> idle, hungry;
    std::int64_t node = 0;
    CounterHost host;
    bool changed = false;  // since tasks were given away
};

// Queues of ready tasks that are at one place; their workers help each other out.
struct ReadyGroup {
    std::int64_t node = 0;
    std::set<std::int64_t> filled, idle;  // queues with tasks, workers without any
};

// A task whose data come over links.
struct Fetching {
    std::int64_t task = -1, got = 0;
    double taken = 0.0, busy = 0.0;
};

struct Node {
    double out = 0.0, in = 0.0;     // when its link is free, in each direction
    std::int64_t wanted = 0;        // Gets of others that wait for its data
    std::int64_t in_flight = 0;     // Gets of its own workers that are under way
    std::queue<std::int64_t> held;  // workers whose Gets are held back meanwhile
    CounterHost messenger;          // writes and reads its activation messages
};

struct Worker {
    std::int64_t own = -1;                // its queue in this phase
    std::int64_t from = -1;               // the queue that its chunk [next, last) is from
    std::int64_t next = 0, last = 0;
    std::int64_t ahead = 0;               // tasks taken and not begun
    std::int64_t unfinished = 0;          // tasks taken and not finished
    std::int64_t load = 0;                // its present time of load
    bool asking = false;                  // a call to a counter is under way
    bool exhausted = false;               // nothing more is to come from its own queue
    bool measured = false;                // it has had a chunk in this phase
    double asked = 0.0, answered = 0.0;   // its last call
    double free = 0.0;                    // end of all work that it has taken and has the data for
    double link = 0.0;                    // when its messages are through
    std::vector<Fetching> fetching;       // one message at a time, for the first of these
    SimulatedWorker sum;
};

class Simulator {
public:
    Simulator(const SimulatedTasks& tasks, const Schedule& schedule, const SimulatedMachine& machine, Trace* trace,
              const std::function<bool()>& interrupted);
    SimulatedRun operator()();

private:
    // Events: simulate.cpp
    void at(double time, std::int64_t w, What what, std::int64_t task = -1) { events_.push({time, w, what, task}); }
    void process();
    void handle(const Event& event);
    void go_on(std::int64_t w, double time);

    // Tasks and their messages: simulate_tasks.cpp
    bool may_take(const Worker& me) const { return machine_.prefetch ? me.ahead < machine_.prefetch : me.unfinished == 0; }
    void take(std::int64_t w, std::int64_t task, double time);
    std::pair<double, double> compute(std::int64_t w, double taken, double here, double work, bool first_part);
    void computed_at(std::int64_t w, std::int64_t task, double taken, double start, double end);
    void get(std::int64_t w, double time);
    void send(std::int64_t w, std::int64_t from, double time);
    void leaves(std::int64_t w, std::int64_t task, double time);
    void came(std::int64_t w, double time);
    void here(std::int64_t w, double time);
    void accumulate(std::int64_t w, std::int64_t task, double time);
    void put(std::int64_t w, std::int64_t task, double time);
    void done(std::int64_t w, std::int64_t task, double time);
    double computed_by(std::int64_t w, double time, double work);
    double work_until(std::int64_t w, double time, double until, double speed, double& work);
    double drifted(std::int64_t w, std::int64_t stretch) const;
    double bytes_of_get(std::int64_t task) const;
    std::int64_t node_with(std::int64_t task, std::int64_t get) const;

    // Phases: simulate_phases.cpp
    std::int64_t length(std::int64_t queue) const { return schedule_.first_task[queue + 1] - schedule_.first_task[queue]; }
    QueueState& state(std::int64_t queue) { return queues_[queue - schedule_.first_queue[phase_]]; }
    void begin_phase();
    void join_queue(std::int64_t w);
    void work_on(std::int64_t w, double time);
    double away(std::int64_t w, const QueueState& queue) const;
    void call(std::int64_t w, double time, double away);
    void draw(std::int64_t w, double time);
    void answered(std::int64_t w, double time);
    void answered_at(std::int64_t w, double time);
    void leave(std::int64_t w, double time);
    bool steal(std::int64_t w, double time);

    // Data flow: simulate_flow.cpp
    void data_flow();
    void start_ready_queues();
    void release_successors(std::int64_t w, std::int64_t task, double time);
    void tell(std::int64_t w, std::int64_t first, std::int64_t last, double time);
    void told(std::int64_t w, std::int64_t message, double time);
    void activated(std::int64_t message);
    void count_down(std::int64_t first, std::int64_t last, std::int64_t w);
    void make_ready(std::int64_t task, std::int64_t w);
    void offer(std::int64_t w);
    void look_at(std::int64_t queue);
    void give_ready_tasks(double time);
    void give_to_own(std::int64_t queue, double time);
    void give_to_thieves(std::int64_t queue, double time);
    void give(std::int64_t queue, std::int64_t w, double time);
    double way_to_queue(std::int64_t w) const;
    void turn(std::int64_t w, std::int64_t task, double time);
    void given(std::int64_t w, std::int64_t task, double time);

    const SimulatedTasks& tasks_;
    const Schedule& schedule_;
    const SimulatedMachine& machine_;
    Trace* trace_;
    const std::function<bool()>& interrupted_;
    std::vector<Worker> workers_;
    std::vector<Node> nodes_;
    std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events_;
    std::vector<QueueState> queues_;
    std::priority_queue<std::pair<std::int64_t, std::int64_t>> longest_;  // (tasks left, -queue), perhaps outdated
    std::vector<std::int64_t> needed_;   // of each task, how many that it needs have not ended
    std::vector<std::int64_t> waiting_;  // in phases: the worker that comes to a task too early, or -1
    ReadyPlaces places_;
    std::vector<ReadyState> ready_;
    std::vector<ReadyGroup> groups_;
    std::vector<std::int64_t> changed_, looked_at_;                   // queues of ready tasks
    std::vector<std::pair<std::int64_t, std::int64_t>> activations_;  // messages: a range of successors each
    std::int64_t phase_ = 0, handled_ = 0, n_done_ = 0;
    double end_ = 0.0;  // of all that has happened so far
    SimulatedRun run_;
};

}  // namespace tilewise
