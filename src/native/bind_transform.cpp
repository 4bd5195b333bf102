// Binds the integral transformation.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "libcint.hpp"
#include "transform.hpp"

namespace nb = nanobind;
using namespace tilewise;

namespace {

using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Reals = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MutableReals = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using VectorOrMatrix = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;
using Rows = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using MutableRows = nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void check(bool fits, const char* what) {
    if (!fits) throw std::invalid_argument(std::string("the integral transformation: ") + what + " does not fit");
}

template <class Array>
auto span(const Array& array) {
    using T = std::remove_const_t<typename Array::Scalar>;
    return Span<T>{array.data(), static_cast<std::int64_t>(array.shape(0))};
}

template <class Record>
Span<Record> records(const Bytes& bytes) {
    check(bytes.shape(0) % sizeof(Record) == 0, "a table of records");
    return {reinterpret_cast<const Record*>(bytes.data()), static_cast<std::int64_t>(bytes.shape(0) / sizeof(Record))};
}

bool within(const Integers& numbers, std::int64_t least, std::int64_t end) {
    return std::all_of(numbers.data(), numbers.data() + numbers.shape(0), [=](auto x) { return x >= least && x < end; });
}

bool ascends(const Integers& numbers, std::int64_t end) {
    return numbers.shape(0) > 0 && numbers.data()[0] == 0 && std::is_sorted(numbers.data(), numbers.data() + numbers.shape(0)) &&
           numbers.data()[numbers.shape(0) - 1] == end;
}

// A vector is a packed lower triangle of `n` rows; a matrix has rows of n numbers.
PairMatrix matrix(const VectorOrMatrix& values, std::int64_t n) {
    const auto size = [&](int axis) { return static_cast<std::int64_t>(values.shape(axis)); };
    check(values.ndim() == 1 ? size(0) >= n * (n + 1) / 2 : values.ndim() == 2 && size(1) == n, "a matrix over pairs");
    return values.ndim() == 1 ? PairMatrix{values.data(), n, 0, true} : PairMatrix{values.data(), size(0), n, false};
}

std::vector<double*> pointers(const std::vector<MutableReals>& buffers) {
    std::vector<double*> found;
    for (const auto& one : buffers) found.push_back(one.data());
    return found;
}

PairClasses classes_of(const Integers& first, const Integers& image, const Integers& irrep, const Integers& place, const Reals& weight,
                       std::int64_t n_pairs, const std::vector<MutableReals>& out) {
    const std::size_t n = image.shape(0);
    check(out.size() <= max_irreps, "the number of irreps");
    check(ascends(first, n) && irrep.shape(0) == n && place.shape(0) == n && weight.shape(0) == n, "a table of classes");
    check(within(image, 0, n_pairs) && within(irrep, 0, out.size()), "a class of pairs");
    for (std::size_t k = 0; k < n; ++k) {
        const std::int64_t a = place.data()[k], row = irrep.data()[k];
        check(a >= 0 && (a + 1) * (a + 2) / 2 <= static_cast<std::int64_t>(out[row].shape(0)), "a place of a class");
    }
    for (std::size_t k = 0; k + 1 < first.shape(0); ++k) {
        const std::int64_t at = first.data()[k], size = first.data()[k + 1] - at;
        check(size == 1 || size == 2 || size == 4 || size == 8, "the size of a class");
        for (std::int64_t j = 0; j < size; ++j) check(image.data()[at + j] <= image.data()[at], "the order of a class");
        check(k == 0 || image.data()[at] > image.data()[first.data()[k - 1]], "the order of classes");
    }
    return {span(first), span(image), span(irrep), span(place), span(weight)};
}

void adapt(Integers first, Integers image, Integers irrep, Integers place, Reals weight, VectorOrMatrix integrals, std::int64_t n_pairs,
           std::vector<MutableReals> out, std::int64_t n_workers) {
    const PairClasses classes = classes_of(first, image, irrep, place, weight, n_pairs, out);
    const PairMatrix source = matrix(integrals, n_pairs);
    check(source.n_rows == n_pairs, "the matrix of integrals");
    const auto places = pointers(out);
    const nb::gil_scoped_release release;
    adapt_pairs(classes, source, places.data(), n_workers);
}

void adapt_direct(Integers first, Integers image, Integers irrep, Integers place, Reals weight, const Libcint& libcint, double threshold,
                  std::vector<MutableReals> out, std::int64_t n_workers) {
    const std::int64_t n = libcint.n_functions();
    const PairClasses classes = classes_of(first, image, irrep, place, weight, n * (n + 1) / 2, out);
    const auto places = pointers(out);
    const nb::gil_scoped_release release;
    adapt_quartets(classes, libcint, threshold, places.data(), n_workers);
}

// What all steps after the first one know: how pairs of functions are made of combinations, and the orbitals.
struct Tables {
    Tables(std::int64_t irrep, std::int64_t n_classes, const Integers& n_functions, const Integers& first_entry, const Integers& entry,
           const Reals& weight, const Integers& first_orbital, const Reals& coefficients) {
        const std::int64_t n_irreps = static_cast<std::int64_t>(n_functions.shape(0));
        check(n_irreps >= 1 && n_irreps <= max_irreps && irrep >= 0 && irrep < n_irreps, "the number of irreps");
        expansion.irrep = irrep;
        expansion.n_classes = n_classes;
        expansion.n_irreps = n_irreps;
        std::copy_n(n_functions.data(), n_irreps, expansion.n_functions);
        expansion.first_entry = span(first_entry);
        expansion.entry = span(entry);
        expansion.weight = span(weight);
        check(ascends(first_entry, entry.shape(0)) && entry.shape(0) == weight.shape(0) && within(entry, 0, n_classes),
              "the expansion of pairs of functions");
        check(first_orbital.shape(0) % n_functions.shape(0) == 0 && first_orbital.shape(0) >= 2 * n_functions.shape(0), "the table of orbitals");
        orbitals.n_irreps = n_irreps;
        orbitals.n_kinds = static_cast<std::int64_t>(first_orbital.shape(0)) / n_irreps - 1;
        orbitals.first = span(first_orbital);
        orbitals.coefficients = span(coefficients);
        std::int64_t functions = 0, numbers = 0, last = 0;
        for (std::int64_t h = 0; h < n_irreps; ++h) {
            const std::int64_t other = h ^ irrep;
            if (other >= h) {
                const std::int64_t n = n_functions.data()[h];
                functions += other == h ? n * (n + 1) / 2 : n * n_functions.data()[other];
                n_pairs += other == h ? count(h) * (count(h) + 1) / 2 : count(h) * count(other);
            }
            for (std::int64_t k = 0; k <= orbitals.n_kinds; ++k) {
                const std::int64_t at = first_orbital.data()[h * (orbitals.n_kinds + 1) + k];
                check(at >= last && (k > 0 || at == last), "the table of orbitals");
                last = at;
            }
            numbers += n_functions.data()[h] * count(h);
        }
        check(static_cast<std::int64_t>(first_entry.shape(0)) == functions + 1, "the expansion of pairs of functions");
        check(static_cast<std::int64_t>(coefficients.shape(0)) == numbers, "the number of coefficients");
    }

