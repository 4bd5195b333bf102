// Data flow in a simulation: who hears of a task that has ended, and who takes what is ready.
#include <stdexcept>
#include <utility>

#include "simulator.hpp"

namespace tilewise {

namespace {

void put_in(std::set<std::int64_t>& workers, std::int64_t w, bool wanted) {
    if (wanted)
        workers.insert(w);
    else
        workers.erase(w);
}

}  // namespace

void Simulator::data_flow() {
    const std::int64_t n = tasks_.seconds.size;
    start_ready_queues();
    for (std::int64_t t = 0; t < n; ++t)
        if (needed_[t] == 0) make_ready(t, -1);
    for (std::int64_t w = 0; w < schedule_.n_workers; ++w) offer(w);
    give_ready_tasks(0.0);
    process();
    if (n_done_ < n && !run_.interrupted) throw std::invalid_argument("some tasks wait for each other");
}

// A queue and a group are in the node of the first worker that takes from them.
void Simulator::start_ready_queues() {
    ready_.resize(static_cast<std::size_t>(places_.queues()), ReadyState(ByPriority{&schedule_.priority}));
    groups_.resize(static_cast<std::size_t>(places_.groups()));
    for (std::int64_t w = schedule_.n_workers - 1; w >= 0; --w) {
        const std::int64_t queue = places_.of_worker(w);
        ready_[queue].node = groups_[places_.group(queue)].node = machine_.node[w];
    }
}

// What the next task of a list waits for, or what is ready now.
void Simulator::release_successors(std::int64_t w, std::int64_t task, double time) {
    const std::int64_t first = schedule_.first_successor[task], last = schedule_.first_successor[task + 1];
    if (schedule_.n_phases == 0) return tell(w, first, last, time);
    for (std::int64_t k = first; k < last; ++k) {
        const std::int64_t next = schedule_.successors[k];
        if (--needed_[next] == 0 && waiting_[next] >= 0) work_on(waiting_[next], time);
    }
}

// Successors lie in the order of their homes: one message to each of these that is in another node.
void Simulator::tell(std::int64_t w, std::int64_t first, std::int64_t last, double time) {
    const bool free = machine_.ready_latency == 0.0 && machine_.ready_activation == 0.0;
    for (std::int64_t from = first, to = first; from < last; from = to) {
        const std::int64_t home = places_.home(schedule_.successors[from]);
        while (to < last && places_.home(schedule_.successors[to]) == home) ++to;
        if (free || groups_[home].node == machine_.node[w]) {
            count_down(from, to, w);
            continue;
        }
        ++workers_[w].sum.activations;
        const double sent = nodes_[machine_.node[w]].messenger.answer(time, machine_.ready_activation);
        activations_.push_back({from, to});
        at(sent + machine_.ready_latency, w, What::told, static_cast<std::int64_t>(activations_.size()) - 1);
    }
}

// An activation message has come to its node, which reads one after the other.
void Simulator::told(std::int64_t w, std::int64_t message, double time) {
    const std::int64_t home = places_.home(schedule_.successors[activations_[message].first]);
    at(nodes_[groups_[home].node].messenger.answer(time, machine_.ready_activation), w, What::activated, message);
}

void Simulator::activated(std::int64_t message) {
    count_down(activations_[message].first, activations_[message].second, -1);
}

void Simulator::count_down(std::int64_t first, std::int64_t last, std::int64_t w) {
    for (std::int64_t k = first; k < last; ++k)
        if (--needed_[schedule_.successors[k]] == 0) make_ready(schedule_.successors[k], w);
}

void Simulator::make_ready(std::int64_t task, std::int64_t w) {
    const std::int64_t queue = places_.of_task(task, w);
    ready_[queue].tasks.push(task);
    if (!places_.alone(queue)) groups_[places_.group(queue)].filled.insert(queue);
    look_at(queue);
}

// Puts a worker where it belongs.
void Simulator::offer(std::int64_t w) {
    const Worker& me = workers_[w];
    const std::int64_t queue = places_.of_worker(w);
    ReadyState& own = ready_[queue];
    const bool idle = !me.asking && me.unfinished == 0, hungry = !me.asking && !idle && may_take(me);
    put_in(own.idle, w, idle);
    put_in(own.hungry, w, hungry);
    if (!places_.alone(queue)) put_in(groups_[places_.group(queue)].idle, w, idle);
    if (idle || hungry) look_at(queue);
}

void Simulator::look_at(std::int64_t queue) {
    if (std::exchange(ready_[queue].changed, true)) return;
    changed_.push_back(queue);
}

// Each queue to its own workers, then what is left to those of its group that have nothing to do.
void Simulator::give_ready_tasks(double time) {
    while (!changed_.empty()) {
        looked_at_.swap(changed_);
        for (const std::int64_t queue : looked_at_) ready_[queue].changed = false;
        for (const std::int64_t queue : looked_at_) give_to_own(queue, time);
        for (const std::int64_t queue : looked_at_) give_to_thieves(queue, time);
        looked_at_.clear();
    }
}

// To those that have nothing to do; then to those that may take one ahead.
void Simulator::give_to_own(std::int64_t queue, double time) {
    ReadyState& own = ready_[queue];
    while (!own.tasks.empty() && !(own.idle.empty() && own.hungry.empty()))
        give(queue, *(own.idle.empty() ? own.hungry : own.idle).begin(), time);
}

// Others take from a full queue, and its workers from others if it is empty: from the next one that has a task.
void Simulator::give_to_thieves(std::int64_t queue, double time) {
    if (places_.alone(queue)) return;
    ReadyState& own = ready_[queue];
    ReadyGroup& group = groups_[places_.group(queue)];
    while (!own.tasks.empty() && !group.idle.empty()) give(queue, *group.idle.begin(), time);
    while (!own.idle.empty() && !group.filled.empty()) {
        const auto next = group.filled.upper_bound(queue);
        give(next == group.filled.end() ? *group.filled.begin() : *next, *own.idle.begin(), time);
    }
}

// A task is chosen at once; its worker pays for the way to the queue, for its turn there, and for the way back.
void Simulator::give(std::int64_t queue, std::int64_t w, double time) {
    ReadyState& from = ready_[queue];
    Worker& me = workers_[w];
    const std::int64_t task = from.tasks.top();
    from.tasks.pop();
    if (from.tasks.empty() && !places_.alone(queue)) groups_[places_.group(queue)].filled.erase(queue);
    if (queue != places_.of_worker(w)) ++me.sum.steals;
    me.asking = true;
    me.asked = time;
    me.from = queue;
    const double away = way_to_queue(w);
    if (away > 0.0)
        at(time + away, w, What::turn, task);
    else
        turn(w, task, time);
    offer(w);
}

double Simulator::way_to_queue(std::int64_t w) const {
    return ready_[workers_[w].from].node == machine_.node[w] ? 0.0 : machine_.ready_latency;
}

void Simulator::turn(std::int64_t w, std::int64_t task, double time) {
    const double answer = ready_[workers_[w].from].host.answer(time, machine_.ready_service) + way_to_queue(w);
    if (answer > time) return at(answer, w, What::given, task);
    workers_[w].asking = false;
    take(w, task, time);
}

void Simulator::given(std::int64_t w, std::int64_t task, double time) {
    answered_at(w, time);
    take(w, task, time);
    offer(w);
}

}  // namespace tilewise
