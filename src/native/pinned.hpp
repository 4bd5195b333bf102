// Binds the calling thread to a processor for as long as the object lives.
#pragma once

#include <cstdint>

#if defined(__linux__)
#include <sched.h>
#endif

namespace tilewise {

class Pinned {
public:
    // A negative number leaves the thread where it is, and so does a processor that it may not use.
    explicit Pinned(std::int64_t processor) {
#if defined(__linux__)
        if (processor < 0 || processor >= CPU_SETSIZE || sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET(static_cast<int>(processor), &one);
        bound_ = sched_setaffinity(0, sizeof(one), &one) == 0;
#else
        (void)processor;
#endif
    }
    ~Pinned() {
#if defined(__linux__)
        if (bound_) sched_setaffinity(0, sizeof(before_), &before_);
#endif
    }
    Pinned(const Pinned&) = delete;
    Pinned& operator=(const Pinned&) = delete;

private:
#if defined(__linux__)
    cpu_set_t before_;
#endif
    bool bound_ = false;
};

}  // namespace tilewise
