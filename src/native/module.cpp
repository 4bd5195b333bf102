// The extension module: registers what the binding files define.
#include <nanobind/nanobind.h>

#include "crew.hpp"

namespace nb = nanobind;

void bind_columns(nb::module_& m);
void bind_dependencies(nb::module_& m);
void bind_gather(nb::module_& m);
void bind_libcint(nb::module_& m);
void bind_memory(nb::module_& m);
void bind_records(nb::module_& m);
void bind_run(nb::module_& m);
void bind_simulate(nb::module_& m);
void bind_inspect_sort(nb::module_& m);
void bind_transform(nb::module_& m);
void bind_vectors(nb::module_& m);

NB_MODULE(_native, m) {
    nb::set_leak_warnings(false);  // what Python's own caches still hold at exit is no leak
    m.doc() = "Native executor of tilewise: task lists on threads.";
    nb::exception<tilewise::TooManyThreads>(m, "TooManyThreads", nb::module_::import_("tilewise.errors").attr("InputError"));
    bind_columns(m);
    bind_dependencies(m);
    bind_gather(m);
    bind_libcint(m);
    bind_memory(m);
    bind_records(m);
    bind_run(m);
    bind_simulate(m);
    bind_inspect_sort(m);
    bind_transform(m);
    bind_vectors(m);
}
