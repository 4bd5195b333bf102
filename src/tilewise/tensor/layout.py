"""Layouts: where the elements of a tensor lie, without the elements.

A layout is a matricization: a row group and a column group of indices. A totally symmetric tensor
is block diagonal in the label of the two groups, and only its sectors are laid out, one after the
other, each a row-major matrix.

A symmetric tensor, x(I|J) = x(J|I), can be stored by half: rows and columns of a sector are cut into the same
bands, and the blocks of two bands on or below the diagonal follow each other, each a row-major matrix.
A product reads every block in one stream, as it lies for its rows and transposed for its columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilewise.arguments import plain_text
from tilewise.core import core
from tilewise.errors import InputError
from tilewise.lazy import cached_property
from tilewise.spaces import Space
from tilewise.tensor.compound import Compound, changes

MAX_RANK = core.max_axes
BAND = 192
"""Rows of a band, about: tile tuples are not cut."""
_GROUP = re.compile(r"([A-Za-z]*)(\+-|\+|-)?$")


@dataclass(frozen=True)
class Form:
    """A matricization by letters: `ab+-|ij+-` has rows 'ab' packed '+-' and columns 'ij'.

    Two bars, `ab+-||cd+-`: the matrix is symmetric, and half of it is stored.
    """

    rows: str
    cols: str
    row_packing: str = ""
    col_packing: str = ""
    half: bool = False

    @classmethod
    def parse(cls, text: str) -> Form:
        bars = "||" if "||" in plain_text("form", text) else "|"
        groups = text.replace(" ", "").split(bars)
        if len(groups) == 1:
            groups.append("")
        matches = [_GROUP.match(group) for group in groups]
        if len(groups) != 2 or not all(matches):
            raise InputError(f"form '{text}': expected rows|columns, each letters with +, - or +- behind")
        rows, cols = (match.groups(default="") for match in matches if match)
        return cls(rows[0], cols[0], rows[1], cols[1], bars == "||")

    @property
    def letters(self) -> str:
        return self.rows + self.cols

    def __str__(self) -> str:
        return f"{self.rows}{self.row_packing}{'||' if self.half else '|'}{self.cols}{self.col_packing}"


@dataclass(frozen=True)
class Bands:
    """Bands of a tensor that is stored by half, as parallel arrays, in the order of storage."""

    sector: np.ndarray
    first: np.ndarray  # row, in the sector
    height: np.ndarray
    end: np.ndarray  # row behind the band
    offset: np.ndarray  # in the buffer
    of_tuple: np.ndarray  # the band of each tile tuple of the rows

    def block(self, row: np.ndarray, col: np.ndarray) -> np.ndarray:
        """Where blocks of two bands begin in the buffer; their rows are as long as the band of columns."""
        begin: np.ndarray = self.offset[row] + self.height[row] * self.first[col]
        return begin


@dataclass(frozen=True)
class Layout:
    """Rows, columns, and the sectors that symmetry leaves."""

    rows: Compound
    cols: Compound
    half: bool = False

    def __post_init__(self) -> None:
        if self.half:
            self._share_states()
        if self.rank > MAX_RANK:
            raise InputError(f"a tensor of rank {self.rank}: the limit is {MAX_RANK}")
        orders = {space.order for space in self.spaces}
        if len(orders) > 1:
            raise InputError(f"a tensor over spaces of different groups ({sorted(orders)} irreps)")

    def _share_states(self) -> None:
        """Row k and column k of a tensor that is stored by half are the same state, in the same order."""
        opposite = tuple(-s for s in self.rows.signs)
        alike = (self.rows.spaces, self.rows.packing) == (self.cols.spaces, self.cols.packing)
        if not alike or self.cols.signs not in (self.rows.signs, opposite):
            raise InputError("a tensor that is stored by half must have equal rows and columns")
        object.__setattr__(self, "cols", self.rows)

    @classmethod
    def parse(cls, text: str, spaces: Mapping[str, Space], signs: str | None = None) -> Layout:
        """The layout of a form such as `ab+-|ij+-`; `spaces` maps letters ("ijkl") to their space.

        `signs` ("++--") says which indices are upper and lower, for the spin label; by default rows
        are upper and columns lower.
        """
        if not isinstance(spaces, Mapping) or not all(isinstance(s, Space) for s in spaces.values()):
            raise InputError(f'spaces={spaces!r}: expected letters with their space, such as {{"ij": occ}}')
        by_letter = {letter: space for letters, space in spaces.items() for letter in letters}
        return cls.of(Form.parse(text), by_letter, signs)

    @classmethod
    def of(
        cls, form: Form, spaces: Mapping[str, Space], signs: str | None = None, one_spin: bool = False
    ) -> Layout:
        """The same for a form that has been read; `spaces` has an entry for each letter.

        With `one_spin` an upper and a lower index that make a group have the same spin.
        """
        missing = sorted(set(form.letters) - set(spaces))
        if missing:
            raise InputError(f"form '{form}': no space is given for index {', '.join(missing)}")
        if signs is None:
            signs = "+" * len(form.rows) + "-" * len(form.cols)
        if len(plain_text("signs", signs)) != len(form.letters) or set(signs) - set("+-"):
            raise InputError(f"signs '{signs}': expected one + or - for each index of '{form.letters}'")
        sign = [1 if s == "+" else -1 for s in signs]
        n = len(form.rows)
        rows, cols = (
            Compound(
                tuple(spaces[c] for c in letters),
                tuple(own),
                packing,
                one_spin and sorted(own) == [-1, 1] and any(spaces[c].spins != (0,) for c in letters),
            )
            for letters, own, packing in (
                (form.rows, sign[:n], form.row_packing),
                (form.cols, sign[n:], form.col_packing),
            )
        )
        has_spin = any(space.spins != (0,) for space in rows.spaces)
        if form.half and has_spin and rows.signs == cols.signs:
            raise InputError(
                f"form '{form}', signs '{signs}': half of a matrix can only be stored where rows are upper "
                "and columns lower indices, or the other way round; use one bar"
            )
        return cls(rows, cols, form.half)

    @property
    def rank(self) -> int:
        """Number of indices."""
        return self.rows.rank + self.cols.rank

    @cached_property
    def spaces(self) -> tuple[Space, ...]:
        """The space of each index, rows first."""
        return self.rows.spaces + self.cols.spaces

    @property
    def signs(self) -> tuple[int, ...]:
        """Of each index, rows first: +1 for an upper one, -1 for a lower one."""
        turned = -1 if self.half else 1  # columns that are the rows again, as lower indices
        return self.rows.signs + tuple(turned * s for s in self.cols.signs)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the dense tensor: row indices, then column indices."""
        return tuple(space.size for space in self.spaces)

    @property
    def transposed(self) -> Layout:
        """The layout with rows and columns exchanged."""
        return Layout(self.cols, self.rows, self.half)

    @cached_property
    def sector_pairs(self) -> np.ndarray:
        """(sectors, 2): the row sector and the column sector of each sector.

        Labels match when the irreps are equal and the signed spins cancel; parities match when they
        are equal or when one group has none (then the plain group serves both). Stored by half, rows and
        columns are the same group, and every sector is on its diagonal.
        """
        if self.half:
            return np.repeat(np.arange(len(self.rows.sizes)), 2).reshape(-1, 2)
        r, c = self.rows.labels[:, None, :], self.cols.labels[None, :, :]
        match = (r[..., 0] == c[..., 0]) & (r[..., 1] == -c[..., 1])
        match &= (r[..., 2] == c[..., 2]) | (r[..., 2] == 0) | (c[..., 2] == 0)
        pairs: np.ndarray = np.array(match.nonzero()).T
        return pairs

    @cached_property
    def nrows(self) -> np.ndarray:
        """Rows of each sector."""
        counts: np.ndarray = self.rows.sizes[self.sector_pairs[:, 0]]
        return counts

    @cached_property
    def ncols(self) -> np.ndarray:
        """Columns of each sector."""
        counts: np.ndarray = self.cols.sizes[self.sector_pairs[:, 1]]
        return counts

    @cached_property
    def offsets(self) -> np.ndarray:
        """(sectors + 1,): where each sector begins in the buffer, and the buffer's length."""
        sizes = self.nrows * self.ncols
        if self.half:
            b = self.bands
            sizes = np.bincount(b.sector, weights=b.height * b.end, minlength=len(sizes)).astype(np.int64)
        return np.concatenate([[0], np.cumsum(sizes)])

    @cached_property
    def bands(self) -> Bands:
        """How a tensor that is stored by half is cut."""
        table = self.rows.tuples
        sector = np.full(len(self.rows.sizes), -1)
        sector[self.sector_pairs[:, 0]] = np.arange(len(self.sector_pairs))
        sector = sector[table.sector]
        new = changes(table.sector) | changes(self.rows.pieces(BAND))
        first, of_tuple = table.offset[new], np.cumsum(new) - 1
        height = np.bincount(of_tuple, weights=table.size, minlength=len(first)).astype(np.int64)
        end = first + height
        offset = np.cumsum(height * end) - height * end
        return Bands(sector[new], first, height, end, offset, of_tuple)

    @cached_property
    def size(self) -> int:
        """Elements stored."""
        return int(self.offsets[-1])

    @cached_property
    def sector_of(self) -> np.ndarray:
        """(row sectors, column sectors) -> sector, or -1 where symmetry leaves nothing."""
        table = np.full((len(self.rows.sizes), len(self.cols.sizes)), -1, np.int64)
        table[self.sector_pairs[:, 0], self.sector_pairs[:, 1]] = np.arange(len(self.sector_pairs))
        return table

    @cached_property
    def labels(self) -> list[tuple[int, int, int]]:
        """(irrep, spin, parity) of each sector; spin is that of the rows."""
        rows, cols = self.rows.labels[self.sector_pairs[:, 0]], self.cols.labels[self.sector_pairs[:, 1]]
        parity = np.where(rows[:, 2] != 0, rows[:, 2], cols[:, 2])
        return list(zip(rows[:, 0].tolist(), rows[:, 1].tolist(), parity.tolist(), strict=True))
