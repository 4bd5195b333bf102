// Binds the integral transformation.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <climits>
#include <stdexcept>
#include <string>
#include <vector>

#include "libcint.hpp"
#include "scratch.hpp"
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
                       std::int64_t n_pairs, std::size_t n_irreps) {
    const std::size_t n = image.shape(0);
    check(n_irreps <= max_irreps, "the number of irreps");
    check(ascends(first, n) && irrep.shape(0) == n && place.shape(0) == n && weight.shape(0) == n, "a table of classes");
    check(within(image, 0, n_pairs) && within(irrep, 0, n_irreps), "a class of pairs");
    check(n_pairs < INT_MAX, "the number of pairs");
    std::vector<std::int64_t> next(n_irreps);  // the place of the next class of each irrep
    for (std::size_t k = 0; k + 1 < first.shape(0); ++k) {
        const std::int64_t at = first.data()[k], size = first.data()[k + 1] - at;
        check(size == 1 || size == 2 || size == 4 || size == 8, "the size of a class");
        for (std::int64_t e = at; e < at + size; ++e) {
            const std::int64_t h = irrep.data()[e], a = place.data()[e];
            check(a == next[h]++, "a place of a class");
            check(image.data()[e] <= image.data()[at], "the order of a class");
        }
    }
    return {span(first), span(image), span(irrep), span(place), span(weight)};
}

void adapt(Integers first, Integers image, Integers irrep, Integers place, Reals weight, VectorOrMatrix integrals, std::int64_t n_pairs,
           std::vector<MutableReals> out, std::int64_t n_workers) {
    const PairClasses classes = classes_of(first, image, irrep, place, weight, n_pairs, out.size());
    for (std::int64_t k = 0; k < classes.place.size; ++k) {
        const std::int64_t a = classes.place[k];
        check((a + 1) * (a + 2) / 2 <= static_cast<std::int64_t>(out[classes.irrep[k]].shape(0)), "a place of a class");
    }
    const PairMatrix source = matrix(integrals, n_pairs);
    check(source.n_rows == n_pairs, "the matrix of integrals");
    const auto places = pointers(out);
    const nb::gil_scoped_release release;
    adapt_pairs(classes, source, places.data(), n_workers);
}

// `out` has the rows of the shells first .. last of each packed triangle, whose element `start` is its first one.
void adapt_direct(Integers first, Integers image, Integers irrep, Integers place, Reals weight, Integers function_image, Reals function_sign,
                  const Libcint& libcint, double threshold,
                  std::int64_t first_shell, std::int64_t last_shell, Integers start, std::vector<MutableReals> out, std::int64_t n_workers) {
    const std::int64_t n = libcint.n_functions();
    check(first_shell >= 0 && first_shell <= last_shell && last_shell <= libcint.n_shells() && start.shape(0) == out.size(), "a range of shells");
    std::int64_t functions[2] = {0, 0};  // before the first and before the last of the shells
    for (std::int64_t s = 0; s < last_shell; ++s) {
        functions[1] += libcint.size(s);
        if (s < first_shell) functions[0] = functions[1];
    }
    const std::int64_t n_operations = static_cast<std::int64_t>(function_image.shape(0)) / std::max<std::int64_t>(n, 1);
    check(n_operations * n == static_cast<std::int64_t>(function_image.shape(0)) && function_sign.shape(0) == function_image.shape(0) &&
              within(function_image, 0, n),
          "the operations on functions");
    const FunctionOperations operations{n_operations, n, span(function_image), span(function_sign)};
    const auto pairs_before = [&](int end) { return functions[end] * (functions[end] + 1) / 2; };
    const PairClasses classes = classes_of(first, image, irrep, place, weight, n * (n + 1) / 2, out.size());
    for (std::int64_t k = 0; k + 1 < classes.first.size; ++k) {
        const std::int64_t pair = classes.image[classes.first[k]];
        if (pair < pairs_before(0) || pair >= pairs_before(1)) continue;
        for (std::int64_t e = classes.first[k]; e < classes.first[k + 1]; ++e) {
            const std::int64_t a = classes.place[e], h = classes.irrep[e], begin = a * (a + 1) / 2 - start.data()[h];
            check(begin >= 0 && begin + a + 1 <= static_cast<std::int64_t>(out[h].shape(0)), "a place of a class");
        }
    }
    auto places = pointers(out);
    for (std::size_t h = 0; h < places.size(); ++h) places[h] -= start.data()[h];
    const nb::gil_scoped_release release;
    adapt_quartets(classes, operations, libcint, threshold, first_shell, last_shell, places.data(), n_workers);
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
        expansion.plain = n_irreps == 1 && is_plain();
    }

    // Whether pairs (P, Q), by Q and then P, are the combinations of their places in a packed lower triangle.
    bool is_plain() const {
        const Expansion& e = expansion;
        const std::int64_t n = e.n_functions[0];
        std::int64_t at = 0;
        for (std::int64_t q = 0; q < n; ++q)
            for (std::int64_t p = q; p < n; ++p, ++at)
                if (e.first_entry[at] != at || e.first_entry[at + 1] != at + 1 || e.entry[at] != p * (p + 1) / 2 + q || e.weight[at] != 1.0)
                    return false;
        return true;
    }

    std::int64_t count(std::int64_t h) const {
        const std::int64_t* row = orbitals.first.data + h * (orbitals.n_kinds + 1);
        return row[orbitals.n_kinds] - row[0];
    }

    Expansion expansion{};
    OrbitalSet orbitals{};
    std::int64_t n_pairs = 0;  // of orbitals, of this irrep
};