    std::int64_t count(std::int64_t h) const {
        const std::int64_t* row = orbitals.first.data + h * (orbitals.n_kinds + 1);
        return row[orbitals.n_kinds] - row[0];
    }

    Expansion expansion{};
    OrbitalSet orbitals{};
    std::int64_t n_pairs = 0;  // of orbitals, of this irrep
};

// `out` has a row for each pair of orbitals from `first` on; its columns from `column` on are filled.
void half(std::int64_t irrep, std::int64_t n_classes, Integers n_functions, Integers first_entry, Integers entry, Reals weight,
     Integers first_orbital, Reals coefficients, VectorOrMatrix integrals, std::int64_t first, MutableRows out, std::int64_t column, Reals density,
          MutableReals coulomb, std::int64_t n_workers) {
    const Tables tables(irrep, n_classes, n_functions, first_entry, entry, weight, first_orbital, coefficients);
    const PairMatrix source = matrix(integrals, n_classes);
    FirstHalf work{source, first, first + static_cast<std::int64_t>(out.shape(0)), static_cast<std::int64_t>(out.shape(1)),
                   out.data() + column};
    check(first >= 0 && work.last <= tables.n_pairs && column >= 0 && column + source.n_rows <= work.ld, "a half-transformed part");
    if (density.shape(0) > 0) {
        check(static_cast<std::int64_t>(density.shape(0)) == tables.expansion.n_classes &&
                  static_cast<std::int64_t>(coulomb.shape(0)) == source.n_rows, "a density");
        work.density = density.data();
        work.coulomb = coulomb.data();
    }
    const nb::gil_scoped_release release;
    first_half(tables.expansion, tables.orbitals, work, n_workers);
}

void second(std::int64_t irrep, std::int64_t n_classes, Integers n_functions, Integers first_entry, Integers entry, Reals weight,
     Integers first_orbital, Reals coefficients, Rows half, Integers first_block, Integers column, Integers pair, Integers rank, Integers label,
            Integers left_label, std::int64_t first_pair, Bytes destinations, std::vector<Integers> offsets,
            std::vector<Reals> factors, std::vector<MutableReals> buffers, std::int64_t n_workers) {
    const Tables tables(irrep, n_classes, n_functions, first_entry, entry, weight, first_orbital, coefficients);
    const auto to = records<Destination>(destinations);
    const std::size_t n_columns = column.shape(0);
    check(ascends(first_block, n_columns) && label.shape(0) + 1 == first_block.shape(0) && pair.shape(0) == n_columns &&
              rank.shape(0) == n_columns && within(column, 0, half.shape(0)), "a table of columns");
    for (std::size_t b = 0; b + 1 < first_block.shape(0); ++b)
        check(first_block.data()[b + 1] - first_block.data()[b] <= slab_width && first_block.data()[b + 1] > first_block.data()[b],
              "a block of columns");
    check(static_cast<std::int64_t>(half.shape(1)) == tables.expansion.n_classes && tables.orbitals.n_kinds <= 7 &&
              first_pair + tables.n_pairs <= static_cast<std::int64_t>(left_label.shape(0)) && offsets.size() == factors.size(),
          "the half-transformed integrals");
    std::vector<Side> sides;
    for (std::size_t k = 0; k < offsets.size(); ++k) {
        check(offsets[k].shape(0) == factors[k].shape(0), "a side");
        sides.push_back({offsets[k].data(), factors[k].data()});
    }
    const std::int64_t n_sides = static_cast<std::int64_t>(sides.size()), n_labels = max_irreps;
    check(within(label, 0, n_labels) && within(left_label, 0, n_labels), "a label");
    for (std::int64_t d = 0; d < to.size; ++d) {
        check(to[d].buffer >= 0 && to[d].buffer < static_cast<std::int64_t>(buffers.size()) && to[d].left >= 0 && to[d].left < n_sides &&
                  to[d].right >= 0 && to[d].right < n_sides, "a destination");
        const Integers &left = offsets[to[d].left], &right = offsets[to[d].right];
        check(first_pair + tables.n_pairs <= static_cast<std::int64_t>(left.shape(0)) && within(pair, 0, right.shape(0)), "a side");
        std::vector<std::int64_t> most(n_labels, -1);  // offset of (pq) of each label
        for (std::int64_t k = first_pair; k < first_pair + tables.n_pairs; ++k)
            most[left_label.data()[k]] = std::max(most[left_label.data()[k]], left.data()[k]);
        for (std::size_t b = 0; b + 1 < first_block.shape(0); ++b)
            for (std::int64_t k = first_block.data()[b]; k < first_block.data()[b + 1]; ++k) {
                const std::int64_t at = right.data()[pair.data()[k]], other = most[label.data()[b]];
                check(at < 0 || other < 0 || at + other < static_cast<std::int64_t>(buffers[to[d].buffer].shape(0)), "a place in a tensor");
            }
    }
    const auto places = pointers(buffers);
    SecondHalf work{half.data(), static_cast<std::int64_t>(half.shape(1)), span(first_block), span(column), span(pair), span(rank),
                    span(label), span(left_label), to, sides.data(), places.data(), first_pair};
    const nb::gil_scoped_release release;
    second_half(tables.expansion, tables.orbitals, work, n_workers);
}

void exchange(std::int64_t irrep, std::int64_t n_classes, Integers n_functions, Integers first_entry, Integers entry, Reals weight,
     Integers first_orbital, Reals coefficients, Rows half, Bytes groups, Integers column, MutableRows out, std::int64_t n_workers) {
    const Tables tables(irrep, n_classes, n_functions, first_entry, entry, weight, first_orbital, coefficients);
    const auto all = records<Exchange>(groups);
    check(within(column, 0, half.shape(0)) && out.shape(0) == column.shape(0) &&
              static_cast<std::int64_t>(half.shape(1)) == tables.expansion.n_classes, "a table of exchange integrals");
    for (std::int64_t g = 0; g < all.size; ++g) {
        const Exchange& e = all[g];
        const std::int64_t n = tables.expansion.n_irreps;
        check(e.irrep_i >= 0 && e.irrep_i < n && e.irrep_q >= 0 && e.irrep_q < n && (e.irrep_i ^ e.irrep_q) == tables.expansion.irrep &&
                  e.i >= 0 && e.i < tables.count(e.irrep_i) && e.first >= 0 && e.count >= 0 &&
                  e.first + e.count <= static_cast<std::int64_t>(column.shape(0)) &&
                  tables.count(e.irrep_q) <= static_cast<std::int64_t>(out.shape(1)), "a table of exchange integrals");
    }
    const nb::gil_scoped_release release;
    exchange_half(tables.expansion, tables.orbitals, half.data(), static_cast<std::int64_t>(half.shape(1)), all, span(column),
                  out.data(), static_cast<std::int64_t>(out.shape(1)), n_workers);
}

}  // namespace

