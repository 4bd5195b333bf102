"""The eight abelian point groups, D2h and its subgroups, with irreps as bit patterns.

An irrep's number is PySCF's irrep id (modulo 10 for linear molecules and atoms), and in that
numbering the product of two irreps is the XOR of their numbers. Each operation of a group then is
a mask: its character in an irrep is -1 to the number of bits that irrep and mask share.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tilewise.errors import InputError, one_of

_MASKS: dict[str, dict[str, int]] = {
    "C1": {},
    "Ci": {"i": 1},
    "C2": {"C2z": 1},
    "Cs": {"sigma_xy": 1},
    "D2": {"C2x": 3, "C2y": 1, "C2z": 2},
    "C2v": {"C2z": 2, "sigma_xz": 1, "sigma_yz": 3},
    "C2h": {"C2z": 1, "i": 2, "sigma_xy": 3},
    "D2h": {"C2x": 3, "C2y": 1, "C2z": 2, "i": 4, "sigma_xy": 6, "sigma_xz": 5, "sigma_yz": 7},
}

# C2v has no sigma_xy, so its Cs needs a choice: sigma_yz, as PySCF does.
_KEPT_AS = {("C2v", "Cs"): {"sigma_xy": "sigma_yz"}}


@dataclass(frozen=True)
class PointGroup:
    """An abelian point group; `irreps[k]` names the irrep with bit pattern k."""

    name: str
    irreps: tuple[str, ...]

    @property
    def order(self) -> int:
        return len(self.irreps)

    @property
    def operations(self) -> tuple[str, ...]:
        """The operations, identity first; they are the columns of `characters`."""
        return ("E", *_MASKS[self.name])

    @property
    def characters(self) -> np.ndarray:
        """The character table, irreps by operations."""
        return np.array(
            [[(-1) ** (irrep & mask).bit_count() for mask in self.masks] for irrep in range(self.order)]
        )

    @property
    def masks(self) -> tuple[int, ...]:
        """Of the operations: the product of two operations has the XOR of their masks."""
        return (0, *_MASKS[self.name].values())

    @property
    def subgroups(self) -> tuple[str, ...]:
        """Names of the groups that `restrict` accepts, largest first, this one included."""
        found = [g for g in GROUPS.values() if self._operations_of(g.name) is not None]
        return tuple(g.name for g in sorted(found, key=lambda g: -g.order))

    def product(self, a: int, b: int) -> int:
        """The irrep that the product of two irreps belongs to."""
        return a ^ b

    def restrict(self, subgroup: str) -> tuple[PointGroup, np.ndarray]:
        """The subgroup, and for each irrep of this group its irrep in the subgroup.

        The axes stay: C2 keeps C2z, C2v keeps C2z and sigma_xz, C2h keeps C2z and i, Cs keeps
        sigma_xy (sigma_yz when it comes from C2v).
        """
        target = group_named(subgroup)
        kept = self._operations_of(target.name)
        if kept is None:
            raise InputError(
                f"{target.name} is not a subgroup of {self.name} here: valid are {', '.join(self.subgroups)}"
            )
        columns = [self.operations.index(name) for name in kept]
        table = {tuple(row): irrep for irrep, row in enumerate(target.characters.tolist())}
        images = [table[tuple(row)] for row in self.characters[:, columns].tolist()]
        return target, np.array(images, dtype=np.int64)

    def operations_in(self, subgroup: str) -> tuple[str, ...]:
        """This group's names for the operations of a subgroup."""
        return tuple(self._operations_of(subgroup) or ("E",))

    def _operations_of(self, subgroup: str) -> list[str] | None:
        """This group's names for the operations of `subgroup`, or None if one is missing."""
        alias = _KEPT_AS.get((self.name, subgroup), {})
        names = [alias.get(name, name) for name in ("E", *_MASKS[subgroup])]
        return names if set(names) <= set(self.operations) else None


GROUPS: dict[str, PointGroup] = {
    name: PointGroup(name, irreps)
    for name, irreps in {
        "C1": ("A",),
        "Ci": ("Ag", "Au"),
        "C2": ("A", "B"),
        "Cs": ("A'", 'A"'),
        "D2": ("A", "B1", "B2", "B3"),
        "C2v": ("A1", "A2", "B1", "B2"),
        "C2h": ("Ag", "Bg", "Au", "Bu"),
        "D2h": ("Ag", "B1g", "B2g", "B3g", "Au", "B1u", "B2u", "B3u"),
    }.items()
}


def group_named(name: str) -> PointGroup:
    """The group of that name, in upper or lower case."""
    for group in GROUPS.values():
        if group.name.lower() == str(name).lower():
            return group
    raise one_of("point group", str(name), GROUPS)
