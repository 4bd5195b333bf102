// Memory that the workers of a transformation keep from one step to the next.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <vector>

namespace tilewise {

// Numbers that are written before they are read; whoever asks for more than ever before loses what was there.
class Buffer {
public:
    double* at_least(std::int64_t size) {
        if (size > size_) {
            numbers_.reset();
            numbers_.reset(new (alignment) double[size]);
            size_ = size;
        }
        return numbers_.get();
    }
    double* data() const { return numbers_.get(); }

private:
    static constexpr std::align_val_t alignment{64};  // that of a cache line
    struct Delete {
        void operator()(double* numbers) const { ::operator delete[](numbers, alignment); }
    };
    std::unique_ptr<double[], Delete> numbers_;
    std::int64_t size_ = 0;
};

struct WorkerScratch {
    Buffer slab, expanded, panel, left_strips, right_strips, half, block;
};

// That of each worker.
struct Scratch {
    explicit Scratch(std::int64_t n_workers) : workers(n_workers) {}
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
    std::int64_t count() const { return static_cast<std::int64_t>(workers.size()); }
    std::vector<WorkerScratch> workers;
};

}  // namespace tilewise
