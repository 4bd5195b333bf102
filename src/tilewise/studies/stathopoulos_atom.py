"""Stathopoulos and Ynnerman for real: the columns of a sodium atom, made here under real loads.

Their N is counted, too: it is the number of configuration state functions of the term 2S that singles and
doubles of 1s2 2s2 2p6 3s make over orbitals up to n = 11, if l goes to 4.
"""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewise.ci import CI
from tilewise.ci.columns import Columns
from tilewise.ci.determinants import Selection
from tilewise.ci.operators import Operator
from tilewise.ci.orbitals import Orbitals
from tilewise.config import processors, thread_limits
from tilewise.errors import InputError
from tilewise.hardware.competitors import competing
from tilewise.schedule import Policy, policy_named
from tilewise.studies.stathopoulos_runs import COLUMNS, INTERLEAVED, LETTER, OURS, POLICIES, RULES
from tilewise.studies.study import Pair, Row, Say, Table

SODIUM = {"1s": 2, "2s": 2, "2p": 6, "3s": 1}
LETTERS = "spdfghi"
LOADS = ("1-1", "2-1", "3-1")
WORKERS = 2
DELTA = 0.03
"""Seconds: the loop takes about a second here, and the paper's 2,000 s had a delta of 0.5 to 90 s."""
REPEATS = 3
CASE: dict[str, Any] = {"basis": "cc-pvtz", "n": 5, "l": 2, "rank": 3, "term": "2S"}
"""More columns than the paper's, and shorter ones: what keeps two cores busy for about a second."""


def atomic_orbitals(n: int, l: int) -> Orbitals:  # noqa: E741
    """All orbitals up to the quantum numbers n and l, with M_L and the parity as labels."""
    shells = [(k, j) for k in range(1, n + 1) for j in range(min(k, l + 1))]
    labels = [(m, j % 2) for _, j in shells for m in range(-j, j + 1)]
    shell = [number for number, (_, j) in enumerate(shells) for _ in range(2 * j + 1)]
    names = tuple(f"{k}{LETTERS[j]}" for k, j in shells)
    return Orbitals(np.array(labels), (0, 2), np.array(shell), names)


def count_determinants(orbitals: Orbitals, m_l: int, twice_m_s: int) -> int:
    """Singles and doubles of sodium with these projections and even parity."""
    reference = np.array([[SODIUM.get(name, 0) for name in orbitals.shell_names]])
    alpha = (sum(SODIUM.values()) + twice_m_s) // 2
    electrons = (alpha, sum(SODIUM.values()) - alpha)
    return len(Selection(reference, 2, electrons, (m_l, 0)).of(orbitals))


def count_functions(orbitals: Orbitals) -> int:
    """State functions of 2S: determinants with its projections, less those that belong to higher L or S."""
    return (
        count_determinants(orbitals, 0, 1)
        - count_determinants(orbitals, 1, 1)
        - count_determinants(orbitals, 0, 3)
        + count_determinants(orbitals, 1, 3)
    )


@dataclass(frozen=True)
class LoadedRun:
    """One loop over the columns: seconds, over those of workers that never wait, ends, and chunks."""

    seconds: float
    over_ideal: float
    imbalance: float
    steps: int


class Sodium:
    """The columns of the case, to be made again and again."""

    def __init__(self, case: dict[str, Any] = CASE, workers: int = WORKERS) -> None:
        self.where = tuple(processors()[:workers])
        if len(self.where) < workers:
            raise InputError(
                f"--run: {workers} processors are needed, this process may use {len(self.where)}"
            )
        reference = " ".join(f"{shell}{electrons}" for shell, electrons in SODIUM.items())
        self.ci: CI = CI.atom("Na", reference=reference, threads=workers, **case)
        self.plan = self.ci.plan()
        with thread_limits(workers):
            self.operator: Operator = self.ci.problem.hamiltonian(self.ci.numbers)

    def __len__(self) -> int:
        return len(self.ci.determinants)

    def run(self, policy: Policy, load: str) -> LoadedRun:
        """Makes all columns once while others compute on the first processors."""
        columns = Columns(self.ci.determinants, self.ci.numbers, len(self.where), policy, self.where)
        columns.use(self.operator)
        with competing(load, self.where) as speeds, thread_limits(1):
            built = columns.build(self.plan.counts[:, 0], self.plan.column_seconds, self.plan.stored_bytes)
        took = 1e-9 * (built.trace["end"] - built.trace["start"])
        worker, speed = built.trace["worker"], np.array(speeds)
        ideal = float((took * speed[worker]).sum() / speed.sum())
        ends = [1e-9 * float(built.trace["end"][worker == w].max(initial=0)) for w in range(len(self.where))]
        calls = sum(built.by_worker()["counter_calls"])
        steps = max(0, int(calls) - 2 * len(ends))  # the first and the last call of each are none
        return LoadedRun(max(ends), max(ends) / ideal, float(np.ptp(ends)), steps)


def trials() -> dict[str, Policy]:
    """The paper's policies, by the letter and by our rule."""
    found = {INTERLEAVED: policy_named(POLICIES[INTERLEAVED])}
    for name, text in POLICIES.items():
        if name != INTERLEAVED:
            for rule in (LETTER, OURS):
                found[f"{name}, {rule}"] = policy_named(text.format(delta=DELTA, literal=RULES[rule]))
    return found


def atom_tables(progress: Say, seed: int) -> tuple[Table, ...]:
    """What `tilewise study pvm-table2 --run` shows besides: N counted, and columns that are made here."""
    progress("state functions of sodium")
    orbitals = atomic_orbitals(11, 4)
    counted = (
        Row("state functions of 2S, l up to 4", (Pair(COLUMNS, count_functions(orbitals)),)),
        Row("state functions of 2S, l up to 5", (Pair(COLUMNS, count_functions(atomic_orbitals(11, 5))),)),
        Row("determinants with M_L = 0, M_S = 1/2, l up to 4", (count_determinants(orbitals, 0, 1),)),
    )
    sodium = Sodium()
    sodium.run(policy_named("block"), LOADS[0])  # memory is touched for the first time
    rows = []
    for load in LOADS:
        for name, policy in trials().items():
            progress(f"{len(sodium)} columns under load {load}: {name}")
            runs = [sodium.run(policy, load) for _ in range(REPEATS)]
            middle = [
                statistics.median(getattr(run, key) for run in runs)
                for key in ("seconds", "over_ideal", "imbalance", "steps")
            ]
            rows.append(Row(f"{name}, {load}", tuple(middle)))
    heads = ("policy, jobs on the two processors", "seconds", "over ideal", "imbalance / s", "steps")
    title = f"{len(sodium)} columns of a real sodium atom, delta {DELTA:g} s, medians of {REPEATS}"
    functions = Table("Sodium: singles and doubles, n up to 11", ("", "number"), counted)
    return functions, Table(title, heads, tuple(rows))
