// Bells: how threads of other processes of a node tell a rank that there is something for it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <ctime>
#endif

namespace tilewise {

// Four numbers in memory that processes share: how often others have rung, how often the thread that waits was woken, how many of
// the others have workers that wait for something, and how often others had rung when somebody looked last.
class Bell {
public:
    explicit Bell(std::int64_t* place) : place_(place) {}

    // Workers of the rank that is told look between their tasks; its thread is woken if somebody waits meanwhile.
    void ring() const {
        __atomic_fetch_add(place_, 1, __ATOMIC_SEQ_CST);
        if (awaited()) wake();
    }

    // For another process, whose workers begin or cease to wait: what they wait for may be what this rank has not seen.
    void await() const {
        __atomic_fetch_add(place_ + 2, 1, __ATOMIC_SEQ_CST);
        if (has_news()) wake();
    }

    void cease() const { __atomic_fetch_sub(place_ + 2, 1, __ATOMIC_SEQ_CST); }

    bool awaited() const { return __atomic_load_n(place_ + 2, __ATOMIC_SEQ_CST) > 0; }

    bool has_news() const { return __atomic_load_n(place_, __ATOMIC_SEQ_CST) != __atomic_load_n(place_ + 3, __ATOMIC_RELAXED); }

    // Before a look: what is rung from now on is new.
    void hear() const { __atomic_store_n(place_ + 3, __atomic_load_n(place_, __ATOMIC_ACQUIRE), __ATOMIC_RELAXED); }

    void wake() const {
        __atomic_fetch_add(word(), 1U, __ATOMIC_ACQ_REL);
#if defined(__linux__)
        syscall(SYS_futex, word(), FUTEX_WAKE, 1, nullptr, nullptr, 0);
#endif
    }

    std::uint32_t woken() const { return __atomic_load_n(word(), __ATOMIC_ACQUIRE); }

    // Until it is woken once more than `seen`, or this long; may end before.
    void wait(std::uint32_t seen, std::chrono::nanoseconds span) const {
        if (span <= span.zero()) return;
#if defined(__linux__)
        timespec time{};
        time.tv_sec = static_cast<std::time_t>(span.count() / 1'000'000'000);
        time.tv_nsec = static_cast<long>(span.count() % 1'000'000'000);
        syscall(SYS_futex, word(), FUTEX_WAIT, seen, &time, nullptr, 0);
#else
        if (woken() == seen) std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(span, std::chrono::microseconds(500)));
#endif
    }

private:
    std::uint32_t* word() const { return reinterpret_cast<std::uint32_t*>(place_ + 1); }

    std::int64_t* place_;
};

}  // namespace tilewise