// Each of `out` has rows for some pairs of orbitals, from `first` on; columns from `column` on are filled, those of the rows
// `begin` to `end` of the integrals.
void half(std::int64_t irrep, std::int64_t n_classes, Integers n_functions, Integers first_entry, Integers entry, Reals weight,
     Integers first_orbital, Reals coefficients, VectorOrMatrix integrals, std::int64_t begin, std::int64_t end, std::int64_t first,
          std::vector<MutableRows> out, std::int64_t column, Reals density, MutableReals coulomb, Scratch& scratch) {
    const Tables tables(irrep, n_classes, n_functions, first_entry, entry, weight, first_orbital, coefficients);
    const PairMatrix source = matrix(integrals, n_classes);
    check(begin >= 0 && begin <= end && end <= source.n_rows, "a range of rows");
    check(!out.empty() && first >= 0 && column >= 0, "a half-transformed part");
    std::vector<HalfPart> parts;
    for (auto& one : out) {
        const auto ld = static_cast<std::int64_t>(one.shape(1)), last = first + static_cast<std::int64_t>(one.shape(0));
        check(last <= tables.n_pairs && column + end - begin <= ld, "a half-transformed part");
        parts.push_back({first, last, ld, one.data() + column});
        first = last;
    }
    FirstHalf work{source, begin, end, {parts.data(), static_cast<std::int64_t>(parts.size())}};
    if (density.shape(0) > 0) {
        check(static_cast<std::int64_t>(density.shape(0)) == tables.expansion.n_classes &&
                  static_cast<std::int64_t>(coulomb.shape(0)) == source.n_rows, "a density");
        work.density = density.data();
        work.coulomb = coulomb.data();
    }
    const nb::gil_scoped_release release;
    first_half(tables.expansion, tables.orbitals, work, scratch);
}

// `row` is that of `out` for each pair of orbitals of the irrep, or -1; columns from `column` on are filled.
void half_of_runs(std::int64_t irrep, std::int64_t n_classes, Integers n_functions, Integers first_entry, Integers entry, Reals weight,
     Integers first_orbital, Reals coefficients, VectorOrMatrix integrals, Bytes runs, Integers row, MutableRows out, std::int64_t column,
          Reals density, MutableReals coulomb, Scratch& scratch) {
    const Tables tables(irrep, n_classes, n_functions, first_entry, entry, weight, first_orbital, coefficients);
    const PairMatrix source = matrix(integrals, n_classes);
    FirstHalf work{source, 0, source.n_rows, {}};
    work.runs = records<PairRun>(runs);
    work.row = span(row);
    work.ld = static_cast<std::int64_t>(out.shape(1));
    work.out = out.data() + column;
    check(static_cast<std::int64_t>(row.shape(0)) == tables.n_pairs && within(row, -1, out.shape(0)) && column >= 0 &&
              column + source.n_rows <= work.ld, "a half-transformed part");
    for (std::int64_t k = 0; k < work.runs.size; ++k) {
        const PairRun& run = work.runs[k];
        const std::int64_t left = run.right ^ irrep;
        check(run.right >= 0 && run.right <= left && left < tables.expansion.n_irreps && run.first_p >= 0 && run.first_p <= run.last_p &&
                  run.last_p <= tables.count(left) && run.first_q >= 0 && run.first_q <= run.last_q && run.last_q <= tables.count(run.right) &&
                  (irrep > 0 || run.first_q <= run.first_p), "a run of pairs");
    }
    if (density.shape(0) > 0) {
        check(static_cast<std::int64_t>(density.shape(0)) == tables.expansion.n_classes &&
                  static_cast<std::int64_t>(coulomb.shape(0)) == source.n_rows, "a density");
        work.density = density.data();
        work.coulomb = coulomb.data();
    }
    const nb::gil_scoped_release release;
    first_half(tables.expansion, tables.orbitals, work, scratch);
}

