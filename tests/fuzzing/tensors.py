"""Spaces, layouts, tensors and contractions: right ones against numpy.einsum, and wrong ones."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np

import tilewise
from fuzzing.case import Case, Problem, kind
from fuzzing.mutations import damaged_bytes, damaged_text
from fuzzing.python_calls import WILD_ARGUMENTS, CallCase
from fuzzing.world import World
from tilewise import Layout, Space, Tensor, contract
from tilewise.errors import SymmetryError
from tilewise.sealed import HEADER

FORMS = (
    "i|a",
    "ia|",
    "|ai",
    "ij|ab",
    "ab|ij",
    "ia|jb",
    "ab+-|ij+-",
    "ab+|ij+",
    "ab-|cd-",
    "ab+-|cd+-",
    "ab+-||cd+-",
    "ab|c",
)
EXPRESSIONS = (
    "ijcd,abcd->ijab",
    "ijab,abkl->ij|kl",
    "ijab->abij",
    "ia,ai->",
    "ijab,ijab->",
    "ii->",
    "ijab,jbkc->iakc",
    "ij,jk->ik",
)


def spaces_of(rng: random.Random) -> dict[str, Space]:
    """Letters to spaces of one group, small and perhaps empty."""
    order, spin = rng.choice((1, 2, 4, 8)), rng.random() < 0.3
    made = {}
    for name, letters in (("o", "ijkl"), ("v", "abcd")):
        rows = tuple(
            tuple(rng.randint(0, 3 if order < 4 else 1) for _ in range(order)) for _ in range(1 + spin)
        )
        made[letters] = Space(name, rows, (1, -1) if spin else (0,), rng.randint(1, 4))
    return made


@kind("contract", 40)
def contraction(rng: random.Random, world: World) -> Case:
    """An expression, perhaps a damaged one, on tensors whose letters it names: refused, or right."""
    spaces = spaces_of(rng)
    expression = rng.choice(EXPRESSIONS)
    tensors = [_tensor(rng, letters, spaces) for letters in expression.split("->")[0].split(",")]
    if rng.random() < 0.4:
        expression = damaged_text(rng, expression, 1).decode("utf-8", "surrogateescape")
    named: dict[str, Any] = {"policy": rng.choice(list(tilewise.policies)), "threads": rng.choice((1, 2))}
    if rng.random() < 0.2:
        named[rng.choice(("alpha", "threads", "policy", "executor"))] = rng.choice(WILD_ARGUMENTS)
    if rng.random() < 0.05:
        tensors[rng.randrange(len(tensors))] = rng.choice(WILD_ARGUMENTS)
    factor = named.get("alpha", 1.0)
    return CallCase(
        "contract",
        contract,
        (expression, *tensors),
        named,
        lambda done: _against_einsum(done, expression, tensors, factor),
    )


@kind("tensors", 40)
def made(rng: random.Random, world: World) -> Case:
    """Tensors of any form go into dense arrays and files, and come back."""
    form: Any = rng.choice(FORMS)
    if rng.random() < 0.4:
        form = damaged_text(rng, form, 1).decode("utf-8", "surrogateescape")
    spaces: Any = spaces_of(rng)
    named: dict[str, Any] = {}
    if rng.random() < 0.3:
        named = {rng.choice(("signs", "seed", "name")): rng.choice((*WILD_ARGUMENTS, "+-", "++--"))}
    if rng.random() < 0.05:
        spaces = rng.choice(WILD_ARGUMENTS)
    return CallCase("Tensor", _round_trip, (form, spaces), named)


@kind("spaces", 15)
def spaces(rng: random.Random, world: World) -> Case:
    named: dict[str, Any] = {
        "name": "o",
        "counts": [rng.randint(0, 3) for _ in range(rng.choice((1, 2, 3, 4, 8)))],
        "tile": 3,
    }
    named[rng.choice(list(named))] = rng.choice((*WILD_ARGUMENTS, [10**9], [1, -1], [1.5, 2], ["x"], [None]))
    return CallCase("Space.spatial", _tiles, (), named)


@kind("tensor files damaged", 15)
def files(rng: random.Random, world: World) -> Case:
    tensor = _tensor(rng, "ijab", spaces_of(rng))
    seed = rng.getrandbits(32)
    return CallCase("Tensor.load", _loaded, (tensor, seed), {})


def _tensor(rng: random.Random, letters: str, spaces: dict[str, Space]) -> Any:
    half = (len(letters) + 1) // 2
    return Tensor.random(Layout.parse(f"{letters[:half]}|{letters[half:]}", spaces), rng.getrandbits(16))


def _against_einsum(done: Tensor, expression: str, tensors: list[Tensor], factor: float) -> Problem | None:
    left, right = expression.replace(" ", "").split("->")
    plain = f"{left}->{''.join(c for c in right if c.isalpha())}"
    dense = factor * np.einsum(plain, *(tensor.to_dense() for tensor in tensors))
    if set(right) & {"+", "-"} and not _is_held(dense, done.layout):
        return None  # a packing was asked for whose symmetry the result does not have
    error = np.abs(done.to_dense() - dense).max(initial=0.0)
    if not error <= 1e-9 * max(1.0, np.abs(dense).max(initial=0.0)):
        return Problem("changed result", "contract", f"{expression}: off by {error:.1e}")
    return None


def _is_held(dense: np.ndarray, layout: Layout) -> bool:
    try:
        Tensor.from_dense(dense, layout)
    except SymmetryError:
        return False
    return True


def _round_trip(form: Any, spaces: Any, signs: Any = None, seed: Any = 0, name: Any = "") -> str:
    layout = Layout.parse(form, spaces, signs)
    tensor = Tensor.random(layout, seed, name)
    again = Tensor.from_dense(tensor.to_dense(), layout, name)
    if not np.allclose(again.data, tensor.data):
        raise AssertionError(f"{form}: dense and back is another tensor")
    tensor.save("t.h5")
    if not np.array_equal(Tensor.load("t.h5").data, tensor.data):
        raise AssertionError(f"{form}: another tensor comes from its file")
    return repr(tensor)


def _loaded(tensor: Tensor, seed: int) -> str:
    """Through a file that is damaged, its header or what follows."""
    tensor.save("t.h5")
    path, rng = Path("t.h5"), random.Random(seed)
    content = path.read_bytes()
    header = damaged_bytes(rng, content[:HEADER]) + content[HEADER:]
    path.write_bytes(damaged_bytes(rng, content) if rng.random() < 0.7 else header)
    return repr(Tensor.load(path))


def _tiles(name: Any, counts: Any, tile: Any) -> int:
    space = Space.spatial(name, counts, tile)
    return len(space.tiles) + space.size
