#include "simulate.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <queue>
#include <set>
#include <stdexcept>
#include <tuple>

#include "loop.hpp"

namespace tilewise {

namespace {

constexpr std::int64_t poll_interval = 1 << 20;  // events between two looks for an interrupt

// begun, computed, done: of a task (done when its result is in place). asked: a call has reached its
// counter. answered: the answer is back.
enum class What : std::int64_t { begun, computed, done, asked, answered };

struct Event {
    double time;
    std::int64_t worker;
    What what;
    std::int64_t task;
    bool operator>(const Event& other) const {
        return std::tie(time, worker, what, task) > std::tie(other.time, other.worker, other.what, other.task);
    }
};

// A queue of the present phase, with the host of its counter.
struct QueueState {
    std::int64_t front = 0, back = 0;
    std::int64_t host = -1;   // node of its first worker
    bool in_one_node = true;  // all of its workers
    double free = 0.0;        // when the host has answered all calls that have reached it
    std::unique_ptr<Loop> loop;
    std::int64_t left() const { return back - front; }
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
    double free = 0.0;                    // end of all that it has taken
    double link = 0.0;                    // when its messages are through
    SimulatedWorker sum;
};

class Simulator {
public:
    Simulator(const SimulatedTasks& tasks, const Schedule& schedule, const SimulatedMachine& machine, Trace* trace,
              const std::function<bool()>& interrupted)
        : tasks_(tasks), schedule_(schedule), machine_(machine), trace_(trace), interrupted_(interrupted),
          workers_(static_cast<std::size_t>(schedule.n_workers)) {
        for (std::int64_t w = 0; w < schedule.n_workers; ++w) workers_[w].load = machine.first_load[w];
    }

    SimulatedRun operator()() {
        if (schedule_.n_phases == 0)
            data_flow();
        else
            for (phase_ = 0; phase_ < schedule_.n_phases && !run_.interrupted; ++phase_) {
                begin_phase();
                process();
                end_ += machine_.barrier;
            }
        run_.makespan = end_;
        for (const Worker& worker : workers_) run_.workers.push_back(worker.sum);
        return run_;
    }

private:
    // Events

    void at(double time, std::int64_t w, What what, std::int64_t task = -1) { events_.push({time, w, what, task}); }

    void process() {
        while (!events_.empty() && !run_.interrupted) {
            const Event event = events_.top();
            events_.pop();
            handle(event);
            // What happens at the same time counts before ready tasks are given away.
            if (schedule_.n_phases == 0 && (events_.empty() || events_.top().time > event.time)) give_ready_tasks(event.time);
            if (++handled_ % poll_interval == 0) run_.interrupted = interrupted_();
        }
    }

    void handle(const Event& event) {
        switch (event.what) {
            case What::begun:
                --workers_[event.worker].ahead;
                go_on(event.worker, event.time);
                break;
            case What::computed:
                accumulate(event.worker, event.task, event.time);
                break;
            case What::done:
                done(event.worker, event.task, event.time);
                break;
            case What::asked:
                draw(event.worker, event.time);
                break;
            case What::answered:
                answered(event.worker, event.time);
                break;
        }
    }

    void go_on(std::int64_t w, double time) {
        if (schedule_.n_phases == 0)
            offer(w);
        else
            work_on(w, time);
    }

    // Tasks

    double message(std::int64_t w, double bytes) {
        ++workers_[w].sum.messages;
        return machine_.latency + bytes / machine_.bandwidth;
    }

    bool may_take(const Worker& me) const { return machine_.prefetch ? me.ahead < machine_.prefetch : me.unfinished == 0; }

    // The Get goes out now, behind the messages that are under way; the task begins when its data are here.
    void take(std::int64_t w, std::int64_t task, double time) {
        Worker& me = workers_[w];
        const double idle_from = std::max(time, me.free);
        double here = time;
        if (tasks_.bytes_got[task] > 0.0) here = me.link = std::max(time, me.link) + message(w, tasks_.bytes_got[task]);
        const double start = std::max(here, me.free), end = computed_by(w, start, tasks_.seconds[task]);
        me.sum.communication += start - idle_from;
        me.sum.busy += end - start;
        me.free = end;
        ++me.unfinished;
        trace_[task] = {w, nanoseconds(time), nanoseconds(start), nanoseconds(end)};
        if (machine_.prefetch) {
            ++me.ahead;
            at(start, w, What::begun);
        }
        at(end, w, What::computed, task);
    }

