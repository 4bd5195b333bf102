"""All studies by name, paper after paper and in the order in which each paper shows them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from tilewise.studies import (
    ghosh,
    ghosh_ccsd,
    ghosh_proxy,
    ibrahim,
    ibrahim_map,
    ibrahim_scaling,
    jagode_routines,
    jagode_runs,
    ozog_balance,
    ozog_buckets,
    ozog_counter,
    ozog_limits,
    ozog_profile,
    ozog_tasks,
    stathopoulos,
)
from tilewise.studies.study import Study

_MODULES = (
    ozog_tasks,
    ozog_limits,
    ozog_profile,
    ozog_counter,
    ozog_balance,
    ozog_buckets,
    ghosh,
    ghosh_ccsd,
    ghosh_proxy,
    stathopoulos,
    jagode_routines,
    jagode_runs,
    ibrahim,
    ibrahim_map,
    ibrahim_scaling,
)
_ORDER = (
    "ozog-table1",
    "ozog-limits",
    "ozog-fig1",
    "ozog-fig2",
    "ozog-fig3",
    "ozog-fig5",
    "ozog-fig6",
    "ozog-fig7",
    "ozog-table2",
    "ozog-fig8",
    "ghosh-table1",
    "ghosh-fig1",
    "ghosh-proxy",
    "pvm-table1",
    "pvm-table2",
    "jagode-fig2",
    "jagode-fig5",
    "jagode-fig7",
    "jagode-fig8",
    "ibrahim-granularity",
    "ibrahim-map",
    "ibrahim-scaling",
)
_FOUND: dict[str, Study] = {study.name: study for module in _MODULES for study in module.STUDIES}

studies: Mapping[str, Study] = MappingProxyType({name: _FOUND[name] for name in _ORDER})
