// Binds the inspection of sorts: copies the tables of layouts once, returns records without a copy.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <stdexcept>

#include "inspect_sort.hpp"
#include "tasks.hpp"

namespace nb = nanobind;
using namespace tilewise;

namespace {

using Integers = nb::ndarray<const std::int64_t, nb::ndim<1>, nb::device::cpu>;
using Table = nb::ndarray<const std::int64_t, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

Numbers numbers(const Integers& array) {
    Numbers result(array.size());
    for (std::size_t k = 0; k < result.size(); ++k) result[k] = array(k);
    return result;
}

NumberTable table(const Table& array) {
    return {Numbers(array.data(), array.data() + array.size()), static_cast<std::int64_t>(array.shape(1))};
}

void make_group(Group* group, std::string packing, const std::vector<Integers>& tile_sizes, const Table& tiles,
                const Integers& parity, const Integers& sector, const Integers& size, const Integers& offset,
                const Integers& panel, const Integers& first) {
    const std::size_t n = size.size();
    if (tiles.shape(0) != n || tiles.shape(1) != tile_sizes.size() || parity.size() != n || sector.size() != n ||
        offset.size() != n || panel.size() != n)
        throw std::invalid_argument("the tables of a compound index do not fit each other");
    new (group) Group{std::move(packing), {}, {}, table(tiles), numbers(sector), numbers(size), numbers(offset),
                      numbers(panel), numbers(first)};
    group->first.push_back(static_cast<std::int64_t>(n));
    std::size_t entries = 3;
    for (const Integers& sizes : tile_sizes) {
        group->tile_size.push_back(numbers(sizes));
        entries *= sizes.size();
    }
    group->lookup.assign(entries, -1);
    for (std::size_t k = 0; k < n; ++k)
        group->lookup.at(group->position(&tiles(k, 0), parity(k))) = static_cast<std::int64_t>(k);
}

void make_places(Places* places, const Group& rows, const Group& cols, const Table& sector_of, const Integers& width,
                 const Integers& start, const Table& panel_of, const Integers& row_panel, const Integers& col_panel,
                 const Integers& parity, const std::vector<Integers>& bands) {
    const std::size_t n = parity.size();
    if (row_panel.size() != n || col_panel.size() != n || panel_of.shape(0) + 1 != rows.first.size() ||
        panel_of.shape(1) + 1 != cols.first.size() ||
        (!bands.empty() && (bands.size() != 4 || bands[0].size() != rows.size.size())))
        throw std::invalid_argument("the tables of a layout do not fit each other");
    const auto of_bands = [&](std::size_t k) { return bands.empty() ? Numbers() : numbers(bands[k]); };
    new (places) Places{rows, cols, table(sector_of), numbers(width), numbers(start), table(panel_of), numbers(row_panel),
                        numbers(col_panel), numbers(parity), of_bands(0), of_bands(1), of_bands(2), of_bands(3)};
}

using Sources = std::vector<std::tuple<std::string, const Places*, std::int64_t>>;
using Factors = std::vector<std::tuple<std::string, std::string, std::int64_t, std::int64_t>>;
using Reads = std::vector<std::pair<std::pair<Factors, std::string>, std::vector<double>>>;

std::size_t number_of(const Sources& sources, const std::string& name) {
    for (std::size_t k = 0; k < sources.size(); ++k)
        if (std::get<0>(sources[k]) == name) return k;
    throw std::invalid_argument("a sort reads '" + name + "', which is not among its sources");
}

SortPass make_pass(Numbers parities, Reads reads, const Sources& sources) {
    if (parities.empty()) throw std::invalid_argument("a pass of a sort needs a parity");
    SortPass pass{std::move(parities), {}};
    for (auto& [key, coefficients] : reads) {
        StoredRead read{{}, key.second, std::move(coefficients)};
        for (auto& [name, letters, row_parity, col_parity] : key.first)
            read.factors.push_back({number_of(sources, name), letters, row_parity, col_parity});
        pass.reads.push_back(std::move(read));
    }
    return pass;
}

template <class T>
nb::object array(std::vector<T>& items, const nb::capsule& owner) {
    using Item = std::conditional_t<std::is_arithmetic_v<T>, T, std::uint8_t>;
    return nb::cast(nb::ndarray<nb::numpy, Item, nb::ndim<1>>(items.data(), {items.size() * sizeof(T) / sizeof(Item)}, owner));
}

nb::list pair_tables(std::vector<Pairs>& tables, const nb::capsule& owner) {
    nb::list result;
    for (Pairs& pairs : tables)
        result.append(nb::ndarray<nb::numpy, std::int64_t, nb::ndim<2>>(pairs.data(), {pairs.size(), 2}, owner));
    return result;
}

nb::tuple inspect(const Places& places, std::string letters, std::array<bool, 2> joined, bool elementwise, Numbers targets,
                  std::vector<bool> accumulate, const Sources& sources,
                  std::vector<std::pair<Numbers, Reads>> passes, std::int64_t chunk) {
    SortOperation op{&places, std::move(letters), joined, std::move(targets), std::move(accumulate), {}, {}, chunk};
    for (const auto& [name, source, buffer] : sources) op.sources.push_back({source, buffer});
    for (auto& [parities, reads] : passes) op.passes.push_back(make_pass(std::move(parities), std::move(reads), sources));
    if (op.targets.size() != op.accumulate.size())
        throw std::invalid_argument("a sort needs to know of each target whether to add to it");
    auto found = std::make_unique<FoundSort>();
    {
        const nb::gil_scoped_release release;
        *found = elementwise ? inspect_elementwise(op) : inspect_sort(op);
    }
    FoundSort& f = *found;
    const nb::capsule owner(found.release(), [](void* p) noexcept { delete static_cast<FoundSort*>(p); });
    return nb::make_tuple(array(f.panel, owner), array(f.tasks, owner), array(f.blocks, owner), array(f.outs, owner),
                          array(f.reads, owner), array(f.views, owner), array(f.coefficients, owner),
                          pair_tables(f.touches, owner), pair_tables(f.outputs, owner), f.scratch);
}

template <class T>
Span<T> records(const Bytes& table) {
    if (table.size() % sizeof(T)) throw std::invalid_argument("whole records are needed");
    return {reinterpret_cast<const T*>(table.data()), static_cast<std::int64_t>(table.size() / sizeof(T))};
}

template <class T>
const T* range(Span<T> table, std::int64_t first, std::int64_t count) {
    if (first < 0 || count < 0 || first + count > table.size) throw std::invalid_argument("a block refers to records that do not exist");
    return table.data + first;
}

nb::object chunks(const Bytes& blocks, std::int64_t chunk) {
    const auto table = records<SortBlock>(blocks);
    auto found = std::make_unique<Numbers>();
    for (std::int64_t b = 0; b < table.size; ++b) found->push_back(sort_chunk(table[b], chunk));
    Numbers& kept = *found;
    return array(kept, nb::capsule(found.release(), [](void* p) noexcept { delete static_cast<Numbers*>(p); }));
}

nb::object walks(const Bytes& blocks, const Bytes& reads, const Bytes& views, std::int64_t chunk) {
    const auto block_table = records<SortBlock>(blocks);
    const auto read_table = records<SortRead>(reads);
    const auto view_table = records<SortView>(views);
    auto found = std::make_unique<std::vector<SortWalk>>();
    found->reserve(view_table.size);
    for (std::int64_t b = 0; b < block_table.size; ++b) {
        const SortBlock& block = block_table[b];
        const SortRead* read = range(read_table, block.first_read, block.n_read);
        for (const SortRead* end = read + block.n_read; read < end; ++read) {
            const SortView* view = range(view_table, read->first_view, read->n_view);
            for (std::int64_t v = 0; v < read->n_view; ++v) found->push_back(sort_walk(block, view[v], chunk));
        }
    }
    auto& kept = *found;
    return array(kept, nb::capsule(found.release(), [](void* p) noexcept { delete static_cast<std::vector<SortWalk>*>(p); }));
}

}  // namespace

