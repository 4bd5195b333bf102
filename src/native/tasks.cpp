#include "tasks.hpp"

#include <string>

#include "lanes.hpp"

namespace tilewise {

void check_finite(const double* x, std::int64_t rows, std::int64_t cols, std::int64_t ld) {
    for (std::int64_t r = 0; r < rows; ++r)
        if (!all_finite(cols, x + r * ld)) throw TaskFailure("the result is not finite");
}

namespace {

void run_step(const TaskList& list, const Step& step, double& partial, Arena& arena) {
    const std::int64_t last = step.first + step.count;
    switch (static_cast<Kind>(step.kind)) {
        case Kind::gemm:
            return run_gemms(list, step, arena);
        case Kind::sort:
            return run_sorts(list, step, arena);
        case Kind::update:
            for (std::int64_t k = step.first; k < last; ++k) run_update(list, list.update[k], partial);
            return;
        case Kind::dot:
            for (std::int64_t k = step.first; k < last; ++k) run_dot(list, list.dot[k], partial);
            return;
        case Kind::triples:
            for (std::int64_t k = step.first; k < last; ++k) run_triples(list, list.triples[k], partial, arena);
            return;
        case Kind::chain:
            for (std::int64_t k = step.first; k < last; ++k) run_step(list, list.step[k], partial, arena);
            return;
    }
    throw TaskFailure("unknown kind of task " + std::to_string(step.kind));
}

}  // namespace

void run_task(const TaskList& list, std::int64_t t, Arena& arena) {
    const Task& task = list.tasks[t];
    list.partial[t] = 0.0;
    run_step(list, Step{task.kind, task.first, task.count}, list.partial[t], arena);
}

}  // namespace tilewise
