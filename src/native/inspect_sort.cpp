// 1. A block of a sort is a pair of tile tuples of the targets (with both parities of an exchange pair at once, unless
//    the pair stays packed in the reads: then it is one axis). Summed letters run over their tiles.
// 2. Every factor of a read is found as a stored block by its tiles; what symmetry makes zero is dropped.
// 3. A packed factor is a view with exchanged strides where the tiles are the other way round, and a triangle where
//    both indices lie in one tile.
// 4. A letter that the targets have twice is one axis. Blocks with two different tiles of it are not on the diagonal.
#include "inspect_sort.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "tasks.hpp"

namespace tilewise {

std::int64_t Group::parity_of(std::int64_t version) const {
    if (packing.empty()) return 0;
    return packing == "+-" ? version : packing == "+" ? 1 : -1;
}

std::size_t Group::position(const std::int64_t* chosen, std::int64_t parity) const {
    std::size_t at = 0;
    for (std::size_t k = 0; k < tile_size.size(); ++k) at = at * tile_size[k].size() + chosen[k];
    return 3 * at + parity + 1;
}

std::int64_t Group::states(std::int64_t panel_number) const {
    const std::int64_t end = first[panel_number + 1] - 1;
    return offset[end] + size[end] - offset[first[panel_number]];
}

bool Places::stored(std::int64_t row, std::int64_t col) const {
    if (row < 0 || col < 0 || sector(row, col) < 0) return false;
    return band.empty() || band[col] <= band[row];
}

Location Places::source(std::int64_t row, std::int64_t col) const {
    if (alone) return {row * static_cast<std::int64_t>(cols.size.size()) + col, cols.size[col]};
    const std::int64_t s = sector(row, col);
    return {start[s] + rows.offset[row] * width[s] + cols.offset[col], width[s]};
}

Location Places::destination(std::int64_t row, std::int64_t col) const {
    if (band.empty()) return source(row, col);
    const std::int64_t r = band[row], c = band[col], ld = band_height[c];
    const std::int64_t block = band_start[r] + band_height[r] * band_first[c];
    return {block + (rows.offset[row] - band_first[r]) * ld + cols.offset[col] - band_first[c], ld};
}

namespace {

constexpr double sqrt_half = 0.70710678118654752440;

template <class T>
std::int64_t size(const std::vector<T>& items) {
    return static_cast<std::int64_t>(items.size());
}

// Where the tile of each letter is found while a block is inspected: letters of the target, then those that are summed.
using Tiles = std::array<std::int64_t, max_axes + max_sums>;

// The letters of the rows or the columns of a factor.
struct Side {
    const Group* group;
    std::int64_t parity;
    std::array<std::int64_t, max_axes> slot{}, axis{};  // of each letter
    bool joined = false;                                // the pair is one axis
    bool possible = true;                               // a joined pair has the parity of the target
    double exchanged = 1.0;                             // the sign of a joined pair

    std::int64_t tuple(const Tiles& tile) const {
        std::array<std::int64_t, max_axes> chosen;
        for (std::size_t k = 0; k < group->tile_size.size(); ++k) chosen[k] = tile[slot[k]];
        if (parity && chosen[0] < chosen[1]) std::swap(chosen[0], chosen[1]);
        return possible ? group->find(chosen.data(), parity) : -1;
    }

