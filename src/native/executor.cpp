#include "executor.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "allocations.hpp"
#include "crew.hpp"
#include "loop.hpp"
#include "pinned.hpp"
#include "ready.hpp"
#include "tasks.hpp"

namespace tilewise {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::int64_t poll_interval = 50'000'000;  // nanoseconds between two looks for an interrupt

// Waits a little: first by spinning, then by giving the processor to others.
class Pause {
public:
    void wait() {
        if (++count_ < 64) {
#if defined(__x86_64__) || defined(__i386__)
            __builtin_ia32_pause();
#endif
        } else {
            std::this_thread::yield();
        }
    }

    bool is_long() { return ++count_ > 256; }

private:
    int count_ = 0;
};

// A queue of a phase. `ends` is packed: how many were taken from the front (low half) and from the back.
struct alignas(64) QueueState {
    std::atomic<std::uint64_t> ends{0};
    std::atomic_flag busy = ATOMIC_FLAG_INIT;
    std::unique_ptr<Loop> loop;
};

// Tells those who open gates that a worker waits.
class Hunger {
public:
    explicit Hunger(Gates* gates) : gates_(gates) {
        if (gates_) gates_->wait_begins();
    }
    ~Hunger() {
        if (gates_) gates_->wait_ends();
    }
    Hunger(const Hunger&) = delete;
    Hunger& operator=(const Hunger&) = delete;

private:
    Gates* gates_;
};

constexpr std::uint64_t back_unit = std::uint64_t{1} << 32;

struct Range {
    std::int64_t first, last;
    bool empty() const { return first >= last; }
};

class Run {
public:
    Run(const TaskList& list, const Schedule& schedule, const Scratch& scratch, std::int64_t n_locks, Trace* trace,
        const std::vector<std::int64_t>& processors, const std::function<bool()>& interrupted, Gates* gates)
        : list_(list), schedule_(schedule), trace_(trace), processors_(processors), interrupted_(interrupted), gates_(gates),
          locks_(static_cast<std::size_t>(n_locks)),
          queues_(schedule.n_phases ? static_cast<std::size_t>(schedule.first_queue[schedule.n_phases]) : 0),
          places_(schedule), ready_(schedule.n_phases ? 0 : static_cast<std::size_t>(places_.queues())), began_(Clock::now()) {
        for (auto& lock : locks_) lock.store(0, std::memory_order_relaxed);
        // The same list for each worker, but for the arena that the last buffer is.
        pointers_.assign(static_cast<std::size_t>(schedule.n_workers), {list.buffers, list.buffers + list.n_buffers});
        lists_.assign(static_cast<std::size_t>(schedule.n_workers), list);
        arenas_.resize(static_cast<std::size_t>(schedule.n_workers));
        outcome_.workers.resize(static_cast<std::size_t>(schedule.n_workers));
        for (std::int64_t w = 0; w < schedule.n_workers; ++w) {
            double* own = scratch.memory + w * scratch.size;
            if (list.n_buffers > 0) pointers_[w].back() = own;
            lists_[w].buffers = pointers_[w].data();
            arenas_[w] = Arena{own + list.arena, scratch.size - list.arena};
        }
        start_counts();
        if (schedule.n_phases == 0) start_data_flow();
        for (std::size_t q = 0; q < queues_.size(); ++q) queues_[q].loop = schedule_.loop(static_cast<std::int64_t>(q));
    }

    Outcome operator()() {
        if (gates_)
            gates_->attach([this](const std::int64_t* first, const std::int64_t* last) { pass_gate(first, last); }, [this] { stop_.store(true); });
        try {
            on_crew(schedule_.n_workers, [this](std::int64_t w) { worker(w); }, [this] { stop_.store(true); });
        } catch (...) {
            if (gates_) gates_->detach();
            throw;
        }
        if (gates_) gates_->detach();
        return outcome_;
    }

private:
    std::int64_t now() const {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - began_).count();
    }

