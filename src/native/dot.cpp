// Sums of products of two tensors.
#include <cmath>

#include "lanes.hpp"
#include "tasks.hpp"

namespace tilewise {

void run_dot(const TaskList& list, const Dot& r, double& partial) {
    const double* a = list.buffers[r.a] + r.a_offset;
    const double* b = list.buffers[r.b] + r.b_offset;
    for (std::int64_t i = 0; i < r.rows; ++i)
        partial += r.factor * dot(r.cols, a + i * r.ld, b + i * r.ld);
    if (!std::isfinite(partial)) throw TaskFailure("the result is not finite");
}

}  // namespace tilewise
