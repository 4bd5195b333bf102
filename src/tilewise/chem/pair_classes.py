"""Pairs of basis functions under a group whose operations are signed permutations of the functions.

An operation takes a function to another one of the same shape, or to minus it. Pairs (mu nu), mu >= nu,
then fall into classes of 1, 2, 4 or 8 images of one another. A class has one symmetric combination in as
many irreps,

    |K, h> = sum over the images of K of (their character in h) (their sign) |image> / sqrt(number of images)

and the matrix of integrals (mu nu|lambda sigma) over all pairs is block diagonal in the irreps of these
combinations.

The group has 1, 2, 4 or 8 operations, numbered so that number 3 is the product of 1 and 2, and so on; the
character of operation R in irrep h is -1 to the number of bits that R and h share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tilewise.lazy import cached_property


def characters(irreps: np.ndarray | int, operations: np.ndarray | int) -> np.ndarray:
    """Of operations in irreps, by their numbers."""
    shared = np.bitwise_and(irreps, operations)
    return 1.0 - 2.0 * ((shared ^ (shared >> 1) ^ (shared >> 2)) & 1)


def pair_number(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """Where the pair stands in a packed lower triangle."""
    high, low = np.maximum(p, q), np.minimum(p, q)
    return high * (high + 1) // 2 + low


@dataclass(frozen=True, eq=False)
class Operations:
    """What each operation makes of each function: `sign` times the function `image`, both (operations,
    functions)."""

    image: np.ndarray
    sign: np.ndarray

    @classmethod
    def none(cls, n_functions: int) -> Operations:
        """The identity alone."""
        return cls(np.arange(n_functions)[None, :], np.ones((1, n_functions)))

    @property
    def count(self) -> int:
        return len(self.image)

    @property
    def n_functions(self) -> int:
        return self.image.shape[1]


@dataclass(frozen=True, eq=False)
class _Orbits:
    """Sets of things that the operations take into each other; the representative of each is one of them."""

    representative: np.ndarray
    """(orbits,)"""
    orbit: np.ndarray
    """Of each thing."""
    operation: np.ndarray
    """Of each thing one that makes it of its representative."""
    sign: np.ndarray
    """Of each thing that of this operation."""
    size: np.ndarray
    """(orbits,)"""
    has: np.ndarray
    """(irreps, orbits): whether there is a combination in an irrep."""

    @classmethod
    def of(cls, image: np.ndarray, sign: np.ndarray) -> _Orbits:
        """Of things whose images and signs are (operations, things). The representative is the last one."""
        n_operations, n = image.shape
        last = image.max(axis=0)
        representative = np.flatnonzero(last == np.arange(n))
        number = np.empty(n, np.int64)
        number[representative] = np.arange(len(representative))
        own, signs = image[:, representative], sign[:, representative]
        fixed = own == representative
        operations = np.arange(n_operations)
        # A combination survives if every operation that keeps the representative has its character as its
        # sign.
        agrees = characters(operations[:, None], operations)[:, :, None] == signs
        made_by, of_sign = np.zeros(n, np.int64), np.ones(n)
        for operation in operations[::-1]:  # of several operations the first one
            made_by[own[operation]], of_sign[own[operation]] = operation, signs[operation]
        return cls(
            representative,
            number[last],
            made_by,
            of_sign,
            n_operations // fixed.sum(axis=0),
            (agrees | ~fixed).all(axis=1),
        )

    def reordered(self, order: np.ndarray) -> _Orbits:
        """The same orbits, numbered in another order."""
        number = np.empty(len(order), np.int64)
        number[order] = np.arange(len(order))
        return replace(
            self,
            representative=self.representative[order],
            orbit=number[self.orbit],
            size=self.size[order],
            has=self.has[:, order],
        )

    def amplitude(self, things: np.ndarray, irrep: np.ndarray | int) -> np.ndarray:
        """Of things in the combinations of their orbits in an irrep (which must have one)."""
        length = np.sqrt(self.size[self.orbit[things]])
        return characters(irrep, self.operation[things]) * self.sign[things] / length


@dataclass(frozen=True, eq=False)
class Expansion:
    """Which combinations of one irrep a pair (P, Q) of symmetry-adapted functions is made of.

    Pairs of irreps (hP, hQ) with hP >= hQ come by hQ; within them Q, then P (P >= Q where hP = hQ).
    """

    irrep: int
    n_classes: int
    first_entry: np.ndarray
    entry: np.ndarray
    weight: np.ndarray


@dataclass(frozen=True, eq=False)
class PairClasses:
    """Classes of pairs of functions, and symmetry-adapted functions."""

    operations: Operations

    @cached_property
    def _functions(self) -> _Orbits:
        return _Orbits.of(self.operations.image, self.operations.sign)

    @cached_property
    def _pairs(self) -> _Orbits:
        image, sign = self.operations.image, self.operations.sign
        high, low = np.tril_indices(self.operations.n_functions)
        found = _Orbits.of(pair_number(image[:, high], image[:, low]), sign[:, high] * sign[:, low])
        # Among the classes of one mu those with the same irreps are neighbours: they are combined together.
        bits = (1 << np.arange(self.n_irreps)) @ found.has
        return found.reordered(np.lexsort([found.representative, bits, high[found.representative]]))

    @property
    def n_irreps(self) -> int:
        return self.operations.count

    @cached_property
    def n_classes(self) -> np.ndarray:
        """Combinations of each irrep."""
        return self._pairs.has.sum(axis=1)

    @cached_property
    def _place(self) -> np.ndarray:
        """(irreps, classes): number of a class among those of an irrep."""
        return self._pairs.has.cumsum(axis=1) - 1

    @cached_property
    def tables(self) -> dict[str, np.ndarray]:
        """Images and irreps of all classes, as the native core takes them."""
        pairs = self._pairs
        first = np.concatenate([[0], pairs.size.cumsum()])
        image, irrep, place = np.zeros((3, first[-1]), np.int64)
        weight = np.zeros(first[-1])
        own = self.operations
        high, low = (x[pairs.representative] for x in np.tril_indices(own.n_functions))
        # Classes that are kept by the same operations with the same signs have the same irreps and steps.
        bits = (1 << np.arange(self.n_irreps)) @ pairs.has
        for kind in np.unique(bits):
            classes = np.flatnonzero(bits == kind)
            irreps = np.flatnonzero(kind >> np.arange(self.n_irreps) & 1)
            steps, order = _steps(irreps)
            for j, (step, of_irrep) in enumerate(zip(steps, order, strict=True)):
                at, h, k = first[classes] + j, high[classes], low[classes]
                image[at] = pair_number(own.image[step, h], own.image[step, k])
                weight[at] = own.sign[step, h] * own.sign[step, k] / np.sqrt(len(irreps))
                irrep[at], place[at] = of_irrep, self._place[of_irrep, classes]
        return {"first": first, "image": image, "irrep": irrep, "place": place, "weight": weight}

    @property
    def of_functions(self) -> dict[str, np.ndarray]:
        """What the operations make of functions, as the native core takes it."""
        image, sign = self.operations.image, self.operations.sign
        return {
            "function_image": np.ascontiguousarray(image, np.int64).ravel(),
            "function_sign": np.ascontiguousarray(sign).ravel(),
        }

    @cached_property
    def n_functions(self) -> np.ndarray:
        """Symmetry-adapted functions of each irrep."""
        return self._functions.has.sum(axis=1)

    def rows_of_functions(self, first: int, last: int) -> np.ndarray:
        """(irreps, 2): the combinations of each irrep whose representatives (P, Q) have P >= Q in a range.

        They are neighbours, for classes are in the order of their P.
        """
        before = [n * (n + 1) // 2 for n in (first, last)]
        ends = [np.count_nonzero(self._pairs.representative < pairs) for pairs in before]
        return np.stack([self._pairs.has[:, :end].sum(axis=1) for end in ends], axis=1)

    def adapted(self, irrep: int) -> np.ndarray:
        """(functions, symmetry-adapted functions of an irrep), orthonormal columns."""
        functions = self._functions
        orbits = np.flatnonzero(functions.has[irrep])
        every = np.arange(self.operations.n_functions)
        amplitude = functions.amplitude(every, irrep)
        return np.where(functions.orbit[:, None] == orbits, amplitude[:, None], 0.0)

    def combined(self, values: np.ndarray) -> np.ndarray:
        """A totally symmetric vector over pairs in the combinations of the irrep 0."""
        pairs = self._pairs
        every = np.arange(len(pairs.orbit))
        sums = np.bincount(pairs.orbit, weights=pairs.amplitude(every, 0) * values)
        return sums[pairs.has[0]]

    def separated(self, values: np.ndarray) -> np.ndarray:
        """A vector over pairs, from its components in the combinations of the irrep 0."""
        pairs = self._pairs
        whole = np.zeros(len(pairs.size))
        whole[pairs.has[0]] = values
        every = np.arange(len(pairs.orbit))
        return pairs.amplitude(every, 0) * whole[pairs.orbit]

    @cached_property
    def _members(self) -> np.ndarray:
        """(orbits, operations): the functions of each orbit, -1 behind the last one."""
        functions = self._functions
        order = np.argsort(functions.orbit, kind="stable")
        starts = np.cumsum(functions.size) - functions.size
        table = np.full((len(functions.size), self.n_irreps), -1)
        table[functions.orbit[order], np.arange(len(order)) - np.repeat(starts, functions.size)] = order
        return table

    def expansion(self, irrep: int) -> Expansion:
        """How pairs of symmetry-adapted functions are made of the combinations of an irrep."""
        left, right, p, q = (
            np.concatenate(parts) for parts in zip(*self._function_pairs(irrep), strict=True)
        )
        counts, entries, weights = self._products(left, right, p, q)
        first = np.concatenate([[0], counts.cumsum()]).astype(np.int64)
        return Expansion(irrep, int(self.n_classes[irrep]), first, entries, weights)

    def _function_pairs(self, irrep: int) -> Iterator[tuple[np.ndarray, ...]]:
        """For each two irreps: both of them, and the orbits of P and Q, for all pairs in order."""
        has = self._functions.has
        for right in range(self.n_irreps):
            left = right ^ irrep
            if left < right:
                continue
            a, b = (np.flatnonzero(has[h]) for h in (left, right))
            if left == right:
                q, p = np.triu_indices(len(a))
            else:
                q, p = (x.ravel() for x in np.indices((len(b), len(a))))
            yield np.full(len(p), left), np.full(len(p), right), a[p], b[q]

    def _products(
        self, left: np.ndarray, right: np.ndarray, p: np.ndarray, q: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Numbers of entries, entries and weights of pairs (P, Q), given by their irreps and orbits.

        One function of the larger orbit may be held fixed, for the sum over its images is as many times the
        same: P Q = sqrt(size of its orbit) sum over the functions of the other orbit.
        """
        functions, pairs = self._functions, self._pairs
        swap = functions.size[p] < functions.size[q]
        fixed, other = np.where(swap, q, p), np.where(swap, p, q)
        members = self._members[other]
        row, column = np.nonzero(members >= 0)
        moving, irrep = members[row, column], (left ^ right)[row]
        pair = pair_number(functions.representative[fixed][row], moving)
        weight = np.sqrt(functions.size[fixed])[row] * pairs.amplitude(pair, irrep)
        weight *= functions.amplitude(moving, np.where(swap, left, right)[row])
        classes = pairs.orbit[pair]
        present = pairs.has[irrep, classes]
        counts = np.bincount(row[present], minlength=len(p))
        return counts, self._place[irrep[present], classes[present]], weight[present]


def _steps(irreps: np.ndarray) -> tuple[list[int], list[int]]:
    """Operations that tell some irreps apart, and the irreps, in the order of a Walsh-Hadamard transform.

    With n irreps there are log2 n generators. Operation j is the product of those whose bits j has, and
    irrep t has the character -1 for those whose bits t has.
    """
    generators: list[int] = []
    patterns = [0] * len(irreps)
    for operation in (1, 2, 4):
        negative = [(int(irrep) & operation).bit_count() & 1 for irrep in irreps]
        trial = [a | b << len(generators) for a, b in zip(patterns, negative, strict=True)]
        if len(set(trial)) == 2 * len(set(patterns)):
            generators.append(operation)
            patterns = trial
    steps = [0]
    for generator in generators:
        steps += [step ^ generator for step in steps]
    return steps, [int(irrep) for _, irrep in sorted(zip(patterns, irreps, strict=True))]
