// Phases of a simulation: queues, counters and thieves.
#include <algorithm>

#include "simulator.hpp"

namespace tilewise {

double CounterHost::answer(double time, double service, std::int64_t buffers, double resend) {
    if (buffers == 0) return answer(time, service);
    while (first_waiting_ < answers_.size() && answers_[first_waiting_] <= time) ++first_waiting_;
    const bool room = static_cast<std::int64_t>(answers_.size() - first_waiting_) < buffers;
    answers_.push_back(answer(time, room ? service : resend));
    return answers_.back();
}

void Simulator::begin_phase() {
    const std::int64_t first = schedule_.first_queue[phase_], last = schedule_.first_queue[phase_ + 1];
    queues_.clear();
    queues_.resize(static_cast<std::size_t>(last - first));
    for (std::int64_t q = first; q < last; ++q) {
        state(q).back = length(q);
        state(q).loop = schedule_.loop(q);
    }
    for (std::int64_t w = 0; w < schedule_.n_workers; ++w) join_queue(w);
    if (schedule_.steal[phase_]) {
        std::vector<std::pair<std::int64_t, std::int64_t>> full;
        for (std::int64_t q = first; q < last; ++q) full.emplace_back(state(q).left(), -q);
        longest_ = decltype(longest_)({}, std::move(full));
    }
    const double time = end_;
    for (std::int64_t w = 0; w < schedule_.n_workers; ++w) work_on(w, time);
}

void Simulator::join_queue(std::int64_t w) {
    Worker& me = workers_[w];
    me.own = me.from = schedule_.worker_queue[phase_ * schedule_.n_workers + w];
    me.next = me.last = 0;
    me.measured = false;
    me.exhausted = me.own < 0;
    if (me.own < 0) return;
    QueueState& queue = state(me.own);
    if (queue.node < 0) queue.node = machine_.node[w];
    queue.in_one_node &= queue.node == machine_.node[w];
    if (schedule_.quantum[me.own] == 0) {  // a list of its own
        me.last = length(me.own);
        me.exhausted = true;
    }
}

// Takes what it may take now, asks for more, or is through with its queue.
void Simulator::work_on(std::int64_t w, double time) {
    Worker& me = workers_[w];
    while (!me.asking) {
        if (me.next < me.last) {
            const std::int64_t task = schedule_.tasks[schedule_.first_task[me.from] + me.next];
            if (task >= 0 && !may_take(me)) return;
            if (task >= 0 && !needed_.empty() && needed_[task] > 0) {
                waiting_[task] = w;
                return;
            }
            ++me.next;
            if (task >= 0) take(w, task, time);
        } else if (me.exhausted) {
            if (me.unfinished == 0) leave(w, time);
            return;
        } else {
            // A loop goes by the time that the chunk before has taken.
            if (state(me.own).loop ? me.unfinished > 0 : !may_take(me)) return;
            call(w, time, away(w, state(me.own)));
        }
    }
}

double Simulator::away(std::int64_t w, const QueueState& queue) const {
    return queue.node == machine_.node[w] ? 0.0 : machine_.counter_latency;
}

void Simulator::call(std::int64_t w, double time, double away) {
    workers_[w].asking = true;
    workers_[w].asked = time;
    at(time + away, w, What::asked);
}

// A call has reached the host of the counter, behind those that came before.
void Simulator::draw(std::int64_t w, double time) {
    Worker& me = workers_[w];
    QueueState& queue = state(me.own);
    const double answer = queue.in_one_node ? queue.host.answer(time, machine_.counter_shared)
                                            : queue.host.answer(time, machine_.counter_service, machine_.counter_buffers,
                                                                machine_.counter_resend);
    ++me.sum.counter_calls;
    if (queue.loop) {
        std::tie(me.next, me.last) = queue.loop->next(w, me.measured ? me.asked - me.answered : 0.0);
    } else {
        me.next = queue.front;
        me.last = queue.front += std::min(schedule_.quantum[me.own], queue.left());
    }
    me.measured = true;
    me.exhausted = me.next == me.last;
    at(answer + away(w, queue), w, What::answered);
}

void Simulator::answered(std::int64_t w, double time) {
    answered_at(w, time);
    work_on(w, time);
}

void Simulator::answered_at(std::int64_t w, double time) {
    Worker& me = workers_[w];
    me.asking = false;
    me.answered = time;
    // Who waits for data over a link waits for these, whatever else is under way.
    if (me.fetching.empty()) me.sum.counter += std::max(0.0, time - std::max(me.asked, me.free));
}

// Its own queue is empty and all its work is computed: it steals, or is done when its messages are through.
void Simulator::leave(std::int64_t w, double time) {
    if (schedule_.steal[phase_] && steal(w, time)) return;
    Worker& me = workers_[w];
    if (me.link > time) {
        me.sum.communication += me.link - time;
        me.free = me.link;
    }
    end_ = std::max({end_, time, me.link});
}

// The last task of the longest queue. It is chosen at once and paid for on the way.
bool Simulator::steal(std::int64_t w, double time) {
    while (!longest_.empty()) {
        const auto [known, negative] = longest_.top();
        QueueState& queue = state(-negative);
        if (queue.left() == known && known > 0) break;
        longest_.pop();
        if (queue.left() > 0) longest_.emplace(queue.left(), negative);
    }
    if (longest_.empty()) return false;
    Worker& me = workers_[w];
    me.from = -longest_.top().second;
    QueueState& victim = state(me.from);
    me.last = victim.back--;
    me.next = me.last - 1;
    ++me.sum.steals;
    const bool near = victim.node < 0 || victim.node == machine_.node[w];
    const double away = near ? 0.0 : machine_.counter_latency;
    const double answer = victim.host.answer(time + away, near ? machine_.counter_shared : machine_.counter_service);
    me.asking = true;
    me.asked = time;
    at(answer + away, w, What::answered);
    return true;
}

}  // namespace tilewise
