// Columns of a sparse symmetric matrix over determinants, each a pair of an alpha and a beta string.
//
// Determinants are sorted by alpha string, then by beta string. Column j has the elements (i, j) with i > j. One walk finds
// them; what it does with them (count, store, multiply) is the business of a sink:
//   pairs:  both strings one orbital apart; one integral (pq|rs) each, and the sign of the two.
//   list:   same beta string, alpha strings two apart; values that all columns of one alpha string share.
//   far:    same alpha string, beta strings two apart; one integral of two orbitals and two others each.
//   one:    a single element.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "records.hpp"
#include "strings.hpp"

namespace tilewise {

// The strings of one spin with their lists.
struct Side {
    std::int64_t count = 0, electrons = 0, classes = 0;
    Span<std::uint8_t> occupied;      // (count, electrons)
    Span<std::int32_t> class_of;      // (count)
    Span<std::int32_t> label_end;     // (classes): the first string with another label
    Span<std::int64_t> near_first;    // (count + 1)
    Span<std::int32_t> near_class;    // (count, classes + 1)
    Span<Neighbour> near;
    Span<std::int32_t> far_place;     // (count, pairs)
    Span<Neighbour> far;
    std::int64_t pairs() const { return electrons * (electrons - 1) / 2; }
};

constexpr std::int64_t absent = INT64_MIN;

// Which pairs of strings are determinants. Where whole classes go together, the number of (a, b) is
// first[a] + shift[class of a, class of b] + b, or there is none if shift is `absent`; the beta classes of an alpha class
// form ranges. A list of any determinants has no ranges: they are searched in `beta`.
struct Pairing {
    std::int64_t determinants = 0;
    Span<std::int64_t> first;        // (alpha strings + 1)
    Span<std::int32_t> beta;         // (determinants)
    Span<std::int64_t> shift;        // (alpha classes, beta classes)
    Span<std::int32_t> range_first;  // (alpha classes + 1): ranges of each alpha class
    Span<std::int32_t> range_begin, range_end;      // (ranges): beta classes
    Span<std::int32_t> partner;      // (alpha classes): of a list, the beta class with the right label, or -1
    Span<std::int64_t> class_first;  // (beta classes + 1): their first strings
    bool is_list() const { return range_first.size == 0; }
};

// Integrals, by numbers of pairs: (pq|rs) is v[v_row[pq] + rs]; (ai|bj) - (aj|bi) is w[w_row[ij] + ab]. Pairs of two orbitals
// with the same label come first; for these there are h[pq], j[pq, k] = (pq|kk) and jk[pq, k] = (pq|kk) - (pk|kq).
struct Operator {
    std::int64_t orbitals = 0;
    double constant = 0.0;
    Span<double> v, w, h, j, jk;
    Span<std::int64_t> v_row, w_row;
    Span<std::int32_t> hop;  // (orbitals, orbitals)
};

struct Hamiltonian {
    Side alpha, beta;
    Pairing pairing;
    Operator integrals;  // empty while elements are counted

    // Of any two strings that make a determinant, or -1.
    std::int64_t number(std::int64_t a, std::int64_t b) const;
};

inline double with_sign(double value, std::uint64_t sign) {
    std::uint64_t bits;
    std::memcpy(&bits, &value, 8);
    bits ^= sign;
    std::memcpy(&value, &bits, 8);
    return value;
}
inline std::uint64_t sign_of(std::uint32_t code) { return static_cast<std::uint64_t>(code & sign_bit) << 32; }

// What a column takes, as far as it can be told without integrals.
struct ColumnCount {
    std::int64_t elements = 0;  // at most: integrals may be zero
    std::int64_t pairs = 0;     // elements with one hop of each spin
    std::int64_t runs = 0;      // alpha strings with such elements
    std::int64_t looked = 0;    // alpha strings that were looked at for them
    std::int64_t walked = 0;    // beta strings two apart that were looked at
    std::int64_t prepared = 0;  // what was looked up for the alpha string, if it is another one than that of the column before
};
constexpr const char* column_count_names[] = {"elements", "pairs", "runs", "looked", "walked", "prepared"};

// Elements of the same beta string, by class of their alpha string.
struct AlphaList {
    std::int32_t alpha_class = 0;
    std::vector<std::int64_t> first;     // number of the alpha string's first determinant
    std::vector<std::int32_t> string;
    std::vector<double> value;
};

// Walks columns; one for each worker. It remembers what all columns of one alpha string have in common.
class ColumnWalker {
public:
    explicit ColumnWalker(const Hamiltonian& h) : h_(&h) {}

