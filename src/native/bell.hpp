// Bells: how a thread that waits is woken by threads of other processes of its node.
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

// Three numbers in memory that processes share: how often others have rung, how often the thread that waits was woken, and how
// many of the others have workers that wait for something.
class Bell {
public:
    explicit Bell(std::int64_t* place) : place_(place) {}

    void ring() const {
        __atomic_fetch_add(place_, 1, __ATOMIC_ACQ_REL);
        wake();
    }

    std::int64_t rung() const { return __atomic_load_n(place_, __ATOMIC_ACQUIRE); }

    void wake() const {
        __atomic_fetch_add(word(), 1U, __ATOMIC_ACQ_REL);
#if defined(__linux__)
        syscall(SYS_futex, word(), FUTEX_WAKE, 1, nullptr, nullptr, 0);
#endif
    }

    // For another process, whose workers begin or cease to wait: what is told to it late may be what they wait for.
    void await() const {
        __atomic_fetch_add(place_ + 2, 1, __ATOMIC_ACQ_REL);
        wake();
    }

    void cease() const { __atomic_fetch_sub(place_ + 2, 1, __ATOMIC_ACQ_REL); }

    bool awaited() const { return __atomic_load_n(place_ + 2, __ATOMIC_ACQUIRE) > 0; }

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
