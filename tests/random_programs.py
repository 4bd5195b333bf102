"""Random programs and what they are run with; oracles are the dense evaluation of the same equation."""

import numpy as np

from random_spaces import LETTERS
from tilewise import Tensor
from tilewise.equations import parse, plan_program
from tilewise.equations.ccsd import CCSD
from tilewise.equations.dense import dense_constants
from tilewise.execute import Runner
from tilewise.inspect import PanelRule, TaskGraph
from tilewise.inspect.graph import inspect_operations
from tilewise.inspect.operations.update import gap_vector
from tilewise.inspect.records import TASK
from tilewise.schedule import policy_named


def run_program(
    program,
    inputs,
    *,
    policy="dataflow",
    workers=1,
    executor="threads",
    rule=None,
    ordered=False,
    energies=None,
):
    """(buffers, scalars, trace) after setup and operations. What nobody gives starts as NaN."""
    buffers = {name: np.full(layout.size, np.nan) for name, layout in program.layouts.items()}
    buffers |= {name: tensor.data.copy() for name, tensor in inputs.items()}
    buffers |= gaps(program, energies or {})
    for operations in (program.setup, program.operations):
        graph = inspect_operations(program, operations, rule or PanelRule(), ordered)
        graph.check()
        schedule = policy_named(policy)(graph, graph.flops + graph.bytes, workers)
        result = Runner(graph, schedule, buffers, executor).run()
    return buffers, result.scalars, result.trace


def gaps(program, energies):
    return {op.gaps: gap_vector(op, program.layouts[op.amplitude], energies) for op in program.updates}


def random_integrals(world, seed=0):
    """(pq|rs) over o, then v, with the symmetries of integrals over real orbitals."""
    spaces = {space.name: space for space in world.values()}
    irreps = np.concatenate([spaces["o"].irreps, spaces["v"].irreps])
    n = len(irreps)
    spins = np.concatenate([spins_of(spaces["o"]), spins_of(spaces["v"])])
    pair = np.where(spins[:, None] == spins, irreps[:, None] ^ irreps, -1)
    eri = np.random.default_rng(seed).standard_normal((n,) * 4)
    eri = eri + eri.transpose(1, 0, 2, 3)
    eri = eri + eri.transpose(0, 1, 3, 2)
    eri = eri + eri.transpose(2, 3, 0, 1)
    return np.where((pair[:, :, None, None] == pair) & (pair >= 0), eri / 8, 0.0)


def spins_of(space):
    """The spin of each orbital."""
    return np.repeat(space.spins, [sum(row) for row in space.counts])


def ccsd_case(world, seed=0):
    """CCSD over some spaces with random tensors: equation, program, tensors, energies by space name."""
    equation = parse(CCSD)
    program = plan_program(equation, world)
    sizes = {space.name: space.size for space in world.values()}
    constants = dense_constants(equation, random_integrals(world, seed), world, {"o": 0, "v": sizes["o"]})
    rng = np.random.default_rng(seed)
    tensors = {}
    for name, kind in program.kinds.items():
        if kind == "constant":
            tensors[name] = Tensor.from_dense(constants[name], program.layouts[name], name)
        elif kind == "input":
            tensors[name] = Tensor.random(program.layouts[name], rng, name)
    energies = {"o": -1 - np.sort(rng.random(sizes["o"])), "v": 1 + np.sort(rng.random(sizes["v"]))}
    return equation, program, tensors, energies


def energies_by_letter(energies):
    return {letter: energies[name] for name, letters in LETTERS.items() for letter in letters}


FORMS = ("i|a", "a|i", "i|j", "a|b", "ia|", "|ai", "ia|jb", "ai|jb", "ij|ab", "ab|ij", "ij+-|ab+-", "ab-|ij")
"""Forms of the tensors of random programs; packed ones are inputs only, where any values are valid."""


