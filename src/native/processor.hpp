// What our own kernels may use of this processor.
#pragma once

namespace tilewise {

// Numbers in a register of the widest kind: 8 (AVX-512), 4 (AVX2 with FMA), or 1 where there are no kernels of our own.
int register_lanes();

// At most so many from now on, as on another processor; not while tasks run.
void use_register_lanes(int most);

inline bool own_kernels() { return register_lanes() >= 4; }

// AVX-512 has twice as many registers too.
inline bool many_registers() { return register_lanes() == 8; }

}  // namespace tilewise
