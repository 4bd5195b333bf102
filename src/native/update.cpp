// Jacobi steps on amplitudes.
#include "lanes.hpp"
#include "tasks.hpp"

namespace tilewise {

void run_update(const TaskList& list, const Update& r, double& partial) {
    const double* amplitude = list.buffers[r.amplitude] + r.amplitude_offset;
    const double* residual = list.buffers[r.residual] + r.residual_offset;
    double* fresh = list.buffers[r.new_amplitude] + r.new_offset;
    double* step = list.buffers[r.step] + r.step_offset;
    const double* row_energy = list.buffers[r.energies] + r.row_energy;
    const double* col_energy = list.buffers[r.energies] + r.col_energy;
    for (std::int64_t i = 0; i < r.rows; ++i) {
        const std::int64_t row = i * r.ld;
        partial += lane_sum(r.cols, [&](std::int64_t j) {
            const double gap = row_energy[i] + col_energy[j];
            const double rest = residual[row + j] - gap * amplitude[row + j];
            step[row + j] = rest / (gap - list.shift);
            fresh[row + j] = amplitude[row + j] + step[row + j];
            return rest * rest;
        });
    }
    check_finite(fresh, r.rows, r.cols, r.ld);
}

}  // namespace tilewise
