// Binds the integral transformation.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "transform.hpp"

namespace nb = nanobind;
using namespace tilewise;

namespace {

using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Reals = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MutableMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Array>
auto span(const Array& array) {
    using T = std::remove_const_t<typename Array::Scalar>;
    return Span<T>{array.data(), static_cast<std::int64_t>(array.shape(0))};
}

void transform(Integers first_entry, Integers entry, Reals weight, bool plain, Integers first_function,
               Integers first_orbital, Integers position, Reals coefficients, Matrix kets, MutableMatrix out,
               std::int64_t n_workers) {
    Orbitals orbitals{};
    orbitals.n_irreps = static_cast<std::int64_t>(first_function.shape(0)) - 1;
    orbitals.n_basis = first_function.data()[orbitals.n_irreps];
    orbitals.n_orbitals = first_orbital.data()[orbitals.n_irreps];
    orbitals.first_entry = span(first_entry);
    orbitals.entry = span(entry);
    orbitals.weight = span(weight);
    orbitals.plain = plain;
    orbitals.first_function = span(first_function);
    orbitals.first_orbital = span(first_orbital);
    orbitals.position = span(position);
    orbitals.coefficients = span(coefficients);
    const std::size_t in_pairs = orbitals.n_basis * (orbitals.n_basis + 1) / 2;
    const std::size_t out_pairs = orbitals.n_orbitals * (orbitals.n_orbitals + 1) / 2;
    if (orbitals.n_irreps > 8 || kets.shape(1) != in_pairs || out.shape(1) != out_pairs || kets.shape(0) != out.shape(0))
        throw std::invalid_argument("the shapes of the integrals and the orbitals do not fit");
    const nb::gil_scoped_release release;
    half_transform(orbitals, kets.data(), static_cast<std::int64_t>(kets.shape(0)), out.data(), n_workers);
}

void unpack(Reals packed, std::int64_t n_pairs, Integers rows, MutableMatrix out) {
    if (static_cast<std::int64_t>(packed.shape(0)) != n_pairs * (n_pairs + 1) / 2 || out.shape(0) != rows.shape(0) ||
        static_cast<std::int64_t>(out.shape(1)) != n_pairs)
        throw std::invalid_argument("the shapes of the packed integrals and the rows do not fit");
    const nb::gil_scoped_release release;
    unpack_rows(packed.data(), n_pairs, span(rows), out.data());
}

}  // namespace

void bind_transform(nb::module_& m) {
    m.def("half_transform", &transform, nb::arg("first_entry"), nb::arg("entry"), nb::arg("weight"), nb::arg("plain"),
          nb::arg("first_function"), nb::arg("first_orbital"), nb::arg("position"), nb::arg("coefficients"), nb::arg("kets"),
          nb::arg("out"), nb::arg("n_workers"), "Transforms packed matrices over basis functions to pairs of orbitals.");
    m.def("unpack_rows", &unpack, nb::arg("packed"), nb::arg("n_pairs"), nb::arg("rows"), nb::arg("out"),
          "Rows of a matrix of pairs that is stored as a packed lower triangle.");
}
