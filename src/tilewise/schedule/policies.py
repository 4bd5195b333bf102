"""The registry of policies, and their text form, such as "factoring(f=2, delta=0.5)"."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from tilewise.errors import InputError, one_of
from tilewise.schedule.block import Block, Proportional
from tilewise.schedule.buckets import Buckets
from tilewise.schedule.counter import IeNxtval, Levels, Nxtval
from tilewise.schedule.dataflow import Dataflow
from tilewise.schedule.hybrid import Hybrid
from tilewise.schedule.hypergraph import Hypergraph
from tilewise.schedule.loops import Chunk, Factoring, Guided, Interleaved, Trapezoid
from tilewise.schedule.lpt import Lpt, Steal
from tilewise.schedule.policy import Policy

_POLICIES: dict[str, Policy] = {
    policy.name: policy
    for policy in (
        Nxtval(),
        IeNxtval(),
        Block(),
        Proportional(),
        Lpt(),
        Hypergraph(),
        Hybrid(),
        Buckets(),
        Steal(),
        Interleaved(),
        Chunk(),
        Guided(),
        Trapezoid(),
        Factoring(),
        Levels(),
        Dataflow(),
    )
}

policies: Mapping[str, Policy] = MappingProxyType(_POLICIES)
"""Each policy by its name, with its default parameters."""

DEFAULT_POLICY = "dataflow"
_TEXT = re.compile(r"\s*([^\s()]+)\s*(?:\((.*)\))?\s*")
_EXPECTED = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text"}


def register(policy: Policy) -> Policy:
    """Makes a policy of one's own known by its name."""
    if policy.name in _POLICIES and type(_POLICIES[policy.name]) is not type(policy):
        raise InputError(f"there is a policy {policy.name} already: give yours another name")
    _POLICIES[policy.name] = policy
    return policy


def policy_named(text: str | Policy) -> Policy:
    """A policy from its text form: a name, with the parameters that are not to have their defaults."""
    if isinstance(text, Policy):
        return text
    if not isinstance(text, str):
        raise InputError(f"policy={text!r}: expected a policy or its name: {', '.join(policies)}")
    match = _TEXT.fullmatch(text)
    name = match[1] if match else text
    if name not in policies:
        raise one_of("policy", name, policies)
    policy = policies[name]
    assert match
    return replace(policy, **_parameters(policy, match[2] or ""))


def _parameters(policy: Policy, text: str) -> dict[str, Any]:
    """The values in "f=2, delta=0.5"."""
    kinds = {f.name: type(getattr(policy, f.name)).__name__ for f in policy.parameters}
    found: dict[str, Any] = {}
    for word in filter(None, map(str.strip, text.split(","))):
        key, _, value = (part.strip() for part in word.partition("="))
        if key not in kinds:
            known = ", ".join(f"{k}=" for k in kinds) or "none"
            raise InputError(f"policy {policy.name} has no parameter '{key}'; it has {known}")
        if key in found:
            raise InputError(f"policy {policy.name}: {key} is given twice")
        found[key] = _value(policy.name, key, kinds[key], value)
    return found


def _value(name: str, key: str, kind: str, text: str) -> Any:
    try:
        if kind == "bool":
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[
                text.lower()
            ]
        return {"int": int, "float": float, "str": str}[kind](text)
    except (KeyError, ValueError):
        raise InputError(f"policy {name}: {key}={text}: {_EXPECTED[kind]} is expected") from None
