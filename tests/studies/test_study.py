"""What a study is made of."""

import pytest

from tilewise.studies import Constant, Findings, Pair, Row, Study, Table, registry, studies


@pytest.mark.parametrize(
    ("pair", "deviation"),
    [
        (Pair(200, 210), 0.05),
        (Pair(200.0, 150.0), -0.25),
        (Pair(-4.0, -5.0), -0.25),
        (Pair(7, 7), 0.0),
        (Pair((20, 40), 33.0), 0.0),
        (Pair((20, 40), 10), -0.5),
        (Pair((20, 40), 50), 0.25),
        (Pair(0, 0), 0.0),
        (Pair(0, 1), None),
    ],
)
def test_a_deviation_is_relative_to_the_paper_or_to_the_near_end_of_its_range(pair, deviation):
    assert pair.deviation == (None if deviation is None else pytest.approx(deviation))


def test_a_row_without_a_value_for_each_heading_is_refused():
    with pytest.raises(ValueError, match="row b has 1 values"):
        Table("t", ("name", "x", "y"), (Row("a", (1, 2)), Row("b", (1,))))


def test_pairs_of_a_table_have_their_place():
    table = Table("t", ("name", "x", "y"), (Row("a", (Pair(1, 2), 3)), Row("b", (None, Pair(4, 5)))))
    assert table.pairs == {("a", "x"): Pair(1, 2), ("b", "y"): Pair(4, 5)}


def test_a_study_can_be_called_in_silence():
    said = []

    def run(progress, seed):
        progress("counting")
        return Findings((), (f"seed {seed}",))

    study = Study("s", "p", "w", run)
    assert study().assumptions == ("seed 0",)
    assert study(said.append, 3).assumptions == ("seed 3",) and said == ["counting"]


def test_names_are_those_of_the_studies_and_none_is_left_out():
    assert all(study.name == name and study.paper and study.shows for name, study in studies.items())
    assert len(studies) == sum(len(module.STUDIES) for module in registry._MODULES)


def test_marks_and_origins_that_nobody_knows_are_refused():
    with pytest.raises(ValueError, match="unknown marks"):
        Study("s", "p", "w", lambda progress, seed: Findings(()), ("guessed",))
    with pytest.raises(ValueError, match="constant LONG: its origin begins with"):
        Constant("LONG", "0.9", "a.py", "what is long", "somehow")
