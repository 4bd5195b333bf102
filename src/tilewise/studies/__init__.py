"""Studies: the tables and figures of five papers, repeated with our inspector and our simulator.

One module per paper. `studies` maps names to studies, and `studies["pvm-table2"]()` gives the findings.
"""

from tilewise.studies.registry import studies
from tilewise.studies.study import Constant, Findings, Pair, Row, Study, Table

__all__ = ["Constant", "Findings", "Pair", "Row", "Study", "Table", "studies"]
