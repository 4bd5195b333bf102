// Tasks of a simulation: their data come, they compute, their results go.
#include <algorithm>
#include <cmath>
#include <limits>

#include "simulator.hpp"

namespace tilewise {

namespace {

std::int64_t nanoseconds(double seconds) { return std::llround(1e9 * seconds); }

// Spreads numbers evenly (the finalizer of splitmix64).
std::uint64_t scattered(std::uint64_t x) {
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

}  // namespace

// The first message goes out now, behind those that are under way. Where links are shared, what comes then is
// not known before it happens; else the task's times are.
void Simulator::take(std::int64_t w, std::int64_t task, double time) {
    Worker& me = workers_[w];
    const std::int64_t gets = tasks_.gets(task);
    me.sum.messages += gets + tasks_.puts[task];
    ++me.unfinished;
    if (machine_.prefetch) ++me.ahead;
    if (machine_.links && (gets > 0 || !me.fetching.empty())) {
        me.fetching.push_back({task, 0, time, 0.0});
        if (me.fetching.size() == 1) get(w, time);
        return;
    }
    double first = time, all = time;
    if (gets > 0) {
        const double whole = static_cast<double>(gets) * machine_.latency + tasks_.bytes_got[task] / machine_.bandwidth;
        const double from = std::max(time, me.link);
        all = me.link = from + whole;
        first = machine_.overlap ? from + whole / static_cast<double>(gets) : all;
    }
    const double work = tasks_.seconds[task];
    const auto [start, end] = compute(w, time, first, work, true);
    // With overlap the last part of the work waits for the last message.
    const double last = all > first ? std::max(end, computed_by(w, all, work / static_cast<double>(gets))) : end;
    me.sum.communication += last - end;
    me.free = last;
    computed_at(w, task, time, start + (last - end), last);
}

// Work on data that come at `here`, of a task taken before: when it starts and ends.
std::pair<double, double> Simulator::compute(std::int64_t w, double taken, double here, double work, bool first_part) {
    Worker& me = workers_[w];
    const double start = std::max(here, me.free), end = computed_by(w, start, work);
    if (first_part && machine_.prefetch) at(start, w, What::begun);
    me.sum.communication += start - std::max(taken, me.free);
    me.sum.busy += end - start;
    me.free = end;
    return {start, end};
}

// The trace shows the work in one piece at the end, and all waiting for data before it.
void Simulator::computed_at(std::int64_t w, std::int64_t task, double taken, double start, double end) {
    trace_[task] = {w, nanoseconds(taken), nanoseconds(start), nanoseconds(end)};
    at(end, w, What::computed, task);
}

// Over links: the next message of the task that was taken first, now or when its node has fewer under way.
void Simulator::get(std::int64_t w, double time) {
    const Fetching& task = workers_[w].fetching.front();
    Node& mine = nodes_[machine_.node[w]];
    const std::int64_t from = tasks_.gets(task.task) > 0 ? node_with(task.task, task.got) : machine_.node[w];
    if (from == machine_.node[w]) return at(time, w, What::here, task.task);
    if (machine_.in_flight > 0 && mine.in_flight == machine_.in_flight) return mine.held.push(w);
    ++mine.in_flight;
    send(w, from, time);
}

// Gets for which the other node has no buffer are sent again and again, which takes time of each message there.
void Simulator::send(std::int64_t w, std::int64_t from, double time) {
    const std::int64_t task = workers_[w].fetching.front().task;
    Node& other = nodes_[from];
    ++other.wanted;
    const std::int64_t again = machine_.link_buffers > 0 ? std::max<std::int64_t>(0, other.wanted - machine_.link_buffers) : 0;
    const double start = std::max(time, other.out);
    other.out = start + bytes_of_get(task) / machine_.bandwidth + static_cast<double>(again) * machine_.link_resend;
    at(start, w, What::leaves, task);
}

// The link of the other node is free for it; it passes through that and through the own one at the same time.
void Simulator::leaves(std::int64_t w, std::int64_t task, double time) {
    --nodes_[node_with(task, workers_[w].fetching.front().got)].wanted;
    Node& mine = nodes_[machine_.node[w]];
    mine.in = std::max(mine.in, time) + bytes_of_get(task) / machine_.bandwidth;
    at(mine.in + machine_.latency, w, What::came, task);
}

void Simulator::came(std::int64_t w, double time) {
    Node& mine = nodes_[machine_.node[w]];
    --mine.in_flight;
    if (!mine.held.empty()) {
        const std::int64_t next = mine.held.front();
        mine.held.pop();
        get(next, time);
    }
    here(w, time);
}

// A task that waits for each message does a part of its work then, and only then asks for the next one.
void Simulator::here(std::int64_t w, double time) {
    Worker& me = workers_[w];
    Fetching& fetching = me.fetching.front();
    const std::int64_t task = fetching.task, gets = std::max<std::int64_t>(tasks_.gets(task), 1);
    const bool in_parts = machine_.overlap || !machine_.prefetch, first = !in_parts || fetching.got == 0;
    const bool last = ++fetching.got == gets;
    if (in_parts || last) {
        const double part = in_parts ? tasks_.seconds[task] / static_cast<double>(gets) : tasks_.seconds[task];
        const auto [start, end] = compute(w, fetching.taken, time, part, first);
        if (last) computed_at(w, task, fetching.taken, start - fetching.busy, end);
        fetching.busy += end - start;
        if (!last && !machine_.overlap) return at(end, w, What::partly, task);
    }
    if (last) me.fetching.erase(me.fetching.begin());
    if (!me.fetching.empty()) get(w, time);
}

// Without prefetch the worker waits until its result is in place; else it goes on.
void Simulator::accumulate(std::int64_t w, std::int64_t task, double time) {
    Worker& me = workers_[w];
    const std::int64_t puts = tasks_.puts[task];
    if (puts == 0 || (machine_.links && node_with(task, -1) == machine_.node[w])) {
        at(time, w, What::done, task);
    } else if (machine_.links) {
        Node& mine = nodes_[machine_.node[w]];
        const double start = std::max(mine.out, time);
        mine.out = start + tasks_.bytes_put[task] / machine_.bandwidth;
        at(start, w, What::put, task);
    } else {
        const double whole = static_cast<double>(puts) * machine_.latency + tasks_.bytes_put[task] / machine_.bandwidth;
        me.link = std::max(time, me.link) + whole;
        at(me.link, w, What::done, task);
    }
    if (machine_.prefetch) {
        --me.unfinished;
        go_on(w, time);
    }
}

void Simulator::put(std::int64_t w, std::int64_t task, double time) {
    Node& other = nodes_[node_with(task, -1)];
    other.in = std::max(other.in, time) + tasks_.bytes_put[task] / machine_.bandwidth;
    at(other.in + static_cast<double>(tasks_.puts[task]) * machine_.latency, w, What::done, task);
}

void Simulator::done(std::int64_t w, std::int64_t task, double time) {
    ++n_done_;
    end_ = std::max(end_, time);
    if (!machine_.prefetch) {
        Worker& me = workers_[w];
        me.sum.communication += time - me.free;
        me.free = time;
        --me.unfinished;
    }
    if (!needed_.empty()) release_successors(w, task, time);
    if (!machine_.prefetch) go_on(w, time);
}

// When work that starts now is computed.
double Simulator::computed_by(std::int64_t w, double time, double work) {
    if (machine_.drift == 0.0) return work_until(w, time, std::numeric_limits<double>::infinity(), machine_.speed[w], work);
    for (auto stretch = static_cast<std::int64_t>(time / machine_.stretch); work > 0.0; ++stretch)
        time = work_until(w, time, static_cast<double>(stretch + 1) * machine_.stretch, machine_.speed[w] * drifted(w, stretch), work);
    return time;
}

// Does what it can until then, and says when it stops: with k jobs on the core, each has 1/k of its speed.
double Simulator::work_until(std::int64_t w, double time, double until, double speed, double& work) {
    const auto compute = [&](double end, double rate) {
        const double possible = (end - time) * rate;
        time = work <= possible ? time + work / rate : end;
        work = work <= possible ? 0.0 : work - possible;
    };
    std::int64_t& load = workers_[w].load;
    const std::int64_t end = machine_.first_load[w + 1];
    while (load < end && machine_.load_to[load] <= time) ++load;
    for (std::int64_t k = load; k < end && work > 0.0 && time < until; ++k) {
        if (time < machine_.load_from[k]) compute(std::min(until, machine_.load_from[k]), speed);
        if (work > 0.0 && time < until) compute(std::min(until, machine_.load_to[k]), speed / machine_.load_jobs[k]);
    }
    if (work > 0.0 && time < until) compute(until, speed);
    return time;
}

// How fast a core is in a stretch of time: log-normal, 1 on average.
double Simulator::drifted(std::int64_t w, std::int64_t stretch) const {
    const auto even = [&](std::uint64_t which) {  // between 0 and 1
        std::uint64_t x = scattered(static_cast<std::uint64_t>(machine_.seed) + 0x9e3779b97f4a7c15ULL * (2 * static_cast<std::uint64_t>(w) + which));
        x = scattered(x + static_cast<std::uint64_t>(stretch));
        return (static_cast<double>(x >> 11) + 0.5) * 0x1p-53;
    };
    const double width = std::sqrt(std::log1p(machine_.drift * machine_.drift));
    const double normal = std::sqrt(-2.0 * std::log(even(0))) * std::cos(6.283185307179586 * even(1));
    return std::exp(width * normal - 0.5 * width * width);
}

double Simulator::bytes_of_get(std::int64_t task) const {
    return tasks_.bytes_got[task] / static_cast<double>(tasks_.gets(task));
}

// Of the data of a Get, or with -1 of a result. What is not known is spread evenly.
std::int64_t Simulator::node_with(std::int64_t task, std::int64_t get) const {
    const auto nodes = static_cast<std::int64_t>(nodes_.size());
    if (get >= 0 && tasks_.place.size > 0) {
        const double place = tasks_.place[tasks_.first_get[task] + get];
        return std::min(nodes - 1, static_cast<std::int64_t>(place * static_cast<double>(nodes)));
    }
    const std::int64_t number = get >= 0 ? 2 * (tasks_.first_get[task] + get) : 2 * task + 1;
    return static_cast<std::int64_t>(scattered(static_cast<std::uint64_t>(number)) % static_cast<std::uint64_t>(nodes));
}

}  // namespace tilewise
