"""A contraction of two block-sparse tensors, checked against numpy.einsum."""

import numpy as np

from tilewise import Layout, Space, Tensor, contract

occ = Space.spatial("o", [3, 1, 1, 2])  # orbitals in each of four irreps
vir = Space.spatial("v", [8, 2, 4, 5])
spaces = {"ij": occ, "abcd": vir}
amplitudes = Tensor.random(Layout.parse("ij|cd", spaces), seed=1)
integrals = Tensor.random(Layout.parse("ab|cd", spaces), seed=2)
result = contract("ijcd,abcd->ijab", amplitudes, integrals, threads=2)
dense = np.einsum("ijcd,abcd->ijab", amplitudes.to_dense(), integrals.to_dense())
print(result, "largest error", np.abs(result.to_dense() - dense).max())