// Matrices side by side, all of them with so many columns.
struct Pieces {
    Pieces(const std::vector<Rows>& half, std::int64_t n_columns) {
        check(!half.empty(), "the half-transformed integrals");
        for (const Rows& one : half) {
            check(one.shape(0) == half.front().shape(0), "the half-transformed integrals");
            all.push_back({one.data(), static_cast<std::int64_t>(one.shape(1))});
            n_columns -= all.back().n_columns;
        }
        check(n_columns == 0, "the half-transformed integrals");
    }
    HalfMatrix matrix() const { return {all.data(), static_cast<std::int64_t>(all.size())}; }

    std::vector<HalfPiece> all;
};

void second(std::int64_t irrep, std::int64_t n_classes, Integers n_functions, Integers first_entry, Integers entry, Reals weight,
     Integers first_orbital, Reals coefficients, std::vector<Rows> half, Integers first_block, Integers column, Integers pair, Integers rank, Integers label,
            Integers left_label, std::int64_t first_pair, Bytes destinations, std::vector<Integers> offsets,
            std::vector<Reals> factors, std::vector<MutableReals> buffers, Scratch& scratch) {
    const Tables tables(irrep, n_classes, n_functions, first_entry, entry, weight, first_orbital, coefficients);
    const auto to = records<Destination>(destinations);
    const Pieces pieces(half, tables.expansion.n_classes);
    const std::size_t n_columns = column.shape(0);
    check(ascends(first_block, n_columns) && label.shape(0) + 1 == first_block.shape(0) && pair.shape(0) == n_columns &&
              rank.shape(0) == n_columns && within(column, 0, half.front().shape(0)), "a table of columns");
    for (std::size_t b = 0; b + 1 < first_block.shape(0); ++b)
        check(first_block.data()[b + 1] - first_block.data()[b] <= slab_width && first_block.data()[b + 1] > first_block.data()[b],
              "a block of columns");
    check(tables.orbitals.n_kinds <= 7 && first_pair + tables.n_pairs <= static_cast<std::int64_t>(left_label.shape(0)) && offsets.size() == factors.size(),
          "a table of pairs");
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
    SecondHalf work{pieces.matrix(), span(first_block), span(column), span(pair), span(rank),
                    span(label), span(left_label), to, sides.data(), places.data(), first_pair};
    const nb::gil_scoped_release release;
    second_half(tables.expansion, tables.orbitals, work, scratch);
}

void exchange(std::int64_t irrep, std::int64_t n_classes, Integers n_functions, Integers first_entry, Integers entry, Reals weight,
     Integers first_orbital, Reals coefficients, std::vector<Rows> half, Bytes groups, Integers column, MutableRows out, Scratch& scratch) {
    const Tables tables(irrep, n_classes, n_functions, first_entry, entry, weight, first_orbital, coefficients);
    const auto all = records<Exchange>(groups);
    const Pieces pieces(half, tables.expansion.n_classes);
    check(within(column, 0, half.front().shape(0)) && out.shape(0) == column.shape(0), "a table of exchange integrals");
    for (std::int64_t g = 0; g < all.size; ++g) {
        const Exchange& e = all[g];
        const std::int64_t n = tables.expansion.n_irreps;
        check(e.irrep_i >= 0 && e.irrep_i < n && e.irrep_q >= 0 && e.irrep_q < n && (e.irrep_i ^ e.irrep_q) == tables.expansion.irrep &&
                  e.i >= 0 && e.i < tables.count(e.irrep_i) && e.first >= 0 && e.count >= 0 &&
                  e.first + e.count <= static_cast<std::int64_t>(column.shape(0)) &&
                  tables.count(e.irrep_q) <= static_cast<std::int64_t>(out.shape(1)), "a table of exchange integrals");
    }
    const nb::gil_scoped_release release;
    exchange_half(tables.expansion, tables.orbitals, pieces.matrix(), all, span(column),
                  out.data(), static_cast<std::int64_t>(out.shape(1)), scratch);
}

