"""Equations as text against the dense oracle; damaged ones are refused, or right as well."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from fuzzing.case import Case, Problem, Verdict, kind
from fuzzing.mutations import damaged_text
from fuzzing.tensors import spaces_of
from fuzzing.world import World
from random_programs import random_equation
from tilewise import Space, Tensor, policies
from tilewise.equations import Equation, evaluate_dense, parse, plan_program
from tilewise.errors import TilewiseError
from tilewise.execute.once import run_once

STATEMENTS = """input T[ab+-|ij+-]
input K[ab+-|ij+-]
input W[ia|jb]
input f[i|j]
V[ab|cd] = T[ab|ij] K[cd|ij]
P[ia|jb] = 2 T[ab|ij] - T[ba|ij]
P[ia|ib] += 1/2 W[ia|jb] f[i|j]
H[ab+-||cd+-] = V[ab|cd] + V[ba|dc] + V[cd|ab] + V[dc|ba]
R[ab|ij] = H[ab|cd] T[cd|ij]
e[] = 2 T[ab|ij] K[ab|ij] - T[ab|ij] K[ab|ji]
"""


@dataclass(frozen=True)
class EquationCase(Case):
    text: str
    spaces: dict[str, Space]
    policy: str
    workers: int
    seed: int
    damaged: bool

    def run(self, world: World) -> Verdict:
        try:
            equation = parse(self.text)
            program = plan_program(equation, self.spaces)
            rng = np.random.default_rng(self.seed)
            inputs = {
                name: Tensor.random(program.layouts[name], rng, name)
                for name, what in program.kinds.items()
                if what == "input"
            }
            if "constant" in program.kinds.values() or "solve " in self.text:
                return Verdict("planned")
            done = run_once(program, inputs, policy=policies[self.policy], workers=self.workers)
        except TilewiseError as error:
            return Verdict("refused", _judged(str(error)))
        except BaseException as error:
            return Verdict("traceback", Problem.of_error(error))
        return Verdict("done", self._compared(equation, program, inputs, done))

    def _compared(self, equation, program, inputs, done) -> Problem | None:
        if self.damaged and _promises(equation):
            return None
        dense = evaluate_dense(equation, {name: tensor.to_dense() for name, tensor in inputs.items()})
        for name, declaration in equation.declarations.items():
            if declaration.kind != "intermediate" or name not in dense:
                continue
            scalar = not declaration.form.letters
            got = done[name][0] if scalar else Tensor(program.layouts[name], done[name]).to_dense()
            error = np.abs(got - dense[name]).max(initial=0.0)
            if not error <= 1e-9 * max(1.0, np.abs(dense[name]).max(initial=0.0)):
                return Problem("changed result", "equation", f"{name} is off by {error:.1e}")
        return None

    def smaller(self) -> Iterator[Case]:
        lines = self.text.splitlines()
        for k in range(len(lines)):
            yield replace(self, text="\n".join(lines[:k] + lines[k + 1 :]))

    def __str__(self) -> str:
        return f"{self.text}\n  over {self.spaces}, {self.policy}, {self.workers} workers, seed {self.seed}"


@kind("equation", 20)
def right(rng: random.Random, world: World) -> Case:
    if rng.random() < 0.1:
        return _case(rng, STATEMENTS, False)
    return _case(rng, random_equation(np.random.default_rng(rng.getrandbits(32)), rng.randint(1, 5)), False)


@kind("equation damaged", 60)
def damaged(rng: random.Random, world: World) -> Case:
    text = STATEMENTS
    if rng.random() < 0.5:
        text = random_equation(np.random.default_rng(rng.getrandbits(32)), rng.randint(1, 4))
    return _case(rng, damaged_text(rng, text).decode("utf-8", "surrogateescape"), True)


def _case(rng: random.Random, text: str, damaged: bool) -> Case:
    wide = {letters + ("mn" if "i" in letters else "ef"): space for letters, space in spaces_of(rng).items()}
    return EquationCase(
        text, wide, rng.choice(list(policies)), rng.choice((1, 2)), rng.getrandbits(16), damaged
    )


def _promises(equation: Equation) -> bool:
    """Whether a form says of a result that it is symmetric, which damage may have made wrong."""
    made = [d.form for d in equation.declarations.values() if d.kind not in ("input", "constant")]
    return any(form.half or form.row_packing or form.col_packing for form in made)


def _judged(text: str) -> Problem | None:
    return None if text else Problem("no sentence", "equation")
