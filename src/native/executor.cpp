#include "executor.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>
#include <vector>

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

private:
    int count_ = 0;
};

struct alignas(64) Counter {
    std::atomic<std::int64_t> next{0};
};

// Orders a heap of tasks: highest priority first, lowest number first among equals.
struct ByPriority {
    const Span<double>& priority;
    bool operator()(std::int64_t a, std::int64_t b) const {
        const double x = priority[a], y = priority[b];
        return x < y || (x == y && a > b);
    }
};

class Run {
public:
    Run(const TaskList& list, const Schedule& schedule, double* scratch, std::int64_t scratch_size,
        std::int64_t n_locks, Trace* trace, const std::function<bool()>& interrupted)
        : list_(list), schedule_(schedule), scratch_(scratch), scratch_size_(scratch_size), trace_(trace),
          interrupted_(interrupted), locks_(static_cast<std::size_t>(n_locks)),
          counters_(schedule.n_phases ? static_cast<std::size_t>(schedule.first_queue[schedule.n_phases]) : 0),
          began_(Clock::now()) {
        for (auto& lock : locks_) lock.store(0, std::memory_order_relaxed);
        // The same list for each worker, but for the arena that the last buffer is.
        pointers_.assign(static_cast<std::size_t>(schedule.n_workers), {list.buffers, list.buffers + list.n_buffers});
        lists_.assign(static_cast<std::size_t>(schedule.n_workers), list);
        for (std::int64_t w = 0; w < schedule.n_workers; ++w) {
            if (list.n_buffers > 0) pointers_[w].back() = scratch + w * scratch_size;
            lists_[w].buffers = pointers_[w].data();
        }
        if (schedule.n_phases == 0) start_data_flow();
    }

