// A crew whose failures reach the caller.
#pragma once

#include <atomic>
#include <exception>
#include <mutex>

#include "crew.hpp"

namespace tilewise {

// Runs `body(worker number)` on all workers and passes on the first exception. Workers take what is `next` of `count`
// things, and after a failure there is nothing left to take.
template <class Body>
void on_workers(std::int64_t n_workers, std::atomic<std::int64_t>& next, std::int64_t count, const Body& body) {
    std::exception_ptr failure;
    std::mutex mutex;
    const auto work = [&](std::int64_t number) {
        try {
            body(number);
        } catch (...) {
            const std::lock_guard<std::mutex> guard(mutex);
            failure = std::current_exception();
            next = count;
        }
    };
    on_crew(n_workers, work, [&] { next = count; });
    if (failure) std::rethrow_exception(failure);
}

}  // namespace tilewise