    // Adds the strides of a block whose states lie `unit` apart; its scale.
    double add_strides(const Tiles& tile, std::int64_t unit, SortView& view) const {
        if (joined) {
            view.stride[axis[0]] += unit;
            return exchanged;
        }
        if (!parity) {
            for (std::size_t k = group->tile_size.size(); k-- > 0;) {
                view.stride[axis[k]] += unit;
                unit *= group->tile_size[k][tile[slot[k]]];
            }
            return 1.0;
        }
        const std::int64_t p = tile[slot[0]], q = tile[slot[1]];
        if (p == q) {
            const std::int64_t pair = view.n_pair++;
            view.p_axis[pair] = axis[0];
            view.q_axis[pair] = axis[1];
            view.unit[pair] = unit;
            view.sign[pair] = parity;
            return sqrt_half;
        }
        const bool swapped = p < q;
        view.stride[axis[swapped ? 1 : 0]] += unit * group->tile_size[0][swapped ? p : q];
        view.stride[axis[swapped ? 0 : 1]] += unit;
        return swapped ? sqrt_half * static_cast<double>(parity) : sqrt_half;
    }
};

struct PreparedFactor {
    std::size_t source;
    Side rows, cols;
};

struct PreparedRead {
    std::vector<PreparedFactor> factors;
    std::vector<const Numbers*> sums;  // sizes of the tiles of each summed letter
    const std::vector<double>* coefficients;
};

// Pairs of tasks and panels, each once; tasks come one after the other.
class Touched {
public:
    explicit Touched(const Places& places) : last_(places.parity.size(), -1) {}
    void add(std::int64_t task, std::int64_t panel) {
        if (last_[panel] == task) return;
        last_[panel] = task;
        pairs.push_back({task, panel});
    }
    Pairs pairs;

private:
    Numbers last_;
};

class Inspection {
public:
    explicit Inspection(const SortOperation& op)
        : op_(op), rows_(op.places->rows), cols_(op.places->cols), n_row_letters_(rows_.tile_size.size()) {
        if (op.letters.size() != n_row_letters_ + cols_.tile_size.size() || op.letters.size() > max_axes)
            throw std::invalid_argument("the letters of a sort do not fit its layout");
        for (std::size_t k = 0; k < op.letters.size(); ++k) {
            const bool goes_on = op.joined[k >= n_row_letters_] && k != 0 && k != n_row_letters_;
            first_[k] = op.letters.find(op.letters[k]);
            axis_[k] = first_[k] < k ? axis_[first_[k]] : goes_on ? n_axes_ - 1 : n_axes_++;
            if (k < n_row_letters_) n_row_axes_ = n_axes_;
            diagonal_ = diagonal_ || first_[k] < k;
        }
        for (std::size_t s = 0; s < max_sums; ++s) axis_[max_axes + s] = max_axes + s;
        for (const SortSource& source : op.sources) touches_.emplace_back(*source.places);
        accumulate_ = std::all_of(op.accumulate.begin(), op.accumulate.end(), [](bool one) { return one; });
        if (diagonal_ && !(accumulate_ && rows_.packing.empty() && cols_.packing.empty()))
            throw std::invalid_argument("a diagonal of a sort is assigned or packed");
    }

    FoundSort found() {
        std::vector<std::vector<PreparedRead>> reads;
        for (const SortPass& pass : op_.passes) {
            reads.push_back(prepared(pass));
            while (outputs_.size() < pass.parities.size()) outputs_.emplace_back(*op_.places);
            tuples_.resize(outputs_.size());
        }
        const Numbers& parity = op_.places->parity;
        for (std::size_t panel = 0; panel < parity.size(); ++panel)
            for (std::size_t k = 0; k < reads.size(); ++k)
                if (parity[panel] == op_.passes[k].parities.front()) add_task(panel, op_.passes[k].parities, reads[k]);
        for (Touched& touched : touches_) found_.touches.push_back(std::move(touched.pairs));
        for (Touched& touched : outputs_) found_.outputs.push_back(std::move(touched.pairs));
        found_.scratch = sort_scratch({found_.blocks.data(), size(found_.blocks)}, op_.chunk);
        return std::move(found_);
    }

private:
    std::vector<PreparedRead> prepared(const SortPass& pass) const {
        std::vector<PreparedRead> result;
        for (const StoredRead& read : pass.reads) {
            if (read.sums.size() > max_sums || read.coefficients.size() != op_.targets.size() * pass.parities.size())
                throw std::invalid_argument("a read of a sort has too many sums, or coefficients for other targets");
            PreparedRead one{{}, std::vector<const Numbers*>(read.sums.size()), &read.coefficients};
            for (const StoredFactor& factor : read.factors) {
                const Places& places = *op_.sources[factor.source].places;
                const std::size_t n = std::min(places.rows.tile_size.size(), factor.letters.size());
                one.factors.push_back({factor.source,
                                       side(places.rows, factor.letters.substr(0, n), factor.row_parity, read.sums, pass),
                                       side(places.cols, factor.letters.substr(n), factor.col_parity, read.sums, pass)});
                for (std::size_t s = 0; s < read.sums.size(); ++s) {
                    const std::size_t k = factor.letters.find(read.sums[s]);
                    if (k != std::string::npos)
                        one.sums[s] = k < n ? &places.rows.tile_size[k] : &places.cols.tile_size[k - n];
                }
            }
            if (std::count(one.sums.begin(), one.sums.end(), nullptr))
                throw std::invalid_argument("a letter is summed that no factor of a sort has");
            result.push_back(std::move(one));
        }
        return result;
    }

