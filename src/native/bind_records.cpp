// Binds what both languages must agree on: the layouts of records, and the constants that Python takes from here.
#include <nanobind/nanobind.h>

#include "dependencies.hpp"
#include "executor.hpp"
#include "few_rows.hpp"
#include "layouts.hpp"
#include "loop.hpp"
#include "processor.hpp"
#include "records.hpp"
#include "simulate.hpp"
#include "square_product.hpp"
#include "streamed.hpp"
#include "tasks.hpp"
#include "triples.hpp"
#include "triples_squares.hpp"

namespace nb = nanobind;
using namespace tilewise;

namespace {

nb::dict layouts() {
    nb::dict told;
    for (const RecordLayout& record : record_layouts()) {
        nb::list fields;
        for (const Field& field : record.fields)
            fields.append(nb::make_tuple(nb::str(field.name.c_str()), field.offset, nb::str(&field.type, 1), field.count));
        told[record.name.c_str()] = fields;
    }
    return told;
}

// Names whose places are the numbers of an enumeration.
template <std::size_t n>
nb::tuple names(const char* const (&all)[n]) {
    nb::list told;
    for (const char* name : all) told.append(nb::str(name));
    return nb::tuple(told);
}

// Of tiles of one vector, two and three.
nb::tuple tile_rows(const std::int64_t (&rows)[most_tile_vectors + 1]) { return nb::make_tuple(rows[1], rows[2], rows[3]); }

}  // namespace

void bind_records(nb::module_& m) {
    m.def("record_layouts", &layouts, "Of each kind of record, the (name, offset in bytes, type, count) of its fields.");
    m.attr("max_axes") = max_axes;
    m.attr("max_sums") = max_sums;
    m.attr("max_pairs") = max_pairs;
    m.attr("kinds") = names(kind_names);
    m.attr("accesses") = names(access_names);
    m.attr("takings") = names(taking_names);
    m.attr("kernels") = names(kernel_names);
    m.def("register_lanes", &register_lanes, "Numbers in the widest register that kernels of our own use; 1: there are none.");
    m.def("use_register_lanes", &use_register_lanes, nb::arg("most"), "Uses registers of so many numbers at most, as on another processor.");
    m.attr("few_rows_limit") = few_rows_limit;
    m.attr("short_sum_limit") = short_sum_limit;
    m.attr("strip_rows") = strip_rows;
    m.attr("strip_cols") = strip_cols;
    m.attr("narrow_limit") = narrow_limit;
    m.attr("streamed_least_rows") = streamed_least_rows;
    m.attr("streamed_least_depth") = streamed_least_depth;
    m.attr("streamed_rows") = streamed_rows;
    m.attr("streamed_depth") = streamed_depth;
    m.attr("streamed_cols") = streamed_cols;
    m.attr("streamed_scratch") = streamed_scratch;
    m.attr("tile_rows") = nb::make_tuple(tile_rows(tile_rows_4), tile_rows(tile_rows_8));
    m.attr("triples_forms") = names(triples_form_names);
    m.attr("largest_triples_tile") = largest_triples_tile;
    m.attr("segment_lanes") = segment_lanes;
    m.attr("square_slab") = square_slab;
    m.attr("square_panels") = nb::make_tuple(square_panel_rows, square_panel_cols);
    m.attr("worker_counts") = names(worker_count_names);
    m.attr("simulated_columns") = names(simulated_worker_names);
}
