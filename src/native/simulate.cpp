#include "simulate.hpp"

#include "simulator.hpp"

namespace tilewise {

namespace {

constexpr std::int64_t poll_interval = 1 << 20;  // events between two looks for an interrupt

}  // namespace

Simulator::Simulator(const SimulatedTasks& tasks, const Schedule& schedule, const SimulatedMachine& machine, Trace* trace,
                     const std::function<bool()>& interrupted)
    : tasks_(tasks), schedule_(schedule), machine_(machine), trace_(trace), interrupted_(interrupted),
      workers_(static_cast<std::size_t>(schedule.n_workers)), places_(schedule) {
    for (std::int64_t w = 0; w < schedule.n_workers; ++w) workers_[w].load = machine.first_load[w];
    if (schedule.n_needed.size) needed_.assign(schedule.n_needed.data, schedule.n_needed.data + schedule.n_needed.size);
    if (schedule.n_phases) waiting_.assign(needed_.size(), -1);
    nodes_.resize(static_cast<std::size_t>(machine.node[schedule.n_workers - 1] + 1));
}

SimulatedRun Simulator::operator()() {
    if (schedule_.n_phases == 0)
        data_flow();
    else
        for (phase_ = 0; phase_ < schedule_.n_phases && !run_.interrupted; ++phase_) {
            begin_phase();
            process();
            end_ += machine_.barrier;
            run_.phase_ends.push_back(end_);
        }
    run_.makespan = end_;
    for (const Worker& worker : workers_) run_.workers.push_back(worker.sum);
    return run_;
}

void Simulator::process() {
    while (!events_.empty() && !run_.interrupted) {
        const Event event = events_.top();
        events_.pop();
        handle(event);
        // What happens at the same time counts before ready tasks are given away.
        if (schedule_.n_phases == 0 && (events_.empty() || events_.top().time > event.time)) give_ready_tasks(event.time);
        if (++handled_ % poll_interval == 0) run_.interrupted = interrupted_();
    }
}

void Simulator::handle(const Event& event) {
    const auto [time, w, what, task] = event;
    switch (what) {
        case What::begun:
            --workers_[w].ahead;
            return go_on(w, time);
        case What::partly:
            return get(w, time);
        case What::computed:
            return accumulate(w, task, time);
        case What::done:
            return done(w, task, time);
        case What::leaves:
            return leaves(w, task, time);
        case What::came:
            return came(w, time);
        case What::here:
            return here(w, time);
        case What::put:
            return put(w, task, time);
        case What::asked:
            return draw(w, time);
        case What::answered:
            return answered(w, time);
        case What::turn:
            return turn(w, task, time);
        case What::given:
            return given(w, task, time);
        case What::told:
            return told(w, task, time);
        case What::activated:
            return activated(task);
    }
}

void Simulator::go_on(std::int64_t w, double time) {
    if (schedule_.n_phases == 0)
        offer(w);
    else
        work_on(w, time);
}

SimulatedRun simulate(const SimulatedTasks& tasks, const Schedule& schedule, const SimulatedMachine& machine, Trace* trace,
                      const std::function<bool()>& interrupted) {
    return Simulator(tasks, schedule, machine, trace, interrupted)();
}

}  // namespace tilewise
