"""All studies by name, paper after paper."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tilewise.errors import one_of
from tilewise.studies.study import Study

_STUDIES: tuple[Study, ...] = ()

studies: Mapping[str, Study] = MappingProxyType({study.name: study for study in _STUDIES})


def study_named(name: str) -> Study:
    """Raises InputError, with the list of valid names, for an unknown one."""
    if name not in studies:
        raise one_of("study", name, studies)
    return studies[name]
