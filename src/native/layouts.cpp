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
    return layout<Record>("update", {FIELD(amplitude), FIELD(residual), FIELD(new_amplitude), FIELD(step), FIELD(offset),
                                     FIELD(rows), FIELD(cols), FIELD(ld), FIELD(energies), FIELD(row_energy), FIELD(col_energy)});
}

RecordLayout dot() {
    using Record = Dot;
    return layout<Record>("dot", {FIELD(a), FIELD(b), FIELD(offset), FIELD(rows), FIELD(cols), FIELD(ld), FIELD(factor)});
}

RecordLayout chain() {
    using Record = Step;
    return layout<Record>("chain", {FIELD(kind), FIELD(first), FIELD(count)});
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
    return {gemm(), sort(), out(), read(), view(), update(), dot(), chain(), task(), trace(), walk(), destination(), exchange()};
}

}  // namespace tilewise
