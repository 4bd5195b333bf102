// Binds what is done with long vectors: products of a few with many, linear combinations, products with a symmetric matrix.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <vector>

#include "crew.hpp"
#include "lanes.hpp"
#include "wide.hpp"

namespace nb = nanobind;

namespace {

using Vector = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Changed = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Sums = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

constexpr std::int64_t block = 2048;  // elements of a vector that are looked at together: they stay in the first-level cache

TILEWISE_WIDE void multiply(std::int64_t count, const double* a, const double* b, double* out) {
    for (std::int64_t k = 0; k < count; ++k) out[k] = a[k] * b[k];
}

std::int64_t blocks_of(std::int64_t length) { return (length + block - 1) / block; }

void weighted_products(const std::vector<Vector>& vectors, const Vector& weights, const Rows& rows, Sums out, std::int64_t workers) {
    const auto length = static_cast<std::int64_t>(weights.shape(0)), n_vectors = static_cast<std::int64_t>(vectors.size());
    const auto n_rows = static_cast<std::int64_t>(rows.shape(0)), n_sums = n_rows + n_vectors;
    const auto fits = [&](const Vector& one) { return static_cast<std::int64_t>(one.shape(0)) == length; };
    if (static_cast<std::int64_t>(rows.shape(1)) != length || !std::all_of(vectors.begin(), vectors.end(), fits))
        throw std::invalid_argument("vectors, weights and rows differ in length");
    if (static_cast<std::int64_t>(out.shape(0)) != n_vectors || static_cast<std::int64_t>(out.shape(1)) != n_sums)
        throw std::invalid_argument("products of each vector with all rows and all vectors are made");
    std::vector<const double*> factors;  // of the products: all rows, then the vectors themselves
    for (std::int64_t r = 0; r < n_rows; ++r) factors.push_back(rows.data() + r * length);
    for (const Vector& one : vectors) factors.push_back(one.data());
    const std::int64_t n_blocks = blocks_of(length), n_all = n_vectors * n_sums;
    double* total = out.data();
    const nb::gil_scoped_release release;
    std::vector<double> partial(n_blocks * n_all);  // summed in order at the end: the same bits, whoever takes which block
    tilewise::hand_out(workers, n_blocks, [&] {
        return [&, weighted = std::vector<double>(block)](std::int64_t k) mutable {
            const std::int64_t at = k * block, count = std::min(block, length - at);
            double* sums = partial.data() + k * n_all;
            for (std::int64_t v = 0; v < n_vectors; ++v) {
                multiply(count, weights.data() + at, factors[n_rows + v] + at, weighted.data());
                for (std::int64_t r = 0; r < n_sums; ++r)
                    sums[v * n_sums + r] = tilewise::dot(count, factors[r] + at, weighted.data());
            }
        };
    });
    std::fill(total, total + n_all, 0.0);
    for (std::int64_t k = 0; k < n_blocks; ++k)
        for (std::int64_t s = 0; s < n_all; ++s) total[s] += partial[k * n_all + s];
}

void combine(const Vector& coefficients, const Rows& rows, Changed out, std::int64_t workers) {
    const auto length = static_cast<std::int64_t>(out.shape(0)), n_rows = static_cast<std::int64_t>(rows.shape(0));
    if (static_cast<std::int64_t>(rows.shape(1)) != length || static_cast<std::int64_t>(coefficients.shape(0)) != n_rows)
        throw std::invalid_argument("every row needs a coefficient, and the result is as long as a row");
    double* to = out.data();
    const nb::gil_scoped_release release;
    tilewise::hand_out(workers, blocks_of(length), [&] {
        return [&](std::int64_t k) {
            const std::int64_t at = k * block, count = std::min(block, length - at);
            if (n_rows == 0) std::fill(to + at, to + at + count, 0.0);
            for (std::int64_t r = 0; r < n_rows; ++r)
                tilewise::add_multiple(count, coefficients.data()[r], rows.data() + r * length + at, to + at, r == 0);
        };
    });
}

// Each worker goes through bands of rows, and through each band column by column of blocks: what a block of columns needs of the
// vectors stays in the first-level cache while rows of the matrix stream past.
void triangle_products(const Vector& triangle, const Rows& vectors, Sums out, std::int64_t workers) {
    const auto n_vectors = static_cast<std::int64_t>(vectors.shape(0)), n = static_cast<std::int64_t>(vectors.shape(1));
    if (static_cast<std::int64_t>(triangle.shape(0)) != n * (n + 1) / 2)
        throw std::invalid_argument("a packed triangle over the elements of the vectors is needed");
    if (static_cast<std::int64_t>(out.shape(0)) != n_vectors || static_cast<std::int64_t>(out.shape(1)) != n)
        throw std::invalid_argument("there are as many products as vectors, and they are as long");
    constexpr std::int64_t columns = 2048, band = 128;
    const std::int64_t n_bands = (n + band - 1) / band, size = n_vectors * n;
    const double *matrix = triangle.data(), *given = vectors.data();
    double* total = out.data();
    const nb::gil_scoped_release release;
    std::vector<double> sums(std::max<std::int64_t>(workers, 1) * size);  // of each worker
    std::atomic<std::int64_t> joined{0};
    tilewise::hand_out(workers, n_bands, [&] {
        return [&, own = sums.data() + joined++ * size](std::int64_t number) {
            const std::int64_t first = (n_bands - 1 - number) * band, last = std::min(first + band, n);  // the longest rows first
            for (std::int64_t at = 0; at < last; at += columns)
                for (std::int64_t i = std::max(first, at); i < last; ++i) {
                    const double* row = matrix + i * (i + 1) / 2 + at;
                    const std::int64_t count = std::min(columns, i - at);  // up to the diagonal
                    for (std::int64_t v = 0; v < n_vectors; ++v) {
                        const double* x = given + v * n;
                        double* y = own + v * n;
                        y[i] += tilewise::dot(count, row, x + at) + (count < columns ? row[count] * x[i] : 0.0);
                        tilewise::add_multiple(count, x[i], row, y + at, false);
                    }
                }
        };
    });
    std::fill(total, total + size, 0.0);
    for (std::int64_t w = 0; w < joined; ++w) tilewise::add_multiple(size, 1.0, sums.data() + w * size, total, false);
}

}  // namespace

void bind_vectors(nb::module_& m) {
    m.def("weighted_products", &weighted_products, nb::arg("vectors"), nb::arg("weights"), nb::arg("rows"), nb::arg("out"),
          nb::arg("workers"), "Products of each vector, weighted, with all rows and then with all vectors.");
    m.def("combine", &combine, nb::arg("coefficients"), nb::arg("rows"), nb::arg("out"), nb::arg("workers"),
          "A linear combination of rows.");
    m.def("triangle_products", &triangle_products, nb::arg("triangle"), nb::arg("vectors"), nb::arg("out"), nb::arg("workers"),
          "Products of a symmetric matrix, of which the lower triangle is given row by row, with each of some vectors.");
}