    // Without prefetch the worker waits until its result is in place; else it goes on.
    void accumulate(std::int64_t w, std::int64_t task, double time) {
        Worker& me = workers_[w];
        double through = time;
        if (tasks_.bytes_put[task] > 0.0) through = me.link = std::max(time, me.link) + message(w, tasks_.bytes_put[task]);
        if (machine_.prefetch) {
            --me.unfinished;
            go_on(w, time);
        } else {
            me.sum.communication += through - time;
            me.free = through;
        }
        at(through, w, What::done, task);
    }

    void done(std::int64_t w, std::int64_t task, double time) {
        ++n_done_;
        if (schedule_.n_phases == 0) release_successors(task);
        end_ = std::max(end_, time);
        if (machine_.prefetch) return;
        --workers_[w].unfinished;
        go_on(w, time);
    }

    // When work that starts now is computed: with k jobs on the core, each has 1/k of its speed.
    double computed_by(std::int64_t w, double time, double work) {
        const double speed = machine_.speed[w];
        std::int64_t& load = workers_[w].load;
        const std::int64_t end = machine_.first_load[w + 1];
        while (load < end && machine_.load_to[load] <= time) ++load;
        for (std::int64_t k = load; k < end; ++k) {
            if (time < machine_.load_from[k]) {
                const double alone = (machine_.load_from[k] - time) * speed;
                if (work <= alone) break;
                work -= alone;
                time = machine_.load_from[k];
            }
            const double shared = speed / machine_.load_jobs[k], possible = (machine_.load_to[k] - time) * shared;
            if (work <= possible) return time + work / shared;
            work -= possible;
            time = machine_.load_to[k];
        }
        return time + work / speed;
    }

    static std::int64_t nanoseconds(double seconds) { return std::llround(1e9 * seconds); }

    // Phases

    std::int64_t length(std::int64_t queue) const { return schedule_.first_task[queue + 1] - schedule_.first_task[queue]; }
    QueueState& state(std::int64_t queue) { return queues_[queue - schedule_.first_queue[phase_]]; }

