"""An equation of one's own: MP2's energy, written as text, run as tasks, checked by the dense oracle."""

import numpy as np

from tilewise import Space, Tensor, policies
from tilewise.equations import evaluate_dense, parse, plan_program
from tilewise.execute.once import run_once

equation = parse("""
input T[ab+-|ij+-]
input K[ab+-|ij+-]
P[ia|jb] = 2 T[ab|ij] - T[ba|ij]
e[] = 2 T[ab|ij] K[ab|ij] - T[ab|ij] K[ab|ji]
""")
spaces = {"ij": Space.spatial("o", [2, 1]), "ab": Space.spatial("v", [4, 3])}
program = plan_program(equation, spaces)
inputs = {name: Tensor.random(program.layouts[name], seed) for seed, name in enumerate("TK")}
result = run_once(program, inputs, policy=policies["dataflow"], workers=2)
oracle = evaluate_dense(equation, {name: tensor.to_dense() for name, tensor in inputs.items()})
print(program)
print("energy", result["e"][0], "dense", oracle["e"])
assert np.isclose(result["e"][0], oracle["e"])
assert np.allclose(Tensor(program.layouts["P"], result["P"]).to_dense(), oracle["P"])