    template <class Sink>
    void column(std::int64_t j, Sink& sink);

    ColumnCount count(std::int64_t j);
    double diagonal(std::int64_t j);

    // Adds to the matrix (pairs of the same label): x_i x_j for each element that one orbital makes.
    void add_density(std::int64_t j, const double* x, double* density);

    void forget() { alpha_ = -1; }

private:
    struct Run {  // of pairs: one alpha string
        const double* v;
        std::int64_t base;
        std::int32_t begin, end;  // beta classes; of a list: alpha string in `begin`
        std::uint64_t sign;
    };
    struct Single {
        std::int32_t string;
        std::uint32_t pair;
        std::uint64_t sign;
        double own;
    };

    void use(std::int64_t j);
    void prepare(std::int64_t a);
    template <class Sink>
    void mixed_pairs(std::int64_t b, Sink& sink);
    template <class Sink>
    void same_beta(std::int64_t b, Sink& sink);
    template <class Sink>
    void same_alpha(std::int64_t b, Sink& sink);
    template <class Found>
    void beta_singles(std::int64_t b, const Found& found);
    double others(std::uint32_t pair, const std::uint8_t* occupied, std::int64_t count) const;
    double own(std::uint32_t pair, const std::uint8_t* occupied, std::int64_t count) const;

    const Hamiltonian* h_;
    std::int64_t alpha_ = -1, beta_ = -1, prepared_ = 0;
    std::vector<Run> runs_;
    std::vector<Single> singles_;
    std::vector<AlphaList> lists_;
    std::size_t n_lists_ = 0;
};

// Sinks

struct CountSink {
    static constexpr bool has_values = false;
    ColumnCount count;
    void pairs(const Neighbour*, std::int64_t n, std::int64_t, const double*, std::uint64_t) { count.elements += n, count.pairs += n, ++count.runs; }
    void list(const AlphaList& list, std::int64_t) { count.elements += static_cast<std::int64_t>(list.first.size()); }
    void far(std::int64_t, std::uint32_t, const double*, std::uint64_t, bool kept) { count.elements += kept, ++count.walked; }
    void one(std::int64_t, double) { ++count.elements; }
};

// Zeros are passed over: `rows` and `values` need room for all that a CountSink counts.
struct StoreSink {
    static constexpr bool has_values = true;
    std::int32_t* rows;
    double* values;
    std::int64_t n = 0;
    void put(std::int64_t row, double value) {
        rows[n] = static_cast<std::int32_t>(row);
        values[n] = value;
        n += value != 0.0;
    }
    void pairs(const Neighbour* near, std::int64_t count, std::int64_t base, const double* v, std::uint64_t sign) {
        for (std::int64_t k = 0; k < count; ++k)
            put(base + near[k].string, with_sign(v[near[k].code & pair_mask], sign ^ sign_of(near[k].code)));
    }
    void list(const AlphaList& list, std::int64_t shift) {
        for (std::size_t k = 0; k < list.first.size(); ++k) put(list.first[k] + shift, list.value[k]);
    }
    void far(std::int64_t row, std::uint32_t two, const double* w, std::uint64_t sign, bool kept) {
        put(row, kept ? with_sign(w[two], sign) : 0.0);
    }
    void one(std::int64_t row, double value) { put(row, value); }
};

// y_i += H_ij x_j, and `sum` becomes what y_j gains; x and y of each row lie beside each other.
struct MultiplySink {
    static constexpr bool has_values = true;
    double* both;
    double x_j, sum = 0.0;
    void put(std::int64_t row, double value) {
        sum += value * both[2 * row];
        both[2 * row + 1] += value * x_j;
    }
    void pairs(const Neighbour* near, std::int64_t count, std::int64_t base, const double* v, std::uint64_t sign) {
        for (std::int64_t k = 0; k < count; ++k)
            put(base + near[k].string, with_sign(v[near[k].code & pair_mask], sign ^ sign_of(near[k].code)));
    }
    void list(const AlphaList& list, std::int64_t shift) {
        for (std::size_t k = 0; k < list.first.size(); ++k) put(list.first[k] + shift, list.value[k]);
    }
    void far(std::int64_t row, std::uint32_t two, const double* w, std::uint64_t sign, bool kept) {
        if (kept) put(row, with_sign(w[two], sign));
    }
    void one(std::int64_t row, double value) { put(row, value); }
};

}  // namespace tilewise