    void worker(std::int64_t w) {
        const Pinned pinned(processors_.empty() ? -1 : processors_[w]);
        if (schedule_.n_phases == 0)
            data_flow(w);
        else
            for (std::int64_t phase = 0; phase < schedule_.n_phases && !stop_.load(); ++phase) {
                take_from_queue(w, phase);
                if (schedule_.steal[phase]) take_from_others(w, phase);
                barrier(phase);
            }
        outcome_.workers[w].most_memory = arenas_[w].most + (list_.step.size ? list_.arena : 0);
    }

    // Queues

    std::int64_t length(std::int64_t queue) const { return schedule_.length(queue); }

    void take_from_queue(std::int64_t w, std::int64_t phase) {
        const std::int64_t queue = schedule_.worker_queue[phase * schedule_.n_workers + w];
        if (queue < 0) return;
        if (schedule_.quantum[queue] == 0) {  // a list of its own
            perform_range(w, queue, {0, length(queue)});
            return;
        }
        WorkerCount& count = outcome_.workers[w];
        double seconds = 0.0;
        while (!stop_.load(std::memory_order_relaxed)) {
            const std::int64_t asked = now();
            const Range range = queues_[queue].loop ? next_of_loop(w, queue, seconds) : next_of_counter(queue, schedule_.steal[phase]);
            const std::int64_t got = now();
            ++count.counter_calls;
            count.counter_nanoseconds += got - asked;
            if (range.empty()) break;
            perform_range(w, queue, range);
            seconds = 1e-9 * static_cast<double>(now() - got);
        }
    }

    // The next tasks from the front; with thieves at the back, both ends must move in one step.
    Range next_of_counter(std::int64_t queue, bool thieves) {
        const std::int64_t quantum = schedule_.quantum[queue], n = length(queue);
        auto& ends = queues_[queue].ends;
        if (!thieves) {
            const auto from = static_cast<std::int64_t>(ends.fetch_add(static_cast<std::uint64_t>(quantum), std::memory_order_relaxed));
            return {from, std::min(from + quantum, n)};
        }
        std::uint64_t seen = ends.load();
        while (true) {
            const auto front = static_cast<std::int64_t>(seen & (back_unit - 1)), back = n - static_cast<std::int64_t>(seen >> 32);
            const std::int64_t count = std::min(quantum, back - front);
            if (count <= 0) return {n, n};
            if (ends.compare_exchange_weak(seen, seen + static_cast<std::uint64_t>(count))) return {front, front + count};
        }
    }

    Range next_of_loop(std::int64_t w, std::int64_t queue, double seconds) {
        QueueState& state = queues_[queue];
        Pause pause;
        while (state.busy.test_and_set(std::memory_order_acquire)) pause.wait();
        const auto [first, last] = state.loop->next(w, seconds);
        state.busy.clear(std::memory_order_release);
        return {first, last};
    }

    // One task after the other from the back of the longest queue, until all are empty.
    void take_from_others(std::int64_t w, std::int64_t phase) {
        WorkerCount& count = outcome_.workers[w];
        while (!stop_.load(std::memory_order_relaxed)) {
            const std::int64_t asked = now();
            std::int64_t victim = -1, most = 0;
            for (std::int64_t q = schedule_.first_queue[phase]; q < schedule_.first_queue[phase + 1]; ++q) {
                const std::uint64_t seen = queues_[q].ends.load();
                const std::int64_t left = length(q) - static_cast<std::int64_t>(seen & (back_unit - 1)) - static_cast<std::int64_t>(seen >> 32);
                if (left > most) most = left, victim = q;
            }
            if (victim < 0) return;
            std::uint64_t seen = queues_[victim].ends.load();
            const auto front = static_cast<std::int64_t>(seen & (back_unit - 1)), back = length(victim) - static_cast<std::int64_t>(seen >> 32);
            if (front >= back || !queues_[victim].ends.compare_exchange_strong(seen, seen + back_unit)) continue;
            ++count.steals;
            count.counter_nanoseconds += now() - asked;
            perform_range(w, victim, {back - 1, back});
        }
    }

