// Self-scheduling of an ordered loop: how much a worker takes at a time.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "records.hpp"

namespace tilewise {

// guided: 1/p of the rest. trapezoid: linearly less each time. factoring: p equal parts of 1/f of the
// rest. chunk: as many tasks each time as the last ones of the loop that take delta seconds.
enum class Taking : std::int64_t { fixed = 0, guided = 1, trapezoid = 2, factoring = 3, chunk = 4 };
constexpr const char* taking_names[] = {"fixed", "guided", "trapezoid", "factoring", "chunk"};  // by number

struct LoopRule {
    Taking taking = Taking::fixed;
    double f = 2.0;
    double delta = 0.0;       // seconds: the smallest chunk takes about as long
    std::int64_t probe = 30;  // tasks of each worker's first chunk, by which its speed is measured
    bool literal = false;     // chunk and factoring by the letter of Stathopoulos and Ynnerman
    bool taper = false;       // the last chunks shrink to single tasks
    double most = 0.0;        // seconds: the largest chunk takes about as long; 0 for no such bound
};

// The state of one loop. schedule/loops.py has the same rules in Python.
class Loop {
public:
    // `work` is what has been estimated for each task, in any unit.
    Loop(const LoopRule& rule, const double* work, std::int64_t n_tasks, std::int64_t n_workers);

    // The next chunk [first, last) for a worker whose previous one took `seconds`; empty at the end.
    std::pair<std::int64_t, std::int64_t> next(std::int64_t worker, double seconds);

private:
    void measure(std::int64_t worker, double seconds);
    bool measured() const { return rule_.delta > 0.0 || rule_.most > 0.0; }
    bool probing(std::int64_t worker) const;
    std::int64_t end_of_probe() const;
    std::int64_t end_of_chunk(std::int64_t worker);
    double wanted(double least_work);
    double least() const;
    double share(std::int64_t worker) const;
    std::int64_t reach(double work) const;
    std::int64_t last_tasks(double work) const;
    double trapezoid(double least_work);
    double equal_work();
    std::int64_t equal_length(double least_work);

    LoopRule rule_;
    std::vector<double> before_;  // work before each task
    std::int64_t n_tasks_, n_workers_, at_ = 0, in_batch_ = 0, length_ = 0;
    double part_ = 0.0, step_ = 0.0;
    bool started_ = false;
    std::vector<double> taken_, rate_;
};

}  // namespace tilewise