    Outcome operator()() {
        std::vector<std::thread> others;
        for (std::int64_t w = 1; w < schedule_.n_workers; ++w) others.emplace_back([this, w] { worker(w); });
        worker(0);
        for (auto& thread : others) thread.join();
        outcome_.counter_calls = counter_calls_.load();
        return outcome_;
    }

private:
    std::int64_t now() const {
        return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - began_).count();
    }

    void worker(std::int64_t w) {
        if (schedule_.n_phases == 0)
            data_flow(w);
        else
            for (std::int64_t phase = 0; phase < schedule_.n_phases && !stop_.load(); ++phase) {
                take_from_queue(w, phase);
                barrier(phase);
            }
    }

    void take_from_queue(std::int64_t w, std::int64_t phase) {
        const std::int64_t queue = schedule_.worker_queue[phase * schedule_.n_workers + w];
        if (queue < 0) return;
        const std::int64_t first = schedule_.first_task[queue], last = schedule_.first_task[queue + 1];
        const std::int64_t quantum = schedule_.quantum[queue];
        std::int64_t calls = 0;
        while (!stop_.load(std::memory_order_relaxed)) {
            const std::int64_t from = first + counters_[queue].next.fetch_add(quantum, std::memory_order_relaxed);
            ++calls;
            if (from >= last) break;
            for (std::int64_t k = from; k < std::min(from + quantum, last) && !stop_.load(std::memory_order_relaxed); ++k)
                perform(w, schedule_.tasks[k]);
        }
        counter_calls_.fetch_add(calls, std::memory_order_relaxed);
    }

    void barrier(std::int64_t phase) {
        arrived_.fetch_add(1);
        Pause pause;
        while (arrived_.load() < (phase + 1) * schedule_.n_workers && !stop_.load()) pause.wait();
    }

    // Data flow

    ByPriority by_priority() const { return {schedule_.priority}; }

    void start_data_flow() {
        const std::int64_t n = list_.tasks.size;
        needed_ = std::vector<std::atomic<std::int64_t>>(static_cast<std::size_t>(n));
        for (std::int64_t t = 0; t < n; ++t) {
            needed_[t].store(schedule_.n_needed[t], std::memory_order_relaxed);
            if (schedule_.n_needed[t] == 0) ready_.push_back(t);
        }
        ready_.reserve(static_cast<std::size_t>(n));
        std::make_heap(ready_.begin(), ready_.end(), by_priority());
        remaining_.store(n);
    }

    // The ready task of highest priority whose panels are free; -1 if there is none. Takes its locks.
    std::int64_t pop_ready() {
        const std::lock_guard<std::mutex> guard(mutex_);
        std::vector<std::int64_t>& busy = set_aside_;
        std::int64_t found = -1;
        while (!ready_.empty() && found < 0) {
            std::pop_heap(ready_.begin(), ready_.end(), by_priority());
            const std::int64_t t = ready_.back();
            ready_.pop_back();
            if (try_lock(list_.tasks[t]))
                found = t;
            else
                busy.push_back(t);
        }
        for (const std::int64_t t : busy) push(t);
        busy.clear();
        return found;
    }

    void push(std::int64_t t) {
        ready_.push_back(t);
        std::push_heap(ready_.begin(), ready_.end(), by_priority());
    }

    void data_flow(std::int64_t w) {
        std::vector<std::int64_t> freed;
        while (remaining_.load() > 0 && !stop_.load()) {
            const std::int64_t t = pop_ready();
            if (t < 0) {
                Pause pause;
                const std::int64_t seen = finished_.load();
                while (finished_.load() == seen && remaining_.load() > 0 && !stop_.load()) {
                    pause.wait();
                    if (w == 0) poll();
                }
                continue;
            }
            perform_locked(w, t);
            freed.clear();
            for (std::int64_t k = schedule_.first_successor[t]; k < schedule_.first_successor[t + 1]; ++k) {
                const std::int64_t next = schedule_.successors[k];
                if (needed_[next].fetch_sub(1, std::memory_order_acq_rel) == 1) freed.push_back(next);
            }
            if (!freed.empty()) {
                const std::lock_guard<std::mutex> guard(mutex_);
                for (const std::int64_t next : freed) push(next);
            }
            remaining_.fetch_sub(1);
            finished_.fetch_add(1);
        }
    }

    // One task

    bool try_lock(const Task& task) {
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
        trace_[t].ready = now();
        while (!try_lock(list_.tasks[t])) {
            if (stop_.load()) return;
            pause.wait();
        }
        perform_locked(w, t);
    }

    void perform_locked(std::int64_t w, std::int64_t t) {
        trace_[t].worker = w;
        trace_[t].start = now();
        if (trace_[t].ready == 0) trace_[t].ready = trace_[t].start;
        try {
            run_task(lists_[w], t, scratch_ + w * scratch_size_ + list_.arena, scratch_size_ - list_.arena);
        } catch (const std::exception& error) {
            fail(t, error.what());
        } catch (...) {
            fail(t, "unknown exception");
        }
        unlock(list_.tasks[t], list_.tasks[t].n_lock);
        trace_[t].end = now();
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
    double* scratch_;
    std::int64_t scratch_size_;
    Trace* trace_;
    const std::function<bool()>& interrupted_;
    std::vector<std::atomic<int>> locks_;
    std::vector<Counter> counters_;
    std::vector<std::atomic<std::int64_t>> needed_;
    std::vector<std::int64_t> ready_, set_aside_;
    std::mutex mutex_;
    std::atomic<std::int64_t> arrived_{0}, remaining_{0}, finished_{0}, counter_calls_{0};
    std::atomic<bool> stop_{false};
    std::int64_t last_poll_ = 0;
    Clock::time_point began_;
    Outcome outcome_;
};

}  // namespace

Outcome execute(const TaskList& list, const Schedule& schedule, double* scratch, std::int64_t scratch_size,
                std::int64_t n_locks, Trace* trace, const std::function<bool()>& interrupted) {
    return Run(list, schedule, scratch, scratch_size, n_locks, trace, interrupted)();
}

}  // namespace tilewise
