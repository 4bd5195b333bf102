// Connected triples: what all forms have in common.
#include "triples.hpp"

#include <cmath>
#include <cstdint>

namespace tilewise {

Operands::Operands(const TaskList& list)
    : space_(list.triples_space[0]),
      numbers_(list.triples_numbers.data),
      blocks_(list.buffers[space_.blocks]),
      pairs_(list.buffers[space_.pairs]) {
    const double *energies = list.buffers[space_.energies], *singles = list.buffers[space_.singles];
    for (int s = 0; s < 2; ++s)
        sets_[s] = OrbitalSet{numbers_ + space_.occ_irrep[s],  numbers_ + space_.n_sum[s],     numbers_ + space_.n_in_irrep[s],
                              numbers_ + space_.tile_irrep[s], numbers_ + space_.tile_size[s], numbers_ + space_.tile_first[s],
                              numbers_ + space_.tile_inner[s], energies + space_.occ_energy[s], energies + space_.vir_energy[s],
                              singles + space_.t1[s],          singles + space_.fock[s],       space_.n_occ[s],
                              space_.n_vir[s],                 space_.n_tile[s]};
}

Block Operands::block(const std::int64_t* places, std::int64_t s, std::int64_t r, std::int64_t of_first, std::int64_t of_second,
                      std::int64_t of_sum, std::int64_t p, std::int64_t first, std::int64_t second) const {
    const OrbitalSet &one = sets_[of_first], &two = sets_[of_second];
    const std::int64_t place = numbers_[places[2 * s + r] + (p * one.n_tile + first) * two.n_tile + second];
    const std::int64_t irrep = sets_[s].occ_irrep[p] ^ one.tile_irrep[first] ^ two.tile_irrep[second];
    const std::int64_t depth = sets_[of_sum].n_sum[irrep], ld = padded(two.tile_size[second]);
    return {blocks_ + place, ld, depth};
}

Block Operands::pair(std::int64_t s, std::int64_t r, std::int64_t j, std::int64_t k, std::int64_t c) const {
    const OrbitalSet &one = sets_[s], &two = sets_[r];
    const std::int64_t place = numbers_[space_.pair[2 * s + r] + (j * two.n_occ + k) * two.n_tile + c];
    const std::int64_t irrep = one.occ_irrep[j] ^ two.occ_irrep[k] ^ two.tile_irrep[c];
    return {pairs_ + place, padded(two.tile_size[c]), one.n_sum[irrep]};
}

Block Operands::integrals(std::int64_t s, std::int64_t r, std::int64_t j, std::int64_t k, std::int64_t b, std::int64_t c) const {
    const Block all = pair(s, r, j, k, c);
    return {all.row(all.depth + sets_[s].tile_inner[b]), all.ld, sets_[s].tile_size[b]};
}

Block Operands::doubles(std::int64_t s, std::int64_t r, std::int64_t j, std::int64_t k, std::int64_t b, std::int64_t c) const {
    const Block all = pair(s, r, j, k, c);
    return {all.row(sets_[s].tile_inner[b]), all.ld, sets_[s].tile_size[b]};
}

namespace {

// Results of one triple of tiles, from an address that is a multiple of 64 bytes.
double* results(const Operands& operands, const Triples& record, const TileTriple& tiles, Arena& arena) {
    const OrbitalSet &one = operands.set(record.s), &two = operands.set(record.r);
    const std::int64_t size = one.tile_size[tiles.a] * one.tile_size[tiles.b] * padded(two.tile_size[tiles.c]);
    const bool is_closed = static_cast<TriplesForm>(record.form) == TriplesForm::closed;
    double* memory = arena.take((is_closed ? 6 : 1) * size + 8);
    if (memory == nullptr) throw TaskFailure("the worker has too little memory for triples");
    return memory + (64 - reinterpret_cast<std::uintptr_t>(memory) % 64) % 64 / 8;
}

}  // namespace

void run_triples(const TaskList& list, const Triples& record, double& partial, Arena& arena) {
    const Operands operands(list);
    const auto work = static_cast<TriplesForm>(record.form) == TriplesForm::closed ? closed_triples : open_triples;
    const bool by_squares = static_cast<TriplesForm>(record.form) == TriplesForm::squares;
    TriplesEnergy energy;
    if (by_squares) squared_triples(list, operands, record, arena, energy);
    for (std::int64_t t = record.first_tiles; t < record.first_tiles + record.n_tiles && !by_squares; ++t) {
        const TileTriple& tiles = list.tile_triples[t];
        work(operands, record, tiles, results(operands, record, tiles, arena), energy);
    }
    partial += energy.fourth + energy.fifth;
    const TriplesSpace& space = list.triples_space[0];
    list.buffers[space.parts][record.part] = energy.fourth;
    list.buffers[space.product_seconds][record.part] = energy.product_seconds;
    if (!std::isfinite(partial)) throw TaskFailure("the result is not finite");
}

}  // namespace tilewise
