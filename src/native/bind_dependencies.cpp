// Binds the search for dependencies: checks arrays, releases the GIL.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "dependencies.hpp"

namespace nb = nanobind;
using namespace tilewise;

namespace {

using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Pairs = nb::ndarray<nb::numpy, std::int64_t, nb::shape<2, -1>, nb::c_contig, nb::device::cpu>;

void check(const Integers& numbers, std::int64_t limit) {
    for (std::size_t k = 0; k < numbers.shape(0); ++k)
        if (numbers.data()[k] < 0 || numbers.data()[k] >= limit)
            throw std::invalid_argument("an access names a task or a panel that does not exist");
}

Pairs find(const Integers& task, const Integers& panel, const Bytes& access, std::int64_t n_tasks, std::int64_t n_panels,
           bool ordered) {
    if (panel.shape(0) != task.shape(0) || access.shape(0) != task.shape(0))
        throw std::invalid_argument("a task, a panel and a kind of access belong together");
    check(task, n_tasks);
    check(panel, n_panels);
    const auto count = static_cast<std::int64_t>(task.shape(0));
    std::int64_t* edges;
    std::size_t n_edges;
    {
        const nb::gil_scoped_release release;
        const auto found =
            dependencies({{task.data(), count}, {panel.data(), count}, {access.data(), count}}, n_tasks, n_panels, ordered);
        n_edges = found.size();
        edges = new std::int64_t[2 * n_edges];
        for (std::size_t e = 0; e < n_edges; ++e) {
            edges[e] = found[e].first;
            edges[n_edges + e] = found[e].second;
        }
    }
    const nb::capsule owner(edges, [](void* p) noexcept { delete[] static_cast<std::int64_t*>(p); });
    return Pairs(edges, {2, n_edges}, owner);
}

}  // namespace

void bind_dependencies(nb::module_& m) {
    m.def("dependencies", &find, nb::arg("task"), nb::arg("panel"), nb::arg("access"), nb::arg("n_tasks"),
          nb::arg("n_panels"), nb::arg("ordered"),
          "Pairs of tasks (2, n) of which the second waits for the first, sorted; access: 0 read, 1 assign, 2 accumulate.");
}
