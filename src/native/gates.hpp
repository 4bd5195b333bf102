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
    // Tasks behind gate g: tasks[first[g]] to before tasks[first[g + 1]]. Groups of tasks, in the same form, are watched: when
    // the last task of a group has ended, the other thread is told.
    Gates(std::vector<std::int64_t> first, std::vector<std::int64_t> tasks, const std::vector<std::int64_t>& group_first,
          const std::vector<std::int64_t>& group_tasks)
        : first_(std::move(first)), tasks_(std::move(tasks)) {
        check(first_, tasks_);
        check(group_first, group_tasks);
        open_.assign(first_.size() - 1, false);
        for (std::size_t g = 0; g + 1 < group_first.size(); ++g) {
            left_.push_back(group_first[g + 1] - group_first[g]);
            for (std::int64_t k = group_first[g]; k < group_first[g + 1]; ++k) {
                const auto task = static_cast<std::size_t>(group_tasks[k]);
                if (task >= groups_.size()) groups_.resize(task + 1);
                groups_[task].push_back(static_cast<std::int64_t>(g));
            }
        }
    }
    virtual ~Gates() = default;
    Gates(const Gates&) = delete;
    Gates& operator=(const Gates&) = delete;

    // For the other thread. A gate is opened once.
    void open(const std::vector<std::int64_t>& gates) {
        const std::lock_guard<std::mutex> guard(mutex_);
        for (const std::int64_t g : gates) {
            if (g < 0 || g + 1 >= static_cast<std::int64_t>(first_.size()) || open_[g]) throw std::invalid_argument("no such gate, or it is open");
            open_[g] = true;
            if (freed_) freed_(&tasks_[first_[g]], &tasks_[first_[g + 1]]);
        }
    }

    // Groups that have ended since the last call. Waits for some for this long at the most, unless the run is over. While all
    // workers are busy news may wait for more: each look takes time from them.
    std::vector<std::int64_t> ended(double seconds) {
        auto now = Clock::now();
        const auto until = now + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
        std::unique_lock<std::mutex> lock(ended_mutex_);
        const bool hungry = waiting_ > 0;
        for (; seconds > 0 && !over_; now = Clock::now()) {
            const bool news = !ended_.empty();
            if (waiting_ > 0 && (news || !hungry)) break;  // to look for what may have come
            const auto end = news ? last_ + spacing : until;
            if (now >= end) break;
            withheld_ = true;
            changed_.wait_for(lock, end - now);
        }
        withheld_ = false;
        last_ = now;
        std::vector<std::int64_t> groups;
        groups.swap(ended_);
        return groups;
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
        wake();
    }

    // For workers: a task has ended.
    void tell(std::int64_t task) {
        if (task >= static_cast<std::int64_t>(groups_.size()) || groups_[static_cast<std::size_t>(task)].empty()) return;
        const std::lock_guard<std::mutex> guard(ended_mutex_);
        for (const std::int64_t g : groups_[static_cast<std::size_t>(task)])
            if (--left_[static_cast<std::size_t>(g)] == 0) group_ended(g);
    }

    // For workers: they have nothing to do.
    void wait_begins() {
        const std::lock_guard<std::mutex> guard(ended_mutex_);
        if (waiting_++ == 0) hunger_begins();
    }

    void wait_ends() {
        const std::lock_guard<std::mutex> guard(ended_mutex_);
        if (--waiting_ == 0) hunger_ends();
    }

    // For workers: between two tasks, and again and again while they wait.
    virtual void look() {}

protected:
    using Clock = std::chrono::steady_clock;

    // The last task of a group has ended. All these are called one at a time.
    virtual void group_ended(std::int64_t group) {
        ended_.push_back(group);
        if (ended_.size() == 1 || !withheld_) wake();
    }
    virtual void hunger_begins() {
        if (withheld_) wake();
    }
    virtual void hunger_ends() {}
    virtual void wake() { changed_.notify_one(); }

    std::int64_t n_gates() const { return static_cast<std::int64_t>(first_.size()) - 1; }
    std::int64_t n_groups() const { return static_cast<std::int64_t>(left_.size()); }

private:
    // Of looks, while no worker waits. Each costs the workers 0.1 ms and more, as their caches are cold then; but what is told late also
    // comes late.
    static constexpr std::chrono::milliseconds spacing{1};

    static void check(const std::vector<std::int64_t>& first, const std::vector<std::int64_t>& tasks) {
        if (first.empty() || first.back() != static_cast<std::int64_t>(tasks.size()))
            throw std::invalid_argument("gates and groups need the place of the first task of each, and the end");
        for (const std::int64_t t : tasks)
            if (t < 0) throw std::invalid_argument("gates and groups need numbers of tasks");
    }

    std::vector<std::int64_t> first_, tasks_;
    std::vector<std::vector<std::int64_t>> groups_;  // of each task
    std::vector<std::int64_t> left_;                 // tasks of each group
    std::vector<bool> open_;
    std::mutex mutex_;  // of gates, and of what the run has attached
    std::function<void(const std::int64_t*, const std::int64_t*)> freed_;
    std::function<void()> stop_;
    bool stopped_ = false;
    std::mutex ended_mutex_;
    std::condition_variable changed_;
    std::vector<std::int64_t> ended_;
    Clock::time_point last_{};  // when news were told last
    bool withheld_ = false;     // whether a worker that begins to wait changes anything
    bool over_ = false;
    int waiting_ = 0;
};

}  // namespace tilewise