    void perform_range(std::int64_t w, std::int64_t queue, Range range) {
        const std::int64_t* tasks = schedule_.tasks.data + schedule_.first_task[queue];
        for (std::int64_t k = range.first; k < range.last && !stop_.load(std::memory_order_relaxed); ++k)
            if (tasks[k] >= 0) perform(w, tasks[k]);
    }

    void barrier(std::int64_t phase) {
        arrived_.fetch_add(1);
        Pause pause;
        while (arrived_.load() < (phase + 1) * schedule_.n_workers && !stop_.load()) pause.wait();
    }

    // Who waits for whom

    void start_counts() {
        needed_ = std::vector<std::atomic<std::int64_t>>(static_cast<std::size_t>(schedule_.n_needed.size));
        for (std::int64_t t = 0; t < schedule_.n_needed.size; ++t)
            needed_[t].store(schedule_.n_needed[t], std::memory_order_relaxed);
    }

    template <typename Freed>
    void release_successors(std::int64_t t, const Freed& freed) {
        for (std::int64_t k = schedule_.first_successor[t]; k < schedule_.first_successor[t + 1]; ++k) {
            const std::int64_t next = schedule_.successors[k];
            if (needed_[next].fetch_sub(1, std::memory_order_acq_rel) == 1) freed(next);
        }
    }

    // Tasks behind a gate that the other thread has opened.
    void pass_gate(const std::int64_t* first, const std::int64_t* last) {
        for (; first != last; ++first)
            if (needed_[*first].fetch_sub(1, std::memory_order_acq_rel) == 1 && schedule_.n_phases == 0)
                ready_[places_.of_task(*first, -1)].push(first, first + 1);
        finished_.fetch_add(1);
    }

    // Data flow

    void start_data_flow() {
        const std::int64_t n = list_.tasks.size;
        for (ReadyQueue& queue : ready_) queue.start(schedule_.priority, n / places_.queues());
        std::int64_t left = 0;
        for (std::int64_t t = 0; t < n; ++t) {
            if (schedule_.n_needed[t] == 0) ready_[places_.of_task(t, -1)].push(&t, &t + 1);
            left += schedule_.n_needed[t] >= 0;
        }
        remaining_.store(left);
    }

    void data_flow(std::int64_t w) {
        std::vector<std::int64_t> freed;
        while (remaining_.load() > 0 && !stop_.load()) {
            if (gates_) gates_->look();
            const std::int64_t seen = finished_.load();
            const std::int64_t t = next_ready(w);
            if (t < 0) {
                wait_for_an_end(w, seen);
                continue;
            }
            perform_locked(w, t);
            freed.clear();
            release_successors(t, [&](std::int64_t next) { freed.push_back(next); });
            push_ready(w, freed);
            remaining_.fetch_sub(1);
            finished_.fetch_add(1);
        }
    }

    // A task whose panels are free, with their locks: of the own queue, then of the others; -1 if there is none.
    std::int64_t next_ready(std::int64_t w) {
        const std::int64_t own = places_.of_worker(w), n = places_.queues();
        for (std::int64_t k = 0; k < n; ++k) {
            const std::int64_t t = ready_[(own + k) % n].take([&](std::int64_t task) { return try_lock(task); });
            if (t < 0) continue;
            if (k > 0) ++outcome_.workers[w].steals;
            return t;
        }
        return -1;
    }

    // Those that go to the same queue, together.
    void push_ready(std::int64_t w, const std::vector<std::int64_t>& tasks) {
        for (std::size_t first = 0, last = 0; first < tasks.size(); first = last) {
            const std::int64_t queue = places_.of_task(tasks[first], w);
            do ++last;
            while (last < tasks.size() && places_.of_task(tasks[last], w) == queue);
            ready_[queue].push(tasks.data() + first, tasks.data() + last);
        }
    }

    // Nothing was free when `seen` tasks had ended: another end may change that.
    void wait_for_an_end(std::int64_t w, std::int64_t seen) {
        Pause pause;
        const Hunger hunger(gates_);
        while (finished_.load() == seen && remaining_.load() > 0 && !stop_.load()) {
            wait(pause);
            if (w == 0) poll();
        }
    }