    Side side(const Group& group, const std::string& letters, std::int64_t parity, const std::string& sums,
              const SortPass& pass) const {
        Side result{&group, parity};
        if (letters.size() != group.tile_size.size())
            throw std::invalid_argument("the letters of a factor do not fit its layout");
        for (std::size_t k = 0; k < letters.size(); ++k) {
            const std::size_t kept = op_.letters.find(letters[k]), summed = sums.find(letters[k]);
            if (kept == std::string::npos && summed == std::string::npos)
                throw std::invalid_argument("a letter of a sort is neither kept nor summed");
            result.slot[k] = kept != std::string::npos ? kept : max_axes + summed;
            result.axis[k] = axis_[result.slot[k]];
        }
        result.joined = parity && result.slot[0] != result.slot[1] && result.axis[0] == result.axis[1];
        if (result.joined) {
            if (result.slot[0] > result.slot[1]) result.exchanged = static_cast<double>(parity);
            result.possible = std::any_of(pass.parities.begin(), pass.parities.end(),
                                          [&](std::int64_t version) { return group.parity_of(version) == parity; });
        }
        return result;
    }

    void add_task(std::int64_t panel, const Numbers& parities, const std::vector<PreparedRead>& reads) {
        const std::int64_t r = op_.places->row_panel[panel], c = op_.places->col_panel[panel];
        const std::size_t before = found_.blocks.size();
        for (std::int64_t row = rows_.first[r]; row < rows_.first[r + 1]; ++row)
            for (std::int64_t col = cols_.first[c]; col < cols_.first[c + 1]; ++col)
                add_block(panel, row, col, parities, reads);
        if (found_.blocks.size() > before) found_.tasks.push_back(panel);
    }

    // A block that is not stored or not on the diagonal, or that nothing is added to, is left out.
    void add_block(std::int64_t task, std::int64_t row, std::int64_t col, const Numbers& parities,
                   const std::vector<PreparedRead>& reads) {
        Tiles tile{};
        for (std::size_t k = 0; k < op_.letters.size(); ++k)
            tile[k] = k < n_row_letters_ ? rows_.tiles(row, k) : cols_.tiles(col, k - n_row_letters_);
        for (std::size_t k = 0; k < op_.letters.size(); ++k)
            if (tile[k] != tile[first_[k]]) return;
        bool stored = false;
        for (std::size_t v = 0; v < parities.size(); ++v) {
            const std::int64_t r = rows_.find(&tile[0], rows_.parity_of(parities[v]));
            const std::int64_t c = cols_.find(&tile[n_row_letters_], cols_.parity_of(parities[v]));
            tuples_[v] = {r, c};
            stored = stored || op_.places->stored(r, c);
        }
        if (!stored) return;
        SortBlock block{};
        block.first_read = size(found_.reads);
        block.first_coefficient = size(found_.coefficients);
        for (const PreparedRead& read : reads) add_reads(task, read, tile, block);
        block.n_read = size(found_.reads) - block.first_read;
        if (accumulate_ && block.n_read == 0) return;
        block.first_out = size(found_.outs);
        add_outs(task, tile, parities);
        block.n_out = size(found_.outs) - block.first_out;
        block.n_axes = n_axes_;
        block.n_row_axes = n_row_axes_;
        for (std::size_t k = 0; k < op_.letters.size(); ++k) {
            const bool in_rows = k < n_row_letters_;
            const Group& group = in_rows ? rows_ : cols_;
            block.extent[axis_[k]] = op_.joined[!in_rows] ? group.size[in_rows ? row : col]
                                                          : group.tile_size[in_rows ? k : k - n_row_letters_][tile[k]];
        }
        found_.panel.push_back(task);
        found_.blocks.push_back(block);
    }

