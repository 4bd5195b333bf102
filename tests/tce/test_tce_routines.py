"""The TCE's routines against coupled cluster by definition, and what follows from their text."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from fock_space import FockSpace
from tilewise.errors import InputError
from tilewise.tce.routines import (
    Routine,
    family,
    levels_of,
    parse_routine,
    routine_named,
    tce_routines,
    waits_for,
)


def evaluate(routines: tuple[Routine, ...], space: FockSpace) -> dict[str, np.ndarray]:
    """Everything that the routines write, with dense tensors."""
    made: dict[str, np.ndarray] = {}
    for routine in routines:
        parts = (*routine.inputs, routine.target)
        letters = {i: chr(ord("a") + k) for k, i in enumerate({i: 0 for part in parts for i in part.indices})}
        *read, written = ["".join(letters[i] for i in part.indices) for part in parts]
        values = [
            made[part.name] if part.name in made else space.given(part.name, part.kinds)
            for part in routine.inputs
        ]
        result = np.einsum(f"{','.join(read)}->{written}", *values, optimize=True)
        total = made.setdefault(routine.target.name, np.zeros(space.shape(routine.target.kinds)))
        for sign, order in routine.permutations:
            total += (
                sign
                * float(routine.factor)
                * result.transpose([order.index(i) for i in routine.target.indices])
            )
    return made


@pytest.mark.parametrize(("o", "v"), [(2, 3), (3, 4), (4, 2)])
def test_ccsd_is_ccsd(o: int, v: int) -> None:
    space = FockSpace(o, v, seed=o)
    made = evaluate(tce_routines("ccsd"), space)
    for name, expected in zip(("r1", "r2"), space.residuals(2), strict=True):
        assert np.abs(made[name] - expected).max() < 1e-11
        assert np.abs(expected).max() > 1


@pytest.mark.parametrize(("o", "v"), [(3, 4), (4, 5)])
def test_ccsdt_is_ccsdt(o: int, v: int) -> None:
    space = FockSpace(o, v, seed=1)
    made = evaluate(tce_routines("ccsdt"), space)
    for name, expected in zip(("r1", "r2", "r3"), space.residuals(3), strict=True):
        assert np.abs(made[name] - expected).max() < 1e-10
        assert np.abs(expected).max() > 0.1


def test_levels_follow_from_what_is_read() -> None:
    routines = tce_routines("ccsd")
    level = levels_of(routines)
    assert level == {routine.name: routine.level for routine in routines}
    counts = [Counter(level[r.name] for r in family(routines, name)) for name in ("r1", "r2")]
    assert counts == [{1: 14, 2: 4, 3: 1}, {1: 29, 2: 8, 3: 3, 4: 1}]
    assert sum(r.is_copy for r in family(routines, "r2")) == 12
    triples = tce_routines("ccsdt")
    assert levels_of(triples) == {routine.name: routine.level for routine in triples}


def test_who_waits_for_whom() -> None:
    routines = tce_routines("ccsd")
    waited = waits_for(routine_named("t2_2_2"), routines)
    second = [r.name for r in waited if r.level == 2]
    assert sorted(second) == ["t2_2_2_2", "t2_2_4", "t2_2_5"]
    first = {r.name for name in second for r in waits_for(routine_named(name), routines)}
    assert len(first | {r.name for r in waited if r.level == 1}) == 10


@pytest.mark.parametrize(
    ("name", "loops", "sums"),
    [
        ("t2_8", [("p3", "p4"), ("h1", "h2")], [("p5", "p6")]),
        ("t2_7", [("p3",), ("p4",), ("h1",), ("h2",)], [("p5",), ("h6",)]),
        ("t2_2_5", [("h10",), ("p3",), ("h1",), ("h2",)], [("p9",), ("h7",)]),
        ("t1_6", [("p2",), ("h1",)], [("p3",), ("h4", "h5")]),
        ("t3_7", [("p4",), ("p5", "p6"), ("h1", "h2", "h3")], [("p7", "p8")]),
        ("t3_6", [("p4", "p5"), ("p6",), ("h1", "h2"), ("h3",)], [("p7",), ("h8",)]),
    ],
)
def test_loops_follow_from_the_text(name: str, loops: list, sums: list) -> None:
    routine = routine_named(name, "ccsdt")
    assert list(routine.loops) == loops
    assert list(routine.sums) == sums


def test_the_text_of_a_routine_can_be_read_again() -> None:
    for routine in tce_routines("ccsdt"):
        name, _, text = routine.text.partition(": ")
        text = text.replace(" -= ", " += -")
        assert parse_routine(name, text, routine.level) == routine


def test_antisymmetrizer_of_three() -> None:
    routine = parse_routine("x", "r3(p1 p2 p3|h1 h2 h3) += P(p1/p2 p3) t1(p1|h1) t2(p2 p3|h2 h3)")
    found = {order[:3]: sign for sign, order in routine.permutations}
    assert found == {("p1", "p2", "p3"): 1, ("p2", "p1", "p3"): -1, ("p3", "p1", "p2"): 1}


@pytest.mark.parametrize(
    "text",
    [
        "r1(p2|h1) = f(p2|h1)",
        "r1(p2|h1) += 2 f(p2|h1) +",
        "r1(p2|h1) += f(p2|h3)",
        "r1(p2|h1) += P(p2/p3) f(p2|h1)",
        "r1(q2|h1) += f(q2|h1)",
        "r1(p2|h1) += t1(p3|h1) t1(p4|h2) v(p2 h2|p3 p4)",
    ],
)
def test_wrong_text(text: str) -> None:
    with pytest.raises(InputError, match="routine x"):
        parse_routine("x", text)


def test_unknown_names() -> None:
    with pytest.raises(InputError, match="valid are ccsd, ccsdt"):
        tce_routines("ccsdtq")
    with pytest.raises(InputError, match="did you mean t2_8"):
        routine_named("t2_88")
