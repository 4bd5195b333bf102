// The inspection of sorts: which blocks of which tensors make each block of the targets.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "records.hpp"

namespace tilewise {

using Numbers = std::vector<std::int64_t>;
using Pairs = std::vector<std::array<std::int64_t, 2>>;

struct NumberTable {
    Numbers numbers;
    std::int64_t columns = 0;
    std::int64_t operator()(std::int64_t row, std::int64_t column) const { return numbers[row * columns + column]; }
};

// A compound index: its tile tuples in the order of storage, and the panels that they are cut into.
struct Group {
    std::string packing;             // of a pair: "+", "-" or both; else empty
    std::vector<Numbers> tile_size;  // of each index
    Numbers lookup;                  // (tile of each index, parity + 1) -> tuple or -1
    NumberTable tiles;               // (tuples, rank)
    Numbers sector, size, offset;    // of each tuple; the first state is counted within the sector
    Numbers panel;                   // of each tuple
    Numbers first;                   // tuple of each panel, and the number of tuples

    // Of the pairs that belong to a parity of the whole tensor.
    std::int64_t parity_of(std::int64_t version) const;
    // The tuple of some tiles, or -1; the tiles of a packed pair must be given first >= second.
    std::int64_t find(const std::int64_t* chosen, std::int64_t parity) const { return lookup[position(chosen, parity)]; }
    std::size_t position(const std::int64_t* chosen, std::int64_t parity) const;
    // States of a panel.
    std::int64_t states(std::int64_t panel_number) const;
};

struct Location {
    std::int64_t offset, ld;
};

// Where the blocks of a tensor lie: its layout and its panels.
struct Places {
    Group rows, cols;
    NumberTable sector_of;         // (row sectors, column sectors) -> sector or -1
    Numbers width, start;          // of each sector: the length of its rows, its first element
    NumberTable panel_of;          // (row panels, column panels) -> panel or -1
    Numbers row_panel, col_panel;  // of each panel
    Numbers parity;                // of each panel
    Numbers band;                  // of each tuple of a tensor that is stored by half; else empty
    Numbers band_first, band_height, band_start;  // of each band: first row, rows, first element
    // Each block is a matrix of its own, whose offset is the number of its pair of tuples.
    bool alone = false;

    std::int64_t sector(std::int64_t row, std::int64_t col) const { return sector_of(rows.sector[row], cols.sector[col]); }
    std::int64_t panel(std::int64_t row, std::int64_t col) const { return panel_of(rows.panel[row], cols.panel[col]); }
    // Of a block that symmetry leaves: where it lies in a whole tensor, and where in one that may be stored by half.
    Location source(std::int64_t row, std::int64_t col) const;
    Location destination(std::int64_t row, std::int64_t col) const;
    bool stored(std::int64_t row, std::int64_t col) const;
};

struct StoredFactor {
    std::size_t source;  // in the list of sources
    std::string letters;
    std::int64_t row_parity, col_parity;
};

// A product of factors, summed over letters, with a coefficient for each (target, parity).
struct StoredRead {
    std::vector<StoredFactor> factors;
    std::string sums;
    std::vector<double> coefficients;
};

// The panels of the first parity are tasks, which write the panels of the others too.
struct SortPass {
    Numbers parities;
    std::vector<StoredRead> reads;
};

struct SortSource {
    const Places* places;
    std::int64_t buffer;
};

// Targets of one layout, indexed by `letters`. `joined`: whether the packed pair of the rows or the columns is one axis.
struct SortOperation {
    const Places* places;
    std::string letters;
    std::array<bool, 2> joined;
    Numbers targets;  // buffers
    std::vector<bool> accumulate;
    std::vector<SortSource> sources;
    std::vector<SortPass> passes;
    std::int64_t chunk;
};

struct FoundSort {
    Numbers panel;  // of each block, ascending: the task that it belongs to
    Numbers tasks;
    std::vector<SortBlock> blocks;
    std::vector<SortOut> outs;
    std::vector<SortRead> reads;
    std::vector<SortView> views;
    std::vector<double> coefficients;
    std::vector<Pairs> touches;  // of each source: (task, panel that it reads)
    std::vector<Pairs> outputs;  // of each parity: (task, panel that it writes)
    std::int64_t scratch = 0;
};

FoundSort inspect_sort(const SortOperation& op);

// Tensors of one layout in one order: a panel is one block of two axes.
FoundSort inspect_elementwise(const SortOperation& op);

// Doubles that a worker needs for some blocks.
std::int64_t sort_scratch(Span<SortBlock> blocks, std::int64_t chunk);

}  // namespace tilewise
