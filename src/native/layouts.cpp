#include "layouts.hpp"

#include <cstddef>
#include <stdexcept>
#include <type_traits>

#include "records.hpp"
#include "tasks.hpp"
#include "transform.hpp"

namespace tilewise {

namespace {

template <class Member>
Field field(const char* name, std::size_t offset) {
    using Number = std::remove_all_extents_t<Member>;
    static_assert(std::is_same_v<Number, std::int64_t> || std::is_same_v<Number, double>, "Python knows no such field");
    return {name, static_cast<std::int64_t>(offset), std::is_same_v<Number, double> ? 'f' : 'i', sizeof(Member) / sizeof(Number)};
}

// A field that the list below lacks would leave a gap.
template <class Record>
RecordLayout layout(const char* name, std::vector<Field> fields) {
    std::int64_t end = 0;
    for (const Field& one : fields) {
        if (one.offset != end) throw std::logic_error(std::string("a field of the record '") + name + "' is not told, before " + one.name);
        end = one.offset + 8 * one.count;
    }
    if (end != sizeof(Record)) throw std::logic_error(std::string("the last fields of the record '") + name + "' are not told");
    return {name, end, std::move(fields)};
}

#define FIELD(name) field<decltype(Record::name)>(#name, offsetof(Record, name))

RecordLayout gemm() {
    using Record = Gemm;
    return layout<Record>("gemm", {FIELD(a), FIELD(b), FIELD(c), FIELD(transpose_a), FIELD(transpose_b), FIELD(m), FIELD(n),
                                   FIELD(k), FIELD(a_offset), FIELD(lda), FIELD(b_offset), FIELD(ldb), FIELD(c_offset),
                                   FIELD(ldc), FIELD(alpha), FIELD(beta)});
}

RecordLayout sort() {
    using Record = SortBlock;
    return layout<Record>("sort", {FIELD(n_axes), FIELD(n_row_axes), FIELD(extent), FIELD(first_out), FIELD(n_out),
                                   FIELD(first_read), FIELD(n_read), FIELD(first_coefficient)});
}

RecordLayout out() {
    using Record = SortOut;
    return layout<Record>("out", {FIELD(buffer), FIELD(offset), FIELD(ld), FIELD(accumulate), FIELD(row_triangle),
                                  FIELD(col_triangle), FIELD(stride)});
}

RecordLayout read() {
    using Record = SortRead;
    return layout<Record>("read", {FIELD(first_view), FIELD(n_view), FIELD(n_sum), FIELD(sum_extent)});
}

RecordLayout view() {
    using Record = SortView;
    return layout<Record>("view", {FIELD(buffer), FIELD(offset), FIELD(stride), FIELD(n_pair), FIELD(p_axis), FIELD(q_axis),
                                   FIELD(unit), FIELD(sign)});
}

RecordLayout update() {
    using Record = Update;
    return layout<Record>("update", {FIELD(amplitude), FIELD(residual), FIELD(new_amplitude), FIELD(step),
                                     FIELD(amplitude_offset), FIELD(residual_offset), FIELD(new_offset), FIELD(step_offset), FIELD(rows), FIELD(cols), FIELD(ld), FIELD(energies), FIELD(row_energy), FIELD(col_energy)});
}

RecordLayout dot() {
    using Record = Dot;
    return layout<Record>("dot", {FIELD(a), FIELD(b), FIELD(a_offset), FIELD(b_offset), FIELD(rows), FIELD(cols), FIELD(ld), FIELD(factor)});
}

RecordLayout chain() {
    using Record = Step;
    return layout<Record>("chain", {FIELD(kind), FIELD(first), FIELD(count)});
}

RecordLayout triples() {
    using Record = Triples;
    return layout<Record>("triples", {FIELD(form), FIELD(s), FIELD(r), FIELD(i), FIELD(j), FIELD(k), FIELD(n_k),
                                      FIELD(first_tiles), FIELD(n_tiles), FIELD(part), FIELD(needed), FIELD(done), FIELD(elements),
                                      FIELD(words)});
}

RecordLayout tile_triple() {
    using Record = TileTriple;
    return layout<Record>("tile_triple", {FIELD(a), FIELD(b), FIELD(c)});
}

RecordLayout triples_space() {
    using Record = TriplesSpace;
    return layout<Record>("triples_space", {FIELD(blocks), FIELD(pairs), FIELD(energies), FIELD(singles), FIELD(parts),
                                            FIELD(product_seconds), FIELD(has_fock), FIELD(n_occ), FIELD(n_vir), FIELD(n_tile), FIELD(occ_irrep),
                                            FIELD(n_sum), FIELD(n_in_irrep), FIELD(tile_irrep), FIELD(tile_size),
                                            FIELD(tile_first), FIELD(tile_inner), FIELD(occ_energy), FIELD(vir_energy),
                                            FIELD(t1), FIELD(fock), FIELD(direct), FIELD(crossed), FIELD(pair), FIELD(squares),
                                            FIELD(scale)});
}

RecordLayout task() {
    using Record = Task;
    return layout<Record>("task", {FIELD(kind), FIELD(operation), FIELD(first), FIELD(count), FIELD(first_lock), FIELD(n_lock),
                                   FIELD(panel)});
}

RecordLayout trace() {
    using Record = Trace;
    return layout<Record>("trace", {FIELD(worker), FIELD(ready), FIELD(start), FIELD(end)});
}

RecordLayout walk() {
    using Record = SortWalk;
    return layout<Record>("walk", {FIELD(run), FIELD(rows), FIELD(from), FIELD(to), FIELD(in_triangle)});
}

RecordLayout pair_run() {
    using Record = PairRun;
    return layout<Record>("pair_run", {FIELD(right), FIELD(first_p), FIELD(last_p), FIELD(first_q), FIELD(last_q)});
}

RecordLayout destination() {
    using Record = Destination;
    return layout<Record>("destination", {FIELD(buffer), FIELD(left), FIELD(right), FIELD(from), FIELD(by_rows), FIELD(wanted)});
}

RecordLayout exchange() {
    using Record = Exchange;
    return layout<Record>("exchange", {FIELD(i), FIELD(irrep_i), FIELD(irrep_q), FIELD(first), FIELD(count)});
}

#undef FIELD

}  // namespace

std::vector<RecordLayout> record_layouts() {
    return {gemm(),    sort(),        out(),           read(), view(),  update(), dot(),         chain(),
            triples(), tile_triple(), triples_space(), task(), trace(), walk(),   destination(), exchange(), pair_run()};
}

}  // namespace tilewise
