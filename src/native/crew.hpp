// Threads that work beside the one that calls.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

namespace tilewise {

// The system has no more threads to give.
struct TooManyThreads : std::runtime_error {
    using std::runtime_error::runtime_error;
};

// Runs `work(0)` here and `work(1)` to `work(n - 1)` on threads of their own. If the system refuses one of these,
// `give_up` tells those that have begun to end, and an exception follows.
template <class Work, class GiveUp>
void on_crew(std::int64_t n_workers, const Work& work, const GiveUp& give_up) {
    std::vector<std::thread> others;
    bool refused = false;
    try {
        for (std::int64_t w = 1; w < n_workers; ++w) others.emplace_back(work, w);
    } catch (const std::system_error&) {
        refused = true;
        give_up();
    }
    const std::string begun = std::to_string(others.size() + 1);
    if (!refused) work(0);
    for (auto& thread : others) thread.join();
    if (refused)
        throw TooManyThreads("the system gives " + begun + " of " + std::to_string(n_workers) + " threads: ask for fewer");
}

// Calls a worker with each number from 0 to count - 1, once; each thread has a worker of its own, which `make()` makes there.
// The first exception ends the work of all and is passed on.
template <class Make>
void hand_out(std::int64_t n_workers, std::int64_t count, const Make& make) {
    std::atomic<std::int64_t> next{0};
    std::exception_ptr failure;
    std::mutex mutex;
    const auto work = [&](std::int64_t) {
        try {
            auto worker = make();
            for (std::int64_t k = next++; k < count; k = next++) worker(k);
        } catch (...) {
            const std::lock_guard<std::mutex> guard(mutex);
            if (!failure) failure = std::current_exception();
            next = count;
        }
    };
    on_crew(n_workers, work, [&] { next = count; });
    if (failure) std::rethrow_exception(failure);
}

}  // namespace tilewise