void bind_inspect_sort(nb::module_& m) {
    nb::class_<Group>(m, "Group", "A compound index: its tile tuples, and the panels that they are cut into.")
        .def("__init__", &make_group, nb::arg("packing"), nb::arg("tile_sizes"), nb::arg("tiles"), nb::arg("parity"),
             nb::arg("sector"), nb::arg("size"), nb::arg("offset"), nb::arg("panel"), nb::arg("first"));
    nb::class_<Places>(m, "Places", "Where the blocks of a tensor lie.")
        .def("__init__", &make_places, nb::arg("rows"), nb::arg("cols"), nb::arg("sector_of"), nb::arg("width"),
             nb::arg("start"), nb::arg("panel_of"), nb::arg("row_panel"), nb::arg("col_panel"), nb::arg("parity"),
             nb::arg("bands"))
        .def(
            "alone",
            [](const Places& places) {
                Places result = places;
                result.alone = true;
                return result;
            },
            "The same blocks, each a matrix of its own; an offset is then the number of a pair of tuples.");
    m.def("inspect_sort", &inspect, nb::arg("places"), nb::arg("letters"), nb::arg("joined"), nb::arg("elementwise"),
          nb::arg("targets"), nb::arg("accumulate"), nb::arg("sources"), nb::arg("passes"), nb::arg("chunk"),
          "The blocks of a sort: (panels, tasks, blocks, outs, reads, views, coefficients, touches, outputs, scratch).");
    m.def("sort_chunks", &chunks, nb::arg("blocks"), nb::arg("chunk"), "Elements of each block that are sorted at a time.");
    m.def("sort_walks", &walks, nb::arg("blocks"), nb::arg("reads"), nb::arg("views"), nb::arg("chunk"),
          "How the innermost loops over each view of some blocks run, as records.");
}
