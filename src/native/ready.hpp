// Ready tasks of a run by data flow: in which order they are taken, and where they wait.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <vector>

#include "executor.hpp"
#include "records.hpp"

namespace tilewise {

// Orders a heap of tasks: highest priority first, lowest number first among equals.
struct ByPriority {
    const Span<double>* priority = nullptr;
    bool operator()(std::int64_t a, std::int64_t b) const {
        const double x = (*priority)[a], y = (*priority)[b];
        return x < y || (x == y && a > b);
    }
};

// Which queue a ready task goes to, and who takes from it. Without arrays in the schedule all share one queue.
class ReadyPlaces {
public:
    explicit ReadyPlaces(const Schedule& schedule) : home_(schedule.home) {
        const Span<std::int64_t>& queue = schedule.ready_queue;
        queue_.assign(static_cast<std::size_t>(schedule.n_workers), 0);
        if (queue.size > 0) queue_.assign(queue.data, queue.data + queue.size);
        group_.assign(1, 0);
        if (schedule.ready_group.size > 0) group_.assign(schedule.ready_group.data, schedule.ready_group.data + schedule.ready_group.size);
        members_.resize(static_cast<std::size_t>(*std::max_element(group_.begin(), group_.end()) + 1));
        for (std::size_t q = 0; q < group_.size(); ++q) members_[group_[q]].push_back(static_cast<std::int64_t>(q));
    }

    std::int64_t queues() const { return static_cast<std::int64_t>(group_.size()); }
    std::int64_t groups() const { return static_cast<std::int64_t>(members_.size()); }
    std::int64_t of_worker(std::int64_t w) const { return queue_[w]; }
    std::int64_t group(std::int64_t queue) const { return group_[queue]; }
    bool alone(std::int64_t queue) const { return members_[group_[queue]].size() == 1; }
    std::int64_t home(std::int64_t task) const { return home_.size > 0 ? home_[task] : 0; }

    // Of a task that this worker has made ready, or none of its home (-1): the worker's own, if it is at the task's home.
    std::int64_t of_task(std::int64_t task, std::int64_t worker) const {
        const std::int64_t at = home(task);
        if (worker >= 0 && group_[queue_[worker]] == at) return queue_[worker];
        return members_[at][static_cast<std::size_t>(task) % members_[at].size()];
    }

private:
    std::vector<std::int64_t> queue_, group_;         // of each worker, of each queue
    std::vector<std::vector<std::int64_t>> members_;  // queues of each group
    Span<std::int64_t> home_;
};

// A queue of the threads' ready tasks, by priority.
class alignas(64) ReadyQueue {
public:
    void start(const Span<double>& priority, std::int64_t expected) {
        order_.priority = &priority;
        tasks_.reserve(static_cast<std::size_t>(expected));
    }

    void push(const std::int64_t* first, const std::int64_t* last) {
        const std::lock_guard<std::mutex> guard(mutex_);
        for (; first != last; ++first) insert(*first);
        count();
    }

    // The task of highest priority that `lock` gets hold of; -1 if there is none.
    template <typename Lock>
    std::int64_t take(const Lock& lock) {
        if (size_.load(std::memory_order_relaxed) == 0) return -1;
        const std::lock_guard<std::mutex> guard(mutex_);
        std::int64_t found = -1;
        while (!tasks_.empty() && found < 0) {
            std::pop_heap(tasks_.begin(), tasks_.end(), order_);
            const std::int64_t task = tasks_.back();
            tasks_.pop_back();
            if (lock(task))
                found = task;
            else
                set_aside_.push_back(task);
        }
        for (const std::int64_t task : set_aside_) insert(task);
        set_aside_.clear();
        count();
        return found;
    }

private:
    void insert(std::int64_t task) {
        tasks_.push_back(task);
        std::push_heap(tasks_.begin(), tasks_.end(), order_);
    }

    // To be seen by those who wait for the end of a task, which is made known after this.
    void count() { size_.store(tasks_.size(), std::memory_order_relaxed); }

    std::mutex mutex_;
    std::atomic<std::size_t> size_{0};
    ByPriority order_;
    std::vector<std::int64_t> tasks_, set_aside_;
};

}  // namespace tilewise