    void add_outs(std::int64_t task, const Tiles& tile, const Numbers& parities) {
        const auto triangle = [&](const Group& group, bool joined, std::size_t first, std::int64_t version) {
            return !joined && !group.packing.empty() && tile[first] == tile[first + 1] ? group.parity_of(version) : 0;
        };
        for (std::size_t k = 0; k < op_.targets.size(); ++k) {
            for (std::size_t v = 0; v < parities.size(); ++v) {
                const auto [row, col] = tuples_[v];
                SortOut out{};
                out.buffer = -1;
                if (op_.places->stored(row, col)) {
                    const Location place = op_.places->destination(row, col);
                    out.buffer = op_.targets[k];
                    out.offset = place.offset;
                    out.ld = place.ld;
                    outputs_[v].add(task, op_.places->panel(row, col));
                }
                out.accumulate = op_.accumulate[k];
                out.row_triangle = triangle(rows_, op_.joined[0], 0, parities[v]);
                out.col_triangle = triangle(cols_, op_.joined[1], n_row_letters_, parities[v]);
                if (diagonal_) add_strides(tile, out);
                found_.outs.push_back(out);
            }
        }
    }

    void add_strides(const Tiles& tile, SortOut& out) const {
        std::int64_t unit = 1;
        for (std::size_t k = op_.letters.size(); k-- > 0;) {
            if (k + 1 == n_row_letters_) unit = out.ld;
            const bool in_rows = k < n_row_letters_;
            out.stride[axis_[k]] += unit;
            unit *= in_rows ? rows_.tile_size[k][tile[k]] : cols_.tile_size[k - n_row_letters_][tile[k]];
        }
    }

    // One read for each choice of tiles to sum for which all factors are there.
    void add_reads(std::int64_t task, const PreparedRead& read, Tiles& tile, const SortBlock& block) {
        std::int64_t choices = 1;
        for (const Numbers* sizes : read.sums) choices *= size(*sizes);
        for (std::int64_t choice = 0; choice < choices; ++choice) {
            std::int64_t rest = choice;
            for (std::size_t s = read.sums.size(); s-- > 0; rest /= size(*read.sums[s]))
                tile[max_axes + s] = rest % size(*read.sums[s]);
            add_read(task, read, tile, block);
        }
    }

    void add_read(std::int64_t task, const PreparedRead& read, const Tiles& tile, const SortBlock& block) {
        factor_tuples_.clear();
        for (const PreparedFactor& factor : read.factors) {
            const std::int64_t row = factor.rows.tuple(tile), col = factor.cols.tuple(tile);
            if (row < 0 || col < 0 || op_.sources[factor.source].places->sector(row, col) < 0) return;
            factor_tuples_.push_back({row, col});
        }
        SortRead record{size(found_.views), size(read.factors), size(read.sums), {}};
        for (std::size_t s = 0; s < read.sums.size(); ++s) record.sum_extent[s] = (*read.sums[s])[tile[max_axes + s]];
        found_.reads.push_back(record);
        double scale = 1.0;
        for (std::size_t k = 0; k < read.factors.size(); ++k) {
            const PreparedFactor& factor = read.factors[k];
            const auto [row, col] = factor_tuples_[k];
            const SortSource& source = op_.sources[factor.source];
            const Location place = source.places->source(row, col);
            SortView view{};
            view.buffer = source.buffer;
            view.offset = place.offset;
            const double row_scale = factor.rows.add_strides(tile, place.ld, view);
            scale *= row_scale * factor.cols.add_strides(tile, 1, view);
            found_.views.push_back(view);
            touches_[factor.source].add(task, source.places->panel(row, col));
        }
        const std::int64_t same = read.sums.empty() ? read_before(block) : size(found_.reads) - 1;
        const std::int64_t first = block.first_coefficient + (same - block.first_read) * size(*read.coefficients);
        found_.coefficients.resize(std::max<std::size_t>(found_.coefficients.size(), first + read.coefficients->size()));
        for (std::size_t k = 0; k < read.coefficients->size(); ++k)
            found_.coefficients[first + k] += scale * (*read.coefficients)[k];
    }

