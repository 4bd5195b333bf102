"""Strings: the orbitals that the electrons of one spin occupy, by classes that decide which go together.

A class has a label and a pattern: how many electrons left the shells that are full in all references, and how
many are in each of the others that some reference occupies. Nothing else decides about the rank.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from tilewise.ci.orbitals import Orbitals, PairNumbers
from tilewise.core import core
from tilewise.lazy import cached_property

Pattern = tuple[int, ...]
"""Holes in the full shells, then electrons in each open shell."""


@dataclass(frozen=True, eq=False)
class Strings:
    """Occupied orbitals (count, electrons) of each string, ascending; sorted by label, then by pattern."""

    occupied: np.ndarray
    class_of: np.ndarray
    class_label: np.ndarray
    """The label (classes, k) of each class."""
    class_code: np.ndarray
    patterns: tuple[Pattern, ...]
    """Of each class."""

    def __len__(self) -> int:
        return len(self.class_of)

    @property
    def n_electrons(self) -> int:
        return int(self.occupied.shape[1])

    @property
    def n_classes(self) -> int:
        return len(self.class_code)

    def equals(self, other: Strings) -> bool:
        """Whether these are the same strings in the same classes."""
        return np.array_equal(self.occupied, other.occupied) and np.array_equal(self.class_of, other.class_of)

    @cached_property
    def class_first(self) -> np.ndarray:
        """The first string of each class, and the end."""
        return np.searchsorted(self.class_of, np.arange(self.n_classes + 1)).astype(np.int64)

    @cached_property
    def label_end(self) -> np.ndarray:
        """Of each class, the first string with another label."""
        after = np.searchsorted(self.class_code, self.class_code, side="right")
        return self.class_first[after].astype(np.int32)

    def tables(self, numbers: PairNumbers, workers: int) -> dict[str, np.ndarray]:
        """What the native core needs: the strings, and lists of those one and two orbitals apart."""
        occupied, class_of = self.occupied.ravel(), self.class_of
        about = (self.n_electrons, self.n_classes, len(numbers.hop))
        first, of_class, near = core.near_lists(occupied, class_of, numbers.hop.ravel(), *about, workers)
        place, far = core.far_lists(occupied, class_of, numbers.two.ravel(), *about)
        return {
            "occupied": occupied,
            "class_of": class_of,
            "label_end": self.label_end,
            "near_first": first,
            "near_class": of_class,
            "near": near,
            "far_place": place,
            "far": far,
        }

    @classmethod
    def sorted(
        cls, orbitals: Orbitals, occupied: np.ndarray, patterns: np.ndarray, outside: np.ndarray
    ) -> Strings:
        """Of strings in any order, with their patterns (count, p) and electrons outside of all references."""
        labels = orbitals.label_of(occupied)
        codes = orbitals.codes(labels)
        keys = [*reversed(occupied.T), *reversed(patterns.T), outside, codes]
        order = np.lexsort(keys)
        occupied, patterns, codes, labels = occupied[order], patterns[order], codes[order], labels[order]
        changes = np.ones(len(order), bool)
        changes[1:] = (codes[1:] != codes[:-1]) | (patterns[1:] != patterns[:-1]).any(axis=1)
        first = np.flatnonzero(changes)
        return cls(
            np.ascontiguousarray(occupied, dtype=np.uint8),
            (np.cumsum(changes) - 1).astype(np.int32),
            labels[first],
            codes[first],
            tuple(tuple(map(int, row)) for row in patterns[first]),
        )


@dataclass(frozen=True, eq=False)
class Family:
    """Strings with the same pattern: choices of full, open and outside orbitals, to be combined freely."""

    pattern: Pattern
    full: np.ndarray
    open: np.ndarray
    outside: np.ndarray

    def labels(self, orbitals: Orbitals) -> np.ndarray:
        """The different labels (count, k) of its strings."""
        found = orbitals.distinct(orbitals.label_of(self.full))
        for part in (self.open, self.outside):
            other = orbitals.distinct(orbitals.label_of(part))
            sums = (found[:, None] + other[None]).reshape(-1, found.shape[1])
            found = orbitals.distinct(orbitals.reduced(sums))
        return found

    def strings(self, orbitals: Orbitals, wanted: set[int]) -> np.ndarray:
        """Those with one of the wanted labels, by code: orbitals (count, electrons), ascending."""
        heads = _product([self.full, self.open])
        head_labels, head_of = _by_label(orbitals, heads)
        tail_labels, tail_of = _by_label(orbitals, self.outside)
        codes = orbitals.codes(orbitals.reduced(head_labels[:, None] + tail_labels[None]))
        parts = []
        for h, t in np.argwhere(np.isin(codes, list(wanted))).tolist():
            parts.append(_product([heads[head_of == h], self.outside[tail_of == t]]))
        width = heads.shape[1] + self.outside.shape[1]
        return np.sort(np.concatenate([np.zeros((0, width), np.int64), *parts]), axis=1)


def families(
    orbitals: Orbitals, full: np.ndarray, open_shells: list[np.ndarray], n_electrons: int, rank: int
) -> Iterator[Family]:
    """All families of strings with at most `rank` electrons outside of the references' shells.

    `full` are the orbitals of the shells that all references fill, `open_shells` those of each of the others.
    """
    inside = np.concatenate([full, *open_shells]) if open_shells else full
    outside = np.setdiff1d(np.arange(len(orbitals)), inside)
    for holes in range(min(rank, len(full)) + 1):
        for counts in _occupations([len(shell) for shell in open_shells]):
            left = n_electrons - (len(full) - holes) - sum(counts)
            if 0 <= left <= min(rank, len(outside)):
                chosen = _product(
                    [_choices(shell, count) for shell, count in zip(open_shells, counts, strict=True)]
                )
                yield Family(
                    (holes, *counts), _choices(full, len(full) - holes), chosen, _choices(outside, left)
                )


def _occupations(sizes: list[int]) -> Iterator[tuple[int, ...]]:
    if not sizes:
        yield ()
        return
    for count in range(sizes[0] + 1):
        for rest in _occupations(sizes[1:]):
            yield (count, *rest)


def _choices(orbitals: np.ndarray, count: int) -> np.ndarray:
    """All choices (choices, count) of so many orbitals."""
    found = list(combinations(orbitals.tolist(), count))
    return np.array(found, np.int64).reshape(len(found), count)


def _product(parts: list[np.ndarray]) -> np.ndarray:
    """All combinations of a row of each part."""
    made = np.zeros((1, 0), np.int64)
    for part in parts:
        width = made.shape[1]
        both = np.empty((len(made), len(part), width + part.shape[1]), np.int64)
        both[:, :, :width], both[:, :, width:] = made[:, None], part
        made = both.reshape(len(made) * len(part), both.shape[2])
    return made


def _by_label(orbitals: Orbitals, occupied: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different labels of rows of orbitals, and which of them each row has."""
    labels = orbitals.label_of(occupied)
    _, first, place = np.unique(orbitals.codes(labels), return_index=True, return_inverse=True)
    return labels[first], place
