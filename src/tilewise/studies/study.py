"""What a study is: a name, and a function that gives tables, assumptions and a figure.

STUDIES = (
    Study("pvm-table2", "Stathopoulos and Ynnerman, table 2", "four policies under four loads", run),
)

def run(progress: Say, seed: int) -> Findings:
    progress("interleaved under 2-2-1-1")
    table = Table("four processors", ("load", "seconds", "steps"), (Row("2-2-1-1", (Pair(4016, 4056.2), 4)),))
    return Findings((table,), ("The paper does not say ...; ... is assumed.",), draw)

def draw(figure: Figure) -> None:
    axis = figure.subplots()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

Say = Callable[[str], None]
"""Told what is being done."""


@dataclass(frozen=True)
class Pair:
    """A number of the paper, or the range that it gives, and ours.

    `derived` marks a number that the paper does not print, but that follows from its formulas or its text.
    """

    paper: float | tuple[float, float]
    ours: float
    derived: bool = False

    @property
    def deviation(self) -> float | None:
        """Relative; of a range 0 inside, and from its near end outside. None if that is zero."""
        low, high = self.paper if isinstance(self.paper, tuple) else (self.paper, self.paper)
        if low <= self.ours <= high:
            return 0.0
        near = low if self.ours < low else high
        return (self.ours - near) / abs(near) if near else None


Value = Pair | float | int | str | None
"""Of a cell; None leaves it empty."""


@dataclass(frozen=True)
class Row:
    label: str
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Table:
    """`columns` are headings: the first is that of the labels, then one for each value of a row."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.values) != len(self.columns) - 1:
                raise ValueError(
                    f"{self.title}: row {row.label} has {len(row.values)} values, not one for each "
                    f"of {', '.join(self.columns[1:])}"
                )

    @property
    def pairs(self) -> dict[tuple[str, str], Pair]:
        """All comparisons with the paper, by label and heading."""
        return {
            (row.label, column): value
            for row in self.rows
            for column, value in zip(self.columns[1:], row.values, strict=True)
            if isinstance(value, Pair)
        }


COUNTED, SIMULATED, FITTED, CHOSEN = "counted", "simulated", "fitted", "chosen"
MARKS = (COUNTED, SIMULATED, FITTED)
"""Counted by the inspector, simulated on a machine file, or with a constant that was fitted to the paper."""


@dataclass(frozen=True)
class Constant:
    """A number that a study rests on and that no paper gives: what it is, and what it decides."""

    name: str
    """As in the file, such as `counter_service`."""
    value: str
    """With its unit, as `docs/studies.md` prints it."""
    file: str
    """Where it is set, from the root of the repository."""
    decides: str
    """A few words on what would change with it."""
    origin: str
    """Begins with "fitted to ..." or "chosen ..."."""

    def __post_init__(self) -> None:
        if not self.origin.startswith((FITTED, CHOSEN)):
            raise ValueError(f"constant {self.name}: its origin begins with {FITTED} or {CHOSEN}")


@dataclass(frozen=True)
class Findings:
    """What a study found."""

    tables: tuple[Table, ...]
    assumptions: tuple[str, ...] = ()
    """A sentence for each place where the paper is silent or contradicts itself."""
    draw: Callable[[Any], None] | None = None
    """Draws the paper's figure into an empty figure of matplotlib."""


@dataclass(frozen=True)
class Study:
    """`run(progress, seed)` does the work; calling the study does the same, in silence if so wished."""

    name: str
    paper: str
    """Whose table or figure it is, such as "Ghosh et al., table 1"."""
    shows: str
    """In a few words."""
    run: Callable[[Say, int], Findings]
    marks: Sequence[str] = ()
    """How its numbers came about: some of MARKS."""
    constants: Callable[[], tuple[Constant, ...]] = tuple
    """Gives every number that was fitted or chosen for its tables, without running it."""
    for_real: Callable[[Say, int], tuple[Table, ...]] | None = None
    """Does for real what the study simulates or counts, and gives more tables: on ranks that it starts by
    mpiexec, or on the threads of this machine."""

    def __post_init__(self) -> None:
        if unknown := set(self.marks) - set(MARKS):
            raise ValueError(f"study {self.name}: unknown marks {sorted(unknown)}; valid are {MARKS}")

    def __call__(self, progress: Say | None = None, seed: int = 0) -> Findings:
        return self.run(progress or (lambda text: None), seed)
