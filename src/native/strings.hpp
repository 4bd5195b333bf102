// Strings of one spin: which of them are one and which are two orbitals apart, and with which sign.
#pragma once

#include <cstdint>
#include <vector>

#include "records.hpp"

namespace tilewise {

// Another string, and how it differs. One orbital apart: the sign in the highest bit, and below it the number of the pair
// (new orbital, old orbital). Two apart, seen from what both have in common: the sign, then 15 bits for the number of the
// two orbitals a < b that this string has besides, then a and b in 8 bits each.
struct Neighbour {
    std::int32_t string;
    std::uint32_t code;
};
constexpr std::uint32_t sign_bit = 0x80000000u, pair_mask = 0x7fffffffu;
constexpr std::int32_t no_string = 0x7fffffff;  // at the end of each list of those two apart
constexpr std::int64_t most_orbitals = 256;     // for the 8 bits

// Strings are sorted by class; `occupied` has the orbitals of each, ascending.
struct Strings {
    std::int64_t count = 0, electrons = 0, orbitals = 0, classes = 0;
    Span<std::uint8_t> occupied;     // (count, electrons)
    Span<std::int32_t> class_of;     // (count)
    Span<std::int32_t> hop;          // (orbitals, orbitals): number of the pair (new, old)
    Span<std::int32_t> two_orbitals; // (orbitals, orbitals): number of the two orbitals a < b
};

// Those one orbital apart from string s are near[first[s]] to near[first[s + 1]], ascending; those of classes c and up begin
// at near[first[s] + of_class[s * (classes + 1) + c]].
struct NearLists {
    std::vector<std::int64_t> first;
    std::vector<std::int32_t> of_class;
    std::vector<Neighbour> near;
};
NearLists near_lists(const Strings& strings, std::int64_t n_workers);

// Strings with the same rest after two of their orbitals are taken away make a list, ascending, that ends with `no_string`.
// place[s * pairs + k]: where string s stands in the list of its k-th two electrons (i < j; i runs slower).
struct FarLists {
    std::vector<std::int32_t> place;
    std::vector<Neighbour> far;
};
FarLists far_lists(const Strings& strings);

}  // namespace tilewise
