// Binds the integral transformation.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <vector>

#include "transform.hpp"

namespace nb = nanobind;
using namespace tilewise;

namespace {

using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Reals = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableReals = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Strided = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;
using Matrix = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MutableMatrix = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Table = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class Array>
auto span(const Array& array) {
    using T = std::remove_const_t<typename Array::Scalar>;
    return Span<T>{array.data(), static_cast<std::int64_t>(array.shape(0))};
}

template <class Record>
Span<Record> records(const Table& table) {
    if (table.shape(1) * sizeof(std::int64_t) != sizeof(Record)) throw std::invalid_argument("a table has the wrong number of columns");
    return {reinterpret_cast<const Record*>(table.data()), static_cast<std::int64_t>(table.shape(0))};
}

std::int64_t largest(const Integers& numbers) {
    std::int64_t found = -1;
    for (std::size_t k = 0; k < numbers.shape(0); ++k) found = std::max(found, numbers.data()[k]);
    return found;
}

// `numbers` is empty if `kets` are the matrices themselves; else `kets` is one row, a packed triangle of pairs.
// `density` of shape (0, 0) leaves the Fock matrix out.
void transform(Integers first_entry, Integers entry, Reals weight, bool plain, Integers first_function,
               Integers first_orbital, Integers position, Reals coefficients, Integers column, Integers step,
               Strided kets, Integers numbers, Matrix density, Integers mu, Integers nu, Reals ket_weight, MutableReals coulomb,
               MutableMatrix exchange, Integers row, MutableReals out, std::int64_t n_workers) {
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
    orbitals.column = span(column);
    orbitals.step = span(step);
    const std::size_t n = orbitals.n_basis, in_pairs = n * (n + 1) / 2;
    const std::size_t out_pairs = orbitals.n_orbitals * (orbitals.n_orbitals + 1) / 2;
    const bool numbered = numbers.shape(0) > 0;
    const std::size_t count = numbered ? numbers.shape(0) : kets.shape(0);
    Kets source{kets.data(), static_cast<std::int64_t>(count), kets.stride(0), kets.stride(1), numbered ? numbers.data() : nullptr};
    bool fits = orbitals.n_irreps <= 8 && column.shape(0) == out_pairs && step.shape(0) == out_pairs && row.shape(0) == count;
    const std::int64_t last_row = largest(row), length = static_cast<std::int64_t>(out.shape(0));
    for (std::size_t k = 0; fits && k < out_pairs; ++k)
        fits = column.data()[k] < 0 || column.data()[k] + last_row * step.data()[k] < length;
    if (numbered)
        fits = fits && kets.shape(0) == 1 && kets.shape(1) == in_pairs * (in_pairs + 1) / 2 && kets.stride(1) == 1 &&
               largest(numbers) < static_cast<std::int64_t>(in_pairs);
    else
        fits = fits && kets.shape(1) == in_pairs;
    FockPart fock{};
    if (density.shape(0) > 0) {
        fits = fits && density.shape(0) == n && density.shape(1) == n && exchange.shape(0) == n && exchange.shape(1) == n &&
               mu.shape(0) == count && nu.shape(0) == count && ket_weight.shape(0) == count && coulomb.shape(0) == count;
        fock = {density.data(), mu.data(), nu.data(), ket_weight.data(), coulomb.data(), exchange.data()};
    }
    if (!fits) throw std::invalid_argument("the shapes of the integrals and the orbitals do not fit");
    const nb::gil_scoped_release release;
    half_transform(orbitals, source, fock, row.data(), out.data(), n_workers);
}

void finish(MutableReals values, Integers first_row, Reals left, Reals right, Reals column_scale, Table columns, Table jobs,
            Integers buffer, Integers offset, Reals factor, std::vector<MutableReals> buffers, std::int64_t n_workers) {
    std::vector<double*> pointers;
    for (const auto& one : buffers) pointers.push_back(one.data());
    SecondHalf work{};
    work.values = values.data();
    work.n_columns = static_cast<std::int64_t>(column_scale.shape(0));
    work.n_mu = static_cast<std::int64_t>(first_row.shape(0)) - 1;
    work.n_orbitals = work.n_mu > 0 ? static_cast<std::int64_t>(left.shape(0)) / work.n_mu : 0;
    work.first_row = span(first_row);
    work.left = span(left);
    work.right = span(right);
    work.column_scale = span(column_scale);
    work.columns = records<Columns>(columns);
    work.jobs = records<Job>(jobs);
    work.buffer = span(buffer);
    work.offset = span(offset);
    work.factor = span(factor);
    work.buffers = pointers.data();
    const std::size_t table = work.n_orbitals * work.n_orbitals;
    const std::size_t rows = first_row.data()[work.n_mu];
    bool fits = right.shape(0) == rows * work.n_orbitals && column_scale.shape(0) * rows == values.shape(0) &&
                buffer.shape(0) == offset.shape(0) && factor.shape(0) == offset.shape(0) && table > 0 &&
                offset.shape(0) % table == 0;
    for (std::int64_t k = 0; fits && k < work.columns.size; ++k) {
        const Columns& c = work.columns[k];
        fits = c.count <= columns_at_once && c.first >= 0 && c.first + c.count <= work.n_columns && c.first_job >= 0 &&
               c.first_job + c.n_jobs <= work.jobs.size && c.table >= 0 &&
               (c.table + 1) * table <= static_cast<std::size_t>(offset.shape(0));
    }
    for (std::int64_t k = 0; fits && k < work.jobs.size; ++k) {
        const Job& j = work.jobs[k];
        fits = j.first_p >= 0 && j.n_p > 0 && j.first_p + j.n_p <= work.n_orbitals && j.first_q >= 0 && j.n_q > 0 &&
               j.first_q + j.n_q <= work.n_orbitals;
    }
    if (!fits) throw std::invalid_argument("the shapes of the half-transformed integrals and the tables do not fit");
    const nb::gil_scoped_release release;
    second_half(work, n_workers);
}

}  // namespace

void bind_transform(nb::module_& m) {
    m.attr("columns_at_once") = columns_at_once;
    m.def("half_transform", &transform, nb::kw_only(), nb::arg("first_entry"), nb::arg("entry"), nb::arg("weight"),
          nb::arg("plain"), nb::arg("first_function"), nb::arg("first_orbital"), nb::arg("position"), nb::arg("coefficients"),
          nb::arg("column"), nb::arg("step"), nb::arg("kets"), nb::arg("numbers"), nb::arg("density"), nb::arg("mu"), nb::arg("nu"),
          nb::arg("ket_weight"), nb::arg("coulomb"), nb::arg("exchange"), nb::arg("row"), nb::arg("out"), nb::arg("n_workers"),
          "Transforms packed matrices over basis functions to pairs of orbitals.");
    m.def("second_half", &finish, nb::kw_only(), nb::arg("values"), nb::arg("first_row"), nb::arg("left"), nb::arg("right"),
          nb::arg("column_scale"), nb::arg("columns"), nb::arg("jobs"), nb::arg("buffer"), nb::arg("offset"),
          nb::arg("factor"), nb::arg("buffers"), nb::arg("n_workers"),
          "Transforms the other pair of half-transformed integrals, into the places of their results.");
}
