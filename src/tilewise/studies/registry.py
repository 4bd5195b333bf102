"""All studies by name, paper after paper."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tilewise.studies import ghosh, ghosh_proxy, ibrahim, jagode_routines, ozog_tasks, stathopoulos
from tilewise.studies.study import Study

_STUDIES: tuple[Study, ...] = (
    *ozog_tasks.STUDIES,
    *ghosh.STUDIES,
    *ghosh_proxy.STUDIES,
    *stathopoulos.STUDIES,
    *jagode_routines.STUDIES,
    *ibrahim.STUDIES,
)

studies: Mapping[str, Study] = MappingProxyType({study.name: study for study in _STUDIES})
