// Binds the integrals of libcint.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <vector>

#include "libcint.hpp"

namespace nb = nanobind;
using namespace tilewise;

namespace {

using Table = nb::ndarray<const int, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Reals = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableReals = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Array>
auto copied(const Array& array) {
    using T = std::remove_const_t<typename Array::Scalar>;
    return std::vector<T>(array.data(), array.data() + array.size());
}

// The address of a function in a library that Python has loaded.
template <class Pointer>
Pointer function_at(std::uintptr_t address) {
    if (address == 0) throw std::invalid_argument("a function of libcint has no address");
    return reinterpret_cast<Pointer>(address);
}

void make(Libcint* self, std::uintptr_t integral, std::uintptr_t optimizer, std::uintptr_t release, bool cartesian, Table atm,
          Table bas, Reals env) {
    new (self) Libcint(function_at<IntegralPointer>(integral), function_at<OptimizerPointer>(optimizer),
                       function_at<ReleasePointer>(release), cartesian, copied(atm), copied(bas), copied(env));
}

void one_quartet(const Libcint& libcint, std::int64_t i, std::int64_t j, std::int64_t k, std::int64_t l, MutableReals out) {
    std::size_t size = 1;
    for (const std::int64_t shell : {i, j, k, l}) {
        if (shell < 0 || shell >= libcint.n_shells()) throw std::invalid_argument("there is no such shell");
        size *= libcint.size(shell);
    }
    if (out.shape(0) != size) throw std::invalid_argument("the integrals of these shells need another length");
    const nb::gil_scoped_release release;
    Quartets quartets(libcint);
    const double* values = quartets(i, j, k, l);
    for (std::size_t x = 0; x < size; ++x) out.data()[x] = values ? values[x] : 0.0;
}

void all_pairs(const Libcint& libcint, MutableReals out, std::int64_t n_workers) {
    const std::size_t n = libcint.n_functions();
    if (out.shape(0) != n * (n + 1) / 2) throw std::invalid_argument("the diagonal has another length");
    const nb::gil_scoped_release release;
    diagonal(libcint, out.data(), n_workers);
}

void bounds(const Libcint& libcint, MutableMatrix out, std::int64_t n_workers) {
    const std::size_t n = libcint.n_shells();
    if (out.shape(0) != n || out.shape(1) != n) throw std::invalid_argument("the bounds have another shape");
    const nb::gil_scoped_release release;
    schwarz(libcint, out.data(), n_workers);
}

}  // namespace

void bind_libcint(nb::module_& m) {
    nb::class_<Libcint>(m, "Libcint")
        .def("__init__", &make, nb::kw_only(), nb::arg("integral"), nb::arg("optimizer"), nb::arg("release"),
             nb::arg("cartesian"), nb::arg("atm"), nb::arg("bas"), nb::arg("env"))
        .def_prop_ro("n_shells", &Libcint::n_shells)
        .def_prop_ro("shell_sizes", [](const Libcint& self) {
            std::vector<std::int64_t> sizes;
            for (std::int64_t s = 0; s < self.n_shells(); ++s) sizes.push_back(self.size(s));
            return sizes;
        })
        .def_prop_ro("n_functions", &Libcint::n_functions);
    m.def("quartet", &one_quartet, nb::arg("libcint"), nb::arg("i"), nb::arg("j"), nb::arg("k"), nb::arg("l"), nb::arg("out"),
          "Integrals over the functions of four shells, those of the first shell closest together.");
    m.def("diagonal", &all_pairs, nb::arg("libcint"), nb::arg("out"), nb::arg("n_workers"),
          "Integrals (mu nu|mu nu) for mu >= nu, packed.");
    m.def("schwarz", &bounds, nb::arg("libcint"), nb::arg("out"), nb::arg("n_workers"),
          "Of each pair of shells the square root of its largest integral (mu nu|mu nu).");
}