void make_scratch(Scratch* self, std::int64_t n_workers) {
    check(n_workers >= 1, "the number of workers");
    new (self) Scratch(n_workers);
}

}  // namespace

void bind_transform(nb::module_& m) {
    m.attr("slab_width") = slab_width;
    nb::class_<Scratch>(m, "Scratch", "Memory of the workers of a transformation, kept from one step to the next.")
        .def("__init__", &make_scratch, nb::arg("n_workers"));
    m.def("adapt_pairs", &adapt, nb::kw_only(), nb::arg("first"), nb::arg("image"), nb::arg("irrep"), nb::arg("place"),
          nb::arg("weight"), nb::arg("integrals"), nb::arg("n_pairs"), nb::arg("out"), nb::arg("n_workers"),
          "Integrals over combinations of pairs of functions.");
    m.def("adapt_quartets", &adapt_direct, nb::kw_only(), nb::arg("first"), nb::arg("image"), nb::arg("irrep"), nb::arg("place"),
          nb::arg("weight"), nb::arg("function_image"), nb::arg("function_sign"), nb::arg("libcint"), nb::arg("threshold"),
          nb::arg("first_shell"), nb::arg("last_shell"), nb::arg("start"), nb::arg("out"), nb::arg("n_workers"), "The same with integrals that libcint computes on the way.");
    m.def("first_half", &half, nb::kw_only(), nb::arg("irrep"), nb::arg("n_classes"), nb::arg("n_functions"),
          nb::arg("first_entry"), nb::arg("entry"), nb::arg("weight"), nb::arg("first_orbital"), nb::arg("coefficients"),
          nb::arg("integrals"), nb::arg("begin"), nb::arg("end"), nb::arg("first"), nb::arg("out"), nb::arg("column"), nb::arg("density"), nb::arg("coulomb"),
          nb::arg("scratch"), "One pair of functions becomes a pair of orbitals.");
    m.def("first_half_of_runs", &half_of_runs, nb::kw_only(), nb::arg("irrep"), nb::arg("n_classes"), nb::arg("n_functions"),
          nb::arg("first_entry"), nb::arg("entry"), nb::arg("weight"), nb::arg("first_orbital"), nb::arg("coefficients"),
          nb::arg("integrals"), nb::arg("runs"), nb::arg("row"), nb::arg("out"), nb::arg("column"), nb::arg("density"), nb::arg("coulomb"),
          nb::arg("scratch"), "The same for any pairs of orbitals.");
    m.def("second_half", &second, nb::kw_only(), nb::arg("irrep"), nb::arg("n_classes"), nb::arg("n_functions"),
          nb::arg("first_entry"), nb::arg("entry"), nb::arg("weight"), nb::arg("first_orbital"), nb::arg("coefficients"),
          nb::arg("half"), nb::arg("first_block"), nb::arg("column"), nb::arg("pair"), nb::arg("rank"), nb::arg("label"),
          nb::arg("left_label"), nb::arg("first_pair"), nb::arg("destinations"), nb::arg("offsets"), nb::arg("factors"),
          nb::arg("buffers"), nb::arg("scratch"), "So does the other one, into the places of the integrals.");
    m.def("exchange_half", &exchange, nb::kw_only(), nb::arg("irrep"), nb::arg("n_classes"), nb::arg("n_functions"),
          nb::arg("first_entry"), nb::arg("entry"), nb::arg("weight"), nb::arg("first_orbital"), nb::arg("coefficients"),
          nb::arg("half"), nb::arg("groups"), nb::arg("column"), nb::arg("out"), nb::arg("scratch"),
          "The exchange integrals (pi|qi) of some columns (qi).");
}