    // Where another rank may be waited for, a worker looks for what has come, and leaves the processor to others.
    void wait(Pause& pause) const {
        if (gates_) gates_->look();
        if (gates_ && pause.is_long())
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        else
            pause.wait();
    }

    // One task

    bool try_lock(std::int64_t t) {
        if (list_.body) return true;  // such tasks share nothing
        const Task& task = list_.tasks[t];
        for (std::int64_t k = 0; k < task.n_lock; ++k) {
            if (locks_[list_.locks[task.first_lock + k]].exchange(1, std::memory_order_acquire) == 0) continue;
            unlock(task, k);
            return false;
        }
        return true;
    }

    void unlock(const Task& task, std::int64_t count) {
        for (std::int64_t k = 0; k < count; ++k)
            locks_[list_.locks[task.first_lock + k]].store(0, std::memory_order_release);
    }

    void perform(std::int64_t w, std::int64_t t) {
        Pause pause;
        if (gates_) gates_->look();
        trace_[t].ready = now();
        const bool counts = !needed_.empty();
        if (counts && needed_[t].load(std::memory_order_acquire) > 0) {
            const Hunger hunger(gates_);
            while (needed_[t].load(std::memory_order_acquire) > 0) {
                if (stop_.load()) return;
                wait(pause);
            }
        }
        while (!try_lock(t)) {
            if (stop_.load()) return;
            wait(pause);
        }
        perform_locked(w, t);
        if (counts) release_successors(t, [](std::int64_t) {});
    }

    void perform_locked(std::int64_t w, std::int64_t t) {
        trace_[t].worker = w;
        trace_[t].start = now();
        if (trace_[t].ready == 0) trace_[t].ready = trace_[t].start;
        const std::int64_t before = heap_allocations();
        try {
            if (list_.body)
                (*list_.body)(w, t);
            else
                run_task(lists_[w], t, arenas_[w]);
            outcome_.workers[w].allocations += heap_allocations() - before;
        } catch (const std::bad_alloc&) {
            fail(t, "out of memory");
        } catch (const std::exception& error) {
            fail(t, error.what());
        } catch (...) {
            fail(t, "unknown exception");
        }
        if (!list_.body) unlock(list_.tasks[t], list_.tasks[t].n_lock);
        trace_[t].end = now();
        if (gates_) gates_->tell(t);
        if (w == 0) poll();
    }

    void fail(std::int64_t t, const char* reason) {
        const std::lock_guard<std::mutex> guard(mutex_);
        if (outcome_.failed_task < 0) {
            outcome_.failed_task = t;
            outcome_.reason = reason;
        }
        stop_.store(true);
    }

    void poll() {
        const std::int64_t time = now();
        if (time - last_poll_ < poll_interval) return;
        last_poll_ = time;
        if (interrupted_()) {
            outcome_.interrupted = true;
            stop_.store(true);
        }
    }

    const TaskList& list_;
    std::vector<std::vector<double*>> pointers_;
    std::vector<TaskList> lists_;
    const Schedule& schedule_;
    std::vector<Arena> arenas_;
    Trace* trace_;
    const std::vector<std::int64_t>& processors_;
    const std::function<bool()>& interrupted_;
    Gates* gates_;
    std::vector<std::atomic<int>> locks_;
    std::vector<QueueState> queues_;
    std::vector<std::atomic<std::int64_t>> needed_;
    ReadyPlaces places_;
    std::vector<ReadyQueue> ready_;
    std::mutex mutex_;  // of the outcome
    std::atomic<std::int64_t> arrived_{0}, remaining_{0}, finished_{0};
    std::atomic<bool> stop_{false};
    std::int64_t last_poll_ = 0;
    Clock::time_point began_;
    Outcome outcome_;
};

}  // namespace

Outcome execute(const TaskList& list, const Schedule& schedule, const Scratch& scratch, std::int64_t n_locks, Trace* trace,
                const std::vector<std::int64_t>& processors, const std::function<bool()>& interrupted, Gates* gates) {
    return Run(list, schedule, scratch, n_locks, trace, processors, interrupted, gates)();
}

}  // namespace tilewise
