"""Tensors: a layout, and one flat float64 buffer for its sectors."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import h5py
import numpy as np

from tilewise.arguments import file_path, plain_text
from tilewise.errors import CheckpointError, InputError, SymmetryError
from tilewise.hdf5 import file_of, read_array, reason_of, whole_numbers
from tilewise.new_memory import zeros
from tilewise.output_files import replacing
from tilewise.sealed import read_sealed, write_sealed
from tilewise.spaces import Space
from tilewise.tensor.compound import Compound
from tilewise.tensor.layout import Layout

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

FORMAT = "tilewise tensor 1"
"""The first line of a file."""

Elements = Callable[..., np.ndarray]
"""Values of a plain (unpacked) tensor at broadcast index arrays."""


class Tensor:
    """A block-diagonal tensor. `Tensor.zeros("ab+-|ij+-", {"ab": v, "ij": o})` makes one."""

    def __init__(self, layout: Layout, data: np.ndarray | None = None, name: str = "") -> None:
        self.layout = layout
        self.data = zeros(layout.size) if data is None else np.asarray(data)
        self.name = plain_text("name", name)
        self.check()

    def check(self) -> None:
        """Raises if the buffer does not belong to the layout."""
        data, size = self.data, self.layout.size
        if data.shape != (size,) or data.dtype != np.float64 or not data.flags.c_contiguous:
            raise InputError(
                f"tensor {self.name or '(unnamed)'}: the buffer must be a contiguous float64 vector of "
                f"{size} elements, not {data.dtype} of shape {data.shape}"
            )

    # Construction

    @classmethod
    def zeros(
        cls, form: str, spaces: Mapping[str, Space], signs: str | None = None, name: str = ""
    ) -> Tensor:
        """A tensor of zeros; `form`, `spaces` and `signs` are those of `Layout.parse`."""
        return cls(Layout.parse(form, spaces, signs), name=name)

    @classmethod
    def random(cls, layout: Layout, seed: int | np.random.Generator = 0, name: str = "") -> Tensor:
        """A tensor of normally distributed numbers."""
        try:
            rng = np.random.default_rng(seed)
        except (TypeError, ValueError):
            raise InputError(f"seed={seed!r}: expected a whole number from 0 up, or a generator") from None
        return cls(layout, rng.standard_normal(layout.size), name)

    @classmethod
    def from_dense(cls, dense: ArrayLike, layout: Layout, name: str = "", tol: float = 1e-10) -> Tensor:
        """Packs a dense array; raises SymmetryError if it has anything that the layout cannot hold."""
        x = np.asarray(dense, dtype=np.float64)
        if x.shape != layout.shape:
            raise InputError(f"dense array of shape {x.shape} for a layout of shape {layout.shape}")
        tensor = cls.from_elements(layout, lambda *index: x[index], name)
        lost = np.abs(x - tensor.to_dense())
        if lost.size and lost.max() > tol * max(1.0, np.abs(x).max()):
            where = tuple(int(i) for i in np.unravel_index(int(np.argmax(lost)), lost.shape))
            raise SymmetryError(
                f"tensor {name or '(unnamed)'}: element {where} = {x[where]:.6g} breaks the symmetry of its "
                f"layout by {lost[where]:.3g}; a symmetric array has {tensor.to_dense()[where]:.6g} there"
            )
        return tensor

    @classmethod
    def from_elements(
        cls,
        layout: Layout,
        elements: Elements,
        name: str = "",
        *,
        exchange_symmetric: bool = False,
        chunk: int = 1 << 22,
    ) -> Tensor:
        """Projects the plain values `elements(p, q, ...)` onto the layout, a few rows at a time.

        `exchange_symmetric` promises x(pq|rs) = x(qp|sr), which halves the work for a layout that is
        packed `+-` on both sides.
        """
        if layout.half:
            raise InputError("a tensor that is stored by half is made by an equation; use one bar here")
        tensor = cls(layout, name=name)
        halve = exchange_symmetric and layout.rows.packing == layout.cols.packing == "+-"
        for s, (row_sector, col_sector) in enumerate(layout.sector_pairs):
            rows, row_parity = layout.rows.states(row_sector)
            cols, col_parity = layout.cols.states(col_sector)
            target = tensor._matrix(s)
            step = max(1, chunk // max(1, target.shape[1]))
            for first in range(0, target.shape[0], step):
                part = slice(first, first + step)
                row_terms = _projection(layout.rows, [r[part] for r in rows], row_parity[part])
                col_terms = _projection(layout.cols, cols, col_parity)
                for k, ((row_index, row_factor), (col_index, col_factor)) in enumerate(
                    product(row_terms, col_terms)
                ):
                    if halve and k >= 2:  # the other two terms are equal to these
                        break
                    index = [r[:, None] for r in row_index] + [c[None, :] for c in col_index]
                    values = elements(*index) * row_factor[:, None] * col_factor
                    target[part] += 2 * values if halve else values
        return tensor

    def to_dense(self) -> np.ndarray:
        """The plain elements as an array, an axis per index, rows first."""
        dense = np.zeros(self.layout.shape)
        layout = self.layout
        for s, (row_sector, col_sector) in enumerate(layout.sector_pairs):
            rows, row_parity = layout.rows.states(row_sector)
            cols, col_parity = layout.cols.states(col_sector)
            for (row_index, row_factor), (col_index, col_factor) in product(
                _projection(layout.rows, rows, row_parity), _projection(layout.cols, cols, col_parity)
            ):
                index = [r[:, None] for r in row_index] + [c[None, :] for c in col_index]
                values = self._matrix(s) * row_factor[:, None] * col_factor
                dense[tuple(index)] += values if index else values[0, 0]
        return dense

    # Views

    def _matrix(self, sector: int) -> np.ndarray:
        layout = self.layout
        first, last = layout.offsets[sector], layout.offsets[sector + 1]
        if layout.half:
            return self._unfolded(sector)
        return self.data[first:last].reshape(layout.nrows[sector], layout.ncols[sector])

    def _unfolded(self, sector: int) -> np.ndarray:
        """The whole matrix of a sector that is stored by half: a copy, not to be written to."""
        layout, bands = self.layout, self.layout.bands
        whole = np.zeros((layout.nrows[sector], layout.ncols[sector]))
        mine = np.flatnonzero(bands.sector == sector)
        pairs = np.array([(row, col) for row in mine for col in mine if col <= row]).reshape(-1, 2)
        for (row, col), at in zip(pairs, bands.block(*pairs.T), strict=True):
            shape = bands.height[row], bands.height[col]
            stored = self.data[at : at + shape[0] * shape[1]].reshape(shape)
            rows, cols = (slice(bands.first[k], bands.end[k]) for k in (row, col))
            whole[rows, cols], whole[cols, rows] = stored, stored.T
        whole.flags.writeable = False
        return whole

    def sector(self, label: int | tuple[int, ...]) -> np.ndarray:
        """The matrix of one sector, a view. A label is (irrep, spin, parity), or less if that is unique."""
        wanted = (label,) if isinstance(label, int) else tuple(label)
        found = [s for s, full in enumerate(self.layout.labels) if full[: len(wanted)] == wanted]
        if len(found) != 1:
            raise InputError(
                f"tensor {self.name or '(unnamed)'}: sector {label} is "
                f"{'ambiguous' if found else 'not stored'}; its sectors are {self.layout.labels}"
            )
        return self._matrix(found[0])

    def block(self, tiles: tuple[int, ...], parity: int = 0) -> np.ndarray:
        """One tile tuple as a view: an axis per index, or one axis for a pair within one tile."""
        layout = self.layout
        groups = ((layout.rows, tiles[: layout.rows.rank]), (layout.cols, tiles[layout.rows.rank :]))
        which, shape = [], []
        for compound, group in groups:
            sign = parity if compound.packing == "+-" else compound.parities[0]
            found = compound.find([np.array(t) for t in group], sign)
            if len(group) != compound.rank or found < 0:
                raise InputError(f"block {tiles}: not a stored tile tuple of {self.name or 'this tensor'}")
            which.append(int(found))
            sizes = [int(space.tiles.size[t]) for space, t in zip(compound.spaces, group, strict=True)]
            packed = compound.packing and group[0] == group[1]
            shape.append([int(compound.tuples.size[found])] if packed else sizes)
        (r, c), (rows, cols) = which, (layout.rows.tuples, layout.cols.tuples)
        s = int(layout.sector_of[rows.sector[r], cols.sector[c]])
        if s < 0:
            raise InputError(f"block {tiles}: symmetry makes it zero, it is not stored")
        part = self._matrix(s)[
            rows.offset[r] : rows.offset[r] + rows.size[r], cols.offset[c] : cols.offset[c] + cols.size[c]
        ]
        strides: list[int] = []
        for sizes, unit in zip(shape, part.strides, strict=True):
            strides += [unit * int(np.prod(sizes[k + 1 :])) for k in range(len(sizes))]
        return np.lib.stride_tricks.as_strided(part, shape[0] + shape[1], strides)

    def at(self, *index: np.ndarray) -> np.ndarray:
        """Plain values at broadcast orbital indices."""
        layout = self.layout
        if layout.half:
            chosen: np.ndarray = self.to_dense()[index]
            return chosen
        arrays = np.broadcast_arrays(*index) if index else []
        total = np.zeros(arrays[0].shape if arrays else ())
        for array, n in zip(arrays, layout.shape, strict=True):
            if array.size and not 0 <= array.min() <= array.max() < n:
                raise IndexError(f"orbital {array.min()} or {array.max()} of a space that has {n}")
        if not layout.size:
            return total
        rows, cols = list(arrays[: layout.rows.rank]), list(arrays[layout.rows.rank :])
        for row_parity, col_parity in product(layout.rows.parities, layout.cols.parities):
            rs, rp, rc = layout.rows.locate(rows, row_parity)
            cs, cp, cc = layout.cols.locate(cols, col_parity)
            s = layout.sector_of[rs, cs]
            factor = np.where(s >= 0, rc * cc, 0.0)
            stored = factor != 0
            where = np.where(stored, layout.offsets[s] + rp * layout.ncols[s] + cp, 0)
            if self.data.size:
                total += np.where(stored, factor * self.data[where], 0.0)
        return total

    def relayout(self, layout: Layout, axes: tuple[int, ...] | None = None) -> Tensor:
        """The same tensor in another matricization; index k of the result is index axes[k] of this one.

        Works element by element on NumPy arrays, for any two layouts; inside a program the same is
        done by sort tasks. What the new layout cannot hold is projected out.
        """
        axes = tuple(range(self.layout.rank)) if axes is None else axes
        if sorted(axes) != list(range(self.layout.rank)):
            raise InputError(f"axes {axes} are not a permutation of {self.layout.rank} indices")
        if tuple(self.layout.spaces[a] for a in axes) != layout.spaces:
            raise InputError("relayout: the indices of the two layouts run over different spaces")
        back = tuple(int(k) for k in np.argsort(axes)) if axes else ()
        return Tensor.from_elements(layout, lambda *index: self.at(*(index[k] for k in back)), self.name)

    # Arithmetic that needs no layout

    def dot(self, other: Tensor) -> float:
        """Sum of products of all plain elements: packed pairs are orthonormal."""
        if other.layout != self.layout:
            raise InputError("dot: the two tensors have different layouts")
        if self.layout.half:
            return float(np.vdot(self.to_dense(), other.to_dense()))
        return float(self.data @ other.data)

    def norm(self) -> float:
        """Square root of the sum of squares of all plain elements."""
        return float(np.sqrt(self.dot(self)))

    # Files

    def save(self, target: str | Path | h5py.Group) -> None:
        """Writes layout and data to an HDF5 file, or to a group of one that is open."""
        if not isinstance(target, h5py.Group):
            image = io.BytesIO()
            with h5py.File(image, "w") as file:
                self.save(file)
            with replacing(file_path("target", target)) as place:
                write_sealed(place, FORMAT, image.getbuffer())
            return
        save_layout(target, self.layout, self.name)
        # A checksum per chunk: bits that rot on disk are found when the file is read.
        chunks = (min(self.data.size, 1 << 17),) if self.data.size else None
        target.create_dataset("data", data=self.data, chunks=chunks, fletcher32=bool(self.data.size))

    @classmethod
    def load(cls, source: str | Path | h5py.Group) -> Tensor:
        """The tensor that `save` has written; CheckpointError if the file is damaged or another one."""
        if not isinstance(source, h5py.Group):
            path = file_path("source", source)
            image = read_sealed(path, FORMAT, "tensor file")
            try:
                with h5py.File(io.BytesIO(image), "r") as file:
                    return cls.load(file)
            except (OSError, CheckpointError) as error:
                raise CheckpointError(f"{path}: {reason_of(error)}") from error
        try:
            return cls(load_layout(source), read_array(source, "data"), str(source.attrs["name"]))
        except Exception as error:  # h5py and NumPy raise many kinds over wrong contents
            raise CheckpointError(
                f"{file_of(source)}the tensor in it is incomplete or wrong ({reason_of(error)})"
            ) from error

    def __repr__(self) -> str:
        spaces = ",".join(space.name for space in self.layout.spaces)
        stored = f"{self.layout.size} stored of {int(np.prod(self.layout.shape))}"
        return f"Tensor({self.name or '?'}[{spaces}], {len(self.layout.labels)} sectors, {stored})"


def save_layout(target: h5py.Group, layout: Layout, name: str) -> None:
    """All of a tensor but its elements."""
    target.attrs["name"], target.attrs["half"] = name, layout.half
    for key, compound in (("rows", layout.rows), ("cols", layout.cols)):
        group = target.create_group(key)
        group.attrs["packing"] = compound.packing
        group.attrs["signs"] = np.array(compound.signs, dtype=np.int64)
        group.attrs["one_spin"] = compound.one_spin
        for k, space in enumerate(compound.spaces):
            entry = group.create_group(str(k))
            entry.attrs.update(name=space.name, tile=space.tile)
            entry.attrs["counts"] = np.array(space.counts, dtype=np.int64)
            entry.attrs["spins"] = np.array(space.spins, dtype=np.int64)


def load_layout(group: h5py.Group) -> Layout:
    """The layout of a tensor that was saved; nothing that is as large as its elements is made."""
    rows, cols = (_load_compound(group[key]) for key in ("rows", "cols"))
    return Layout(rows, cols, bool(group.attrs.get("half", False)))


def _load_compound(group: h5py.Group) -> Compound:
    spaces = []
    for k in range(len(group.keys())):
        entry = group[str(k)].attrs
        counts = tuple(map(tuple, whole_numbers(entry, "counts")))
        spins, tile = whole_numbers(entry, "spins"), whole_numbers(entry, "tile")
        spaces.append(Space(str(entry["name"]), counts, tuple(spins), tile))
    signs = tuple(whole_numbers(group.attrs, "signs"))
    one_spin = bool(group.attrs.get("one_spin", False))
    return Compound(tuple(spaces), signs, str(group.attrs["packing"]), one_spin)


def _projection(
    compound: Compound, orbitals: list[np.ndarray], parity: np.ndarray
) -> list[tuple[list[np.ndarray], np.ndarray]]:
    """The plain orbital tuples that a state is made of, each with its coefficient."""
    if not compound.packing:
        return [(orbitals, np.ones(len(parity)))]
    p, q = orbitals
    factor = np.where(p == q, 0.5, np.sqrt(0.5))
    return [([p, q], factor), ([q, p], factor * parity)]
