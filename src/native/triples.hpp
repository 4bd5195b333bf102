// Operands and results of connected triples, as the records of a task list tell them; see docs/triples.md.
#pragma once

#include <chrono>

#include "records.hpp"
#include "segments.hpp"
#include "tasks.hpp"

namespace tilewise {

enum class TriplesForm : std::int64_t { closed = 0, one_spin = 1, two_spins = 2, squares = 3 };
constexpr const char* triples_form_names[] = {"closed", "one spin", "two spins", "squares"};  // by number

constexpr std::int64_t largest_triples_tile = 32;

// A matrix whose columns are padded.
struct Block {
    const double* at;
    std::int64_t ld, depth;

    const double* row(std::int64_t x) const { return at + x * ld; }
    // Of a block that is led by another index: the matrix of one of its values.
    Block led_by(std::int64_t lead) const { return {at + lead * depth * ld, ld, depth}; }
};

inline Segment joined(const Block& left, const Block& right) { return {left.at, left.ld, right.at, right.ld, left.depth}; }

// One set of orbitals.
struct OrbitalSet {
    const std::int64_t *occ_irrep, *n_sum, *n_in_irrep, *tile_irrep, *tile_size, *tile_first, *tile_inner;
    const double *occ_energy, *vir_energy, *t1, *fock;
    std::int64_t n_occ, n_vir, n_tile;

    double single(const double* values, std::int64_t i, std::int64_t tile, std::int64_t a) const {
        return values[i * n_vir + tile_first[tile] + a];
    }
    bool meets(std::int64_t i, std::int64_t tile) const { return occ_irrep[i] == tile_irrep[tile]; }
};

class Operands {
public:
    explicit Operands(const TaskList& list);

    const OrbitalSet& set(std::int64_t s) const { return sets_[s]; }
    bool has_fock() const { return space_.has_fock != 0; }
    const double* squares(int which) const { return blocks_ + space_.squares[which]; }
    double scale() const { return space_.scale; }

    // (py|zx) and -t_pl^yz, [first][x][second]: direct blocks are led by y, which has the spin s of p; crossed ones by z,
    // which has the spin r of x.
    Block direct(std::int64_t s, std::int64_t r, std::int64_t p, std::int64_t first, std::int64_t second) const {
        return block(space_.direct, s, r, s, r, r, p, first, second);
    }
    Block crossed(std::int64_t s, std::int64_t r, std::int64_t p, std::int64_t first, std::int64_t second) const {
        return block(space_.crossed, s, r, r, s, r, p, first, second);
    }
    // t_jk^dc and (lj|kc), [x][c]: x has the spin s of j, c the spin r of k.
    Block pair(std::int64_t s, std::int64_t r, std::int64_t j, std::int64_t k, std::int64_t c) const;
    // (jb|kc), or antisymmetrized where s = r, [b][c].
    Block integrals(std::int64_t s, std::int64_t r, std::int64_t j, std::int64_t k, std::int64_t b, std::int64_t c) const;
    // t_jk^bc, [b][c].
    Block doubles(std::int64_t s, std::int64_t r, std::int64_t j, std::int64_t k, std::int64_t b, std::int64_t c) const;

private:
    Block block(const std::int64_t* places, std::int64_t s, std::int64_t r, std::int64_t of_first, std::int64_t of_second,
                std::int64_t of_sum, std::int64_t p, std::int64_t first, std::int64_t second) const;

    const TriplesSpace& space_;
    const std::int64_t* numbers_;
    const double *blocks_, *pairs_;
    OrbitalSet sets_[2];
};

// Fourth order, sum of W W / D, and what the singles add in fifth order; and how long W took, with all that its products need.
struct TriplesEnergy {
    double fourth = 0.0, fifth = 0.0, product_seconds = 0.0;
};

// Adds the time until its end to a number of seconds.
class Stopwatch {
public:
    explicit Stopwatch(double& seconds) : seconds_(seconds), began_(Clock::now()) {}
    ~Stopwatch() { seconds_ += std::chrono::duration<double>(Clock::now() - began_).count(); }
    Stopwatch(const Stopwatch&) = delete;
    Stopwatch& operator=(const Stopwatch&) = delete;

private:
    using Clock = std::chrono::steady_clock;
    double& seconds_;
    const Clock::time_point began_;
};

void closed_triples(const Operands& operands, const Triples& record, const TileTriple& tiles, double* memory, TriplesEnergy& energy);
// The energy of i >= j >= k in a triple of tiles; `whole` gives W of an order of them, or null if it is to be computed.
class WholeW;
void closed_energy(const Operands& operands, const TileTriple& tiles, std::int64_t i, std::int64_t j, std::int64_t k,
                   const WholeW* whole, double* memory, TriplesEnergy& energy);
// By squares: all tiles at once, without symmetry.
void squared_triples(const TaskList& list, const Operands& operands, const Triples& record, Arena& arena, TriplesEnergy& energy);

void open_triples(const Operands& operands, const Triples& record, const TileTriple& tiles, double* memory, TriplesEnergy& energy);

}  // namespace tilewise
