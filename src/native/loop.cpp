#include "loop.hpp"

#include <algorithm>
#include <cmath>

namespace tilewise {

Loop::Loop(const LoopRule& rule, const double* work, std::int64_t n_tasks, std::int64_t n_workers)
    : rule_(rule), before_(static_cast<std::size_t>(n_tasks) + 1, 0.0), n_tasks_(n_tasks), n_workers_(n_workers),
      taken_(static_cast<std::size_t>(n_workers), 0.0), rate_(static_cast<std::size_t>(n_workers), 0.0) {
    for (std::int64_t k = 0; k < n_tasks; ++k) before_[k + 1] = before_[k] + work[k];
    if (before_[n_tasks] > 0.0) return;
    for (std::int64_t k = 0; k <= n_tasks; ++k) before_[k] = static_cast<double>(k);
}

std::pair<std::int64_t, std::int64_t> Loop::next(std::int64_t worker, double seconds) {
    measure(worker, seconds);
    const std::int64_t first = at_;
    if (first >= n_tasks_) return {first, first};
    const std::int64_t last = probing(worker) ? end_of_probe() : end_of_chunk(worker);
    at_ = std::min(std::max(last, first + 1), n_tasks_);
    taken_[worker] = before_[at_] - before_[first];
    return {first, at_};
}

// By the letter the first chunk alone counts.
void Loop::measure(std::int64_t worker, double seconds) {
    const bool known = rule_.literal && rate_[worker] > 0.0;
    if (taken_[worker] > 0.0 && seconds > 0.0 && !known) rate_[worker] = taken_[worker] / seconds;
}

// By the letter nothing is decided before all speeds are known: who asks before that gets one more probe.
bool Loop::probing(std::int64_t worker) const {
    if (!measured()) return false;
    return rule_.literal ? std::count(rate_.begin(), rate_.end(), 0.0) > 0 : rate_[worker] == 0.0;
}

std::int64_t Loop::end_of_probe() const {
    if (rule_.most > 0.0) return at_ + 1;
    return at_ + std::max<std::int64_t>(1, std::min(rule_.probe, n_tasks_ / (4 * n_workers_)));
}

std::int64_t Loop::end_of_chunk(std::int64_t worker) {
    const double small = least(), rest = before_[n_tasks_] - before_[at_];
    if (rule_.taking == Taking::chunk) return at_ + last_tasks(small);
    if (rule_.taking == Taking::factoring && rule_.literal) return at_ + equal_length(small);
    const double part = std::min(wanted(small), rest * share(worker));
    // A short first chunk says little: until all speeds are known, nobody gets more than its share.
    const bool all_known = std::count(rate_.begin(), rate_.end(), 0.0) == 0;
    const double wide = all_known && !rule_.taper ? std::max(small, part) : part;
    return reach(rule_.most > 0.0 ? std::min(wide, rule_.most * rate_[worker]) : wide);
}

double Loop::wanted(double small) {
    switch (rule_.taking) {
        case Taking::guided:
            return (before_[n_tasks_] - before_[at_]) / static_cast<double>(n_workers_);
        case Taking::trapezoid:
            return trapezoid(small);
        case Taking::factoring:
            return equal_work();
        case Taking::chunk:
        case Taking::fixed:
            break;
    }
    return 0.0;
}

// Work that the slowest worker of those known so far does in delta seconds.
double Loop::least() const {
    if (rule_.delta <= 0.0) return 0.0;
    double slowest = 0.0;
    for (const double rate : rate_)
        if (rate > 0.0 && (slowest == 0.0 || rate < slowest)) slowest = rate;
    return rule_.delta * slowest;
}

// Of the work, by its speed, if speeds are measured: with more it might be the last to end. Those whose speed is not known
// yet may be twice as fast as the others.
double Loop::share(std::int64_t worker) const {
    if (!measured() || rate_[worker] == 0.0) return 1.0;
    double known = 0.0;
    std::int64_t count = 0;
    for (const double rate : rate_)
        if (rate > 0.0) known += rate, ++count;
    const double others = 2.0 * static_cast<double>(n_workers_ - count) * known / static_cast<double>(count);
    return rate_[worker] / (known + others);
}

// Where a chunk of about this much work ends.
std::int64_t Loop::reach(double work) const {
    const double end = before_[at_] + work;
    const auto found = std::upper_bound(before_.begin() + at_ + 1, before_.end(), end * (1 + 1e-12));
    return std::max<std::int64_t>(at_ + 1, found - before_.begin() - 1);
}

// Tasks at the end of the loop that make up this much work.
std::int64_t Loop::last_tasks(double work) const {
    const auto found = std::lower_bound(before_.begin(), before_.end(), before_[n_tasks_] - work);
    return std::max<std::int64_t>(1, n_tasks_ - (found - before_.begin()));
}

// The first chunk is half of an equal share; each one is smaller by the same step, down to the least.
double Loop::trapezoid(double small) {
    const double total = before_[n_tasks_] - before_[at_];
    if (!started_) {
        started_ = true;
        part_ = total / (2.0 * static_cast<double>(n_workers_));
        const double lowest = std::min(part_, std::max(small, total / static_cast<double>(n_tasks_)));
        const double steps = std::ceil(2.0 * total / (part_ + lowest));
        step_ = steps > 1.0 ? (part_ - lowest) / (steps - 1.0) : 0.0;
        return part_;
    }
    part_ -= step_;
    return part_;
}

// A p-th of the work of a batch, which holds 1/f of the rest.
double Loop::equal_work() {
    if (in_batch_ == 0) {
        part_ = (before_[n_tasks_] - before_[at_]) / (rule_.f * static_cast<double>(n_workers_));
        in_batch_ = n_workers_;
    }
    --in_batch_;
    return part_;
}

// A p-th of the tasks of a batch, which holds 1/f of the rest and at least the tasks of equation 3.
std::int64_t Loop::equal_length(double small) {
    if (in_batch_ == 0) {
        const std::int64_t batch = reach((before_[n_tasks_] - before_[at_]) / rule_.f) - at_;
        length_ = (std::max(batch, last_tasks(small)) + n_workers_ - 1) / n_workers_;
        in_batch_ = n_workers_;
    }
    --in_batch_;
    return length_;
}

}  // namespace tilewise