    // The number of the last read, or of one before it in the same block that reads the same: the last is dropped then.
    std::int64_t read_before(const SortBlock& block) {
        const std::int64_t last = size(found_.reads) - 1;
        const auto views = [&](std::int64_t number) { return found_.views.data() + found_.reads[number].first_view; };
        for (std::int64_t r = block.first_read; r < last; ++r) {
            const std::int64_t count = found_.reads[r].n_view;
            if (found_.reads[r].n_sum || count != found_.reads[last].n_view) continue;
            if (std::memcmp(views(r), views(last), count * sizeof(SortView)) != 0) continue;
            found_.views.resize(found_.reads[last].first_view);
            found_.reads.pop_back();
            return r;
        }
        return last;
    }

    const SortOperation& op_;
    const Group &rows_, &cols_;
    std::size_t n_row_letters_;
    std::array<std::int64_t, max_axes + max_sums> axis_{};  // of each letter
    std::array<std::size_t, max_axes> first_{};             // where each letter stands first
    std::int64_t n_axes_ = 0, n_row_axes_ = 0;
    bool accumulate_, diagonal_ = false;
    std::vector<Touched> touches_, outputs_;
    Pairs tuples_, factor_tuples_;  // of rows and columns: of each parity of a block, of each factor of a read
    FoundSort found_;
};

}  // namespace

FoundSort inspect_sort(const SortOperation& op) { return Inspection(op).found(); }

FoundSort inspect_elementwise(const SortOperation& op) {
    FoundSort found;
    const Places& places = *op.places;
    const auto& reads = op.passes.front().reads;
    const std::int64_t n_out = size(op.targets), n_read = size(reads);
    for (const StoredRead& read : reads)
        found.coefficients.insert(found.coefficients.end(), read.coefficients.begin(), read.coefficients.end());
    for (std::int64_t panel = 0; panel < size(places.parity); ++panel) {
        const std::int64_t r = places.row_panel[panel], c = places.col_panel[panel];
        const std::int64_t row = places.rows.first[r], col = places.cols.first[c];
        const Location place = places.source(row, col);
        const std::int64_t rows = places.rows.states(r), cols = places.cols.states(c);
        found.blocks.push_back({2, 1, {rows, cols}, panel * n_out, n_out, panel * n_read, n_read, 0});
        for (std::int64_t k = 0; k < n_out; ++k)
            found.outs.push_back({op.targets[k], place.offset, place.ld, op.accumulate[k], 0, 0, {}});
        for (const StoredRead& read : reads) {
            found.reads.push_back({size(found.views), 1, 0, {}});
            SortView view{};
            view.buffer = op.sources[read.factors.front().source].buffer;
            view.offset = place.offset;
            view.stride[0] = place.ld;
            view.stride[1] = 1;
            found.views.push_back(view);
        }
        found.panel.push_back(panel);
    }
    found.tasks = found.panel;
    Pairs every;
    for (const std::int64_t panel : found.panel) every.push_back({panel, panel});
    found.touches.assign(op.sources.size(), every);
    found.outputs.assign(1, every);
    found.scratch = sort_scratch({found.blocks.data(), size(found.blocks)}, op.chunk);
    return found;
}

std::int64_t sort_scratch(Span<SortBlock> blocks, std::int64_t chunk) {
    std::int64_t largest = 0;
    for (std::int64_t k = 0; k < blocks.size; ++k)
        largest = std::max(largest, sort_chunk(blocks[k], chunk) * (blocks[k].n_out + 2));
    return largest;
}

}  // namespace tilewise
