#include "dependencies.hpp"

#include <numeric>

namespace tilewise {

namespace {

using Edges = std::vector<std::pair<std::int64_t, std::int64_t>>;

// Where the entries of each key would begin, if all were sorted by their keys.
template <class Key>
std::vector<std::int64_t> starts(std::int64_t count, std::int64_t n_keys, Key key) {
    std::vector<std::int64_t> first(n_keys + 1, 0);
    for (std::int64_t k = 0; k < count; ++k) ++first[key(k) + 1];
    std::partial_sum(first.begin(), first.end(), first.begin());
    return first;
}

// Lists of tasks, one for each panel, the latest task first.
class TaskLists {
public:
    explicit TaskLists(std::int64_t n_panels) : head_(n_panels, -1) {}

    // A task that is the latest of the list already is not added again: false.
    bool add(std::int64_t panel, std::int64_t task) {
        const std::int64_t head = head_[panel];
        if (head >= 0 && links_[head].first == task) return false;
        links_.emplace_back(task, head);
        head_[panel] = static_cast<std::int64_t>(links_.size()) - 1;
        return true;
    }

    void clear(std::int64_t panel) { head_[panel] = -1; }

    template <class Visit>
    void each(std::int64_t panel, Visit visit) const {
        for (std::int64_t k = head_[panel]; k >= 0; k = links_[k].second) visit(links_[k].first);
    }

private:
    std::vector<std::int64_t> head_;
    Edges links_;  // a task, and the link behind it
};

}  // namespace

Edges dependencies(const Accesses& accesses, std::int64_t n_tasks, std::int64_t n_panels, bool ordered) {
    const std::int64_t count = accesses.task.size;
    auto place = starts(count, n_tasks, [&](std::int64_t k) { return accesses.task[k]; });
    std::vector<std::int64_t> by_task(count);
    for (std::int64_t k = 0; k < count; ++k) by_task[place[accesses.task[k]]++] = k;

    std::vector<std::int64_t> assigned(n_panels, -1);    // who has assigned each panel last
    TaskLists added(n_panels), readers(n_panels);        // since then
    std::vector<std::int64_t> last_target(n_tasks, -1);  // of each task as a source
    Edges found;                                         // in the order of the targets
    for (const std::int64_t k : by_task) {
        const std::int64_t task = accesses.task[k], panel = accesses.panel[k];
        const auto access = static_cast<Access>(accesses.access[k]);
        const auto wait_for = [&](std::int64_t source) {
            if (source < 0 || source == task || last_target[source] == task) return;
            last_target[source] = task;
            found.emplace_back(source, task);
        };
        if (access == Access::read && !readers.add(panel, task)) continue;
        wait_for(assigned[panel]);
        if (access != Access::accumulate || ordered) added.each(panel, wait_for);
        if (access != Access::read) readers.each(panel, wait_for);
        if (access == Access::accumulate) added.add(panel, task);
        if (access == Access::assign) {
            assigned[panel] = task;
            added.clear(panel);
            readers.clear(panel);
        }
    }

    auto at = starts(found.size(), n_tasks, [&](std::int64_t k) { return found[k].first; });
    Edges sorted(found.size());
    for (const auto& edge : found) sorted[at[edge.first]++] = edge;
    return sorted;
}

}  // namespace tilewise
