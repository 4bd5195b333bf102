"""Traces for `tilewise report`: a small one, with other values and damage."""

from __future__ import annotations

import json
import random

from fuzzing.case import Case, kind
from fuzzing.commands import CommandCase
from fuzzing.mutations import damaged_bytes, damaged_document, damaged_text
from fuzzing.world import World
from made_traces import made_document


@kind("trace", 80)
def trace(rng: random.Random, world: World) -> Case:
    text = json.dumps(made_document())
    how = rng.random()
    if how < 0.7:
        content = json.dumps(damaged_document(rng, made_document())).encode("utf-8", "surrogateescape")
    elif how < 0.85:
        content = damaged_text(rng, text)
    else:
        content = damaged_bytes(rng, text.encode())
    options = []
    if rng.random() < 0.3:
        options.append(("--iteration", rng.choice(("1", "2", "0", "3", "-1"))))
    if rng.random() < 0.2:
        options.append(("--out", rng.choice(("t.json", "page.html", ".", "no/page.html", ""))))
    return CommandCase(("report", "t.json"), tuple(options), {"t.json": content})
