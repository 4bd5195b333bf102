// Gates: what another thread has to open before tasks of a run may begin, and the news that it has of the run.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <stdexcept>
#include <utility>
#include <vector>

namespace tilewise {

// Made for one run. The run tells which tasks have ended; the other thread waits for that, opens gates, or ends the run.
class Gates {
public:
    // Tasks behind gate g: tasks[first[g]] to before tasks[first[g + 1]]. Of those watched (tasks) the end is told.
    Gates(std::vector<std::int64_t> first, std::vector<std::int64_t> tasks, std::vector<std::int64_t> watched)
        : first_(std::move(first)), tasks_(std::move(tasks)) {
        for (const std::int64_t t : watched) {
            if (t >= static_cast<std::int64_t>(watched_.size())) watched_.resize(static_cast<std::size_t>(t) + 1, false);
            if (t >= 0) watched_[static_cast<std::size_t>(t)] = true;
        }
        if (first_.empty() || first_.back() != static_cast<std::int64_t>(tasks_.size()))
            throw std::invalid_argument("gates need the place of the first task behind each, and the end");
        open_.assign(first_.size() - 1, false);
    }

    // For the other thread. A gate is opened once.
    void open(const std::vector<std::int64_t>& gates) {
        const std::lock_guard<std::mutex> guard(mutex_);
        for (const std::int64_t g : gates) {
            if (g < 0 || g + 1 >= static_cast<std::int64_t>(first_.size()) || open_[g]) throw std::invalid_argument("no such gate, or it is open");
            open_[g] = true;
            if (freed_) freed_(&tasks_[first_[g]], &tasks_[first_[g + 1]]);
        }
    }

    // Watched tasks that have ended since the last call. Waits for some, for this long at the most, unless the run is over
    // or a worker has begun to wait.
    std::vector<std::int64_t> ended(double seconds) {
        std::unique_lock<std::mutex> lock(ended_mutex_);
        const bool hungry = waiting_ > 0;
        if (ended_.empty() && !over_ && seconds > 0)
            changed_.wait_for(lock, std::chrono::duration<double>(seconds),
                              [&] { return !ended_.empty() || over_ || (!hungry && waiting_ > 0); });
        std::vector<std::int64_t> tasks;
        tasks.swap(ended_);
        return tasks;
    }

    // Whether some worker has nothing to do.
    bool is_waiting() {
        const std::lock_guard<std::mutex> guard(ended_mutex_);
        return waiting_ > 0;
    }

    bool is_over() {
        const std::lock_guard<std::mutex> guard(ended_mutex_);
        return over_;
    }

    void stop() {
        const std::lock_guard<std::mutex> guard(mutex_);
        stopped_ = true;
        if (stop_) stop_();
    }

    // For the run: `freed` is called with the tasks behind each gate as it opens, or at once if it is open already.
    void attach(std::function<void(const std::int64_t*, const std::int64_t*)> freed, std::function<void()> stop) {
        const std::lock_guard<std::mutex> guard(mutex_);
        freed_ = std::move(freed);
        stop_ = std::move(stop);
        for (std::size_t g = 0; g < open_.size(); ++g)
            if (open_[g]) freed_(tasks_.data() + first_[g], tasks_.data() + first_[g + 1]);
        if (stopped_) stop_();
    }

    void detach() {
        {
            const std::lock_guard<std::mutex> guard(mutex_);
            freed_ = nullptr;
            stop_ = nullptr;
        }
        const std::lock_guard<std::mutex> guard(ended_mutex_);
        over_ = true;
        changed_.notify_all();
    }

    void tell(std::int64_t task) {
        if (task >= static_cast<std::int64_t>(watched_.size()) || !watched_[static_cast<std::size_t>(task)]) return;
        const std::lock_guard<std::mutex> guard(ended_mutex_);
        ended_.push_back(task);
        changed_.notify_one();
    }

    void wait_begins() {
        const std::lock_guard<std::mutex> guard(ended_mutex_);
        if (waiting_++ == 0) changed_.notify_one();
    }

    void wait_ends() {
        const std::lock_guard<std::mutex> guard(ended_mutex_);
        --waiting_;
    }

private:
    std::vector<std::int64_t> first_, tasks_;
    std::vector<bool> watched_;
    std::vector<bool> open_;
    std::mutex mutex_;  // of gates, and of what the run has attached
    std::function<void(const std::int64_t*, const std::int64_t*)> freed_;
    std::function<void()> stop_;
    bool stopped_ = false;
    std::mutex ended_mutex_;
    std::condition_variable changed_;
    std::vector<std::int64_t> ended_;
    bool over_ = false;
    int waiting_ = 0;
};

}  // namespace tilewise