DIAGONALS = {
    "i|j": ("n|n",),
    "a|b": ("f|f",),
    "ia|jb": ("na|nb", "if|jf", "nf|nf"),
    "ai|jb": ("an|nb", "fi|jf", "fn|nf"),
}
"""Of some of these forms; n and f stand in no other."""


def random_equation(rng, length):
    """A text of `length` statements on random tensors: permutations, traces, products, sums of them; some
    add on a diagonal."""
    forms = {f"A{k}": form for k, form in enumerate(rng.choice(FORMS, 3))}
    lines = [f"input {name}[{form}]" for name, form in forms.items()]
    made: dict[str, str] = {}
    while len(lines) < 3 + length:
        if made and rng.random() < 0.4:
            target = str(rng.choice(list(made)))
            form, sign = made[target], str(rng.choice(["=", "+=", "-="]))
            if sign != "=" and form in DIAGONALS and rng.random() < 0.5:
                form = str(rng.choice(DIAGONALS[form]))
        else:
            target, sign = f"B{len(made)}", "="
            form = str(rng.choice([f for f in FORMS if "+" not in f and f != "ab-|ij"]))
        sources = {n: f for n, f in (forms | made).items() if n != target}
        terms = [t for t in (_random_term(rng, form, sources) for _ in range(rng.integers(1, 4))) if t]
        if terms:
            made.setdefault(target, form)
            lines.append(f"{target}[{form}] {sign} " + " + ".join(terms))
    return "\n".join(lines)


def _random_term(rng, form, sources):
    """One or two tensors that make the letters that the form has once, all others being summed; or None."""
    wanted = {
        name: [c for c in form if c in letters and form.count(c) == 1] for name, letters in LETTERS.items()
    }
    for _ in range(20):
        names = [str(n) for n in rng.choice(list(sources), rng.integers(1, 3))]
        slots = {name: [] for name in LETTERS}  # (tensor, axis) by space
        for k, name in enumerate(names):
            for axis, c in enumerate(c for c in sources[name] if c.isalpha()):
                slots["o" if c in LETTERS["o"] else "v"].append((k, axis))
        spare = {name: len(slots[name]) - len(wanted[name]) for name in LETTERS}
        if any(n < 0 or n % 2 for n in spare.values()):
            continue
        places = {}
        for name, letters in LETTERS.items():
            unused = [c for c in letters if c not in wanted[name]]
            names_of = wanted[name] + [c for c in unused[: spare[name] // 2] for _ in range(2)]
            for slot, letter in zip(rng.permutation(len(slots[name])), names_of, strict=True):
                places[slots[name][slot]] = letter
        summed = {c for c in places.values() if c not in form}
        factors = ["".join(places[k, a] for a in range(_rank(sources[n]))) for k, n in enumerate(names)]
        # Sums over more than two indices are products of two whole tensors or not planned at all.
        product_of_two = len(names) == 2 and all(len(set(f)) == len(f) for f in factors)
        if len(summed) > 2 and not product_of_two:
            continue
        coefficient = rng.choice(["", "2 ", "1/2 "])
        return coefficient + " ".join(f"{n}[{f}]" for n, f in zip(names, factors, strict=True))
    return None


def _rank(form):
    return sum(c.isalpha() for c in form)


def random_program(world, seed, length):
    """(equation, program, random input tensors)."""
    rng = np.random.default_rng(seed)
    equation = parse(random_equation(rng, length))
    program = plan_program(equation, world)
    inputs = {
        name: Tensor.random(program.layouts[name], rng, name)
        for name, kind in program.kinds.items()
        if kind == "input"
    }
    return equation, program, inputs


# Graphs


def bare_graph(operation_of, edges):
    """A graph of nothing but tasks and dependencies."""
    tasks = np.zeros(len(operation_of), TASK)
    tasks["operation"], tasks["panel"] = operation_of, np.arange(len(tasks))
    sources, targets = np.array(edges, np.int64).reshape(-1, 2).T
    operations = (None,) * (max(operation_of, default=-1) + 1)
    return TaskGraph.bare(tasks, {}, operations, sources, targets)