    void begin_phase() {
        const std::int64_t first = schedule_.first_queue[phase_], last = schedule_.first_queue[phase_ + 1];
        queues_.clear();
        queues_.resize(static_cast<std::size_t>(last - first));
        for (std::int64_t q = first; q < last; ++q) {
            state(q).back = length(q);
            const auto taking = static_cast<Taking>(schedule_.taking[q]);
            if (taking == Taking::fixed) continue;
            const LoopRule rule{taking, schedule_.f[q], schedule_.delta[q], schedule_.probe[q]};
            state(q).loop = std::make_unique<Loop>(rule, schedule_.work.data + schedule_.first_task[q], length(q), schedule_.n_workers);
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

    void join_queue(std::int64_t w) {
        Worker& me = workers_[w];
        me.own = me.from = schedule_.worker_queue[phase_ * schedule_.n_workers + w];
        me.next = me.last = 0;
        me.measured = false;
        me.exhausted = me.own < 0;
        if (me.own < 0) return;
        QueueState& queue = state(me.own);
        if (queue.host < 0) queue.host = machine_.node[w];
        queue.in_one_node &= queue.host == machine_.node[w];
        if (schedule_.quantum[me.own] == 0) {  // a list of its own
            me.last = length(me.own);
            me.exhausted = true;
        }
    }

    // Takes what it may take now, asks for more, or is through with its queue.
    void work_on(std::int64_t w, double time) {
        Worker& me = workers_[w];
        while (!me.asking) {
            if (me.next < me.last) {
                const std::int64_t task = schedule_.tasks[schedule_.first_task[me.from] + me.next];
                if (task >= 0 && !may_take(me)) return;
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

    double away(std::int64_t w, const QueueState& queue) const {
        return queue.host == machine_.node[w] ? 0.0 : machine_.counter_latency;
    }

    void call(std::int64_t w, double time, double away) {
        workers_[w].asking = true;
        workers_[w].asked = time;
        at(time + away, w, What::asked);
    }

    // A call has reached the host of the counter, behind those that came before.
    void draw(std::int64_t w, double time) {
        Worker& me = workers_[w];
        QueueState& queue = state(me.own);
        queue.free = std::max(queue.free, time) + (queue.in_one_node ? machine_.counter_shared : machine_.counter_service);
        ++me.sum.counter_calls;
        if (queue.loop) {
            std::tie(me.next, me.last) = queue.loop->next(w, me.measured ? me.asked - me.answered : 0.0);
        } else {
            me.next = queue.front;
            me.last = queue.front += std::min(schedule_.quantum[me.own], queue.left());
        }
        me.measured = true;
        me.exhausted = me.next == me.last;
        at(queue.free + away(w, queue), w, What::answered);
    }

    void answered(std::int64_t w, double time) {
        Worker& me = workers_[w];
        me.asking = false;
        me.answered = time;
        me.sum.counter += std::max(0.0, time - std::max(me.asked, me.free));
        work_on(w, time);
    }

    // Its own queue is empty and all its work is computed: it steals, or is done when its messages are through.
    void leave(std::int64_t w, double time) {
        if (schedule_.steal[phase_] && steal(w, time)) return;
        Worker& me = workers_[w];
        if (me.link > time) {
            me.sum.communication += me.link - time;
            me.free = me.link;
        }
        end_ = std::max({end_, time, me.link});
    }

    // The last task of the longest queue. It is chosen at once and paid for on the way.
    bool steal(std::int64_t w, double time) {
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
        const bool near = victim.host < 0 || victim.host == machine_.node[w];
        const double away = near ? 0.0 : machine_.counter_latency;
        victim.free = std::max(victim.free, time + away) + (near ? machine_.counter_shared : machine_.counter_service);
        me.asking = true;
        me.asked = time;
        at(victim.free + away, w, What::answered);
        return true;
    }

    // Data flow

    struct ByPriority {  // highest first, lowest number first among equals
        const Span<double>* priority;
        bool operator()(std::int64_t a, std::int64_t b) const {
            const double x = (*priority)[a], y = (*priority)[b];
            return x < y || (x == y && a > b);
        }
    };

    void data_flow() {
        const std::int64_t n = tasks_.seconds.size;
        needed_.assign(schedule_.n_needed.data, schedule_.n_needed.data + n);
        for (std::int64_t t = 0; t < n; ++t)
            if (needed_[t] == 0) ready_.push(t);
        for (std::int64_t w = 0; w < schedule_.n_workers; ++w) idle_.insert(idle_.end(), w);
        give_ready_tasks(0.0);
        process();
        if (n_done_ < n && !run_.interrupted) throw std::invalid_argument("some tasks wait for each other");
    }

    void release_successors(std::int64_t task) {
        for (std::int64_t k = schedule_.first_successor[task]; k < schedule_.first_successor[task + 1]; ++k)
            if (--needed_[schedule_.successors[k]] == 0) ready_.push(schedule_.successors[k]);
    }

    // To those that have nothing to do; then to those that may take one ahead.
    void give_ready_tasks(double time) {
        while (!ready_.empty() && !(idle_.empty() && hungry_.empty())) {
            const std::int64_t w = *(idle_.empty() ? hungry_ : idle_).begin(), task = ready_.top();
            ready_.pop();
            take(w, task, time);
            offer(w);
        }
    }

    // Puts a worker where it belongs.
    void offer(std::int64_t w) {
        const Worker& me = workers_[w];
        idle_.erase(w);
        hungry_.erase(w);
        if (me.unfinished == 0)
            idle_.insert(w);
        else if (may_take(me))
            hungry_.insert(w);
    }

    const SimulatedTasks& tasks_;
    const Schedule& schedule_;
    const SimulatedMachine& machine_;
    Trace* trace_;
    const std::function<bool()>& interrupted_;
    std::vector<Worker> workers_;
    std::priority_queue<Event, std::vector<Event>, std::greater<Event>> events_;
    std::vector<QueueState> queues_;
    std::priority_queue<std::pair<std::int64_t, std::int64_t>> longest_;  // (tasks left, -queue), perhaps outdated
    std::vector<std::int64_t> needed_;
    std::priority_queue<std::int64_t, std::vector<std::int64_t>, ByPriority> ready_{ByPriority{&schedule_.priority}};
    std::set<std::int64_t> idle_, hungry_;
    std::int64_t phase_ = 0, handled_ = 0, n_done_ = 0;
    double end_ = 0.0;  // of all that has happened so far
    SimulatedRun run_;
};

}  // namespace

SimulatedRun simulate(const SimulatedTasks& tasks, const Schedule& schedule, const SimulatedMachine& machine, Trace* trace,
                      const std::function<bool()>& interrupted) {
    return Simulator(tasks, schedule, machine, trace, interrupted)();
}

}  // namespace tilewise