void bind_transform(nb::module_& m) {
    m.attr("slab_width") = slab_width;
    m.def("adapt_pairs", &adapt, nb::kw_only(), nb::arg("first"), nb::arg("image"), nb::arg("irrep"), nb::arg("place"),
          nb::arg("weight"), nb::arg("integrals"), nb::arg("n_pairs"), nb::arg("out"), nb::arg("n_workers"),
          "Integrals over combinations of pairs of functions.");
    m.def("adapt_quartets", &adapt_direct, nb::kw_only(), nb::arg("first"), nb::arg("image"), nb::arg("irrep"), nb::arg("place"),
          nb::arg("weight"), nb::arg("libcint"), nb::arg("threshold"), nb::arg("out"), nb::arg("n_workers"),
          "The same with integrals that libcint computes on the way.");
    m.def("first_half", &half, nb::kw_only(), nb::arg("irrep"), nb::arg("n_classes"), nb::arg("n_functions"),
          nb::arg("first_entry"), nb::arg("entry"), nb::arg("weight"), nb::arg("first_orbital"), nb::arg("coefficients"),
          nb::arg("integrals"), nb::arg("first"), nb::arg("out"), nb::arg("column"), nb::arg("density"), nb::arg("coulomb"),
          nb::arg("n_workers"), "One pair of functions becomes a pair of orbitals.");
    m.def("second_half", &second, nb::kw_only(), nb::arg("irrep"), nb::arg("n_classes"), nb::arg("n_functions"),
          nb::arg("first_entry"), nb::arg("entry"), nb::arg("weight"), nb::arg("first_orbital"), nb::arg("coefficients"),
          nb::arg("half"), nb::arg("first_block"), nb::arg("column"), nb::arg("pair"), nb::arg("rank"), nb::arg("label"),
          nb::arg("left_label"), nb::arg("first_pair"), nb::arg("destinations"), nb::arg("offsets"), nb::arg("factors"),
          nb::arg("buffers"), nb::arg("n_workers"), "So does the other one, into the places of the integrals.");
    m.def("exchange_half", &exchange, nb::kw_only(), nb::arg("irrep"), nb::arg("n_classes"), nb::arg("n_functions"),
          nb::arg("first_entry"), nb::arg("entry"), nb::arg("weight"), nb::arg("first_orbital"), nb::arg("coefficients"),
          nb::arg("half"), nb::arg("groups"), nb::arg("column"), nb::arg("out"), nb::arg("n_workers"),
          "The exchange integrals (pi|qi) of some columns (qi).");
}
