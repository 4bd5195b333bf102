// Binds what is done with long vectors: products of a few with many, linear combinations, products with a symmetric matrix.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <atomic>
#include <numeric>
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

constexpr std::int64_t rows_at_once = 4;  // that are read side by side: one alone leaves the memory waiting

using RowsAtOnce = const double* const[rows_at_once];

// sums[r] = row r . x; each number of x is read once.
TILEWISE_WIDE_SUMS void dots(std::int64_t count, const RowsAtOnce& row, const double* x, double* sums) {
    constexpr int lanes = tilewise::sum_lanes;
    const double *a = row[0], *b = row[1], *c = row[2], *d = row[3];
    double part[rows_at_once][lanes] = {};
    const auto add = [&](std::int64_t k, int lane) {
        part[0][lane] += a[k] * x[k];
        part[1][lane] += b[k] * x[k];
        part[2][lane] += c[k] * x[k];
        part[3][lane] += d[k] * x[k];
    };
    std::int64_t k = 0;
    for (; k + lanes <= count; k += lanes)
        for (int lane = 0; lane < lanes; ++lane) add(k + lane, lane);
    for (; k < count; ++k) add(k, 0);
    for (std::int64_t r = 0; r < rows_at_once; ++r) sums[r] = std::accumulate(part[r], part[r] + lanes, 0.0);
}

// y = sum over r of factors[r] * row r, or y += it.
TILEWISE_WIDE_SUMS void add_multiples(std::int64_t count, const double* factors, const RowsAtOnce& row, double* __restrict y, bool assign) {
    const double *a = row[0], *b = row[1], *c = row[2], *d = row[3];
    const double fa = factors[0], fb = factors[1], fc = factors[2], fd = factors[3];
    if (assign)
        for (std::int64_t k = 0; k < count; ++k) y[k] = fa * a[k] + fb * b[k] + fc * c[k] + fd * d[k];
    else
        for (std::int64_t k = 0; k < count; ++k) y[k] += fa * a[k] + fb * b[k] + fc * c[k] + fd * d[k];
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
        return [&, weighted = std::vector<double>(n_vectors * block)](std::int64_t k) mutable {
            const std::int64_t at = k * block, count = std::min(block, length - at);
            double* sums = partial.data() + k * n_all;
            for (std::int64_t v = 0; v < n_vectors; ++v)
                multiply(count, weights.data() + at, factors[n_rows + v] + at, weighted.data() + v * block);
            std::int64_t r = 0;
            for (; r + rows_at_once <= n_sums; r += rows_at_once) {
                const RowsAtOnce some = {factors[r] + at, factors[r + 1] + at, factors[r + 2] + at, factors[r + 3] + at};
                for (std::int64_t v = 0; v < n_vectors; ++v) dots(count, some, weighted.data() + v * block, sums + v * n_sums + r);
            }
            for (; r < n_sums; ++r)
                for (std::int64_t v = 0; v < n_vectors; ++v)
                    sums[v * n_sums + r] = tilewise::dot(count, factors[r] + at, weighted.data() + v * block);
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
            std::int64_t r = 0;
            for (; r + rows_at_once <= n_rows; r += rows_at_once) {
                const double* const from = rows.data() + r * length + at;
                const RowsAtOnce some = {from, from + length, from + 2 * length, from + 3 * length};
                add_multiples(count, coefficients.data() + r, some, to + at, r == 0);
            }
            for (; r < n_rows; ++r)
                tilewise::add_multiple(count, coefficients.data()[r], rows.data() + r * length + at, to + at, r == 0);
        };
    });
}

// The same numbers of four rows of a matrix: sums[r] += row r . x, and y += sum over r of factors[r] * row r. Each number
// is read once for both.
TILEWISE_WIDE_SUMS void both_products(std::int64_t count, const RowsAtOnce& row, const double* factors,
                                      const double* x, double* __restrict y, double* __restrict sums) {
    constexpr int lanes = tilewise::sum_lanes;
    const double *a = row[0], *b = row[1], *c = row[2], *d = row[3];
    double part[rows_at_once][lanes] = {};
    const auto add = [&](std::int64_t k, int lane) {
        part[0][lane] += a[k] * x[k];
        part[1][lane] += b[k] * x[k];
        part[2][lane] += c[k] * x[k];
        part[3][lane] += d[k] * x[k];
        y[k] += factors[0] * a[k] + factors[1] * b[k] + factors[2] * c[k] + factors[3] * d[k];
    };
    std::int64_t k = 0;
    for (; k + lanes <= count; k += lanes)
        for (int lane = 0; lane < lanes; ++lane) add(k + lane, lane);
    for (; k < count; ++k) add(k, 0);
    for (std::int64_t r = 0; r < rows_at_once; ++r) sums[r] = std::accumulate(part[r], part[r] + lanes, sums[r]);
}

// Adds what rows `i` to `i` + `rows` of a packed triangle give, in the columns from `at` to `end` or to the diagonal.
void add_rows(const double* matrix, std::int64_t i, std::int64_t rows, std::int64_t at, std::int64_t end, const double* x, double* y) {
    const double* row[rows_at_once];
    for (std::int64_t r = 0; r < rows; ++r) row[r] = matrix + (i + r) * (i + r + 1) / 2;
    const std::int64_t before = std::min(i, end), columns = before - at;  // of all rows
    if (rows == rows_at_once) {
        const double* const from[] = {row[0] + at, row[1] + at, row[2] + at, row[3] + at};
        both_products(columns, from, x + i, x + at, y + at, y + i);
    } else {
        for (std::int64_t r = 0; r < rows; ++r) {
            y[i + r] += tilewise::dot(columns, row[r] + at, x + at);
            tilewise::add_multiple(columns, x[i + r], row[r] + at, y + at, false);
        }
    }
    if (before == end) return;
    for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t j = i; j < i + r; ++j) {
            y[i + r] += row[r][j] * x[j];
            y[j] += row[r][j] * x[i + r];
        }
        y[i + r] += row[r][i + r] * x[i + r];
    }
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
                for (std::int64_t i = std::max(first, at); i < last; i += rows_at_once)
                    for (std::int64_t v = 0; v < n_vectors; ++v)
                        add_rows(matrix, i, std::min(rows_at_once, last - i), at, at + columns, given + v * n, own + v * n);
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
