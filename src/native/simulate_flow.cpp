// Data flow in a simulation: what is ready is given away by priority.
#include <stdexcept>

#include "simulator.hpp"

namespace tilewise {

void Simulator::data_flow() {
    const std::int64_t n = tasks_.seconds.size;
    needed_.assign(schedule_.n_needed.data, schedule_.n_needed.data + n);
    for (std::int64_t t = 0; t < n; ++t)
        if (needed_[t] == 0) ready_.push(t);
    for (std::int64_t w = 0; w < schedule_.n_workers; ++w) idle_.insert(idle_.end(), w);
    give_ready_tasks(0.0);
    process();
    if (n_done_ < n && !run_.interrupted) throw std::invalid_argument("some tasks wait for each other");
}

void Simulator::release_successors(std::int64_t task) {
    for (std::int64_t k = schedule_.first_successor[task]; k < schedule_.first_successor[task + 1]; ++k)
        if (--needed_[schedule_.successors[k]] == 0) ready_.push(schedule_.successors[k]);
}

// To those that have nothing to do; then to those that may take one ahead.
void Simulator::give_ready_tasks(double time) {
    while (!ready_.empty() && !(idle_.empty() && hungry_.empty())) {
        const std::int64_t w = *(idle_.empty() ? hungry_ : idle_).begin(), task = ready_.top();
        ready_.pop();
        take(w, task, time);
        offer(w);
    }
}

// Puts a worker where it belongs.
void Simulator::offer(std::int64_t w) {
    const Worker& me = workers_[w];
    idle_.erase(w);
    hungry_.erase(w);
    if (me.unfinished == 0)
        idle_.insert(w);
    else if (may_take(me))
        hungry_.insert(w);
}

}  // namespace tilewise
